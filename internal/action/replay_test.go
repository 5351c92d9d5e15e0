package action

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/audit"
	"idemscope/internal/broker"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/replay"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// queues are the work queue and the dead letters of a rig's flow payments.
type queues struct {
	ch *amqp.Channel
}

// withQueues gives payments and payouts queues on a real RabbitMQ.
func withQueues(t *testing.T) (*queues, func(*rig, []flow.Flow)) {
	q := &queues{}
	return q, func(r *rig, flows []flow.Flow) {
		v := testkit.RabbitMQ(t)
		conn, err := amqp.Dial(v.AMQP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if q.ch, err = conn.Channel(); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"pay", "payout"} {
			for _, queue := range []string{name, name + ".dlq"} {
				if _, err := q.ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
					t.Fatal(err)
				}
			}
			flows[i].Queue = &flow.Queue{Broker: "rabbit", Name: name, DeadLetter: name + ".dlq", IDField: "biz_id"}
		}
		management, err := url.Parse(v.Management)
		if err != nil {
			t.Fatal(err)
		}
		r.proxies["rabbit"] = testkit.NewProxy(t, management.Host)
		reader, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: "http://" + r.proxies["rabbit"].Addr, Vhost: v.Name, User: v.Monitor, Password: v.MonitorPassword, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Close() })
		r.gather.Brokers["rabbit"] = reader
		replayer, err := replay.New(replay.Options{Broker: "rabbit", AMQP: v.AMQP, Reader: reader, Flows: flows})
		if err != nil {
			t.Fatal(err)
		}
		r.options.Brokers["rabbit"] = replayer
	}
}

func (q *queues) publish(t testing.TB, queue, id string) {
	t.Helper()
	if err := q.ch.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{MessageId: "m-" + id, Body: fmt.Appendf(nil, `{"biz_id":%q}`, id)}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() bool { return q.count(t, queue) > 0 }, "the message did not arrive")
}

func (q *queues) count(t testing.TB, queue string) int {
	t.Helper()
	got, err := q.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.Messages
}

// counted waits until the broker's figures show n messages ready and unacked in a queue.
func (r *rig) counted(t testing.TB, p flow.Place, queue string, ready, unacked int64) {
	t.Helper()
	testkit.Eventually(t, 40*time.Second, func() bool {
		a, err := r.options.Desk.Answer(t.Context(), p)
		if err != nil {
			return false
		}
		for _, one := range a.Broker.Queues {
			if one.Name == queue {
				return one.State == flow.Found && one.Ready == ready && one.Unacked == unacked
			}
		}
		return false
	}, "the figures do not show %d ready and %d unacked in %s", ready, unacked, queue)
}

func TestADeadLetterIsReplayedAndTheDeedIsKept(t *testing.T) {
	q, set := withQueues(t)
	r := newRig(t, set)
	p := place("pay", "7")
	r.record(t, "record", "pay", "7", 3, time.Hour)
	q.publish(t, "pay.dlq", "6")
	q.publish(t, "pay.dlq", "7")
	r.counted(t, p, "pay.dlq", 2, 0)
	pre := r.look(t, Replay, p)
	if !pre.Allowed() || !pre.Kind.Retype() || len(pre.Warnings) == 0 || q.count(t, "pay.dlq") != 2 {
		t.Fatalf("%v %v", codes(pre.Refusals), pre.Answer.Verdict.Sentence)
	}
	got := r.order(t, pre)
	if got.Outcome != audit.Done || q.count(t, "pay.dlq") != 1 || q.count(t, "pay") != 1 {
		t.Fatalf("%+v", got)
	}
	entries := r.wantJournal(t, p, audit.Begun, audit.Begun, audit.Done)
	d, ok, err := q.ch.Get("pay", true)
	if err != nil || !ok {
		t.Fatal(err)
	}
	id, named := replayID(entries[1].Before)
	if !named || d.Headers["x-replay-id"] != id || d.Headers["x-replayed-by"] != "alice" || d.MessageId != "m-7" || !strings.Contains(entries[2].After, id) {
		t.Errorf("%v %+v", d.Headers, entries)
	}
	if r.status(t, "pay", "7") != 3 {
		t.Error("the record was changed")
	}
	// Once more: there is none left.
	if got := r.order(t, r.look(t, Replay, p)); got.Outcome != audit.Refused || got.Code != "not_found" {
		t.Errorf("%+v", got)
	}
}

