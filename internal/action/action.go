// Package action changes one key on a person's order: it releases a lock, clears
// a marker, sets a stale record back, or replays one dead-lettered message. It
// says beforehand what that would do to each layer, gathers the evidence anew at
// the moment of writing, refuses what the evidence does not allow, writes only
// what is still as it was seen, and has every attempt audited.
//
// It judges no key (that is for package verdict), knows no page, and talks to no
// store itself.
package action

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// Kind names an action. Kinds are stable: they are API values and commands.
type Kind string

// The actions.
const (
	ReleaseLock Kind = "release-lock"
	ResetRecord Kind = "reset-record"
	ClearMarker Kind = "clear-marker"
	Replay      Kind = "replay"
)

// Kinds lists every action in the order in which they are offered.
var Kinds = []Kind{ReleaseLock, ClearMarker, ResetRecord, Replay}

// Known reports whether there is such an action.
func (k Kind) Known() bool { return slices.Contains(Kinds, k) }

// Word is the action for people.
func (k Kind) Word() flow.Text {
	switch k {
	case ReleaseLock:
		return flow.T("Release the lock", "释放锁")
	case ResetRecord:
		return flow.T("Set the stale record back to retryable", "将超时记录重置为可重试")
	case ClearMarker:
		return flow.T("Clear the marker", "清除标记")
	case Replay:
		return flow.T("Replay one dead-lettered message", "重放一条死信消息")
	}
	return flow.T("%s", "%s", flow.Visible(string(k)))
}

// Retype: the id has to be typed again, because what the action lets run cannot be
// called back. A lock or marker that was deleted cannot be restored either, but
// the record still guards the key.
func (k Kind) Retype() bool { return k == ResetRecord || k == Replay }

// Desk looks keys up.
type Desk interface {
	Answer(ctx context.Context, p flow.Place) (answer.Answer, error)
}

// Journal keeps every attempt.
type Journal interface {
	Append(ctx context.Context, e audit.Entry) error
}

// Redis deletes a key that is still as it was seen.
type Redis struct {
	Release func(ctx context.Context, e lockstore.Expected) (lockstore.Released, error)
	// Second: with a user of its own, other than the one that reads.
	Second bool
}

// Records sets records of one ledger back.
type Records struct {
	Plan func(ctx context.Context, k flow.Key, row ledger.Row) (ledger.ResetPlan, error)
	// Reset is nil when no user that may write is configured.
	Reset func(ctx context.Context, p ledger.ResetPlan) (changed bool, err error)
}

