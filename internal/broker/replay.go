package broker

import (
	"context"
	"time"

	"idemscope/internal/flow"
)

// DeadLetterQueue is a dead-letter queue as far as a replay has to know it.
type DeadLetterQueue struct {
	// State is found, or error; Reason then says why.
	flow.Observation
	Name string
	Kind string
	// Messages and Consumers are totals. Valid only when Counted.
	Messages, Consumers int64
	Counted             bool
	// Refused is why no message may be replayed from it; its Code is empty when
	// one may. Codes are stable: stream_queue, delivery_limit, shared_queue,
	// unknown_queue_kind.
	Refused Unfit
	// Warnings are what a search in it does to the other messages.
	Warnings []flow.Text
}

// Unfit is why a queue is not fit for a replay.
type Unfit struct {
	Code string
	Text flow.Text
}

// ReplayOrder is which message is to be replayed.
type ReplayOrder struct {
	Flow flow.Flow
	Key  flow.Key
	// MessageID: only the message with this id; empty for the first of the key.
	MessageID string
	// By is who ordered it; it goes with the message.
	By string
	// Announce is called when the message is found, before anything is published.
	// An error stops the replay, and the message stays where it is. Mandatory.
	Announce func(ctx context.Context, m DeadMessage) error
}

// DeadMessage is a dead-lettered message.
type DeadMessage struct {
	// ReplayID names this very dead letter: the same in each attempt to replay it.
	ReplayID  string
	MessageID string
	// Queue is where it lies, Target where it is to go.
	Queue, Target string
	// Reason and Died say why and when it was given up; empty when the message does not tell.
	Reason string
	Died   time.Time
	// Bytes is the size of its body.
	Bytes int
}

// ReplayEnd is what a replay came to.
type ReplayEnd string

// The ends. Only Moved has moved the message; after InBoth and Unconfirmed a copy
// is, or may be, in the target while the dead letter is still there.
const (
	Moved       ReplayEnd = "moved"
	NotFound    ReplayEnd = "not_found"
	Ambiguous   ReplayEnd = "message_ambiguous"
	Origin      ReplayEnd = "origin_unknown"
	Stopped     ReplayEnd = "stopped"
	Unroutable  ReplayEnd = "unroutable"
	Rejected    ReplayEnd = "rejected"
	Unconfirmed ReplayEnd = "unconfirmed"
	InBoth      ReplayEnd = "in_both"
)

// ReplayReport is what a replay did.
type ReplayReport struct {
	End ReplayEnd
	// Message is empty when none was found.
	Message DeadMessage
	// Why adds what the end leaves open; it may be empty.
	Why flow.Text
	// Looked is how many messages were taken and given back, of Total.
	Looked, Total int
}
