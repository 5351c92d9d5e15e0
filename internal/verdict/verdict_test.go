package verdict

import (
	"testing"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// now is when every dossier of these tests was gathered.
var now = time.Date(2026, 1, 15, 2, 0, 0, 0, time.UTC)

// scene builds a dossier of one key: nothing anywhere, unless changed.
type scene func(*dossier.Dossier)

func dossierOf(changes ...scene) dossier.Dossier {
	d := dossier.Dossier{
		Key: flow.Key{BizType: "order_paid", BizID: "ORD-1"},
		Flow: flow.Flow{
			Name: "payments", StaleAfter: 5 * time.Minute, OnProcessing: flow.Refuse, Rerun: flow.RerunManual,
			Lock: &flow.RedisKey{TTL: 15 * time.Second}, Marker: &flow.RedisKey{TTL: 24 * time.Hour}, Queue: &flow.Queue{Name: "order.paid"},
		},
		Record: ledger.Found{Observation: flow.Observation{State: flow.Absent}},
		Lock:   &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Absent}}},
		Marker: &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Absent}}},
		Broker: &broker.Evidence{Observation: flow.Observation{State: flow.Absent}, StatisticsAge: 10 * time.Second},
		At:     now,
	}
	for _, change := range changes {
		change(&d)
	}
	return d
}

// row adds an exact row in the phase whose last sign of life is that old.
func row(p flow.Phase, age time.Duration) scene {
	return func(d *dossier.Dossier) {
		d.Record.State = flow.Found
		stamp := ledger.Stamp{State: ledger.StampOK, Text: "2026-01-01 00:00:00", Time: time.Unix(1, 0)}
		d.Record.Rows = append(d.Record.Rows, ledger.Row{
			Table: "shop.idempotent_record", ID: "7", BizType: "order_paid", BizID: "ORD-1", Exact: true, Status: "?", Phase: p,
			Created: stamp, Updated: stamp, Age: age, AgeKnown: true,
		})
	}
}

// rowLike changes the row added last.
func rowLike(change func(*ledger.Row)) scene {
	return func(d *dossier.Dossier) { change(&d.Record.Rows[len(d.Record.Rows)-1]) }
}

func found(r *dossier.RedisEvidence, left time.Duration) {
	r.State, r.Type, r.Value, r.TTL, r.NoTTL = flow.Found, "string", "token", left, left == 0
}

// lock and marker set the Redis key with that much TTL left; zero means none.
func lock(left time.Duration) scene   { return func(d *dossier.Dossier) { found(d.Lock, left) } }
func marker(left time.Duration) scene { return func(d *dossier.Dossier) { found(d.Marker, left) } }

// messages puts that many into work, retry and dead-letter queue.
func messages(work, retry, dead int64) scene {
	return func(d *dossier.Dossier) {
		d.Broker.State = flow.Unknown
		for role, n := range map[broker.Role]int64{broker.RoleWork: work, broker.RoleRetry: retry, broker.RoleDeadLetter: dead} {
			d.Broker.Queues = append(d.Broker.Queues, broker.Queue{Observation: flow.Observation{State: flow.Found}, Name: "q", Role: role, Ready: n, Consumers: 1})
		}
	}
}

func failing(o *flow.Observation) {
	o.State, o.Reason = flow.Error, flow.T("no answer within 1 s", "1 秒内没有应答")
}

