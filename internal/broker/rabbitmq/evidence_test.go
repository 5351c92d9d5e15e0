package rabbitmq

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// settled waits until RabbitMQ has counted the queues of the flow and the evidence has the state.
func settled(t testing.TB, b *Broker, q flow.Queue, state flow.State, words string) broker.Evidence {
	t.Helper()
	var e broker.Evidence
	testkit.Eventually(t, counted, func() bool {
		e = b.Evidence(t.Context(), q)
		return e.State == state && strings.Contains(e.Reason.EN, words) && !strings.Contains(e.Reason.EN, "not counted")
	}, "no evidence %s with %q, last: %+v", state, words, &e)
	return e
}

func TestEvidenceOfAFlow(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	q := flow.Queue{Broker: "rabbit", Name: "order.paid", Retry: []string{"order.paid.retry"}, DeadLetter: "order.paid.dlq"}
	declare(t, ch, "order.paid", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "order.paid.dlq"})
	declare(t, ch, "order.paid.retry", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "order.paid"})
	declare(t, ch, "order.paid.dlq", nil)

	publish(t, ch, "order.paid", "m1", "m2")
	publish(t, ch, "order.paid.retry", "m3")
	publish(t, ch, "order.paid.dlq", "m4", "m5", "m6")
	// A message that a consumer holds is still there.
	if _, ok, err := ch.Get("order.paid", false); err != nil || !ok {
		t.Fatal(ok, err)
	}

	e := settled(t, b, q, flow.Unknown, "6 messages are in the flow's queues (work 2, retry 1, dead letter 3)")
	if e.Total(broker.RoleWork) != 2 || e.Total(broker.RoleRetry) != 1 || e.Total(broker.RoleDeadLetter) != 3 {
		t.Errorf("totals: %+v", e.Queues)
	}
	if len(e.Coverage) != 1 || !strings.Contains(e.Coverage[0].EN, "no message was looked at") {
		t.Errorf("coverage: %v", e.Coverage)
	}

	if err := ch.Ack(0, true); err != nil { // all that are held
		t.Fatal(err)
	}
	for _, name := range q.All() {
		if _, err := ch.QueuePurge(name, false); err != nil {
			t.Fatal(err)
		}
	}
	e = settled(t, b, q, flow.Absent, "")
	wantState(t, e.Observation, flow.Absent)
	if len(e.Coverage) != 2 || e.StatisticsAge < 10*time.Second || len(e.Queues) != 3 || e.Took <= 0 {
		t.Errorf("empty: %+v", e)
	}
	if strings.Count(e.Command, "http://") != 3 || strings.Contains(e.Command, v.MonitorPassword) {
		t.Errorf("command %s", e.Command)
	}
}

// Whatever the queues pass on to may hold the message, if the flow does not name it.
func TestEvidenceThatOtherQueuesMayHoldMessages(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	declare(t, ch, "plain", nil)
	declare(t, ch, "by-argument", amqp.Table{"x-dead-letter-exchange": "amq.topic"})
	declare(t, ch, "by-default-exchange", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "elsewhere"})
	declare(t, ch, "by-policy", nil)
	declare(t, ch, "dlq", nil)
	administer(t, v, "PUT", map[string]any{"pattern": "^by-policy$", "definition": map[string]string{"dead-letter-exchange": "amq.topic"}, "apply-to": "queues"}, "policies", v.Name, "dlx")

	const words = "passes rejected and expired messages on, and the flow names no dead_letter queue"
	for _, name := range []string{"by-argument", "by-default-exchange", "by-policy"} {
		settled(t, b, flow.Queue{Name: name}, flow.Unknown, "queue "+name+" "+words)
		settled(t, b, flow.Queue{Name: name, DeadLetter: "dlq"}, flow.Absent, "")
	}
	settled(t, b, flow.Queue{Name: "plain"}, flow.Absent, "")
	settled(t, b, flow.Queue{Name: "plain", DeadLetter: "by-argument"}, flow.Unknown, "the dead-letter queue by-argument passes messages on")
	settled(t, b, flow.Queue{Name: "plain", Retry: []string{"by-argument"}}, flow.Absent, "")
	settled(t, b, flow.Queue{Name: "plain", Retry: []string{"plain"}, DeadLetter: "plain"}, flow.Absent, "")

	e := settled(t, b, flow.Queue{Name: "plain", Retry: []string{"misspelt"}}, flow.Unknown, "there is no queue misspelt")
	wantState(t, e.Queues[1].Observation, flow.Absent, "no such queue")
	e = settled(t, b, flow.Queue{Name: "plain", Retry: []string{".."}}, flow.Unknown, "queue ..: the management API cannot be asked")
	wantState(t, e.Queues[0].Observation, flow.Found)
	wantState(t, e.Queues[1].Observation, flow.Error, "cannot be asked")
}
