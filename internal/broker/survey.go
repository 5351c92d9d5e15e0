package broker

import (
	"time"

	"idemscope/internal/flow"
)

// SetUp is what a broker says about itself and the queues that flows name.
type SetUp struct {
	Version string
	// Tags are those of this user, such as monitoring. Not known when TagsWhy is set.
	Tags    []string
	TagsWhy flow.Text
	Queues  []QueueSetUp
}

// QueueSetUp is how one queue is set up, by its arguments and its policies.
type QueueSetUp struct {
	Name string
	Role Role
	// State is found, absent (the broker says there is no such queue) or error;
	// Reason says why it is not found.
	State  flow.State
	Reason flow.Text
	// Kind is the broker's word: classic, quorum, stream.
	Kind string
	// Durable: it is there again after a restart of the broker. AutoDelete: it
	// goes with its last consumer.
	Durable, AutoDelete bool
	// DeadLetter is where rejected and expired messages go; nil for nowhere.
	DeadLetter *DeadLetter
	// DeliveryLimit is after how many failed deliveries a message is given up; -1
	// when it is not set. Unlimited: it is set to no limit.
	DeliveryLimit int64
	Unlimited     bool
	// Bounded: there is a limit to its length. Overflow is what happens at it;
	// empty for the broker's default, which drops the oldest message.
	Bounded  bool
	Overflow string
	// Expires: its messages have a time to live, MessageTTL.
	Expires    bool
	MessageTTL time.Duration
	// Mirrored: a policy mirrors it as a classic queue.
	Mirrored bool
	// AckTimeout is how long a consumer may hold a message, where queue or policy say so; else 0.
	AckTimeout time.Duration
	// HeadPublished is when the publisher says that it sent the next message; zero
	// when the queue is empty or of a kind that does not tell, and when the publisher does not say.
	HeadPublished time.Time
	// Messages, Consumers and Growth (messages a second) are totals of the
	// broker's statistics. Valid only when Counted.
	Messages, Consumers int64
	Growth              float64
	Counted             bool
}

// DeadLetter is where a queue sends messages that it gives up.
type DeadLetter struct {
	// Exchange is empty for the default one. Key is empty when messages keep their own.
	Exchange, Key string
	// State is found (it leads to a queue), absent (nothing is there, so messages
	// are dropped), or unknown or error. Reason says why it is not found.
	State  flow.State
	Reason flow.Text
}
