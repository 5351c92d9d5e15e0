package lockstore

import (
	"context"
	"time"
)

// enoughRuns is from how many runs on a P99 means anything.
const enoughRuns = 100

// P99 is the upper bound of the bucket in which the run time lies that 99 % of
// the counted runs stay below. 0 with fewer than 100 runs, and when it lies
// beyond every bound.
func (c TypeCounters) P99() time.Duration {
	var all uint64
	for _, n := range c.Buckets {
		all += n
	}
	if all < enoughRuns {
		return 0
	}
	var below uint64
	for i, bound := range RunBounds {
		if below += c.Buckets[i]; below*100 >= all*99 {
			return time.Duration(bound) * time.Millisecond
		}
	}
	return 0
}

// TypeP99 reads the counters of one biz_type for their P99. It is 0 as well when
// nobody counts. The error is an *Error.
func (s *Store) TypeP99(ctx context.Context, prefix, bizType string) (time.Duration, error) {
	var c Counters
	if err := s.typeCounters(ctx, prefix, []string{bizType}, &c); err != nil {
		return 0, err
	}
	if len(c.Types) == 0 {
		return 0, nil
	}
	return c.Types[0].P99(), nil
}
