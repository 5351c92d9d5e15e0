// Package answer is the look-up as a whole: from what somebody typed to a
// dossier with its verdict, worded as JSON or as lines for a terminal. The
// console, the API and the command line all answer through it, so that they
// never differ.
//
// It adds no evidence and no judgement of its own.
package answer

import (
	"context"
	"strings"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Answer is one key's evidence with what it means.
type Answer struct {
	dossier.Dossier
	Verdict verdict.Verdict
}

// Types lists the biz_types of a ledger, at most limit; complete is false when
// there are more.
type Types interface {
	Types(ctx context.Context, limit int) (types []string, complete bool, err error)
}

// Options of a Desk.
type Options struct {
	// Catalog of all flows. Mandatory.
	Catalog *flow.Catalog
	// Gatherer of the evidence. Mandatory.
	Gatherer *dossier.Gatherer
	// Ledgers by name, to find the biz_types of flows that name none.
	Ledgers map[string]Types
	// Mask hides parts of messages and results in every answer; nil shows them as
	// they are. What is judged is not masked.
	Mask func(string) string
}

// Desk answers look-ups. It is safe for concurrent use.
type Desk struct {
	options Options
}

// NewDesk returns a desk.
func NewDesk(o Options) *Desk { return &Desk{options: o} }

// Raw returns the same desk without its mask, for what acts on the values as they
// are stored. What it answers must not be shown.
func (d *Desk) Raw() *Desk {
	o := d.options
	o.Mask = nil
	return NewDesk(o)
}

// NoFlow is the error of a key that no flow carries.
type NoFlow struct {
	BizType string
	// Flow is set when a flow was named that does not exist or does not carry the type.
	Flow string
	// Known are the biz_types that flows name.
	Known []string
}

// Error names the biz_type and what is known instead.
func (e NoFlow) Error() string { return e.Text().EN }

// Text is the same in both languages.
func (e NoFlow) Text() flow.Text {
	known := strings.Join(e.Known, ", ")
	if e.Flow != "" {
		return flow.T("flow %q does not carry biz_type %q; known biz_types: %s", "流程 %q 不包含业务类型 %q；已知的业务类型：%s", e.Flow, flow.Visible(e.BizType), known)
	}
	return flow.T("no flow names biz_type %q; known biz_types: %s", "没有流程包含业务类型 %q；已知的业务类型：%s", flow.Visible(e.BizType), known)
}

// Places returns every flow that carries the key; flowName narrows it down and
// may be empty. The error is a NoFlow.
func (d *Desk) Places(k flow.Key, flowName string) ([]flow.Place, error) {
	var places []flow.Place
	for _, f := range d.options.Catalog.For(k.BizType) {
		if flowName == "" || f.Name == flowName {
			places = append(places, flow.Place{Flow: f.Name, Key: k})
		}
	}
	if len(places) == 0 {
		return nil, NoFlow{BizType: k.BizType, Flow: flowName, Known: d.options.Catalog.Types()}
	}
	return places, nil
}

// Answer looks one key up in one flow.
func (d *Desk) Answer(ctx context.Context, p flow.Place) (Answer, error) {
	f, ok := d.options.Catalog.Named(p.Flow)
	if !ok {
		return Answer{}, NoFlow{BizType: p.Key.BizType, Flow: p.Flow, Known: d.options.Catalog.Types()}
	}
	return d.judge(d.options.Gatherer.Gather(ctx, f, p.Key)), nil
}

// AnswerWithin is Answer for somebody who waits no longer than patience: a source
// that is slower is unknown and pending, and the verdict is one without it.
func (d *Desk) AnswerWithin(ctx context.Context, p flow.Place, patience time.Duration) (Answer, error) {
	f, ok := d.options.Catalog.Named(p.Flow)
	if !ok {
		return Answer{}, NoFlow{BizType: p.Key.BizType, Flow: p.Flow, Known: d.options.Catalog.Types()}
	}
	return d.judge(d.options.Gatherer.GatherWithin(ctx, f, p.Key, patience)), nil
}

// judge words what the evidence means, behind the mask.
func (d *Desk) judge(gathered dossier.Dossier) Answer {
	if d.options.Mask == nil {
		return Answer{Dossier: gathered, Verdict: verdict.Judge(gathered)}
	}
	gathered = maskWords(gathered, d.options.Mask)
	return Answer{Dossier: gathered, Verdict: verdict.Judge(gathered)}.Masked(d.options.Mask)
}

// hasTrace: some layer shows this very key, or could not be read, so that it may.
func (a Answer) hasTrace() bool {
	if len(a.Record.Rows) > 0 || !a.Record.Seen() {
		return true
	}
	for _, r := range []*dossier.RedisEvidence{a.Lock, a.Marker} {
		if r != nil && r.State != flow.Absent && !(r.State == flow.Found && r.Ambiguous()) {
			return true
		}
	}
	return false
}
