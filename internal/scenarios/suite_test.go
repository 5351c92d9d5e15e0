package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
	"idemscope/internal/verdict"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// scenario is one incident: what it left in the stores, and what must be said about the key afterwards.
type scenario struct {
	// field names the case by its kind and number, such as A1.
	field string
	story string
	// flow is one of the shop's. bizType and bizID are made up when empty.
	flow, bizType, bizID string
	// left is what the incident left behind, in order.
	left []deed
	// query, when not empty, is what somebody types into the search instead of giving type and id.
	query string

	code     verdict.Code
	layer    flow.Layer
	severity verdict.Severity
	// notes are the codes of all notes, in order, separated by blanks.
	notes string
	// says are parts of the English text that must be there, never those that must not.
	says, never []string
	// shows checks the evidence itself; may be nil.
	shows func(t *testing.T, a answer.Answer)
}

// groups are all scenarios. The first letter of a field is the kind of the failure.
func groups() map[string][]scenario {
	return map[string][]scenario{
		"A the lock outlives its owner":          lockOutlives(),
		"B the lock is lost under its owner":     lockLost(),
		"C the janitor does the damage":          janitorHarm(),
		"D processing for ever":                  processingForEver(),
		"E a late writer":                        lateWriter(),
		"F the broker delivers again":            deliveredAgain(),
		"G acknowledged but never done":          neverDone(),
		"H window and retention":                 retention(),
		"I which id is this":                     whichID(),
		"J key spelling":                         keySpelling(),
		"K unique keys":                          uniqueKeys(),
		"L time":                                 aboutTime(),
		"N watching without harm or false words": watching(),
		"with a tap on the exchange":             withTap(),
		"with a Redis that forgets":              forgetfulRedis(),
		"where the obvious answer would mislead": misleading(),
		"with an archive":                        archived(),
		"with a trail of the consumers":          withTrail(),
	}
}

func TestTheFieldsCasesGetTheRightAnswer(t *testing.T) {
	s := openShop(t)
	all, perKind, perCase := groups(), map[string]int{}, map[string]bool{}
	total := 0
	for _, group := range slices.Sorted(maps.Keys(all)) {
		t.Run(group, func(t *testing.T) {
			for _, c := range all[group] {
				t.Run(c.field+" "+c.story, func(t *testing.T) { s.play(t, c, total) })
				perKind[c.field[:1]]++
				perCase[c.field] = true
				total++
			}
		})
	}
	t.Logf("%d scenarios of %d cases, per kind: %v", total, len(perCase), perKind)
}

// play leaves what the incident left, looks the key up, and compares.
func (s *shop) play(t *testing.T, c scenario, number int) {
	f, ok := s.flows[c.flow]
	if !ok {
		t.Fatalf("there is no flow %s", c.flow)
	}
	k := flow.Key{BizType: c.bizType, BizID: c.bizID}
	if k.BizType == "" {
		k.BizType = f.BizTypes[0]
	}
	if k.BizID == "" {
		k.BizID = fmt.Sprintf("SO-%s-%03d", c.field, number)
	}
	for _, do := range c.left {
		do(t, s, f, k)
	}
	a := s.lookUp(t, c, flow.Place{Flow: f.Name, Key: k})
	problems := c.compare(a)
	if len(problems) > 0 {
		t.Errorf("%s\n%s", strings.Join(problems, "\n"), onScreen(t, a))
	}
	checkWording(t, a)
	if c.shows != nil {
		c.shows(t, a)
	}
}

// lookUp asks as the product does: by type and id, or through the search.
func (s *shop) lookUp(t *testing.T, c scenario, p flow.Place) answer.Answer {
	t.Helper()
	if c.query == "" {
		a, err := s.desk.Answer(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	r, err := s.desk.Search(t.Context(), c.query)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Answers) != 1 || r.Answers[0].Key != p.Key {
		t.Fatalf("the search for %q found %d answers, not the one for %s", c.query, len(r.Answers), p.Key)
	}
	return r.Answers[0]
}

// compare lists the differences between what was expected and the answer.
func (c scenario) compare(a answer.Answer) []string {
	var problems []string
	v := a.Verdict
	if v.Code != c.code || v.Layer != c.layer || v.Severity != c.severity {
		problems = append(problems, fmt.Sprintf("verdict %s/%s (%s), want %s/%s (%s)", v.Code, v.Layer, v.Severity, c.code, c.layer, c.severity))
	}
	var notes []string
	for _, n := range v.Notes {
		notes = append(notes, n.Code)
	}
	if got := strings.Join(notes, " "); got != c.notes {
		problems = append(problems, fmt.Sprintf("notes %q, want %q", got, c.notes))
	}
	said := strings.Join(texts(v, flow.English), "\n")
	for _, words := range c.says {
		if !strings.Contains(said, words) {
			problems = append(problems, fmt.Sprintf("it does not say %q", words))
		}
	}
	for _, words := range c.never {
		if strings.Contains(strings.ToLower(said), strings.ToLower(words)) {
			problems = append(problems, fmt.Sprintf("it says %q", words))
		}
	}
	return problems
}

// texts are all words of a verdict.
func texts(v verdict.Verdict, lang flow.Language) []string {
	words := []string{v.Sentence.In(lang)}
	for _, f := range v.Facts {
		words = append(words, f.Text.In(lang))
	}
	for _, n := range v.Notes {
		words = append(words, n.Text.In(lang))
	}
	for _, list := range [][]flow.Text{v.Next, v.Advice} {
		for _, text := range list {
			words = append(words, text.In(lang))
		}
	}
	return words
}

// checkWording checks what holds for every answer: words in both languages, the whole key on the screen (J9), facts,
// and the command with which to see the same (A10).
func checkWording(t *testing.T, a answer.Answer) {
	t.Helper()
	for _, lang := range flow.Languages {
		for _, words := range texts(a.Verdict, lang) {
			if words == "" || strings.Contains(words, "%!") {
				t.Errorf("a text in %s is empty or malformed: %q", lang, words)
			}
		}
		var out strings.Builder
		if err := a.WriteText(&out, lang, time.UTC); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), a.Key.String()) {
			t.Errorf("the terminal's text does not name %s:\n%s", a.Key, out.String())
		}
	}
	if len(a.Verdict.Facts) == 0 {
		t.Error("a verdict without facts")
	}
	if a.Lock != nil && a.Lock.State == flow.Found && !strings.Contains(a.Lock.Command, "-n ") {
		t.Errorf("the command for the lock does not name its db: %s", a.Lock.Command)
	}
}

// onScreen is what a terminal shows, for the report of a failure.
func onScreen(t *testing.T, a answer.Answer) string {
	t.Helper()
	var out strings.Builder
	if err := a.WriteText(&out, flow.English, time.UTC); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
