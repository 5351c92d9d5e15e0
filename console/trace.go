package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/flow"
)

// Traces arms and shows the traces of brokers: for minutes, a broker copies
// every delivery of its vhost.
type Traces interface {
	// Brokers lists those that can be traced.
	Brokers() []string
	// State is where the trace of one of them stands.
	State(broker string) TraceState
	// Arm turns tracing on for d. It returns why it did not, or nil.
	Arm(ctx context.Context, broker string, d time.Duration) *flow.Text
	// Disarm turns tracing off and returns when it is.
	Disarm(broker string)
}

// TraceState is where the trace of a broker stands.
type TraceState struct {
	Broker string
	Armed  bool
	// Since, Until: when the latest trace runs or ran. Zero: there was none.
	Since, Until time.Time
	// Deliveries that were counted, and those of them without a known key.
	Deliveries, Unread int64
	// Lossy: the counts are too low.
	Lossy bool
	// Fault says what went wrong; it may be empty.
	Fault flow.Text
	// Counts are the keys with the most deliveries.
	Counts []TraceCount
	// Cost and Limits are what to know before arming.
	Cost, Limits []flow.Text
	// MinTime and MaxTime bound a trace.
	MinTime, MaxTime time.Duration
}

// TraceCount is how often messages of a key were delivered.
type TraceCount struct {
	Place                   flow.Place
	Deliveries, Redelivered int64
}

// tracePage shows the traces of all brokers.
type tracePage struct {
	page
	Says traceWords
	// Allowed: the configuration lets an operator arm one.
	Allowed     bool
	Brokers     []traceView
	JSON, Again string
}

// traceView is one broker.
type traceView struct {
	TraceState
	Says traceWords
	// Ran: there was a trace.
	Ran            bool
	SinceAt, Ended moment
	// Left until its end, in ms and in words, while it is armed.
	Left     int64
	LeftText flow.Text
	Rows     []traceRow
	Minutes  []int
	Action   string
	Allowed  bool
	// WhyNot says why not, unless it is allowed.
	WhyNot flow.Text
	// Token is for the one form that the view shows.
	Token string
}

// traceRow is one counted key.
type traceRow struct {
	TraceCount
	Key keyView
	URL string
}

func (c *console) trace(g *gin.Context, v visit) error {
	if c.Traces == nil {
		return tracesOff()
	}
	words := newTraceWords()
	view := tracePage{
		page: c.newPage(v, words.Title.In(v.lang)), Says: words, Allowed: c.mayChange(v),
		JSON: v.link("api/v1/trace", nil), Again: v.again(),
	}
	for _, name := range c.Traces.Brokers() {
		view.Brokers = append(view.Brokers, c.newTraceView(g, v, c.Traces.State(name), words))
	}
	return c.render(g, http.StatusOK, v.lang, "trace", view)
}

func (c *console) newTraceView(g *gin.Context, v visit, s TraceState, words traceWords) traceView {
	view := traceView{
		TraceState: s, Says: words, Ran: !s.Since.IsZero(), Action: v.link("trace", nil), Allowed: c.mayChange(v),
		SinceAt: clock{c.Zone}.moment(s.Since), Ended: clock{c.Zone}.moment(s.Until),
	}
	if left := time.Until(s.Until); s.Armed && left > 0 {
		view.Left, view.LeftText = left.Milliseconds(), flow.Span(left.Truncate(time.Second))
	}
	switch {
	case view.Allowed:
		view.Token = c.formToken(g)
	case c.Actions:
		view.WhyNot = needsRole(access.Operator)
	default:
		view.WhyNot = words.NotAllowed
	}
	for _, n := range s.Counts {
		view.Rows = append(view.Rows, traceRow{TraceCount: n, Key: newKeyView(n.Place.Key), URL: c.placeURL(v, n.Place)})
	}
	for _, m := range []int{1, 3, 5, 10} {
		if d := time.Duration(m) * time.Minute; d >= s.MinTime && d <= s.MaxTime {
			view.Minutes = append(view.Minutes, m)
		}
	}
	return view
}

