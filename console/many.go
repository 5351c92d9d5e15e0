package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

const (
	// maxKeys is how many keys one order takes.
	maxKeys = 100
	// maxHands is how many keys of such orders are at work at once, of all people together.
	maxHands = 4
	// manyTime is for how long keys of an order are begun: the answer must be out
	// before the connection is given up. What is not begun by then is left alone.
	manyTime = 40 * time.Second
	// maxManyForm bounds a form or an order about many keys, in bytes: a hundred
	// tickets, some with ids of 10 kB.
	maxManyForm = 4 << 20
	// maxSelection is how long a selection may be to stand in an address, in bytes.
	maxSelection = 6000
)

// manyKinds are the actions that can be done to many keys, the usual one first. A
// message is replayed by itself: every replay holds messages of others for a while.
var manyKinds = []action.Kind{action.ResetRecord, action.ReleaseLock, action.ClearMarker}

// manyPage shows what an action would do to each of the selected keys.
type manyPage struct {
	page
	Says manyWords
	// Deed are the texts of the dialog of one key.
	Deed actionWords
	Kind action.Kind
	Word flow.Text
	// Kinds are the actions to choose from.
	Kinds []manyKind
	Send  selection
	// Places are the selected keys, for the form that changes the action.
	Places []string
	Rows   []manyRow
	// Allowed counts the keys that may be acted on; Over those that were selected and are not here.
	Allowed, Over int
	Limit         int
	MayAct        bool
	// Wrong says what was wrong with the form; mostly empty. Reason is what was typed.
	Wrong          flow.Text
	Reason         string
	Token, Address string
	At             moment
}

type manyKind struct {
	Kind    action.Kind
	Word    flow.Text
	Current bool
}

// manyRow is what the action would do to one key.
type manyRow struct {
	Key       keyView
	Flow, URL string
	Judged    *verdictView
	// Ticket is empty where the action is refused, or has nothing to do.
	Ticket string
	// Does is what it does to the layer that it changes.
	Does     flow.Text
	Command  string
	Warnings []flow.Text
	// Reasons are why not; Nothing: because there is nothing to do.
	Reasons []flow.Text
	Nothing bool
}

// preview changes nothing, whatever its method: a long selection does not fit in an
// address. Unlike a form that does something, it needs no token and may be sent again.
func (c *console) preview(g *gin.Context, v visit) error {
	if c.Actor == nil {
		return actionsOff()
	}
	values := v.values
	if g.Request.Method == http.MethodPost {
		g.Request.Body = http.MaxBytesReader(g.Writer, g.Request.Body, maxManyForm)
		if err := g.Request.ParseForm(); err != nil {
			return badForm()
		}
		values = g.Request.PostForm
	}
	kind, err := manyKindOf(values.Get("kind"))
	if err != nil {
		return err
	}
	places, err := selectedPlaces(values["place"])
	if err != nil {
		return err
	}
	return c.showMany(g, v, http.StatusOK, kind, places, "", flow.Text{})
}

// manyKindOf reads the action; empty means the usual one.
func manyKindOf(word string) (action.Kind, error) {
	switch kind := action.Kind(word); {
	case word == "":
		return manyKinds[0], nil
	case slices.Contains(manyKinds, kind):
		return kind, nil
	case kind.Known():
		return kind, oneByOne(kind)
	}
	return "", noSuchAction(word)
}

