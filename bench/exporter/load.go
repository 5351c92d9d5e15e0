package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"idemscope/bench/figure"
)

const (
	loadInterval = time.Second
	loadRate     = 1000 // records a second
	loadWorkers  = 8
	lagTurn      = 10 * time.Second
	// settling is the beginning of a turn that is not measured.
	settling = 500 * time.Millisecond
)

// load measures traffic with and without an exporter, in turns on one server.
func load(ctx context.Context, size sizes) ([]figure.Figure, error) {
	s, err := startStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.fill(ctx, 100_000, "2", "UTC_TIMESTAMP() - INTERVAL 3 HOUR", "UTC_TIMESTAMP() - INTERVAL 3 HOUR"); err != nil {
		return nil, err
	}
	db, err := s.open("consumer", "bench", loadWorkers)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	e, err := startChild(ctx, settings{MySQL: s.Addr, Database: "bench", Interval: loadInterval, Lookback: time.Hour,
		StaleAfter: 5 * time.Minute, BizTypes: []string{"type-0", "type-1", "type-2", "type-3", "type-4"}, Yield: true})
	if err != nil {
		return nil, err
	}
	defer e.stop()
	swept := func(m samples) bool { return m["idemscope_sweep_completed_timestamp_seconds"] > 0 }
	if err := e.until(ctx, 100*time.Millisecond, swept, nil); err != nil {
		return nil, err
	}

	t := &traffic{db: db}
	var medians, slowest [2][]time.Duration // without, with
	for turn := range 2 * size.turns {
		// Two turns make a pair, of which every other one is the other way round.
		with := (turn + turn/2) % 2
		if with == 1 {
			e.resume()
		} else {
			e.pause()
		}
		times, _, err := t.turn(ctx, size.turn, nil)
		if err != nil {
			return nil, err
		}
		medians[with] = append(medians[with], figure.Quantile(times, 0.5))
		slowest[with] = append(slowest[with], figure.Quantile(times, 0.99))
	}
	// Looking at /metrics all the time would disturb the turns above.
	e.resume()
	_, lag, err := t.turn(ctx, lagTurn, e)
	if err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("%d inserts and completions/s, %d pairs of turns of %s, interval %s; server and consumers on the same processors as the exporter, which yields to them", loadRate, size.turns, size.turn, loadInterval)
	compare := func(name string, turns [2][]time.Duration) figure.Figure {
		var ratios []float64
		for i := range turns[0] {
			ratios = append(ratios, float64(turns[1][i])/float64(turns[0][i]))
		}
		without, with := figure.Quantile(turns[0], 0.5), figure.Quantile(turns[1], 0.5)
		return figure.Figure{Name: name, Value: figure.Quantile(ratios, 0.5), Unit: "times", Goal: figure.AtMost(1.05),
			Setting: fmt.Sprintf("%s; median of the pairs; statements take %.3f ms with and %.3f ms without the exporter", setting, milliseconds(with), milliseconds(without))}
	}
	return []figure.Figure{
		{Name: "load_exporter_lag", Value: seconds(lag), Unit: "s", Goal: figure.AtMost(2 * loadInterval.Seconds()), Setting: setting + "; the longest time from a commit to its count in /metrics"},
		compare("load_foreground_median_ratio", medians),
		compare("load_foreground_p99_ratio", slowest),
	}, nil
}

// traffic inserts records and completes them at a steady rate.
type traffic struct {
	db   *sql.DB
	next int

	mu sync.Mutex
	// committed has when each insert had returned, all turns together.
	committed []time.Time
}

// turn runs traffic for a while. It returns how long the statements took, and
// how late the /metrics of an exporter were at most; it may be nil.
func (t *traffic) turn(ctx context.Context, length time.Duration, e *child) (times []time.Duration, lag time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	results := make([][]time.Duration, loadWorkers)
	failures := make([]error, loadWorkers+1)
	var workers, watcher sync.WaitGroup
	for w := range loadWorkers {
		workers.Go(func() { results[w], failures[w] = t.work(ctx, w, began, length) })
	}
	if e != nil {
		watcher.Go(func() { lag, failures[loadWorkers] = t.watch(ctx, e, began.Add(2*loadInterval)) })
	}
	workers.Wait()
	t.next += int(length.Seconds() * loadRate)
	cancel()
	watcher.Wait()
	for w := range loadWorkers {
		times = append(times, results[w]...)
	}
	for _, failure := range failures {
		if failure != nil && err == nil {
			err = failure
		}
	}
	return times, lag, err
}

// work is one consumer. A record that is late does not delay the ones after it:
// each has its own time.
func (t *traffic) work(ctx context.Context, w int, began time.Time, length time.Duration) (times []time.Duration, err error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := w; i < int(length.Seconds()*loadRate); i += loadWorkers {
		at := began.Add(time.Duration(i) * time.Second / loadRate)
		timer.Reset(time.Until(at))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		}
		id, bizType := fmt.Sprintf("load-%09d", t.next+i), fmt.Sprintf("type-%d", i%5)
		start := time.Now()
		if _, err := t.db.ExecContext(ctx, "INSERT INTO idempotent_record (biz_type, biz_id, status) VALUES (?, ?, 1)", bizType, id); err != nil {
			return nil, err
		}
		inserted := time.Now()
		t.mu.Lock()
		t.committed = append(t.committed, inserted)
		t.mu.Unlock()
		if _, err := t.db.ExecContext(ctx, "UPDATE idempotent_record SET status = 2, update_time = NOW() WHERE biz_type = ? AND biz_id = ?", bizType, id); err != nil {
			return nil, err
		}
		if start.Sub(began) > settling {
			times = append(times, inserted.Sub(start), time.Since(inserted))
		}
	}
	return times, nil
}

// watch compares /metrics with what was committed, from a time on.
func (t *traffic) watch(ctx context.Context, e *child, from time.Time) (lag time.Duration, err error) {
	err = e.until(ctx, 50*time.Millisecond, func(samples) bool { return false }, func(m samples) {
		now := time.Now()
		if now.Before(from) {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if counted := int(m["idem_records_created_total"]); counted < len(t.committed) {
			lag = max(lag, now.Sub(t.committed[counted]))
		}
	})
	if ctx.Err() != nil {
		err = nil
	}
	return lag, err
}
