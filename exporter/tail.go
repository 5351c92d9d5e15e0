package exporter

import (
	"context"
	"errors"
	"slices"
	"time"

	"idemscope/internal/ledger"
)

const (
	// tailChunk is how many new rows one statement reads.
	tailChunk = 2000
	// maxAnchors is how many of the last rows are remembered.
	maxAnchors = 256
)

// tail reads one table in the order of its primary key, each row once, and
// again those that are open.
type tail struct {
	shard  shard
	source *ledgerSource
	watch  *watch

	begun bool
	// behind: the last cycle stopped at its bound. full: the watch set refused
	// a record in it. err is how it ended.
	behind, full bool
	err          error
	// history is the highest id at the start: rows up to it are no news.
	history uint64
	// first is the mark at the start: older rows are left to the sweep.
	first uint64
	// mark is the id up to which rows were read.
	mark uint64
	// top is the highest id that was ever seen; 0 when none was, or when ids
	// began anew. Gaps are told from it, not from mark, which can go back.
	top     uint64
	anchors anchors
	holes   holes
	pattern pattern
	// limit is the highest id that the column keeps; 0 when that is not known.
	limit uint64
	// atWidth counts the rows read with an id that fills its column.
	atWidth int
}

// cycle reads what is new, looks again at what is missing, and reads the open
// records that are due.
func (t *tail) cycle(ctx context.Context, b *budget) (err error) {
	now := t.source.now()
	t.full = false
	if err := t.advance(ctx, b); err != nil {
		return err
	}
	if err := t.readHoles(ctx, b); err != nil {
		return err
	}
	if err := t.reread(ctx, b, now); err != nil {
		return err
	}
	t.limit, err = t.shard.IDLimit(ctx)
	return err
}

// advance reads rows above the mark until there are no more, at least one chunk
// and further ones within the budget.
func (t *tail) advance(ctx context.Context, b *budget) error {
	t.behind = false
	for {
		if !t.begun {
			if err := t.begin(ctx); err != nil {
				return err
			}
		}
		more, err := t.readOn(ctx)
		if err != nil || !more {
			return err
		}
		if !b.tail() {
			t.behind = true
			return nil
		}
	}
}

// begin finds where to start reading: at the first row that is younger than the
// lookback, or else at the last row of the table.
func (t *tail) begin(ctx context.Context) error {
	last, err := t.shard.MaxID(ctx)
	if err != nil {
		return err
	}
	t.history, t.mark, t.atWidth = last, 0, 0
	t.pattern = pattern{}
	if last > 0 {
		first, err := t.firstSince(ctx, last)
		if err != nil {
			return err
		}
		t.mark, t.top = max(first, 1)-1, 0
	}
	t.first = t.mark
	t.begun = true
	return nil
}

// firstSince returns the first id within the lookback by the database's clock,
// at most last. A table that can be followed and yet has no place for a time has
// no created column: it is followed from its end.
func (t *tail) firstSince(ctx context.Context, last uint64) (uint64, error) {
	clock, err := t.shard.ByID(ctx, nil)
	if err != nil {
		return 0, err
	}
	first, err := t.shard.FirstIDSince(ctx, clock.DBNow.Add(-t.source.lookback))
	switch {
	case errors.Is(err, ledger.ErrNoTail):
		return last, nil
	case err != nil:
		return 0, err
	}
	return min(first, last), nil
}

// readOn reads one chunk and reports whether there may be more. It reads the
// last known row once more: while that one stands as it was, ids go on.
func (t *tail) readOn(ctx context.Context) (more bool, err error) {
	from := t.mark
	if len(t.anchors) > 0 {
		from--
	}
	batch, err := t.shard.After(ctx, from, tailChunk)
	if err != nil {
		return false, err
	}
	t.source.count(batch)
	rows := batch.Rows
	if len(t.anchors) > 0 {
		if len(rows) == 0 || !t.stands(t.anchors[len(t.anchors)-1], rows[0]) {
			return true, t.reanchor(ctx)
		}
		rows = rows[1:]
	}
	for _, row := range rows {
		t.take(row, batch.DBNow)
	}
	return len(batch.Rows) == tailChunk, nil
}

// take takes one row above the mark.
func (t *tail) take(row ledger.Row, dbNow time.Time) {
	id, ok := rowID(row)
	if !ok {
		return
	}
	if len(t.anchors) == 0 && id <= t.top {
		t.top = 0 // the table was emptied, and ids begin anew
	}
	switch {
	case t.top > 0 && id > t.top+1:
		t.gap(t.top+1, id-1, t.top+1 > t.history, row, dbNow)
	case t.top == 0 && id > t.mark+1:
		// Whoever inserted into the empty table before may still commit. How many
		// ids were used up before the table was emptied is not known: none burns.
		t.gap(t.mark+1, id-1, false, row, dbNow)
	}
	t.top, t.mark = max(t.top, id), id
	t.pattern.add(id)
	t.holes.fill(id)
	t.anchors.add(anchor{id, t.source.print(row)})
	if id <= t.history {
		t.stood(id, row)
		return
	}
	t.arrived(id, row)
}

