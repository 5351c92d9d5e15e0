package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for want, opts := range map[string]Options{
		"a name is needed":             {Management: "http://127.0.0.1:15672", User: "u"},
		"a user is needed":             {Name: "rabbit", Management: "http://127.0.0.1:15672"},
		"management has to be a URL":   {Name: "rabbit", Management: "127.0.0.1:15672", User: "u"},
		"has to be a URL such as":      {Name: "rabbit", Management: "amqp://127.0.0.1:5672", User: "u"},
		"management is the bare URL":   {Name: "rabbit", Management: "http://u:tell-nobody@127.0.0.1:15672", User: "u"},
		"a URL such as http://127":     {Name: "rabbit", Management: "http://u:tell-nobody@127.0.0.1:port", User: "u"},
		"cannot be named in a URL":     {Name: "rabbit", Management: "http://127.0.0.1:15672", User: "u", Vhost: ".."},
		"user and password are settin": {Name: "rabbit", Management: "http://127.0.0.1:15672/?a=b", User: "u"},
	} {
		_, err := New(opts)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "tell-nobody") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	if version, err := open(t, v, nil).Ping(t.Context()); err != nil || strings.Count(version, ".") != 2 {
		t.Errorf("%q, %v", version, err)
	}
}

// wantFailure checks that the queue, the evidence and Ping (unless it works) say the same, without a secret.
func wantFailure(t testing.TB, b *Broker, words string, pingWorks bool) {
	t.Helper()
	e := b.Evidence(t.Context(), flow.Queue{Name: "q", DeadLetter: "dlq"})
	wantState(t, e.Observation, flow.Error, words)
	for _, q := range e.Queues {
		wantState(t, q.Observation, flow.Error, words)
	}
	if strings.Count(e.Reason.EN, words) != 1 {
		t.Errorf("the reason stands there for each queue: %s", e.Reason.EN)
	}
	_, err := b.Ping(t.Context())
	var failure *Error
	if !pingWorks && (!errors.As(err, &failure) || !strings.Contains(err.Error(), words) || failure.Text.ZH == "") || pingWorks && err != nil {
		t.Errorf("ping: %v, want %q", err, words)
	}
	if said := fmt.Sprint(e, err); strings.Contains(said, "tell-nobody") {
		t.Errorf("it tells the password: %s", said)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	administer(t, v, "PUT", map[string]string{"password": "tell-nobody", "tags": ""}, "users", v.Monitor+"-plain")
	defer administer(t, v, "DELETE", nil, "users", v.Monitor+"-plain")
	wantFailure(t, open(t, v, func(o *Options) { o.Password = "tell-nobody" }), "wrong RabbitMQ user or password", false)
	wantFailure(t, open(t, v, func(o *Options) { o.User = "nobody" }), "wrong RabbitMQ user or password", false)
	wantFailure(t, open(t, v, func(o *Options) { o.User, o.Password = v.Monitor+"-plain", "tell-nobody" }), "give it the tag monitoring", false)
	wantFailure(t, open(t, v, func(o *Options) { o.Vhost = "/" }), "may not see vhost /: give it permissions", true)
	wantFailure(t, open(t, v, func(o *Options) { o.Vhost = "no such" }), "there is no vhost no such", true)
}

func TestAbsentAndBack(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	proxy := testkit.NewProxy(t, strings.TrimPrefix(v.Management, "http://"))
	b := open(t, v, func(o *Options) { o.Management = "http://" + proxy.Addr })
	wantState(t, look(t, b, "q").Observation, flow.Absent, "no such queue")
	proxy.Drop(true)
	wantFailure(t, b, "connection refused: nothing listens on "+proxy.Addr, false)
	proxy.Drop(false)
	wantState(t, look(t, b, "q").Observation, flow.Absent, "no such queue")
}

func TestHanging(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	proxy := testkit.NewProxy(t, strings.TrimPrefix(v.Management, "http://"))
	proxy.Hang(true)
	b := open(t, v, func(o *Options) { o.Management, o.Timeout = "http://"+proxy.Addr, 300*time.Millisecond })
	start := time.Now()
	wantFailure(t, b, "no answer within 3", false)
	if waited := time.Since(start); waited > 3*time.Second {
		t.Errorf("waited %s", waited)
	}
	// More queues than connections: those that wait for one do not wait longer than the caller.
	b = open(t, v, func(o *Options) { o.Management = "http://" + proxy.Addr })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start = time.Now()
	for _, q := range b.Queues(ctx, make([]broker.NamedQueue, 5*maxConnections)) {
		wantState(t, q.Observation, flow.Error, "no answer within")
	}
	if waited := time.Since(start); waited > 3*time.Second {
		t.Errorf("waited %s", waited)
	}
	proxy.Hang(false)
	testkit.Eventually(t, 10*time.Second, func() bool { return look(t, b, "q").State == flow.Absent }, "it does not heal")
}

func TestACancelledQuestion(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantState(t, open(t, v, nil).Evidence(ctx, flow.Queue{Name: "q"}).Observation, flow.Error, "called off")
}

// Something else listens where the management API should be.
func TestNotRabbitMQ(t *testing.T) {
	asked := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer other.Close()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"a page":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!DOCTYPE html><title>Welcome</title>") }, "not as the RabbitMQ management API"},
		"a missing page": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<h1>404</h1>", http.StatusNotFound) }, "not as the RabbitMQ management API"},
		"other JSON":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) }, "not as the RabbitMQ management API"},
		"a list":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"name":"q"}]`) }, "not as the RabbitMQ management API"},
		"an endless answer": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}, "not as the RabbitMQ management API"},
		"a gateway": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) }, "status 502"},
		"an echo": {func(w http.ResponseWriter, r *http.Request) {
			_, password, _ := r.BasicAuth()
			w.WriteHeader(500)
			fmt.Fprintf(w, `{"reason":"%s"}`, password)
		}, "status 500 <secret>"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/api?password=tell-nobody", http.StatusMovedPermanently)
		}, "redirects to " + other.URL + ": configure"},
		"a lost answer": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(c.answer))
			defer server.Close()
			b := open(t, &testkit.Vhost{Management: server.URL, Name: "/", Monitor: "u", MonitorPassword: "tell-nobody"}, nil)
			wantFailure(t, b, c.want, false)
			b.client.CloseIdleConnections()
		})
	}
	select {
	case path := <-asked:
		t.Errorf("a redirect was followed to %s", path)
	default:
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"rabbitmq_version":"4.0.5"}`) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it is refused on purpose
	server.StartTLS()
	defer server.Close()
	v := &testkit.Vhost{Management: server.URL, Name: "/", Monitor: "u", MonitorPassword: "tell-nobody"}
	trusting := open(t, v, func(o *Options) { o.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig })
	if version, err := trusting.Ping(t.Context()); err != nil || version != "4.0.5" {
		t.Errorf("%q, %v", version, err)
	}
	trusting.client.CloseIdleConnections()
	wantFailure(t, open(t, v, nil), "TLS certificate of the management API is not trusted", false)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	v.Management = strings.Replace(plain.URL, "http:", "https:", 1)
	wantFailure(t, open(t, v, nil), "HTTP response to HTTPS client", false)
}
