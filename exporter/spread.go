package exporter

import (
	"math"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/lockstore"
)

// bounds is how many buckets the durations have; the last one has no upper bound.
const bounds = len(lockstore.RunBounds) + 1

// spread counts durations by the buckets of the instrumentation contract, which
// the ledger's durations share.
type spread [bounds]uint64

// total is how many there are.
func (s spread) total() (n uint64) {
	for _, count := range s {
		n += count
	}
	return n
}

func (s spread) plus(o spread) spread {
	for i, n := range o {
		s[i] += n
	}
	return s
}

// since returns what was added since before; ok is false when a bucket has fallen.
func (s spread) since(before spread) (added spread, ok bool) {
	for i, n := range s {
		if n < before[i] {
			return spread{}, false
		}
		added[i] = n - before[i]
	}
	return added, true
}

// quantile is the 99th percentile, by the rule of Prometheus' histogram_quantile,
// so that pages and dashboards agree: evenly spread within a bucket.
func (s spread) quantile() answer.Quantile {
	q := answer.Quantile{Runs: s.total()}
	if q.Runs == 0 {
		return q
	}
	rank, below := 0.99*float64(q.Runs), 0.0
	for i, n := range s {
		if below+float64(n) < rank || n == 0 {
			below += float64(n)
			continue
		}
		if i == bounds-1 {
			q.Seconds, q.Beyond = float64(lockstore.RunBounds[i-1])/1000, true
			return q
		}
		low := 0.0
		if i > 0 {
			low = float64(lockstore.RunBounds[i-1]) / 1000
		}
		high := float64(lockstore.RunBounds[i]) / 1000
		q.Seconds = low + (high-low)*(rank-below)/float64(n)
		return q
	}
	return q
}

// p99 is NaN when nothing ended.
func (s spread) p99() float64 {
	q := s.quantile()
	if q.Runs == 0 {
		return math.NaN()
	}
	return q.Seconds
}

// parts is in how many parts the last hour of durations is kept: the oldest part
// is dropped as a whole.
const parts = 12

// recent has the durations of the last hour.
type recent struct {
	perPart int // steps
	slots   int
	newest  int // part
	counts  [][bounds]uint32
}

func newRecent(step time.Duration) recent {
	perHour := max(1, int(time.Hour/step))
	per := max(1, perHour/parts)
	return recent{perPart: per, slots: max(1, perHour/per)}
}

// skip drops the parts that lie more than an hour before a step.
func (r *recent) skip(step int) {
	for part := step / r.perPart; r.newest < part; {
		r.newest = max(r.newest+1, part-r.slots+1)
		if r.counts != nil {
			r.counts[r.newest%r.slots] = [bounds]uint32{}
		}
	}
}

func (r *recent) add(step int, s spread) {
	r.skip(step)
	if s.total() == 0 {
		return
	}
	if r.counts == nil {
		r.counts = make([][bounds]uint32, r.slots)
	}
	slot := &r.counts[(step/r.perPart)%r.slots]
	for i, n := range s {
		slot[i] = uint32(min(uint64(slot[i])+n, math.MaxUint32))
	}
}

// all adds up the hour.
func (r *recent) all() (sum spread) {
	for _, part := range r.counts {
		for i, n := range part {
			sum[i] += uint64(n)
		}
	}
	return sum
}

func (r *recent) bytes() int { return len(r.counts) * bounds * 4 }
