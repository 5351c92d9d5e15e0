package rabbitmq

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestTotals(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	if err := ch.Qos(2, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"classic", "quorum"} {
		declare(t, ch, kind, amqp.Table{"x-queue-type": kind})
		publish(t, ch, kind, "m1", "m2", "m3", "m4", "m5")
		deliveries, err := ch.ConsumeWithContext(t.Context(), kind, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := <-deliveries
		<-deliveries
		if err := first.Nack(false, true); err != nil { // and it is delivered again
			t.Fatal(err)
		}
		<-deliveries
	}
	for _, kind := range []string{"classic", "quorum"} {
		var got broker.Queue
		testkit.Eventually(t, counted, func() bool {
			got = look(t, b, kind)
			return got.State == flow.Found && got.Ready == 3 && got.Unacked == 2 && got.Consumers == 1
		}, "%s: the totals do not come, last: %+v", kind, &got)
		if got.Kind != kind || got.Other != 0 || got.DeadLetterExchange || got.Name != kind || got.Role != broker.RoleWork || got.Messages() != 5 {
			t.Errorf("%s: %+v", kind, got)
		}
		if !got.RedeliveredKnown || kind == "classic" && got.Redelivered != 1 {
			t.Errorf("%s: redelivered %d, known %t", kind, got.Redelivered, got.RedeliveredKnown)
		}
		if want := "rabbitmq rabbit (" + strings.TrimPrefix(v.Management, "http://") + ", vhost " + v.Name + "), queue " + kind; got.Source != want {
			t.Errorf("source %q, want %q", got.Source, want)
		}
		if got.Took <= 0 || time.Since(got.ReadAt) > time.Minute {
			t.Errorf("%+v", got.Observation)
		}
	}
}

// A queue that has just been declared has no totals: that is not "empty".
func TestAQueueThatIsNotCountedYet(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	n := 0
	testkit.Eventually(t, counted, func() bool {
		n++
		name := fmt.Sprint("new", n)
		declare(t, ch, name, nil)
		q := look(t, b, name)
		if q.State == flow.Found {
			return false // the broker happened to count just now
		}
		wantState(t, q.Observation, flow.Unknown, "not counted this queue yet")
		wantState(t, b.Evidence(t.Context(), flow.Queue{Name: name}).Observation, flow.Unknown, "queue "+name+": RabbitMQ has not counted")
		return true
	}, "every new queue has its totals at once")
	testkit.Eventually(t, counted, func() bool { return look(t, b, fmt.Sprint("new", n)).State == flow.Found }, "it is never counted")
}

func TestStream(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	declare(t, ch, "s", amqp.Table{"x-queue-type": "stream"})
	publish(t, ch, "s", "m1", "m2")
	testkit.Eventually(t, counted, func() bool { q := look(t, b, "s"); return q.Kind == "stream" && q.Messages() == 2 }, "the totals of a stream do not come")
}

// hostileNames would lead to another queue, or to all, if they were not escaped.
func hostileNames() []string {
	return []string{"a/b", "%2F", "a%20b", "x y", " x ", "q?a=1&b#f", "订单", "emoji😀", "q'uo\"te", "*", "{a}", "a,b", "a;b", "+", "a:b@c", `back\slash`, "/", "...", "./..", "<script>", "$HOME`id`"}
}

func TestNamesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	for _, name := range hostileNames() {
		wantState(t, look(t, b, name).Observation, flow.Absent, "no such queue in vhost "+v.Name)
	}
	for _, name := range hostileNames() {
		declare(t, ch, name, amqp.Table{"x-message-ttl": 1000})
	}
	for _, name := range hostileNames() {
		if q := look(t, b, name); q.Name != name || q.Kind != "classic" {
			t.Errorf("%q: %s %s", name, q.State, q.Reason.EN)
		}
	}
	// These two are steps in a path: the API would list all queues.
	for _, name := range []string{".", ".."} {
		declare(t, ch, name, nil)
		wantState(t, look(t, b, name).Observation, flow.Error, "cannot be asked for a queue with this name")
	}
}

func TestAVhostWithASlash(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	name := v.Name + "/a b%2F"
	administer(t, v, "PUT", struct{}{}, "vhosts", name)
	defer administer(t, v, "DELETE", nil, "vhosts", name)
	administer(t, v, "PUT", map[string]string{"configure": "^$", "write": "^$", "read": "^$"}, "permissions", name, v.Monitor)
	administer(t, v, "PUT", struct{}{}, "queues", name, "a/b")
	b := open(t, v, func(o *Options) { o.Vhost = name })
	if q := look(t, b, "a/b"); q.Kind != "classic" {
		t.Errorf("%s %s", q.State, q.Reason.EN)
	}
	wantState(t, look(t, b, "missing").Observation, flow.Absent, "no such queue")
}

