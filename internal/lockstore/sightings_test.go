package lockstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestALookTellsWhatTheOneBeforeSaw(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	look := func() Entry { return s.Look(t.Context(), "k") }
	if e := look(); e.Before != nil || e.Extended() || e.TakenAnew() {
		t.Fatalf("the first look: %+v", e.Before)
	}
	do(t, db.Client, "SET", "k", "a", "EX", "1000")
	e := look()
	if e.Before == nil || e.Before.Found || e.TakenAnew() || e.Extended() {
		t.Errorf("a lock that is taken for the first time: %+v", e.Before)
	}
	held := e.ReadAt
	if e = look(); e.Before == nil || !e.Before.Found || e.Before.Value != "a" || !e.Before.At.Equal(held) || e.Before.Expires.Sub(held) < 900*time.Second || e.Extended() || e.TakenAnew() {
		t.Errorf("nothing has changed: %+v", e.Before)
	}
}

func TestARenewedLockIsExtended(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	look := func() Entry { return s.Look(t.Context(), "k") }
	do(t, db.Client, "SET", "k", "a", "EX", "100")
	look()
	do(t, db.Client, "EXPIRE", "k", "1000")
	if e := look(); !e.Extended() || e.TakenAnew() {
		t.Errorf("renewed: %+v, %s left", e.Before, e.TTL)
	}
	if e := look(); !e.Extended() {
		t.Error("a later look forgets the renewal")
	}
	do(t, db.Client, "SET", "k", "b", "EX", "5000")
	if e := look(); e.Extended() {
		t.Error("another holder counts as a renewal")
	}
	do(t, db.Client, "SET", "n", "a")
	s.Look(t.Context(), "n")
	if e := s.Look(t.Context(), "n"); e.Extended() {
		t.Error("a lock that never expires counts as renewed")
	}
}

func TestALockTakenAnew(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	look := func() Entry { return s.Look(t.Context(), "k") }
	do(t, db.Client, "SET", "k", "a", "EX", "1000")
	first := look().ReadAt
	do(t, db.Client, "SET", "k", "b", "EX", "1000")
	for range 2 { // a later look does not forget it
		e := look()
		if at, ok := e.EarlierHolder(); !ok || !e.TakenAnew() || !at.Equal(first) {
			t.Errorf("another value: %v at %s, want %s", ok, at, first)
		}
	}
	do(t, db.Client, "SET", "gone", "a", "EX", "1000")
	first = s.Look(t.Context(), "gone").ReadAt
	do(t, db.Client, "DEL", "gone")
	if e := s.Look(t.Context(), "gone"); e.TakenAnew() {
		t.Error("an absent lock is taken anew")
	}
	do(t, db.Client, "SET", "gone", "a", "EX", "1000")
	if at, ok := s.Look(t.Context(), "gone").EarlierHolder(); !ok || !at.Equal(first) {
		t.Errorf("gone in between: %v at %s, want %s", ok, at, first)
	}
	do(t, db.Client, "DEL", "gone")
	do(t, db.Client, "HSET", "gone", "f", "v")
	if e := s.Look(t.Context(), "gone"); e.TakenAnew() || e.Extended() {
		t.Error("a hash has no holder")
	}
}

func TestALookThatFailsIsNotRemembered(t *testing.T) {
	db := testkit.Redis(t)
	proxy := testkit.NewProxy(t, db.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB})
	do(t, db.Client, "SET", "k", "a", "EX", "1000")
	s.Look(t.Context(), "k")
	proxy.Drop(true)
	if e := s.Look(t.Context(), "k"); e.State != flow.Error || e.Before == nil || e.Before.Value != "a" || e.TakenAnew() {
		t.Errorf("%s %+v", e.State, e.Before)
	}
	proxy.Drop(false)
	testkit.Eventually(t, 30*time.Second, func() bool { return s.Look(t.Context(), "k").State == flow.Found }, "it does not come back")
	if e := s.Look(t.Context(), "k"); e.TakenAnew() || !e.Before.Found {
		t.Errorf("%+v", e.Before)
	}
}

func TestSightingsAreBounded(t *testing.T) {
	seen := func(key, value string) *Entry {
		return &Entry{Key: key, Value: value, Observation: flow.Observation{State: flow.Found, ReadAt: time.Now()}}
	}
	s := newSightings(3, 1000)
	for i := range 10 {
		s.note(seen(fmt.Sprint(i), "v"))
		s.note(seen("0", "v")) // the key that is looked at all the time stays
	}
	if len(s.byKey) != 3 || s.recent.Len() != 3 || s.byKey["0"] == nil || s.byKey["9"] == nil || s.byKey["7"] != nil || s.bytes != 6 {
		t.Errorf("%d keys, %d bytes", len(s.byKey), s.bytes)
	}
	s.note(seen("long", strings.Repeat("v", 993)))
	if len(s.byKey) != 2 || s.bytes != 999 {
		t.Errorf("%d keys, %d bytes", len(s.byKey), s.bytes)
	}
	s.note(seen("long", "v"))
	if s.bytes != 7 || len(s.byKey) != 2 {
		t.Errorf("%d bytes", s.bytes)
	}
	s.note(seen("huge", strings.Repeat("v", 2000)))
	if len(s.byKey) != 0 || s.bytes != 0 {
		t.Errorf("%d keys, %d bytes", len(s.byKey), s.bytes)
	}
}

func TestLookSimilarListsWhatExists(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "SET", "lock:ORD-1", "v")
	do(t, db.Client, "HSET", "lock:ord-1\n", "f", "v")
	var got []string
	commands := monitor(t, db.Addr, func() {
		got = s.LookSimilar(t.Context(), []string{"lock:ord-1", "lock:ORD-1", "lock:ord-1\n", "lock:*"})
	})
	if !slices.Equal(got, []string{"lock:ORD-1", "lock:ord-1\n"}) {
		t.Errorf("%q", got)
	}
	for _, line := range commands {
		if !strings.Contains(line, `"type"`) && !strings.Contains(line, `"select"`) {
			t.Errorf("%s", line)
		}
	}
	if got := s.LookSimilar(t.Context(), nil); got != nil {
		t.Errorf("%q", got)
	}
	if got := open(t, Options{Addresses: []string{"127.0.0.1:1"}}).LookSimilar(t.Context(), []string{"k"}); got != nil {
		t.Errorf("a server that is away: %q", got)
	}
}
