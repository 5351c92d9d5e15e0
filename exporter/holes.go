package exporter

import (
	"slices"
	"time"
)

const (
	// maxTracked bounds the ids of all holes of one table: narrow holes count
	// id by id, a wide one counts as wideHole ids.
	maxTracked = 10_000
	// wideHole is the width from which a hole is probed as a range instead of
	// id by id.
	wideHole = 100
	// maxBurned is what one hole can add to the burned ids. A wider one is a
	// jump (an explicit id, a changed AUTO_INCREMENT), not that many inserts.
	maxBurned = 10_000
)

// hole is a range of ids without a row between two rows that were seen.
type hole struct {
	lo, hi uint64
	// seen is when the hole was first seen, by this process's clock.
	seen time.Time
	// counts is false for a hole among the rows that stood there at the start:
	// a late commit may still fill it, but it was burned before our time.
	counts bool
}

func (h hole) width() uint64 { return h.hi - h.lo + 1 }
func (h hole) wide() bool    { return h.width() > wideHole }

// weight is how much of maxTracked the hole takes.
func (h hole) weight() int { return int(min(h.width(), wideHole)) }

// burned is how many refused or rolled back inserts the hole stands for, where
// a writer is given every step-th id.
func (h hole) burned(step uint64) uint64 {
	if !h.counts {
		return 0
	}
	return min(h.width()/step, maxBurned)
}

// holes are the gaps below the watermark that may still be filled: ids become
// visible out of order when a transaction commits late. Sorted by id.
type holes struct {
	list   []hole
	weight int
}

// add takes a new hole above all others. When there are too many, the oldest
// are given up before their grace is over; the burned ids of those are returned.
func (h *holes) add(n hole, step uint64) (burned uint64) {
	h.list = append(h.list, n)
	h.weight += n.weight()
	drop := 0
	for ; h.weight > maxTracked; drop++ {
		h.weight -= h.list[drop].weight()
		burned += h.list[drop].burned(step)
	}
	h.list = slices.Delete(h.list, 0, drop)
	return burned
}

// at returns the position of the hole that contains id.
func (h *holes) at(id uint64) (i int, ok bool) {
	i, _ = slices.BinarySearchFunc(h.list, id, func(e hole, id uint64) int {
		if e.hi < id {
			return -1
		}
		return 1
	})
	return i, i < len(h.list) && h.list[i].lo <= id
}

// fill takes id out of its hole, if it is in one.
func (h *holes) fill(id uint64) {
	i, ok := h.at(id)
	if !ok {
		return
	}
	whole := h.list[i]
	var parts []hole
	if id > whole.lo {
		parts = append(parts, hole{whole.lo, id - 1, whole.seen, whole.counts})
	}
	if id < whole.hi {
		parts = append(parts, hole{id + 1, whole.hi, whole.seen, whole.counts})
	}
	h.weight -= whole.weight()
	for _, p := range parts {
		h.weight += p.weight()
	}
	h.list = slices.Replace(h.list, i, i+1, parts...)
}

// renew starts the grace of the hole that contains id anew.
func (h *holes) renew(id uint64, now time.Time) {
	if i, ok := h.at(id); ok {
		h.list[i].seen = now
	}
}

// narrow lists the ids of all holes that are read id by id.
func (h *holes) narrow() []uint64 {
	var ids []uint64
	for _, e := range h.list {
		if e.wide() {
			continue
		}
		for id := e.lo; ; id++ {
			ids = append(ids, id)
			if id == e.hi {
				break
			}
		}
	}
	return ids
}

// wide lists the holes that are read as ranges.
func (h *holes) wide() []hole {
	var wide []hole
	for _, e := range h.list {
		if e.wide() {
			wide = append(wide, e)
		}
	}
	return wide
}

// settle forgets the holes that were first seen before the given time and
// returns how many ids they burned. Call it after they were all read again.
func (h *holes) settle(before time.Time, step uint64) (burned uint64) {
	h.list = slices.DeleteFunc(h.list, func(e hole) bool {
		if !e.seen.Before(before) {
			return false
		}
		burned += e.burned(step)
		h.weight -= e.weight()
		return true
	})
	return burned
}

// clear forgets every hole and counts nothing.
func (h *holes) clear() { *h = holes{} }
