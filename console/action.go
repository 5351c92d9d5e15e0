package console

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// Actor changes single keys.
type Actor interface {
	// Precheck says what an action would do, and changes nothing.
	Precheck(ctx context.Context, p flow.Place, kind action.Kind) (action.Precheck, error)
	// Offers says of every action whether it may be done.
	Offers(ctx context.Context, seen answer.Answer) []action.Precheck
	// Do does it, for the person of the context.
	Do(ctx context.Context, t action.Ticket, reason string) action.Result
}

// offerTime bounds what stores are asked for the list of actions beside an answer.
const offerTime = 2 * time.Second

// actionsView is the list of actions on the page of a key.
type actionsView struct {
	// Off: nothing can be changed, and the section is left out.
	Off    bool
	Says   actionWords
	Offers []actionOffer
}

// actionOffer is one action on the page of a key.
type actionOffer struct {
	Word    flow.Text
	Allowed bool
	// Reasons are why it is not offered.
	Reasons []flow.Text
	URL     string
}

func (c *console) newActionsView(g *gin.Context, v visit, a answer.Answer) actionsView {
	// A layer that is slow must not hold the page up once more; the complete page offers them.
	if c.Actor == nil || a.Pending() {
		return actionsView{Off: true}
	}
	view := actionsView{Says: newActionWords()}
	ctx, cancel := context.WithTimeout(g.Request.Context(), offerTime)
	defer cancel()
	for _, p := range c.Actor.Offers(ctx, a) {
		values := keyValues(a.Key, a.Flow.Name)
		values.Set("kind", string(p.Kind))
		view.Offers = append(view.Offers, actionOffer{Word: p.Kind.Word(), Allowed: p.Allowed(), Reasons: reasons(p), URL: v.link("action", values)})
	}
	return view
}

func reasons(p action.Precheck) (texts []flow.Text) {
	for _, r := range p.Refusals {
		texts = append(texts, r.Text)
	}
	if len(texts) == 0 && !p.Nothing.Empty() {
		texts = append(texts, p.Nothing)
	}
	return texts
}

// actionPage is the dialog before an action.
type actionPage struct {
	page
	Says actionWords
	action.Precheck
	Key  keyView
	Flow string
	Word flow.Text
	// Verdict stands beside what would be done.
	Judged  verdictView
	At      moment
	Reasons []flow.Text
	// MayAct: the person has the right.
	MayAct bool
	// Wrong says what was wrong with the form; mostly empty.
	Wrong flow.Text
	// Reason is what was typed.
	Reason               string
	Token, Sealed        string
	Action, KeyURL, Back string
}

func (c *console) action(g *gin.Context, v visit) error {
	kind, place, err := c.askedAction(v)
	if err != nil {
		return err
	}
	return c.showAction(g, v, http.StatusOK, kind, place, "", flow.Text{})
}

// askedAction reads which action on which key.
func (c *console) askedAction(v visit) (kind action.Kind, place flow.Place, err error) {
	if c.Actor == nil {
		return "", place, actionsOff()
	}
	word, _, err := v.text("kind")
	if err != nil {
		return "", place, err
	}
	if kind = action.Kind(word); !kind.Known() {
		return "", place, noSuchAction(word)
	}
	places, err := c.places(v)
	if err != nil {
		return kind, place, err
	}
	if len(places) > 1 {
		several := severalFlows(v, places)
		for i, p := range places {
			values := keyValues(p.Key, p.Flow)
			values.Set("kind", word)
			several.Choices[i].URL = v.link("action", values)
		}
		return kind, place, several
	}
	return kind, places[0], nil
}

// showAction shows the dialog, with a fresh look at the key.
func (c *console) showAction(g *gin.Context, v visit, status int, kind action.Kind, place flow.Place, reason string, wrong flow.Text) error {
	p, err := c.Actor.Precheck(g.Request.Context(), place, kind)
	if err != nil {
		return err
	}
	keyURL := c.placeURL(v, place)
	return c.render(g, status, v.lang, "action", actionPage{
		page: c.newPage(v, kind.Word().In(v.lang)), Says: newActionWords(), Precheck: p, Key: newKeyView(place.Key), Flow: place.Flow, Word: kind.Word(),
		Judged: newVerdictView(p.Answer.Verdict), At: clock{c.Zone}.moment(p.Answer.At), Reasons: reasons(p),
		MayAct: access.Of(g.Request.Context()).May(access.Operator), Wrong: wrong, Reason: reason,
		Token: c.formToken(g), Sealed: p.Ticket.String(), Action: v.link("action", nil), KeyURL: keyURL, Back: keyURL,
	})
}

// changeKey does what the dialog ordered, and shows what came of it.
func (c *console) changeKey(g *gin.Context, v visit) error {
	if c.Actor == nil {
		return actionsOff()
	}
	if err := c.acceptForm(g); err != nil {
		return err
	}
	form := g.Request.PostForm
	ticket, err := action.ParseTicket(form.Get("ticket"))
	if err != nil {
		return badTicket()
	}
	reason, typed, id := form.Get("reason"), form.Get("typed"), ticket.Place.Key.BizID
	if ticket.Kind.Retype() && typed != id && typed != flow.Visible(id) {
		// Who mistook the key is told so, and the attempt is kept.
		wrong := newActionWords().WrongID
		_ = c.keep(g, c.refusedEntry(g, ticket, reason, wrong))
		return c.showAction(g, v, http.StatusBadRequest, ticket.Kind, ticket.Place, reason, wrong)
	}
	return c.showResult(g, v, c.Actor.Do(g.Request.Context(), ticket, reason))
}

