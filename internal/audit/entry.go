// Package audit keeps what people tried to change, whatever came of it: an
// append-only file of one JSON object a line.
//
// It decides nothing: who may act is for package access, what happens for package action.
package audit

import (
	"time"

	"idemscope/internal/flow"
)

// Outcome is how an attempt ended. Outcomes are stable: they are API values.
type Outcome string

const (
	// Begun: written before anything is changed, so that a crash leaves a trace.
	Begun Outcome = "begun"
	// Done: something was changed.
	Done Outcome = "done"
	// Nothing: there was nothing to change.
	Nothing Outcome = "nothing"
	// Refused: a check said no, and nothing was changed.
	Refused Outcome = "refused"
	// Failed: a store did not answer; whether something changed stands in Why.
	Failed Outcome = "failed"
)

// Entry is one attempt.
type Entry struct {
	// At is when it was written, by this process's clock.
	At time.Time
	// Attempt joins the entries of one attempt, such as begun and done.
	Attempt string
	// Who tried; empty for nobody in particular. From is the address; empty on the command line.
	Who, From string
	// Action is the name of what was tried, such as release-lock or sign-in.
	Action string
	// Place is the key; zero for what concerns no key.
	Place flow.Place
	// Reason as the person typed it.
	Reason  string
	Outcome Outcome
	// Why is the explanation of the outcome.
	Why flow.Text
	// Before and After are the state of what was changed, worded in its store's own terms.
	Before, After string
}
