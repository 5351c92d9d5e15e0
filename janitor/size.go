package janitor

import "time"

const (
	// batchTarget is how long one transaction is to take at most: it bounds how long
	// a consumer can wait for us.
	batchTarget = 25 * time.Millisecond
	// batchAim is what the size is steered to, so that all but a few stay below the target.
	batchAim = batchTarget * 3 / 5
	// smallest is where shrinking ends.
	smallest = 50
	// firstShare is the part of the largest batch with which a run begins.
	firstShare = 4
	// farOver is the multiple of the target from which the size falls at once.
	farOver = 4
)

// sizer chooses how many rows the next batch looks at, from how long the last
// ones took.
type sizer struct {
	rows    float64
	largest int
}

func newSizer(largest int) *sizer {
	return &sizer{rows: max(smallest, float64(largest)/firstShare), largest: largest}
}

func (s *sizer) next() int { return int(s.rows) }

// atSmallest: there is nothing left to shrink.
func (s *sizer) atSmallest() bool { return s.next() <= smallest }

// learn takes how long a batch took and how many of its rows were to go. Ranges
// in which most rows stay are quick and say nothing about the ones behind them,
// so only a full one lets the size grow.
func (s *sizer) learn(took time.Duration, rows, candidates int64) {
	ratio := float64(batchAim) / float64(max(took, time.Microsecond))
	switch {
	case took > farOver*batchTarget:
		s.shrink()
	case ratio < 1:
		s.set(s.rows * max(ratio, 0.7))
	case candidates*2 > rows:
		s.set(s.rows * min(ratio, 1.3))
	}
}

// shrink halves the size, after a lock or a batch far over its time.
func (s *sizer) shrink() { s.set(s.rows / 2) }

func (s *sizer) set(rows float64) { s.rows = min(max(rows, smallest), float64(s.largest)) }
