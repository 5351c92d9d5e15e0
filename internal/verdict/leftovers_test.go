package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// dayLock declares a lock that outlives the flow's patience.
func dayLock(d *dossier.Dossier) { d.Flow.Lock.TTL = 24 * time.Hour }

// lockOf is a lock of a day that was taken that long ago.
func lockOf(age time.Duration) scene {
	return func(d *dossier.Dossier) { dayLock(d); found(d.Lock, 24*time.Hour-age) }
}

func markerOf(value string) scene {
	return func(d *dossier.Dossier) { found(d.Marker, 20*time.Hour); d.Marker.Value = value }
}

func unackedMessages(n int64) scene {
	return func(d *dossier.Dossier) {
		messages(1, 0, 0)(d)
		d.Broker.Queues[0].Unacked = n
		d.Broker.Queues[0].Role = "work"
	}
}

func owned(worker, attempts string) scene {
	return rowLike(func(r *ledger.Row) { r.Worker, r.Attempts = &worker, &attempts })
}

func TestALockThatAFailedRunLeft(t *testing.T) {
	check(t, map[string]expectation{
		"as old as the failure":          {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), lockOf(old))},
		"older than the failure":         {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), lockOf(3*time.Hour))},
		"within the margin":              {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), lockOf(old-lockMargin))},
		"younger by more":                {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), lockOf(old-lockMargin-time.Second), messages(1, 0, 0))},
		"the failure is a moment ago":    {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, acquireTime), lockOf(acquireTime), messages(1, 0, 0))},
		"a second more than a moment":    {Stuck, flow.LayerRedis, scenes(row(flow.Failed, acquireTime+time.Second), lockOf(acquireTime+time.Second), messages(1, 0, 0))},
		"a marker says more":             {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), lockOf(old), marker(time.Hour))},
		"in processing it says nothing":  {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lockOf(fresh))},
		"the totals are not needed then": {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), lockOf(old), brokerPartial)},
	})
}

func TestALockTakenWhileARunOutlivedItsOwn(t *testing.T) {
	// The run took 100 s and ended 60 s ago; its lock lives 90 s.
	with := func(lockAge time.Duration, more ...scene) []scene {
		return append(scenes(row(flow.Completed, time.Minute), ranFor(100*time.Second), func(d *dossier.Dossier) {
			d.Flow.Lock.TTL = 90 * time.Second
			found(d.Lock, 90*time.Second-lockAge)
		}), more...)
	}
	check(t, map[string]expectation{
		"in the middle":            {MayHaveRunTwice, flow.LayerRedis, with(80 * time.Second)},
		"just after the end":       {Completed, flow.LayerNone, with(61 * time.Second)},
		"at the margin of the end": {Completed, flow.LayerNone, with(time.Minute + lockMargin)},
		"a second before that":     {MayHaveRunTwice, flow.LayerRedis, with(time.Minute + lockMargin + time.Second)},
		"long after the end":       {Completed, flow.LayerNone, with(10 * time.Second)},
		"of another key":           {Completed, flow.LayerNone, with(80*time.Second, lockShared)},
		"within its own TTL":       {Completed, flow.LayerNone, with(80*time.Second, ranFor(89*time.Second))},
		"at the run's beginning":   {Completed, flow.LayerNone, with(89*time.Second, ranFor(90*time.Second), rowLike(func(r *ledger.Row) { r.Age = 0 }))},
	})
}

func TestALockIsASignOfLifeOfTheMomentWhenItWasSet(t *testing.T) {
	check(t, map[string]expectation{
		"as long ago as allowed": {MayHaveRunTwice, flow.LayerRedis, scenes(row(flow.Processing, old), lockOf(5*time.Minute))},
		"a second more":          {Unknown, flow.LayerRedis, scenes(row(flow.Processing, old), lockOf(5*time.Minute+time.Second))},
		"not known":              {Unknown, flow.LayerRedis, scenes(row(flow.Processing, old), lock(time.Hour), lockUndeclared)},
		"more than was declared": {Unknown, flow.LayerRedis, scenes(row(flow.Processing, old), lock(time.Hour))},
		"old, but seen extended": {Running, flow.LayerNone, scenes(row(flow.Processing, old), dayLock, renewed, lock(time.Hour), heldBefore("token", time.Minute, 0))},
		"no time, a young lock":  {Running, flow.LayerNone, scenes(row(flow.Processing, 0), rowLike(ageless), lock(14*time.Second))},
		"no time, an old lock":   {Unknown, flow.LayerMySQL, scenes(row(flow.Processing, 0), rowLike(ageless), lockOf(time.Hour))},
	})
}

