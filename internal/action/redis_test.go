package action

import (
	"strings"
	"sync"
	"testing"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

func TestALockIsReleasedAndTheDeedIsKept(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"1", "", "a\x00b", "长 ", `'"\`, "{}*?", strings.Repeat("x", 100)} {
		p := place("pay", id)
		key := "lock:pay:" + id
		r.set(t, key, "dead-worker", 0)
		pre := r.look(t, ReleaseLock, p)
		if !pre.Allowed() || len(pre.Effects) != 3 || pre.Kind.Retype() {
			t.Fatalf("%q: %+v", id, pre.Refusals)
		}
		if v := r.value(t, key); v != "dead-worker" {
			t.Fatalf("%q: the precheck changed the lock to %s", id, v)
		}
		got := r.order(t, pre)
		if got.Outcome != audit.Done || r.value(t, key) != "-" || got.Now == nil || got.Now.Lock.State != flow.Absent {
			t.Errorf("%q: %+v", id, got)
		}
		entries := r.wantJournal(t, p, audit.Begun, audit.Done)
		e := entries[1]
		if e.Who != "alice" || e.From != "10.0.0.7" || e.Reason != "because" || e.Action != "release-lock" || e.Place != p || !strings.Contains(e.Before, "dead-worker") || !strings.Contains(e.After, "absent") || e.Why.ZH == "" {
			t.Errorf("%q: %+v", id, e)
		}
		// It stands on the key's timeline.
		found := false
		for _, line := range got.Now.Story() {
			found = found || line.Kind == flow.Acted
		}
		again, _ := r.options.Desk.Answer(t.Context(), p)
		for _, line := range again.Story() {
			found = found || line.Kind == flow.Acted && line.Worker == "alice" && line.Outcome == "done"
		}
		if !found {
			t.Errorf("%q: the action is not on the timeline", id)
		}
		// Once more: there is nothing left to do.
		if got := r.order(t, pre); got.Outcome != audit.Nothing || got.Code != "already_gone" {
			t.Errorf("%q: %+v", id, got)
		}
	}
}

func TestAMarkerIsCleared(t *testing.T) {
	r := newRig(t)
	r.record(t, "record", "pay", "1", 3, 10*time.Minute)
	r.set(t, "marker:pay:1", "processing", time.Hour)
	got := r.order(t, r.look(t, ClearMarker, place("pay", "1")))
	if got.Outcome != audit.Done || r.value(t, "marker:pay:1") != "-" {
		t.Errorf("%+v", got)
	}
	r.wantJournal(t, place("pay", "1"), audit.Begun, audit.Done)
	if pre := r.look(t, ClearMarker, place("pay", "1")); pre.Nothing.Empty() || pre.Allowed() {
		t.Errorf("%+v", pre)
	}
}

func TestWhatMayNotBeReleased(t *testing.T) {
	r := newRig(t)
	do := func(args ...any) {
		t.Helper()
		if err := r.redis.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("HSET", "lock:pay:hash", "f", "v")
	r.wantRefused(t, ReleaseLock, place("pay", "hash"), "foreign_type")
	r.set(t, "shared:1", "v", 0)
	r.wantRefused(t, ReleaseLock, place("a", "1"), "ambiguous_owner")
	r.set(t, "lock:pay:long", strings.Repeat("v", 5000), 0)
	r.wantRefused(t, ReleaseLock, place("pay", "long"), "value_cut")
	r.wantRefused(t, ReleaseLock, place("bare", "1"), "no_lock")
	// A young record, a lock just taken, and a lock that is being extended are signs of life.
	r.record(t, "record", "pay", "young", 1, time.Minute)
	r.set(t, "lock:pay:young", "v", time.Minute)
	r.wantRefused(t, ReleaseLock, place("pay", "young"), "holder_alive")
	r.set(t, "lock:pay:fresh", "v", time.Minute)
	r.wantRefused(t, ReleaseLock, place("pay", "fresh"), "holder_alive")
	r.set(t, "lock:pay:watched", "v", 20*time.Second)
	r.look(t, ReleaseLock, place("pay", "watched"))
	r.set(t, "lock:pay:watched", "v", 40*time.Second)
	r.wantRefused(t, ReleaseLock, place("pay", "watched"), "holder_alive")
	// A watchdog extends this flow's locks: one set long after the record's last sign of life is such an extension.
	r.record(t, "record", "watched", "1", 1, 10*time.Minute)
	r.set(t, "lock:watched:1", "v", 50*time.Second)
	r.wantRefused(t, ReleaseLock, place("watched", "1"), "holder_alive")
	// Another id answers for this key.
	r.record(t, "folded", "folded", "ABC", 1, time.Hour)
	r.set(t, "lock:folded:abc", "v", 0)
	r.wantRefused(t, ReleaseLock, place("folded", "abc"), "key_ambiguous")
	for key, want := range map[string]string{"lock:pay:long": strings.Repeat("v", 5000), "shared:1": "v", "lock:pay:young": "v", "lock:pay:fresh": "v", "lock:pay:watched": "v", "lock:folded:abc": "v"} {
		if got := r.value(t, key); got != want {
			t.Errorf("%s is %s", key, got)
		}
	}
}

func TestWhatMayNotBeCleared(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		id, code string
		set      func(id string)
	}{
		{"done", "completed", func(id string) { r.record(t, "record", "pay", id, 2, time.Hour) }},
		{"archived", "completed", func(id string) { r.record(t, "record_archive", "pay", id, 2, time.Hour) }},
		{"running", "holder_alive", func(id string) { r.record(t, "record", "pay", id, 1, time.Second) }},
	} {
		c.set(c.id)
		r.set(t, "marker:pay:"+c.id, "1", time.Hour)
		r.wantRefused(t, ClearMarker, place("pay", c.id), c.code)
		if r.value(t, "marker:pay:"+c.id) != "1" {
			t.Errorf("%s: the marker is gone", c.id)
		}
	}
	r.set(t, "sharedmarker:1", "1", time.Hour)
	r.wantRefused(t, ClearMarker, place("a", "1"), "ambiguous_owner")
	if err := r.redis.LPush(t.Context(), "marker:pay:list", "x").Err(); err != nil {
		t.Fatal(err)
	}
	r.wantRefused(t, ClearMarker, place("pay", "list"), "foreign_type")
	r.wantRefused(t, ClearMarker, place("bare", "1"), "no_marker")
	// Presence means completed here.
	r.db.Exec(t, "INSERT INTO logged VALUES ('1', UTC_TIMESTAMP() - INTERVAL 1 HOUR)")
	r.set(t, "marker:log:1", "1", time.Hour)
	r.wantRefused(t, ClearMarker, place("log", "1"), "completed")
}

// Whatever happens between screen and click is told, and nothing is deleted.
func TestWhatChangedBetweenScreenAndClick(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		id, code, keeps string
		outcome         audit.Outcome
		set, change     func(key string)
	}{
		{"value", "changed", "other", audit.Refused, func(k string) { r.set(t, k, "mine", 0) }, func(k string) { r.set(t, k, "other", 0) }},
		{"extended", "extended", "1", audit.Refused, func(k string) { r.set(t, k, "1", 30*time.Second) }, func(k string) { r.set(t, k, "1", 50*time.Second) }},
		{"bounded", "extended", "1", audit.Refused, func(k string) { r.set(t, k, "1", 0) }, func(k string) { r.set(t, k, "1", 30*time.Second) }},
		{"unbounded", "extended", "1", audit.Refused, func(k string) { r.set(t, k, "1", 30*time.Second) }, func(k string) { r.set(t, k, "1", 0) }},
		{"gone", "already_gone", "-", audit.Nothing, func(k string) { r.set(t, k, "1", 0) }, func(k string) { r.redis.Del(t.Context(), k) }},
		{"appeared", "changed", "1", audit.Refused, func(string) {}, func(k string) { r.set(t, k, "1", 0) }},
		{"type", "foreign_type", "-", audit.Refused, func(k string) { r.set(t, k, "1", 0) }, func(k string) { r.redis.Del(t.Context(), k); r.redis.RPush(t.Context(), k, "x") }},
		{"begun", "holder_alive", "1", audit.Refused, func(k string) { r.set(t, k, "1", 0) }, func(string) { r.record(t, "record", "pay", "begun", 1, 0) }},
	} {
		key := "lock:pay:" + c.id
		c.set(key)
		pre := r.look(t, ReleaseLock, place("pay", c.id))
		c.change(key)
		got := r.order(t, pre)
		has := false
		for _, code := range append(codes(got.Refusals), got.Code) {
			has = has || code == c.code
		}
		if got.Outcome != c.outcome || !has {
			t.Errorf("%s: %s %v %s", c.id, got.Outcome, codes(got.Refusals), got.Code)
		}
		if c.id == "value" && !strings.Contains(got.Why.EN, "now held by other") {
			t.Errorf("%s", got.Why.EN)
		}
		if v := r.value(t, key); v != c.keeps {
			t.Errorf("%s: the key is %s", c.id, v)
		}
		if c.id == "type" && r.redis.LLen(t.Context(), key).Val() != 1 {
			t.Errorf("the list is gone")
		}
	}
}

// The server decides when the value changes between our last look and the script.
func TestTheServerComparesOnceMore(t *testing.T) {
	r := newRig(t)
	release := r.options.Redis["main"].Release
	for _, c := range []struct {
		id, code string
		change   func(key string)
	}{
		{"value", "changed", func(k string) { r.set(t, k, "other", 0) }},
		{"expiry", "extended", func(k string) { r.set(t, k, "v", time.Minute) }},
		{"type", "foreign_type", func(k string) { r.redis.Del(t.Context(), k); r.redis.RPush(t.Context(), k, "x") }},
		{"gone", "already_gone", func(k string) { r.redis.Del(t.Context(), k) }},
	} {
		key := "lock:pay:" + c.id
		r.set(t, key, "v", 0)
		r.Actor.options.Redis["main"] = Redis{Release: func(ctx contextT, e expectedT) (releasedT, error) {
			c.change(key)
			return release(ctx, e)
		}}
		if got := r.order(t, r.look(t, ReleaseLock, place("pay", c.id))); got.Code != c.code {
			t.Errorf("%s: %+v", c.id, got)
		}
	}
}

func TestOfTwoWhoReleaseAtOnceOneDoesAndOneIsTold(t *testing.T) {
	r := newRig(t)
	// The second actor is another process: it shares no guard with the first.
	other, err := New(r.options)
	if err != nil {
		t.Fatal(err)
	}
	for _, second := range []*Actor{r.Actor, other} {
		r.set(t, "lock:pay:1", "v", 0)
		pre := r.look(t, ReleaseLock, place("pay", "1"))
		results := make([]Result, 2)
		var both sync.WaitGroup
		for i, actor := range []*Actor{r.Actor, second} {
			both.Go(func() { results[i] = actor.Do(as(t, alice), pre.Ticket, "because") })
		}
		both.Wait()
		done, told := 0, 0
		for _, one := range results {
			switch {
			case one.Outcome == audit.Done:
				done++
			case one.Outcome == audit.Nothing && one.Code == "already_gone" && !one.Why.Empty():
				told++
			}
		}
		if done != 1 || told != 1 {
			t.Errorf("%+v", results)
		}
	}
}

func TestAStoreThatDoesNotAnswerRefusesOrFails(t *testing.T) {
	r := newRig(t)
	r.gather.Deadline = time.Second
	r.set(t, "lock:pay:1", "v", 0)
	pre := r.look(t, ReleaseLock, place("pay", "1"))
	r.proxies["mysql"].Drop(true)
	r.wantRefused(t, ReleaseLock, place("pay", "1"), "layer_unread")
	r.wantRefused(t, ClearMarker, place("pay", "1"), "layer_unread")
	r.wantRefused(t, ResetRecord, place("pay", "1"), "layer_unread")
	r.proxies["mysql"].Drop(false)
	r.proxies["redis"].Drop(true)
	if got := r.order(t, pre); got.Outcome != audit.Refused || got.Code != "layer_unread" {
		t.Errorf("%+v", got)
	}
	r.proxies["redis"].Drop(false)
	// It goes down between the look and the script.
	release := r.options.Redis["main"].Release
	r.Actor.options.Redis["main"] = Redis{Release: func(ctx contextT, e expectedT) (releasedT, error) {
		r.proxies["redis"].Drop(true)
		return release(ctx, e)
	}}
	got := r.order(t, r.look(t, ReleaseLock, place("pay", "1")))
	r.proxies["redis"].Drop(false)
	if got.Outcome != audit.Failed || !strings.Contains(got.Why.EN, "not known") || r.value(t, "lock:pay:1") != "v" {
		t.Errorf("%+v", got)
	}
	r.wantJournal(t, place("pay", "1"), audit.Begun, audit.Failed)
}

func TestWithoutAJournalNothingIsChanged(t *testing.T) {
	r := newRig(t)
	r.set(t, "lock:pay:1", "v", 0)
	for _, path := range []string{"/dev/null", t.TempDir(), t.TempDir() + "/gone/audit"} {
		bad, err := audit.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r.Actor.options.Journal = bad
		got := r.order(t, r.look(t, ReleaseLock, place("pay", "1")))
		if got.Outcome != audit.Refused || got.Code != "audit_unwritable" || got.Why.ZH == "" || r.value(t, "lock:pay:1") != "v" {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// journalFailsAfter lets n entries through.
type journalFailsAfter struct {
	*audit.Log
	n int
}

func (j *journalFailsAfter) Append(ctx contextT, e audit.Entry) error {
	if j.n--; j.n < 0 {
		return errDisk
	}
	return j.Log.Append(ctx, e)
}

func TestAnEndThatCannotBeKeptIsSaid(t *testing.T) {
	r := newRig(t)
	r.set(t, "lock:pay:1", "v", 0)
	r.Actor.options.Journal = &journalFailsAfter{r.log, 1}
	got := r.order(t, r.look(t, ReleaseLock, place("pay", "1")))
	if got.Outcome != audit.Done || got.Unkept.EN == "" || got.Unkept.ZH == "" {
		t.Errorf("%+v", got)
	}
	r.wantJournal(t, place("pay", "1"), audit.Begun)
}

func TestWhoMayNotActIsRefusedAndKept(t *testing.T) {
	r := newRig(t)
	r.set(t, "lock:pay:1", "v", 0)
	pre := r.look(t, ReleaseLock, place("pay", "1"))
	old, future, strange := pre.Ticket, pre.Ticket, pre.Ticket
	old.At, future.At, strange.Kind = old.At.Add(-time.Hour), future.At.Add(time.Hour), "drop-table"
	for _, c := range []struct {
		what, code, reason string
		who                access.Person
		ticket             Ticket
	}{
		{"a viewer", "not_operator", "because", access.Person{Name: "eve", Roles: []access.Role{access.Viewer, access.Payload}}, pre.Ticket},
		{"nobody", "not_operator", "because", access.Person{}, pre.Ticket},
		{"no reason", "reason_missing", "", alice, pre.Ticket},
		{"blanks", "reason_missing", " \t\n", alice, pre.Ticket},
		{"a long reason", "reason_too_long", strings.Repeat("x", 3000), alice, pre.Ticket},
		{"an old screen", "too_old", "because", alice, old},
		{"a screen to come", "too_old", "because", alice, future},
		{"no such action", "no_such_action", "because", alice, strange},
	} {
		got := r.Do(as(t, c.who), c.ticket, c.reason)
		if got.Outcome != audit.Refused || got.Code != c.code || got.Why.ZH == "" {
			t.Errorf("%s: %+v", c.what, got)
		}
		if e := r.wantJournal(t, place("pay", "1"), audit.Refused)[0]; e.Who != c.who.Name {
			t.Errorf("%s: %+v", c.what, e)
		}
	}
	if r.value(t, "lock:pay:1") != "v" {
		t.Error("the lock is gone")
	}
	for _, text := range []string{"", "x", "e30", "!"} {
		if _, err := ParseTicket(text); err == nil {
			t.Errorf("%q is a ticket", text)
		}
	}
}
