package action

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// doTime is what Options.Limit is without one.
	doTime = 45 * time.Second
	// maxReason is how long a reason may be, in bytes.
	maxReason = 2000
)

// Outcomes as the rest of the package words them.
const (
	succeeded = audit.Done
	nothing   = audit.Nothing
	refused   = audit.Refused
	failed    = audit.Failed
)

// Result is what an attempt came to.
type Result struct {
	// Attempt is its name in the journal.
	Attempt string
	Kind    Kind
	Place   flow.Place
	Outcome audit.Outcome
	// Code is done, or that of the refusal; stable.
	Code string
	Why  flow.Text
	// Refusals are all that spoke against it.
	Refusals []Refusal
	// Before and After are the state of what was to be changed, as the journal has it.
	Before, After string
	// Now is the key as it is after the attempt; nil when it was not looked at.
	Now *answer.Answer
	// Unkept says that the journal does not have the end of the attempt; mostly empty.
	Unkept flow.Text
}

// done is what the writing itself came to.
type done struct {
	outcome       audit.Outcome
	code          string
	why           flow.Text
	before, after string
}

// Do does what the ticket names: it looks the key up anew, applies every rule to
// what it finds, writes only what is still as the ticket has it, and has beginning
// and end in the journal. Who asks stands in ctx (package access). It goes on when
// ctx is called off: a closed browser must not leave a message half moved.
func (a *Actor) Do(ctx context.Context, t Ticket, reason string) Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.Limit)
	defer cancel()
	r := Result{Attempt: rand.Text(), Kind: t.Kind, Place: t.Place}
	if refusal := a.refuseOrder(ctx, t, reason); refusal != nil {
		r.refuse(*refusal)
		return a.end(ctx, r, reason)
	}
	if err := a.options.Journal.Append(ctx, a.entry(ctx, r, reason, audit.Begun)); err != nil {
		r.refuse(Refusal{"audit_unwritable", flow.T("the attempt cannot be kept in the audit file, so nothing was changed: %s", "无法写入审计文件，因此未做任何更改：%s", flow.Visible(err.Error()))})
		a.options.Logger.Error("an action was refused: the audit file cannot be written", "action", t.Kind, "err", err)
		return r
	}
	leave, err := a.turns.take(ctx, t.Place.Key)
	if err != nil {
		r.refuse(Refusal{"busy", flow.T("another person has been acting on this key for too long: look again", "他人对该键的操作持续过久：请重新查看")})
		return a.end(ctx, r, reason)
	}
	defer leave()
	a.act(ctx, t, &r, reason)
	return a.end(ctx, r, reason)
}

// refuseOrder refuses what needs no look.
func (a *Actor) refuseOrder(ctx context.Context, t Ticket, reason string) *Refusal {
	age := a.options.Now().Sub(t.At)
	switch {
	case !access.Of(ctx).May(access.Operator):
		return &Refusal{"not_operator", flow.T("you may look, but not change anything: that takes the role operator", "你可以查看，但不能更改：需要 operator 角色")}
	case strings.TrimSpace(reason) == "":
		return &Refusal{"reason_missing", flow.T("a reason is needed: it is kept in the audit file", "需要填写理由：它会保存在审计文件中")}
	case len(reason) > maxReason:
		return &Refusal{"reason_too_long", flow.T("the reason has %d bytes; %d are kept", "理由有 %d 字节，最多保存 %d 字节", len(reason), maxReason)}
	case !t.Kind.Known():
		return &Refusal{"no_such_action", flow.T("there is no such action", "没有该操作")}
	case age > ticketLife || age < -ticketLife:
		return &Refusal{"too_old", flow.T("what was shown is older than %v: look again", "所展示的内容已超过 %v：请重新查看", flow.Span(ticketLife))}
	}
	return nil
}

// act looks, compares, and writes.
func (a *Actor) act(ctx context.Context, t Ticket, r *Result, reason string) {
	seen, err := a.options.Desk.Answer(ctx, t.Place)
	var noFlow answer.NoFlow
	if errors.As(err, &noFlow) {
		r.refuse(Refusal{"no_flow", noFlow.Text()})
		return
	}
	if err != nil {
		r.Outcome, r.Code, r.Why = failed, "look_failed", flow.T("the key could not be looked up, and nothing was changed: %s", "无法查询该键，未做任何更改：%s", flow.Visible(err.Error()))
		return
	}
	r.Now = new(a.shown(ctx, seen))
	p := a.check(ctx, seen, t.Kind)
	r.Before = p.state()
	gone := p.compare(t)
	switch {
	case len(p.Refusals) > 0:
		r.refuse(p.Refusals...)
		return
	case gone:
		r.Outcome, r.Code, r.Why = nothing, "already_gone", goneText(t.Kind)
		return
	case !p.Nothing.Empty():
		r.Outcome, r.Code, r.Why = nothing, "nothing_to_do", p.Nothing
		return
	}
	d, refusal := a.write(ctx, &p, t, r, reason)
	if d.before != "" {
		r.Before = d.before
	}
	if refusal != nil {
		r.refuse(*refusal)
	} else {
		r.Outcome, r.Code, r.Why = d.outcome, d.code, d.why
	}
	a.lookAfter(ctx, r)
	if d.after != "" {
		r.After = d.after
	}
}