// selectedPlaces reads a selection; a key that was selected twice counts once.
func selectedPlaces(words []string) (places []flow.Place, err error) {
	seen := map[flow.Place]bool{}
	for _, word := range words {
		p, err := flow.DecodePlace(word)
		if err != nil {
			return nil, badPlace()
		}
		if !seen[p] {
			seen[p] = true
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return nil, nothingSelected()
	}
	return places, nil
}

// showMany shows the preview, with a fresh look at each of the keys.
func (c *console) showMany(g *gin.Context, v visit, status int, kind action.Kind, places []flow.Place, reason string, wrong flow.Text) error {
	all := places
	places = places[:min(len(places), maxKeys)]
	rows, err := c.manyRows(g.Request.Context(), v, kind, places)
	if err != nil {
		return err
	}
	values := url.Values{"kind": {string(kind)}}
	for _, p := range places {
		values.Add("place", p.Encode())
	}
	v.values = values
	words := newManyWords()
	view := manyPage{
		page: c.newPage(v, words.Title.In(v.lang)), Says: words, Deed: newActionWords(), Kind: kind, Word: kind.Word(), Send: newSelection(v, values["place"]), Places: values["place"],
		Rows: rows, Over: len(all) - len(places), Limit: maxKeys, MayAct: access.Of(g.Request.Context()).May(access.Operator), Wrong: wrong, Reason: reason,
		Token: c.formToken(g), Address: v.link("findings/act", nil), At: clock{c.Zone}.moment(time.Now()),
	}
	for _, k := range manyKinds {
		view.Kinds = append(view.Kinds, manyKind{Kind: k, Word: k.Word(), Current: k == kind})
	}
	for _, row := range rows {
		if row.Ticket != "" {
			view.Allowed++
		}
	}
	return c.render(g, status, v.lang, "many", view)
}

func (c *console) manyRows(ctx context.Context, v visit, kind action.Kind, places []flow.Place) ([]manyRow, error) {
	checks, errs := make([]action.Precheck, len(places)), make([]error, len(places))
	if begun := c.each(ctx, len(places), func(i int) { checks[i], errs[i] = c.Actor.Precheck(ctx, places[i], kind) }); begun < len(places) {
		return nil, busy()
	}
	var rows []manyRow
	for i, p := range places {
		row := manyRow{Key: newKeyView(p.Key), Flow: p.Flow, URL: c.placeURL(v, p)}
		var noFlow answer.NoFlow
		switch {
		case errors.As(errs[i], &noFlow):
			row.Reasons = []flow.Text{noFlow.Text()}
		case errs[i] != nil:
			return nil, errs[i]
		default:
			row.fill(checks[i])
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (r *manyRow) fill(p action.Precheck) {
	r.Judged = new(newVerdictView(p.Answer.Verdict))
	if !p.Allowed() {
		r.Reasons, r.Nothing = reasons(p), len(p.Refusals) == 0
		return
	}
	r.Ticket, r.Warnings = p.Ticket.String(), p.Warnings
	changed := flow.LayerRedis
	if p.Kind == action.ResetRecord {
		changed = flow.LayerMySQL
	}
	for _, e := range p.Effects {
		if e.Layer == changed {
			r.Does, r.Command = e.Text, e.Command
		}
	}
}

// each calls do for one index after the other, for a few at a time, and returns how
// many it began: the others' turn did not come within manyTime, or the visitor has
// left. All that was begun has ended.
func (c *console) each(ctx context.Context, n int, do func(i int)) (begun int) {
	waiting, cancel := context.WithTimeout(ctx, manyTime)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	for begun < n && waiting.Err() == nil && c.hands.Acquire(waiting, 1) == nil {
		i := begun
		all.Go(func() {
			defer c.hands.Release(1)
			do(i)
		})
		begun++
	}
	return begun
}

// changeKeys does what the preview ordered to one key after the other, each with its
// own attempt in the audit file, and shows what came of each.
//
// Where the dialog of one key asks for its id once more, this asks for the number of
// keys: nobody would type a hundred ids, and the number is what a slip gets wrong.
func (c *console) changeKeys(g *gin.Context, v visit) error {
	if c.Actor == nil {
		return actionsOff()
	}
	if err := c.acceptLongForm(g, maxManyForm); err != nil {
		return err
	}
	form := g.Request.PostForm
	tickets, err := manyTickets(form["ticket"])
	if err != nil {
		return err
	}
	kind, reason := tickets[0].Kind, form.Get("reason")
	if wrong := wrongOrder(form, kind, len(tickets)); !wrong.Empty() {
		entry := c.refusedEntry(g, action.Ticket{Kind: kind}, reason, wrong)
		entry.Before = "a selection of " + strconv.Itoa(len(tickets)) + " keys"
		_ = c.keep(g, entry)
		var places []flow.Place
		for _, t := range tickets {
			places = append(places, t.Place)
		}
		return c.showMany(g, v, http.StatusBadRequest, kind, places, reason, wrong)
	}
	results := c.doMany(g.Request.Context(), len(tickets), func(ctx context.Context, i int) action.Result { return c.Actor.Do(ctx, tickets[i], reason) },
		func(i int) action.Result { return action.Result{Kind: kind, Place: tickets[i].Place} })
	return c.showMade(g, v, kind, results)
}

// wrongOrder says what is wrong with a form, before any key is looked at.
func wrongOrder(form url.Values, kind action.Kind, keys int) flow.Text {
	words := newManyWords()
	switch {
	case strings.TrimSpace(form.Get("reason")) == "":
		return words.NoReason
	case kind.Retype() && strings.TrimSpace(form.Get("typed")) != strconv.Itoa(keys):
		return flow.T(words.WrongNumber.EN, words.WrongNumber.ZH, keys)
	}
	return flow.Text{}
}

// manyTickets reads the tickets of one order: all of one action, each of another key.
func manyTickets(words []string) (tickets []action.Ticket, err error) {
	switch {
	case len(words) == 0:
		return nil, nothingSelected()
	case len(words) > maxKeys:
		return nil, tooManyKeys(len(words))
	}
	seen := map[flow.Place]bool{}
	for _, word := range words {
		t, err := action.ParseTicket(word)
		if err != nil || len(tickets) > 0 && t.Kind != tickets[0].Kind || seen[t.Place] {
			return nil, badTicket()
		}
		seen[t.Place] = true
		tickets = append(tickets, t)
	}
	if _, err := manyKindOf(string(tickets[0].Kind)); err != nil {
		return nil, err
	}
	return tickets, nil
}

// doMany does one after the other. Whoever closes the page stops what is not begun;
// what is begun goes on to its end.
func (c *console) doMany(ctx context.Context, n int, do func(ctx context.Context, i int) action.Result, not func(i int) action.Result) []action.Result {
	results := make([]action.Result, n)
	begun := c.each(ctx, n, func(i int) { results[i] = do(ctx, i) })
	for i := begun; i < n; i++ {
		results[i] = not(i)
		results[i].Outcome, results[i].Code = audit.Refused, "not_begun"
		results[i].Why = flow.T("its turn did not come in time: nothing was changed, and no attempt was kept", "未能及时轮到该键：未做任何更改，也没有操作记录")
	}
	return results
}
