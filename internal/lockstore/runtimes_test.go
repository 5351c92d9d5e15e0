package lockstore

import (
	"testing"
	"time"

	"idemscope/internal/testkit"
)

func TestP99IsTheBoundThatNearlyAllRunsStayBelow(t *testing.T) {
	bucket := func(ms uint64) int {
		for i, bound := range RunBounds {
			if bound == ms {
				return i
			}
		}
		return len(RunBounds)
	}
	tests := map[string]struct {
		counts map[uint64]uint64
		want   time.Duration
	}{
		"too few runs":                {map[uint64]uint64{50: 99}, 0},
		"all in one bucket":           {map[uint64]uint64{50: 100}, 50 * time.Millisecond},
		"one in a hundred is slower":  {map[uint64]uint64{50: 99, 5000: 1}, 50 * time.Millisecond},
		"two in a hundred are slower": {map[uint64]uint64{50: 98, 5000: 2}, 5 * time.Second},
		"beyond every bound":          {map[uint64]uint64{50: 90, 0: 10}, 0},
	}
	for name, tt := range tests {
		var c TypeCounters
		for ms, n := range tt.counts {
			c.Buckets[bucket(ms)] = n
		}
		if got := c.P99(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestTypeP99ReadsOneType(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "HSET", "shop:idem_stat:{pay}", "ms_le_50", "99", "ms_le_5000", "1")
	do(t, db.Client, "SET", "shop:idem_stat:{odd}", "no hash")
	for bizType, want := range map[string]time.Duration{"pay": 50 * time.Millisecond, "nobody counts": 0, "odd": 0} {
		if got, err := s.TypeP99(t.Context(), "shop:", bizType); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", bizType, got, err, want)
		}
	}
}
