package console

import (
	"net/http"
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
	for _, a := range result.Answers {
		view.Hits = append(view.Hits, hit{Verdict: newVerdictView(a.Verdict), Key: newKeyView(a.Key), Flow: a.Flow.Name, URL: c.keyURL(v, a)})
	}
	return c.render(g, http.StatusOK, v.lang, "hits", view)
}

// only reports that the search has one answer. Where not every biz_type was
// asked, one that matches by its id alone may have others beside it.
func only(query string, r answer.Result) bool {
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
	answers := make([]answer.JSON, 0, len(result.Answers))
	for _, a := range result.Answers {
		answers = append(answers, a.JSON(v.lang))
	}
	c.json(g, http.StatusOK, struct {
		Answers []answer.JSON `json:"answers"`
		// Cut: more could have been asked.
		Cut bool `json:"cut"`
	}{answers, result.Cut})
	return nil
}
