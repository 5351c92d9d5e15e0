package console

import (
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"idemscope/internal/action"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// madePage is what came of an action on many keys.
type madePage struct {
	page
	Says   manyWords
	Word   flow.Text
	Counts []madeCount
	Rows   []madeRow
	// Again leads to a preview of the keys that are not done; empty without such
	// keys, and where they do not fit in an address.
	Again string
}

// madeCount is how many keys came to one outcome.
type madeCount struct {
	Tone  string
	Word  flow.Text
	Count int
}

// madeRow is what came of one key.
type madeRow struct {
	Tone      string
	Outcome   flow.Text
	Code      string
	Why       flow.Text
	More      []flow.Text
	Unkept    flow.Text
	Attempt   string
	Key       keyView
	Flow, URL string
}

// madeOutcomes are those that an order can come to, in the order in which they are counted.
var madeOutcomes = []audit.Outcome{audit.Done, audit.Nothing, audit.Refused, audit.Failed}

func (c *console) showMade(g *gin.Context, v visit, kind action.Kind, results []action.Result) error {
	words := newManyWords()
	view := madePage{page: c.newPage(v, kind.Word().In(v.lang)), Says: words, Word: kind.Word()}
	counts := countOutcomes(results)
	for _, o := range madeOutcomes {
		view.Counts = append(view.Counts, madeCount{Tone: toneOf(o), Word: action.OutcomeWord(o), Count: counts[o]})
	}
	again, length := url.Values{"kind": {string(kind)}}, 0
	for _, r := range results {
		row := madeRow{
			Tone: toneOf(r.Outcome), Outcome: action.OutcomeWord(r.Outcome), Code: r.Code, Why: r.Why, Unkept: r.Unkept, Attempt: r.Attempt,
			Key: newKeyView(r.Place.Key), Flow: r.Place.Flow, URL: c.placeURL(v, r.Place),
		}
		for i, one := range r.Refusals {
			if i > 0 {
				row.More = append(row.More, one.Text)
			}
		}
		view.Rows = append(view.Rows, row)
		if r.Outcome == audit.Refused || r.Outcome == audit.Failed {
			word := r.Place.Encode()
			again.Add("place", word)
			length += len(word) + len("&place=")
		}
	}
	if again.Has("place") && length <= maxSelection {
		view.Again = v.link("findings/preview", again)
	}
	return c.render(g, statusOfMany(results), v.lang, "made", view)
}

func countOutcomes(results []action.Result) map[audit.Outcome]int {
	counts := map[audit.Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
	}
	return counts
}

// statusOfMany is the status of each of the results, where it is the same for all;
// otherwise 207: look at each.
func statusOfMany(results []action.Result) int {
	status := statusOf(results[0])
	for _, r := range results[1:] {
		if statusOf(r) != status {
			return http.StatusMultiStatus
		}
	}
	return status
}
