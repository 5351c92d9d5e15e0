package exporter

import (
	"sync"
	"time"
)

// maxLost bounds the keys of vanished rows that are remembered for one ledger.
const maxLost = 100_000

// lost remembers the keys of rows that vanished before their end, by what tells
// keys apart, until they come back or are forgotten. All shards share it.
type lost struct {
	mu   sync.Mutex
	max  int
	when map[uint64]time.Time
	// order has them as they vanished. A key that came back stays in it.
	order []loss
}

type loss struct {
	print uint64
	at    time.Time
}

func newLost(max int) lost { return lost{max: max, when: map[uint64]time.Time{}} }

// add remembers a key, and forgets those that vanished longer than keep ago and
// the first ones of too many.
func (l *lost) add(print uint64, now time.Time, keep time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.when[print] = now
	l.order = append(l.order, loss{print, now})
	drop := 0
	for drop < len(l.order) && (len(l.order)-drop > l.max || now.Sub(l.order[drop].at) > keep) {
		if first := l.order[drop]; l.when[first.print].Equal(first.at) {
			delete(l.when, first.print)
		}
		drop++
	}
	l.order = l.order[drop:]
}

// back reports whether the key vanished no longer than keep ago, and forgets that.
func (l *lost) back(print uint64, now time.Time, keep time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.when[print]
	delete(l.when, print)
	return ok && now.Sub(at) <= keep
}
