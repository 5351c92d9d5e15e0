package verdict

import (
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// ev is an event that long ago, reported by worker a.
func ev(kind flow.EventKind, ago time.Duration) flow.Event {
	return flow.Event{Kind: kind, At: now.Add(-ago), Worker: "a"}
}

// by is the same, reported by another worker.
func by(worker string, e flow.Event) flow.Event { e.Worker = worker; return e }

// account covers the last day.
func account(events []flow.Event) *flow.Account {
	a := &flow.Account{Events: events, Since: now.Add(-24 * time.Hour)}
	if a.State = flow.Found; len(events) == 0 {
		a.State = flow.Absent
	}
	return a
}

func tap(events ...flow.Event) scene   { return func(d *dossier.Dossier) { d.Tap = account(events) } }
func trace(events ...flow.Event) scene { return func(d *dossier.Dossier) { d.Trace = account(events) } }
func trail(events ...flow.Event) scene { return func(d *dossier.Dossier) { d.Trail = account(events) } }

func tapError(d *dossier.Dossier)   { failing(&d.Tap.Observation) }
func trailError(d *dossier.Dossier) { failing(&d.Trail.Observation) }
func trailYoung(d *dossier.Dossier) { d.Trail.Since = now.Add(-time.Second) }
func deadQueue(d *dossier.Dossier)  { d.Flow.Queue.DeadLetter = "order.paid.dlq" }
func retryQueue(d *dossier.Dossier) { d.Flow.Queue.Retry = []string{"order.paid.retry"} }

func archive(rows ...ledger.Row) scene {
	return func(d *dossier.Dossier) {
		d.Record.Archive = &ledger.Archive{Rows: rows, Observation: flow.Observation{State: flow.Found}}
	}
}

func archiveError(d *dossier.Dossier) {
	d.Record.Archive = &ledger.Archive{}
	failing(&d.Record.Archive.Observation)
}

var archivedRow = ledger.Row{ID: "3", Exact: true, Phase: flow.Completed}

func redis(change func(*lockstore.ServerFacts)) scene {
	return func(d *dossier.Dossier) {
		d.Lock.Server = &lockstore.ServerFacts{RunID: "r1", Role: "master", Uptime: 30 * 24 * time.Hour, NoneEvictedFor: 30 * 24 * time.Hour}
		change(d.Lock.Server)
	}
}

func lagging(by time.Duration) scene {
	return func(d *dossier.Dossier) { d.Record.Lag, d.Record.LagKnown = by, true }
}

func TestDeadLettered(t *testing.T) {
	dead := tap(ev(flow.Published, time.Hour), ev(flow.DeadLettered, 50*time.Minute))
	check(t, map[string]expectation{
		"failed and given up":               {DeadLettered, flow.LayerBroker, scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, dead)},
		"no record and given up":            {DeadLettered, flow.LayerBroker, scenes(messages(0, 0, 1), deadQueue, dead)},
		"it may be on its way to a retry":   {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, retryQueue, dead)},
		"published again since":             {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, tap(ev(flow.DeadLettered, time.Hour), ev(flow.Published, time.Minute)))},
		"the dead letters are empty":        {LostSuspected, flow.LayerBroker, scenes(row(flow.Failed, old), deadQueue, dead)},
		"the tap cannot be read":            {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, dead, tapError)},
		"the flow names no such queue":      {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), messages(0, 0, 1), dead)},
		"completed":                         {Completed, flow.LayerNone, scenes(row(flow.Completed, old), messages(0, 0, 1), deadQueue, dead)},
		"stuck says more":                   {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), messages(0, 0, 1), deadQueue, dead)},
		"somebody is at work":               {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), messages(0, 0, 1), deadQueue, dead)},
		"failed, and a retry holds a lock":  {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), lock(14*time.Second), messages(0, 0, 1), deadQueue, dead)},
		"a marker blocks: that comes first": {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), marker(time.Hour), messages(0, 0, 1), deadQueue, dead)},
	})
}

func TestRetryScheduled(t *testing.T) {
	back := trail(ev(flow.Received, 30*time.Second), ev(flow.RunFailed, 29*time.Second), ev(flow.GivenBack, 28*time.Second))
	check(t, map[string]expectation{
		"given back, the retry queue holds messages": {RetryScheduled, flow.LayerNone, scenes(row(flow.Failed, 29*time.Second), messages(0, 1, 0), back)},
		"given back, the work queue holds messages":  {RetryScheduled, flow.LayerNone, scenes(row(flow.Failed, 29*time.Second), messages(1, 0, 0), back)},
		"given back, but no queue holds anything":    {LostSuspected, flow.LayerBroker, scenes(row(flow.Failed, 29*time.Second), back)},
		"only dead letters":                          {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, 29*time.Second), messages(0, 0, 1), back)},
		"received again":                             {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, 29*time.Second), messages(0, 1, 0), trail(ev(flow.GivenBack, 28*time.Second), ev(flow.Received, time.Second)))},
		"acked":                                      {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, 29*time.Second), messages(0, 1, 0), trail(ev(flow.GivenBack, 28*time.Second), ev(flow.Acked, 20*time.Second)))},
		"the trail cannot be read":                   {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, 29*time.Second), messages(0, 1, 0), back, trailError)},
		"the trail begins later":                     {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, 29*time.Second), messages(0, 1, 0), back, trailYoung)},
	})
}