func TestPlacesThatWereNotLookedAt(t *testing.T) {
	check(t, map[string]expectation{
		"failed, nothing known to wait":  {Unknown, flow.LayerBroker, scenes(row(flow.Failed, old), brokerPartial)},
		"failed, something waits":        {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), messages(1, 0, 0))},
		"failed, a retry has just begun": {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), brokerPartial, lock(14*time.Second))},
	})
}

func TestWhatAMarkerSays(t *testing.T) {
	words := func(s ...scene) string { return Judge(dossierOf(s...)).Sentence.EN }
	for value, says := range map[string]string{"success": "says done", "1": "says done", "PROCESSING": "a run goes on", `{"state":"processing"}`: "a run goes on"} {
		for _, sentence := range []string{words(row(flow.Failed, old), markerOf(value)), words(markerOf(value))} {
			if !strings.Contains(sentence, says) {
				t.Errorf("marker %q: %s", value, sentence)
			}
		}
	}
	done := Judge(dossierOf(row(flow.Failed, old), markerOf("success"))).Advice
	open := Judge(dossierOf(row(flow.Failed, old), markerOf("processing"))).Advice
	if len(done) != len(open)+1 || !strings.Contains(done[0].EN, "business data") {
		t.Errorf("done: %v, open: %v", done, open)
	}
	check(t, map[string]expectation{
		"a run that may go on":        {Unknown, flow.LayerRedis, scenes(presence, markerOf("processing"), unackedMessages(1))},
		"nothing is being worked on":  {Stuck, flow.LayerRedis, scenes(presence, markerOf("processing"), unackedMessages(0))},
		"the table tells of its runs": {Stuck, flow.LayerRedis, scenes(markerOf("processing"), unackedMessages(1))},
		"the marker says done":        {Stuck, flow.LayerRedis, scenes(presence, markerOf("done"), unackedMessages(1))},
	})
}

func TestTakenUpAndNeverStarted(t *testing.T) {
	check(t, map[string]expectation{
		"owned":                    {Stuck, flow.LayerMySQL, scenes(row(flow.NotStarted, old), owned("host:1", "0"))},
		"tried":                    {Stuck, flow.LayerMySQL, scenes(row(flow.NotStarted, old), owned("", "3"))},
		"neither":                  {NeverSeen, flow.LayerNone, scenes(row(flow.NotStarted, old), owned("", "0"))},
		"not told":                 {NeverSeen, flow.LayerNone, scenes(row(flow.NotStarted, old), owned("", ""))},
		"no longer than allowed":   {NeverSeen, flow.LayerNone, scenes(row(flow.NotStarted, 5*time.Minute), owned("host:1", ""))},
		"a message waits":          {MaybeWaiting, flow.LayerBroker, scenes(row(flow.NotStarted, old), owned("host:1", ""), messages(1, 0, 0))},
		"a lock was just taken":    {Acquiring, flow.LayerNone, scenes(row(flow.NotStarted, old), owned("host:1", ""), lock(14*time.Second))},
		"in processing is no such": {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), owned("host:1", "1"))},
	})
}

func TestALockThatIsGoneEarly(t *testing.T) {
	note := func(ago time.Duration, more ...scene) bool {
		return slices.Contains(noteCodes(Judge(dossierOf(append(scenes(row(flow.Processing, ago), begun(ago)), more...)...))), "lock_gone_early")
	}
	for ago, want := range map[time.Duration]bool{5 * time.Second: true, 12 * time.Second: true, 13 * time.Second: false, time.Minute: false} {
		if got := note(ago); got != want {
			t.Errorf("created %s ago: %v", ago, got)
		}
	}
	if note(5*time.Second, lock(9*time.Second)) || note(5*time.Second, noLock) {
		t.Error("the lock is there, or the flow has none")
	}
}
