package exporter

import (
	"cmp"
	"slices"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// maxWatched bounds the open records of one ledger that are followed.
	maxWatched = 200_000
	// maxPause is the longest time between two reads of an open record.
	maxPause = time.Minute
	// pausePart: a record that has been silent for a time is read again after
	// a tenth of that time.
	pausePart = 10
)

// place is where a record lies: the shard's number and the primary key.
type place struct {
	shard int
	id    uint64
}

// open is a record that may still change: in processing, failed, not started
// or with a status that the configuration does not name.
type open struct {
	// print tells the record from another one that got the same id.
	print uint64
	label string
	route *route
	phase flow.Phase
	// retried: it was seen failed before, so its run time spans several runs.
	retried bool
	// sign is the last sign of life. The database tells the age at each read;
	// in between the record ages by this process's monotonic clock.
	sign time.Time
	// aged is false when the table does not tell the age; sign is then when
	// that was first seen.
	aged bool
	next time.Time
}

// age is how long the record has been silent, never negative.
func (o *open) age(now time.Time) time.Duration { return max(0, now.Sub(o.sign)) }

// saw notes the row as it was just read and when to read it again. An age in
// the future is no age.
func (o *open) saw(row ledger.Row, now time.Time) {
	o.phase = row.Phase
	o.retried = o.retried || row.Phase == flow.Failed
	switch {
	case row.AgeKnown && row.Age >= 0:
		o.sign, o.aged = now.Add(-row.Age), true
	case o.aged || o.sign.IsZero():
		o.sign, o.aged = now, false
	}
	o.schedule(now)
}

// schedule sets the next read: young records are read in every cycle, old ones
// once a minute.
func (o *open) schedule(now time.Time) {
	o.next = now.Add(min(o.age(now)/pausePart, maxPause))
}

// watch is the set of open records of one ledger.
type watch struct {
	max  int
	open map[place]*open
}

func newWatch(max int) *watch { return &watch{max: max, open: map[place]*open{}} }

// add reports false when the set is full.
func (w *watch) add(at place, o *open) bool {
	if _, known := w.open[at]; !known && len(w.open) >= w.max {
		return false
	}
	w.open[at] = o
	return true
}

// due lists the records of readable shards whose next read has come, at most
// limit, the longest overdue first. They come back in the order of their place.
func (w *watch) due(now time.Time, limit int, readable func(shard int) bool) []place {
	var due []place
	for at, o := range w.open {
		if !o.next.After(now) && readable(at.shard) {
			due = append(due, at)
		}
	}
	if len(due) > limit {
		slices.SortFunc(due, func(a, b place) int { return w.open[a].next.Compare(w.open[b].next) })
		due = due[:limit]
	}
	slices.SortFunc(due, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.id, b.id))
	})
	return due
}

// leave drops the records that are not in processing and have been silent for
// longer than after: most failed records are never retried.
func (w *watch) leave(now time.Time, after time.Duration) {
	for at, o := range w.open {
		if o.phase != flow.Processing && o.age(now) > after {
			delete(w.open, at)
		}
	}
}

// forget drops every record of a shard.
func (w *watch) forget(shard int) {
	for at := range w.open {
		if at.shard == shard {
			delete(w.open, at)
		}
	}
}

// standing is what the open records of one biz_type add up to.
type standing struct {
	processing, stale int
	oldest            time.Duration
}

// standings adds up the records in processing by label.
func (w *watch) standings(now time.Time) map[string]standing {
	sums := map[string]standing{}
	for _, o := range w.open {
		if o.phase != flow.Processing {
			continue
		}
		s := sums[o.label]
		s.processing++
		if o.aged {
			age := o.age(now)
			s.oldest = max(s.oldest, age)
			if o.route != nil && age > o.route.staleAfter {
				s.stale++
			}
		}
		sums[o.label] = s
	}
	return sums
}
