package console

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/action"
	"idemscope/internal/audit"
	"idemscope/internal/broker"
	"idemscope/internal/lockstore"
)

func TestWithoutACredentialNothingIsChanged(t *testing.T) {
	r := newDeedRig(t, func(r *deedRig) {
		r.alter = func(o *action.Options) {
			o.Redis, o.Brokers = nil, nil
			o.Ledgers["orders"] = action.Records{Plan: o.Ledgers["orders"].Plan}
		}
	})
	r.settled(t, "pay", "pay", 0, 0)
	r.set(t, "lock:pay:1", "v", 0)
	r.set(t, "marker:pay:1", "v", 0)
	r.record(t, "record", "pay", "stale", 1, time.Hour)
	for kind, id := range map[string]string{"release-lock": "1", "clear-marker": "1", "reset-record": "stale", "replay": "nowhere"} {
		r.refused(t, kind, "pay", id, "no_credential")
	}
	if r.redis.Exists(t.Context(), "lock:pay:1", "marker:pay:1").Val() != 2 || r.statusOf(t, "stale") != 1 {
		t.Error("something was changed")
	}
}

// What a replica shows may be out of date: no action rests on it.
func TestNothingIsChangedOnAReplicasWord(t *testing.T) {
	r := newDeedRig(t, func(r *deedRig) { r.replica = true })
	r.settled(t, "pay", "pay", 0, 0)
	r.record(t, "record", "pay", "1", 1, time.Hour)
	r.set(t, "lock:pay:1", "v", 0)
	r.set(t, "marker:pay:1", "v", 0)
	for _, kind := range action.Kinds {
		r.refused(t, string(kind), "pay", "1", "replica")
	}
}

// The record's time lies ahead of the database: the verdict is in doubt, and nothing else speaks against it.
func TestWhereTheVerdictIsInDoubtNothingIsReplayed(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	r.record(t, "record", "pay", "ahead", 3, -time.Hour)
	r.refused(t, "replay", "pay", "ahead", "cannot_tell")
}

func TestAnOldScreenIsNotActedOn(t *testing.T) {
	r := newDeedRig(t)
	r.set(t, "lock:log:1", "v", 0)
	for _, shift := range []time.Duration{-16 * time.Minute, 16 * time.Minute} {
		form := r.form(t, "release-lock", "log", "1")
		ticket, err := action.ParseTicket(form.Get("ticket"))
		if err != nil {
			t.Fatal(err)
		}
		ticket.At = ticket.At.Add(shift)
		form.Set("ticket", ticket.String())
		form.Set("reason", "because")
		if got := r.submit(t, form); got.StatusCode != http.StatusConflict || !strings.Contains(got.document(t).words(), "too_old") {
			t.Errorf("%v: %d", shift, got.StatusCode)
		}
		status, got, _ := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "because", Ticket: ticket.String(), Execute: true})
		if status != http.StatusConflict || got.Code != "too_old" || got.Why == "" {
			t.Errorf("%v: %d %+v", shift, status, got)
		}
	}
	if r.redis.Get(t.Context(), "lock:log:1").Val() != "v" {
		t.Error("the lock is gone")
	}
}

// No entry, no deed: by page, by API, and for each of many keys.
func TestAnAttemptThatCannotBeKeptIsNotMade(t *testing.T) {
	r := newDeedRig(t, func(r *deedRig) {
		r.alter = func(o *action.Options) {
			bad, err := audit.Open(filepath.Join(t.TempDir(), "gone", "audit.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			o.Journal = bad
		}
	})
	r.set(t, "lock:log:1", "v", 0)
	form := r.form(t, "release-lock", "log", "1")
	form.Set("reason", "because")
	if got := r.submit(t, form); got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got.document(t).words(), "audit_unwritable") {
		t.Errorf("%d\n%s", got.StatusCode, got.document(t).words())
	}
	status, got, _ := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "because", Execute: true})
	if status != http.StatusServiceUnavailable || got.Code != "audit_unwritable" || got.Outcome != audit.Refused {
		t.Errorf("%d %+v", status, got)
	}
	many := r.many(t, manyOrder{Action: "release-lock", Keys: []keyOrder{{Type: "log", ID: "1"}}, Reason: "because", Execute: true})
	if many.StatusCode != http.StatusServiceUnavailable || !strings.Contains(many.body, "audit_unwritable") {
		t.Errorf("%d %s", many.StatusCode, many.body)
	}
	if r.redis.Get(t.Context(), "lock:log:1").Val() != "v" {
		t.Error("the lock is gone")
	}
}

