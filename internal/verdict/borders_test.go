package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// Cases at the very border of a rule, and of the words that a rule chooses.

func unexpiring(r *dossier.RedisEvidence) { found(r, 0) }

func TestAKeyWithoutATTLHasNoAge(t *testing.T) {
	d := dossierOf(func(d *dossier.Dossier) { unexpiring(d.Lock); unexpiring(d.Marker) })
	if age, known := newEvidence(d).lockAge(); known {
		t.Errorf("lock: %s", age)
	}
	if age, known := newEvidence(d).markerAge(); known {
		t.Errorf("marker: %s", age)
	}
}

func TestALockTakenWithinTheMarginOfARunsEnd(t *testing.T) {
	with := func(lockAge time.Duration) []scene {
		return scenes(row(flow.Completed, 0), ranFor(89*time.Second+lockMargin), func(d *dossier.Dossier) {
			d.Flow.Lock.TTL = 90 * time.Second
			found(d.Lock, 90*time.Second-lockAge)
		})
	}
	check(t, map[string]expectation{
		"taken at its beginning":       {Completed, flow.LayerNone, with(89 * time.Second)},
		"taken a second later in it":   {MayHaveRunTwice, flow.LayerRedis, with(88 * time.Second)},
		"taken when it had just ended": {Completed, flow.LayerNone, with(lockMargin)},
	})
}

func TestALockThatChangedHandsWithinTheMargin(t *testing.T) {
	seen := func(ago time.Duration) []scene {
		return scenes(row(flow.Processing, fresh), lock(13*time.Second), renewed, heldBefore("other", ago, 0))
	}
	check(t, map[string]expectation{
		"at the margin":          {Running, flow.LayerNone, seen(fresh - lockMargin)},
		"within it":              {Running, flow.LayerNone, seen(fresh - time.Second)},
		"a second more":          {MayHaveRunTwice, flow.LayerRedis, seen(fresh - lockMargin - time.Second)},
		"before the sign itself": {Running, flow.LayerNone, seen(fresh + time.Second)},
	})
}

func TestWhetherRedisCouldHaveLostTheLockIsSaidWhenItIsNotKnown(t *testing.T) {
	noted := func(s ...scene) bool {
		return slices.Contains(noteCodes(Judge(dossierOf(s...))), "redis_unverified")
	}
	silent := row(flow.Processing, 10*time.Minute)
	for name, c := range map[string]struct {
		want  bool
		scene []scene
	}{
		"it does not answer INFO":   {true, scenes(silent, renewed)},
		"it does":                   {false, scenes(silent, renewed, redis(func(*lockstore.ServerFacts) {}))},
		"the lock had expired":      {false, scenes(silent)},
		"the lock is there":         {false, scenes(silent, renewed, lock(time.Hour))},
		"the flow has none":         {false, scenes(silent, noLock)},
		"it is no longer stuck":     {false, scenes(row(flow.Processing, fresh), renewed)},
		"two rows decide otherwise": {false, scenes(row(flow.Completed, old), row(flow.Completed, old), renewed)},
	} {
		if got := noted(c.scene...); got != c.want {
			t.Errorf("%s: noted %v", name, got)
		}
	}
}

func TestATimeThatCannotBeReadProvesNoEarlyLoss(t *testing.T) {
	for _, state := range []ledger.StampState{ledger.StampAmbiguous, ledger.StampZero} {
		v := Judge(dossierOf(row(flow.Processing, 5*time.Second), begun(5*time.Second), rowLike(func(r *ledger.Row) { r.Created.State = state })))
		if slices.Contains(noteCodes(v), "lock_gone_early") {
			t.Errorf("created is %s: %v", state, noteCodes(v))
		}
	}
}

