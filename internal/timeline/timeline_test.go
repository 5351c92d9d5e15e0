package timeline

import (
	"slices"
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

var now = time.Date(2026, 1, 15, 2, 0, 0, 0, time.UTC)

func ago(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

func stamp(at time.Time) ledger.Stamp { return ledger.Stamp{State: ledger.StampOK, Time: at} }

func account(events ...flow.Event) *flow.Account {
	return &flow.Account{Observation: flow.Observation{State: flow.Found}, Since: ago(3600), Events: events}
}

func event(kind flow.EventKind, seconds int, worker string) flow.Event {
	return flow.Event{Kind: kind, At: ago(seconds), Worker: worker}
}

// dossierOf is a key that completed 60 s ago, 10 s after it began.
func dossierOf(change func(*dossier.Dossier)) dossier.Dossier {
	d := dossier.Dossier{At: now}
	d.Flow.Lock = &flow.RedisKey{TTL: 15 * time.Second}
	d.Record.State, d.Record.DBNow, d.Record.ReadAt = flow.Found, now, now
	d.Record.Rows = []ledger.Row{{Table: "shop.t", Exact: true, Phase: flow.Completed, Created: stamp(ago(70)), Updated: stamp(ago(60))}}
	change(&d)
	return d
}

func kinds(entries []Entry) []flow.EventKind {
	var all []flow.EventKind
	for _, e := range entries {
		all = append(all, e.Kind)
	}
	return all
}

// odd lists the kinds of the entries that are flagged.
func odd(entries []Entry) []flow.EventKind {
	var flagged []flow.EventKind
	for _, e := range entries {
		if !e.Odd.Empty() {
			flagged = append(flagged, e.Kind)
		}
	}
	return flagged
}

func TestAllSourcesMakeOneStory(t *testing.T) {
	entries := Of(dossierOf(func(d *dossier.Dossier) {
		d.Lock = &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Found, ReadAt: now}, TTL: 5 * time.Second}}
		d.Tap = account(event(flow.Published, 72, ""))
		d.Trace = account(event(flow.Delivered, 71, ""))
		d.Trail = account(event(flow.Received, 71, "a"), event(flow.RunBegan, 70, "a"), event(flow.RunDone, 60, "a"))
	}))
	want := []flow.EventKind{flow.Published, flow.Delivered, flow.Received, flow.RecordCreated, flow.RunBegan, flow.RunDone, flow.RecordCompleted, flow.LockTaken, flow.LockExpires}
	if got := kinds(entries); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if flagged := odd(entries); flagged != nil {
		t.Errorf("odd: %v", flagged)
	}
	last := entries[len(entries)-1]
	if !last.Future || last.Certainty != flow.Computed || entries[0].Future {
		t.Errorf("%+v", last)
	}
	for _, e := range entries {
		if e.Text.EN == "" || e.Text.ZH == "" {
			t.Errorf("%s has no words", e.Kind)
		}
	}
}

func TestTimesOfAClockThatIsAheadAreMovedBack(t *testing.T) {
	entries := Of(dossierOf(func(d *dossier.Dossier) {
		ahead := 40 * time.Second
		d.Record.DBNow = now.Add(ahead)
		d.Record.Rows[0].Created, d.Record.Rows[0].Updated = stamp(ago(70).Add(ahead)), stamp(ago(60).Add(ahead))
		d.Tap = account(event(flow.Published, 72, ""))
	}))
	if got := kinds(entries); !slices.Equal(got, []flow.EventKind{flow.Published, flow.RecordCreated, flow.RecordCompleted}) || !entries[1].At.Equal(ago(70)) {
		t.Errorf("%v, created at %s", got, entries[1].At)
	}
}

