package exporter

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"idemscope/internal/flow"
)

const (
	// maxWatched bounds the open records of one ledger that are followed.
	maxWatched = 1_200_000
	// maxPause is the longest time between two reads of an open record.
	maxPause = time.Minute
	// pausePart: a record that has been silent for a time is read again after
	// a tenth of that time.
	pausePart = 10
	// oldPart is the part of the reads that records with the longest pause may
	// always take, however many young ones there are.
	oldPart = 4
	// blockSize is how many records the memory of a watch set grows by.
	blockSize = 4096
)

// place is where a record lies: the shard's number and the primary key.
type place struct {
	shard int
	id    uint64
}

// room is how many open records one ledger may still follow.
type room struct{ left atomic.Int64 }

func (r *room) take() bool {
	if r.left.Add(-1) >= 0 {
		return true
	}
	r.left.Add(1)
	return false
}

// record is an open record: in processing, failed, not started or with a status
// that the configuration does not name. It holds no pointer and little else,
// because there may be a million.
type record struct {
	id uint64
	// print tells the record from another one that got the same id.
	print uint64
	// when has the next read and the last sign of life, since the watch began.
	// The database tells the age at each read; in between the record ages by
	// this process's monotonic clock.
	when [axes]time.Duration
	pos  [axes]uint32
	// chain is the next record with the same hash, or the next free one.
	chain uint32
	group uint32
	phase phaseCode
	home  home
	flags flags
}

// phaseCode is a phase in one byte; 0 is that of a record that is not in use.
type phaseCode uint8

// codes has each phase at its code.
var codes = [...]flow.Phase{"", flow.NotStarted, flow.Processing, flow.Completed, flow.Failed, flow.Unmapped}

func codeOf(p flow.Phase) phaseCode { return phaseCode(slices.Index(codes[:], p)) }

func (c phaseCode) phase() flow.Phase { return codes[c] }

// home is the heap in which a record stands by its last sign of life.
type home uint8

const (
	nowhere home = iota
	fresh
	stale
	quiet
)

type flags uint8

const (
	// retried: it was seen failed before, so its run time spans several runs.
	retried flags = 1 << iota
	// aged: the table tells the age. Else sign is when that was first missed.
	aged
	// old: it is among those with the longest pause.
	old
	// replaced: a newer row holds the same key, so this one must be gone.
	replaced
)

// sighting is what one reading of an open row tells.
type sighting struct {
	phase flow.Phase
	// age is how long the record has been silent; known only when aged. An age
	// in the future is no age.
	age  time.Duration
	aged bool
}

// watch is the set of open records of one shard. It is not safe for concurrent use.
type watch struct {
	shard int
	began time.Time
	room  *room
	// waits has the phases whose records are counted as waiting and never given up.
	waits [len(codes)]bool

	blocks [][]record
	size   int
	// free is the first of the chained records that are not in use.
	free  uint32
	heads []uint32 // chains by hash of the print; a power of two
	// young and old hold every record by its next read, quiet those that do not wait.
	young, old, quiet heap
	groups            []*group
	numbers           map[groupKey]uint32
}

// group is what the open records of one biz_type and flow add up to.
type group struct {
	groupKey
	waiting, unmapped int
	// fresh and stale hold the waiting records whose age is known.
	fresh, stale heap
}

type groupKey struct {
	label string
	route *route
}

// none ends a chain.
const none = ^uint32(0)

func newWatch(shard int, began time.Time, r *room, waiting []flow.Phase) *watch {
	w := &watch{shard: shard, began: began, room: r, free: none, numbers: map[groupKey]uint32{},
		young: heap{axis: byNext}, old: heap{axis: byNext}, quiet: heap{axis: bySign}}
	for _, phase := range waiting {
		w.waits[codeOf(phase)] = true
	}
	return w
}

func (w *watch) at(n uint32) *record { return &w.blocks[n/blockSize][n%blockSize] }

func (w *watch) since(now time.Time) time.Duration { return now.Sub(w.began) }

// add takes a record that is not in the set. ok is false when there is no room.
func (w *watch) add(id, print uint64, key groupKey, s sighting, now time.Time) (n uint32, ok bool) {
	if !w.room.take() {
		return 0, false
	}
	n = w.allocate()
	*w.at(n) = record{id: id, print: print, group: w.number(key)}
	w.link(n)
	w.size++
	w.enter(n, s, now)
	return n, true
}

// see notes what was just read of a record of the set.
func (w *watch) see(n uint32, s sighting, now time.Time) {
	w.exit(n)
	w.enter(n, s, now)
}

// remove gives up a record.
func (w *watch) remove(n uint32) {
	w.exit(n)
	w.unlink(n)
	*w.at(n) = record{chain: w.free}
	w.free = n
	w.size--
	w.room.left.Add(1)
}

