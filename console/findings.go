package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

const (
	// defaultFindings is how many findings one page has, maxFindings how many it can have.
	defaultFindings = 100
	maxFindings     = 1000
)

// findingsPage is the list of keys with a problem.
type findingsPage struct {
	page
	Says   findingWords
	At     moment
	Counts []severityCount
	// Narrowed: a filter is in force; Everything leads to the list without it.
	Narrowed   bool
	Everything string
	Flows      []option
	Verdicts   []option
	BizType    *ident
	// Problems are known to be wrong, the others could not be decided.
	Problems      findingList
	Undecided     findingList
	Pending       int
	CoverageTexts []flow.Text
	// Next is the address of the page that follows; empty without one.
	// First is that of the first page, on later ones.
	Next, First string
	JSON, Again string
}

// severityCount is how many findings matter how much.
type severityCount struct {
	Severity verdict.Severity
	Word     flow.Text
	Count    int
}

// option is one choice of a filter.
type option struct {
	Value    string
	Word     flow.Text
	Selected bool
}

// findingList is one table.
type findingList struct {
	Says findingWords
	Rows []findingView
}

// findingView is one row of the list.
type findingView struct {
	Verdict verdictView
	Key     keyView
	Flow    string
	URL     string
	// Age is empty where it is not known.
	Age           flow.Text
	Since, Judged flow.Text
	SinceAt       moment
}

// askedFindings is one request for findings, as the address words it.
type askedFindings struct {
	all    answer.Findings
	filter answer.Filter
	// list is what passes the filter, page the part that is shown.
	list, page []answer.Finding
	after      string
	next       string
}

func (c *console) askFindings(v visit) (askedFindings, error) {
	if c.Findings == nil {
		return askedFindings{}, findingsOff()
	}
	texts := map[string]string{}
	var asked askedFindings
	for _, name := range []string{"flow", "verdict", "biz_type", "after", "limit"} {
		text, given, err := v.text(name)
		if err != nil {
			return askedFindings{}, err
		}
		texts[name] = text
		if given && name == "biz_type" {
			asked.filter.BizType = &text
		}
	}
	asked.filter.Flow, asked.filter.Verdict, asked.after = texts["flow"], verdict.Code(texts["verdict"]), texts["after"]
	if asked.filter.Flow != "" && !slices.ContainsFunc(c.Flows, func(f flow.Flow) bool { return f.Name == asked.filter.Flow }) {
		return askedFindings{}, noSuchFlow(v, c.Flows, asked.filter.Flow)
	}
	if asked.filter.Verdict != "" && !slices.Contains(verdict.Codes(), asked.filter.Verdict) {
		return askedFindings{}, noSuchVerdict(v, texts["verdict"])
	}
	limit := defaultFindings
	if texts["limit"] != "" {
		n, err := strconv.Atoi(texts["limit"])
		if err != nil || n < 1 || n > maxFindings {
			return askedFindings{}, badLimit()
		}
		limit = n
	}
	asked.all = c.Findings()
	asked.list = asked.filter.Select(asked.all.List)
	var err error
	asked.page, asked.next, err = answer.Page(asked.list, asked.after, limit)
	if errors.Is(err, answer.ErrMark) {
		return askedFindings{}, badMark()
	}
	return asked, err
}

func (c *console) findingsJSON(g *gin.Context, v visit) error {
	asked, err := c.askFindings(v)
	if err != nil {
		return err
	}
	link := func(p flow.Place) string { return c.placeURL(v, p) }
	c.json(g, http.StatusOK, asked.all.JSON(asked.page, len(asked.list), asked.next, v.lang, link))
	return nil
}

func (c *console) findings(g *gin.Context, v visit) error {
	asked, err := c.askFindings(v)
	if err != nil {
		return err
	}
	words := newFindingWords()
	view := findingsPage{
		page: c.newPage(v, words.Title.In(v.lang)), Says: words, At: clock{c.Zone}.moment(asked.all.At),
		Counts: countSeverities(asked.list), Narrowed: asked.filter != answer.Filter{}, Everything: v.link("findings", nil),
		Flows: flowOptions(c.Flows, asked.filter.Flow), Verdicts: verdictOptions(asked.all.List, asked.filter.Verdict),
		Problems: findingList{Says: words}, Undecided: findingList{Says: words},
		Pending: asked.all.Pending, CoverageTexts: asked.all.Coverage,
		JSON: v.link("api/v1/findings", findingValues(v, asked.after)), Again: v.again(),
	}
	if asked.filter.BizType != nil {
		view.BizType = new(newIdent(*asked.filter.BizType))
	}
	if asked.next != "" {
		view.Next = v.link("findings", findingValues(v, asked.next))
	}
	if asked.after != "" {
		view.First = v.link("findings", findingValues(v, ""))
	}
	for _, f := range asked.page {
		row := c.newFindingView(v, f, asked.all)
		if f.Severity == verdict.Unsure {
			view.Undecided.Rows = append(view.Undecided.Rows, row)
		} else {
			view.Problems.Rows = append(view.Problems.Rows, row)
		}
	}
	return c.render(g, http.StatusOK, v.lang, "findings", view)
}

func (c *console) newFindingView(v visit, f answer.Finding, all answer.Findings) findingView {
	row := findingView{
		Verdict: newVerdictView(verdict.Verdict{Code: f.Code, Severity: f.Severity, Layer: f.Layer, Sentence: f.Sentence}),
		Key:     newKeyView(f.Key), Flow: f.Flow, URL: c.placeURL(v, f.Place),
		Since: ago(f.Since, all.At), Judged: ago(f.JudgedAt, all.At), SinceAt: clock{c.Zone}.moment(f.Since),
	}
	if age, ok := f.Age(all.At); ok {
		row.Age = flow.Span(age)
	}
	return row
}

// placeURL names the flow only where the key alone does not tell it.
func (c *console) placeURL(v visit, p flow.Place) string {
	name := p.Flow
	if places, err := c.Desk.Places(p.Key, ""); err == nil && len(places) == 1 {
		name = ""
	}
	return v.link("key", keyValues(p.Key, name))
}

// findingValues repeats the filter as it was asked, for the page after the mark.
func findingValues(v visit, after string) url.Values {
	values := url.Values{}
	for _, name := range []string{"flow", "verdict", "biz_type", "limit"} {
		if given, ok := v.values[name]; ok {
			values[name] = given
		}
	}
	if after != "" {
		values.Set("after", after)
	}
	return values
}

func countSeverities(list []answer.Finding) (counts []severityCount) {
	for _, s := range []verdict.Severity{verdict.Critical, verdict.Warning, verdict.Unsure} {
		n := 0
		for _, f := range list {
			if f.Severity == s {
				n++
			}
		}
		counts = append(counts, severityCount{s, severityWord(s), n})
	}
	return counts
}

func flowOptions(flows []flow.Flow, selected string) (options []option) {
	for _, f := range flows {
		options = append(options, option{Value: f.Name, Selected: f.Name == selected})
	}
	return options
}

// verdictOptions are the verdicts that the list has, in the order of the rules.
func verdictOptions(list []answer.Finding, selected verdict.Code) (options []option) {
	for _, code := range verdict.Codes() {
		if code == selected || slices.ContainsFunc(list, func(f answer.Finding) bool { return f.Code == code }) {
			options = append(options, option{Value: string(code), Word: codeWord(code), Selected: code == selected})
		}
	}
	return options
}
