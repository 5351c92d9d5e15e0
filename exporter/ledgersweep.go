package exporter

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/ledger"
)

const (
	// sweepChunk is how many rows one statement of the sweep reads, and
	// minSweepChunk that on a server that does not manage it in time.
	sweepChunk    = 1000
	minSweepChunk = 50
	// sweepEvery is the time between the end of a pass and the next one.
	sweepEvery = time.Hour
)

// sweep walks through the past of a ledger, a little in each cycle and shard by
// shard, and hands open records that nobody follows to the watch set. The first
// pass reads what is older than the lookback; later ones read all, because a
// record can be opened again by hand. Where an index lists the rows of a status,
// those are read and no others.
type sweep struct {
	source *ledgerSource

	running bool
	// passes counts the completed ones, the last of which ended at completed.
	passes    int
	completed time.Time
	next      time.Time // by the clock of the source
	chunk     int
	failing   bool

	// shard is being read, by primary key or by the status word.
	shard int
	byKey bool
	word  int
	// cursor is the id up to which it was read, out of first to last.
	cursor, first, last uint64
}

// cycle reads a few chunks. A sweep that fails is no failure of the ledger: it
// shows in its last completion, and goes on when it can.
func (w *sweep) cycle(ctx context.Context, b *budget) {
	now := w.source.now()
	if !w.running {
		if now.Before(w.next) {
			return
		}
		w.running = true
		w.chunk = max(w.chunk, sweepChunk)
		w.enter(0)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(sweepShare*float64(b.time)))
	defer cancel()
	for rows := 0; w.running && rows < sweepRows && ctx.Err() == nil && b.within(sweepPart); {
		n, err := w.step(ctx)
		if err != nil {
			w.fail(ctx, err)
			return
		}
		rows += n
		w.failing = false
	}
	if !w.running {
		w.passes++
		w.completed, w.next = time.Now(), now.Add(sweepEvery)
	}
}

// fail halves the chunk when the time was too short, and tells of other errors once.
func (w *sweep) fail(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.chunk = max(w.chunk/2, minSweepChunk)
		return
	}
	if ctx.Err() == nil && !w.failing {
		w.source.log.Warn("older records cannot be swept at present", "ledger", w.source.name, "err", err)
		w.failing = true
	}
}

// enter begins a shard, or ends the pass after the last one.
func (w *sweep) enter(shard int) {
	w.shard, w.byKey, w.word = shard, false, 0
	w.cursor, w.first = 0, 0
	if shard == len(w.source.tails) || len(w.source.waiting) == 0 {
		w.running = false
		return
	}
	w.last = w.source.tails[shard].mark
	if w.passes == 0 {
		w.last = w.source.tails[shard].first
	}
}

// leave goes on to the next status word, or to the next shard.
func (w *sweep) leave() {
	if w.word++; w.byKey || w.word == len(w.source.waiting) {
		w.enter(w.shard + 1)
		return
	}
	w.cursor, w.first = 0, 0
}

// step reads one chunk and returns how many rows that were.
func (w *sweep) step(ctx context.Context) (rows int, err error) {
	if w.cursor >= w.last {
		w.leave()
		return 0, nil
	}
	t := w.source.tails[w.shard]
	batch, err := w.read(ctx, t.shard)
	if err != nil {
		return 0, err
	}
	w.source.count(batch)
	for _, row := range batch.Rows {
		id, ok := rowID(row)
		if !ok {
			continue
		}
		if w.cursor = id; w.first == 0 {
			w.first = id
		}
		if id <= w.last {
			t.found(id, row, w.passes == 0)
		}
	}
	if len(batch.Rows) < w.chunk {
		w.leave()
	}
	return len(batch.Rows), nil
}

func (w *sweep) read(ctx context.Context, s shard) (ledger.Batch, error) {
	if !w.byKey {
		batch, err := s.WithStatus(ctx, w.source.waiting[w.word], w.cursor, w.chunk)
		if !errors.Is(err, ledger.ErrNoIndex) {
			return batch, err
		}
		w.byKey = true
	}
	return s.After(ctx, w.cursor, w.chunk)
}

// progress is how much of the pass is done, 0 to 1; 1 between two passes.
func (w *sweep) progress() float64 {
	if !w.running {
		return number(w.passes > 0)
	}
	part := 0.0
	if w.last > w.first && w.cursor > w.first {
		part = min(1, float64(w.cursor-w.first)/float64(w.last-w.first))
	}
	if !w.byKey {
		part = (float64(w.word) + part) / float64(len(w.source.waiting))
	}
	return (float64(w.shard) + part) / float64(len(w.source.tails))
}

func (w *sweep) metrics() []prometheus.Metric {
	d, name := w.source.descs, w.source.name
	metrics := []prometheus.Metric{gauge(d.ledgerSweepProgress, w.progress(), name)}
	if w.passes > 0 {
		metrics = append(metrics, gauge(d.sweepCompleted, float64(w.completed.UnixMilli())/1000, name, kindLedger))
	}
	return metrics
}

// found takes a row of the past that the sweep came across. news: no row of
// that age was read before.
func (t *tail) found(id uint64, row ledger.Row, news bool) {
	print := t.source.print(row)
	if _, known := t.watch.find(id, print); known || !t.watch.waits[codeOf(row.Phase)] {
		return
	}
	if news {
		t.met(id, row, print)
	}
	t.follow(id, print, t.source.label(row.BizType), row)
}
