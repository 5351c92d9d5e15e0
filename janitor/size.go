package janitor

import "time"

const (
	// batchTarget is how long one transaction is to take at most: it bounds how long
	// a consumer can wait for us.
	batchTarget = 25 * time.Millisecond
	// smallest is where shrinking ends.
	smallest = 50
	// firstShare is the part of the largest batch with which a run begins.
	firstShare = 4
	// farOver is the multiple of the target from which the size is halved.
	farOver = 4
	// ramp is how the size grows until the first batch over the target.
	ramp = 1.3
	// fall and creep are how the size changes after that. They are in balance when
	// about one batch of thirty is over the target.
	fall, creep = 0.85, 1.005
)

// sizer chooses how many rows the next batch looks at, from how long the last
// ones took. It steers to the largest size at which nearly all batches keep the
// target, whether their times scatter or not.
type sizer struct {
	rows    float64
	largest int
	// growth is what a quick batch multiplies the size with.
	growth float64
}

func newSizer(largest int) *sizer {
	return &sizer{rows: max(smallest, float64(largest)/firstShare), largest: largest, growth: ramp}
}

func (s *sizer) next() int { return int(s.rows) }

// atSmallest: there is nothing left to shrink.
func (s *sizer) atSmallest() bool { return s.next() <= smallest }

// learn takes how long a batch took and how many of its rows were to go. Ranges
// in which most rows stay are quick and say nothing about the ones behind them,
// so only a full one lets the size grow.
func (s *sizer) learn(took time.Duration, rows, candidates int64) {
	switch {
	case took > farOver*batchTarget:
		s.shrink()
	case took > batchTarget:
		s.set(s.rows * fall)
		s.growth = creep
	case candidates*2 > rows:
		s.set(s.rows * s.growth)
	}
}

// shrink halves the size, after a lock or a batch far over its time.
func (s *sizer) shrink() {
	s.set(s.rows / 2)
	s.growth = creep
}

func (s *sizer) set(rows float64) { s.rows = min(max(rows, smallest), float64(s.largest)) }
