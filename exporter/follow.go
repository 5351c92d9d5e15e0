package exporter

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// readChunk is how many rows one statement reads by primary key.
const readChunk = 500

// reread reads the open records that were due at a time, which is that before
// this cycle read anything: no row is read twice in it.
func (t *tail) reread(ctx context.Context, b *budget, at time.Time) error {
	began := time.Now()
	for first := true; first || b.reread(began); first = false {
		due := t.watch.due(at, readChunk)
		if len(due) == 0 {
			return nil
		}
		if err := t.rereadChunk(ctx, due); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) rereadChunk(ctx context.Context, due []uint32) error {
	ids := make([]uint64, len(due))
	for i, n := range due {
		ids[i] = t.watch.at(n).id
	}
	rows, err := t.byID(ctx, ids)
	if err != nil {
		return err
	}
	for i, n := range due {
		if row, there := rows[ids[i]]; there && t.source.print(row) == t.watch.at(n).print {
			t.again(n, row)
		} else {
			t.gone(n)
		}
	}
	return nil
}

// arrived takes a row that did not exist at the start.
func (t *tail) arrived(id uint64, row ledger.Row) {
	s := t.source
	key, print := s.label(row.BizType), s.print(row)
	t.met(id, row, print)
	if !s.outbox {
		s.sums.created.inc(s.name, key.label)
		if s.lost.back(print, s.now(), s.lookback) {
			s.sums.retries.inc(key.label)
		}
	}
	// An older row of the same key should be gone. Reading it tells.
	for _, n := range slices.Collect(t.watch.namesakes(print)) {
		if t.watch.at(n).id != id {
			t.watch.hurry(n)
			t.watch.at(n).flags |= replaced
		}
	}
	s.ended(key, row, false)
	t.follow(id, print, key, row)
}

// stood takes a row that existed at the start. It is history: nothing is
// counted, but an open row is followed from here on.
func (t *tail) stood(id uint64, row ledger.Row) {
	print := t.source.print(row)
	t.met(id, row, print)
	t.follow(id, print, t.source.label(row.BizType), row)
}

// met notes a row that is read for the first time.
func (t *tail) met(id uint64, row ledger.Row, print uint64) {
	t.source.suspects.met(place{t.watch.shard, id}, print)
	if row.IDFills {
		t.atWidth++
	}
}

// again takes a row that is already followed.
func (t *tail) again(n uint32, row ledger.Row) {
	s, r := t.source, t.watch.at(n)
	g, before := t.watch.groups[r.group], r.phase.phase()
	if before == flow.Failed && (row.Phase == flow.Processing || row.Phase == flow.Completed) && !s.outbox {
		s.sums.retries.inc(g.label)
	}
	if before != row.Phase {
		s.ended(g.groupKey, row, r.flags&retried != 0)
	}
	if row.Phase == flow.Completed {
		t.watch.remove(n)
		return
	}
	t.watch.see(n, s.sighting(row), s.now())
}

// gone takes a followed row that is no longer there, or whose id belongs to
// another key now. Whoever deletes the row of a failed run, or of one that died,
// lets its key be inserted anew: that is a retry.
func (t *tail) gone(n uint32) {
	s, r := t.source, t.watch.at(n)
	label, phase := t.watch.groups[r.group].label, r.phase.phase()
	s.sums.vanished.inc(s.name, label)
	if !s.outbox && (phase == flow.Processing || phase == flow.Failed) {
		if r.flags&replaced != 0 {
			s.sums.retries.inc(label)
		} else {
			s.lost.add(r.print, s.now(), s.lookback)
		}
	}
	t.watch.remove(n)
}

// ended counts the end of a run, once per change of the phase. retried: the
// run time spans several runs.
func (s *ledgerSource) ended(key groupKey, row ledger.Row, retried bool) {
	if s.outbox {
		return
	}
	switch row.Phase {
	case flow.Completed:
		s.sums.completed.inc(s.name, key.label)
		if row.RunTimeKnown && row.RunTime >= 0 {
			s.sums.duration.observe(row.RunTime.Seconds(), s.name, key.label)
		}
	case flow.Failed:
		s.sums.failed.inc(s.name, key.label)
	default:
		return
	}
	if r := key.route; r != nil && r.lockTTL > 0 && !retried && row.RunTimeKnown && row.RunTime >= r.lockTTL {
		s.sums.longer.inc(r.flow, key.label)
	}
}

// follow keeps an open row in the watch set.
func (t *tail) follow(id, print uint64, key groupKey, row ledger.Row) {
	s := t.source
	n, known := t.watch.find(id, print)
	switch {
	case row.Phase == flow.Completed && known:
		t.watch.remove(n)
	case row.Phase == flow.Completed:
	case known:
		t.watch.see(n, s.sighting(row), s.now())
	default:
		if _, ok := t.watch.add(id, print, key, s.sighting(row), s.now()); !ok {
			s.sums.watchOverflow.WithLabelValues(s.name).Inc()
			t.full = true
		}
	}
}

// sighting is what a row tells of its record. A message waits to be sent from
// its creation on, whatever was tried since.
func (s *ledgerSource) sighting(row ledger.Row) sighting {
	age := row.Age
	if created := row.Created; s.outbox && row.AgeKnown && created.State == ledger.StampOK {
		age += row.LastSign().Time.Sub(created.Time)
	}
	return sighting{phase: row.Phase, age: age, aged: row.AgeKnown && age >= 0}
}

// print is what tells a record from another one with the same id.
func (s *ledgerSource) print(row ledger.Row) uint64 {
	return maphash.Comparable(s.seed, flow.Key{BizType: row.BizType, BizID: row.BizID})
}

// rowID is the row's primary key. A row without one cannot come from a tail.
func rowID(row ledger.Row) (uint64, bool) {
	id, err := strconv.ParseUint(row.ID, 10, 64)
	return id, err == nil
}

func (t *tail) byID(ctx context.Context, ids []uint64) (map[uint64]ledger.Row, error) {
	batch, err := t.shard.ByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	t.source.count(batch)
	rows := make(map[uint64]ledger.Row, len(batch.Rows))
	for _, row := range batch.Rows {
		if id, ok := rowID(row); ok {
			rows[id] = row
		}
	}
	return rows, nil
}
