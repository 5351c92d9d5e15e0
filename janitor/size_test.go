package janitor

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestTheSizeFollowsTheTimeOfBatchesAndDistrustsEmptyRanges(t *testing.T) {
	s := newSizer(2000)
	if s.next() != 500 {
		t.Errorf("begins with %d", s.next())
	}
	for range 20 {
		s.learn(time.Millisecond, 500, 500)
	}
	if s.next() != 2000 {
		t.Errorf("quick batches lead to %d", s.next())
	}
	s.learn(10*batchTarget, 2000, 2000)
	if s.next() != 1000 {
		t.Errorf("a slow batch leads to %d", s.next())
	}
	for range 20 {
		s.learn(time.Millisecond, 1000, 3)
	}
	if s.next() != 1000 {
		t.Errorf("batches in which nearly all rows stayed lead to %d", s.next())
	}
	for range 50 {
		s.learn(2*batchTarget, 100, 100)
	}
	if s.next() != smallest || !s.atSmallest() {
		t.Errorf("batches over their time lead to %d", s.next())
	}
}

// TestNearlyAllBatchesKeepTheTarget: with times that scatter widely (by a factor of
// two, one time in three) the size settles where 95 of 100 batches are in time,
// and is not much smaller than that needs.
func TestNearlyAllBatchesKeepTheTarget(t *testing.T) {
	for name, spread := range map[string]float64{"even": 0, "scattered": 0.7} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			s, inTime, sum := newSizer(10_000), 0, 0.0
			const first, last = 500, 5500
			for i := range last {
				rows := s.next()
				took := time.Duration(float64(rows) / 40 * math.Exp(spread*random.NormFloat64()) * float64(time.Millisecond))
				if i >= first {
					sum += float64(rows)
					if took <= batchTarget {
						inTime++
					}
				}
				s.learn(took, int64(rows), int64(rows))
			}
			// The largest size of which 95 of 100 are in time: 1.645 deviations below the target.
			best := 40 * 25 / math.Exp(1.645*spread)
			share, mean := float64(inTime)/(last-first), sum/(last-first)
			if share < 0.95 || mean < 0.7*best || mean > best {
				t.Errorf("%.3f of the batches in time, with %.0f rows in the mean; best are %.0f", share, mean, best)
			}
		})
	}
}
