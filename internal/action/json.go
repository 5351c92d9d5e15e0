package action

import (
	"fmt"
	"io"
	"strings"

	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// PrecheckJSON is a Precheck as API and command line give it.
type PrecheckJSON struct {
	Action  Kind           `json:"action"`
	Key     answer.KeyJSON `json:"key"`
	Flow    string         `json:"flow"`
	Allowed bool           `json:"allowed"`
	// Retype: a page asks for the id once more.
	Retype   bool          `json:"retype"`
	Nothing  string        `json:"nothing,omitempty"`
	Refusals []RefusalJSON `json:"refusals"`
	Effects  []EffectJSON  `json:"effects"`
	Warnings []string      `json:"warnings"`
	Verdict  string        `json:"verdict"`
	// Ticket is what was seen; hand it in with the order.
	Ticket string `json:"ticket"`
}

// RefusalJSON is why an action is not done.
type RefusalJSON struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// EffectJSON is what an action does to one layer.
type EffectJSON struct {
	Layer   flow.Layer `json:"layer"`
	Text    string     `json:"text"`
	Command string     `json:"command,omitempty"`
}

// ResultJSON is a Result as API and command line give it.
type ResultJSON struct {
	Action   Kind           `json:"action"`
	Key      answer.KeyJSON `json:"key"`
	Flow     string         `json:"flow"`
	Attempt  string         `json:"attempt"`
	Outcome  audit.Outcome  `json:"outcome"`
	Code     string         `json:"code"`
	Why      string         `json:"why"`
	Refusals []RefusalJSON  `json:"refusals"`
	Before   string         `json:"before"`
	After    string         `json:"after"`
	// Unkept says that the audit file does not have the end.
	Unkept string `json:"unkept,omitempty"`
	// Now is the look-up after the attempt; null when there was none.
	Now *answer.JSON `json:"now"`
}

// JSON words the precheck in lang.
func (p Precheck) JSON(lang flow.Language) PrecheckJSON {
	j := PrecheckJSON{
		Action: p.Kind, Key: answer.NewKeyJSON(p.Answer.Key), Flow: p.Answer.Flow.Name, Allowed: p.Allowed(), Retype: p.Kind.Retype(),
		Nothing: p.Nothing.In(lang), Refusals: refusalsJSON(p.Refusals, lang), Effects: []EffectJSON{}, Warnings: []string{},
		Verdict: string(p.Answer.Verdict.Code), Ticket: p.Ticket.String(),
	}
	for _, e := range p.Effects {
		j.Effects = append(j.Effects, EffectJSON{e.Layer, e.Text.In(lang), e.Command})
	}
	for _, w := range p.Warnings {
		j.Warnings = append(j.Warnings, w.In(lang))
	}
	return j
}

func refusalsJSON(all []Refusal, lang flow.Language) []RefusalJSON {
	list := []RefusalJSON{}
	for _, r := range all {
		list = append(list, RefusalJSON{r.Code, r.Text.In(lang)})
	}
	return list
}

// JSON words the result in lang.
func (r Result) JSON(lang flow.Language) ResultJSON {
	j := ResultJSON{
		Action: r.Kind, Key: answer.NewKeyJSON(r.Place.Key), Flow: r.Place.Flow, Attempt: r.Attempt, Outcome: r.Outcome, Code: r.Code, Why: r.Why.In(lang),
		Refusals: refusalsJSON(r.Refusals, lang), Before: r.Before, After: r.After, Unkept: r.Unkept.In(lang),
	}
	if r.Now != nil {
		now := r.Now.JSON(lang)
		j.Now = &now
	}
	return j
}

// WriteText writes the precheck for a terminal.
func (p Precheck) WriteText(w io.Writer, lang flow.Language) error {
	var out strings.Builder
	say := func(t flow.Text) { fmt.Fprintln(&out, t.In(lang)) }
	say(flow.T("%v: %s (flow %s), verdict %s", "%v：%s（流程 %s），判定 %s", p.Kind.Word(), p.Answer.Key, p.Answer.Flow.Name, string(p.Answer.Verdict.Code)))
	for _, e := range p.Effects {
		say(flow.T("  %-6s %v", "  %-6s %v", string(e.Layer), e.Text))
		if e.Command != "" {
			fmt.Fprintf(&out, "         $ %s\n", e.Command)
		}
	}
	for _, t := range p.Warnings {
		say(flow.T("  note: %v", "  注意：%v", t))
	}
	for _, r := range p.Refusals {
		say(flow.T("REFUSED %s: %v", "拒绝 %s：%v", r.Code, r.Text))
	}
	switch {
	case len(p.Refusals) > 0:
	case !p.Nothing.Empty():
		say(flow.T("Nothing to do: %v", "无需操作：%v", p.Nothing))
	default:
		say(flow.T("Nothing was changed. To do it, add --execute and --reason.", "没有做任何更改。确认执行请加 --execute 和 --reason。"))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// WriteText writes the result for a terminal.
func (r Result) WriteText(w io.Writer, lang flow.Language) error {
	var out strings.Builder
	say := func(t flow.Text) { fmt.Fprintln(&out, t.In(lang)) }
	say(flow.T("%v: %v: %v", "%v：%v：%v", r.Kind.Word(), OutcomeWord(r.Outcome), r.Why))
	if len(r.Refusals) > 1 {
		for _, one := range r.Refusals[1:] {
			say(flow.T("  also %s: %v", "  另有 %s：%v", one.Code, one.Text))
		}
	}
	if r.Before != "" {
		say(flow.T("  before: %s", "  之前：%s", r.Before))
	}
	if r.After != "" {
		say(flow.T("  after:  %s", "  之后：%s", r.After))
	}
	say(flow.T("  attempt %s", "  操作编号 %s", r.Attempt))
	if !r.Unkept.Empty() {
		say(r.Unkept)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// OutcomeWord is the outcome for people.
func OutcomeWord(o audit.Outcome) flow.Text {
	switch o {
	case audit.Begun:
		return flow.T("begun", "已开始")
	case audit.Done:
		return flow.T("done", "已完成")
	case audit.Nothing:
		return flow.T("nothing to do", "无需操作")
	case audit.Refused:
		return flow.T("refused", "已拒绝")
	}
	return flow.T("failed", "失败")
}
