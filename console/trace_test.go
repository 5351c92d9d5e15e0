package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// noDesk knows every key in one flow and answers nothing.
type noDesk struct{ Desk }

func (noDesk) Places(k flow.Key, _ string) ([]flow.Place, error) {
	return []flow.Place{{Flow: "payments", Key: k}}, nil
}
func (noDesk) Answer(context.Context, flow.Place) (answer.Answer, error) {
	return answer.Answer{}, nil
}
func (noDesk) Search(context.Context, string) (answer.Result, error) { return answer.Result{}, nil }

// armable is one broker that is armed as told.
type armable struct {
	state  TraceState
	refuse *flow.Text
	armed  []time.Duration
	off    int
}

func (a *armable) Brokers() []string       { return []string{"rabbit"} }
func (a *armable) State(string) TraceState { return a.state }
func (a *armable) Disarm(string)           { a.off++ }
func (a *armable) Arm(_ context.Context, _ string, d time.Duration) *flow.Text {
	a.armed = append(a.armed, d)
	return a.refuse
}

func traceConsole(t *testing.T, traces Traces, actions bool) http.Handler {
	t.Helper()
	h, err := New(Options{Desk: noDesk{}, Flows: []flow.Flow{{Name: "payments"}}, Traces: traces, Actions: actions, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func idleTrace() *armable {
	return &armable{state: TraceState{
		Broker: "rabbit", MinTime: 10 * time.Second, MaxTime: 10 * time.Minute,
		Cost: []flow.Text{flow.T("it costs a lot", "代价很高")}, Limits: []flow.Text{flow.T("no acks", "没有确认")},
	}}
}

// tokenOf returns the token of the form on the page of traces; empty when there is none.
func tokenOf(h http.Handler) string {
	page := askTrace(h, "GET", "/trace", nil, nil).Body.String()
	_, rest, _ := strings.Cut(page, `name="form_token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

// askTrace sends a request; a form gets the token of the page.
func askTrace(h http.Handler, method, target string, form url.Values, header map[string]string) *httptest.ResponseRecorder {
	if method == "POST" {
		form = maps.Clone(form)
		form.Set("form_token", tokenOf(h))
	}
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Host = "127.0.0.1:9877"
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var armForm = url.Values{"broker": {"rabbit"}, "do": {"arm"}, "minutes": {"3"}, "agreed": {"yes"}}

func TestThePageOfTracesTellsTheCostBeforeItCanBeArmed(t *testing.T) {
	for lang, words := range map[string][]string{
		"en": {"it costs a lot", "no acks", "Tracing is off", "Turn tracing on", "3 min", "I accept this cost"},
		"zh": {"代价很高", "没有确认", "追踪未开启", "开启追踪", "3 分钟", "我接受"},
	} {
		w := askTrace(traceConsole(t, idleTrace(), true), "GET", "/trace?lang="+lang, nil, nil)
		for _, word := range words {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), word) {
				t.Errorf("%s: status %d, no %q", lang, w.Code, word)
			}
		}
	}
	w := askTrace(traceConsole(t, idleTrace(), false), "GET", "/trace", nil, nil)
	if body := w.Body.String(); strings.Contains(body, "<form class=\"filter\"") || !strings.Contains(body, "console.actions: true") {
		t.Errorf("it can be armed without leave:\n%s", body)
	}
}

func TestAnArmedTraceShowsWhatIsLeftAndWhatItCounted(t *testing.T) {
	a := idleTrace()
	a.state.Armed, a.state.Since, a.state.Until = true, time.Now(), time.Now().Add(2*time.Minute)
	a.state.Deliveries, a.state.Lossy, a.state.Fault = 7, true, flow.T("<b>fault</b>", "<b>故障</b>")
	a.state.Counts = []TraceCount{{Place: flow.Place{Flow: "payments", Key: flow.Key{BizType: "order_paid", BizID: "<script>alert(1)</script>\x00"}}, Deliveries: 3, Redelivered: 2}}
	h := traceConsole(t, a, true)
	body := askTrace(h, "GET", "/trace", nil, nil).Body.String()
	for _, want := range []string{"Tracing is on", `data-ttl="1`, "Turn tracing off now", "7 deliveries", "&lt;script&gt;", "<strong>3</strong>", "counts are too low", "&lt;b&gt;fault"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(body, "<script>alert") || strings.Contains(body, "Turn tracing on<") {
		t.Errorf("the page holds what it must not:\n%s", body)
	}
	var answered struct {
		Actions bool
		Traces  []TraceJSON
	}
	if err := json.Unmarshal(askTrace(h, "GET", "/api/v1/trace", nil, nil).Body.Bytes(), &answered); err != nil {
		t.Fatal(err)
	}
	one := answered.Traces[0]
	if !answered.Actions || !one.Armed || one.SecondsLeft == nil || *one.SecondsLeft > 120 || one.Counts[0].Deliveries != 3 || one.Counts[0].BizID != a.state.Counts[0].Place.Key.BizID || one.Cost[0] != "it costs a lot" {
		t.Errorf("%+v", answered)
	}
}

func TestATraceIsArmedOnceItsCostIsAccepted(t *testing.T) {
	a := idleTrace()
	h := traceConsole(t, a, true)
	w := askTrace(h, "POST", "/trace?lang=zh", armForm, map[string]string{"Sec-Fetch-Site": "same-origin"})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./trace?lang=zh" || len(a.armed) != 1 || a.armed[0] != 3*time.Minute {
		t.Errorf("status %d to %q, armed %v", w.Code, w.Header().Get("Location"), a.armed)
	}
	if w := askTrace(h, "POST", "/trace", url.Values{"broker": {"rabbit"}, "do": {"disarm"}}, nil); w.Code != http.StatusSeeOther || a.off != 1 {
		t.Errorf("status %d, %d times off", w.Code, a.off)
	}
	refused := flow.T("somebody else traces", "他人正在追踪")
	a.refuse = &refused
	if w := askTrace(h, "POST", "/trace", armForm, nil); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "somebody else traces") {
		t.Errorf("status %d\n%s", w.Code, w.Body)
	}
}

func TestWhatMayNotArmATraceIsRefused(t *testing.T) {
	change := func(name, value string) url.Values {
		form := url.Values{}
		for k, v := range armForm {
			form[k] = v
		}
		form.Set(name, value)
		return form
	}
	for what, c := range map[string]struct {
		form    url.Values
		header  map[string]string
		actions bool
		status  int
	}{
		"not allowed":    {armForm, nil, false, http.StatusForbidden},
		"another site":   {armForm, map[string]string{"Sec-Fetch-Site": "cross-site"}, true, http.StatusForbidden},
		"a sibling":      {armForm, map[string]string{"Sec-Fetch-Site": "same-site"}, true, http.StatusForbidden},
		"another origin": {armForm, map[string]string{"Origin": "http://evil.example"}, true, http.StatusForbidden},
		"no origin":      {armForm, map[string]string{"Origin": "null"}, true, http.StatusForbidden},
		"not agreed":     {change("agreed", ""), nil, true, http.StatusBadRequest},
		"no minutes":     {change("minutes", "x"), nil, true, http.StatusBadRequest},
		"too long":       {change("minutes", "61"), nil, true, http.StatusBadRequest},
		"no such broker": {change("broker", "other"), nil, true, http.StatusBadRequest},
		"no such thing":  {change("do", "destroy"), nil, true, http.StatusBadRequest},
		"a huge form":    {change("agreed", strings.Repeat("x", maxForm)), nil, true, http.StatusBadRequest},
		"nothing at all": {url.Values{}, nil, true, http.StatusBadRequest},
	} {
		a := idleTrace()
		if w := askTrace(traceConsole(t, a, c.actions), "POST", "/trace", c.form, c.header); w.Code != c.status || len(a.armed) > 0 {
			t.Errorf("%s: status %d, want %d; armed %v", what, w.Code, c.status, a.armed)
		}
	}
	for _, target := range []string{"/trace", "/api/v1/trace"} {
		if w := askTrace(traceConsole(t, nil, true), "GET", target, nil, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s without a broker that can be traced: status %d", target, w.Code)
		}
	}
	if w := askTrace(traceConsole(t, nil, true), "POST", "/trace", armForm, nil); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}
