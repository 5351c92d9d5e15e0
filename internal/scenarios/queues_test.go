package scenarios

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// counted is how long RabbitMQ may take to count a queue anew.
const counted = time.Minute

// hour keeps a message in a retry queue for longer than the suite takes.
const hour = int64(time.Hour / time.Millisecond)

// fillQueues brings the queues of the shop into the states that the scenarios need, and waits until the broker's
// totals show them. The messages are of keys that no scenario asks for: totals do not tell whose they are.
func fillQueues(t *testing.T, v *testkit.Vhost, b dossier.Queues) {
	t.Helper()
	ch := openChannel(t, v)
	for _, name := range []string{"idle", "transfers", "imports", "refunds", "notices"} {
		declare(t, ch, name, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name + ".retry"})
		declare(t, ch, name+".retry", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name, "x-message-ttl": hour})
		declare(t, ch, name+".dlq", nil)
	}
	publish(t, ch, "imports", 3)
	publish(t, ch, "refunds.dlq", 1)
	publish(t, ch, "notices.retry", 1)
	publish(t, ch, "transfers", 3)
	takeOne(t, ch, "transfers")
	waitForWork(t, ch, "refunds")
	for _, name := range []string{"coupons", "peeked"} {
		declare(t, ch, name, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(2)})
		publish(t, ch, name, 1)
	}
	rejectUntilGone(t, ch, "coupons")
	peekUntilGone(t, ch, "peeked")
	awaitTotals(t, b, map[string][2]int64{
		"idle": {}, "idle.retry": {}, "idle.dlq": {}, "transfers": {2, 1}, "transfers.retry": {}, "transfers.dlq": {},
		"imports": {3, 0}, "imports.retry": {}, "imports.dlq": {}, "refunds": {}, "refunds.retry": {}, "refunds.dlq": {1, 0},
		"notices": {}, "notices.retry": {1, 0}, "notices.dlq": {}, "coupons": {}, "peeked": {},
	})
}

func openChannel(t *testing.T, v *testkit.Vhost) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, conn.Close)
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

func declare(t *testing.T, ch *amqp.Channel, name string, args amqp.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatalf("declare %s: %v", name, err)
	}
}

func publish(t *testing.T, ch *amqp.Channel, queue string, messages int) {
	t.Helper()
	for range messages {
		confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, amqp.Publishing{
			ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: []byte(`{"biz_id":"somebody else"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		if taken, err := confirm.WaitContext(t.Context()); err != nil || !taken {
			t.Fatalf("publish to %s: taken %t, %v", queue, taken, err)
		}
	}
}

// takeOne is a consumer with a prefetch of one that works on its first message until the suite ends.
func takeOne(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	if err := ch.Qos(1, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-deliveries
}

// waitForWork is a consumer whose queue is empty.
func waitForWork(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	if _, err := ch.Consume(queue, "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

// rejectUntilGone is a consumer that fails and gives the message back, until the delivery limit drops it.
func rejectUntilGone(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	deliveries, err := ch.Consume(queue, queue, false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d := <-deliveries
		if err := d.Reject(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.Cancel(queue, false); err != nil {
		t.Fatal(err)
	}
}

// peekUntilGone fetches the message and puts it back, as some consoles do, until the delivery limit drops it.
func peekUntilGone(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	peeks := 0
	testkit.Eventually(t, counted, func() bool {
		d, got, err := ch.Get(queue, false)
		if err != nil {
			t.Fatal(err)
		}
		if got {
			peeks++
			if err := d.Nack(false, true); err != nil {
				t.Fatal(err)
			}
		}
		return peeks >= 3 && !got
	}, "%s: the message survives every peek", queue)
}

// awaitTotals waits until the broker shows the ready and unacked messages of each queue.
func awaitTotals(t *testing.T, b dossier.Queues, want map[string][2]int64) {
	t.Helper()
	for name, n := range want {
		var last broker.Evidence
		testkit.Eventually(t, counted, func() bool {
			last = b.Evidence(t.Context(), flow.Queue{Broker: up, Name: name})
			q := last.Queues[0]
			return q.State == flow.Found && q.Ready == n[0] && q.Unacked == n[1] && (name != "transfers" && name != "refunds" || q.Consumers == 1)
		}, "queue %s does not show %v: %+v", name, n, &last)
	}
}