func TestWaitingAndLostUnrecorded(t *testing.T) {
	sent := tap(ev(flow.Published, time.Hour))
	check(t, map[string]expectation{
		"published, never received":                {Waiting, flow.LayerNone, scenes(messages(2, 0, 0), sent, trail())},
		"published, consumers do not report":       {MaybeWaiting, flow.LayerBroker, scenes(messages(2, 0, 0), sent)},
		"published, trail not read":                {MaybeWaiting, flow.LayerBroker, scenes(messages(2, 0, 0), sent, trail(), trailError)},
		"published before the trail begins":        {MaybeWaiting, flow.LayerBroker, scenes(messages(2, 0, 0), sent, trail(), trailYoung)},
		"published and received":                   {MaybeWaiting, flow.LayerBroker, scenes(messages(2, 0, 0), sent, trail(ev(flow.Received, time.Minute)))},
		"only dead letters wait":                   {MaybeWaiting, flow.LayerBroker, scenes(messages(0, 0, 2), sent, trail())},
		"published, nothing anywhere":              {LostSuspected, flow.LayerBroker, scenes(sent)},
		"published and received, nothing anywhere": {LostSuspected, flow.LayerBroker, scenes(sent, trail(ev(flow.Received, time.Minute)))},
		"published a moment ago":                   {Unknown, flow.LayerBroker, scenes(tap(ev(flow.Published, 3*time.Second)))},
		"published, queues not read":               {Unknown, flow.LayerBroker, scenes(sent, brokerError)},
		"received and acked, nothing anywhere":     {LostSuspected, flow.LayerBroker, scenes(trail(ev(flow.Received, time.Minute), ev(flow.Acked, time.Minute)))},
		"delivered, nothing anywhere":              {LostSuspected, flow.LayerBroker, scenes(trace(ev(flow.Delivered, time.Minute)))},
		"reported done, and no record":             {LostSuspected, flow.LayerMySQL, scenes(trail(ev(flow.RunBegan, time.Minute), ev(flow.RunDone, time.Minute)))},
		"reported done a moment ago":               {Unknown, flow.LayerBroker, scenes(trail(ev(flow.RunBegan, 2*time.Second), ev(flow.RunDone, time.Second)))},
		"received, and no queue is known":          {Unknown, flow.LayerBroker, scenes(noBroker, trail(ev(flow.Received, time.Minute)))},
		"told by a tap that is down now":           {LostSuspected, flow.LayerBroker, scenes(sent, tapError)},
		"the tap saw nothing":                      {NeverSeen, flow.LayerNone, scenes(tap())},
		"published, lock just taken":               {Acquiring, flow.LayerNone, scenes(sent, lock(14*time.Second))},
	})
}

func TestWaitingWithoutConsumersIsAWarning(t *testing.T) {
	v := Judge(dossierOf(messages(2, 0, 0), tap(ev(flow.Published, time.Hour)), trail(), func(d *dossier.Dossier) {
		for i := range d.Broker.Queues {
			d.Broker.Queues[i].Consumers = 0
		}
	}))
	if v.Code != Waiting || v.Severity != Warning || v.Layer != flow.LayerBroker || len(v.Advice) == 0 {
		t.Errorf("%s %s %s %v", v.Code, v.Severity, v.Layer, v.Advice)
	}
}

