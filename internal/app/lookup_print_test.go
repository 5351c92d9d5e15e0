package app

import (
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// absentAnswer is a key that its ledger does not have.
func absentAnswer(id string) answer.Answer {
	d := dossier.Dossier{
		Key: flow.Key{BizType: "order_paid", BizID: id}, Flow: flow.Flow{Name: "payments"},
		Record: ledger.Found{Observation: flow.Observation{State: flow.Absent, Source: "mysql main"}},
	}
	return answer.Answer{Dossier: d, Verdict: verdict.Judge(d)}
}

// TestLookupPrints: what else a text could mean stands below the answer, and a
// report is Markdown, one for each key.
func TestLookupPrints(t *testing.T) {
	offer := answer.Offer{Why: flow.T("without a space at its end", "去掉末尾的空格"), Query: "4711\x1b", Answers: []answer.Answer{absentAnswer("4711")}}
	for name, c := range map[string]struct {
		result answer.Result
		o      LookupOptions
		want   []string
	}{
		"an offer": {answer.Result{Answers: []answer.Answer{absentAnswer("4711 ")}, Offers: []answer.Offer{offer}}, LookupOptions{Language: flow.English},
			[]string{"order_paid / 4711␣", "Other readings of this text", `without a space at its end: 4711\x1b`, "  order_paid / 4711 ", "NEVER_SEEN"}},
		"offers alone": {answer.Result{Offers: []answer.Offer{offer}}, LookupOptions{Language: flow.Chinese}, []string{"这段文本的其他读法", "去掉末尾的空格"}},
		"reports": {answer.Result{Answers: []answer.Answer{absentAnswer("`"), absentAnswer("4711")}}, LookupOptions{Language: flow.English, Markdown: true},
			[]string{"# NEVER_SEEN: `order_paid` / `` ` ``", "\n---\n\n# NEVER_SEEN: `order_paid` / `4711`"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			c.o.Out = &out
			if err := printResult(c.result, c.o, time.UTC); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("lacks %q:\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Error("a raw byte reaches the terminal")
			}
		})
	}
}