// write changes the one thing that the action is about.
func (a *Actor) write(ctx context.Context, p *Precheck, t Ticket, r *Result, reason string) (done, *Refusal) {
	f := p.Answer.Flow
	switch t.Kind {
	case ReleaseLock:
		return a.deleteKey(ctx, p, t, p.Answer.Lock, f.Lock)
	case ClearMarker:
		return a.deleteKey(ctx, p, t, p.Answer.Marker, f.Marker)
	case ResetRecord:
		return a.setBack(ctx, p)
	}
	return a.replay(ctx, p, t, *r, reason)
}

// compare refuses what is no longer as the ticket has it. gone: there is nothing
// left to change.
func (p *Precheck) compare(t Ticket) (gone bool) {
	switch t.Kind {
	case ReleaseLock:
		return p.compareRedis(t, p.Answer.Lock)
	case ClearMarker:
		return p.compareRedis(t, p.Answer.Marker)
	case ResetRecord:
		return p.compareRecord(t)
	}
	return false
}

// state words what the action is about, as it was seen.
func (p *Precheck) state() string {
	switch p.Kind {
	case ReleaseLock:
		return p.wordRedis(p.Answer.Lock)
	case ClearMarker:
		return p.wordRedis(p.Answer.Marker)
	}
	return wordRecord(p.Answer.Record)
}

// lookAfter looks at what is there now.
func (a *Actor) lookAfter(ctx context.Context, r *Result) {
	seen, err := a.options.Desk.Answer(ctx, r.Place)
	if err != nil {
		return
	}
	r.Now = new(a.shown(ctx, seen))
	r.After = (&Precheck{Kind: r.Kind, Answer: seen}).state()
	if r.Outcome == refused && r.Code == "changed" && r.Kind == ResetRecord {
		r.Why = flow.T("%v: now %s", "%v：现在为 %s", r.Why, r.After)
	}
}

// end keeps the end of the attempt in the journal.
func (a *Actor) end(ctx context.Context, r Result, reason string) Result {
	if err := a.options.Journal.Append(ctx, a.entry(ctx, r, reason, r.Outcome)); err != nil {
		r.Unkept = flow.T("the audit file does not have the end of this attempt: %s", "审计文件中没有本次操作的结果：%s", flow.Visible(err.Error()))
		a.options.Logger.Error("the end of an action is not in the audit file", "action", r.Kind, "attempt", r.Attempt, "outcome", r.Outcome, "err", err)
	}
	return r
}

func (a *Actor) entry(ctx context.Context, r Result, reason string, outcome audit.Outcome) audit.Entry {
	person := access.Of(ctx)
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return audit.Entry{
		At: a.options.Now(), Attempt: r.Attempt, Who: person.Name, From: person.From, Action: string(r.Kind), Place: r.Place,
		Reason: reason, Outcome: outcome, Why: r.Why, Before: r.Before, After: r.After,
	}
}

func (r *Result) refuse(all ...Refusal) {
	r.Outcome, r.Code, r.Why, r.Refusals = refused, all[0].Code, all[0].Text, all
}

// wordRecord is the state of the record for the journal.
func wordRecord(f ledger.Found) string {
	var rows []string
	for _, r := range f.Rows {
		if r.Exact {
			rows = append(rows, wordRow(r))
		}
	}
	if len(rows) == 0 {
		return "record: " + string(f.State)
	}
	return strings.Join(rows, "; ")
}

// turns lets one action at a time act on a key. A second one waits, and then
// finds what the first has changed.
type turns struct {
	mu   sync.Mutex
	busy map[flow.Key]*turn
}

type turn struct {
	permit  chan struct{}
	waiting int
}

func newTurns() *turns { return &turns{busy: map[flow.Key]*turn{}} }

func (t *turns) take(ctx context.Context, k flow.Key) (leave func(), err error) {
	t.mu.Lock()
	one := t.busy[k]
	if one == nil {
		one = &turn{permit: make(chan struct{}, 1)}
		t.busy[k] = one
	}
	one.waiting++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.waiting--; one.waiting == 0 {
			delete(t.busy, k)
		}
	}
	select {
	case one.permit <- struct{}{}:
		return func() {
			<-one.permit
			forget()
		}, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// wordsOf is the text of an error that has one in both languages.
func wordsOf(err error) flow.Text {
	type worded interface{ Words() flow.Text }
	var own worded
	if errors.As(err, &own) {
		return own.Words()
	}
	return flow.T("%s", "%s", flow.Visible(err.Error()))
}