// gap notes the missing ids below a row. Ids are given out in order, so a gap
// is at least as old as the row above it: one that old at the start needs no
// second look. Nor do ids that lie between the steps of the only writer. news:
// they were given out since the start.
func (t *tail) gap(lo, hi uint64, news bool, above ledger.Row, dbNow time.Time) {
	if !news && above.Created.State == ledger.StampOK && dbNow.Sub(above.Created.Time) > t.grace() {
		return
	}
	step := t.step()
	if hi-lo+1 < step && t.pattern.step()%step == 0 {
		return
	}
	t.source.burned(t.holes.add(hole{lo: lo, hi: hi, seen: t.source.now(), counts: news}, step))
}

// grace is how long a hole may be filled. A replica shows late commits later
// by its lag.
func (t *tail) grace() time.Duration {
	lag, _ := t.source.server.lag()
	return t.source.grace + lag
}

// step is the distance between the ids that a writer is given: the server's
// setting, or what the ids look like on a replica, which does not know it.
func (t *tail) step() uint64 {
	if step, known := t.source.server.step(); known {
		return step
	}
	return t.pattern.step()
}

// reanchor is for a last known row that is gone or is another one now. When
// some earlier one still stands, the end of the table was deleted, and reading
// goes on from there. When none does, the table was emptied or replaced.
func (t *tail) reanchor(ctx context.Context) error {
	rows, err := t.byID(ctx, t.anchors.ids())
	if err != nil {
		return err
	}
	for i, a := range slices.Backward(t.anchors) {
		if row, there := rows[a.id]; there && t.stands(a, row) {
			t.anchors = t.anchors[:i+1]
			t.mark = a.id
			return nil
		}
	}
	// Whether its open records are gone too shows when they are read again.
	t.watch.hurryAll()
	t.anchors = nil
	lowest, err := t.shard.After(ctx, 0, 1)
	if err != nil {
		return err
	}
	if len(lowest.Rows) > 0 {
		if id, ok := rowID(lowest.Rows[0]); ok && t.top > 0 && id > t.top {
			t.mark = t.top // every row was deleted, and ids go on
			return nil
		}
	}
	t.source.log.Info("table was emptied or replaced; reading it from anew", "table", t.shard.Name())
	t.holes.clear()
	t.begun = false
	return nil
}

func (t *tail) stands(a anchor, row ledger.Row) bool {
	id, ok := rowID(row)
	return ok && id == a.id && t.source.print(row) == a.print
}

// readHoles looks whether holes were filled, and counts those that were not
// when their grace is over.
func (t *tail) readHoles(ctx context.Context, b *budget) error {
	now := t.source.now()
	for ids := range slices.Chunk(t.holes.narrow(), readChunk) {
		rows, err := t.byID(ctx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if row, there := rows[id]; there {
				t.late(id, row)
			}
		}
	}
	for _, h := range t.holes.wide() {
		if err := t.readHole(ctx, h, now, b); err != nil {
			return err
		}
	}
	t.source.burned(t.holes.settle(now.Add(-t.grace()), t.step()))
	return nil
}

// readHole reads a wide hole as a range: one row tells that it is still empty.
// A hole that is being filled faster than it is read gets its grace anew.
func (t *tail) readHole(ctx context.Context, h hole, now time.Time, b *budget) error {
	after, limit := h.lo-1, 1
	for {
		batch, err := t.shard.After(ctx, after, limit)
		if err != nil {
			return err
		}
		t.source.count(batch)
		for _, row := range batch.Rows {
			id, ok := rowID(row)
			if !ok || id > h.hi {
				return nil
			}
			t.late(id, row)
			after = id
		}
		if len(batch.Rows) < limit || after == h.hi {
			return nil
		}
		if !b.tail() {
			t.holes.renew(after+1, now)
			t.behind = true
			return nil
		}
		limit = tailChunk
	}
}

// late takes a row whose transaction committed after rows with higher ids.
func (t *tail) late(id uint64, row ledger.Row) {
	t.holes.fill(id)
	if len(t.anchors) > 0 && id > t.anchors[0].id {
		t.anchors.add(anchor{id, t.source.print(row)})
	}
	t.arrived(id, row)
}

// anchor is a row that was seen, by its id and its key.
type anchor struct{ id, print uint64 }

// anchors are the last rows of a tail in the order of their ids.
type anchors []anchor

// add keeps the anchors sorted; the lowest one leaves when there are too many.
func (a *anchors) add(n anchor) {
	i, known := slices.BinarySearchFunc(*a, n.id, func(e anchor, id uint64) int {
		switch {
		case e.id < id:
			return -1
		case e.id > id:
			return 1
		}
		return 0
	})
	if known {
		(*a)[i] = n
		return
	}
	*a = slices.Insert(*a, i, n)
	if len(*a) > maxAnchors {
		*a = slices.Delete(*a, 0, 1)
	}
}

func (a anchors) ids() []uint64 {
	ids := make([]uint64, len(a))
	for i, e := range a {
		ids[i] = e.id
	}
	return ids
}
