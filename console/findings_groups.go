package console

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// rowsPerGroup is how many findings of a group stand on the page; the others are a
// click away.
const rowsPerGroup = 20

// findingGroup is every finding of one flow with one verdict.
type findingGroup struct {
	findingList
	Flow      string
	Verdict   verdict.Code
	CodeWord  flow.Text
	Severity  verdict.Severity
	Word      flow.Text
	Count     int
	CountWord flow.Text
	// Oldest is the greatest age that is known; empty where none is.
	Oldest flow.Text
	// Open: shown from the start.
	Open bool
	// More leads to all of the group; empty where they stand here.
	More string
}

type groupKey struct {
	flow     string
	code     verdict.Code
	severity verdict.Severity
}

// newGroups puts the findings of one flow with one verdict together: the worst
// first, among those the largest. The worst ones stand open.
func (c *console) newGroups(v visit, asked askedFindings, words findingWords) []findingGroup {
	members := map[groupKey][]answer.Finding{}
	for _, f := range asked.list {
		k := groupKey{f.Flow, f.Code, f.Severity}
		members[k] = append(members[k], f)
	}
	var groups []findingGroup
	for k, list := range members {
		g := findingGroup{
			findingList: findingList{Says: words, Pick: c.mayChange(v)},
			Flow:        k.flow, Verdict: k.code, CodeWord: codeWord(k.code), Severity: k.severity, Word: severityWord(k.severity), Count: len(list), CountWord: keysWord(len(list)),
			Oldest: oldest(list, asked.all.At),
		}
		for _, f := range list[:min(len(list), rowsPerGroup)] {
			g.Rows = append(g.Rows, c.newFindingView(v, f, asked.all))
		}
		if len(list) > rowsPerGroup {
			values := with(with(findingValues(v), "flow", k.flow), "verdict", string(k.code))
			g.More = v.link("findings", with(values, "severity", string(k.severity)))
		}
		groups = append(groups, g)
	}
	rank := func(g findingGroup) int { return slices.Index(findingSeverities, g.Severity) }
	slices.SortFunc(groups, func(a, b findingGroup) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Flow, b.Flow))
	})
	for i := range groups {
		groups[i].Open = groups[i].Severity == groups[0].Severity
	}
	return groups
}

func oldest(list []answer.Finding, now time.Time) flow.Text {
	var most time.Duration
	known := false
	for _, f := range list {
		if age, ok := f.Age(now); ok {
			most, known = max(most, age), true
		}
	}
	if !known {
		return flow.Text{}
	}
	return flow.Span(most)
}

// actOn is where a selection of the findings on the page goes; nil when this person may not act.
func (c *console) actOn(v visit, lists ...findingList) *selection {
	if !c.mayChange(v) {
		return nil
	}
	var places []string
	for _, list := range lists {
		for _, row := range list.Rows {
			places = append(places, row.Place)
		}
	}
	return new(newSelection(v, places))
}

// selection is the form that sends places of chosen findings on.
type selection struct {
	// Method is get, so that the address says what was selected, unless all the
	// places together could be too long for one.
	Address, Method string
	// Lang is passed on where the address loses its parameters; mostly empty.
	Lang string
}

func newSelection(v visit, places []string) selection {
	length := 0
	for _, word := range places {
		length += len(word) + len("&place=")
	}
	if length > maxSelection {
		return selection{Address: v.link("findings/preview", nil), Method: "post"}
	}
	s := selection{Address: v.root + "findings/preview", Method: "get"}
	if v.chosen {
		s.Lang = string(v.lang)
	}
	return s
}

// grouped leaves out what would ask for a list.
func grouped(values url.Values) url.Values {
	values = maps.Clone(values)
	for _, name := range append([]string{"verdict"}, findingOrders...) {
		values.Del(name)
	}
	return values
}

// sortLinks are the list in every order.
func sortLinks(v visit, asked askedFindings) (links []sortLink) {
	values := findingValues(v)
	for _, o := range answer.Orders() {
		chosen := url.Values(with(values, "sort", string(o)))
		links = append(links, sortLink{Word: orderWord(o), URL: v.link("findings", chosen), Current: asked.flat && asked.order == o})
	}
	return links
}

// sortLink is the list in one order.
type sortLink struct {
	Word    flow.Text
	URL     string
	Current bool
}