// Somebody acts on the key and does not come to an end: the next one is told so.
func TestAKeyThatSomebodyElseIsActingOnIsBusy(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	r := newDeedRig(t, func(r *deedRig) {
		r.alter = func(o *action.Options) {
			o.Limit = 3 * time.Second
			release := o.Redis["main"].Release
			o.Redis["main"] = action.Redis{Release: func(ctx context.Context, e lockstore.Expected) (lockstore.Released, error) {
				close(begun)
				<-goOn
				return release(context.WithoutCancel(ctx), e)
			}}
		}
	})
	r.set(t, "lock:log:1", "v", 0)
	_, _, pre := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1"})
	first := make(chan action.ResultJSON)
	go func() {
		_, got, _ := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "first", Ticket: pre.Ticket, Execute: true})
		first <- got
	}()
	<-begun
	status, got, _ := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "second", Ticket: pre.Ticket, Execute: true})
	if status != http.StatusConflict || got.Code != "busy" || got.Why == "" || r.redis.Exists(t.Context(), "lock:log:1").Val() != 1 {
		t.Errorf("%d %+v", status, got)
	}
	close(goOn)
	if got := <-first; got.Outcome != audit.Done || got.Code != "done" {
		t.Errorf("%+v", got)
	}
	page, err := r.log.Read(t.Context(), audit.Query{Outcome: audit.Refused})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Reason != "second" {
		t.Errorf("%+v %v", page.Entries, err)
	}
}

// A replay whose end is not known is refused to whoever has not been shown it.
func TestAMessageThatMayHaveBeenReplayedBeforeIsNotReplayedUnseen(t *testing.T) {
	dying := &dyingReplay{}
	r := newDeedRig(t, func(r *deedRig) {
		r.alter = func(o *action.Options) {
			dying.Replayer, dying.Journal = o.Brokers["rabbit"], o.Journal
			o.Brokers["rabbit"], o.Journal = dying, dying
		}
	})
	if err := r.ch.PublishWithContext(t.Context(), "", "pay.dlq", false, false, amqp.Publishing{Body: []byte(`{"biz_id":"7"}`)}); err != nil {
		t.Fatal(err)
	}
	r.settled(t, "pay", "pay.dlq", 1, 0)
	_, _, unaware := r.api(t, "replay", actionOrder{Type: "pay", ID: "7"})
	order := actionOrder{Type: "pay", ID: "7", Reason: "because", Ticket: unaware.Ticket, Execute: true}
	dying.dies = true
	if status, got, _ := r.api(t, "replay", order); status != http.StatusServiceUnavailable || got.Unkept == "" {
		t.Fatalf("%d %+v", status, got)
	}
	dying.dies = false
	if status, got, _ := r.api(t, "replay", order); status != http.StatusConflict || got.Code != "replayed_before" || got.Why == "" {
		t.Errorf("%d %+v", status, got)
	}
	// Whoever has seen the warning may.
	status, _, aware := r.api(t, "replay", actionOrder{Type: "pay", ID: "7"})
	if status != http.StatusOK || !strings.Contains(strings.Join(aware.Warnings, "\n"), "alice began to replay") {
		t.Fatalf("%d %+v", status, aware)
	}
	order.Ticket = aware.Ticket
	if status, got, _ := r.api(t, "replay", order); status != http.StatusOK || got.Outcome != audit.Done {
		t.Errorf("%d %+v", status, got)
	}
}

// dyingReplay is a replayer with its journal; where it dies, the message was announced
// and nothing is known or kept of what came then.
type dyingReplay struct {
	action.Replayer
	action.Journal
	dies, announced bool
}

var errDied = errors.New("the process is gone")

func (d *dyingReplay) Replay(ctx context.Context, o broker.ReplayOrder) (broker.ReplayReport, error) {
	if !d.dies {
		return d.Replayer.Replay(ctx, o)
	}
	announce := o.Announce
	var named broker.DeadMessage
	o.Announce = func(ctx context.Context, m broker.DeadMessage) error {
		named = m
		if err := announce(ctx, m); err != nil {
			return err
		}
		d.announced = true
		return errDied // and the message goes back
	}
	_, err := d.Replayer.Replay(ctx, o)
	return broker.ReplayReport{End: broker.Unconfirmed, Message: named}, err
}

func (d *dyingReplay) Append(ctx context.Context, e audit.Entry) error {
	if d.dies && d.announced {
		return errDied
	}
	return d.Journal.Append(ctx, e)
}