func TestWhatMayNotBeReplayed(t *testing.T) {
	q, set := withQueues(t)
	r := newRig(t, set)
	q.publish(t, "pay.dlq", "7")
	q.publish(t, "payout.dlq", "7")
	r.counted(t, place("payout", "7"), "payout.dlq", 1, 0)
	r.wantRefused(t, Replay, place("payout", "7"), "rerun_never")
	r.wantRefused(t, Replay, place("bare", "7"), "no_dead_letter_queue")
	for _, c := range []struct {
		code   string
		change func(undo bool)
	}{
		{"completed", func(undo bool) { r.swap(t, undo, "record", 2, time.Hour) }},
		{"completed", func(undo bool) { r.swap(t, undo, "record_archive", 2, time.Hour) }},
		{"processing", func(undo bool) { r.swap(t, undo, "record", 1, time.Hour) }},
		{"unreadable", func(undo bool) { r.swap(t, undo, "record", 9, time.Hour) }},
		{"lock_held", func(undo bool) { r.swapKey(t, undo, "lock:pay:7") }},
		{"marker_blocks", func(undo bool) { r.swapKey(t, undo, "marker:pay:7") }},
		{"layer_unread", func(undo bool) { r.proxies["rabbit"].Drop(!undo) }},
	} {
		c.change(false)
		r.wantRefused(t, Replay, place("pay", "7"), c.code)
		c.change(true)
	}
	if q.count(t, "pay.dlq") != 1 || q.count(t, "pay") != 0 || q.count(t, "payout.dlq") != 1 {
		t.Error("a message was moved")
	}
	r.Actor.options.Brokers = nil
	r.wantRefused(t, Replay, place("pay", "7"), "no_credential")
}

// swap makes a record of pay 7, or takes it away.
func (r *rig) swap(t testing.TB, undo bool, table string, status int, age time.Duration) {
	t.Helper()
	if undo {
		r.db.Exec(t, "DELETE FROM "+table)
		return
	}
	r.record(t, table, "pay", "7", status, age)
}

func (r *rig) swapKey(t testing.TB, undo bool, key string) {
	t.Helper()
	if undo {
		r.redis.Del(t.Context(), key)
		return
	}
	r.set(t, key, "v", 30*time.Second)
}

// What happens between the look and the publishing stops it, and the message stays.
func TestWhatHappensWhileTheMessageIsSoughtStopsTheReplay(t *testing.T) {
	q, set := withQueues(t)
	r := newRig(t, set)
	replayer := r.options.Brokers["rabbit"]
	q.publish(t, "pay.dlq", "7")
	r.counted(t, place("pay", "7"), "pay.dlq", 1, 0)
	for _, c := range []struct {
		code   string
		change func(undo bool)
	}{
		{"completed", func(undo bool) { r.swap(t, undo, "record", 2, time.Minute) }},
		{"processing", func(undo bool) { r.swap(t, undo, "record", 1, time.Second) }},
		{"lock_held", func(undo bool) { r.swapKey(t, undo, "lock:pay:7") }},
		{"audit_unwritable", func(undo bool) {
			if undo {
				r.Actor.options.Journal = r.log
			} else {
				r.Actor.options.Journal = &journalFailsAfter{r.log, 0}
			}
		}},
	} {
		r.Actor.options.Brokers = map[string]Replayer{"rabbit": &interrupted{replayer, func() { c.change(false) }}}
		got := r.order(t, r.look(t, Replay, place("pay", "7")))
		c.change(true)
		if got.Outcome != audit.Refused || got.Code != c.code {
			t.Errorf("%s: %+v", c.code, got)
		}
		if q.count(t, "pay.dlq") != 1 || q.count(t, "pay") != 0 {
			t.Fatalf("%s: the message was moved", c.code)
		}
	}
}

