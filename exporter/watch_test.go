package exporter

import (
	"slices"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

func all(int) bool { return true }

func silent(age time.Duration) ledger.Row {
	return ledger.Row{Phase: flow.Processing, Age: age, AgeKnown: true}
}

func TestPauseGrowsWithAge(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0:                0,
		10 * time.Second: time.Second,
		5 * time.Minute:  30 * time.Second,
		10 * time.Minute: time.Minute,
		48 * time.Hour:   time.Minute,
	} {
		var o open
		o.saw(silent(age), origin)
		if got := o.next.Sub(origin); got != want {
			t.Errorf("a record that has been silent for %s is read again after %s, want %s", age, got, want)
		}
	}
}

func TestAgeIsNeverNegative(t *testing.T) {
	var o open
	o.saw(silent(-time.Hour), origin)
	if o.aged || o.age(origin) != 0 || o.age(at(5)) != 5*time.Second {
		t.Errorf("an update time in the future gives aged %v, age %s", o.aged, o.age(origin))
	}
	o.saw(silent(time.Minute), at(10))
	if !o.aged || o.age(at(10)) != time.Minute || o.age(at(0)) < 0 {
		t.Errorf("age is %s", o.age(at(10)))
	}
	o.saw(silent(-time.Hour), at(20))
	if o.aged || o.age(at(20)) != 0 {
		t.Errorf("an update time that moves into the future gives aged %v, age %s", o.aged, o.age(at(20)))
	}
}

func TestDueComesOldestFirstAndInChunksOfAShard(t *testing.T) {
	w := newWatch(10)
	for i, next := range []int{5, 1, 3, 9} {
		w.add(place{i % 2, uint64(10 - i)}, &open{next: at(next)})
	}
	for _, c := range []struct {
		now, limit int
		want       []place
	}{
		{0, 10, nil},
		{5, 10, []place{{0, 8}, {0, 10}, {1, 9}}},
		{5, 2, []place{{0, 8}, {1, 9}}},
		{9, 10, []place{{0, 8}, {0, 10}, {1, 7}, {1, 9}}},
	} {
		if got := w.due(at(c.now), c.limit, all); !slices.Equal(got, c.want) {
			t.Errorf("due at %d, at most %d: %v, want %v", c.now, c.limit, got, c.want)
		}
	}
	if got := w.due(at(9), 10, func(shard int) bool { return shard == 1 }); !slices.Equal(got, []place{{1, 7}, {1, 9}}) {
		t.Errorf("due without shard 0: %v", got)
	}
}

func TestWatchIsBounded(t *testing.T) {
	w := newWatch(2)
	a, b, c := place{0, 1}, place{0, 2}, place{0, 3}
	if !w.add(a, &open{}) || !w.add(b, &open{}) {
		t.Fatal("refused below the cap")
	}
	if w.add(c, &open{}) {
		t.Error("took a record above the cap")
	}
	if !w.add(a, &open{phase: flow.Failed}) || w.open[a].phase != flow.Failed {
		t.Error("a record that is already followed was refused")
	}
	w.forget(0)
	if len(w.open) != 0 || !w.add(c, &open{}) {
		t.Error("a forgotten shard still takes room")
	}
}

func TestSilentRecordsLeaveUnlessProcessing(t *testing.T) {
	w := newWatch(10)
	for i, phase := range []flow.Phase{flow.Processing, flow.Failed, flow.NotStarted, flow.Unmapped} {
		w.add(place{0, uint64(i)}, &open{phase: phase, sign: at(0)})
		w.add(place{1, uint64(i)}, &open{phase: phase, sign: at(100)})
	}
	w.leave(at(100), 99*time.Second)
	if len(w.open) != 5 || w.open[place{0, 0}] == nil {
		t.Errorf("%d records are left, want the processing one and the young ones", len(w.open))
	}
}

func TestStandings(t *testing.T) {
	w := newWatch(10)
	short, long := &route{staleAfter: 10 * time.Second}, &route{staleAfter: time.Hour}
	for i, o := range []*open{
		{label: "pay", route: short, phase: flow.Processing, sign: at(0), aged: true},
		{label: "pay", route: long, phase: flow.Processing, sign: at(-20), aged: true},
		{label: "pay", route: short, phase: flow.Processing, sign: at(20), aged: true},
		{label: "pay", route: short, phase: flow.Processing, sign: at(-900)}, // age unknown
		{label: "pay", route: short, phase: flow.Failed, sign: at(-900), aged: true},
		{label: "loose", phase: flow.Processing, sign: at(25), aged: true},
		{label: "ahead", route: short, phase: flow.Processing, sign: at(90), aged: true},
	} {
		w.add(place{0, uint64(i)}, o)
	}
	got := w.standings(at(30))
	for label, want := range map[string]standing{
		"pay":   {processing: 4, stale: 1, oldest: 50 * time.Second},
		"loose": {processing: 1, oldest: 5 * time.Second},
		"ahead": {processing: 1},
	} {
		if got[label] != want {
			t.Errorf("%s: %+v, want %+v", label, got[label], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("standings are %v", got)
	}
}
