package lockstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

var paid = flow.Key{BizType: "pay", BizID: "ORD-1"}

// follow runs a follower until the end of the test.
func follow(t testing.TB, s *Store, o TrailOptions) *Trail {
	t.Helper()
	if o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	trail := s.NewTrail(o)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { trail.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return trail
}

// report writes one step as consumers do.
func report(t testing.TB, client redis.UniversalClient, stream, step string, k flow.Key, more ...any) {
	t.Helper()
	do(t, client, append([]any{"XADD", stream, "MAXLEN", "~", 200000, "*", "t", k.BizType, "b", k.BizID, "s", step}, more...)...)
}

// tellers are the two ways to read the trail.
func tellers(t testing.TB, s *Store, prefix string) map[string]interface {
	Tell(context.Context, flow.Flow, flow.Key) *flow.Account
} {
	return map[string]interface {
		Tell(context.Context, flow.Flow, flow.Key) *flow.Account
	}{"followed": follow(t, s, TrailOptions{Prefix: prefix}), "scanned": s.NewTrailScan(prefix)}
}

func TestTheTrailTellsTheStepsOfAKey(t *testing.T) {
	for _, prefix := range []string{"", "shop:"} {
		db := testkit.Redis(t)
		s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
		start := time.Now()
		report(t, db.Client, prefix+"idem_trail", "received", paid, "w", "host:7", "m", "msg-1", "r", "1", "a field of version 2", "x")
		report(t, db.Client, prefix+"idem_trail", "received", flow.Key{BizType: "pay", BizID: "other"})
		for _, step := range []string{"status", "lock", "insert", "run", "done", "failed", "unlock", "ack", "nack", "a step of version 2"} {
			report(t, db.Client, prefix+"idem_trail", step, paid, "o", "ok", "w", "host:7", "ms", "12")
		}
		for name, teller := range tellers(t, s, prefix) {
			var a *flow.Account
			testkit.Eventually(t, 30*time.Second, func() bool {
				a = teller.Tell(t.Context(), flow.Flow{}, paid)
				return a.State == flow.Found && len(a.Events) == 10
			}, "%s: the steps do not arrive", name)
			var kinds []flow.EventKind
			for _, e := range a.Events {
				kinds = append(kinds, e.Kind)
				if e.Certainty != flow.Reported || e.Worker != "host:7" || e.At.Sub(start).Abs() > time.Minute || e.Layer == "" || e.Source != a.Source || e.Arrived {
					t.Errorf("%s: %+v", name, e)
				}
			}
			want := []flow.EventKind{flow.Received, flow.StatusChecked, flow.LockTried, flow.RecordTried, flow.RunBegan, flow.RunDone, flow.RunFailed, flow.Unlocked, flow.Acked, flow.GivenBack}
			if !slices.Equal(kinds, want) {
				t.Errorf("%s: %v", name, kinds)
			}
			if e := a.Events[0]; e.MessageID != "msg-1" || !e.Redelivered || e.Layer != flow.LayerBroker || a.Events[1].Redelivered || a.Events[1].Outcome != "ok" {
				t.Errorf("%s: %+v", name, e)
			}
			if !a.Covers(a.Events[0].At) || len(a.Coverage) != 1 || !strings.Contains(a.Source, "stream "+prefix+"idem_trail") {
				t.Errorf("%s: since %s, %v, %s", name, a.Since, a.Coverage, a.Source)
			}
			absent := teller.Tell(t.Context(), flow.Flow{}, flow.Key{BizType: "pay", BizID: "none"})
			if absent.State != flow.Absent || !absent.Covers(a.Events[0].At) || absent.Covers(a.Events[0].At.Add(-time.Hour)) {
				t.Errorf("%s: %+v", name, absent)
			}
		}
	}
}

// Consumers that are not instrumented are silent whatever they do.
func TestSilenceOfATypeThatNeverReportsProvesNothing(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	all := tellers(t, s, "")
	for name, teller := range all {
		testkit.Eventually(t, 30*time.Second, func() bool {
			a := teller.Tell(t.Context(), flow.Flow{}, paid)
			return a.State == flow.Unknown && a.Reason.EN == "no consumer reports a trail" && a.Since.IsZero()
		}, "%s: without a stream", name)
	}
	report(t, db.Client, "idem_trail", "received", flow.Key{BizType: "refund", BizID: "ORD-1"})
	for name, teller := range all {
		testkit.Eventually(t, 30*time.Second, func() bool {
			a := teller.Tell(t.Context(), flow.Flow{}, paid)
			return a.State == flow.Unknown && strings.Contains(a.Reason.EN, "no consumer of biz_type pay has reported") && a.Since.IsZero() && !a.Covers(time.Now())
		}, "%s: another type reports", name)
	}
	report(t, db.Client, "idem_trail", "received", flow.Key{BizType: "pay", BizID: "ORD-2"})
	for name, teller := range all {
		testkit.Eventually(t, 30*time.Second, func() bool { return teller.Tell(t.Context(), flow.Flow{}, paid).State == flow.Absent }, "%s: the type reports", name)
		// It counts from the first report of the type, not of the stream.
		a, other := teller.Tell(t.Context(), flow.Flow{}, paid), teller.Tell(t.Context(), flow.Flow{}, flow.Key{BizType: "refund", BizID: "1"})
		if a.Since.Before(other.Since) || a.Since.IsZero() || other.State != flow.Absent {
			t.Errorf("%s: since %s, the stream since %s", name, a.Since, other.Since)
		}
	}
}

func TestALongTrailIsReadFromItsBeginning(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	at := time.Now().Add(-time.Hour).UnixMilli()
	add := func(i int, k flow.Key) {
		do(t, db.Client, "XADD", "idem_trail", fmt.Sprintf("%d-1", at+int64(i)), "t", k.BizType, "b", k.BizID, "s", "received")
	}
	add(0, paid)
	for i := 1; i <= 3*trailPage; i++ {
		add(i, flow.Key{BizType: "pay", BizID: fmt.Sprint(i)})
	}
	for name, teller := range tellers(t, s, "") {
		testkit.Eventually(t, 30*time.Second, func() bool {
			a := teller.Tell(t.Context(), flow.Flow{}, paid)
			return a.State == flow.Found && a.Since.UnixMilli() == at
		}, "%s: the first entry is not found", name)
	}
	// Memory for a third of it: the latest are kept, and the coverage says so.
	small := follow(t, s, TrailOptions{MaxEvents: trailPage})
	last := flow.Key{BizType: "pay", BizID: fmt.Sprint(3 * trailPage)}
	testkit.Eventually(t, 30*time.Second, func() bool { return small.Tell(t.Context(), flow.Flow{}, last).State == flow.Found }, "the last entry is not found")
	if a := small.Tell(t.Context(), flow.Flow{}, paid); a.State != flow.Absent || a.Since.UnixMilli() < at+trailPage || a.Since.UnixMilli() > at+3*trailPage {
		t.Errorf("%s since %s", a.State, a.Since)
	}
}

func TestTrimmingThatOutrunsUsShortensTheCoverage(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	trail := s.NewTrail(TrailOptions{})
	poll := func() {
		t.Helper()
		if _, err := trail.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add := func(id string, k flow.Key) {
		do(t, db.Client, "XADD", "idem_trail", id, "t", k.BizType, "b", k.BizID, "s", "received")
	}
	at := time.Now().Add(-time.Hour).UnixMilli()
	add(fmt.Sprintf("%d-0", at), paid)
	poll()
	if a := trail.Tell(t.Context(), flow.Flow{}, paid); !a.Covers(time.UnixMilli(at)) {
		t.Fatalf("%+v", a)
	}
	add(fmt.Sprintf("%d-0", at+10), paid) // never read
	add(fmt.Sprintf("%d-0", at+20), flow.Key{BizType: "pay", BizID: "2"})
	do(t, db.Client, "XTRIM", "idem_trail", "MAXLEN", "1")
	poll()
	a := trail.Tell(t.Context(), flow.Flow{}, paid)
	if a.State != flow.Found || len(a.Events) != 1 || a.Covers(time.UnixMilli(at+19)) || !a.Covers(time.UnixMilli(at+20)) {
		t.Errorf("after a gap: since %s, %d events", a.Since, len(a.Events))
	}
	// The stream is deleted and begins anew, by a clock that went back.
	do(t, db.Client, "DEL", "idem_trail")
	poll()
	if a := trail.Tell(t.Context(), flow.Flow{}, flow.Key{BizType: "pay", BizID: "none"}); a.State != flow.Unknown || a.Reason.EN != "no consumer reports a trail" {
		t.Errorf("deleted: %s %s", a.State, a.Reason.EN)
	}
	add(fmt.Sprintf("%d-0", at+5), flow.Key{BizType: "pay", BizID: "3"})
	poll()
	if a := trail.Tell(t.Context(), flow.Flow{}, flow.Key{BizType: "pay", BizID: "3"}); a.State != flow.Found {
		t.Errorf("begun anew: %s %s", a.State, a.Reason.EN)
	}
}

func TestAnotherServerShortensTheCoverage(t *testing.T) {
	trail := (&Store{}).trailForTest()
	entry := func(ms int64) redis.XMessage {
		return redis.XMessage{ID: fmt.Sprintf("%d-0", ms), Values: map[string]any{"t": "pay", "b": "1", "s": "received"}}
	}
	at := time.Now().Add(-time.Hour).UnixMilli()
	first := []redis.XMessage{entry(at)}
	trail.take(first, first, "run-1")
	if !trail.since.Equal(time.UnixMilli(at)) {
		t.Fatalf("since %s", trail.since)
	}
	for _, run := range []string{"run-1", "", "run-1"} {
		if trail.take(nil, first, run); !trail.since.Equal(time.UnixMilli(at)) {
			t.Errorf("the same server: since %s", trail.since)
		}
	}
	before := time.Now()
	if trail.take(nil, first, "run-2"); trail.since.Before(before) {
		t.Errorf("another server: since %s", trail.since)
	}
}

func (s *Store) trailForTest() *Trail {
	s.opts = Options{Name: "main", Addresses: []string{"127.0.0.1:1"}}
	t := s.NewTrail(TrailOptions{})
	t.last = "0-0"
	return t
}

func TestBrokenEntriesAreCountedAndNamedOnce(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	xadd := func(args ...any) { do(t, db.Client, append([]any{"XADD", "idem_trail"}, args...)...) }
	xadd("1-1", "t", "pay", "b", "ORD-1", "s", "received")
	for range 3 {
		xadd("*", "b", "ORD-1", "s", "received")
		xadd("*", "t", "pay", "s", "received")
		xadd("*", "t", "pay", "b", "ORD-1", "o", "no step")
		xadd("*", "t", "pay", "b", strings.Repeat("x", maxTrailKey+1), "s", "received")
		xadd("*", "t", "pay", "b", "ORD-1", "s", "received", "r", "maybe", "o", strings.Repeat("y", 10*maxTrailText))
	}
	xadd("*", "t", "pay", "b", "\x00\xff\n'", "s", "received")
	var mu sync.Mutex
	var faults []string
	trail := follow(t, s, TrailOptions{Report: func(fault string) { mu.Lock(); faults = append(faults, fault); mu.Unlock() }})
	hostile := flow.Key{BizType: "pay", BizID: "\x00\xff\n'"}
	testkit.Eventually(t, 30*time.Second, func() bool { return trail.Tell(t.Context(), flow.Flow{}, hostile).State == flow.Found }, "an id of any bytes is not found")
	for _, a := range []*flow.Account{trail.Tell(t.Context(), flow.Flow{}, paid), s.NewTrailScan("").Tell(t.Context(), flow.Flow{}, paid)} {
		if len(a.Events) != 3 || a.Events[0].Redelivered || len(a.Events[0].Outcome) != maxTrailText {
			t.Errorf("%d events", len(a.Events))
		}
		if last := a.Coverage[len(a.Coverage)-1].EN; !strings.Contains(last, "16 entries break the contract") {
			t.Errorf("%q", last)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(faults) != 5 || !strings.HasPrefix(faults[0], "idem_trail: entries with ") {
		t.Errorf("%q", faults)
	}
}

func TestATrailThatCannotBeRead(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "SET", "idem_trail", "v")
	for name, teller := range tellers(t, s, "") {
		testkit.Eventually(t, 30*time.Second, func() bool {
			a := teller.Tell(t.Context(), flow.Flow{}, paid)
			return a.State == flow.Error && strings.Contains(a.Reason.EN, "idem_trail is no stream") && a.Since.IsZero()
		}, "%s: a key of another type", name)
	}
	proxy := testkit.NewProxy(t, db.Addr)
	away := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB})
	do(t, db.Client, "DEL", "idem_trail")
	report(t, db.Client, "idem_trail", "received", paid)
	trail := follow(t, away, TrailOptions{})
	state := func(want flow.State) func() bool {
		return func() bool { return trail.Tell(t.Context(), flow.Flow{}, paid).State == want }
	}
	testkit.Eventually(t, 30*time.Second, state(flow.Found), "it is not found")
	first := trail.Tell(t.Context(), flow.Flow{}, paid)
	proxy.Drop(true)
	testkit.Eventually(t, 30*time.Second, state(flow.Error), "a server that is away goes unnoticed")
	if a := trail.Tell(t.Context(), flow.Flow{}, paid); len(a.Events) != 1 || a.Covers(time.Now()) || a.Reason.Empty() {
		t.Errorf("away: %+v", a)
	}
	report(t, db.Client, "idem_trail", "done", paid)
	proxy.Drop(false)
	testkit.Eventually(t, 30*time.Second, func() bool { return len(trail.Tell(t.Context(), flow.Flow{}, paid).Events) == 2 }, "it does not come back")
	// The stream kept everything meanwhile: nothing was missed.
	if a := trail.Tell(t.Context(), flow.Flow{}, paid); a.State != flow.Found || !a.Since.Equal(first.Since) {
		t.Errorf("since %s, was %s", a.Since, first.Since)
	}
}

func TestTheTrailIsReadWithLittleLeaveAndChangesNothing(t *testing.T) {
	server := testkit.StartRedis(t)
	grant(t, server.Addr, slices.Concat([]string{"%R~idem_trail"}, grantsForTrail)...)
	client := admin(t, server.Addr)
	for range 10 {
		report(t, client, "idem_trail", "received", paid)
	}
	s := open(t, Options{Addresses: []string{server.Addr}, User: "observer", Password: "pass-of-observer"})
	seen := monitor(t, server.Addr, func() {
		for name, teller := range tellers(t, s, "") {
			testkit.Eventually(t, 30*time.Second, func() bool { return len(teller.Tell(t.Context(), flow.Flow{}, paid).Events) == 10 }, "%s: %+v", name, teller.Tell(t.Context(), flow.Flow{}, paid))
		}
	})
	for _, line := range seen {
		if !slices.ContainsFunc([]string{`"xread"`, `"xrange"`, `"xlen"`, `"xrevrange"`, `"info"`, `"time"`, `"config"`}, func(c string) bool { return strings.Contains(line, c) }) {
			t.Errorf("%s", line)
		}
	}
	groups, err := client.XInfoGroups(t.Context(), "idem_trail").Result()
	if err != nil || len(groups) != 0 || client.XLen(t.Context(), "idem_trail").Val() != 10 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

func TestAScanStopsAtItsBudgetAndSaysSo(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	report(t, db.Client, "idem_trail", "received", paid)
	const more = maxScanned + 10
	pipe := db.Client.Pipeline()
	for i := range more {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: "idem_trail", Values: []any{"t", "pay", "b", fmt.Sprint(i), "s", "received"}})
		if i%5000 == 0 || i == more-1 {
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := s.NewTrailScan("").Tell(t.Context(), flow.Flow{}, paid)
	if a.State != flow.Absent || a.Since.IsZero() || !strings.Contains(a.Coverage[len(a.Coverage)-1].EN, "only the latest ") {
		t.Errorf("%s since %s, %v", a.State, a.Since, a.Coverage)
	}
	first, _ := streamTime(db.Client.XRangeN(t.Context(), "idem_trail", "-", "+", 1).Val()[0].ID)
	if a.Covers(first.Add(-time.Millisecond)) {
		t.Error("it claims more than it has read")
	}
}

func TestTrailOfACluster(t *testing.T) {
	t.Parallel()
	addresses := startCluster(t)
	all := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, DisableIdentity: true})
	defer all.Close()
	report(t, all, "idem_trail", "received", paid)
	s := open(t, Options{Addresses: addresses[:1], Mode: ModeCluster})
	for name, teller := range tellers(t, s, "") {
		testkit.Eventually(t, 30*time.Second, func() bool { return teller.Tell(t.Context(), flow.Flow{}, paid).State == flow.Found }, "%s", name)
	}
}

func TestIDsOfEntriesInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"2-0", "1-9", true}, {"10-0", "9-0", true}, {"1-10", "1-9", true}, {"1-1", "1-1", false}, {"1-0", "2-0", false}, {"1-0", "", true},
	} {
		if got := after(c.a, c.b); got != c.want {
			t.Errorf("%s after %s: %v", c.a, c.b, got)
		}
	}
	if got := idBefore("5-3") + " " + idBefore("5-0"); got != "5-2 4-18446744073709551615" {
		t.Error(got)
	}
}
