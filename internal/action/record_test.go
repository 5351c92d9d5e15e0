package action

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"idemscope/internal/audit"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// Short names for what tests put between actor and store.
type (
	contextT  = context.Context
	expectedT = lockstore.Expected
	releasedT = lockstore.Released
)

var errDisk = errors.New("no space left on device")

func TestAStaleRecordIsSetBack(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"1", "", "' OR 1=1 -- ", "a\x00b", "长 ", `\`} {
		p := place("pay", id)
		r.record(t, "record", "pay", id, 1, time.Hour)
		pre := r.look(t, ResetRecord, p)
		if !pre.Allowed() || !pre.Kind.Retype() || len(pre.Effects) != 3 || !strings.Contains(pre.Effects[2].Command, "UPDATE") {
			t.Fatalf("%q: %v %+v", id, codes(pre.Refusals), pre.Effects)
		}
		got := r.order(t, pre)
		if got.Outcome != audit.Done || r.status(t, "pay", id) != 3 || got.Now.Record.Rows[0].Age > time.Minute {
			t.Errorf("%q: %+v", id, got)
		}
		e := r.wantJournal(t, p, audit.Begun, audit.Done)[1]
		if !strings.Contains(e.Before, "status=1") || !strings.Contains(e.After, "status=3") {
			t.Errorf("%q: %+v", id, e)
		}
		if got := r.order(t, pre); got.Outcome != audit.Refused || got.Code != "changed" {
			t.Errorf("%q: %+v", id, got)
		}
		if pre := r.look(t, ResetRecord, p); pre.Nothing.Empty() {
			t.Errorf("%q: %+v", id, pre)
		}
	}
	var n int
	if err := r.db.DB.Get(&n, "SELECT COUNT(*) FROM record WHERE status <> 3"); err != nil || n != 0 {
		t.Errorf("%d %v", n, err)
	}
}

func TestWhatMayNotBeSetBack(t *testing.T) {
	r := newRig(t)
	r.record(t, "record", "pay", "locked", 1, time.Hour)
	r.set(t, "lock:pay:locked", "v", time.Minute)
	r.wantRefused(t, ResetRecord, place("pay", "locked"), "lock_held")
	r.record(t, "record", "pay", "young", 1, time.Minute)
	r.wantRefused(t, ResetRecord, place("pay", "young"), "not_stale")
	r.record(t, "record", "pay", "done", 2, time.Hour)
	r.wantRefused(t, ResetRecord, place("pay", "done"), "completed")
	r.record(t, "record", "pay", "odd", 9, time.Hour)
	r.wantRefused(t, ResetRecord, place("pay", "odd"), "not_stale")
	r.record(t, "record", "payout", "1", 1, time.Hour)
	r.wantRefused(t, ResetRecord, place("payout", "1"), "rerun_never")
	r.record(t, "record", "pay", "twice", 1, time.Hour)
	r.record(t, "record", "pay", "twice", 1, time.Hour)
	r.wantRefused(t, ResetRecord, place("pay", "twice"), "several_rows")
	r.record(t, "folded", "folded", "ABC", 1, time.Hour)
	r.wantRefused(t, ResetRecord, place("folded", "abc"), "key_ambiguous")
	r.db.Exec(t, "INSERT INTO logged VALUES ('1', UTC_TIMESTAMP() - INTERVAL 1 HOUR)")
	r.wantRefused(t, ResetRecord, place("log", "1"), "no_status")
	r.record(t, "record", "pay", "ahead", 1, -time.Hour)
	r.wantRefused(t, ResetRecord, place("pay", "ahead"), "not_stale")
	var n int
	if err := r.db.DB.Get(&n, "SELECT (SELECT COUNT(*) FROM record WHERE status = 3) + (SELECT COUNT(*) FROM folded WHERE status = 3)"); err != nil || n != 0 {
		t.Errorf("%d rows were changed (%v)", n, err)
	}
	if pre := r.look(t, ResetRecord, place("pay", "nowhere")); pre.Nothing.Empty() {
		t.Errorf("%+v", pre)
	}
	// Nobody may write.
	r.Actor.options.Ledgers["orders"] = Records{Plan: r.options.Ledgers["orders"].Plan}
	r.record(t, "record", "pay", "stale", 1, time.Hour)
	r.wantRefused(t, ResetRecord, place("pay", "stale"), "no_credential")
}

func TestWhatChangedInTheRecordBetweenScreenAndClick(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		id, code string
		outcome  audit.Outcome
		change   string
	}{
		{"completed", "completed", audit.Refused, "UPDATE record SET status = 2 WHERE biz_id = ?"},
		{"touched", "changed", audit.Refused, "UPDATE record SET update_time = update_time + INTERVAL 1 MICROSECOND WHERE biz_id = ?"},
		{"failed", "changed", audit.Refused, "UPDATE record SET status = 3 WHERE biz_id = ?"},
		{"gone", "already_gone", audit.Nothing, "DELETE FROM record WHERE biz_id = ?"},
		{"anew", "changed", audit.Refused, "UPDATE record SET id = id + 1000 WHERE biz_id = ?"},
		{"twice", "several_rows", audit.Refused, "INSERT INTO record (biz_type, biz_id, status, create_time, update_time) SELECT biz_type, biz_id, 1, create_time, update_time FROM record WHERE biz_id = ?"},
	} {
		r.record(t, "record", "pay", c.id, 1, time.Hour)
		pre := r.look(t, ResetRecord, place("pay", c.id))
		r.db.Exec(t, c.change, c.id)
		got := r.order(t, pre)
		has := got.Code == c.code
		for _, code := range codes(got.Refusals) {
			has = has || code == c.code
		}
		if got.Outcome != c.outcome || !has {
			t.Errorf("%s: %s %s %v", c.id, got.Outcome, got.Code, codes(got.Refusals))
		}
	}
	r.record(t, "record", "pay", "locked", 1, time.Hour)
	pre := r.look(t, ResetRecord, place("pay", "locked"))
	r.set(t, "lock:pay:locked", "new", time.Minute)
	if got := r.order(t, pre); got.Outcome != audit.Refused || got.Code != "lock_held" {
		t.Errorf("%+v", got)
	}
}

// The database decides when the record changes between our last look and the UPDATE.
func TestTheDatabaseComparesOnceMore(t *testing.T) {
	r := newRig(t)
	records := r.options.Ledgers["orders"]
	between := func(change func()) {
		r.Actor.options.Ledgers["orders"] = Records{Plan: records.Plan, Reset: func(ctx context.Context, p ledger.ResetPlan) (bool, error) {
			change()
			return records.Reset(ctx, p)
		}}
	}
	r.record(t, "record", "pay", "1", 1, time.Hour)
	between(func() { r.db.Exec(t, "UPDATE record SET status = 2") })
	got := r.order(t, r.look(t, ResetRecord, place("pay", "1")))
	if got.Outcome != audit.Refused || got.Code != "changed" || !strings.Contains(got.Why.EN, "status=2") || r.status(t, "pay", "1") != 2 {
		t.Errorf("%+v", got)
	}
	r.record(t, "record", "pay", "2", 1, time.Hour)
	between(func() { r.proxies["mysql"].Drop(true) })
	got = r.order(t, r.look(t, ResetRecord, place("pay", "2")))
	r.proxies["mysql"].Drop(false)
	if got.Outcome != audit.Failed || !strings.Contains(got.Why.EN, "nothing was changed") || r.status(t, "pay", "2") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestOfTwoWhoSetBackAtOnceOneDoesAndOneIsTold(t *testing.T) {
	r := newRig(t)
	other, err := New(r.options)
	if err != nil {
		t.Fatal(err)
	}
	for i, second := range []*Actor{r.Actor, other} {
		id := string(rune('a' + i))
		r.record(t, "record", "pay", id, 1, time.Hour)
		pre := r.look(t, ResetRecord, place("pay", id))
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
			case one.Outcome == audit.Refused && one.Code == "changed" && strings.Contains(one.Why.EN, "status=3"):
				told++
			}
		}
		if done != 1 || told != 1 {
			t.Errorf("%+v", results)
		}
	}
}

// What consumers report can prove that a run goes on.
func TestARunThatConsumersReportIsNotTouched(t *testing.T) {
	var account *flow.Account
	r := newRig(t, func(r *rig, _ []flow.Flow) { r.gather.Trail = told(func() *flow.Account { return account }) })
	r.record(t, "record", "pay", "1", 1, time.Hour)
	r.set(t, "lock:pay:1", "v", 0)
	now := time.Now()
	account = &flow.Account{Observation: flow.Observation{State: flow.Found, ReadAt: now}, Events: []flow.Event{{Kind: flow.RunBegan, At: now.Add(-time.Minute), Worker: "web1:77"}}}
	r.wantRefused(t, ReleaseLock, place("pay", "1"), "holder_alive")
	r.redis.Del(t.Context(), "lock:pay:1")
	r.wantRefused(t, ResetRecord, place("pay", "1"), "holder_alive")
	account = &flow.Account{Observation: flow.Observation{State: flow.Error, ReadAt: now, Reason: flow.T("down", "不可用")}}
	r.wantRefused(t, ResetRecord, place("pay", "1"), "layer_unread")
	account = &flow.Account{Observation: flow.Observation{State: flow.Found, ReadAt: now}, Events: []flow.Event{{Kind: flow.RunBegan, At: now.Add(-time.Hour)}}}
	if pre := r.look(t, ResetRecord, place("pay", "1")); !pre.Allowed() {
		t.Errorf("%v", codes(pre.Refusals))
	}
}

// told is a source of events that says what it is given.
type told func() *flow.Account

func (f told) Tell(context.Context, flow.Flow, flow.Key) *flow.Account { return f() }
