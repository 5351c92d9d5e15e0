package flow

import "time"

// EventKind names what happened to a key. Kinds are stable: they are API values.
type EventKind string

// What a broker's tap or trace tells.
const (
	// Published: a message of the key reached an exchange.
	Published EventKind = "published"
	// Delivered: the broker handed a message of the key to a consumer.
	Delivered EventKind = "delivered"
	// DeadLettered: the broker gave up a message of the key, to a dead-letter exchange.
	DeadLettered EventKind = "dead_lettered"
)

// What instrumented consumers report: the steps of one delivery.
const (
	Received      EventKind = "received"
	StatusChecked EventKind = "status"
	LockTried     EventKind = "lock"
	RecordTried   EventKind = "insert"
	RunBegan      EventKind = "run"
	RunDone       EventKind = "done"
	RunFailed     EventKind = "failed"
	Unlocked      EventKind = "unlock"
	Acked         EventKind = "ack"
	GivenBack     EventKind = "nack"
)

// What stores that show states imply.
const (
	LockTaken       EventKind = "lock_taken"
	LockExpires     EventKind = "lock_expires"
	MarkerSet       EventKind = "marker_set"
	MarkerExpires   EventKind = "marker_expires"
	RecordCreated   EventKind = "record_created"
	RecordUpdated   EventKind = "record_updated"
	RecordCompleted EventKind = "record_completed"
	RecordFailed    EventKind = "record_failed"
	RecordArchived  EventKind = "record_archived"
)

// Acted: a person tried to change something through us. The event's Place is the
// name of the action, its Worker who did it.
const Acted EventKind = "action"

// Certainty says how an event came to be known.
type Certainty string

const (
	// Observed: the store itself says so.
	Observed Certainty = "observed"
	// Reported: a consumer or publisher says so, by its own clock.
	Reported Certainty = "reported"
	// Computed: it follows from what is configured, such as a TTL; nobody saw it.
	Computed Certainty = "computed"
)

// Word is the certainty for people.
func (c Certainty) Word() Text {
	switch c {
	case Observed:
		return T("observed", "观察到")
	case Reported:
		return T("reported", "上报")
	}
	return T("computed", "推算")
}

// Event is one thing that happened to a key, by the account of one source.
type Event struct {
	Kind EventKind
	// At is when, by the clock of the source. Sources that have no time of their
	// own are stamped on arrival here.
	At time.Time
	// Arrived: At is when the news reached us, which may be later than when it happened.
	Arrived   bool
	Layer     Layer
	Source    string
	Certainty Certainty
	// Place is the exchange, queue or table, in the source's own words; may be empty.
	Place string
	// Outcome is the source's own word for how it ended, such as the reason of a
	// dead letter or "refused"; may be empty.
	Outcome string
	// Worker is who did it: host:pid, or a connection; may be empty.
	Worker string
	// MessageID is the message's own id; may be empty.
	MessageID string
	// Redelivered: the broker says that it had delivered the message before. False proves nothing.
	Redelivered bool
}

// Account is what one source of events tells of one key. Its state is Found with
// events; Absent when the source was followed without a gap since Since and
// tells of none; Unknown when a part is not covered; Error when it cannot be read.
type Account struct {
	Observation
	// Events in the order of their times; at most as many as the source keeps.
	Events []Event
	// Cut: older events of this key were dropped to bound memory.
	Cut bool
	// Since is from when on everything about this key is covered. Zero: nothing is.
	Since time.Time
}

// Covers reports that nothing of the source after t can have been missed.
func (a *Account) Covers(t time.Time) bool {
	return a != nil && a.Seen() && !a.Since.IsZero() && !a.Since.After(t)
}

// Of lists the events of the given kinds, in the order of their times.
func (a *Account) Of(kinds ...EventKind) []Event {
	var of []Event
	if a == nil {
		return nil
	}
	for _, e := range a.Events {
		for _, k := range kinds {
			if e.Kind == k {
				of = append(of, e)
			}
		}
	}
	return of
}
