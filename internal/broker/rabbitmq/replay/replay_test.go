package replay

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// soon is how long a broker on a busy machine may take for anything.
const soon = 40 * time.Second

// shop is a vhost with a work queue, whose rejected messages go to a dead-letter
// queue, and a user that may replay and nothing else.
type shop struct {
	*testkit.Vhost
	*Replayer
	ch   *amqp.Channel
	flow flow.Flow
	amqp string
}

var key = flow.Key{BizType: "pay", BizID: "7"}

func openShop(t *testing.T, dead amqp.Table) *shop {
	t.Helper()
	v := testkit.RabbitMQ(t)
	s := &shop{Vhost: v, flow: flow.Flow{Name: "payments", BizTypes: []string{"pay", "refund"}, Queue: &flow.Queue{
		Broker: "rabbit", Name: "pay", DeadLetter: "pay.dlq", IDField: "biz_id", TypeField: "biz_type",
	}}}
	conn, err := amqp.Dial(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if s.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	if err := s.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	s.declare(t, "pay.dlq", dead)
	s.declare(t, "pay", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "pay.dlq"})
	uri, err := url.Parse(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	management, err := url.Parse(v.Management)
	if err != nil {
		t.Fatal(err)
	}
	name := v.Name + "-act"
	admin := &servers.RabbitMQ{Management: management.String(), Admin: v.Admin, Password: v.AdminPassword}
	if err := admin.CreateUser(t.Context(), servers.RabbitMQUser{Name: name, Password: "act", Permissions: map[string]servers.RabbitMQPermissions{
		v.Name: {Configure: "^$", Write: `^amq\.default$`, Read: `^.*\.dlq$`},
	}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.DeleteUser(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	s.amqp = fmt.Sprintf("amqp://%s:act@%s/%s", name, uri.Host, v.Name)
	s.Replayer = s.replayer(t, s.flow)
	return s
}

func (s *shop) replayer(t *testing.T, flows ...flow.Flow) *Replayer {
	t.Helper()
	reader, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: s.Management, Vhost: s.Name, User: s.Monitor, Password: s.MonitorPassword, Timeout: soon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	r, err := New(Options{Broker: "rabbit", AMQP: s.amqp, Reader: reader, Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *shop) declare(t *testing.T, name string, arguments amqp.Table) {
	t.Helper()
	if _, err := s.ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
		t.Fatal(err)
	}
}

func body(bizType, id string) []byte {
	return fmt.Appendf(nil, `{"biz_type":%q,"biz_id":%q}`, bizType, id)
}

func (s *shop) publish(t *testing.T, queue string, p amqp.Publishing) {
	t.Helper()
	confirmed, err := s.ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, p)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := confirmed.WaitContext(t.Context()); err != nil || !ok {
		t.Fatalf("not confirmed: %v", err)
	}
}

// kill sends a message to the work queue and has it dead-lettered.
func (s *shop) kill(t *testing.T, p amqp.Publishing) {
	t.Helper()
	s.publish(t, "pay", p)
	d, ok, err := s.ch.Get("pay", false)
	if err != nil || !ok {
		t.Fatalf("%v %v", ok, err)
	}
	if err := d.Reject(false); err != nil {
		t.Fatal(err)
	}
	before := 0
	testkit.Eventually(t, soon, func() bool {
		q, err := s.ch.QueueDeclarePassive("pay.dlq", true, false, false, false, nil)
		before = q.Messages
		return err == nil && before > 0
	}, "the dead letter did not arrive")
}

// drain takes all messages of a queue.
func (s *shop) drain(t *testing.T, queue string) (all []amqp.Delivery) {
	t.Helper()
	for {
		d, ok, err := s.ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, d)
	}
}

func (s *shop) order() broker.ReplayOrder {
	return broker.ReplayOrder{Flow: s.flow, Key: key, By: "alice", Announce: func(context.Context, broker.DeadMessage) error { return nil }}
}

func (s *shop) replay(t *testing.T, o broker.ReplayOrder) broker.ReplayReport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	report, err := s.Replay(ctx, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return report
}

var kinds = map[string]amqp.Table{"classic": {}, "quorum": {"x-queue-type": "quorum"}}

func TestOneMessageMovesAndIsWhatItWas(t *testing.T) {
	for kind, arguments := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := openShop(t, arguments)
			s.declare(t, "copies", nil)
			s.kill(t, amqp.Publishing{
				MessageId: "m-7", CorrelationId: "c", ContentType: "application/json", ContentEncoding: "identity", Type: "paid", AppId: "shop", ReplyTo: "r", Priority: 3,
				Timestamp: time.Unix(1_700_000_000, 0), UserId: s.Admin, Expiration: "900000", Body: body("pay", "7"),
				Headers: amqp.Table{"trace": "t-1", "n": int64(5), "nested": amqp.Table{"a": "b"}},
			})
			var announced broker.DeadMessage
			o := s.order()
			o.Announce = func(_ context.Context, m broker.DeadMessage) error {
				announced = m
				if q, err := s.ch.QueueDeclarePassive("pay", true, false, false, false, nil); err != nil || q.Messages != 0 {
					t.Errorf("published before it was announced: %+v %v", q, err)
				}
				return nil
			}
			report := s.replay(t, o)
			if report.End != broker.Moved || report.Message != announced || announced.MessageID != "m-7" || announced.Target != "pay" || announced.Reason != "rejected" || announced.Died.IsZero() || len(announced.ReplayID) != 32 {
				t.Errorf("%+v", report)
			}
			got := s.drain(t, "pay")
			if len(got) != 1 || len(s.drain(t, "pay.dlq")) != 0 {
				t.Fatalf("%d in the work queue", len(got))
			}
			d := got[0]
			if string(d.Body) != string(body("pay", "7")) || d.MessageId != "m-7" || d.CorrelationId != "c" || d.ContentType != "application/json" || d.Type != "paid" || d.AppId != "shop" ||
				d.ReplyTo != "r" || d.Priority != 3 || d.Timestamp.Unix() != 1_700_000_000 || d.DeliveryMode != amqp.Persistent || d.Expiration != "" || d.UserId != "" || d.Redelivered {
				t.Errorf("%+v", d)
			}
			want := amqp.Table{"trace": "t-1", "n": int64(5), "x-replay-id": announced.ReplayID, "x-replayed-by": "alice"}
			for name, value := range want {
				if d.Headers[name] != value {
					t.Errorf("%s is %v, want %v", name, d.Headers[name], value)
				}
			}
			if len(d.Headers) != len(want)+1 || d.Headers["nested"].(amqp.Table)["a"] != "b" {
				t.Errorf("%v", d.Headers)
			}
			if report := s.replay(t, s.order()); report.End != broker.NotFound || report.Looked != 0 {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A header of RabbitMQ by which it would send further copies does not go along.
func TestAReplayReachesOneQueueAlone(t *testing.T) {
	s := openShop(t, nil)
	s.declare(t, "copies", nil)
	s.publish(t, "pay.dlq", amqp.Publishing{Body: body("pay", "7"), Headers: amqp.Table{"CC": []any{"copies"}, "BCC": []any{"copies"}}})
	s.drain(t, "copies")
	if report := s.replay(t, s.order()); report.End != broker.Moved || report.Message.Reason != "" {
		t.Errorf("%+v", report)
	}
	if n := len(s.drain(t, "copies")); n != 0 {
		t.Errorf("%d copies", n)
	}
	if n := len(s.drain(t, "pay")); n != 1 {
		t.Errorf("%d messages", n)
	}
}

func TestAHundredOthersKeepTheirOrder(t *testing.T) {
	s := openShop(t, nil)
	var want []string
	for i := range 100 {
		id := fmt.Sprint("other-", i)
		if i == 60 {
			id = "7"
		} else {
			want = append(want, id)
		}
		s.publish(t, "pay.dlq", amqp.Publishing{MessageId: id, Body: body("pay", id)})
	}
	report := s.replay(t, s.order())
	if report.End != broker.Moved || report.Looked != 61 || report.Total != 100 {
		t.Errorf("%+v", report)
	}
	// Also without a match, all is given back in its order.
	if report := s.replay(t, s.order()); report.End != broker.NotFound || report.Looked != 99 {
		t.Errorf("%+v", report)
	}
	var got []string
	for _, d := range s.drain(t, "pay.dlq") {
		got = append(got, d.MessageId)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if moved := s.drain(t, "pay"); len(moved) != 1 || moved[0].MessageId != "7" {
		t.Errorf("%d moved", len(moved))
	}
}

func TestOnAQuorumQueueNoneIsLost(t *testing.T) {
	s := openShop(t, kinds["quorum"])
	for i := range 20 {
		s.publish(t, "pay.dlq", amqp.Publishing{Body: body("pay", fmt.Sprint(i))})
	}
	for range 3 {
		o := s.order()
		o.Key.BizID = "nobody"
		if report := s.replay(t, o); report.End != broker.NotFound || report.Looked != 20 {
			t.Errorf("%+v", report)
		}
	}
	if report := s.replay(t, s.order()); report.End != broker.Moved {
		t.Errorf("%+v", report)
	}
	if n := len(s.drain(t, "pay.dlq")); n != 19 {
		t.Errorf("%d are left", n)
	}
}

func TestWhatIsNotTheMessageStays(t *testing.T) {
	s := openShop(t, nil)
	for what, c := range map[string]struct {
		p   amqp.Publishing
		end broker.ReplayEnd
		do  func(*broker.ReplayOrder)
	}{
		"another id":      {amqp.Publishing{Body: body("pay", "77")}, broker.NotFound, nil},
		"another type":    {amqp.Publishing{Body: body("refund", "7")}, broker.NotFound, nil},
		"no type":         {amqp.Publishing{Body: []byte(`{"biz_id":"7"}`)}, broker.Ambiguous, nil},
		"no JSON":         {amqp.Publishing{Body: []byte(`7`)}, broker.NotFound, nil},
		"no UTF-8":        {amqp.Publishing{Body: []byte("{\"biz_type\":\"pay\",\"biz_id\":\"7\",\"x\":\"\xff\"}")}, broker.NotFound, nil},
		"another message": {amqp.Publishing{MessageId: "m-1", Body: body("pay", "7")}, broker.NotFound, func(o *broker.ReplayOrder) { o.MessageID = "m-2" }},
		"it is called off": {amqp.Publishing{Body: body("pay", "7")}, broker.Stopped, func(o *broker.ReplayOrder) {
			o.Announce = func(context.Context, broker.DeadMessage) error { return errors.New("completed") }
		}},
		"from elsewhere": {amqp.Publishing{Body: body("pay", "7"), Headers: amqp.Table{"x-death": []any{amqp.Table{"queue": "other", "reason": "rejected", "count": int64(1)}}}}, broker.Origin, nil},
		"its queue is gone": {amqp.Publishing{Body: body("pay", "7")}, broker.Unroutable, func(o *broker.ReplayOrder) {
			o.Flow.Queue = &flow.Queue{Broker: "rabbit", Name: "gone", DeadLetter: "pay.dlq", IDField: "biz_id", TypeField: "biz_type"}
		}},
	} {
		s.publish(t, "pay.dlq", c.p)
		o := s.order()
		if c.do != nil {
			c.do(&o)
		}
		if report := s.replay(t, o); report.End != c.end {
			t.Errorf("%s: %+v", what, report)
		}
		if left, moved := len(s.drain(t, "pay.dlq")), len(s.drain(t, "pay")); left != 1 || moved != 0 {
			t.Errorf("%s: %d left, %d moved", what, left, moved)
		}
	}
}

func TestAFullQueueThatRejectsLeavesTheMessage(t *testing.T) {
	s := openShop(t, nil)
	s.declare(t, "full", amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	s.publish(t, "full", amqp.Publishing{})
	s.publish(t, "pay.dlq", amqp.Publishing{Body: body("pay", "7")})
	o := s.order()
	o.Flow.Queue = &flow.Queue{Broker: "rabbit", Name: "full", DeadLetter: "pay.dlq", IDField: "biz_id", TypeField: "biz_type"}
	if report := s.replay(t, o); report.End != broker.Rejected {
		t.Errorf("%+v", report)
	}
	if n := len(s.drain(t, "pay.dlq")); n != 1 {
		t.Errorf("%d left", n)
	}
}

// The process dies when the copy is confirmed: it is in both queues, and a second
// attempt gives it the same id.
func TestACrashBeforeTheAckLeavesItInBothUnderOneID(t *testing.T) {
	for kind, arguments := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := openShop(t, arguments)
			s.kill(t, amqp.Publishing{MessageId: "m-7", Body: body("pay", "7")})
			proxied, err := url.Parse(s.amqp)
			if err != nil {
				t.Fatal(err)
			}
			proxy := testkit.NewProxy(t, proxied.Host)
			first := s.replayer(t, s.flow)
			if first.address, err = link.ParseAddress(strings.Replace(s.amqp, proxied.Host, proxy.Addr, 1), nil); err != nil {
				t.Fatal(err)
			}
			first.beforeAck = func() { proxy.Drop(true) }
			report, err := first.Replay(t.Context(), s.order())
			if err != nil || report.End != broker.InBoth {
				t.Fatalf("%+v %v", report, err)
			}
			testkit.Eventually(t, soon, func() bool {
				q, err := s.ch.QueueDeclarePassive("pay.dlq", true, false, false, false, nil)
				return err == nil && q.Messages == 1
			}, "the dead letter did not come back")
			second := s.replay(t, s.order())
			copies := s.drain(t, "pay")
			if second.End != broker.Moved || second.Message.ReplayID != report.Message.ReplayID || len(copies) != 2 || len(s.drain(t, "pay.dlq")) != 0 {
				t.Fatalf("%+v, %d copies", second, len(copies))
			}
			for _, d := range copies {
				if d.Headers["x-replay-id"] != report.Message.ReplayID {
					t.Errorf("%v", d.Headers)
				}
			}
		})
	}
}

// It is replayed, fails again, and dies again: that is another dead letter.
func TestAMessageThatDiesAgainHasAnotherID(t *testing.T) {
	s := openShop(t, nil)
	s.kill(t, amqp.Publishing{MessageId: "m-7", Body: body("pay", "7")})
	first := s.replay(t, s.order())
	d, ok, err := s.ch.Get("pay", false)
	if err != nil || !ok {
		t.Fatal(err)
	}
	if err := d.Reject(false); err != nil {
		t.Fatal(err)
	}
	var second broker.ReplayReport
	testkit.Eventually(t, soon, func() bool {
		second = s.replay(t, s.order())
		return second.End == broker.Moved
	}, "the dead letter did not arrive")
	if first.Message.ReplayID == second.Message.ReplayID {
		t.Errorf("%+v %+v", first, second)
	}
	if all := s.drain(t, "pay"); len(all) != 1 || all[0].Headers["x-replay-id"] != second.Message.ReplayID {
		t.Errorf("%d", len(all))
	}
}

func TestQueuesThatAreNotFitAreNotTouched(t *testing.T) {
	s := openShop(t, nil)
	s.declare(t, "limited.dlq", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(3)})
	s.declare(t, "stream.dlq", amqp.Table{"x-queue-type": "stream"})
	s.publish(t, "limited.dlq", amqp.Publishing{Body: body("pay", "7")})
	for queue, code := range map[string]string{"limited.dlq": "delivery_limit", "stream.dlq": "stream_queue", "pay": "shared_queue"} {
		o := s.order()
		o.Flow.Queue = &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: queue, IDField: "biz_id"}
		q := s.Look(t.Context(), *o.Flow.Queue)
		if q.State != flow.Found || q.Refused.Code != code || q.Refused.Text.ZH == "" {
			t.Errorf("%s: %+v", queue, q)
		}
		if report, err := s.Replay(t.Context(), o); err == nil {
			t.Errorf("%s: %+v", queue, report)
		}
	}
	if d, ok, err := s.ch.Get("limited.dlq", false); err != nil || !ok || d.Redelivered {
		t.Errorf("the message was touched: %v %v", ok, err)
	}
	if q := s.Look(t.Context(), flow.Queue{DeadLetter: "nowhere"}); q.State != flow.Error || q.Reason.ZH == "" {
		t.Errorf("%+v", q)
	}
	q := s.Look(t.Context(), *s.flow.Queue)
	if q.State != flow.Found || q.Refused.Code != "" || len(q.Warnings) != 1 || q.Kind != "classic" {
		t.Errorf("%+v", q)
	}
}

// Where giving back counts depends on the version and the limit.
func TestFitnessOfQuorumQueuesByVersion(t *testing.T) {
	for _, c := range []struct {
		version string
		q       broker.QueueSetUp
		code    string
	}{
		{"3.10.8", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, ""},
		{"3.10.8", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: 5}, "delivery_limit"},
		{"3.13.7", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, ""},
		{"4.0.5", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, "delivery_limit"},
		{"4.0.5", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1, Unlimited: true}, ""},
		{"4.2.0", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: 20}, "delivery_limit"},
		{"4.3.6", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: 3}, ""},
		{"4.0.5", broker.QueueSetUp{Kind: "classic", DeliveryLimit: -1}, ""},
		{"4.0.5", broker.QueueSetUp{Kind: "jms"}, "unknown_queue_kind"},
	} {
		v, err := rabbitmq.ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Replayer{}).unfit(c.q, v); got.Code != c.code {
			t.Errorf("%s %+v: %q", c.version, c.q, got.Code)
		}
	}
}

func TestARightThatIsMissingIsNamed(t *testing.T) {
	s := openShop(t, nil)
	s.declare(t, "dead", nil)
	o := s.order()
	o.Flow.Queue = &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: "dead", IDField: "biz_id"}
	s.publish(t, "dead", amqp.Publishing{Body: body("pay", "7")})
	if _, err := s.Replay(t.Context(), o); err == nil || !strings.Contains(link.Words(err).EN, "lacks a permission") {
		t.Errorf("%v", err)
	}
	wrong, err := link.ParseAddress(strings.Replace(s.amqp, ":act@", ":hunter2@", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.address = wrong
	if _, err := s.Replay(t.Context(), s.order()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}
