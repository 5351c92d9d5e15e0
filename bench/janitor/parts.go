package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"time"

	"idemscope/bench/figure"
)

// batchTarget is how long the janitor means a transaction to take.
const batchTarget = 25 * time.Millisecond

// rate runs a cleanup on the restored table and returns rows a second.
func rate(ctx context.Context, s *store, c cleanup, length time.Duration) (perSecond float64, times []time.Duration, err error) {
	if err := s.restore(ctx); err != nil {
		return 0, nil, fmt.Errorf("restore the table: %w", err)
	}
	return measured(ctx, s, c, length)
}

func measured(ctx context.Context, s *store, c cleanup, length time.Duration) (perSecond float64, times []time.Duration, err error) {
	before, err := s.old(ctx)
	if err != nil {
		return 0, nil, err
	}
	began := time.Now()
	if times, err = c.run(ctx, s, length); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", c.name, err)
	}
	took := time.Since(began)
	after, err := s.old(ctx)
	if before == after && err == nil {
		err = fmt.Errorf("%s removed nothing", c.name)
	}
	return float64(before-after) / took.Seconds(), times, err
}

// rates runs several cleanups in turns, each of which begins a round once.
func rates(ctx context.Context, s *store, size sizes, all []cleanup) (map[string][]float64, error) {
	found := map[string][]float64{}
	for round := range size.turns {
		for i := range all {
			c := all[(i+round)%len(all)]
			perSecond, _, err := rate(ctx, s, c, size.turn)
			if err != nil {
				return nil, err
			}
			found[c.name] = append(found[c.name], perSecond)
		}
	}
	return found, nil
}

// ratio is the median of the ratios of the rounds.
func ratio(found map[string][]float64, a, b cleanup) float64 {
	var ratios []float64
	for i := range found[a.name] {
		ratios = append(ratios, found[a.name][i]/found[b.name][i])
	}
	return figure.Median(ratios)
}

// speed compares how fast rows go with nobody else there.
func speed(ctx context.Context, s *store, size sizes) ([]figure.Figure, error) {
	found, err := rates(ctx, s, size, []cleanup{fullSpeed, bareLoop, rowByRow, bulkDelete})
	if err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("%d rows, %s each, median of %d rounds, without pauses: %.0f rows/s", size.rows, size.turn, size.turns, figure.Median(found[fullSpeed.name]))
	by := func(c cleanup) string {
		return fmt.Sprintf("%s; %s: %.0f rows/s", setting, c.name, figure.Median(found[c.name]))
	}
	bulk := fmt.Sprintf("%s; the bare loop reaches %.2f of it", by(bulkDelete), ratio(found, bareLoop, bulkDelete))
	return []figure.Figure{
		{Name: "delete_by_row_by_row", Value: ratio(found, fullSpeed, rowByRow), Goal: figure.AtLeast(10), Setting: by(rowByRow)},
		{Name: "delete_by_bulk_delete", Value: ratio(found, fullSpeed, bulkDelete), Goal: figure.AtLeast(1.8), Setting: bulk},
		{Name: "delete_by_bare_loop", Value: ratio(found, fullSpeed, bareLoop), Goal: figure.AtLeast(0.95), Setting: by(bareLoop)},
	}, nil
}

// archives compares how fast rows go to another table, and to files.
func archives(ctx context.Context, s *store, size sizes) ([]figure.Figure, error) {
	found, err := rates(ctx, s, size, []cleanup{toTable, ptToTable, bareMoves, toFile, ptToFile})
	if err != nil {
		return nil, err
	}
	one := func(name string, mine, theirs cleanup, least float64, how string) figure.Figure {
		return figure.Figure{Name: name, Value: ratio(found, mine, theirs), Goal: figure.AtLeast(least),
			Setting: fmt.Sprintf("%d rows, %s each, median of %d rounds; %.0f by %.0f rows/s (%s)", size.rows, size.turn, size.turns,
				figure.Median(found[mine.name]), figure.Median(found[theirs.name]), how)}
	}
	return []figure.Figure{
		one("archive_to_table_by_pt_archiver", toTable, ptToTable, 2, fmt.Sprintf("--dest --bulk-insert --bulk-delete; a bare loop of INSERT SELECT and DELETE reaches %.2f of pt-archiver", ratio(found, bareMoves, ptToTable))),
		one("archive_to_files_by_pt_archiver", toFile, ptToFile, 1.5, "durable zstd by --file --bulk-delete, not flushed"),
	}, nil
}

