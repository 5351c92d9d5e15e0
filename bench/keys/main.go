// Command keys measures what sweeping the keys of a Redis costs its other
// clients. It starts a private Redis, prints one line per figure, and exits 1
// when a figure misses its goal.
//
// It is not a test of what a sweep finds: that is in package lockstore.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/bench/figure"
	"idemscope/internal/lab/servers"
	"idemscope/internal/lockstore"
)

const (
	// rate is the default of exporter.sweep.keys_per_second, pageKeys the COUNT
	// that follows from it.
	rate, pageKeys = 2000, 100
	// fullRate is the highest that the configuration takes.
	fullRate = 100_000
	// oursPart: one key in so many is a lock or a marker.
	oursPart = 100
)

// sizes are how large the measurements are.
type sizes struct {
	keys int
	// pairs is how many turns there are with the sweep and as many without, turn
	// how long each is.
	pairs int
	turn  time.Duration
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{keys: 300_000, pairs: 40, turn: time.Second}
	}
	return sizes{keys: 10_000_000, pairs: 60, turn: 2 * time.Second}
}

func main() {
	small := flag.Bool("small", false, "reduced sizes: two minutes instead of seven")
	sweep := flag.String("sweep", "", "run as the process that sweeps the Redis with this address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *sweep != "" {
		if err := runChild(ctx, *sweep); err != nil {
			fmt.Fprintln(os.Stderr, "sweep:", err)
			os.Exit(2)
		}
		return
	}
	missed, err := measure(ctx, sizesOf(*small))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench keys:", err)
		os.Exit(2)
	case missed:
		os.Exit(1)
	}
}

func measure(ctx context.Context, size sizes) (missed bool, err error) {
	server, err := servers.StartRedis(ctx, servers.RedisOptions{Args: []string{"--enable-debug-command", "local"}})
	if err != nil {
		return false, err
	}
	defer func() { _ = server.Stop() }()
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true, ReadTimeout: 5 * time.Minute})
	defer client.Close()
	if err := fill(ctx, client, size.keys); err != nil {
		return false, err
	}
	store, err := open(server.Addr)
	if err != nil {
		return false, err
	}
	defer store.Close()
	setting := fmt.Sprintf("%d keys, 1 in %d of them ours", size.keys, oursPart)

	sweep, err := startChild(ctx, server.Addr)
	if err != nil {
		return false, err
	}
	turns, err := takeTurns(ctx, client, sweep, size)
	if err := errors.Join(err, sweep.end()); err != nil {
		return false, err
	}
	paced := fmt.Sprintf("%s; keys_per_second %d", setting, rate)
	missed = figure.Print(os.Stdout,
		figure.Figure{Name: "sweep_walked_per_second", Value: turns.walked, Unit: "keys/s", Goal: figure.AtMost(rate),
			Setting: paced + "; calls of SCAN times COUNT, and PTTL, by INFO commandstats, less the page with which a turn begins"},
		figure.Figure{Name: "sweep_get_p99_ratio", Value: turns.ratio, Goal: figure.AtMost(1.10),
			Setting: fmt.Sprintf("%s; median of %d pairs of alternating turns of %s, one client with %d GET/s; median P99 without the sweep %s, with it %s",
				paced, size.pairs, size.turn, getsPerSecond, turns.without, turns.with)})

	pass, err := sweepAt(store, fullRate).Run(ctx, func(lockstore.TimedKey) {})
	if err != nil {
		return missed, err
	}
	full := fmt.Sprintf("%s; keys_per_second %d", setting, fullRate)
	least := float64(size.keys) / fullRate
	return figure.Print(os.Stdout,
		figure.Figure{Name: "sweep_keys_found", Value: float64(pass.Found), Unit: "keys", Goal: figure.AtLeast(float64(size.keys / oursPart)), Setting: full},
		figure.Figure{Name: "sweep_full_pass", Value: pass.Took.Seconds(), Unit: "s", Goal: figure.AtLeast(least * 0.9), Setting: full + "; not faster than its budget"}) || missed, nil
}

// fill makes the keys: foreign ones, locks and markers.
func fill(ctx context.Context, client *redis.Client, keys int) error {
	ours := keys / oursPart
	for _, kind := range []struct {
		prefix string
		n      int
	}{{"session:of:somebody", keys - ours}, {"idem_lock:order_paid", ours / 2}, {"idempotent:order_paid", ours - ours/2}} {
		if err := client.Do(ctx, "DEBUG", "POPULATE", kind.n, kind.prefix).Err(); err != nil {
			return fmt.Errorf("make %d keys: %w", kind.n, err)
		}
	}
	return nil
}

func sweepAt(store *lockstore.Store, keysPerSecond int) *lockstore.Sweep {
	prefixes := []string{"idem_lock:", "idempotent:"}
	return store.NewSweep(lockstore.SweepOptions{Prefixes: prefixes, KeysPerSecond: keysPerSecond, Wanted: func(key string) bool {
		return strings.HasPrefix(key, prefixes[0]) || strings.HasPrefix(key, prefixes[1])
	}})
}