func TestRunsThatConsumersReport(t *testing.T) {
	once := []flow.Event{ev(flow.Received, 60*time.Second), ev(flow.RunBegan, 59*time.Second), ev(flow.RunDone, 50*time.Second)}
	later := []flow.Event{ev(flow.RunBegan, 40*time.Second), ev(flow.RunDone, 30*time.Second)}
	overlap := []flow.Event{ev(flow.RunBegan, 59*time.Second), by("b", ev(flow.RunBegan, 55*time.Second)), ev(flow.RunDone, 50*time.Second), by("b", ev(flow.RunDone, 45*time.Second))}
	crash := []flow.Event{ev(flow.RunBegan, 59*time.Second), by("b", ev(flow.RunBegan, 40*time.Second)), by("b", ev(flow.RunDone, 30*time.Second))}
	retry := []flow.Event{ev(flow.RunBegan, 59*time.Second), ev(flow.RunFailed, 50*time.Second), by("b", ev(flow.RunBegan, 40*time.Second)), by("b", ev(flow.RunDone, 30*time.Second))}
	done := row(flow.Completed, 30*time.Second)
	check(t, map[string]expectation{
		"once":                             {Completed, flow.LayerNone, scenes(done, trail(once...))},
		"twice, one after the other":       {RanTwice, flow.LayerMySQL, scenes(done, trail(append(once, later...)...))},
		"twice at once":                    {RanTwice, flow.LayerRedis, scenes(done, trail(overlap...))},
		"twice, even if nothing is read":   {RanTwice, flow.LayerRedis, scenes(recordError, trail(overlap...))},
		"two began, one ended after":       {MayHaveRunTwice, flow.LayerRedis, scenes(done, trail(overlap[:3]...))},
		"the first one died":               {Completed, flow.LayerNone, scenes(done, trail(crash...))},
		"the first one failed":             {Completed, flow.LayerNone, scenes(done, trail(retry...))},
		"twice, but the trail is not read": {Completed, flow.LayerNone, scenes(done, trail(overlap...), trailError)},
	})
}

func TestADeliveryAfterTheLockHadExpired(t *testing.T) {
	// The run began 100 s ago, its lock lived 15 s, it ended 30 s ago.
	ran := scenes(row(flow.Completed, 30*time.Second), ranFor(70*time.Second), rowLike(func(r *ledger.Row) {
		r.Created.Time, r.Updated.Time = now.Add(-100*time.Second), now.Add(-30*time.Second)
	}))
	with := func(more ...scene) []scene { return append(append([]scene(nil), ran...), more...) }
	check(t, map[string]expectation{
		"delivered again meanwhile":          {MayHaveRunTwice, flow.LayerRedis, with(trace(ev(flow.Delivered, 100*time.Second), ev(flow.Delivered, 60*time.Second)))},
		"as the lock expires":                {MayHaveRunTwice, flow.LayerRedis, with(trace(ev(flow.Delivered, 85*time.Second)))},
		"as the run ends":                    {MayHaveRunTwice, flow.LayerRedis, with(trace(ev(flow.Delivered, 30*time.Second)))},
		"delivered while the lock held":      {Completed, flow.LayerNone, with(trace(ev(flow.Delivered, 100*time.Second), ev(flow.Delivered, 90*time.Second)))},
		"delivered after the run":            {Completed, flow.LayerNone, with(trace(ev(flow.Delivered, 10*time.Second)))},
		"the trail says it was turned away":  {Completed, flow.LayerNone, with(trace(ev(flow.Delivered, 60*time.Second)), trail(ev(flow.RunBegan, 99*time.Second), ev(flow.RunDone, 30*time.Second)))},
		"the trail begins in between":        {MayHaveRunTwice, flow.LayerRedis, with(trace(ev(flow.Delivered, 60*time.Second)), trail(), trailYoung)},
		"the run stayed within its lock":     {Completed, flow.LayerNone, with(ranFor(10*time.Second), trace(ev(flow.Delivered, 60*time.Second)))},
		"nothing was traced":                 {Completed, flow.LayerNone, with(trace())},
		"the record holds no times to match": {Completed, flow.LayerNone, scenes(row(flow.Completed, 30*time.Second), ranFor(70*time.Second), rowLike(func(r *ledger.Row) { r.Created.Time = time.Time{} }), trace(ev(flow.Delivered, 60*time.Second)))},
	})
}

func TestArchived(t *testing.T) {
	same := func(r *ledger.Row) { r.ID = archivedRow.ID }
	check(t, map[string]expectation{
		"moved by the cleanup":               {Archived, flow.LayerNone, scenes(archive(archivedRow))},
		"its marker lives on":                {Archived, flow.LayerNone, scenes(archive(archivedRow), marker(time.Hour))},
		"even with the broker down":          {Archived, flow.LayerNone, scenes(archive(archivedRow), brokerError)},
		"its lock is held anew":              {MayHaveRunTwice, flow.LayerMySQL, scenes(archive(archivedRow), lock(14*time.Second))},
		"completed once more":                {RanTwice, flow.LayerMySQL, scenes(row(flow.Completed, old), archive(archivedRow))},
		"copied, not deleted yet":            {Completed, flow.LayerNone, scenes(row(flow.Completed, old), rowLike(same), archive(archivedRow))},
		"an archived failure is no run":      {Completed, flow.LayerNone, scenes(row(flow.Completed, old), archive(ledger.Row{ID: "3", Phase: flow.Failed}))},
		"the archive cannot be read":         {Unknown, flow.LayerMySQL, scenes(archiveError)},
		"not needed for a record":            {Completed, flow.LayerNone, scenes(row(flow.Completed, old), archiveError)},
		"the ledger itself cannot be read":   {Unknown, flow.LayerMySQL, scenes(archive(archivedRow), recordError)},
		"another id's row answers":           {KeyAmbiguous, flow.LayerMySQL, scenes(row(flow.Completed, old), rowLike(near), archive(archivedRow))},
		"whether its lock is held is needed": {Unknown, flow.LayerRedis, scenes(archive(archivedRow), lockError)},
	})
}

