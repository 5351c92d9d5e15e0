package verdict

import (
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// eventTolerance is by how much the clocks of two sources may differ before an
// order between their events means anything.
const eventTolerance = 2 * time.Second

// last is the youngest event of the account among the kinds.
func last(a *flow.Account, kinds ...flow.EventKind) (flow.Event, bool) {
	events := a.Of(kinds...)
	if len(events) == 0 {
		return flow.Event{}, false
	}
	return events[len(events)-1], true
}

// sinceEvent is how long ago an event happened, by this process's clock; never
// negative.
func (e evidence) sinceEvent(ev flow.Event) time.Duration { return max(e.At.Sub(ev.At), 0) }

// published is the youngest publication that the tap saw.
func (e evidence) published() (flow.Event, bool) {
	if !seen(e.Tap) {
		return flow.Event{}, false
	}
	return last(e.Tap, flow.Published)
}

// told is the youngest event that any source tells of the key, whether or not
// the source can be read at the moment.
func (e evidence) told() (youngest flow.Event, ok bool) {
	for _, a := range []*flow.Account{e.Tap, e.Trace, e.Trail} {
		if a != nil && len(a.Events) > 0 {
			if ev := a.Events[len(a.Events)-1]; !ok || ev.At.After(youngest.At) {
				youngest, ok = ev, true
			}
		}
	}
	return youngest, ok
}

// givenUp is the dead-lettering of this flow that no publication followed. Of a
// flow with retry queues it cannot be told: messages on their way to the next
// attempt are dead-lettered as well.
func (e evidence) givenUp() (flow.Event, bool) {
	if !seen(e.Tap) || e.Flow.Queue == nil || e.Flow.Queue.DeadLetter == "" || len(e.Flow.Queue.Retry) > 0 {
		return flow.Event{}, false
	}
	ev, ok := last(e.Tap, flow.Published, flow.DeadLettered)
	return ev, ok && ev.Kind == flow.DeadLettered && e.known(broker.RoleDeadLetter) && e.Broker.Total(broker.RoleDeadLetter) > 0
}

// known reports that the totals of every queue in the role were read.
func (e evidence) known(role broker.Role) bool {
	if e.Broker == nil || e.Broker.State == flow.Error {
		return false
	}
	for _, q := range e.Broker.Queues {
		if q.Role == role && !q.Seen() {
			return false
		}
	}
	return true
}

// seen reports an account that can be relied on for what it tells.
func seen(a *flow.Account) bool { return a != nil && a.Seen() }

// untouchedSince reports that consumers report their steps, that nothing of them
// since t can be missing, and that none of them received the key since then.
func (e evidence) untouchedSince(t time.Time) bool {
	if !e.Trail.Covers(t) {
		return false
	}
	for _, r := range e.Trail.Of(flow.Received) {
		if r.At.After(t.Add(-eventTolerance)) {
			return false
		}
	}
	return true
}

// couldHold reports that the work or retry queues of the flow hold messages.
func (e evidence) couldHold() bool {
	return e.Broker != nil && e.Broker.Total(broker.RoleWork)+e.Broker.Total(broker.RoleRetry) > 0
}

// runs are the runs of the key that the trail tells of.
type runs struct {
	begun, done, failed int
	// overlapped: a run began before another one had ended that ended later.
	overlapped bool
}

// runs follows the trail. A run ends with the first end that the same worker
// reports after its beginning; one without an end may have died.
func (e evidence) runs() runs {
	var r runs
	if !seen(e.Trail) {
		return r
	}
	events := e.Trail.Of(flow.RunBegan, flow.RunDone, flow.RunFailed)
	open := map[string]int{} // worker -> how many runs began while its own was open
	for _, ev := range events {
		switch ev.Kind {
		case flow.RunBegan:
			r.begun++
			for worker := range open {
				open[worker]++
			}
			open[ev.Worker] = 0
		case flow.RunDone, flow.RunFailed:
			if ev.Kind == flow.RunDone {
				r.done++
			} else {
				r.failed++
			}
			r.overlapped = r.overlapped || open[ev.Worker] > 0
			delete(open, ev.Worker)
		}
	}
	return r
}

// deliveredUnprotected reports a delivery after the lock of a completed run had
// expired and before the run was over, of which nobody can say that it was
// turned away.
func (e evidence) deliveredUnprotected() bool {
	if _, outlived := e.unprotected(); !outlived || e.row.Created.Time.IsZero() || e.row.LastSign().Time.IsZero() {
		return false
	}
	if seen(e.Trail) && e.Trail.Covers(e.row.Created.Time) {
		return false // the trail tells of every run: see runs
	}
	from, to := e.row.Created.Time.Add(e.Flow.Lock.TTL), e.row.LastSign().Time
	for _, d := range e.Trace.Of(flow.Delivered) {
		if !d.At.Before(from) && !d.At.After(to) {
			return true
		}
	}
	return false
}