// felt is what consumers feel of a cleanup, and what the cleanup achieves.
type felt struct {
	perSecond float64
	times     []time.Duration
	alone     *waits // before the cleanup
	beside    *waits // while it runs
}

// beside runs consumers, and after a while a cleanup next to them.
func beside(ctx context.Context, s *store, size sizes, c cleanup) (f felt, err error) {
	if err := s.restore(ctx); err != nil {
		return f, err
	}
	db, err := s.open(database, 64)
	if err != nil {
		return f, err
	}
	defer db.Close()
	people := &consumers{db: db, rows: size.rows, name: rand.Int64N(1e15)}
	if _, err := people.consume(ctx, time.Second); err != nil { // connections are opened
		return f, err
	}
	if f.alone, err = people.consume(ctx, size.turn); err != nil {
		return f, err
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		f.perSecond, f.times, err = measured(ctx, s, c, size.turn)
		ended <- err
	}()
	f.beside, err = people.consume(ctx, size.turn)
	return f, errors.Join(err, <-ended)
}

// besideConsumers compares what consumers feel of the janitor with its pauses, and
// of pt-archiver. The times of all rounds are put together before a percentile is taken.
func besideConsumers(ctx context.Context, s *store, size sizes) ([]figure.Figure, error) {
	var faster []float64
	var alone, mine, theirs waits
	var times []time.Duration
	for round := range size.turns {
		order := []cleanup{defaultDuty, rowByRow}
		if round%2 == 1 {
			order[0], order[1] = order[1], order[0]
		}
		rates := map[string]float64{}
		for _, c := range order {
			f, err := beside(ctx, s, size, c)
			if err != nil {
				return nil, err
			}
			rates[c.name] = f.perSecond
			alone.join(f.alone)
			if c.name == defaultDuty.name {
				mine.join(f.beside)
				times = append(times, f.times...)
			} else {
				theirs.join(f.beside)
			}
		}
		faster = append(faster, rates[defaultDuty.name]/rates[rowByRow.name])
	}
	setting := fmt.Sprintf("%d records a second beside it with late duplicates and completions, %d rounds of %s", pairs, size.turns, size.turn)
	return []figure.Figure{
		{Name: "beside_rate_by_row_by_row", Value: figure.Median(faster), Goal: figure.AtLeast(3), Setting: setting + "; median of the rounds"},
		{Name: "beside_p99_by_row_by_row", Value: mine.p99() / theirs.p99(), Goal: figure.AtMost(1), Setting: fmt.Sprintf("%s; INSERT P99 %.1f ms alone, %.1f ms beside the janitor, %.1f ms beside pt-archiver", setting, alone.p99(), mine.p99(), theirs.p99())},
		{Name: "beside_batches_in_time", Value: within(times, batchTarget), Goal: figure.AtLeast(0.95), Setting: setting + "; share of transactions of at most 25 ms"},
		{Name: "beside_longest_statement", Value: mine.max(), Unit: "ms", Goal: figure.AtMost(250), Setting: setting},
	}, nil
}

// within is the share of the times up to the limit.
func within(times []time.Duration, limit time.Duration) float64 {
	n := 0
	for _, t := range times {
		if t <= limit {
			n++
		}
	}
	return float64(n) / float64(max(len(times), 1))
}

// besideOthers keeps both cores busy with other work.
func besideOthers(ctx context.Context, s *store, size sizes) ([]figure.Figure, error) {
	busy, idle := context.WithCancel(ctx)
	var others sync.WaitGroup
	for range 2 { // in processes of their own, as other services are
		others.Go(func() { _ = exec.CommandContext(busy, "sh", "-c", "while :; do :; done").Run() })
	}
	f, err := beside(ctx, s, size, defaultDuty)
	idle()
	others.Wait()
	if err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("two busy loops and %d records a second beside it, %s; %.0f rows/s", pairs, size.turn, f.perSecond)
	return []figure.Figure{
		{Name: "busy_batch_p95", Value: figure.Quantile(f.times, 0.95).Seconds() * 1000, Unit: "ms", Goal: figure.AtMost(2 * batchTarget.Seconds() * 1000), Setting: setting},
		// Nobody can wait longer for a row of ours than one of our transactions takes. How long the
		// consumers waited for a free core is told beside it.
		{Name: "busy_longest_batch", Value: figure.Quantile(f.times, 1).Seconds() * 1000, Unit: "ms", Goal: figure.AtMost(250),
			Setting: fmt.Sprintf("%s; the consumers' longest statement: %.0f ms before the cleanup, %.0f ms beside it", setting, f.alone.max(), f.beside.max())},
	}, nil
}