// enter puts a record where its phase and its age belong.
func (w *watch) enter(n uint32, s sighting, now time.Time) {
	r, first := w.at(n), w.at(n).phase == 0
	r.phase = codeOf(s.phase)
	r.flags &^= replaced
	if s.phase == flow.Failed {
		r.flags |= retried
	}
	switch {
	case s.aged && s.age >= 0:
		r.when[bySign] = w.since(now) - s.age
		r.flags |= aged
	case first || r.flags&aged != 0:
		r.when[bySign] = w.since(now)
		r.flags &^= aged
	}
	w.schedule(n, now)
	g := w.groups[r.group]
	switch {
	case !w.waits[r.phase]:
		r.home = quiet
	case r.flags&aged != 0:
		r.home = fresh
	}
	if w.waits[r.phase] {
		g.waiting++
	}
	if s.phase == flow.Unmapped {
		g.unmapped++
	}
	if h := w.homeOf(r); h != nil {
		h.push(w, n)
	}
}

// exit takes a record out of all that enter put it into.
func (w *watch) exit(n uint32) {
	r := w.at(n)
	if h := w.homeOf(r); h != nil {
		h.remove(w, n)
	}
	r.home = nowhere
	g := w.groups[r.group]
	if w.waits[r.phase] {
		g.waiting--
	}
	if r.phase.phase() == flow.Unmapped {
		g.unmapped--
	}
	w.turn(r).remove(w, n)
}

func (w *watch) homeOf(r *record) *heap {
	switch r.home {
	case fresh:
		return &w.groups[r.group].fresh
	case stale:
		return &w.groups[r.group].stale
	case quiet:
		return &w.quiet
	}
	return nil
}

// turn is the heap in which a record waits for its next read.
func (w *watch) turn(r *record) *heap {
	if r.flags&old != 0 {
		return &w.old
	}
	return &w.young
}

// schedule sets the next read: young records are read in every cycle, old ones
// once a minute.
func (w *watch) schedule(n uint32, now time.Time) {
	r := w.at(n)
	pause := min(max(0, w.since(now)-r.when[bySign])/pausePart, maxPause)
	r.flags &^= old
	if pause == maxPause {
		r.flags |= old
	}
	r.when[byNext] = w.since(now) + pause
	w.turn(r).push(w, n)
}

// overdue is the next read of a record that is read before all others.
const overdue = time.Duration(math.MinInt64)

// hurry makes a record due at once.
func (w *watch) hurry(n uint32) {
	r := w.at(n)
	w.turn(r).remove(w, n)
	r.flags &^= old
	r.when[byNext] = overdue
	w.young.push(w, n)
}

// hurryAll makes every record due at once.
func (w *watch) hurryAll() {
	for _, h := range []*heap{&w.young, &w.old} {
		for _, n := range h.list {
			w.at(n).when[byNext] = overdue
		}
	}
}

// due lists the records whose next read lies before now, in the order of their
// ids and at most limit of them: the longest overdue first, and records of the
// longest pause after all others but for their part.
func (w *watch) due(now time.Time, limit int) []uint32 {
	list := w.take(&w.old, now, limit/oldPart, nil)
	list = w.take(&w.young, now, limit, list)
	list = w.take(&w.old, now, limit, list)
	for _, n := range list {
		w.turn(w.at(n)).push(w, n)
	}
	slices.SortFunc(list, func(a, b uint32) int { return cmp.Compare(w.at(a).id, w.at(b).id) })
	return list
}

// take moves due records from a heap to list until that has limit of them.
func (w *watch) take(from *heap, now time.Time, limit int, list []uint32) []uint32 {
	for len(list) < limit {
		n, ok := from.first()
		if !ok || w.at(n).when[byNext] >= w.since(now) {
			break
		}
		from.remove(w, n)
		list = append(list, n)
	}
	return list
}

// pass lets time pass: waiting records become stale, and those that do not wait
// are given up when they have been silent for longer than patience: most failed
// records are never retried.
func (w *watch) pass(now time.Time, patience time.Duration) {
	for _, g := range w.groups {
		if g.route == nil {
			continue // nobody says when its records are stale
		}
		for {
			n, ok := g.fresh.first()
			if !ok || w.since(now)-w.at(n).when[bySign] <= g.route.staleAfter {
				break
			}
			g.fresh.remove(w, n)
			w.at(n).home = stale
			g.stale.push(w, n)
		}
	}
	for {
		n, ok := w.quiet.first()
		if !ok || w.since(now)-w.at(n).when[bySign] <= patience {
			return
		}
		w.remove(n)
	}
}

// standing is what the open records of one biz_type add up to.
type standing struct {
	waiting, stale, unmapped int
	oldest                   time.Duration
}

// addTo adds the standing of each group to that of its label. Call pass before.
func (w *watch) addTo(sums map[string]standing, now time.Time) {
	for _, g := range w.groups {
		s := sums[g.label]
		s.waiting += g.waiting
		s.unmapped += g.unmapped
		s.stale += len(g.stale.list)
		for _, h := range []*heap{&g.fresh, &g.stale} {
			if n, ok := h.first(); ok {
				s.oldest = max(s.oldest, w.since(now)-w.at(n).when[bySign])
			}
		}
		sums[g.label] = s
	}
}
