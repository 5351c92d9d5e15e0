package janitor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// rabbit is a vhost of a real RabbitMQ with a reader, and a channel with full rights.
type rabbit struct {
	vhost   *testkit.Vhost
	channel *amqp.Channel
}

func newRabbit(t *testing.T) rabbit {
	t.Helper()
	v := testkit.RabbitMQ(t)
	conn, err := amqp.Dial(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return rabbit{v, ch}
}

// reader is the broker as the janitor sees it.
func (r rabbit) reader(t *testing.T, password string) *rabbitmq.Broker {
	t.Helper()
	b, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: r.vhost.Management, Vhost: r.vhost.Name, User: r.vhost.Monitor, Password: password, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func (r rabbit) declare(t *testing.T, name string, args amqp.Table) {
	t.Helper()
	if _, err := r.channel.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

func (r rabbit) publish(t *testing.T, queue string, at time.Time) {
	t.Helper()
	if err := r.channel.PublishWithContext(t.Context(), "", queue, true, false, amqp.Publishing{Body: []byte("{}"), Timestamp: at}); err != nil {
		t.Fatal(err)
	}
}

// counted waits until RabbitMQ's statistics have that many messages in a queue;
// head: and the time of its head.
func counted(t *testing.T, b Broker, name string, n int64, head bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		s, err := b.SetUp(soon(t), []broker.NamedQueue{{Name: name}})
		if err == nil && s.Queues[0].Counted && s.Queues[0].Messages == n && (!head || !s.Queues[0].HeadPublished.IsZero()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not counted with %d messages: %+v %v", name, n, s, err)
		}
		sleep(t.Context(), 100*time.Millisecond)
	}
}

func flowOf(queue flow.Queue) flow.Flow { return flow.Flow{Name: "payments", Queue: &queue} }

// found are the results and texts of all checks with a code whose text has a word.
func found(p Plan, code, word string) (results []Result) {
	for _, c := range p.Checks {
		if c.Code == code && strings.Contains(c.Text.EN, word) && c.Text.ZH != "" {
			results = append(results, c.Result)
		}
	}
	return results
}

func wantOnly(t *testing.T, p Plan, code, word string, want Result) {
	t.Helper()
	if got := found(p, code, word); len(got) != 1 || got[0] != want {
		t.Errorf("%s with %q: %v, want %s; %+v", code, word, got, want, p.Checks)
	}
}

func TestDeadLettersKeepARunFromBeginningUnlessTheirQueueIsAllowed(t *testing.T) {
	_, p := ready(t, false, 10)
	r := newRabbit(t)
	b := r.reader(t, r.vhost.MonitorPassword)
	r.declare(t, "paid", nil)
	r.declare(t, "paid.dlq", nil)
	counted(t, b, "paid.dlq", 0, false)
	task := p.task(t)
	task.Brokers = map[string]Broker{"rabbit": b}
	task.Flows = []flow.Flow{flowOf(flow.Queue{Broker: "rabbit", Name: "paid", DeadLetter: "paid.dlq"}), flowOf(flow.Queue{Broker: "rabbit", Name: "paid", DeadLetter: "paid.dlq"})}
	wantOnly(t, planNow(t, hire(t, task)), "dead_letters", "paid.dlq is empty", Passes)

	r.publish(t, "paid.dlq", time.Now().Add(-time.Hour))
	r.publish(t, "paid.dlq", time.Now())
	counted(t, b, "paid.dlq", 2, true)
	report := sweepNow(t, hire(t, task), Refused)
	wantOnly(t, report.Plan, "dead_letters", "holds 2 dead letters", Refuses)
	wantOnly(t, report.Plan, "retention", "oldest dead letter", Passes)
	if report.Gone() != 0 || report.Exit() != 4 || !strings.Contains(report.Why.EN, "allow_dead_letters: [paid.dlq]") || !strings.Contains(report.Why.ZH, "2") {
		t.Errorf("%d rows, exit %d: %s", report.Gone(), report.Exit(), report.Why.EN)
	}

	// A letter that is older than the records is refused whatever is allowed.
	task.AllowDeadLetters = []string{"paid.dlq"}
	task.Retain = 30 * time.Minute
	report = sweepNow(t, hire(t, task), Refused)
	wantOnly(t, report.Plan, "retention", "oldest dead letter of paid.dlq was published", Refuses)

	task.Retain = week
	report = sweepNow(t, hire(t, task), Done)
	wantOnly(t, report.Plan, "dead_letters", "holds 2 dead letters", Allowed)
	if report.Gone() != 10 {
		t.Errorf("%d rows", report.Gone())
	}
}

func TestAQueueThatCannotBeReadIsNotTakenForEmpty(t *testing.T) {
	_, p := ready(t, false, 10)
	r := newRabbit(t)
	r.declare(t, "paid", nil)
	b := r.reader(t, r.vhost.MonitorPassword)
	down, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: "http://127.0.0.1:1", User: "u", Password: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	defer down.Close()
	task := p.task(t)
	task.Flows = []flow.Flow{flowOf(flow.Queue{Broker: "rabbit", Name: "paid", DeadLetter: "paid.dlq"})}
	for says, broker := range map[string]Broker{
		"no such queue":      b,
		"refused":            down,
		"password":           r.reader(t, "s3cret"),
		"is not configured":  nil,
		"the sky has fallen": odd{},
	} {
		task.AllowDeadLetters = nil
		task.Brokers = map[string]Broker{}
		if broker != nil {
			task.Brokers["rabbit"] = broker
		}
		report := sweepNow(t, hire(t, task), Refused)
		wantOnly(t, report.Plan, "dead_letters_unread", says, Refuses)
		if report.Gone() != 0 || strings.Contains(report.Why.EN, "s3cret") {
			t.Errorf("%d rows: %s", report.Gone(), report.Why.EN)
		}
		task.AllowDeadLetters = []string{"paid.dlq"}
		plan := planNow(t, hire(t, task))
		wantOnly(t, plan, "dead_letters_unread", says, Allowed)
		if len(plan.Refusals) != 0 {
			t.Errorf("%s: %q", says, codes(plan))
		}
	}
}

// odd is a broker whose error has no words for people.
type odd struct{ Broker }

func (odd) SetUp(context.Context, []broker.NamedQueue) (broker.SetUp, error) {
	return broker.SetUp{}, errors.New("the sky has fallen")
}

func TestRetryDelaysBeyondTheRetentionAreRefused(t *testing.T) {
	_, p := ready(t, false, 10)
	r := newRabbit(t)
	b := r.reader(t, r.vhost.MonitorPassword)
	day := int64(24 * time.Hour / time.Millisecond)
	r.declare(t, "paid", amqp.Table{"x-message-ttl": 2 * day})
	r.declare(t, "retry.1", amqp.Table{"x-message-ttl": 3 * day})
	r.declare(t, "retry.2", amqp.Table{"x-message-ttl": 4 * day})
	r.declare(t, "retry.free", nil)
	r.declare(t, "dlq", amqp.Table{"x-queue-type": "quorum"})
	r.publish(t, "dlq", time.Now().Add(-30*24*time.Hour))
	counted(t, b, "dlq", 1, false)
	task := p.task(t)
	task.Brokers, task.AllowDeadLetters = map[string]Broker{"rabbit": b}, []string{"dlq"}
	task.Flows = []flow.Flow{flowOf(flow.Queue{Broker: "rabbit", Name: "paid", Retry: []string{"retry.1", "retry.2"}, DeadLetter: "dlq"})}
	report := sweepNow(t, hire(t, task), Refused)
	wantOnly(t, report.Plan, "retention", "retry delays of 7 d together", Refuses)
	wantOnly(t, report.Plan, "retention", "a message TTL of 2 d in the queue paid", Passes)
	wantOnly(t, report.Plan, "retention", "how old the dead letters of dlq are is not known", NotKnown)
	task.Flows[0].Queue.Retry = []string{"retry.1", "retry.free", "retry.gone"}
	report = sweepNow(t, hire(t, task), Done)
	wantOnly(t, report.Plan, "retention", "retry delays of 3 d together", Passes)
	wantOnly(t, report.Plan, "retention", "retry.free of the flow payments has no message TTL", NotKnown)
	wantOnly(t, report.Plan, "retention", "retry.gone of the flow payments holds a message is not known", NotKnown)
	task.Retain = 36 * time.Hour
	wantOnly(t, planNow(t, hire(t, task)), "retention", "a message TTL of 2 d in the queue paid", Refuses)
	task.Flows = []flow.Flow{flowOf(flow.Queue{Broker: "rabbit", Name: "retry.1"})}
	wantOnly(t, planNow(t, hire(t, task)), "dead_letters", "names no dead-letter queue", NotKnown)
}
