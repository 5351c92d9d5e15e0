package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"idemscope/bench/figure"
)

const (
	// idleInterval is short, so that the sweep of the past ends soon and many
	// cycles are seen.
	idleInterval = 50 * time.Millisecond
	idlePolls    = 200
)

// naive is what an exporter asks that counts with SQL.
var naive = []string{
	"SELECT biz_type, status, COUNT(*) FROM idempotent_record GROUP BY biz_type, status",
	"SELECT biz_type, COUNT(*), MAX(TIMESTAMPDIFF(SECOND, update_time, UTC_TIMESTAMP())) FROM idempotent_record WHERE status = 1 GROUP BY biz_type",
}

// idleCycle is what one cycle costs while nothing happens.
type idleCycle struct {
	rows float64
	busy time.Duration
	// naive is how long the server works for the naive queries.
	naive time.Duration
}

// idle measures cycles over tables of several sizes: they must cost the same.
func idle(ctx context.Context, size sizes) ([]figure.Figure, error) {
	var figures []figure.Figure
	var rows []float64
	var last idleCycle
	for _, n := range size.idle {
		c, err := idleOver(ctx, n)
		if err != nil {
			return nil, err
		}
		rows, last = append(rows, c.rows), c
		figures = append(figures, figure.Figure{Name: fmt.Sprintf("idle_cycle_rows_read_at_%d", n), Value: c.rows, Unit: "rows", Goal: figure.AtMost(50),
			Setting: fmt.Sprintf("%d rows, the past swept; all Handler_read_%% of the server over %d cycles", n, idlePolls)})
	}
	largest := size.idle[len(size.idle)-1]
	return append(figures,
		figure.Figure{Name: "idle_cycle_rows_read_spread", Value: slices.Max(rows) - slices.Min(rows), Unit: "rows", Goal: figure.AtMost(1),
			Setting: fmt.Sprintf("largest minus smallest of the above, %d to %d rows", size.idle[0], largest)},
		figure.Figure{Name: "naive_queries_to_idle_cycle_server_time", Value: float64(last.naive) / float64(last.busy), Unit: "times", Goal: figure.AtLeast(1000),
			Setting: fmt.Sprintf("%d rows; the server works %.3f ms for a cycle and %.0f ms for the two queries, medians of 3", largest, milliseconds(last.busy), milliseconds(last.naive))}), nil
}

func idleOver(ctx context.Context, n int) (c idleCycle, err error) {
	s, err := startStore(ctx)
	if err != nil {
		return c, err
	}
	defer s.stop()
	// The last thousand rows lie within the lookback.
	age := fmt.Sprintf("UTC_TIMESTAMP() - INTERVAL IF(seq > %d, 1800, 2592000) SECOND", n-1000)
	if err := s.fill(ctx, n, "2", age, age); err != nil {
		return c, err
	}
	e, err := startChild(ctx, settings{MySQL: s.Addr, Database: "bench", Interval: idleInterval, Lookback: time.Hour,
		StaleAfter: 5 * time.Minute, BizTypes: []string{"type-0", "type-1", "type-2", "type-3", "type-4"}})
	if err != nil {
		return c, err
	}
	defer e.stop()
	swept := func(m samples) bool { return m["idemscope_sweep_completed_timestamp_seconds"] > 0 }
	if err := e.until(ctx, 100*time.Millisecond, swept, nil); err != nil {
		return c, err
	}
	if c.rows, c.busy, err = idleCost(ctx, s, e); err != nil {
		return c, err
	}
	e.pause()
	c.naive, err = naiveCost(ctx, s)
	return c, err
}

// idleCost divides what the server does during many cycles by their number.
func idleCost(ctx context.Context, s *store, e *child) (rows float64, busy time.Duration, err error) {
	if _, err := e.polls(ctx, 2, nil); err != nil {
		return 0, 0, err
	}
	before, err := s.handlerReads(ctx)
	if err != nil {
		return 0, 0, err
	}
	first, err := s.handlerReads(ctx)
	if err != nil {
		return 0, 0, err
	}
	busyBefore, err := s.busy(ctx, exporterUser)
	if err != nil {
		return 0, 0, err
	}
	polls, err := e.polls(ctx, idlePolls, nil)
	if err != nil {
		return 0, 0, err
	}
	busyAfter, err := s.busy(ctx, exporterUser)
	if err != nil {
		return 0, 0, err
	}
	after, err := s.handlerReads(ctx)
	own := first - before // what asking costs
	return float64(after-first-3*own) / float64(polls), (busyAfter - busyBefore) / time.Duration(polls), err
}

func naiveCost(ctx context.Context, s *store) (sum time.Duration, err error) {
	db, err := s.open(naiveUser, "bench", 1)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	for _, q := range naive {
		var times []time.Duration
		for range 3 {
			if _, err := db.ExecContext(ctx, "DO 0"); err != nil { // opens the connection
				return 0, err
			}
			before, err := s.busy(ctx, naiveUser)
			if err != nil {
				return 0, err
			}
			rows, err := db.QueryContext(ctx, q)
			if err != nil {
				return 0, err
			}
			for rows.Next() {
			}
			if err := rows.Close(); err != nil {
				return 0, err
			}
			after, err := s.busy(ctx, naiveUser)
			if err != nil {
				return 0, err
			}
			times = append(times, after-before)
		}
		sum += figure.Quantile(times, 0.5)
	}
	return sum, nil
}
