package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// Journal keeps and shows every attempt to change something.
type Journal interface {
	Append(ctx context.Context, e audit.Entry) error
	Read(ctx context.Context, q audit.Query) (audit.Page, error)
}

// defaultAudit is how many entries one page has.
const defaultAudit = 100

// auditPage is the list of attempts, the latest first.
type auditPage struct {
	page
	Says auditWords
	Rows []auditRow
	// Actions and Outcomes are the choices of the filter; Who is what was typed.
	Actions, Outcomes []option
	Who               string
	// Key is set when only one key's are listed.
	Key *keyView
	// Hidden are the parameters that the filter's form keeps.
	Hidden []hiddenValue
	// Narrowed: a filter is in force; Everything leads to the list without it.
	Narrowed   bool
	Everything string
	Bad        int
	Cut        bool
	// Next and First are addresses; empty where there is no such page.
	Next, First string
	JSON, Again string
}

// hiddenValue is a parameter that a form repeats.
type hiddenValue struct{ Name, Value string }

// auditRow is one entry.
type auditRow struct {
	audit.Entry
	When    moment
	Who     string
	Word    flow.Text
	Outcome flow.Text
	Tone    string
	// HasKey: it concerns a key.
	HasKey bool
	Key    keyView
	URL    string
}

// askedAudit is one request for attempts.
type askedAudit struct {
	query audit.Query
	page  audit.Page
}

func (c *console) askAudit(g *gin.Context, v visit) (askedAudit, error) {
	if c.Audit == nil {
		return askedAudit{}, notFound()
	}
	var asked askedAudit
	var key flow.Key
	var limit, outcome string
	keyed := 0
	for _, p := range []struct {
		name string
		into *string
		key  bool
	}{
		{"who", &asked.query.Who, false}, {"action", &asked.query.Action, false}, {"outcome", &outcome, false}, {"flow", &asked.query.Flow, false},
		{"after", &asked.query.After, false}, {"limit", &limit, false}, {"type", &key.BizType, true}, {"id", &key.BizID, true},
	} {
		text, given, err := v.text(p.name)
		if err != nil {
			return askedAudit{}, err
		}
		*p.into = text
		if given && p.key {
			keyed++
		}
	}
	asked.query.Outcome, asked.query.Limit = audit.Outcome(outcome), defaultAudit
	switch keyed {
	case 1:
		return askedAudit{}, missingParameter(map[bool]string{true: "type", false: "id"}[len(v.values["type"]) == 0])
	case 2:
		asked.query.Key = &key
	}
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > audit.MaxEntries {
			return askedAudit{}, badAuditLimit()
		}
		asked.query.Limit = n
	}
	var err error
	asked.page, err = c.Audit.Read(g.Request.Context(), asked.query)
	switch {
	case errors.Is(err, audit.ErrMark):
		return askedAudit{}, badMark()
	case err != nil:
		c.Logger.Error("console: the audit file cannot be read", "err", err)
		return askedAudit{}, auditUnreadable()
	}
	return asked, nil
}

// next is the address of the page that follows; empty without one.
func (a askedAudit) next(v visit, path string) string {
	if a.page.Next == "" {
		return ""
	}
	values := maps.Clone(v.values)
	values.Set("after", a.page.Next)
	return v.link(path, values)
}

func (c *console) audit(g *gin.Context, v visit) error {
	asked, err := c.askAudit(g, v)
	if err != nil {
		return err
	}
	q := asked.query
	says := newAuditWords()
	view := auditPage{
		page: c.newPage(v, says.Title.In(v.lang)), Says: says, Who: typed(q.Who), Bad: asked.page.Bad, Cut: asked.page.Cut,
		Narrowed: q.Key != nil || q.Who != "" || q.Action != "" || q.Outcome != "" || q.Flow != "", Everything: v.link("audit", nil),
		Next: asked.next(v, "audit"), JSON: v.link("api/v1/audit", v.values), Again: v.again(),
	}
	if q.After != "" {
		values := maps.Clone(v.values)
		values.Del("after")
		view.First = v.link("audit", values)
	}
	if q.Key != nil {
		key := newKeyView(*q.Key)
		view.Key = &key
	}
	for _, name := range []string{"type", "id", "flow", "lang"} {
		// A form would change bytes that are no text.
		if all := v.values[name]; len(all) == 1 && typed(all[0]) == all[0] {
			view.Hidden = append(view.Hidden, hiddenValue{name, all[0]})
		}
	}
	for _, k := range append(append([]action.Kind(nil), action.Kinds...), "trace-arm", "trace-disarm", "sign-in") {
		view.Actions = append(view.Actions, option{Value: string(k), Word: deedWord(string(k)), Selected: q.Action == string(k)})
	}
	for _, o := range []audit.Outcome{audit.Done, audit.Nothing, audit.Refused, audit.Failed, audit.Begun} {
		view.Outcomes = append(view.Outcomes, option{Value: string(o), Word: action.OutcomeWord(o), Selected: q.Outcome == o})
	}
	for _, e := range asked.page.Entries {
		view.Rows = append(view.Rows, c.newAuditRow(v, e))
	}
	return c.render(g, http.StatusOK, v.lang, "audit", view)
}