func recordError(d *dossier.Dossier)    { failing(&d.Record.Observation) }
func recordPartial(d *dossier.Dossier)  { d.Record.State = flow.Unknown }
func lockError(d *dossier.Dossier)      { failing(&d.Lock.Observation) }
func markerError(d *dossier.Dossier)    { failing(&d.Marker.Observation) }
func brokerError(d *dossier.Dossier)    { failing(&d.Broker.Observation) }
func brokerPartial(d *dossier.Dossier)  { d.Broker.State = flow.Unknown }
func noLock(d *dossier.Dossier)         { d.Lock, d.Flow.Lock = nil, nil }
func noMarker(d *dossier.Dossier)       { d.Marker, d.Flow.Marker = nil, nil }
func noBroker(d *dossier.Dossier)       { d.Broker, d.Flow.Queue = nil, nil }
func renewed(d *dossier.Dossier)        { d.Flow.Lock.Renewed = true }
func presence(d *dossier.Dossier)       { d.Record.ByPresence = true }
func lockShared(d *dossier.Dossier)     { d.Lock.Owners = []flow.Place{{Flow: "other"}} }
func markerShared(d *dossier.Dossier)   { d.Marker.OwnersOpen = true }
func lockForeign(d *dossier.Dossier)    { d.Lock.Foreign, d.Lock.Type = true, "hash" }
func lockUndeclared(d *dossier.Dossier) { d.Flow.Lock.TTL = 0 }
func resume(d *dossier.Dossier)         { d.Flow.OnProcessing = flow.Resume }
func replica(d *dossier.Dossier)        { d.Record.Replica = true }
func near(r *ledger.Row)                { r.Exact, r.BizID = false, "ord-1" }
func ageless(r *ledger.Row)             { r.AgeKnown, r.Updated, r.Created = false, ledger.Stamp{}, ledger.Stamp{} }
func zeroDate(r *ledger.Row)            { r.AgeKnown, r.Updated.State = false, ledger.StampZero }
func ambiguous(r *ledger.Row)           { r.Updated.State = ledger.StampAmbiguous }
func noStatus(r *ledger.Row)            { r.Status = "" }
func tooLong(d *dossier.Dossier)        { d.Record.TooLong, d.Record.Width = true, 32 }
func ranFor(t time.Duration) scene {
	return rowLike(func(r *ledger.Row) { r.RunTime, r.RunTimeKnown = t, true })
}

const (
	fresh = time.Minute
	old   = 2 * time.Hour
)

type expectation struct {
	code  Code
	layer flow.Layer
	scene []scene
}

// check runs Judge over the cases of one rule; the ones that must not be the
// rule's are in the same table with the verdict that they deserve.
func check(t *testing.T, cases map[string]expectation) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := Judge(dossierOf(c.scene...))
			if v.Code != c.code || v.Layer != c.layer {
				t.Fatalf("got %s/%s (%s), want %s/%s", v.Code, v.Layer, v.Sentence.EN, c.code, c.layer)
			}
			if v.Sentence.EN == "" || v.Sentence.ZH == "" || len(v.Facts) == 0 {
				t.Errorf("verdict without a sentence in both languages or without facts: %+v", v)
			}
		})
	}
}

func scenes(s ...scene) []scene { return s }

func TestKeyAmbiguous(t *testing.T) {
	check(t, map[string]expectation{
		"another id's row":       {KeyAmbiguous, flow.LayerMySQL, scenes(row(flow.Completed, old), rowLike(near))},
		"longer than the column": {KeyAmbiguous, flow.LayerMySQL, scenes(tooLong)},
		"cut to another id":      {KeyAmbiguous, flow.LayerMySQL, scenes(tooLong, row(flow.Completed, old), rowLike(near))},
		"even with Redis down":   {KeyAmbiguous, flow.LayerMySQL, scenes(row(flow.Completed, old), rowLike(near), lockError)},
		"own row beside it":      {Completed, flow.LayerNone, scenes(row(flow.Completed, old), row(flow.Completed, old), rowLike(near))},
		"a shard is not read":    {Unknown, flow.LayerMySQL, scenes(row(flow.Completed, old), rowLike(near), recordPartial)},
	})
}

func TestRanTwice(t *testing.T) {
	check(t, map[string]expectation{
		"two completed rows":      {RanTwice, flow.LayerMySQL, scenes(row(flow.Completed, old), row(flow.Completed, old))},
		"even if a shard is down": {RanTwice, flow.LayerMySQL, scenes(row(flow.Completed, old), row(flow.Completed, old), recordPartial)},
		"completed and failed":    {Completed, flow.LayerNone, scenes(row(flow.Failed, old), row(flow.Completed, old))},
	})
}

