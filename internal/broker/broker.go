// Package broker says what a broker knows of a flow: the totals of its named
// queues and what was not looked at. One folder below it per kind of broker.
//
// It is not a consumer: no message is ever fetched, requeued or reordered, and
// no queue, binding or consumer group is made.
package broker

import (
	"time"

	"idemscope/internal/flow"
)

// Role is what a queue is for in its flow.
type Role string

const (
	RoleWork       Role = "work"
	RoleRetry      Role = "retry"
	RoleDeadLetter Role = "dead_letter"
)

// Word is the role for people.
func (r Role) Word() flow.Text {
	switch r {
	case RoleRetry:
		return flow.T("retry", "重试")
	case RoleDeadLetter:
		return flow.T("dead letter", "死信")
	}
	return flow.T("work", "工作")
}

// NamedQueue is a queue that a flow names, and what for.
type NamedQueue struct {
	Name string
	Role Role
}

// Queue is one named queue as the broker reports it.
type Queue struct {
	// State is found (totals follow), absent (the broker says there is no such
	// queue), unknown (there is one, and its totals are not known) or error. For
	// all but found Reason says why.
	flow.Observation
	Name string
	Role Role
	// Kind is the broker's word: classic, quorum, stream.
	Kind string
	// Ready, Unacked and Consumers are totals, never about one key.
	Ready, Unacked, Consumers int64
	// Other counts messages that the broker holds for the queue in any further
	// state, such as a delayed retry.
	Other int64
	// Redelivered counts deliveries that were not the first, since the queue's
	// statistics began. RedeliveredKnown is false when the broker keeps none.
	Redelivered      int64
	RedeliveredKnown bool
	// DeadLetterExchange: rejected and expired messages of this queue go on to
	// some exchange (by argument or policy), so they may rest in a queue that
	// the flow does not name.
	DeadLetterExchange bool
}

// Messages is how many messages the queue holds, in whatever state.
func (q Queue) Messages() int64 { return q.Ready + q.Unacked + q.Other }

// Evidence is what the broker shows about one key. With totals only, its state
// is Absent when every place a message of the flow could rest is known to be
// empty, else Unknown: totals never find a key.
type Evidence struct {
	flow.Observation
	Queues []Queue
	// StatisticsAge bounds how old the totals may be. A change younger than
	// this may not show yet.
	StatisticsAge time.Duration
}

// Total sums the messages of the queues with the given role.
func (e Evidence) Total(role Role) int64 {
	var n int64
	for _, q := range e.Queues {
		if q.Role == role {
			n += q.Messages()
		}
	}
	return n
}
