// Command lookup measures how long a look-up takes: a key of a large ledger and
// one of a small ledger in turns, through the HTTP API, on private servers; then
// what a steady stream of pages and a crowd come to. It prints one line per figure
// and exits 1 when a figure misses its goal.
//
// It is not a test of what a look-up says: that is in the packages that say it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"idemscope/bench/figure"
)

// perSecond is how many look-ups begin in a second.
const perSecond = 100

// sizes are how large the measurement is.
type sizes struct {
	large, small int // rows of the two ledgers
	// turns is how often each ledger is asked for a turn's length.
	turns int
	turn  time.Duration
	// pages is for how long pages are asked for, crowd how long everybody comes at once.
	pages, crowd time.Duration
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{large: 1_000_000, small: 10_000, turns: 3, turn: 5 * time.Second, pages: 15 * time.Second, crowd: 5 * time.Second}
	}
	return sizes{large: 10_000_000, small: 10_000, turns: 12, turn: 5 * time.Second, pages: time.Minute, crowd: 20 * time.Second}
}

func main() {
	small := flag.Bool("small", false, "reduced sizes: a minute instead of ten")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, err := measure(ctx, sizesOf(*small))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench lookup:", err)
		os.Exit(2)
	case figure.Print(os.Stdout, figures...):
		os.Exit(1)
	}
}

func measure(ctx context.Context, size sizes) (figures []figure.Figure, err error) {
	s, err := startStores(ctx, size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	api, err := serve(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, api.stop()) }()

	// Connections are opened and pages are read before it counts.
	for _, ledger := range ledgers {
		if _, err := api.turn(ctx, ledger, size, size.turn); err != nil {
			return nil, err
		}
	}
	var large []time.Duration
	var ratios []float64
	unread := 0
	for i := range size.turns {
		p99 := map[string]float64{}
		for j := range ledgers { // neither is always the first
			ledger := ledgers[(i+j)%len(ledgers)]
			turn, err := api.turn(ctx, ledger, size, size.turn)
			if err != nil {
				return nil, err
			}
			p99[ledger] = figure.Quantile(turn.times, 0.99).Seconds()
			unread += turn.unread
			if ledger == largeLedger {
				large = append(large, turn.times...)
			}
		}
		ratios = append(ratios, p99[largeLedger]/p99[smallLedger])
	}
	milliseconds := func(part float64) float64 { return figure.Quantile(large, part).Seconds() * 1000 }
	setting := fmt.Sprintf("%d rows, %d look-ups a second for %s through the HTTP API, each counted from the time when it was due", size.large, perSecond, time.Duration(size.turns)*size.turn)
	figures = []figure.Figure{
		{Name: "lookup_p99", Value: milliseconds(0.99), Unit: "ms", Goal: figure.AtMost(50), Setting: fmt.Sprintf("%s; median %.1f ms", setting, milliseconds(0.5))},
		{Name: "lookup_p99_ratio", Value: figure.Median(ratios), Goal: figure.AtMost(1.5),
			Setting: fmt.Sprintf("%d rows by %d rows; median of %d pairs of alternating turns of %s", size.large, size.small, size.turns, size.turn)},
		{Name: "lookup_unread", Value: float64(unread), Unit: "look-ups", Goal: figure.AtMost(0), Setting: fmt.Sprintf("those of which a store gave no answer within %s", deadline)},
	}
	loaded, err := api.load(ctx, s, size)
	return append(figures, loaded...), err
}