func TestARedisThatForgetsIsNoWitness(t *testing.T) {
	silent := row(flow.Processing, 10*time.Minute)
	check(t, map[string]expectation{
		"started after the run began": {Unknown, flow.LayerRedis, scenes(silent, renewed, redis(func(s *lockstore.ServerFacts) { s.Uptime = time.Minute }))},
		"started after it, but it persists": {Stuck, flow.LayerMySQL, scenes(silent, renewed, redis(func(s *lockstore.ServerFacts) {
			s.Uptime, s.NoneEvictedFor, s.Persistent, s.PersistentKnown = time.Minute, time.Minute, true, true
		}))},
		"keys were evicted since":       {Unknown, flow.LayerRedis, scenes(silent, renewed, redis(func(s *lockstore.ServerFacts) { s.Evicted, s.NoneEvictedFor = 9, time.Minute }))},
		"keys were evicted before":      {Stuck, flow.LayerMySQL, scenes(silent, renewed, redis(func(s *lockstore.ServerFacts) { s.Evicted, s.NoneEvictedFor = 9, time.Hour }))},
		"the lock had expired by then":  {Stuck, flow.LayerMySQL, scenes(silent, redis(func(s *lockstore.ServerFacts) { s.Uptime = time.Minute }))},
		"its TTL is not declared":       {Unknown, flow.LayerRedis, scenes(silent, lockUndeclared, redis(func(s *lockstore.ServerFacts) { s.Uptime = time.Minute }))},
		"nothing is known of it":        {Stuck, flow.LayerMySQL, scenes(silent, renewed)},
		"a fresh record needs no lock":  {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), renewed, redis(func(s *lockstore.ServerFacts) { s.Uptime = time.Second }))},
		"another server answers now":    {Unknown, flow.LayerRedis, scenes(silent, renewed, redis(func(*lockstore.ServerFacts) {}), seenBefore("r0", time.Minute))},
		"the same server answers":       {Stuck, flow.LayerMySQL, scenes(silent, renewed, redis(func(*lockstore.ServerFacts) {}), seenBefore("r1", time.Minute))},
		"another, but it had time left": {Stuck, flow.LayerMySQL, scenes(silent, renewed, redis(func(*lockstore.ServerFacts) {}), seenBefore("r0", -time.Minute))},
	})
}

// seenBefore: the lock was seen before on a server, to live until left from now.
func seenBefore(run string, left time.Duration) scene {
	return func(d *dossier.Dossier) {
		d.Lock.ReadAt = now
		d.Lock.Before = &lockstore.Sighting{At: now.Add(-30 * time.Second), Found: true, RunID: run, Expires: now.Add(left)}
	}
}

func TestAReplicaThatIsNotBehindIsBelieved(t *testing.T) {
	check(t, map[string]expectation{
		"silent, no lag":      {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), replica, lagging(0))},
		"silent, a second":    {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), replica, lagging(time.Second))},
		"silent, two seconds": {Unknown, flow.LayerMySQL, scenes(row(flow.Processing, old), replica, lagging(2*time.Second))},
		"failed, no lag":      {LostSuspected, flow.LayerBroker, scenes(row(flow.Failed, old), replica, lagging(0))},
	})
}

// heldBefore: an earlier look saw the lock with that value, that long ago.
func heldBefore(value string, ago, left time.Duration) scene {
	return func(d *dossier.Dossier) {
		d.Lock.ReadAt = now
		d.Lock.Before = &lockstore.Sighting{At: now.Add(-ago), Found: true, Value: value, Expires: now.Add(left)}
	}
}

func TestALockThatChangedHands(t *testing.T) {
	check(t, map[string]expectation{
		"while the record was in processing": {MayHaveRunTwice, flow.LayerRedis, scenes(row(flow.Processing, fresh), lock(13*time.Second), renewed, heldBefore("other", 20*time.Second, 0))},
		"the record was marked since":        {Running, flow.LayerNone, scenes(row(flow.Processing, 5*time.Second), lock(13*time.Second), renewed, heldBefore("other", 20*time.Second, 0))},
		"the same holder":                    {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lock(13*time.Second), renewed, heldBefore("token", 20*time.Second, 0))},
		"of a record that completed":         {Completed, flow.LayerNone, scenes(row(flow.Completed, fresh), lock(13*time.Second), heldBefore("other", 20*time.Second, 0))},
		"of a lock that another key may own": {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lock(13*time.Second), lockShared, heldBefore("other", 20*time.Second, 0))},
	})
}
