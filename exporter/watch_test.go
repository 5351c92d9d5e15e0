package exporter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"idemscope/internal/flow"
)

func silent(age time.Duration) sighting {
	return sighting{phase: flow.Processing, age: age, aged: true}
}

// testWatch is a set for a few records that begins at origin.
func testWatch(max int) *watch {
	r := &room{}
	r.left.Store(int64(max))
	return newWatch(0, origin, r, []flow.Phase{flow.Processing})
}

// put adds a record with the id as its key.
func put(t *testing.T, w *watch, id uint64, key groupKey, s sighting, now time.Time) uint32 {
	t.Helper()
	n, ok := w.add(id, id, key, s, now)
	if !ok {
		t.Fatalf("record %d is refused", id)
	}
	return n
}

// dueIDs are the ids of the records that are due.
func dueIDs(w *watch, now time.Time, limit int) []uint64 {
	var ids []uint64
	for _, n := range w.due(now, limit) {
		ids = append(ids, w.at(n).id)
	}
	return ids
}

func sumsOf(w *watch, now time.Time) map[string]standing {
	w.pass(now, time.Hour)
	sums := map[string]standing{}
	w.addTo(sums, now)
	return sums
}

func TestPauseGrowsWithAge(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0:                0,
		10 * time.Second: time.Second,
		5 * time.Minute:  30 * time.Second,
		10 * time.Minute: time.Minute,
		48 * time.Hour:   time.Minute,
	} {
		w := testWatch(1)
		n := put(t, w, 1, groupKey{}, silent(age), at(5))
		if got := w.at(n).when[byNext] - 5*time.Second; got != want {
			t.Errorf("a record that has been silent for %s is read again after %s, want %s", age, got, want)
		}
	}
}

func TestAgeIsNeverNegative(t *testing.T) {
	w := testWatch(1)
	n := put(t, w, 1, groupKey{}, silent(-time.Hour), origin)
	look := func() *open {
		for _, o := range w.all() {
			return o
		}
		return nil
	}
	if o := look(); o.aged || o.age(origin) != 0 || o.age(at(5)) != 5*time.Second {
		t.Errorf("an update time in the future gives aged %v, age %s", o.aged, o.age(origin))
	}
	w.see(n, silent(time.Minute), at(10))
	if o := look(); !o.aged || o.age(at(10)) != time.Minute || o.age(at(-60)) < 0 {
		t.Errorf("age is %s", o.age(at(10)))
	}
	w.see(n, silent(-time.Hour), at(20))
	if o := look(); o.aged || o.age(at(20)) != 0 {
		t.Errorf("an update time that moves into the future gives aged %v, age %s", o.aged, o.age(at(20)))
	}
	if got := sumsOf(w, at(9000))[""]; got.waiting != 1 || got.oldest != 0 {
		t.Errorf("no age is claimed, got %+v", got)
	}
}

func TestDueComesLongestOverdueFirst(t *testing.T) {
	w := testWatch(10)
	for id, age := range []int{50, 10, 30, 90} { // read again after 5, 1, 3 and 9 s
		put(t, w, uint64(10-id), groupKey{}, silent(time.Duration(age)*time.Second), origin)
	}
	for _, c := range []struct {
		now, limit int
		want       []uint64
	}{
		{1, 10, nil},
		{6, 10, []uint64{8, 9, 10}},
		{6, 2, []uint64{8, 9}},
		{10, 10, []uint64{7, 8, 9, 10}},
	} {
		if got := dueIDs(w, at(c.now), c.limit); !slices.Equal(got, c.want) {
			t.Errorf("due at %d, at most %d: %v, want %v", c.now, c.limit, got, c.want)
		}
	}
	n, _ := w.find(7, 7)
	w.hurry(n)
	if got := dueIDs(w, at(0), 10); !slices.Equal(got, []uint64{7}) {
		t.Errorf("due are %v, want the hurried one", got)
	}
	w.hurryAll()
	if got := dueIDs(w, at(-100), 10); len(got) != 4 {
		t.Errorf("due are %v, want all", got)
	}
}

func TestOldRecordsDoNotHoldUpYoungOnes(t *testing.T) {
	w := testWatch(100)
	for id := range uint64(40) {
		put(t, w, id+1, groupKey{}, silent(time.Hour), origin)
		put(t, w, id+101, groupKey{}, silent(time.Second), at(100))
	}
	got := dueIDs(w, at(110), 40)
	old := slices.IndexFunc(got, func(id uint64) bool { return id > 100 })
	if len(got) != 40 || old != 40/oldPart {
		t.Errorf("%d of %d are old: %v", old, len(got), got)
	}
	if got := dueIDs(w, at(110), 400); len(got) != 80 {
		t.Errorf("%d are due, want all", len(got))
	}
}

func TestWatchIsBounded(t *testing.T) {
	w := testWatch(2)
	a := put(t, w, 1, groupKey{}, silent(0), origin)
	put(t, w, 2, groupKey{}, silent(0), origin)
	if _, ok := w.add(3, 3, groupKey{}, silent(0), origin); ok || w.size != 2 {
		t.Error("took a record above the cap")
	}
	w.remove(a)
	if _, ok := w.find(1, 1); ok {
		t.Error("a removed record is found")
	}
	put(t, w, 3, groupKey{}, silent(0), origin)
}

