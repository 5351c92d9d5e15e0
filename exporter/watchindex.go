package exporter

import (
	"iter"
	"time"

	"idemscope/internal/flow"
)

// minHeads is the smallest number of chains of a watch set that has records.
const minHeads = 64

// find returns the record with this key and id.
func (w *watch) find(id, print uint64) (n uint32, ok bool) {
	for n := range w.namesakes(print) {
		if w.at(n).id == id {
			return n, true
		}
	}
	return 0, false
}

// namesakes are the records of one key. There is one at most where a unique key
// does its work, unless a row was deleted and inserted anew.
func (w *watch) namesakes(print uint64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if len(w.heads) == 0 {
			return
		}
		for n := w.heads[w.slot(print)]; n != none; {
			r := w.at(n)
			next := r.chain
			if r.print == print && !yield(n) {
				return
			}
			n = next
		}
	}
}

func (w *watch) slot(print uint64) uint64 { return print & uint64(len(w.heads)-1) }

// link puts a record into its chain.
func (w *watch) link(n uint32) {
	if w.size >= len(w.heads) {
		w.rehash(max(minHeads, 2*len(w.heads)))
	}
	r := w.at(n)
	head := &w.heads[w.slot(r.print)]
	r.chain, *head = *head, n
}

// unlink takes a record out of its chain.
func (w *watch) unlink(n uint32) {
	place := &w.heads[w.slot(w.at(n).print)]
	for *place != n {
		place = &w.at(*place).chain
	}
	*place = w.at(n).chain
}

// rehash makes that many chains of the records that are linked.
func (w *watch) rehash(size int) {
	before := w.heads
	w.heads = make([]uint32, size)
	for i := range w.heads {
		w.heads[i] = none
	}
	for _, n := range before {
		for n != none {
			r := w.at(n)
			next := r.chain
			head := &w.heads[w.slot(r.print)]
			r.chain, *head = *head, n
			n = next
		}
	}
}

// allocate returns a record that is not in use.
func (w *watch) allocate() uint32 {
	if w.free == none {
		w.blocks = append(w.blocks, make([]record, blockSize))
		first := uint32(len(w.blocks)-1) * blockSize
		for n := first + blockSize; n > first; n-- {
			w.at(n - 1).chain = w.free
			w.free = n - 1
		}
	}
	n := w.free
	w.free = w.at(n).chain
	return n
}

// number returns the number of a group, and makes it when it is new.
func (w *watch) number(key groupKey) uint32 {
	n, ok := w.numbers[key]
	if !ok {
		n = uint32(len(w.groups))
		w.numbers[key] = n
		w.groups = append(w.groups, &group{groupKey: key, fresh: heap{axis: bySign}, stale: heap{axis: bySign}})
	}
	return n
}

// open is an open record, as others see it.
type open struct {
	label string
	route *route
	phase flow.Phase
	// sign is the last sign of life; when aged is false the table does not tell
	// it, and sign is when that was first seen.
	sign time.Time
	aged bool
}

// age is how long the record has been silent, never negative.
func (o *open) age(now time.Time) time.Duration { return max(0, now.Sub(o.sign)) }

// all are the open records in no order. The set must not change meanwhile.
func (w *watch) all() iter.Seq2[place, *open] {
	return func(yield func(place, *open) bool) {
		var o open
		for _, block := range w.blocks {
			for i := range block {
				r := &block[i]
				if r.phase == 0 {
					continue // not in use
				}
				g := w.groups[r.group]
				o = open{label: g.label, route: g.route, phase: r.phase.phase(), sign: w.began.Add(r.when[bySign]), aged: r.flags&aged != 0}
				if !yield(place{w.shard, r.id}, &o) {
					return
				}
			}
		}
	}
}
