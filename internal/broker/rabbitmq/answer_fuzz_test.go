package rabbitmq

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// transport answers every request alike, with what a broker, a proxy or a liar
// could send.
type transport struct {
	status   int
	location string
	body     []byte
}

func (a transport) RoundTrip(*http.Request) (*http.Response, error) {
	header := http.Header{}
	if a.location != "" {
		header.Set("Location", a.location)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

const fuzzSecret = "hunter2-hunter2"

// FuzzManagementAnswer: whatever the management API answers, a queue is known to
// be empty only when it said so in numbers, and no text shows the password or a
// control character.
func FuzzManagementAnswer(f *testing.F) {
	for _, s := range []struct {
		status   int
		location string
		body     string
	}{
		{200, "", `{"name":"q","type":"quorum","state":"running","messages":0,"messages_ready":0,"messages_unacknowledged":0,"consumers":1,"message_stats":{"redeliver":3},"arguments":[]}`},
		{200, "", `{"name":"q","messages":9,"messages_ready":2,"messages_unacknowledged":3,"consumers":0,"arguments":{"x-dead-letter-exchange":""},"effective_policy_definition":{}}`},
		{200, "", `{"name":"q","state":"down` + "\\u001b" + `","messages_ready":0,"messages_unacknowledged":0,"consumers":0}`},
		{200, "", `{"name":"q","messages_ready":1e3,"messages_unacknowledged":null,"consumers":0}`},
		{200, "", `{"name":"q","arguments":[1]}`}, {200, "", `[]`}, {200, "", ""}, {200, "", "<html>"},
		{404, "", `{"error":"Object Not Found","reason":"Not Found"}`}, {401, "", `{"reason":"User not authorised to access virtual host"}`},
		{500, "", `{"reason":"` + fuzzSecret + ` ` + "\\u202e" + `"}`}, {301, "http://user:" + fuzzSecret + "@elsewhere/x", ""}, {302, ":", ""}, {204, "", ""},
	} {
		f.Add(s.status, s.location, []byte(s.body))
	}
	f.Fuzz(func(t *testing.T, status int, location string, body []byte) {
		if to, err := url.Parse(location); err == nil && strings.Contains(to.Host, fuzzSecret) {
			return // who calls a host by the password has it from elsewhere
		}
		b, err := New(Options{Name: "rabbit", Management: "http://broker.test:15672", User: "monitor", Password: fuzzSecret})
		if err != nil {
			t.Fatal(err)
		}
		b.client.Transport = transport{100 + int(uint(status-100)%500), location, body}
		e := b.Evidence(t.Context(), flow.Queue{Broker: "rabbit", Name: "q", DeadLetter: "q"})
		if len(e.Queues) != 1 {
			t.Fatalf("%d queues of one name", len(e.Queues))
		}
		q := e.Queues[0]
		if q.State == flow.Found && (q.Ready < 0 || q.Unacked < 0 || q.Consumers < 0 || q.Other < 0) {
			t.Errorf("fewer messages than none: %+v", q)
		}
		if e.State == flow.Found || e.State == flow.Absent && (q.State != flow.Found || q.Messages() != 0) {
			t.Errorf("the evidence is %s from %+v", e.State, q)
		}
		for _, o := range []flow.Observation{e.Observation, q.Observation} {
			checkWords(t, o)
		}
		if _, err := b.Ping(t.Context()); err != nil {
			checkText(t, err.Error())
		}
	})
}

func checkWords(t *testing.T, o flow.Observation) {
	t.Helper()
	needsReason := o.State == flow.Unknown || o.State == flow.Error
	if needsReason && (o.Reason.EN == "" || o.Reason.ZH == "") {
		t.Errorf("%s without a reason", o.State)
	}
	for _, text := range append([]flow.Text{o.Reason}, o.Coverage...) {
		checkText(t, text.EN)
		checkText(t, text.ZH)
	}
	checkText(t, o.Source)
	checkText(t, strings.ReplaceAll(o.Command, "\n", " "))
}

func checkText(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, fuzzSecret) {
		t.Errorf("the password is shown: %q", text)
	}
	if strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) >= 0 || !utf8.ValidString(text) {
		t.Errorf("shown as it is: %q", text)
	}
}

// FuzzQueueNames: any name of a queue and of a vhost is one segment of the
// address that is asked for, or is refused.
func FuzzQueueNames(f *testing.F) {
	for _, s := range [][2]string{{"q", "/"}, {"a/b", "shop"}, {"..", "/"}, {".", "."}, {"a?b#c%2F", "\x00"}, {"订单", "\xff"}, {"", "/"}, {"a;b", "a//b"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, vhost string) {
		b, err := New(Options{Name: "rabbit", Management: "http://broker.test/prefix", Vhost: vhost, User: "monitor", Password: fuzzSecret})
		if err != nil {
			return
		}
		asked := ""
		b.client.Transport = recorder(func(r *http.Request) { asked = r.URL.EscapedPath() })
		q := b.Queues(t.Context(), []broker.NamedQueue{{Name: name, Role: broker.RoleWork}})[0]
		if q.State != flow.Error {
			t.Errorf("an answer without a body is %s", q.State)
		}
		checkWords(t, q.Observation)
		if asked == "" {
			return
		}
		if segments := strings.Split(asked, "/"); len(segments) != 6 || !strings.HasPrefix(asked, "/prefix/api/queues/") {
			t.Errorf("queue %q of vhost %q is asked for as %s", name, vhost, asked)
		}
	})
}

// recorder sees every request and answers it with nothing.
type recorder func(*http.Request)

func (see recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	see(r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}
