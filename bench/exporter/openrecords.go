package main

import (
	"context"
	"fmt"
	"time"

	"idemscope/bench/figure"
)

const (
	openInterval = 5 * time.Second // the default
	openStale    = 10 * time.Hour
	// openCycles is how many cycles are watched after the catch-up.
	openCycles = 8
)

// openRecords measures an exporter that follows many open records.
func openRecords(ctx context.Context, size sizes) ([]figure.Figure, error) {
	s, err := startStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	// Silent for 1 to 8 or for 12 to 20 hours, and a hundredth for 10 hours less
	// half a minute: those become stale while we look.
	silent := fmt.Sprintf(`UTC_TIMESTAMP() - INTERVAL CASE WHEN seq MOD 100 = 0 THEN %d
		WHEN seq MOD 2 = 0 THEN 3600 + seq MOD 25200 ELSE 43200 + seq MOD 28800 END SECOND`, int(openStale.Seconds())-30)
	if err := s.fill(ctx, size.open, "1", "UTC_TIMESTAMP() - INTERVAL 22 HOUR + INTERVAL seq * 60000 MICROSECOND", silent); err != nil {
		return nil, err
	}
	e, err := startChild(ctx, settings{MySQL: s.Addr, Database: "bench", Interval: openInterval, Lookback: 24 * time.Hour,
		StaleAfter: openStale, BizTypes: []string{"type-0", "type-1", "type-2", "type-3", "type-4"}})
	if err != nil {
		return nil, err
	}
	defer e.stop()
	var memory, cycle float64
	began := time.Now()
	each := func(m samples) { memory = max(memory, m["process_resident_memory_bytes"]) }
	if err := e.until(ctx, 20*time.Millisecond, func(m samples) bool { return m["idemscope_tail_caught_up"] == 1 }, each); err != nil {
		return nil, err
	}
	caughtUp := time.Since(began)
	if _, err := e.polls(ctx, openCycles, func(m samples) { each(m); cycle = max(cycle, m["idemscope_poll_duration_seconds"]) }); err != nil {
		return nil, err
	}
	wrong, err := staleError(ctx, s, e)
	if err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("%d open records, interval %s, %d cycles after a catch-up of %.0f s", size.open, openInterval, openCycles, caughtUp.Seconds())
	return []figure.Figure{
		{Name: "open_records_resident_memory", Value: memory / 1e6, Unit: "MB", Goal: figure.AtMost(300), Setting: setting + "; the largest, catch-up included"},
		{Name: "open_records_cycle", Value: cycle, Unit: "s", Goal: figure.AtMost(2), Setting: setting + "; the longest"},
		{Name: "open_records_stale_error", Value: wrong, Unit: "records", Goal: figure.AtMost(0), Setting: setting + "; difference between gauge and SQL, after a hundredth of them became stale"},
	}, nil
}

// staleError compares the gauge with the table, when nothing is about to change.
func staleError(ctx context.Context, s *store, e *child) (float64, error) {
	var soon int
	for soon = 1; soon > 0; {
		if err := s.root.QueryRowContext(ctx, `SELECT COUNT(*) FROM idempotent_record WHERE status = 1
			AND update_time > UTC_TIMESTAMP() - INTERVAL ? SECOND AND update_time < UTC_TIMESTAMP() - INTERVAL ? SECOND`,
			int(openStale.Seconds())+2, int(openStale.Seconds())-40).Scan(&soon); err != nil {
			return 0, err
		}
	}
	if _, err := e.polls(ctx, 2, nil); err != nil {
		return 0, err
	}
	var want float64
	if err := s.root.QueryRowContext(ctx, `SELECT COUNT(*) FROM idempotent_record WHERE status = 1
		AND update_time < UTC_TIMESTAMP() - INTERVAL ? SECOND`, int(openStale.Seconds())).Scan(&want); err != nil {
		return 0, err
	}
	m, err := e.scrape(ctx)
	if err != nil {
		return 0, err
	}
	return max(want-m["idem_records_stale"], m["idem_records_stale"]-want), nil
}