// Options of an Actor.
type Options struct {
	// Desk looks keys up, without a mask: what is compared must be what is stored. Mandatory.
	Desk Desk
	// Flows are those configured. Mandatory.
	Flows []flow.Flow
	// Journal keeps every attempt. Mandatory.
	Journal Journal
	// Redis by configured name; what is missing cannot be changed.
	Redis map[string]Redis
	// Ledgers by configured name; what is missing cannot be changed.
	Ledgers map[string]Records
	// Brokers by configured name: those with a user that may replay.
	Brokers map[string]Replayer
	// Unfinished tells of earlier replays of a key whose end was never written, by
	// the id of the replay. May be nil.
	Unfinished func(ctx context.Context, p flow.Place) ([]Earlier, error)
	// Mask hides parts of what a Result shows of the key; may be nil.
	Mask func(string) string
	// Limit bounds one action, from the look to the last word in the journal; zero
	// means 45 s.
	Limit time.Duration
	// Logger takes what the journal did not; nil means slog.Default.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Actor acts. It is safe for concurrent use.
type Actor struct {
	options Options
	turns   *turns
}

// New checks the options.
func New(o Options) (*Actor, error) {
	if o.Desk == nil || o.Journal == nil || len(o.Flows) == 0 {
		return nil, errors.New("actions: a desk, a journal and at least one flow are mandatory")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Limit == 0 {
		o.Limit = doTime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Actor{options: o, turns: newTurns()}, nil
}

// Effect is what an action does to one layer.
type Effect struct {
	Layer flow.Layer
	Text  flow.Text
	// Command is the exact statement; mostly empty.
	Command string
}

// Refusal is why an action is not done. Codes are stable: they are API values.
type Refusal struct {
	Code string
	Text flow.Text
}

// Precheck is what an action would do, and whether it may, as of one look.
type Precheck struct {
	Kind Kind
	// Answer is what was seen.
	Answer answer.Answer
	// Effects on each layer, in the order in which a message meets them.
	Effects []Effect
	// Warnings are what to know before.
	Warnings []flow.Text
	// Refusals are all that speaks against it; without any it is allowed.
	Refusals []Refusal
	// Nothing says why there is nothing to do; mostly empty.
	Nothing flow.Text
	// Ticket is what was seen, to be handed in with the order.
	Ticket Ticket

	plan ledger.ResetPlan
}

// Allowed: there is something to do, and nothing speaks against it.
func (p Precheck) Allowed() bool { return len(p.Refusals) == 0 && p.Nothing.Empty() }

// refuse adds a refusal, when it applies.
func (p *Precheck) refuse(applies bool, code string, text flow.Text) {
	if applies {
		p.Refusals = append(p.Refusals, Refusal{code, text})
	}
}

func (p *Precheck) effect(layer flow.Layer, text flow.Text) {
	p.Effects = append(p.Effects, Effect{Layer: layer, Text: text})
}

func (p *Precheck) warn(applies bool, text flow.Text) {
	if applies {
		p.Warnings = append(p.Warnings, text)
	}
}

// Precheck looks the key up and says what the action would do. It changes nothing
// and touches no message. Error: an answer.NoFlow, or an unknown kind.
func (a *Actor) Precheck(ctx context.Context, place flow.Place, kind Kind) (Precheck, error) {
	if !kind.Known() {
		return Precheck{}, fmt.Errorf("there is no action %q; known actions: %q", kind, Kinds)
	}
	seen, err := a.options.Desk.Answer(ctx, place)
	if err != nil {
		return Precheck{}, err
	}
	return a.check(ctx, seen, kind), nil
}

// shown is an answer as the person of ctx may see it.
func (a *Actor) shown(ctx context.Context, seen answer.Answer) answer.Answer {
	return seen.ShownTo(access.Of(ctx).May(access.Payload), a.options.Mask)
}

// wordValue words a value of a lock or marker, for people and for the journal: a
// token or a word as it is, a payload by its size alone.
func wordValue(kind Kind, value string) string {
	e := &dossier.RedisEvidence{Entry: lockstore.Entry{Value: value}}
	if kind == ReleaseLock {
		e = answer.Answer{Dossier: dossier.Dossier{Lock: e}}.Hidden().Lock
	} else {
		e = answer.Answer{Dossier: dossier.Dossier{Marker: e}}.Hidden().Marker
	}
	if e.ValueHidden {
		return fmt.Sprintf("(a payload of %d bytes)", len(value))
	}
	return flow.Visible(cut(value))
}

// Offers says of every action whether it may be done, from one look.
func (a *Actor) Offers(ctx context.Context, seen answer.Answer) []Precheck {
	var all []Precheck
	for _, kind := range Kinds {
		all = append(all, a.check(ctx, seen, kind))
	}
	return all
}

// check applies every rule to what was seen.
func (a *Actor) check(ctx context.Context, seen answer.Answer, kind Kind) Precheck {
	p := Precheck{Kind: kind, Answer: seen, Ticket: newTicket(seen, kind, a.options.Now())}
	p.generalRules()
	switch kind {
	case ReleaseLock:
		a.checkLock(&p)
	case ClearMarker:
		a.checkMarker(&p)
	case ResetRecord:
		a.checkRecord(ctx, &p)
	case Replay:
		a.checkReplay(ctx, &p)
	}
	return p
}
