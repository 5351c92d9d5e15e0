package console

import (
	"net/http"
	"slices"

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
	Layers     []option
	Severities []option
	Ages       []option
	// OnlyType is the biz_type that the form passes on; nil without one that it can.
	OnlyType *string
	// Sort is the order that the form passes on; empty for the usual one.
	Sort  string
	Sorts []sortLink
	// Grouped is the address of the list by flow and verdict.
	Grouped string
	// Act takes a selection of findings; nil when nobody may act.
	Act *selection
	// Groups is the list by flow and verdict; where it is empty, Problems are known
	// to be wrong, and the others could not be decided.
	Groups        []findingGroup
	Problems      findingList
	Undecided     findingList
	Pending       int
	CoverageTexts []flow.Text
	// Next is the address of the page that follows; empty without one.
	// First is that of the first page, on later ones.
	Next, First string
	JSON, Again string
	// CSVFile and JSONFile are all findings that pass the filter, as files.
	CSVFile, JSONFile string
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
	// Pick: findings can be selected.
	Pick bool
}

// findingView is one row of the list.
type findingView struct {
	Verdict verdictView
	Key     keyView
	Flow    string
	URL     string
	// Place is the key with its flow in one word, for forms.
	Place string
	// Age is empty where it is not known.
	Age           flow.Text
	Since, Judged flow.Text
	SinceAt       moment
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
	values := findingValues(v)
	view := findingsPage{
		page: c.newPage(v, words.Title.In(v.lang)), Says: words, At: clock{c.Zone}.moment(asked.all.At),
		Counts: countSeverities(asked.list), Narrowed: asked.filter != answer.Filter{}, Everything: v.link("findings", nil),
		Flows: flowOptions(c.Flows, asked.filter.Flow), Verdicts: verdictOptions(asked.all.List, asked.filter.Verdict),
		Layers: layerOptions(asked.filter.Layer), Severities: severityOptions(asked.filter.Severity), Ages: ageOptions(v.values.Get("older")),
		Sort: v.values.Get("sort"), Sorts: sortLinks(v, asked), Grouped: v.link("findings", grouped(values)),
		Problems: findingList{Says: words, Pick: c.mayChange(v)}, Undecided: findingList{Says: words, Pick: c.mayChange(v)},
		Pending: asked.all.Pending, CoverageTexts: asked.all.Coverage,
		JSON: v.link("api/v1/findings", with(values, "after", asked.after)), Again: v.again(),
		CSVFile: v.link("findings.csv", values), JSONFile: v.link("findings.json", values),
	}
	if asked.filter.BizType != nil {
		view.BizType = new(newIdent(*asked.filter.BizType))
		if typed(*asked.filter.BizType) == *asked.filter.BizType {
			view.OnlyType = asked.filter.BizType
		}
	}
	if !asked.flat {
		view.Groups = c.newGroups(v, asked, words)
		var lists []findingList
		for _, group := range view.Groups {
			lists = append(lists, group.findingList)
		}
		view.Act = c.actOn(v, lists...)
		return c.render(g, http.StatusOK, v.lang, "findings", view)
	}
	if asked.next != "" {
		view.Next = v.link("findings", with(values, "after", asked.next))
	}
	if asked.after != "" {
		view.First = v.link("findings", values)
	}
	for _, f := range asked.page {
		row := c.newFindingView(v, f, asked.all)
		// Another order than that of severity goes through both.
		if f.Severity == verdict.Unsure && asked.order == answer.ByWorst {
			view.Undecided.Rows = append(view.Undecided.Rows, row)
		} else {
			view.Problems.Rows = append(view.Problems.Rows, row)
		}
	}
	view.Act = c.actOn(v, view.Problems, view.Undecided)
	return c.render(g, http.StatusOK, v.lang, "findings", view)
}

func (c *console) newFindingView(v visit, f answer.Finding, all answer.Findings) findingView {
	row := findingView{
		Verdict: newVerdictView(verdict.Verdict{Code: f.Code, Severity: f.Severity, Layer: f.Layer, Sentence: f.Sentence}),
		Key:     newKeyView(f.Key), Flow: f.Flow, URL: c.placeURL(v, f.Place), Place: f.Place.Encode(),
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

func layerOptions(selected flow.Layer) (options []option) {
	for _, l := range findingLayers {
		options = append(options, option{Value: string(l), Word: layerWord(l), Selected: l == selected})
	}
	return options
}

func severityOptions(selected verdict.Severity) (options []option) {
	for _, s := range findingSeverities {
		options = append(options, option{Value: string(s), Word: severityWord(s), Selected: s == selected})
	}
	return options
}

// ageOptions offers some ages, and the one that was asked for.
func ageOptions(selected string) (options []option) {
	ages := findingAges
	if selected != "" && !slices.Contains(ages, selected) {
		ages = append([]string{selected}, ages...)
	}
	for _, text := range ages {
		age, err := parseOlder(text)
		if err != nil {
			continue
		}
		options = append(options, option{Value: text, Word: flow.T("older than %v", "超过 %v", flow.Span(age)), Selected: text == selected})
	}
	return options
}
