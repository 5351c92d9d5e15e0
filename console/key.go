package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

const (
	// patience is how long the first answer waits for the stores.
	patience = 300 * time.Millisecond
	// minRefresh and maxRefresh bound how often a page is read anew, in seconds;
	// usualRefresh is what its switch asks for.
	minRefresh, usualRefresh, maxRefresh = 5, 5, 300
)

// keyPage is everything about one key.
type keyPage struct {
	page
	Says    keyWords
	Key     keyView
	Flow    string
	Verdict verdictView
	At      moment
	Took    flow.Text
	Pasted  *pastedView
	Strip   []stripCell
	Gates   []gateView
	Broker  brokerView
	Lock    redisView
	Marker  redisView
	Record  recordView
	Near    []nearView
	Story   storyView
	// Pending: not every layer has answered; Fill leads to the page that waits for all.
	Pending bool
	// Report is the answer as Markdown; empty while it is not complete.
	Report string
	// JSON and Again are addresses of this answer, JSONFile and ReportFile those of
	// files of it. RefreshOn and RefreshOff are this page with and without being
	// read anew by itself.
	JSON, Again, JSONFile, ReportFile, RefreshOn, RefreshOff string
	UsualRefresh                                             int
	Actions                                                  actionsView
}

// keyView is the question.
type keyView struct {
	Type, ID ident
}

// verdictView is the answer with the words around it.
type verdictView struct {
	verdict.Verdict
	SeverityWord, CodeWord flow.Text
}

// Located reports whether one layer failed or gave no answer.
func (v verdictView) Located() bool { return v.Layer != flow.LayerNone && v.Layer != "" }

// At reports whether the verdict points to the layer.
func (v verdictView) At(l string) bool { return v.Located() && string(v.Layer) == l }

func newVerdictView(v verdict.Verdict) verdictView {
	return verdictView{Verdict: v, SeverityWord: severityWord(v.Severity), CodeWord: codeWord(v.Code)}
}

func newKeyView(k flow.Key) keyView { return keyView{Type: newIdent(k.BizType), ID: newIdent(k.BizID)} }

// places are the flows of the key that the visit names.
func (c *console) places(v visit) ([]flow.Place, error) {
	var k flow.Key
	var flowName string
	for _, p := range []struct {
		name      string
		into      *string
		mandatory bool
	}{{"type", &k.BizType, true}, {"id", &k.BizID, true}, {"flow", &flowName, false}} {
		text, given, err := v.text(p.name)
		if err != nil {
			return nil, err
		}
		// An empty id is a key like any other: consumers do get messages without one.
		if p.mandatory && !given {
			return nil, missingParameter(p.name)
		}
		*p.into = text
	}
	return c.Desk.Places(k, flowName)
}

// asked finds the place of the key that the visit names.
func (c *console) asked(v visit) (flow.Place, error) {
	places, err := c.places(v)
	if err != nil {
		return flow.Place{}, err
	}
	if len(places) > 1 {
		return flow.Place{}, severalFlows(v, places)
	}
	return places[0], nil
}

// answer looks up the key that the visit names, and waits for every layer.
func (c *console) answer(g *gin.Context, v visit) (answer.Answer, error) {
	p, err := c.asked(v)
	if err != nil {
		return answer.Answer{}, err
	}
	a, err := c.Desk.Answer(g.Request.Context(), p)
	return shownTo(v, a), err
}

// waits reads how the visit wants to wait, and how often it comes back by itself.
func (c *console) waits(v visit) (all bool, refresh int, err error) {
	wait, given, err := v.text("wait")
	if err != nil {
		return false, 0, err
	}
	if given && wait != "all" {
		return false, 0, badWait()
	}
	text, given, err := v.text("refresh")
	if err != nil || !given {
		return wait == "all", 0, err
	}
	refresh, bad := strconv.Atoi(text)
	if bad != nil || refresh < minRefresh || refresh > maxRefresh {
		return false, 0, badRefresh()
	}
	return wait == "all", refresh, nil
}