func TestUnknown(t *testing.T) {
	check(t, map[string]expectation{
		"record not read":                {Unknown, flow.LayerMySQL, scenes(recordError)},
		"record not read, lock held":     {Unknown, flow.LayerMySQL, scenes(recordError, lock(9*time.Second))},
		"one shard not read":             {Unknown, flow.LayerMySQL, scenes(row(flow.Completed, old), recordPartial)},
		"silent, lock not read":          {Unknown, flow.LayerRedis, scenes(row(flow.Processing, old), lockError)},
		"silent, lock of somebody":       {Unknown, flow.LayerRedis, scenes(row(flow.Processing, old), lock(9*time.Second), lockShared)},
		"silent, lock of a foreign type": {Unknown, flow.LayerRedis, scenes(row(flow.Processing, old), lock(9*time.Second), lockForeign)},
		"processing, no time, no lock":   {Unknown, flow.LayerMySQL, scenes(row(flow.Processing, 0), rowLike(ageless))},
		"failed, marker not read":        {Unknown, flow.LayerRedis, scenes(row(flow.Failed, old), markerError)},
		"failed, lock not read":          {Unknown, flow.LayerRedis, scenes(row(flow.Failed, old), lockError)},
		"failed, marker of somebody":     {Unknown, flow.LayerRedis, scenes(row(flow.Failed, old), marker(time.Hour), markerShared)},
		"failed, queues not read":        {Unknown, flow.LayerBroker, scenes(row(flow.Failed, old), brokerError)},
		"failed just now, queues empty":  {Unknown, flow.LayerBroker, scenes(row(flow.Failed, 3*time.Second))},
		"nothing, lock not read":         {Unknown, flow.LayerRedis, scenes(lockError)},
		"nothing, marker not read":       {Unknown, flow.LayerRedis, scenes(markerError)},
		"nothing, queues not read":       {Unknown, flow.LayerBroker, scenes(brokerError)},
		"nothing, not all places seen":   {Unknown, flow.LayerBroker, scenes(brokerPartial)},
		"marker alone, queues not read":  {Unknown, flow.LayerBroker, scenes(marker(time.Hour), brokerError)},
		"marker set 8 s ago":             {Unknown, flow.LayerBroker, scenes(marker(24*time.Hour - 8*time.Second))},
		"lone lock, not young":           {Unknown, flow.LayerRedis, scenes(lock(5 * time.Second))},
		"lone lock, TTL undeclared":      {Unknown, flow.LayerRedis, scenes(lock(5*time.Second), lockUndeclared)},
		"silent on a replica":            {Unknown, flow.LayerMySQL, scenes(row(flow.Processing, old), replica)},
		"failed on a replica":            {Unknown, flow.LayerMySQL, scenes(row(flow.Failed, old), replica)},
		"completed on a replica":         {Completed, flow.LayerNone, scenes(row(flow.Completed, old), replica)},
		"fresh on a replica":             {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), replica)},
		"completed beats a dead Redis":   {Completed, flow.LayerNone, scenes(row(flow.Completed, old), lockError, markerError, brokerError)},
		"fresh beats a dead Redis":       {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lockError, markerError, brokerError)},
		"marker decides without queues":  {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), marker(time.Hour), brokerError)},
		"a held lock needs no queue":     {Running, flow.LayerNone, scenes(row(flow.Processing, old), lock(14*time.Second), renewed, brokerError)},
	})
}

func TestClockSkew(t *testing.T) {
	check(t, map[string]expectation{
		"processing in the future":    {ClockSkew, flow.LayerMySQL, scenes(row(flow.Processing, -8*time.Hour))},
		"completed in the future":     {ClockSkew, flow.LayerMySQL, scenes(row(flow.Completed, -8*time.Hour))},
		"an hour that happened twice": {ClockSkew, flow.LayerMySQL, scenes(row(flow.Processing, old), rowLike(ambiguous))},
		"completed in that hour":      {Completed, flow.LayerNone, scenes(row(flow.Completed, old), rowLike(ambiguous))},
		"rounded up by the column":    {Running, flow.LayerNone, scenes(row(flow.Processing, -time.Second))},
	})
}

func TestUnreadable(t *testing.T) {
	check(t, map[string]expectation{
		"unmapped status":       {Unreadable, flow.LayerMySQL, scenes(row(flow.Unmapped, old))},
		"empty status":          {Unreadable, flow.LayerMySQL, scenes(row(flow.Unmapped, old), rowLike(noStatus))},
		"zero date":             {Unreadable, flow.LayerMySQL, scenes(row(flow.Processing, old), rowLike(zeroDate))},
		"unmapped, Redis down":  {Unreadable, flow.LayerMySQL, scenes(row(flow.Unmapped, old), lockError)},
		"a readable row beside": {Completed, flow.LayerNone, scenes(row(flow.Unmapped, old), row(flow.Completed, old))},
	})
}

