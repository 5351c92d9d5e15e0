package scenarios

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/tap"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
	"idemscope/internal/verdict"
)

// tapped is the same broker, with a tap on the exchange that feeds its flows.
const tapped = "tapped"

// Exchanges of the tapped flows: the tap sees what goes through them.
const (
	shopExchange = "shop"
	deadExchange = "shop.dead"
)

// withTap are cases in which the tap tells what became of the key's own message.
func withTap() []scenario {
	hour := time.Hour
	return []scenario{
		{
			field: "G5", story: "done, and a copy of its message is among the dead letters", flow: "parcels", bizID: "done",
			left: []deed{record(completed, hour, hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "copy_in_dead_letter",
			says: []string{"safe to drop, the work is done"}, never: []string{"lost", "send the message again"},
		},
		{
			field: "A8", story: "failed, and its message was given up", flow: "parcels", bizID: "failed",
			left: []deed{record(failed, hour, hour-time.Second)},
			code: verdict.DeadLettered, layer: flow.LayerBroker, severity: verdict.Critical,
			says: []string{"(rejected)", "the dead-letter queue parcels.dlq waits for somebody"}, never: []string{"runs again when it is delivered", "lost"},
		},
		{
			field: "A8", story: "failed and given up, and its marker would drop what is sent again", flow: "parcels", bizID: "marked",
			left: []deed{record(failed, hour, hour-time.Second), marker("1", 20*hour)},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical, notes: "dead_letter",
		},
		{
			field: "H-a", story: "the record was purged before its dead letter", flow: "parcels", bizID: "purged",
			code: verdict.DeadLettered, layer: flow.LayerBroker, severity: verdict.Critical,
			never: []string{"never seen", "delivered in its turn"},
		},
		{
			field: "D1", story: "killed in mid-run, and its message was given up since", flow: "parcels", bizID: "silent",
			left: []deed{record(processing, 2*hour, 2*hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical, notes: "dead_letter",
		},
		{
			field: "G3", story: "published, acked before the durable write, and nothing was written", flow: "letters", bizID: "acked",
			code: verdict.LostSuspected, layer: flow.LayerBroker, severity: verdict.Critical,
			says:  []string{"1 h 30 min ago", "no record shows a run", "a consumer that acks before it writes leaves this picture"},
			never: []string{"never seen"},
		},
		{
			field: "G3", story: "published by a host whose clock is ahead: the broker's totals may be older", flow: "letters", bizID: "young",
			code: verdict.Unknown, layer: flow.LayerBroker, severity: verdict.Unsure,
			says: []string{"the queue figures may be older than that"}, never: []string{"lost", "never seen"},
		},
		{
			field: "A4", story: "the transaction that published it rolled back: the tap covers the time and tells of nothing", flow: "letters", bizID: "unsent",
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info,
			says: []string{"tap: nothing of this key since"},
		},
		{
			field: "B7", story: "every retry lets in one more copy, and the tap counts them", flow: "lines", bizID: "copied",
			left: []deed{record(failed, 10*time.Minute, 9*time.Minute)},
			code: verdict.FailedUnplaced, layer: flow.LayerBroker, severity: verdict.Warning,
			says: []string{"published: 3"},
		},
	}
}

func tappedFlows() []flow.Flow {
	var all []flow.Flow
	for name, bizType := range map[string]string{"parcels": "parcel", "letters": "letter", "lines": "line"} {
		all = append(all, flow.Flow{Name: name, BizTypes: []string{bizType}, Queue: &flow.Queue{
			Broker: tapped, Name: name, DeadLetter: name + ".dlq", IDField: "biz_id", TypeField: "biz_type",
		}})
	}
	return all
}

// openTap lets the tapped flows' messages meet their fates while a tap follows, and returns the tap.
func openTap(t *testing.T, v *testkit.Vhost, b *rabbitmq.Broker) dossier.Teller {
	t.Helper()
	ch := openChannel(t, v)
	declareTapped(t, ch)
	f := follow(t, v, b)
	sent := time.Now().Add(-90 * time.Minute)
	for _, id := range []string{"done", "failed", "marked", "purged", "silent"} {
		send(t, ch, "parcels", "parcel", id, sent)
	}
	send(t, ch, "letters", "letter", "acked", sent)
	send(t, ch, "letters", "letter", "young", time.Now().Add(10*time.Minute))
	for range 3 {
		send(t, ch, "lines", "line", "copied", sent)
	}
	send(t, ch, "lines", "line", "queued", time.Now().Add(-time.Minute))
	settle(t, ch, "parcels", 5, func(d amqp.Delivery) error { return d.Reject(false) })
	settle(t, ch, "letters", 2, func(d amqp.Delivery) error { return d.Ack(false) })
	awaitTotals(t, b, map[string][2]int64{
		"parcels": {}, "parcels.dlq": {5, 0}, "letters": {}, "letters.dlq": {}, "lines": {4, 0}, "lines.dlq": {},
	})
	awaitTap(t, f)
	return f
}

// awaitTap waits until the tap has told of every message and death.
func awaitTap(t *testing.T, f *tap.Follower) {
	t.Helper()
	for _, fl := range tappedFlows() {
		want := map[string]map[string][2]int{
			"parcels": {"done": {1, 1}, "failed": {1, 1}, "marked": {1, 1}, "purged": {1, 1}, "silent": {1, 1}},
			"letters": {"acked": {1, 0}, "young": {1, 0}}, "lines": {"copied": {3, 0}, "queued": {1, 0}},
		}[fl.Name]
		for id, n := range want {
			var told *flow.Account
			testkit.Eventually(t, counted, func() bool {
				told = f.Tell(t.Context(), fl, flow.Key{BizType: fl.BizTypes[0], BizID: id})
				return told.State == flow.Found && len(told.Of(flow.Published)) == n[0] && len(told.Of(flow.DeadLettered)) == n[1]
			}, "the tap does not tell of %s: %+v", id, &told)
		}
	}
}

func declareTapped(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	for exchange, kind := range map[string]string{shopExchange: "topic", deadExchange: "direct"} {
		if err := ch.ExchangeDeclare(exchange, kind, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range tappedFlows() {
		q := f.Queue
		declare(t, ch, q.Name, amqp.Table{"x-dead-letter-exchange": deadExchange, "x-dead-letter-routing-key": q.DeadLetter})
		declare(t, ch, q.DeadLetter, nil)
		for queue, exchange := range map[string]string{q.Name: shopExchange, q.DeadLetter: deadExchange} {
			if err := ch.QueueBind(queue, queue, exchange, false, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// follow makes the tap and follows it until the test ends.
func follow(t *testing.T, v *testkit.Vhost, b *rabbitmq.Broker) *tap.Follower {
	t.Helper()
	made, err := tap.New(tap.Options{Broker: tapped, AMQP: v.AMQP, Flows: tappedFlows(), Manager: b})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := made.Plan(t.Context(), tap.Size{MaxAge: time.Hour, MaxBytes: 20_000_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Apply(t.Context(), plan, func(tap.Step) {}); err != nil {
		t.Fatal(err)
	}
	f := made.NewFollower(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

// send publishes a message of the key, stamped with the publisher's time.
func send(t *testing.T, ch *amqp.Channel, queue, bizType, bizID string, at time.Time) {
	t.Helper()
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), shopExchange, queue, true, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: at, Body: fmt.Appendf(nil, `{"biz_type":%q,"biz_id":%q}`, bizType, bizID),
	})
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := confirm.WaitContext(t.Context()); err != nil || !taken {
		t.Fatalf("publish to %s: taken %t, %v", queue, taken, err)
	}
}

// settle is a consumer that ends so many deliveries in the same way, and leaves.
func settle(t *testing.T, ch *amqp.Channel, queue string, deliveries int, end func(amqp.Delivery) error) {
	t.Helper()
	from, err := ch.Consume(queue, queue, false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range deliveries {
		if err := end(<-from); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.Cancel(queue, false); err != nil {
		t.Fatal(err)
	}
}