func (c *console) key(g *gin.Context, v visit) error {
	p, err := c.asked(v)
	if err != nil {
		return err
	}
	all, refresh, err := c.waits(v)
	if err != nil {
		return err
	}
	look := c.Desk.Answer
	if !all {
		look = func(ctx context.Context, p flow.Place) (answer.Answer, error) {
			return c.Desk.AnswerWithin(ctx, p, c.Patience)
		}
	}
	pasted := c.askPasted(g.Request.Context(), p, look)
	a, err := look(g.Request.Context(), p)
	if err != nil {
		return err
	}
	view := c.newKeyPage(v, shownTo(v, a))
	view.Actions = c.newActionsView(g, v, a)
	view.Pasted, view.Refresh = c.newPasted(v, <-pasted), refresh
	return c.render(g, http.StatusOK, v.lang, "key", view)
}

func (c *console) newKeyPage(v visit, a answer.Answer) keyPage {
	judged := newVerdictView(a.Verdict)
	name := strings.Join([]string{judged.CodeWord.In(v.lang), shown(a.Key.BizType) + " / " + shown(a.Key.BizID)}, " · ")
	clock, values := clock{c.Zone}, url.Values(keyValuesOf(v))
	view := keyPage{
		page: c.newPage(v, name), Says: newKeyWords(), Key: newKeyView(a.Key), Flow: a.Flow.Name, Verdict: judged,
		At: clock.moment(a.At), Took: flow.Span(a.Took),
		Strip: clock.newStrip(a, judged), Gates: newGates(a, judged),
		Broker: newBrokerView(a.Broker),
		Lock:   newRedisView(a.Lock, a.Flow.Lock), Marker: newRedisView(a.Marker, a.Flow.Marker),
		Record: clock.newRecordView(a.Record, a.Flow),
		Near:   c.newNear(v, a), Story: clock.newStoryView(a),
		JSON: v.link("api/v1/lookup", values), Again: v.again(),
		JSONFile:   v.link("api/v1/lookup", with(values, "download", "1")),
		ReportFile: v.link("key.md", values),
		RefreshOn:  v.link("key", with(values, "refresh", strconv.Itoa(usualRefresh))), RefreshOff: v.link("key", values),
		UsualRefresh: usualRefresh, Pending: a.Pending(),
	}
	if view.Pending {
		view.Fill = v.link("key", with(with(values, "wait", "all"), "refresh", v.values.Get("refresh")))
	} else {
		view.Report = a.Markdown(v.lang, c.Zone)
	}
	return view
}

// with returns the values with one more; without it where that is empty.
func with(values url.Values, name, value string) url.Values {
	values = maps.Clone(values)
	if value != "" {
		values.Set(name, value)
	}
	return values
}

// keyValuesOf repeats the key as it was asked.
func keyValuesOf(v visit) map[string][]string {
	values := map[string][]string{}
	for _, name := range []string{"type", "id", "flow"} {
		if given, ok := v.values[name]; ok {
			values[name] = given
		}
	}
	return values
}

func (c *console) lookupJSON(g *gin.Context, v visit) error {
	a, err := c.answer(g, v)
	if err != nil {
		return err
	}
	if v.values.Get("download") != "" {
		attach(g, keyFile(a.Key, "json"))
	}
	c.json(g, http.StatusOK, a.JSON(v.lang))
	return nil
}

// keyMarkdown is the answer as a file for a ticket.
func (c *console) keyMarkdown(g *gin.Context, v visit) error {
	a, err := c.answer(g, v)
	if err != nil {
		return err
	}
	attach(g, keyFile(a.Key, "md"))
	g.Data(http.StatusOK, "text/markdown; charset=utf-8", []byte(a.Markdown(v.lang, c.Zone)))
	return nil
}
