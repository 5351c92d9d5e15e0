package verdict

import (
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// acquireTime is how long a consumer may hold its lock before its record shows.
	acquireTime = 5 * time.Second
	// clockTolerance is how far a stamp may lie in the future without being
	// wrong: columns without fractions round up by half a second.
	clockTolerance = 2 * time.Second
	// lockMargin is by how much a lock must be younger than its record before
	// the difference means anything: columns resolve whole seconds.
	lockMargin = 2 * time.Second
)

// evidence is a dossier with what the rules ask of it.
type evidence struct {
	dossier.Dossier
	// exact are the rows whose bytes are the asked key's; near are the others.
	exact, near []ledger.Row
	// row is the exact row that says most about the key; nil without one.
	row *ledger.Row
}

func newEvidence(d dossier.Dossier) evidence {
	e := evidence{Dossier: d}
	for _, r := range d.Record.Rows {
		if r.Exact {
			e.exact = append(e.exact, r)
		} else {
			e.near = append(e.near, r)
		}
	}
	for _, phase := range []flow.Phase{flow.Completed, flow.Processing, flow.Failed, flow.NotStarted, flow.Unmapped} {
		for i := range e.exact {
			if e.row == nil && e.exact[i].Phase == phase {
				e.row = &e.exact[i]
			}
		}
	}
	return e
}

// count tells how many exact rows are in the phase.
func (e evidence) count(p flow.Phase) int {
	n := 0
	for _, r := range e.exact {
		if r.Phase == p {
			n++
		}
	}
	return n
}

// is reports whether the deciding row is in the phase.
func (e evidence) is(p flow.Phase) bool { return e.row != nil && e.row.Phase == p }

// notBegun: the ledger was read, and no row says that a run ever began.
func (e evidence) notBegun() bool {
	return e.Record.Seen() && (e.row == nil || e.row.Phase == flow.NotStarted)
}

// silent: the record is in processing and has shown no sign of life for longer
// than the flow allows.
func (e evidence) silent() bool {
	return e.is(flow.Processing) && e.row.AgeKnown && e.row.Age > e.Flow.StaleAfter
}

// fresh: the record is in processing and young enough to need no lock as proof.
func (e evidence) fresh() bool {
	return e.is(flow.Processing) && e.row.AgeKnown && e.row.Age <= e.Flow.StaleAfter
}

// failedToRead reports a layer that the flow has and that gave no definite answer.
func failedToRead(r *dossier.RedisEvidence) bool { return r != nil && !r.Seen() }

// there reports a Redis key that exists, whoever owns it.
func there(r *dossier.RedisEvidence) bool { return r != nil && r.State == flow.Found }

// ours reports a Redis key that exists, is a plain string and can be no other key's.
func ours(r *dossier.RedisEvidence) bool { return there(r) && !r.Ambiguous() && !r.Foreign }

// heldFor is how long ago the Redis key was set: the declared TTL minus what is
// left. Not known without a declared TTL, and not when more is left than was declared.
func heldFor(r *dossier.RedisEvidence, shape *flow.RedisKey) (time.Duration, bool) {
	if !there(r) || r.NoTTL || shape.TTL == 0 || r.TTL > shape.TTL {
		return 0, false
	}
	return shape.TTL - r.TTL, true
}

func (e evidence) lockAge() (time.Duration, bool)   { return heldFor(e.Lock, e.Flow.Lock) }
func (e evidence) markerAge() (time.Duration, bool) { return heldFor(e.Marker, e.Flow.Marker) }

// lockHeld: this key's lock is there and will expire.
func (e evidence) lockHeld() bool { return ours(e.Lock) && !e.Lock.NoTTL }

// lockForEver: a lock is there that never expires. Whatever it holds and
// whoever wrote it, SET NX on this key is refused until somebody removes it.
func (e evidence) lockForEver() bool {
	return there(e.Lock) && !e.Lock.Ambiguous() && e.Lock.NoTTL
}

// lockTakenAnew: the lock is younger than the record's last sign of life, though
// a consumer takes it before it writes the record.
func (e evidence) lockTakenAnew() bool {
	age, known := e.lockAge()
	return known && e.lockHeld() && e.is(flow.Processing) && e.row.AgeKnown && age+lockMargin < e.row.Age
}

// lockOutlivedRun: the run has failed, and its lock, no younger than that, was
// not given back.
func (e evidence) lockOutlivedRun() bool {
	age, known := e.lockAge()
	return e.lockHeld() && e.is(flow.Failed) && known && e.row.AgeKnown && e.row.Age > acquireTime && age+lockMargin >= e.row.Age
}

// lockTakenInRun: the lock that is there was taken while a completed run went on
// that had outlived its own.
func (e evidence) lockTakenInRun() bool {
	_, outlived := e.unprotected()
	age, known := e.lockAge()
	return outlived && known && e.lockHeld() && e.row.AgeKnown && age > e.row.Age+lockMargin && age+lockMargin < e.row.Age+e.row.RunTime
}

// markerInProgress: the marker's value is the word for a run that goes on.
func (e evidence) markerInProgress() bool {
	return ours(e.Marker) && strings.Contains(strings.ToLower(e.Marker.Value), "processing")
}

// markerSays words what the marker claims.
func (e evidence) markerSays() flow.Text {
	if e.markerInProgress() {
		return flow.T("the marker says that a run goes on", "标记表示正在执行")
	}
	return flow.T("the marker says done", "标记表示已完成")
}

// claimed: the record says not started, but somebody has taken it up.
func (e evidence) claimed() bool {
	if !e.is(flow.NotStarted) {
		return false
	}
	return e.row.Worker != nil && *e.row.Worker != "" || e.row.Attempts != nil && *e.row.Attempts != "" && *e.row.Attempts != "0"
}

// changedHands: since the record's last sign of life, the lock was seen with
// another holder than now. A retry that takes it anew marks the record.
func (e evidence) changedHands() bool {
	if !e.lockHeld() || !e.is(flow.Processing) || !e.row.AgeKnown {
		return false
	}
	seen, ok := e.Lock.EarlierHolder()
	return ok && e.Lock.ReadAt.Sub(seen)+lockMargin < e.row.Age
}

// brokerEmpty: every queue of the flow is known to hold nothing.
func (e evidence) brokerEmpty() bool { return e.Broker != nil && e.Broker.State == flow.Absent }

// brokerFailed: the flow has queues and they could not be read, or not yet.
func (e evidence) brokerFailed() bool {
	return e.Broker != nil && (e.Broker.State == flow.Error || e.Broker.Pending)
}

// waitingMessages counts the messages that could be this key's.
func (e evidence) waitingMessages() int64 {
	if e.Broker == nil {
		return 0
	}
	return e.Broker.Total(broker.RoleWork) + e.Broker.Total(broker.RoleRetry) + e.Broker.Total(broker.RoleDeadLetter)
}

// olderThanTotals: the event happened long enough ago that the broker's totals,
// which are sampled, must show what came of it.
func (e evidence) olderThanTotals(age time.Duration, known bool) bool {
	return known && e.Broker != nil && age > e.Broker.StatisticsAge
}