func TestImpossibleOrdersAreFlagged(t *testing.T) {
	tests := map[string]struct {
		odd    []flow.EventKind
		change func(*dossier.Dossier)
	}{
		"completed before it was created": {[]flow.EventKind{flow.RecordCompleted}, func(d *dossier.Dossier) { d.Record.Rows[0].Updated = stamp(ago(90)) }},
		"within the tolerance":            {nil, func(d *dossier.Dossier) { d.Record.Rows[0].Updated = stamp(ago(72)) }},
		"in the future":                   {[]flow.EventKind{flow.RecordCompleted}, func(d *dossier.Dossier) { d.Record.Rows[0].Updated = stamp(ago(-9)) }},
		"received before it was published": {[]flow.EventKind{flow.Received}, func(d *dossier.Dossier) {
			d.Tap, d.Trail = account(event(flow.Published, 50, "")), account(event(flow.Received, 71, "a"))
		}},
		"published before the tap began": {nil, func(d *dossier.Dossier) {
			d.Tap, d.Trail = account(), account(event(flow.Received, 71, "a"))
			d.Tap.Since = ago(71)
		}},
		"received, and the tap saw no publication": {[]flow.EventKind{flow.Received}, func(d *dossier.Dossier) {
			d.Tap, d.Trail = account(), account(event(flow.Received, 71, "a"))
		}},
		"no tap": {nil, func(d *dossier.Dossier) { d.Trail = account(event(flow.Received, 71, "a")) }},
		"two runs at once": {[]flow.EventKind{flow.RunBegan}, func(d *dossier.Dossier) {
			d.Trail = account(event(flow.RunBegan, 70, "a"), event(flow.RunBegan, 65, "b"), event(flow.RunDone, 60, "a"), event(flow.RunDone, 50, "b"))
		}},
		"one run after the other": {nil, func(d *dossier.Dossier) {
			d.Trail = account(event(flow.RunBegan, 70, "a"), event(flow.RunFailed, 66, "a"), event(flow.RunBegan, 65, "b"), event(flow.RunDone, 60, "b"))
		}},
		"the first run died": {nil, func(d *dossier.Dossier) {
			d.Trail = account(event(flow.RunBegan, 70, "a"), event(flow.RunBegan, 65, "b"), event(flow.RunDone, 60, "b"))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := odd(Of(dossierOf(tt.change))); !slices.Equal(got, tt.odd) {
				t.Errorf("odd: %v, want %v", got, tt.odd)
			}
		})
	}
}

func TestOnlyWhatIsKnownIsTold(t *testing.T) {
	for name, change := range map[string]func(*dossier.Dossier){
		"another id's row": func(d *dossier.Dossier) { d.Record.Rows[0].Exact = false },
		"no record":        func(d *dossier.Dossier) { d.Record.Rows = nil },
		"zero dates": func(d *dossier.Dossier) {
			zero := ledger.Stamp{State: ledger.StampZero}
			d.Record.Rows[0].Created, d.Record.Rows[0].Updated = zero, zero
		},
		"a lock that could be another key's": func(d *dossier.Dossier) {
			d.Record.Rows = nil
			d.Lock = &dossier.RedisEvidence{OwnersOpen: true, Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Found, ReadAt: now}, TTL: time.Second}}
		},
		"a lock without TTL": func(d *dossier.Dossier) {
			d.Record.Rows = nil
			d.Lock = &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Found, ReadAt: now}, NoTTL: true}}
		},
	} {
		if entries := Of(dossierOf(change)); len(entries) > 0 {
			t.Errorf("%s: %v", name, kinds(entries))
		}
	}
}

func TestALongStoryKeepsItsEnd(t *testing.T) {
	entries := Of(dossierOf(func(d *dossier.Dossier) {
		d.Tap = account()
		for i := range 2 * maxEntries {
			d.Tap.Events = append(d.Tap.Events, event(flow.Published, 3000-i, ""))
		}
	}))
	if len(entries) != maxEntries || entries[len(entries)-1].Kind != flow.Published && entries[len(entries)-1].Kind != flow.RecordCompleted {
		t.Errorf("%d entries, the last is %s", len(entries), entries[len(entries)-1].Kind)
	}
}

func TestAnArchivedRecordIsTold(t *testing.T) {
	entries := Of(dossierOf(func(d *dossier.Dossier) {
		d.Record.Archive = &ledger.Archive{Rows: d.Record.Rows}
		d.Record.Rows = nil
	}))
	if got := kinds(entries); !slices.Equal(got, []flow.EventKind{flow.RecordArchived}) {
		t.Errorf("%v", got)
	}
}
