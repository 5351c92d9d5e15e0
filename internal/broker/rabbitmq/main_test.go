package rabbitmq

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// counted is how long RabbitMQ may take to count a queue anew.
const counted = 40 * time.Second

// open makes a broker with the monitor's credential, closed at the end of the test.
func open(t testing.TB, v *testkit.Vhost, change func(*Options)) *Broker {
	t.Helper()
	// Nothing here waits for the timeout; a busy machine may need it.
	opts := Options{Name: "rabbit", Management: v.Management, Vhost: v.Name, User: v.Monitor, Password: v.MonitorPassword, Timeout: 20 * time.Second}
	if change != nil {
		change(&opts)
	}
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// channel opens an AMQP channel with full rights, closed at the end of the test.
func channel(t testing.TB, uri string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

func declare(t testing.TB, ch *amqp.Channel, name string, args amqp.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// publish puts one message for each body into the queue and waits until the broker has them.
func publish(t testing.TB, ch *amqp.Channel, queue string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		confirmed, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, amqp.Publishing{MessageId: body, Body: []byte(body), DeliveryMode: amqp.Persistent})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := confirmed.WaitContext(t.Context()); err != nil || !ok {
			t.Fatalf("not confirmed: %v", err)
		}
	}
}

// look asks for one work queue.
func look(t testing.TB, b *Broker, name string) broker.Queue {
	t.Helper()
	return b.Queues(t.Context(), []broker.NamedQueue{{Name: name, Role: broker.RoleWork}})[0]
}

// api calls the management API as the administrator and returns the status.
func api(t testing.TB, v *testkit.Vhost, user, password, method string, body any, segments ...string) int {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	address := v.Management + "/api"
	for _, segment := range segments {
		address += "/" + url.PathEscape(segment)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// administer calls the management API as the administrator.
func administer(t testing.TB, v *testkit.Vhost, method string, body any, segments ...string) {
	t.Helper()
	if status := api(t, v, v.Admin, v.AdminPassword, method, body, segments...); status >= 300 {
		t.Fatalf("%s %q: status %d", method, segments, status)
	}
}

// wantState checks the state and, for all but found and absent, the reason in both languages.
func wantState(t testing.TB, o flow.Observation, state flow.State, words ...string) {
	t.Helper()
	if o.State != state {
		t.Errorf("state %s (%s), want %s", o.State, o.Reason.EN, state)
	}
	for _, w := range words {
		if !strings.Contains(o.Reason.EN, w) || o.Reason.ZH == "" {
			t.Errorf("reason %+v, want %q", o.Reason, w)
		}
	}
	if len(words) == 0 && !o.Reason.Empty() {
		t.Errorf("a reason where none is due: %s", o.Reason.EN)
	}
}
