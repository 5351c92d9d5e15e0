package console

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// keyPage is everything about one key.
type keyPage struct {
	page
	Key     keyView
	Flow    string
	Verdict verdictView
	At      moment
	Took    flow.Text
	Broker  brokerView
	Lock    redisView
	Marker  redisView
	Record  recordView
	Story   storyView
	Actions actionsView
	// JSON and Again are addresses of this answer.
	JSON, Again string
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

// answer looks up the key that the visit names.
func (c *console) answer(g *gin.Context, v visit) (answer.Answer, error) {
	places, err := c.places(v)
	if err != nil {
		return answer.Answer{}, err
	}
	if len(places) > 1 {
		return answer.Answer{}, severalFlows(v, places)
	}
	return c.Desk.Answer(g.Request.Context(), places[0])
}

func (c *console) key(g *gin.Context, v visit) error {
	a, err := c.answer(g, v)
	if err != nil {
		return err
	}
	judged := newVerdictView(a.Verdict)
	name := strings.Join([]string{judged.CodeWord.In(v.lang), shown(a.Key.BizType) + " / " + shown(a.Key.BizID)}, " · ")
	clock := clock{c.Zone}
	return c.render(g, http.StatusOK, v.lang, "key", keyPage{
		page: c.newPage(v, name), Key: newKeyView(a.Key), Flow: a.Flow.Name, Verdict: judged,
		At: clock.moment(a.At), Took: flow.Span(a.Took),
		Broker: newBrokerView(a.Broker),
		Lock:   newRedisView(a.Lock, a.Flow.Lock), Marker: newRedisView(a.Marker, a.Flow.Marker),
		Record: clock.newRecordView(a.Record, a.Flow),
		Story:  clock.newStoryView(a), Actions: c.newActionsView(g, v, a),
		JSON: v.link("api/v1/lookup", keyValuesOf(v)), Again: v.again(),
	})
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
	c.json(g, http.StatusOK, a.JSON(v.lang))
	return nil
}