func TestMayHaveRunTwice(t *testing.T) {
	check(t, map[string]expectation{
		"lock taken anew":           {MayHaveRunTwice, flow.LayerRedis, scenes(row(flow.Processing, fresh), lock(12*time.Second))},
		"taken anew, silent record": {MayHaveRunTwice, flow.LayerRedis, scenes(row(flow.Processing, old), lock(12*time.Second), resume)},
		"completed and begun again": {MayHaveRunTwice, flow.LayerMySQL, scenes(row(flow.Completed, old), row(flow.Processing, fresh))},
		"begun twice":               {MayHaveRunTwice, flow.LayerMySQL, scenes(row(flow.Processing, fresh), row(flow.Processing, fresh))},
		"a watchdog extends it":     {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lock(12*time.Second), renewed)},
		"lock as old as the record": {Running, flow.LayerNone, scenes(row(flow.Processing, 3*time.Second), lock(12*time.Second))},
		"more left than declared":   {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lock(time.Hour))},
	})
}

func TestStuckOnRedis(t *testing.T) {
	check(t, map[string]expectation{
		"lock without TTL, no record":       {Stuck, flow.LayerRedis, scenes(lock(0))},
		"lock without TTL, failed":          {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), lock(0))},
		"lock without TTL, silent":          {Stuck, flow.LayerRedis, scenes(row(flow.Processing, old), lock(0))},
		"a hash in the lock's place":        {Stuck, flow.LayerRedis, scenes(lock(0), lockForeign)},
		"failed behind a marker":            {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), marker(time.Hour))},
		"failed behind a marker, messages":  {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), marker(time.Hour), messages(3, 0, 1))},
		"marker alone, messages wait":       {Stuck, flow.LayerRedis, scenes(marker(time.Hour), messages(3, 0, 0))},
		"marker alone, no queue configured": {Stuck, flow.LayerRedis, scenes(marker(time.Hour), noBroker)},
		"lock without TTL, fresh run":       {Running, flow.LayerNone, scenes(row(flow.Processing, fresh), lock(0))},
		"lock without TTL, completed":       {Completed, flow.LayerNone, scenes(row(flow.Completed, old), lock(0))},
		"lock without TTL, owner unclear":   {Unknown, flow.LayerRedis, scenes(lock(0), lockShared)},
	})
}

func TestStuckOnRecord(t *testing.T) {
	check(t, map[string]expectation{
		"silent, no lock":           {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old))},
		"silent, flow without lock": {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), noLock)},
		"silent, queues not read":   {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), brokerError)},
		"silent, marker not read":   {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, old), markerError)},
		"exactly stale_after":       {Running, flow.LayerNone, scenes(row(flow.Processing, 5*time.Minute))},
		"a second more":             {Stuck, flow.LayerMySQL, scenes(row(flow.Processing, 5*time.Minute+time.Second))},
	})
}

func TestLostSuspected(t *testing.T) {
	check(t, map[string]expectation{
		"marker, no record, queues empty":  {LostSuspected, flow.LayerRedis, scenes(marker(time.Hour))},
		"marker without TTL":               {LostSuspected, flow.LayerRedis, scenes(marker(0))},
		"marker, but a lock is held":       {Unknown, flow.LayerRedis, scenes(marker(time.Hour), lock(5*time.Second))},
		"failed, queues empty":             {LostSuspected, flow.LayerBroker, scenes(row(flow.Failed, old))},
		"failed, queues empty, no marker":  {LostSuspected, flow.LayerBroker, scenes(row(flow.Failed, old), noMarker, noLock)},
		"failed, but a retry holds a lock": {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), lock(14*time.Second))},
	})
}

func TestFailedUnplaced(t *testing.T) {
	check(t, map[string]expectation{
		"messages wait":          {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), messages(2, 1, 1))},
		"just failed, they wait": {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, time.Second), messages(2, 1, 1))},
		"no queue configured":    {FailedUnplaced, flow.LayerBroker, scenes(row(flow.Failed, old), noBroker)},
	})
}

