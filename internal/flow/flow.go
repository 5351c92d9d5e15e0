package flow

import "time"

// Placeholder names of keys in templates.
const (
	PlaceBizType = "biz_type"
	PlaceBizID   = "biz_id"
)

// Flow is the path of one or more biz_types: queue -> lock -> record.
type Flow struct {
	Name string
	// BizTypes are the types that the flow names. Empty when Rest is set.
	BizTypes []string
	// Rest: the flow takes every biz_type of its ledger that no other flow names.
	Rest bool
	// Ledger is the name of the ledger that keeps the records. Mandatory.
	Ledger string
	// Lock and Marker are nil when the flow has none.
	Lock   *RedisKey
	Marker *RedisKey
	// Queue is nil when the broker is not configured for this flow.
	Queue *Queue
	// StaleAfter is how long a processing record may be silent.
	StaleAfter time.Duration
	// OnProcessing is what a consumer does that meets a processing record.
	OnProcessing OnProcessing
	// Rerun says whether an operator may let a stale record run again.
	Rerun Rerun
	// KeyRule is how biz_type and biz_id are made, in the team's own words. It may be empty.
	KeyRule string
}

// RedisKey is the shape of a flow's lock or marker.
type RedisKey struct {
	// Redis names the configured server.
	Redis string
	// Prefix is what the configured server puts before every key; it may be empty.
	Prefix string
	// Template has {biz_id} and mostly {biz_type}.
	Template Template
	// TTL is what the consumer sets; 0 means not declared.
	TTL time.Duration
	// Renewed: a watchdog of the consumer extends the key while it works.
	Renewed bool
}

// Render returns the whole Redis key of k.
func (r RedisKey) Render(k Key) string {
	return r.Prefix + r.Template.Render(map[string]string{PlaceBizType: k.BizType, PlaceBizID: k.BizID})
}

// Queue is where a flow's messages wait.
type Queue struct {
	// Broker names the configured broker.
	Broker string
	// Name is the queue that the consumer reads.
	Name string
	// Retry are the queues in which messages wait for their next attempt.
	Retry []string
	// DeadLetter is the queue of messages given up; empty when there is none.
	DeadLetter string
	// IDField is the field of a JSON message body that holds the biz_id; empty when not declared.
	IDField string
	// IDProperty is the message property that holds the biz_id instead: PropertyMessageID, or empty.
	// IDField is empty then.
	IDProperty string
	// TypeField is the same for the biz_type; empty when the flow's queue carries one type.
	TypeField string
	// AckTimeout is how long the broker waits for an ack before it delivers again; 0 means not declared.
	AckTimeout time.Duration
}

// PropertyMessageID is the property that a publisher gives a message as its id.
const PropertyMessageID = "message_id"

// NamesID reports whether the flow says where its messages hold the biz_id.
func (q Queue) NamesID() bool { return q.IDField != "" || q.IDProperty != "" }

// All lists the queues of the flow in the order work, retry, dead letter.
func (q Queue) All() []string {
	names := append([]string{q.Name}, q.Retry...)
	if q.DeadLetter != "" {
		names = append(names, q.DeadLetter)
	}
	return names
}

// OnProcessing is what a consumer does that meets a record in processing.
type OnProcessing string

const (
	// Refuse: it acks the message, which is lost if the first run died.
	Refuse OnProcessing = "refuse"
	// Retry: it gives the message back, so it comes again.
	Retry OnProcessing = "retry"
	// Resume: it takes the record over and runs.
	Resume OnProcessing = "resume"
)

// Rerun says whether an operator may let a stale record run again.
type Rerun string

const (
	// RerunNever: an outside effect may have happened that must not happen twice.
	RerunNever Rerun = "never"
	// RerunManual: an operator may, one key at a time.
	RerunManual Rerun = "manual"
)
