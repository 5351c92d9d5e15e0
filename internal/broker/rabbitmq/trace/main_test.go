package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// The test binary is also the guard and the parent that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			if err := Guard(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "parent":
			parent()
		}
	}
	testkit.Main(m)
}

// soon is how long a broker on a busy machine may take for anything.
const soon = 40 * time.Second

const password = "tell-nobody"

var payments = flow.Flow{Name: "payments", BizTypes: []string{"order_paid", "refund"}, Queue: &flow.Queue{
	Broker: "rabbit", Name: "order.paid", Retry: []string{"order.paid.retry"}, DeadLetter: "order.paid.dlq", IDField: "biz_id", TypeField: "biz_type",
}}

// site is where the trace of a test happens; the parent process gets it as JSON.
type site struct {
	AMQP, Management, Vhost, User string
}

func (s site) trace(guard func() (*exec.Cmd, error)) (*Trace, error) {
	manager, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: s.Management, Vhost: s.Vhost, User: s.User, Password: password, Timeout: soon})
	if err != nil {
		return nil, err
	}
	return New(Options{
		Broker: "rabbit", AMQP: s.AMQP, Manager: manager, Flows: []flow.Flow{payments}, Guard: guard, Logger: slog.New(slog.DiscardHandler),
		Order: Order{Management: s.Management, Vhost: s.Vhost, User: s.User, Password: password},
	})
}

func ownGuard() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "guard")
	cmd.Env = []string{}
	return cmd, nil
}

// parent arms a trace, says so, and waits to be killed.
func parent() {
	var s site
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		panic(err)
	}
	t, err := s.trace(ownGuard)
	if err != nil {
		panic(err)
	}
	if err := t.Arm(context.Background(), MaxTime); err != nil {
		panic(err)
	}
	fmt.Println("armed")
	select {}
}

// shop is a vhost with the flow's queues and the trace's own user.
type shop struct {
	*testkit.Vhost
	site site
	ch   *amqp.Channel
	uri  *url.URL
}

func openShop(t *testing.T) *shop {
	t.Helper()
	v := testkit.RabbitMQ(t)
	uri, err := url.Parse(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{Vhost: v, uri: uri}
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
	for _, name := range payments.Queue.All() {
		if _, err := s.ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	name := v.Name + "-trace"
	s.call(t, "PUT", map[string]string{"password": password, "tags": "administrator"}, nil, "users", name)
	s.call(t, "PUT", map[string]string{"configure": `^idemscope\.trace$`, "write": `^idemscope\.trace$`, "read": `^(idemscope\.trace|amq\.rabbitmq\.trace)$`}, nil, "permissions", v.Name, name)
	t.Cleanup(func() { s.call(t, "DELETE", nil, nil, "users", name) })
	s.site = site{AMQP: fmt.Sprintf("amqp://%s:%s@%s/%s", name, password, uri.Host, v.Name), Management: v.Management, Vhost: v.Name, User: name}
	return s
}

func (s *shop) newTrace(t *testing.T, guard func() (*exec.Cmd, error)) *Trace {
	t.Helper()
	tr, err := s.site.trace(guard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tr.Disarm()
		_ = tr.options.Manager.(*rabbitmq.Broker).Close()
	})
	return tr
}

// call calls the management API as the administrator.
func (s *shop) call(t *testing.T, method string, body, result any, segments ...string) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	address := s.Management + "/api"
	for _, segment := range segments {
		address += "/" + url.PathEscape(segment)
	}
	req, err := http.NewRequest(method, address, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(s.Admin, s.AdminPassword)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %q: %s", method, segments, resp.Status)
	}
	if result != nil {
		if err := json.NewDecoder(resp.Body).Decode(result); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *shop) tracing(t *testing.T) bool {
	t.Helper()
	var v struct{ Tracing bool }
	s.call(t, "GET", nil, &v, "vhosts", s.Name)
	return v.Tracing
}

func (s *shop) send(t *testing.T, queue, bizType, id string) {
	t.Helper()
	confirmed, err := s.ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, amqp.Publishing{
		MessageId: "m-" + id, Body: fmt.Appendf(nil, `{"biz_type":%q,"biz_id":%q}`, bizType, id),
	})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := confirmed.WaitContext(t.Context()); err != nil || !ok {
		t.Fatalf("not confirmed: %v", err)
	}
}

// deliver takes the next message of a queue as an application does.
func (s *shop) deliver(t *testing.T, queue string) amqp.Delivery {
	t.Helper()
	d, ok, err := s.ch.Get(queue, false)
	if err != nil || !ok {
		t.Fatalf("no message in %s: %v", queue, err)
	}
	return d
}