func (c *console) newAuditRow(v visit, e audit.Entry) auditRow {
	row := auditRow{
		Entry: e, When: clock{c.Zone}.moment(e.At), Who: shown(e.Who), Word: deedWord(e.Action), Outcome: action.OutcomeWord(e.Outcome), Tone: toneOf(e.Outcome),
		HasKey: e.Place != (flow.Place{}), Key: newKeyView(e.Place.Key),
	}
	if e.Outcome == audit.Begun {
		row.Tone = "info"
	}
	if row.HasKey {
		row.URL = v.link("key", keyValues(e.Place.Key, e.Place.Flow))
	}
	return row
}

// deedWord names what was tried; what has no words names itself.
func deedWord(name string) flow.Text {
	switch name {
	case "trace-arm":
		return flow.T("Arm the trace", "开启追踪")
	case "trace-disarm":
		return flow.T("Disarm the trace", "关闭追踪")
	case "cleanup-stop":
		return flow.T("Stop a cleanup", "停止清理")
	case "sign-in":
		return flow.T("Sign in", "登录")
	}
	return action.Kind(name).Word()
}

// AuditJSON is the answer of /api/v1/audit.
type AuditJSON struct {
	Entries []AuditEntryJSON `json:"entries"`
	// Next leads to older entries; empty when all were read.
	Next string `json:"next"`
	// Bad counts lines of the file that are no entries. Cut: enough was read.
	Bad int  `json:"bad"`
	Cut bool `json:"cut"`
	// Since is the time of the oldest entry that was read; missing without one.
	Since string `json:"since,omitempty"`
}

// AuditEntryJSON is one attempt. Key is null for what concerns none.
type AuditEntryJSON struct {
	At      string          `json:"at"`
	Attempt string          `json:"attempt"`
	Who     string          `json:"who"`
	From    string          `json:"from"`
	Action  string          `json:"action"`
	Flow    string          `json:"flow,omitempty"`
	Key     *answer.KeyJSON `json:"key"`
	Reason  string          `json:"reason"`
	Outcome audit.Outcome   `json:"outcome"`
	Why     string          `json:"why"`
	Before  string          `json:"before"`
	After   string          `json:"after"`
}

func (c *console) auditJSON(g *gin.Context, v visit) error {
	asked, err := c.askAudit(g, v)
	if err != nil {
		return err
	}
	j := AuditJSON{Entries: []AuditEntryJSON{}, Next: asked.next(v, "api/v1/audit"), Bad: asked.page.Bad, Cut: asked.page.Cut}
	if !asked.page.Since.IsZero() {
		j.Since = asked.page.Since.Format(time.RFC3339Nano)
	}
	for _, e := range asked.page.Entries {
		entry := AuditEntryJSON{
			At: e.At.Format(time.RFC3339Nano), Attempt: e.Attempt, Who: e.Who, From: e.From, Action: e.Action, Flow: e.Place.Flow,
			Reason: e.Reason, Outcome: e.Outcome, Why: e.Why.In(v.lang), Before: e.Before, After: e.After,
		}
		if e.Place != (flow.Place{}) {
			key := answer.NewKeyJSON(e.Place.Key)
			entry.Key = &key
		}
		j.Entries = append(j.Entries, entry)
	}
	c.json(g, http.StatusOK, j)
	return nil
}
