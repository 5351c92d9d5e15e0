package exporter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var origin = time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return origin.Add(time.Duration(seconds) * time.Second) }

func news(lo, hi uint64, seconds int) hole {
	return hole{lo: lo, hi: hi, seen: at(seconds), counts: true}
}

func TestHoleIsFilledOrBurned(t *testing.T) {
	var h holes
	h.add(news(5, 7, 0), 1)
	h.add(news(10, 10, 30), 1)
	if got, want := h.narrow(), []uint64{5, 6, 7, 10}; !slices.Equal(got, want) {
		t.Fatalf("ids to read are %v, want %v", got, want)
	}
	h.fill(6)
	if got, want := h.narrow(), []uint64{5, 7, 10}; !slices.Equal(got, want) {
		t.Fatalf("after a late commit ids to read are %v, want %v", got, want)
	}
	if got := h.settle(at(0), 1); got != 0 {
		t.Errorf("%d ids burned before the grace was over", got)
	}
	if got := h.settle(at(1), 1); got != 2 {
		t.Errorf("%d ids burned, want 2", got)
	}
	h.fill(5) // too late: forgotten
	if got := h.settle(at(31), 1); got != 1 {
		t.Errorf("%d ids burned, want 1", got)
	}
	if len(h.list) != 0 || h.weight != 0 {
		t.Errorf("left over: %+v", h)
	}
}

func TestHoleOfHistoryBurnsNothing(t *testing.T) {
	var h holes
	h.add(hole{lo: 1, hi: 3, seen: at(0)}, 1)
	if got := h.settle(at(100), 1); got != 0 {
		t.Errorf("%d ids burned, want none", got)
	}
}

func TestHugeHoleIsNotEnumerated(t *testing.T) {
	var h holes
	h.add(news(1, math.MaxUint64-1, 0), 1)
	if got := h.narrow(); len(got) != 0 {
		t.Fatalf("%d ids are read one by one", len(got))
	}
	if got := h.wide(); len(got) != 1 || got[0].lo != 1 {
		t.Fatalf("wide holes are %v", got)
	}
	h.fill(1)
	h.fill(1000)
	if got := h.wide(); len(got) != 2 || got[0] != news(2, 999, 0) || got[1] != news(1001, math.MaxUint64-1, 0) {
		t.Fatalf("wide holes are %v", got)
	}
	if got := h.settle(at(1), 1); got != 998+maxBurned {
		t.Errorf("%d ids burned", got)
	}
}

func TestTooManyHolesGiveUpTheOldest(t *testing.T) {
	var h holes
	var burned uint64
	for i := range uint64(maxTracked + 50) {
		burned += h.add(news(2*i+1, 2*i+1, 0), 1)
	}
	if burned != 50 || h.weight != maxTracked || len(h.narrow()) != maxTracked {
		t.Fatalf("burned %d, weight %d, tracked %d", burned, h.weight, len(h.narrow()))
	}
	if got := h.narrow()[0]; got != 101 {
		t.Errorf("the oldest tracked id is %d, want 101", got)
	}
	if got := burned + h.settle(at(1), 1); got != maxTracked+50 {
		t.Errorf("%d ids burned in all, want each once", got)
	}
}

func TestRenewedHoleGetsItsGraceAnew(t *testing.T) {
	var h holes
	h.add(news(1, 5000, 0), 1)
	h.renew(17, at(60))
	if got := h.settle(at(60), 1); got != 0 {
		t.Errorf("%d ids burned, want none yet", got)
	}
	if got := h.settle(at(61), 1); got != 5000 {
		t.Errorf("%d ids burned, want all", got)
	}
}

// Whatever the order in which late rows turn up, each missing id is either
// filled or burned, once.
func TestHolesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h holes
		missing := map[uint64]bool{}
		var next uint64 = 1
		for range 1 + r.IntN(20) {
			lo := next + r.Uint64N(5)
			hi := lo + r.Uint64N(150)
			h.add(news(lo, hi, 0), 1)
			for id := lo; id <= hi; id++ {
				missing[id] = true
			}
			next = hi + 2
		}
		for range r.IntN(200) {
			id := 1 + r.Uint64N(next)
			h.fill(id)
			delete(missing, id)
		}
		for id := range missing {
			if _, ok := h.at(id); !ok {
				t.Fatalf("id %d is lost", id)
			}
		}
		if got := h.settle(at(1), 1); got != uint64(len(missing)) {
			t.Fatalf("%d ids burned, want %d", got, len(missing))
		}
		if h.weight != 0 {
			t.Fatalf("weight %d is left", h.weight)
		}
	}
}