func (c *console) refusedEntry(g *gin.Context, t action.Ticket, reason string, why flow.Text) audit.Entry {
	person := access.Of(g.Request.Context())
	return audit.Entry{Who: person.Name, From: person.From, Action: string(t.Kind), Place: t.Place, Reason: reason, Outcome: audit.Refused, Why: why}
}

// resultPage is what came of an action.
type resultPage struct {
	page
	Says actionWords
	action.Result
	Key     keyView
	Flow    string
	Word    flow.Text
	Outcome flow.Text
	// Tone is the severity whose sign stands beside the outcome.
	Tone string
	// More are the refusals beside the first.
	More           []flow.Text
	Now            *verdictView
	KeyURL, Repeat string
}

func (c *console) showResult(g *gin.Context, v visit, r action.Result) error {
	values := keyValues(r.Place.Key, r.Place.Flow)
	values.Set("kind", string(r.Kind))
	view := resultPage{
		page: c.newPage(v, r.Kind.Word().In(v.lang)), Says: newActionWords(), Result: r, Key: newKeyView(r.Place.Key), Flow: r.Place.Flow, Word: r.Kind.Word(),
		Outcome: action.OutcomeWord(r.Outcome), Tone: toneOf(r.Outcome), KeyURL: c.placeURL(v, r.Place), Repeat: v.link("action", values),
	}
	for i, one := range r.Refusals {
		if i > 0 {
			view.More = append(view.More, one.Text)
		}
	}
	if r.Now != nil {
		now := newVerdictView(r.Now.Verdict)
		view.Now = &now
	}
	return c.render(g, statusOf(r), v.lang, "actionresult", view)
}

func toneOf(o audit.Outcome) string {
	switch o {
	case audit.Done:
		return "ok"
	case audit.Nothing:
		return "info"
	case audit.Refused:
		return "warning"
	}
	return "critical"
}

// statusOf is the HTTP status of a result.
func statusOf(r action.Result) int {
	switch {
	case r.Outcome == audit.Failed, r.Code == "audit_unwritable":
		return http.StatusServiceUnavailable
	case r.Outcome != audit.Refused:
		return http.StatusOK
	case r.Code == "not_operator":
		return http.StatusForbidden
	case r.Code == "reason_missing", r.Code == "reason_too_long":
		return http.StatusBadRequest
	}
	return http.StatusConflict
}

// actionOrder is the body of a POST to /api/v1/actions/.... Ids that are not UTF-8 come
// in the hex fields.
type actionOrder struct {
	Type    string `json:"type,omitempty"`
	TypeHex string `json:"type_hex,omitempty"`
	ID      string `json:"id,omitempty"`
	IDHex   string `json:"id_hex,omitempty"`
	Flow    string `json:"flow,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Ticket is that of a precheck; without one, what is there now is acted on.
	Ticket string `json:"ticket,omitempty"`
	// Execute does it; without it, the answer is the precheck.
	Execute bool `json:"execute,omitempty"`
}

func (c *console) actionJSON(g *gin.Context, v visit) error {
	if c.Actor == nil {
		return actionsOff()
	}
	kind := action.Kind(g.Param("kind"))
	if !kind.Known() {
		return noSuchAction(string(kind))
	}
	o, key, err := c.postOrder(g)
	if err != nil {
		return err
	}
	places, err := c.Desk.Places(key, o.Flow)
	if err != nil {
		return err
	}
	if len(places) > 1 {
		return severalFlows(v, places)
	}
	p, err := c.Actor.Precheck(g.Request.Context(), places[0], kind)
	if err != nil {
		return err
	}
	if !o.Execute {
		c.json(g, http.StatusOK, p.JSON(v.lang))
		return nil
	}
	ticket := p.Ticket
	if o.Ticket != "" {
		if ticket, err = action.ParseTicket(o.Ticket); err != nil || ticket.Kind != kind || ticket.Place != places[0] {
			return badTicket()
		}
	}
	r := c.Actor.Do(g.Request.Context(), ticket, o.Reason)
	c.json(g, statusOf(r), r.JSON(v.lang))
	return nil
}

// postOrder reads the order of one key.
func (c *console) postOrder(g *gin.Context) (o actionOrder, key flow.Key, err error) {
	if err := c.readOrder(g, maxForm, &o); err != nil {
		return o, key, err
	}
	key, err = orderedKey(o.Type, o.TypeHex, o.ID, o.IDHex)
	return o, key, err
}

// readOrder reads a body of up to so many bytes. A page of another site cannot send
// JSON without asking.
func (c *console) readOrder(g *gin.Context, most int64, into any) error {
	if kind, _, err := mime.ParseMediaType(g.ContentType()); err != nil || kind != "application/json" {
		return badOrder()
	}
	if err := c.acceptLongForm(g, most); err != nil {
		return err
	}
	decoder := json.NewDecoder(g.Request.Body)
	decoder.DisallowUnknownFields()
	if decoder.Decode(into) != nil {
		return badOrder()
	}
	return nil
}

// orderedKey is the key that an order names; hex stands for what is no text.
func orderedKey(bizType, typeHex, id, idHex string) (flow.Key, error) {
	key := flow.Key{BizType: bizType, BizID: id}
	for _, part := range []struct {
		digits string
		to     *string
	}{{typeHex, &key.BizType}, {idHex, &key.BizID}} {
		if part.digits == "" {
			continue
		}
		raw, err := hex.DecodeString(part.digits)
		if err != nil {
			return key, badOrder()
		}
		*part.to = string(raw)
	}
	return key, nil
}