// interrupted has something happen when the message was found.
type interrupted struct {
	Replayer
	happen func()
}

func (i *interrupted) Replay(ctx context.Context, o broker.ReplayOrder) (broker.ReplayReport, error) {
	announce := o.Announce
	o.Announce = func(ctx context.Context, m broker.DeadMessage) error {
		i.happen()
		return announce(ctx, m)
	}
	return i.Replayer.Replay(ctx, o)
}

// The end of a replay is not known: the next one is told, and refused to whoever
// has not seen that.
func TestAReplayWithoutAKnownEndIsTold(t *testing.T) {
	q, set := withQueues(t)
	r := newRig(t, set)
	replayer := r.options.Brokers["rabbit"]
	p := place("pay", "7")
	q.publish(t, "pay.dlq", "7")
	r.counted(t, p, "pay.dlq", 1, 0)
	unaware := r.look(t, Replay, p)
	// The process dies after the publishing: the journal has no end.
	r.Actor.options.Brokers = map[string]Replayer{"rabbit": &lost{replayer}}
	r.Actor.options.Journal = &journalFailsAfter{r.log, 2}
	if got := r.order(t, unaware); got.Unkept.Empty() || got.Outcome != audit.Failed {
		t.Fatalf("%+v", got)
	}
	r.Actor.options.Brokers, r.Actor.options.Journal = map[string]Replayer{"rabbit": replayer}, r.log
	if got := r.order(t, unaware); got.Code != "replayed_before" || q.count(t, "pay.dlq") != 1 {
		t.Errorf("%+v", got)
	}
	aware := r.look(t, Replay, p)
	told := false
	for _, w := range aware.Warnings {
		told = told || strings.Contains(w.EN, "alice began to replay") && w.ZH != ""
	}
	if !told || !aware.Allowed() {
		t.Fatalf("%+v", aware.Warnings)
	}
	if got := r.order(t, aware); got.Outcome != audit.Done || q.count(t, "pay.dlq") != 0 {
		t.Errorf("%+v", got)
	}
}

// lost is a replayer whose last word never comes.
type lost struct{ Replayer }

func (l *lost) Replay(ctx context.Context, o broker.ReplayOrder) (broker.ReplayReport, error) {
	announce := o.Announce
	var named broker.DeadMessage
	o.Announce = func(ctx context.Context, m broker.DeadMessage) error {
		named = m
		if err := announce(ctx, m); err != nil {
			return err
		}
		return context.Canceled // and the message goes back
	}
	_, err := l.Replayer.Replay(ctx, o)
	return broker.ReplayReport{End: broker.Unconfirmed, Message: named}, err
}

// A delivery that is not acked could be this key's: its record is not touched.
func TestARecordIsNotSetBackWhileDeliveriesAreOut(t *testing.T) {
	q, set := withQueues(t)
	r := newRig(t, set)
	p := place("pay", "9")
	r.record(t, "record", "pay", "9", 1, time.Hour)
	q.publish(t, "pay", "8")
	d, ok, err := q.ch.Get("pay", false)
	if err != nil || !ok {
		t.Fatal(err)
	}
	r.counted(t, p, "pay", 0, 1)
	r.wantRefused(t, ResetRecord, p, "unacked")
	if err := d.Ack(false); err != nil {
		t.Fatal(err)
	}
	r.counted(t, p, "pay", 0, 0)
	r.proxies["rabbit"].Drop(true)
	r.wantRefused(t, ResetRecord, p, "layer_unread")
	r.proxies["rabbit"].Drop(false)
	if got := r.order(t, r.look(t, ResetRecord, p)); got.Outcome != audit.Done {
		t.Errorf("%+v", got)
	}
}
