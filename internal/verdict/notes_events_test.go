package verdict

import (
	"slices"
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

func noteCodes(v Verdict) []string {
	var codes []string
	for _, n := range v.Notes {
		codes = append(codes, n.Code)
	}
	return codes
}

func p99(d time.Duration) scene { return func(dd *dossier.Dossier) { dd.P99 = d } }

// begun dates the row added last, by the database's clock, which is ours.
func begun(ago time.Duration) scene {
	return func(d *dossier.Dossier) {
		d.Record.DBNow, d.Record.ReadAt = now, now
		d.Record.Rows[len(d.Record.Rows)-1].Created.Time = now.Add(-ago)
	}
}

func neighbour(kind ledger.NeighbourKind) scene {
	return func(d *dossier.Dossier) {
		d.Record.Neighbours = append(d.Record.Neighbours, ledger.Neighbour{Kind: kind, Row: ledger.Row{BizType: "refund", BizID: "ORD-1", Phase: flow.Completed}})
	}
}

func mysqlAhead(by, took time.Duration) scene {
	return func(d *dossier.Dossier) { d.Record.DBNow, d.Record.ReadAt, d.Record.Took = now.Add(by), now, took }
}

func redisAhead(by time.Duration) scene {
	return func(d *dossier.Dossier) {
		d.Lock.ReadAt = now
		d.Lock.Server = &lockstore.ServerFacts{Now: now.Add(by)}
	}
}

func similar(r **dossier.RedisEvidence) { (*r).Similar = []string{"lock:ord-1"} }

func TestNotesOfEventsAndSurroundings(t *testing.T) {
	done := row(flow.Completed, time.Minute)
	ran := []flow.Event{ev(flow.Received, 60*time.Second), ev(flow.RunBegan, 59*time.Second), ev(flow.RunDone, 50*time.Second)}
	dead := tap(ev(flow.Published, time.Hour), ev(flow.DeadLettered, 50*time.Minute))
	tests := map[string]struct {
		notes []string
		scene []scene
	}{
		"received once":                  {nil, scenes(done, trail(ran...))},
		"received twice, run once":       {[]string{"duplicates_suppressed"}, scenes(done, trail(append(ran, ev(flow.Received, 9*time.Second))...))},
		"a run died":                     {[]string{"run_unfinished"}, scenes(done, trail(append([]flow.Event{by("b", ev(flow.Received, 90*time.Second)), by("b", ev(flow.RunBegan, 89*time.Second))}, ran...)...))},
		"a run goes on":                  {[]string{"lock_absent"}, scenes(row(flow.Processing, fresh), trail(ran[:2]...))},
		"a retry failed afterwards":      {[]string{"failed_retry_is_noise"}, scenes(done, trail(append(ran, ev(flow.RunBegan, 9*time.Second), ev(flow.RunFailed, 8*time.Second))...))},
		"it had failed before":           {nil, scenes(done, trail(append([]flow.Event{ev(flow.RunBegan, 90*time.Second), ev(flow.RunFailed, 80*time.Second)}, ran...)...))},
		"a copy in the dead letters":     {[]string{"copy_in_dead_letter"}, scenes(done, messages(0, 0, 1), deadQueue, dead)},
		"stuck, and given up":            {[]string{"dead_letter"}, scenes(row(flow.Processing, old), messages(0, 0, 1), deadQueue, dead)},
		"given up says so itself":        {nil, scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, dead)},
		"the tap is down":                {[]string{"tap_unread"}, scenes(done, dead, tapError)},
		"the trail is down":              {[]string{"trail_unread"}, scenes(done, trail(), trailError)},
		"longer than nearly all":         {[]string{"long"}, scenes(row(flow.Processing, fresh), noLock, p99(30*time.Second), begun(31*time.Second))},
		"as long as nearly all":          {nil, scenes(row(flow.Processing, fresh), noLock, p99(30*time.Second), begun(30*time.Second))},
		"completed is not long":          {nil, scenes(done, p99(time.Second), begun(time.Hour))},
		"same id, other type":            {[]string{"other_type"}, scenes(neighbour(ledger.OtherType))},
		"other version and spelling":     {[]string{"other_version", "other_spelling"}, scenes(neighbour(ledger.OtherSpelling), neighbour(ledger.OtherVersion), neighbour(ledger.OtherVersion))},
		"a lock that reads alike":        {[]string{"redis_similar"}, scenes(func(d *dossier.Dossier) { similar(&d.Lock) })},
		"a marker that reads alike":      {[]string{"redis_similar"}, scenes(func(d *dossier.Dossier) { similar(&d.Marker) })},
		"MySQL's clock is ahead":         {[]string{"mysql_clock"}, scenes(done, mysqlAhead(3*time.Second, 0))},
		"MySQL's clock is behind":        {[]string{"mysql_clock"}, scenes(done, mysqlAhead(-3*time.Second, 0))},
		"a slow answer is no skew":       {nil, scenes(done, mysqlAhead(-10*time.Second, 14*time.Second))},
		"two seconds are none":           {nil, scenes(done, mysqlAhead(2*time.Second, 0))},
		"Redis's clock is ahead":         {[]string{"redis_clock"}, scenes(done, redisAhead(40*time.Second))},
		"Redis does not tell its time":   {nil, scenes(done, redis(func(*lockstore.ServerFacts) {}))},
		"a watchdog was seen at work":    {[]string{"renewed"}, scenes(row(flow.Processing, 3*time.Second), lock(13*time.Second), heldBefore("token", 20*time.Second, 0))},
		"and goes on after the end":      {[]string{"lock_left", "lock_renewed"}, scenes(done, lock(13*time.Second), heldBefore("token", 20*time.Second, 0))},
		"neighbours of a completed one":  {[]string{"other_version"}, scenes(done, neighbour(ledger.OtherVersion))},
		"a trail that covers nothing of": {nil, scenes(done, trail())},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := Judge(dossierOf(tt.scene...))
			if got := noteCodes(v); !slices.Equal(got, tt.notes) {
				t.Errorf("%s has the notes %v, want %v", v.Code, got, tt.notes)
			}
		})
	}
}

func TestFactsOfEventsSaySinceWhen(t *testing.T) {
	v := Judge(dossierOf(tap(), trail(ev(flow.Received, time.Minute), ev(flow.RunBegan, time.Minute), ev(flow.RunDone, time.Second)), trace(), func(d *dossier.Dossier) { failing(&d.Trace.Observation) }, row(flow.Completed, time.Minute)))
	var words []string
	for _, f := range v.Facts {
		words = append(words, f.Text.EN)
	}
	for _, want := range []string{
		"tap: nothing of this key since 2026-01-14T02:00:00Z", "trace: no answer within 1 s",
		"trail: received: 1, runs begun: 1, done: 1, failed: 0",
	} {
		if !slices.Contains(words, want) {
			t.Errorf("no fact %q in %q", want, words)
		}
	}
}