// changeTrace arms or disarms, and leads back to the page.
func (c *console) changeTrace(g *gin.Context, v visit) error {
	switch {
	case c.Traces == nil:
		return tracesOff()
	case !c.Actions:
		return actionsOff()
	}
	if err := c.acceptForm(g); err != nil {
		return err
	}
	form := g.Request.PostForm
	broker := form.Get("broker")
	if !slices.Contains(c.Traces.Brokers(), broker) {
		return badTraceForm()
	}
	switch form.Get("do") {
	case "disarm":
		if err := c.deed(g, "trace-disarm", broker, "", func() *fault { c.Traces.Disarm(broker); return nil }); err != nil {
			return err
		}
	case "arm":
		if err := c.arm(g, broker, form); err != nil {
			return err
		}
	default:
		return badTraceForm()
	}
	// Relative, so that it holds below a path prefix.
	g.Header("Location", v.link("trace", nil))
	g.Status(http.StatusSeeOther)
	return nil
}

func (c *console) arm(g *gin.Context, broker string, form url.Values) error {
	minutes, err := strconv.Atoi(form.Get("minutes"))
	if err != nil || minutes < 1 || minutes > 60 {
		return badTraceForm()
	}
	if form.Get("agreed") != "yes" {
		return notAgreed()
	}
	return c.deed(g, "trace-arm", broker, fmt.Sprintf("%d min", minutes), func() *fault {
		if reason := c.Traces.Arm(g.Request.Context(), broker, time.Duration(minutes)*time.Minute); reason != nil {
			return notArmed(*reason)
		}
		return nil
	})
}

func (c *console) traceJSON(g *gin.Context, v visit) error {
	if c.Traces == nil {
		return tracesOff()
	}
	answer := TracesJSON{c.Actions, []TraceJSON{}}
	for _, name := range c.Traces.Brokers() {
		answer.Traces = append(answer.Traces, NewTraceJSON(c.Traces.State(name), v.lang))
	}
	c.json(g, http.StatusOK, answer)
	return nil
}

// TracesJSON is the answer of /api/v1/trace. Actions: a trace can be armed from here.
type TracesJSON struct {
	Actions bool        `json:"actions"`
	Traces  []TraceJSON `json:"traces"`
}

// TraceJSON is a trace as API and command line give it.
type TraceJSON struct {
	Broker string     `json:"broker"`
	Armed  bool       `json:"armed"`
	Since  *time.Time `json:"since"`
	Until  *time.Time `json:"until"`
	// SecondsLeft is null when it is not armed.
	SecondsLeft *float64         `json:"seconds_left"`
	Deliveries  int64            `json:"deliveries"`
	Unread      int64            `json:"unread"`
	Lossy       bool             `json:"lossy"`
	Fault       string           `json:"fault"`
	Counts      []TraceCountJSON `json:"counts"`
	Cost        []string         `json:"cost"`
	Limits      []string         `json:"limits"`
}

// TraceCountJSON is one counted key.
type TraceCountJSON struct {
	Flow        string `json:"flow"`
	BizType     string `json:"biz_type"`
	BizID       string `json:"biz_id"`
	Deliveries  int64  `json:"deliveries"`
	Redelivered int64  `json:"redelivered"`
}

// NewTraceJSON words a state in one language.
func NewTraceJSON(s TraceState, lang flow.Language) TraceJSON {
	j := TraceJSON{
		Broker: s.Broker, Armed: s.Armed, Deliveries: s.Deliveries, Unread: s.Unread, Lossy: s.Lossy, Fault: s.Fault.In(lang),
		Counts: []TraceCountJSON{}, Cost: []string{}, Limits: []string{},
	}
	if !s.Since.IsZero() {
		j.Since, j.Until = &s.Since, &s.Until
	}
	if s.Armed {
		j.SecondsLeft = new(max(0, time.Until(s.Until).Seconds()))
	}
	for _, n := range s.Counts {
		j.Counts = append(j.Counts, TraceCountJSON{n.Place.Flow, n.Place.Key.BizType, n.Place.Key.BizID, n.Deliveries, n.Redelivered})
	}
	for _, t := range s.Cost {
		j.Cost = append(j.Cost, t.In(lang))
	}
	for _, t := range s.Limits {
		j.Limits = append(j.Limits, t.In(lang))
	}
	return j
}
