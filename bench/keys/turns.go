package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/bench/figure"
)

// getsPerSecond is the pace of the foreground client.
const getsPerSecond = 2000

// turns is what the alternating turns came to.
type turns struct {
	// walked is how many keys the sweep walked in a second of its turns.
	walked float64
	// ratio is the median of the P99 with the sweep by the one without, pair by
	// pair: what else the machine does meanwhile meets both.
	ratio         float64
	with, without time.Duration
}

func takeTurns(ctx context.Context, client *redis.Client, sweep *child, size sizes) (turns, error) {
	var ratios []float64
	var with, without []time.Duration
	var swept time.Duration
	before, err := walked(ctx, client)
	if err != nil {
		return turns{}, err
	}
	for i := range size.pairs {
		var p99 [2]time.Duration
		for _, sweeping := range []bool{i%2 == 0, i%2 != 0} { // neither is always the first
			began := time.Now()
			if sweeping {
				p99[1], err = besideSweep(ctx, client, sweep, size.turn)
				swept += time.Since(began)
			} else {
				p99[0], err = foreground(ctx, client, size.turn)
			}
			if err != nil {
				return turns{}, err
			}
		}
		without, with = append(without, p99[0]), append(with, p99[1])
		ratios = append(ratios, float64(p99[1])/float64(p99[0]))
	}
	after, err := walked(ctx, client)
	if err != nil {
		return turns{}, err
	}
	// A turn begins with a page; the budget is what lies between two of them.
	between := after - before - float64(size.pairs*pageKeys)
	return turns{walked: between / swept.Seconds(), ratio: figure.Median(ratios), with: figure.Median(with), without: figure.Median(without)}, nil
}

// besideSweep is foreground while the sweep goes on from where it was stopped.
func besideSweep(ctx context.Context, client *redis.Client, sweep *child, turn time.Duration) (time.Duration, error) {
	if err := sweep.turn(); err != nil {
		return 0, err
	}
	p99, err := foreground(ctx, client, turn)
	return p99, errors.Join(err, sweep.turn())
}

// foreground reads keys at its pace and returns the P99 of the answers.
func foreground(ctx context.Context, client *redis.Client, turn time.Duration) (time.Duration, error) {
	var took []time.Duration
	tick := time.NewTicker(time.Second / getsPerSecond)
	defer tick.Stop()
	for end := time.Now().Add(turn); time.Now().Before(end); {
		<-tick.C
		start := time.Now()
		if err := client.Get(ctx, "session:of:somebody:"+strconv.Itoa(len(took))).Err(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return figure.Quantile(took, 0.99), nil
}

var calls = regexp.MustCompile(`cmdstat_(scan|pttl):calls=(\d+)`)

// walked is how many keys the server has walked for sweeps so far.
func walked(ctx context.Context, client *redis.Client) (float64, error) {
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("read the statistics: %w", err)
	}
	sum := 0.0
	for _, m := range calls.FindAllStringSubmatch(info, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return 0, err
		}
		if m[1] == "scan" {
			n *= pageKeys
		}
		sum += n
	}
	return sum, nil
}