func TestCommand(t *testing.T) {
	b, err := New(Options{Name: "rabbit", Management: "https://rabbit.example/prefix/", User: "o'neil", Password: "tell-nobody"})
	if err != nil {
		t.Fatal(err)
	}
	names := hostileNames()
	command := b.command(names...)
	if strings.Contains(command, "tell-nobody") {
		t.Error("the command tells the password")
	}
	// What curl would be given, one argument a line.
	out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "curl ", `printf '<%s>\n' `, 1)).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"<-sg>", `<-w>`, `<\n>`, "<-u>", "<o'neil>"}
	for _, name := range names {
		want = append(want, "<https://rabbit.example/prefix/api/queues/%2F/"+url.PathEscape(name)+"?columns="+shown+">")
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Looking must not cost a message its order, its first delivery or its attempts.
func TestMessagesAreUntouchedByLooking(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	bodies := []string{"m1", "m2", "m3", "m4", "m5"}
	for _, kind := range []string{"classic", "quorum"} {
		args := amqp.Table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
		if kind == "quorum" {
			args["x-delivery-limit"] = 2
		}
		declare(t, ch, kind, args)
		publish(t, ch, kind, bodies...)
	}
	declare(t, ch, "dead", nil)
	for range 100 {
		b.Evidence(t.Context(), flow.Queue{Name: "classic", Retry: []string{"quorum"}, DeadLetter: "dead"})
	}
	for _, kind := range []string{"classic", "quorum"} {
		var got []string
		for {
			m, ok, err := ch.Get(kind, false)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if count := fmt.Sprint(m.Headers["x-delivery-count"]); m.Redelivered || count != "<nil>" && count != "0" {
				t.Errorf("%s: message %s was delivered before (redelivered %t, delivery count %s)", kind, m.Body, m.Redelivered, count)
			}
			got = append(got, string(m.Body))
		}
		if !slices.Equal(got, bodies) {
			t.Errorf("%s: got %q, want %q", kind, got, bodies)
		}
	}
	if dead, err := ch.QueueDeclarePassive("dead", true, false, false, false, nil); err != nil || dead.Messages != 0 {
		t.Errorf("%d messages were dead-lettered, %v", dead.Messages, err)
	}
}

// The credential that looks can do nothing else.
func TestTheMonitorCannotTouchAMessage(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	declare(t, ch, "q", nil)
	publish(t, ch, "q", "m1")
	testkit.Eventually(t, counted, func() bool { return look(t, b, "q").Ready == 1 }, "the monitor does not see the totals")

	for what, c := range map[string]struct {
		method   string
		body     any
		segments []string
	}{
		"get":     {"POST", map[string]any{"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}, []string{"queues", v.Name, "q", "get"}},
		"publish": {"POST", map[string]any{"properties": struct{}{}, "routing_key": "q", "payload": "x", "payload_encoding": "string"}, []string{"exchanges", v.Name, "amq.default", "publish"}},
		"purge":   {"DELETE", nil, []string{"queues", v.Name, "q", "contents"}},
		"delete":  {"DELETE", nil, []string{"queues", v.Name, "q"}},
	} {
		if status := api(t, v, v.Monitor, v.MonitorPassword, c.method, c.body, c.segments...); status < 400 {
			t.Errorf("the management API lets the monitor %s: status %d", what, status)
		}
	}
	uri := strings.Replace(v.AMQP, v.Admin+":"+v.AdminPassword+"@", v.Monitor+":"+v.MonitorPassword+"@", 1)
	for what, try := range map[string]func(*amqp.Channel) error{
		"get":   func(ch *amqp.Channel) error { _, _, err := ch.Get("q", false); return err },
		"purge": func(ch *amqp.Channel) error { _, err := ch.QueuePurge("q", false); return err },
		"publish": func(ch *amqp.Channel) error {
			closed := ch.NotifyClose(make(chan *amqp.Error, 1))
			if err := ch.PublishWithContext(t.Context(), "", "q", false, false, amqp.Publishing{Body: []byte("x")}); err != nil {
				return err
			}
			if refused := <-closed; refused != nil {
				return refused
			}
			return nil
		},
	} {
		var refused *amqp.Error
		if err := try(channel(t, uri)); !errors.As(err, &refused) || refused.Code != amqp.AccessRefused {
			t.Errorf("AMQP lets the monitor %s: %v", what, err)
		}
	}
	if m, ok, err := ch.Get("q", true); err != nil || !ok || m.Redelivered || m.MessageCount != 0 {
		t.Errorf("the message afterwards: %+v %t %v", m, ok, err)
	}
}

// Shapes that a broker in another version or state gives.
func TestAnswersOfOtherBrokers(t *testing.T) {
	for text, want := range map[string]broker.Queue{
		`{"messages_ready":1,"messages_unacknowledged":2,"consumers":3,"arguments":[],"effective_policy_definition":[],"message_stats":[]}`: {Observation: flow.Observation{State: flow.Found}, Ready: 1, Unacked: 2, Consumers: 3},
		`{"messages_ready":1,"messages_unacknowledged":2,"consumers":3,"messages":10,"state":"idle"}`:                                       {Observation: flow.Observation{State: flow.Found}, Ready: 1, Unacked: 2, Consumers: 3, Other: 7},
		`{"messages_ready":1,"messages_unacknowledged":2,"consumers":3,"messages":1,"state":"flow"}`:                                        {Observation: flow.Observation{State: flow.Found}, Ready: 1, Unacked: 2, Consumers: 3},
		`{"messages_ready":0,"messages_unacknowledged":0,"consumers":0,"state":"crashed"}`:                                                  {Observation: flow.Observation{State: flow.Unknown}},
		`{"state":"down"}`:     {Observation: flow.Observation{State: flow.Unknown}},
		`{"messages_ready":0}`: {Observation: flow.Observation{State: flow.Unknown}},
		`{"message_stats":{"redeliver":7},"type":"quorum"}`:           {Observation: flow.Observation{State: flow.Unknown}, Kind: "quorum", Redelivered: 7, RedeliveredKnown: true},
		`{"message_stats":{"redeliver":"many"}}`:                      {Observation: flow.Observation{State: flow.Unknown}},
		`{"effective_policy_definition":{"dead-letter-exchange":""}}`: {Observation: flow.Observation{State: flow.Unknown}, DeadLetterExchange: true},
	} {
		var a answer
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got broker.Queue
		a.fill(&got)
		if (got.State == flow.Unknown) == got.Reason.Empty() {
			t.Errorf("%s: %s with reason %q", text, got.State, got.Reason.EN)
		}
		got.Reason = flow.Text{}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}