// words are all that the verdict says.
func words(s ...scene) string {
	v := Judge(dossierOf(s...))
	all := []string{v.Sentence.EN}
	for _, n := range v.Notes {
		all = append(all, n.Text.EN)
	}
	for _, list := range [][]flow.Text{v.Next, v.Advice} {
		for _, text := range list {
			all = append(all, text.EN)
		}
	}
	for _, f := range v.Facts {
		all = append(all, f.Text.EN)
	}
	return strings.Join(all, "\n")
}

func TestTheWordsFitTheCase(t *testing.T) {
	silent := row(flow.Processing, 10*time.Minute)
	ran := []flow.Event{ev(flow.Received, 60*time.Second), ev(flow.RunBegan, 59*time.Second), ev(flow.RunDone, 50*time.Second)}
	given := func(outcome string) []scene {
		dead := ev(flow.DeadLettered, 50*time.Minute)
		dead.Outcome = outcome
		return scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, tap(ev(flow.Published, time.Hour), dead))
	}
	never := func(d *dossier.Dossier) { d.Flow.Rerun = flow.RerunNever }
	for name, c := range map[string]struct {
		has, hasNot string
		scene       []scene
	}{
		"two received, one run":         {"duplicates_suppressed=1: consumers received it 2 times and ran it 1 times", "", scenes(row(flow.Completed, fresh), trail(append(ran, ev(flow.Received, 9*time.Second))...))},
		"a run without an end":          {"consumers report 1 runs that began and never reported an end", "", scenes(row(flow.Completed, fresh), trail(append([]flow.Event{by("b", ev(flow.Received, 90*time.Second)), by("b", ev(flow.RunBegan, 89*time.Second)), by("c", ev(flow.RunBegan, 80*time.Second)), by("c", ev(flow.RunFailed, 79*time.Second))}, ran...)...))},
		"a replica that has the row":    {"the record says processing, but it was read from a replica", "there is no record", scenes(row(flow.Processing, old), replica)},
		"a replica without a row":       {"there is no record, but it was read from a replica", "the record says", scenes(replica)},
		"an old lock of a known age":    {"taken 1 h ago", "cannot be told", scenes(silent, lockOf(time.Hour))},
		"an old lock of no known age":   {"since when the lock is held cannot be told", "taken", scenes(silent, lock(time.Hour), lockUndeclared)},
		"given up for a reason":         {"(rejected)", "", given("rejected")},
		"given up without a reason":     {"", "min ago (", given("")},
		"told by consumers alone":       {"a message of this key was there", "was published", scenes(trail(ev(flow.Received, time.Hour)))},
		"published and never received":  {"it was published 1 h ago, no consumer has received it", "was there", scenes(tap(ev(flow.Published, time.Hour)), trail())},
		"published and received since":  {"a message of this key was there", "no consumer has received it", scenes(tap(ev(flow.Published, time.Hour)), trail(ev(flow.Received, 50*time.Minute)))},
		"stuck, and a marker":           {"Clear the marker as well", "", scenes(silent, marker(time.Hour))},
		"stuck without a marker":        {"", "Clear the marker", scenes(silent)},
		"stuck, never to be run again":  {"", "Clear the marker", scenes(silent, marker(time.Hour), never)},
		"failed, dead letters alone":    {"Look for it in the dead-letter queue", "", scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue)},
		"failed, it may come again":     {"", "Look for it in the dead-letter queue", scenes(row(flow.Failed, old), messages(1, 0, 1), deadQueue)},
		"completed, one run reported":   {"It ran once and completed", "runs that began", scenes(row(flow.Completed, fresh), trail(ran...))},
		"completed, two runs reported":  {"consumers report 2 runs that began", "It ran once", scenes(row(flow.Completed, fresh), trail(append([]flow.Event{ev(flow.RunBegan, 90*time.Second), ev(flow.RunFailed, 80*time.Second)}, ran...)...))},
		"the clocks of Redis and us":    {"Redis's clock differs", "", scenes(row(flow.Completed, fresh), redisAhead(skewTolerance+time.Nanosecond))},
		"a difference that is borne":    {"", "Redis's clock differs", scenes(row(flow.Completed, fresh), redisAhead(skewTolerance))},
		"received, given back, running": {"Running", "", scenes(row(flow.Processing, fresh), messages(1, 0, 0), trail(ev(flow.Received, time.Minute), ev(flow.GivenBack, 50*time.Second)))},
	} {
		said := words(c.scene...)
		if !strings.Contains(said, c.has) || c.hasNot != "" && strings.Contains(said, c.hasNot) {
			t.Errorf("%s: want %q and not %q in:\n%s", name, c.has, c.hasNot, said)
		}
	}
}