func TestRunning(t *testing.T) {
	check(t, map[string]expectation{
		"fresh with its lock":   {Running, flow.LayerNone, scenes(row(flow.Processing, 2*time.Second), lock(13*time.Second))},
		"fresh without a lock":  {Running, flow.LayerNone, scenes(row(flow.Processing, fresh))},
		"silent, lock extended": {Running, flow.LayerNone, scenes(row(flow.Processing, old), lock(14*time.Second), renewed)},
		"presence, lock held":   {Running, flow.LayerNone, scenes(presence, lock(5*time.Second))},
	})
}

func TestCompleted(t *testing.T) {
	check(t, map[string]expectation{
		"plain":                 {Completed, flow.LayerNone, scenes(row(flow.Completed, old))},
		"with its marker":       {Completed, flow.LayerNone, scenes(row(flow.Completed, old), marker(time.Hour))},
		"a retry in the queues": {Completed, flow.LayerNone, scenes(row(flow.Completed, old), messages(1, 1, 1))},
	})
}

func TestAcquiringWaitingNeverSeen(t *testing.T) {
	check(t, map[string]expectation{
		"lock set a moment ago":      {Acquiring, flow.LayerNone, scenes(lock(14 * time.Second))},
		"marker set a moment ago":    {Acquiring, flow.LayerNone, scenes(marker(24*time.Hour - time.Second))},
		"messages wait":              {MaybeWaiting, flow.LayerBroker, scenes(messages(4, 0, 0))},
		"one dead letter":            {MaybeWaiting, flow.LayerBroker, scenes(messages(0, 0, 1))},
		"nothing anywhere":           {NeverSeen, flow.LayerNone, nil},
		"nothing, no queue":          {NeverSeen, flow.LayerNone, scenes(noBroker)},
		"nothing, records alone":     {NeverSeen, flow.LayerNone, scenes(noBroker, noLock, noMarker)},
		"not started, nothing waits": {NeverSeen, flow.LayerNone, scenes(row(flow.NotStarted, old))},
		"not started, messages wait": {MaybeWaiting, flow.LayerBroker, scenes(row(flow.NotStarted, old), messages(1, 0, 0))},
	})
}

func TestNotes(t *testing.T) {
	tests := map[string]struct {
		note  string
		scene []scene
	}{
		"run outlived its lock":       {"unprotected_for", scenes(row(flow.Completed, old), ranFor(145*time.Second))},
		"lock left behind":            {"lock_left", scenes(row(flow.Completed, old), lock(3*time.Second))},
		"Redis down":                  {"lock_unread", scenes(row(flow.Completed, old), lockError)},
		"queues down":                 {"broker_unread", scenes(row(flow.Completed, old), brokerError)},
		"no lock on a run":            {"lock_absent", scenes(row(flow.Processing, fresh))},
		"watchdog":                    {"renewed", scenes(row(flow.Processing, fresh), lock(12*time.Second), renewed)},
		"too much TTL":                {"lock_ttl_implausible", scenes(row(flow.Processing, fresh), lock(time.Hour))},
		"no TTL":                      {"marker_without_ttl", scenes(row(flow.Completed, old), marker(0))},
		"foreign type":                {"lock_foreign_type", scenes(row(flow.Completed, old), lock(9*time.Second), lockForeign)},
		"near miss beside":            {"near_miss", scenes(row(flow.Completed, old), row(flow.Completed, old), rowLike(near))},
		"empty id":                    {"empty_id", scenes(func(d *dossier.Dossier) { d.Key.BizID = "" })},
		"failed while a lock is held": {"lock_held", scenes(row(flow.Failed, old), lock(9*time.Second), messages(1, 0, 0))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := Judge(dossierOf(tt.scene...))
			for _, n := range v.Notes {
				if n.Code == tt.note {
					return
				}
			}
			t.Errorf("%s has no note %s: %v", v.Code, tt.note, v.Notes)
		})
	}
	for _, n := range Judge(dossierOf(row(flow.Completed, old), ranFor(14*time.Second))).Notes {
		t.Errorf("a plain completed key has the note %s", n.Code)
	}
}
