// Command janitor measures what a cleanup costs the database and the consumers
// beside it, against pt-archiver and against a bare loop of range DELETEs, on one
// private MariaDB with a binary log and full durability. It prints one line per
// figure and exits 1 when a figure misses its goal.
//
// It is not a test of what is deleted: that is in package janitor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"idemscope/bench/figure"
)

// sizes are how large the measurement is.
type sizes struct {
	rows int
	// turn is how long one cleanup runs, turns how often each.
	turn  time.Duration
	turns int
	// buffer is the buffer pool of the server.
	buffer string
	// walk is how far the ids of the simulated table reach.
	walk uint64
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{rows: 600_000, turn: 3 * time.Second, turns: 1, buffer: "512M", walk: 10_000_000}
	}
	return sizes{rows: 5_000_000, turn: 15 * time.Second, turns: 3, buffer: "3G", walk: 100_000_000}
}

func main() {
	small := flag.Bool("small", false, "reduced sizes: two minutes instead of half an hour")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, err := measure(ctx, sizesOf(*small))
	missed := figure.Print(os.Stdout, figures...)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench janitor:", err)
		os.Exit(2)
	case missed:
		os.Exit(1)
	}
}

// measure returns what was measured until something failed.
func measure(ctx context.Context, size sizes) (figures []figure.Figure, err error) {
	if _, err := exec.LookPath("pt-archiver"); err != nil {
		return nil, fmt.Errorf("pt-archiver is needed (Debian: apt-get install percona-toolkit): %w", err)
	}
	s, err := startStore(ctx, size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, part := range []func(context.Context, *store, sizes) ([]figure.Figure, error){speed, archives, besideConsumers, besideOthers, longWalks} {
		more, err := part(ctx, s, size)
		figures = append(figures, more...)
		if err != nil {
			return figures, err
		}
	}
	return figures, nil
}
