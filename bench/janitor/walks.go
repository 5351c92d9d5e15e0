package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"idemscope/bench/figure"
	"idemscope/internal/ledger"
	"idemscope/janitor"
)

// simulated is a table of which every id is taken by a record to be deleted.
type simulated struct {
	// most is the largest heap at any batch, in bytes.
	most *uint64
	n    *int
}

func (simulated) Load(context.Context) (ledger.Load, error) { return ledger.Load{}, nil }
func (simulated) CheckShape(context.Context) error          { return nil }
func (simulated) Close()                                    {}
func (simulated) Abandon()                                  {}

func (simulated) Tell(_ context.Context, b ledger.SweepBatch, _ time.Time) (ledger.SweepBatch, error) {
	return b, nil
}

func (simulated) Settle(context.Context, *ledger.Unsettled, time.Time) (bool, error) {
	return false, errors.New("nothing is unsettled")
}

func (simulated) Next(_ context.Context, within ledger.Range, limit int, _ time.Time) (ledger.SweepBatch, error) {
	to := min(within.After+uint64(limit), within.To)
	return ledger.SweepBatch{Range: ledger.Range{After: within.After, To: to}, Due: true, Tally: ledger.Tally{ledger.Candidate: int64(to - within.After)}}, nil
}

func (s simulated) Sweep(_ context.Context, b ledger.SweepBatch, _ time.Time) (ledger.SweepBatch, error) {
	b.Gone = b.Tally[ledger.Candidate]
	if *s.n++; *s.n%1000 == 0 {
		*s.most = max(*s.most, liveHeap())
	}
	return b, nil
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// longWalks measures memory over a huge table, and a pass that finds nothing to do.
func longWalks(ctx context.Context, s *store, size sizes) ([]figure.Figure, error) {
	grown, err := simulate(ctx, s, size)
	if err != nil {
		return nil, err
	}
	if err := s.restore(ctx); err != nil {
		return nil, err
	}
	var times []time.Duration
	report, err := s.janitor(ctx, 0, 100, nowhere, &times)
	if err != nil || report.Ended != janitor.Done {
		return nil, fmt.Errorf("a whole pass ended with %s (%s): %w", report.Ended, report.Why.EN, err)
	}
	whole := report.Took
	if report, err = s.janitor(ctx, 0, 0, nowhere, &times); err != nil || report.Ended != janitor.Done || report.Gone() > 1000 { // some rows have come of age meanwhile
		return nil, fmt.Errorf("a second pass ended with %s and removed %d rows: %w", report.Ended, report.Gone(), err)
	}
	return []figure.Figure{
		{Name: "walk_heap_growth", Value: grown / 1e6, Unit: "MB", Goal: figure.AtMost(5), Setting: fmt.Sprintf("the most while a simulated table of %d rows is walked, by before", size.walk)},
		{Name: "second_pass", Value: report.Took.Seconds() / float64(size.rows) * 5e6, Unit: "s per 5 million ids", Goal: figure.AtMost(1),
			Setting: fmt.Sprintf("%d ids, default pauses, nothing to do; the pass before it took %.1f s without pauses", size.rows, whole.Seconds())},
	}, nil
}

// simulate walks ids that no server holds: only the two rows at its ends are real.
func simulate(ctx context.Context, s *store, size sizes) (grown float64, err error) {
	if err := s.run(ctx, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" LIKE base",
		fmt.Sprintf("INSERT INTO %s (id, biz_type, biz_id, status, create_time, update_time) VALUES (1, 'a', 'a', 2, '2020-01-01', '2020-01-01'), (%d, 'a', 'b', 2, '2020-01-01', '2020-01-01'), (%d, 'a', 'c', 2, '2020-01-01', '2020-01-01')", table, size.walk, size.walk+1)); err != nil {
		return 0, err
	}
	before, most, n := liveHeap(), uint64(0), 0
	report, err := s.janitorOn(ctx, 0, 100, nowhere, func(context.Context, *ledger.SweepTable) (janitor.Session, error) { return simulated{&most, &n}, nil })
	if err != nil || report.Ended != janitor.Done || report.Gone() != int64(size.walk) {
		return 0, fmt.Errorf("the simulated walk ended with %s after %d rows (%s): %w", report.Ended, report.Gone(), report.Why.EN, err)
	}
	return float64(most) - float64(before), nil
}