func TestRedisIsNoWitnessAtTheBorder(t *testing.T) {
	const age = 10 * time.Minute
	silent := row(flow.Processing, age)
	lives := func(ttl time.Duration) scene { return func(d *dossier.Dossier) { d.Flow.Lock.TTL = ttl } }
	started := func(ago time.Duration, persistent bool) scene {
		return redis(func(s *lockstore.ServerFacts) {
			s.Uptime, s.NoneEvictedFor, s.Persistent, s.PersistentKnown = ago, ago, persistent, true
		})
	}
	check(t, map[string]expectation{
		"started at the last sign of life":    {Stuck, flow.LayerMySQL, scenes(silent, renewed, started(age, false))},
		"started a second later":              {Unknown, flow.LayerRedis, scenes(silent, renewed, started(age-time.Second, false))},
		"it is known to keep nothing":         {Unknown, flow.LayerRedis, scenes(silent, renewed, started(time.Minute, false))},
		"the lock lived just as long":         {Stuck, flow.LayerMySQL, scenes(silent, lives(age), started(time.Minute, false))},
		"the lock could live a second longer": {Unknown, flow.LayerRedis, scenes(silent, lives(age+time.Second), started(time.Minute, false))},
	})
}

func TestAMarkerThatWasJustSetExplainsAMessage(t *testing.T) {
	young := marker(24*time.Hour - time.Second)
	check(t, map[string]expectation{
		"no queue is named":        {Acquiring, flow.LayerNone, scenes(noBroker, trail(ev(flow.Received, time.Hour)), young)},
		"an old one explains none": {LostSuspected, flow.LayerRedis, scenes(trail(ev(flow.Received, time.Hour)), marker(time.Hour))},
	})
}

func TestAPublishedMessageWaitsOnlyWhereNothingElseShows(t *testing.T) {
	sent := scenes(tap(ev(flow.Published, time.Minute)), trail(), messages(1, 0, 0))
	check(t, map[string]expectation{
		"nothing shows":       {Waiting, flow.LayerNone, sent},
		"an earlier failure":  {FailedUnplaced, flow.LayerBroker, append(scenes(row(flow.Failed, old)), sent...)},
		"a marker":            {Stuck, flow.LayerRedis, append(scenes(marker(time.Hour)), sent...)},
		"a lock of two keys":  {Unknown, flow.LayerRedis, append(scenes(lock(5*time.Second), lockShared), sent...)},
		"a lock just taken":   {Acquiring, flow.LayerNone, append(scenes(lock(14*time.Second)), sent...)},
		"a lock held forever": {Stuck, flow.LayerRedis, append(scenes(lock(0)), sent...)},
	})
}

func TestBytesAreCutOnlyWhenTheyAreTooMany(t *testing.T) {
	if got := hexOf(strings.Repeat("a", 64)); strings.Contains(got, "…") || len(got) != 2+128 {
		t.Errorf("64 bytes: %s", got)
	}
	if got := hexOf(strings.Repeat("a", 65)); !strings.HasSuffix(got, "…") {
		t.Errorf("65 bytes: %s", got)
	}
}

func TestABrokerInErrorIsNotKnownToHoldNothing(t *testing.T) {
	if newEvidence(dossierOf(brokerError)).known(broker.RoleDeadLetter) || newEvidence(dossierOf(noBroker)).known(broker.RoleDeadLetter) {
		t.Error("totals that nobody read count as known")
	}
}