func TestSilentRecordsLeaveUnlessTheyWait(t *testing.T) {
	w := testWatch(10)
	for i, phase := range []flow.Phase{flow.Processing, flow.Failed, flow.NotStarted, flow.Unmapped} {
		put(t, w, uint64(i+1), groupKey{}, sighting{phase, 0, true}, at(0))
		put(t, w, uint64(i+11), groupKey{}, sighting{phase, 0, true}, at(100))
	}
	w.pass(at(100), 99*time.Second)
	if _, ok := w.find(1, 1); w.size != 5 || !ok {
		t.Errorf("%d records are left, want the processing one and the young ones", w.size)
	}
}

func TestStandings(t *testing.T) {
	w := testWatch(10)
	short, long := &route{staleAfter: 10 * time.Second}, &route{staleAfter: time.Hour}
	for i, o := range []open{
		{label: "pay", route: short, phase: flow.Processing, sign: at(0), aged: true},
		{label: "pay", route: long, phase: flow.Processing, sign: at(-20), aged: true},
		{label: "pay", route: short, phase: flow.Processing, sign: at(20), aged: true},
		{label: "pay", route: short, phase: flow.Processing, sign: at(-900)}, // age unknown
		{label: "pay", route: short, phase: flow.Failed, sign: at(-900), aged: true},
		{label: "pay", route: short, phase: flow.Unmapped, sign: at(-900), aged: true},
		{label: "loose", phase: flow.Processing, sign: at(25), aged: true},
	} {
		put(t, w, uint64(i+1), groupKey{o.label, o.route}, sighting{o.phase, at(28).Sub(o.sign), o.aged}, at(28))
	}
	want := map[string]standing{
		"pay":   {waiting: 4, stale: 1, unmapped: 1, oldest: 50 * time.Second},
		"loose": {waiting: 1, oldest: 5 * time.Second},
	}
	got := sumsOf(w, at(30)) // exactly stale_after is not longer than it
	for label := range want {
		if got[label] != want[label] {
			t.Errorf("%s: %+v, want %+v", label, got[label], want[label])
		}
	}
	if got := sumsOf(w, at(31))["pay"].stale; got != 2 {
		t.Errorf("a second later %d are stale, want 2", got)
	}
	n, _ := w.find(1, 1)
	w.see(n, silent(0), at(31)) // a heartbeat
	if got := sumsOf(w, at(31))["pay"]; got.stale != 1 || got.waiting != 4 {
		t.Errorf("after a heartbeat: %+v", got)
	}
}

// Whatever happens to records, the sums are those of a plain count.
func TestWatchAddsUp(t *testing.T) {
	type plain struct {
		key  groupKey
		s    sighting
		sign time.Time
	}
	r := rand.New(rand.NewPCG(1, 2))
	keys := []groupKey{{"a", &route{staleAfter: 30 * time.Second}}, {"a", &route{staleAfter: 90 * time.Second}}, {"b", nil}}
	phases := []flow.Phase{flow.Processing, flow.Processing, flow.Failed, flow.NotStarted, flow.Unmapped}
	w, model := testWatch(1000), map[uint64]*plain{}
	now := origin
	for range 20000 {
		now = now.Add(time.Duration(r.IntN(100)) * time.Millisecond)
		id := 1 + r.Uint64N(300)
		s := sighting{phases[r.IntN(len(phases))], time.Duration(r.IntN(200)) * time.Second, r.IntN(9) > 0}
		p := model[id]
		switch n, ok := w.find(id, id%50); {
		case ok != (p != nil):
			t.Fatalf("record %d: found %v", id, ok)
		case !ok:
			model[id] = &plain{key: keys[r.IntN(len(keys))], s: s, sign: now}
			w.add(id, id%50, model[id].key, s, now)
			p = model[id]
			if s.aged {
				p.sign = now.Add(-s.age)
			}
		case r.IntN(4) == 0:
			w.remove(n)
			delete(model, id)
		default:
			if s.aged {
				p.sign = now.Add(-s.age)
			} else if p.s.aged {
				p.sign = now
			}
			p.s = s
			w.see(n, s, now)
		}
		if r.IntN(50) > 0 {
			continue
		}
		want := map[string]standing{"a": {}, "b": {}}
		for id, p := range model {
			age := now.Sub(p.sign)
			if p.s.phase != flow.Processing && age > time.Hour {
				delete(model, id)
				continue
			}
			sum := want[p.key.label]
			if p.s.phase == flow.Unmapped {
				sum.unmapped++
			}
			if p.s.phase == flow.Processing {
				sum.waiting++
				if p.s.aged {
					sum.oldest = max(sum.oldest, age)
					if p.key.route != nil && age > p.key.route.staleAfter {
						sum.stale++
					}
				}
			}
			want[p.key.label] = sum
		}
		if got := sumsOf(w, now); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if w.size != len(model) || len(w.young.list)+len(w.old.list) != w.size {
			t.Fatalf("%d records, %d of them in turn, want %d", w.size, len(w.young.list)+len(w.old.list), len(model))
		}
	}
}
