package console

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"

	"idemscope/internal/answer"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
)

// hitsPage lists several answers, or says that there are none.
type hitsPage struct {
	page
	Sought ident
	Hits   []hit
	// Trace: some layer shows one of them, or could not be read.
	Trace bool
	// Cut: more could have been asked.
	Cut bool
	// Offers are other readings of the text.
	Says   searchWords
	Offers []offerView
}

// offerView is another reading of the text.
type offerView struct {
	Why flow.Text
	// Query is what to search for instead; nil where the hits are keys inside the text.
	Query *ident
	URL   string
	Hits  []hit
	// Trace: some layer shows one of the hits, or could not be read.
	Trace bool
}

// hit is one answer in a list.
type hit struct {
	Verdict verdictView
	Key     keyView
	Flow    string
	URL     string
}

// sought runs the search that the visit asks for.
func (c *console) sought(g *gin.Context, v visit) (query string, result answer.Result, err error) {
	query, _, err = v.text("q")
	if err != nil {
		return "", answer.Result{}, err
	}
	result, err = c.Desk.Search(g.Request.Context(), query)
	for i := range result.Answers {
		result.Answers[i] = shownTo(v, result.Answers[i])
	}
	for _, o := range result.Offers {
		for i := range o.Answers {
			o.Answers[i] = shownTo(v, o.Answers[i])
		}
	}
	return query, result, err
}

// search goes straight to the key when there is just one, and lets the person
// choose when there are more.
func (c *console) search(g *gin.Context, v visit) error {
	query, result, err := c.sought(g, v)
	if err != nil {
		return err
	}
	if only(query, result) {
		// Set by hand: http.Redirect would make it absolute and lose a path prefix.
		g.Header("Location", c.keyURL(v, result.Answers[0]))
		g.Status(http.StatusSeeOther)
		return nil
	}
	view := hitsPage{page: c.newPage(v, shown(query)), Sought: newIdent(query), Cut: result.Cut, Trace: slices.ContainsFunc(result.Answers, hasTrace)}
	view.Query = typed(query)
	view.Says, view.Hits = newSearchWords(), c.newHits(v, result.Answers)
	for _, o := range result.Offers {
		offer := offerView{Why: o.Why, Hits: c.newHits(v, o.Answers), Trace: o.HasTrace()}
		if o.Query != "" {
			offer.Query, offer.URL = new(newIdent(o.Query)), v.link("search", url.Values{"q": {o.Query}})
		}
		view.Offers = append(view.Offers, offer)
	}
	return c.render(g, http.StatusOK, v.lang, "hits", view)
}

func (c *console) newHits(v visit, answers []answer.Answer) (hits []hit) {
	for _, a := range answers {
		hits = append(hits, hit{Verdict: newVerdictView(a.Verdict), Key: newKeyView(a.Key), Flow: a.Flow.Name, URL: c.keyURL(v, a)})
	}
	return hits
}

// only reports that the search has one answer. Where not every biz_type was
// asked, one that matches by its id alone may have others beside it. An offer
// that leads further than a key without a trace is one to choose from.
func only(query string, r answer.Result) bool {
	if !r.HasTrace() && slices.ContainsFunc(r.Offers, answer.Offer.HasTrace) {
		return false
	}
	return len(r.Answers) == 1 && (!r.Cut || r.Answers[0].Key.BizID != query)
}

// hasTrace: some layer shows this key or could not be read, so the list is one of finds.
func hasTrace(a answer.Answer) bool {
	seen := func(r *dossier.RedisEvidence) bool {
		return r != nil && r.State != flow.Absent && !(r.State == flow.Found && r.Ambiguous())
	}
	return a.Record.State != flow.Absent || seen(a.Lock) || seen(a.Marker)
}

// keyURL names the flow only where the key alone does not tell it.
func (c *console) keyURL(v visit, a answer.Answer) string {
	name := a.Flow.Name
	if places, err := c.Desk.Places(a.Key, ""); err == nil && len(places) == 1 {
		name = ""
	}
	return v.link("key", keyValues(a.Key, name))
}

func (c *console) searchJSON(g *gin.Context, v visit) error {
	_, result, err := c.sought(g, v)
	if err != nil {
		return err
	}
	c.json(g, http.StatusOK, result.JSON(v.lang))
	return nil
}
