package access

import (
	"slices"
	"sync"
	"time"
)

// onceSize bounds how many things are remembered, about 10 MB.
const onceSize = 100_000

// once remembers what may not be used again, until it would end by itself. When
// it is full it forgets what ends first, and from then on whatever ends no later
// counts as used: it refuses rather than lets something through twice.
type once struct {
	size int
	now  func() time.Time

	mu    sync.Mutex
	ends  map[string]time.Time
	floor time.Time
}

func newOnce(size int, now func() time.Time) *once {
	return &once{size: size, now: now, ends: map[string]time.Time{}}
}

// add marks id as used; fresh is false when it was already.
func (o *once) add(id string, ends time.Time) (fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, used := o.ends[id]; used || !ends.After(o.floor) {
		return false
	}
	if len(o.ends) >= o.size {
		o.makeRoom()
	}
	o.ends[id] = ends
	return true
}

// has reports that id was added, whatever has been forgotten.
func (o *once) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, used := o.ends[id]
	return used
}

// makeRoom drops what has ended; if nothing has, the tenth that ends first.
func (o *once) makeRoom() {
	now := o.now()
	for id, ends := range o.ends {
		if !ends.After(now) {
			delete(o.ends, id)
		}
	}
	if len(o.ends) < o.size {
		return
	}
	all := make([]time.Time, 0, len(o.ends))
	for _, ends := range o.ends {
		all = append(all, ends)
	}
	slices.SortFunc(all, time.Time.Compare)
	floor := all[len(all)/10]
	for id, ends := range o.ends {
		if !ends.After(floor) {
			delete(o.ends, id)
		}
	}
	o.floor = floor
}
