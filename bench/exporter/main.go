// Command exporter measures what following a ledger costs: the database, the
// consumers beside it, and the exporter itself. It starts private servers and a
// process that runs nothing but the exporter, prints one line per figure, and
// exits 1 when a figure misses its goal.
//
// It is not a test of what the exporter counts: that is in package exporter.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"idemscope/bench/figure"
)

func main() {
	small := flag.Bool("small", false, "reduced sizes: a few minutes instead of half an hour")
	only := flag.String("only", "", "one group of figures: idle, load, open or hang")
	follow := flag.String("follow", "", "run as the exporter that is measured, with these settings in JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *follow != "" {
		if err := runChild(ctx, *follow); err != nil {
			fmt.Fprintln(os.Stderr, "exporter:", err)
			os.Exit(2)
		}
		return
	}
	missed, err := measure(ctx, sizesOf(*small), *only)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench exporter:", err)
		os.Exit(2)
	case missed:
		os.Exit(1)
	}
}

// sizes are how large the measurements are.
type sizes struct {
	idle []int // rows of the tables that stand idle
	open int   // open records
	// turns is how often traffic runs with and how often without the exporter, turn how long.
	turns   int
	turn    time.Duration
	scrapes int
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{idle: []int{10_000, 200_000, 1_000_000}, open: 100_000, turns: 20, turn: 2 * time.Second, scrapes: 500}
	}
	return sizes{idle: []int{10_000, 1_000_000, 10_000_000}, open: 1_000_000, turns: 40, turn: 3 * time.Second, scrapes: 2000}
}

// measure runs the groups of figures one after the other, each on servers of its own.
func measure(ctx context.Context, size sizes, only string) (missed bool, err error) {
	for _, group := range []struct {
		name string
		run  func(context.Context, sizes) ([]figure.Figure, error)
	}{{"idle", idle}, {"load", load}, {"open", openRecords}, {"hang", hang}} {
		if only != "" && only != group.name {
			continue
		}
		figures, err := group.run(ctx, size)
		if err != nil {
			return missed, fmt.Errorf("%s: %w", group.name, err)
		}
		for _, f := range figures {
			fmt.Println(f)
			missed = missed || !f.Met()
		}
	}
	return missed, nil
}
