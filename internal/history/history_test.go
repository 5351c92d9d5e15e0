package history

import (
	"fmt"
	"testing"
	"time"

	"idemscope/internal/flow"
)

var (
	noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	paid = flow.Key{BizType: "pay", BizID: "1"}
)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func event(seconds int) flow.Event { return flow.Event{Kind: flow.Published, At: at(seconds)} }

func TestEventsOfAKeyComeInTheOrderOfTheirTimes(t *testing.T) {
	l := New(Options{Source: "tap"})
	for _, s := range []int{3, 1, 2} {
		l.Add(paid, event(s))
	}
	l.Add(flow.Key{BizType: "pay", BizID: "2"}, event(0))
	l.Follow(at(0), at(9))
	a := l.Of(paid)
	if a.State != flow.Found || len(a.Events) != 3 || !a.Events[0].At.Equal(at(1)) || !a.Events[2].At.Equal(at(3)) {
		t.Errorf("%+v", a)
	}
}

func TestAKeyIsAbsentOnlyWhileTheSourceIsFollowed(t *testing.T) {
	l := New(Options{Source: "tap"})
	if a := l.Of(paid); a.State != flow.Unknown || a.Covers(at(5)) {
		t.Errorf("before the first reading: %+v", a)
	}
	l.Follow(at(0), at(9))
	if a := l.Of(paid); a.State != flow.Absent || !a.Covers(at(0)) || a.Covers(at(-1)) {
		t.Errorf("followed: %+v", a)
	}
	l.Lose(flow.T("gone", "断开"))
	if a := l.Of(paid); a.State != flow.Error || a.Covers(at(5)) {
		t.Errorf("lost: %+v", a)
	}
	l.Follow(at(20), at(21))
	if a := l.Of(paid); a.State != flow.Absent || a.Covers(at(10)) {
		t.Errorf("found again, with a gap: %+v", a)
	}
}

func TestWhatIsForgottenShortensTheCoverage(t *testing.T) {
	l := New(Options{Source: "tap", MaxEvents: 3})
	l.Follow(at(0), at(9))
	for i := range 5 {
		l.Add(flow.Key{BizType: "pay", BizID: fmt.Sprint(i)}, event(i))
	}
	if n, _ := l.Size(); n != 3 {
		t.Errorf("%d events are kept", n)
	}
	a := l.Of(flow.Key{BizType: "pay", BizID: "0"})
	if a.State != flow.Absent || a.Covers(at(1)) || !a.Covers(at(2)) {
		t.Errorf("%+v", a)
	}
}

func TestAKeyThatLoopsKeepsItsLatestEventsAndSaysSo(t *testing.T) {
	l := New(Options{Source: "tap", MaxPerKey: 2})
	l.Follow(at(0), at(9))
	for i := range 5 {
		l.Add(paid, event(i))
	}
	a := l.Of(paid)
	if len(a.Events) != 2 || !a.Events[0].At.Equal(at(3)) || !a.Cut || a.Covers(at(2)) || !a.Covers(at(3)) {
		t.Errorf("%+v", a)
	}
	if n, _ := l.Size(); n != 2 {
		t.Errorf("%d events are counted", n)
	}
}

func TestAnOldEventThatArrivesLateIsDroppedFirstFromAFullKey(t *testing.T) {
	l := New(Options{Source: "tap", MaxPerKey: 2})
	l.Add(paid, event(5))
	l.Add(paid, event(6))
	l.Add(paid, event(1))
	if a := l.Of(paid); len(a.Events) != 2 || !a.Events[0].At.Equal(at(5)) || !a.Cut {
		t.Errorf("%+v", a)
	}
}
