// Package dossier gathers what the three layers show of one key, side by side:
// it asks all of them at once, each with its own deadline, so that a look-up
// takes as long as its slowest store and a hanging store costs no more than its
// deadline.
//
// It is not a judge: what the evidence means is for package verdict.
package dossier

import (
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// Dossier is the evidence about one key of one flow.
type Dossier struct {
	Key  flow.Key
	Flow flow.Flow
	// Record is what the flow's ledger shows.
	Record ledger.Found
	// Lock and Marker are nil when the flow has none.
	Lock, Marker *RedisEvidence
	// Broker is nil when the flow names no queue.
	Broker *broker.Evidence
	// Tap, Trace and Trail are what sources of events tell of the key: the tap and
	// the armed trace of the broker, and the steps that consumers report. Each is
	// nil when it is not set up.
	Tap, Trace, Trail *flow.Account
	// Audit is what people tried to change about the key through us; nil when
	// nothing can be changed. It is no evidence for a verdict.
	Audit *flow.Account
	// P99 is the run time that 99 % of the runs of this biz_type stay below, by
	// the consumers' own counters. Zero: they do not count, or not enough yet.
	P99 time.Duration
	// At is when the last answer arrived, by this process's clock; Took is how
	// long all of it took.
	At   time.Time
	Took time.Duration
}

// Pending reports that a source was not waited for: what it shows may change the verdict.
func (d Dossier) Pending() bool {
	pending := d.Record.Pending || d.Broker != nil && d.Broker.Pending
	for _, r := range []*RedisEvidence{d.Lock, d.Marker} {
		pending = pending || r != nil && r.Pending
	}
	for _, a := range []*flow.Account{d.Tap, d.Trace, d.Trail} {
		pending = pending || a != nil && a.Pending
	}
	return pending
}

// MySQLAhead is by how much, at least, the database's clock is ahead of ours;
// 0 when it did not tell its time.
func (d Dossier) MySQLAhead() time.Duration {
	if d.Record.DBNow.IsZero() {
		return 0
	}
	return d.Record.ClockAhead(d.Record.DBNow)
}

// RedisAhead is the same for the Redis of the lock, else of the marker.
func (d Dossier) RedisAhead() time.Duration {
	for _, r := range []*RedisEvidence{d.Lock, d.Marker} {
		if r != nil && r.Server != nil && !r.Server.Now.IsZero() {
			return r.ClockAhead(r.Server.Now)
		}
	}
	return 0
}

// RedisEvidence is one Redis key and whose it can be.
type RedisEvidence struct {
	lockstore.Entry
	// Owners are other keys whose lock or marker is the very same Redis key. A
	// found entry is then evidence for none of them; an absent one still means
	// that nobody holds it.
	Owners []flow.Place
	// OwnersOpen: more owners may exist than can be listed.
	OwnersOpen bool
	// ValueHidden: the value was taken out, because whoever reads on may not see it.
	// Gathering itself takes nothing out.
	ValueHidden bool
}

// Ambiguous reports that the entry, if found, may belong to another key.
func (r RedisEvidence) Ambiguous() bool { return len(r.Owners) > 0 || r.OwnersOpen }
