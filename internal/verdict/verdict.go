// Package verdict turns a dossier into an answer: what happened to the key,
// which layer let it through, what happens next by itself, and what to do. One
// rule is one pure function; the first rule that applies, from the top of the
// table, is the verdict.
//
// It does no input or output, and it never guesses: evidence that is missing is
// missing, not absent, and where it decides, the verdict is Unknown.
package verdict

import (
	"slices"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
)

// Code names a verdict. Codes are stable: they are API values and metric labels.
type Code string

// The verdicts.
const (
	KeyAmbiguous    Code = "key_ambiguous"
	RanTwice        Code = "ran_twice"
	Unknown         Code = "unknown"
	ClockSkew       Code = "clock_skew"
	Unreadable      Code = "unreadable"
	MayHaveRunTwice Code = "may_have_run_twice"
	Stuck           Code = "stuck"
	DeadLettered    Code = "dead_lettered"
	LostSuspected   Code = "lost_suspected"
	FailedUnplaced  Code = "failed_unplaced"
	RetryScheduled  Code = "retry_scheduled"
	Running         Code = "running"
	Completed       Code = "completed"
	Acquiring       Code = "acquiring"
	Waiting         Code = "waiting"
	MaybeWaiting    Code = "maybe_waiting"
	Archived        Code = "archived"
	NeverSeen       Code = "never_seen"
)

// Severity says how much a verdict matters to the person on call.
type Severity string

const (
	OK       Severity = "ok"
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
	// Unsure is the severity of Unknown: it may be nothing or the worst.
	Unsure Severity = "unknown"
)

// Verdict is the answer about one key.
type Verdict struct {
	Code     Code
	Severity Severity
	// Layer is the one that failed, or that could not be read; LayerNone when none did.
	Layer flow.Layer
	// Sentence is the answer in one sentence.
	Sentence flow.Text
	// Facts are the observations that decided it, in the order of the layers.
	Facts []Fact
	// Notes are smaller truths beside the verdict.
	Notes []Note
	// Next is what happens by itself if nobody acts.
	Next []flow.Text
	// Advice is what to do, in order.
	Advice []flow.Text
}

// Fact is one observation in words.
type Fact struct {
	Layer flow.Layer
	Text  flow.Text
	// From is the piece of evidence that it words.
	From Piece
}

// Piece names one piece of the evidence.
type Piece string

// The pieces of the evidence, in the order of the layers. A row of the ledger is
// PieceRow with its number, from 1.
const (
	PieceQueues Piece = "queues"
	PieceTap    Piece = "tap"
	PieceTrace  Piece = "trace"
	PieceTrail  Piece = "trail"
	PieceAudit  Piece = "audit"
	PieceLock   Piece = "lock"
	PieceMarker Piece = "marker"
	PieceRecord Piece = "record"
	PieceRow    Piece = "row-"
)

// Note is a smaller truth with a stable code.
type Note struct {
	Code string
	Text flow.Text
}

// rule decides one row of the table; nil means that it does not apply.
type rule func(evidence) *Verdict

// rules is the table, from the top.
func rules() []rule {
	return []rule{
		keyAmbiguous,
		ranTwice,
		unknown,
		clockSkew,
		unreadable,
		mayHaveRunTwice,
		archived,
		stuckOnRedis,
		stuckOnRecord,
		claimedNotStarted,
		deadLettered,
		lostBehindMarker,
		retryScheduled,
		lostByBroker,
		lostUnrecorded,
		failedUnplaced,
		running,
		completed,
		acquiring,
		waiting,
		maybeWaiting,
		neverSeen,
	}
}

// Judge returns the verdict of the first rule that applies. Where none does, the
// verdict is Unknown.
func Judge(d dossier.Dossier) Verdict {
	e := newEvidence(d)
	for _, decide := range rules() {
		if v := decide(e); v != nil {
			v.Notes = append(v.Notes, e.notes(v.Code)...)
			v.Next = slices.DeleteFunc(v.Next, flow.Text.Empty)
			return *v
		}
	}
	return Verdict{
		Code: Unknown, Severity: Unsure, Layer: flow.LayerNone,
		Sentence: flow.T("These observations fit no rule, so nothing is claimed.", "这些观察不符合任何规则，因此不下结论。"),
		Facts:    e.facts(),
		Notes:    e.notes(Unknown),
	}
}
