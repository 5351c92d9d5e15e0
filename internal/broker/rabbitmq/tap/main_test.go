package tap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// soon is how long a broker on a busy machine may take for anything.
const soon = 40 * time.Second

// shop is a vhost with the queues of two flows, and the tap's own user.
type shop struct {
	*testkit.Vhost
	ch  *amqp.Channel
	tap *Tap
	// amqpHost is host:port.
	amqpHost string
}

func work(name string) *flow.Queue {
	return &flow.Queue{Broker: "rabbit", Name: name, Retry: []string{name + ".retry"}, DeadLetter: name + ".dlq", IDField: "biz_id", TypeField: "biz_type"}
}

var (
	payments = flow.Flow{Name: "payments", BizTypes: []string{"order_paid", "refund"}, Queue: work("order.paid")}
	points   = flow.Flow{Name: "points", BizTypes: []string{"points_grant"}, Queue: work("points.changed")}
)

func openShop(t *testing.T, flows ...flow.Flow) *shop {
	t.Helper()
	v := testkit.RabbitMQ(t)
	s := &shop{Vhost: v, ch: channel(t, v.AMQP)}
	u, err := url.Parse(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	s.amqpHost = u.Host
	s.must(t, s.ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil))
	s.must(t, s.ch.ExchangeDeclare("shop.dlx", "direct", true, false, false, false, nil))
	for _, f := range flows {
		s.declare(t, f.Queue.Name, amqp.Table{"x-dead-letter-exchange": "shop.dlx", "x-dead-letter-routing-key": f.Queue.DeadLetter})
		s.must(t, s.ch.QueueBind(f.Queue.Name, f.Queue.Name, "shop", false, nil))
		s.declare(t, f.Queue.Retry[0], nil)
		s.declare(t, f.Queue.DeadLetter, nil)
		s.must(t, s.ch.QueueBind(f.Queue.DeadLetter, f.Queue.DeadLetter, "shop.dlx", false, nil))
	}
	s.tapUser(t)
	s.tap = s.newTap(t, s.amqpHost, flows...)
	return s
}

const tapPassword = "tell-nobody"

// tapUser may do no more than the manual says.
func (s *shop) tapUser(t *testing.T) {
	t.Helper()
	name := s.Name + "-tap"
	s.administer(t, "PUT", map[string]string{"password": tapPassword, "tags": ""}, "users", name)
	s.administer(t, "PUT", map[string]string{"configure": `^idemscope\.`, "write": `^idemscope\.`, "read": `^(idemscope\..*|shop|shop\.dlx)$`}, "permissions", s.Name, name)
	t.Cleanup(func() { s.administer(t, "DELETE", nil, "users", name) })
}

func (s *shop) newTap(t *testing.T, host string, flows ...flow.Flow) *Tap {
	t.Helper()
	manager, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: s.Management, Vhost: s.Name, User: s.Monitor, Password: s.MonitorPassword, Timeout: soon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	tap, err := New(Options{
		Broker: "rabbit", AMQP: fmt.Sprintf("amqp://%s-tap:%s@%s/%s", s.Name, tapPassword, host, s.Name),
		Flows: flows, Manager: manager,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tap
}

func (s *shop) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shop) declare(t *testing.T, name string, args amqp.Table) {
	t.Helper()
	_, err := s.ch.QueueDeclare(name, true, false, false, false, args)
	s.must(t, err)
}

func channel(t *testing.T, uri string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

func (s *shop) administer(t *testing.T, method string, body any, segments ...string) {
	t.Helper()
	data, err := json.Marshal(body)
	s.must(t, err)
	address := s.Management + "/api"
	for _, segment := range segments {
		address += "/" + url.PathEscape(segment)
	}
	req, err := http.NewRequest(method, address, bytes.NewReader(data))
	s.must(t, err)
	req.SetBasicAuth(s.Admin, s.AdminPassword)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	s.must(t, err)
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %q: %s", method, segments, resp.Status)
	}
}

// size is small: tests share a disk.
var size = Size{MaxAge: time.Hour, MaxBytes: 20_000_000}

func (s *shop) apply(t *testing.T) Plan {
	t.Helper()
	p, err := s.tap.Plan(t.Context(), size)
	s.must(t, err)
	s.must(t, s.tap.Apply(t.Context(), p, func(Step) {}))
	return p
}

// follow runs a follower until the test ends.
func (s *shop) follow(t *testing.T, tap *Tap) (f *Follower, stop func()) {
	t.Helper()
	f = tap.NewFollower(slog.New(slog.DiscardHandler))
	ctx, ended := contextOf(t)
	done := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(done)
	}()
	stop = func() {
		ended()
		<-done
	}
	t.Cleanup(stop)
	return f, stop
}

// send publishes through an exchange and waits until the broker has the message.
func (s *shop) send(t *testing.T, exchange, key string, message amqp.Publishing) {
	t.Helper()
	confirmed, err := s.ch.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, false, false, message)
	s.must(t, err)
	if ok, err := confirmed.WaitContext(t.Context()); err != nil || !ok {
		t.Fatalf("not confirmed: %v", err)
	}
}

func body(bizType, id string) amqp.Publishing {
	return amqp.Publishing{MessageId: "m-" + id, Timestamp: time.Now(), DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil, `{"biz_type":%q,"biz_id":%q}`, bizType, id)}
}

func key(bizType, id string) flow.Key { return flow.Key{BizType: bizType, BizID: id} }

// awaitEvents waits until the follower tells of so many events.
func awaitEvents(t *testing.T, f *Follower, fl flow.Flow, k flow.Key, kind flow.EventKind, n int) *flow.Account {
	t.Helper()
	var a *flow.Account
	testkit.Eventually(t, soon, func() bool {
		a = f.Tell(t.Context(), fl, k)
		return len(a.Of(kind)) >= n && a.State == flow.Found
	}, "not %d events %s of %s; last: %+v", n, kind, k, &a)
	return a
}

// settled waits until the follower has read all that is in the stream now.
func settled(t *testing.T, f *Follower) {
	t.Helper()
	asked := time.Now()
	testkit.Eventually(t, soon, func() bool { return f.Tally().FollowedAt.After(asked) }, "the stream is not followed")
}

func summary(a *flow.Account) string {
	var b strings.Builder
	for _, e := range a.Events {
		fmt.Fprintf(&b, "%s %s %q %q %s %v\n", e.Kind, e.Place, e.Outcome, e.MessageID, e.At.UTC().Format(time.RFC3339), e.Certainty)
	}
	return b.String()
}
