package console

import (
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// TestStoryView: each entry stands in the lane of its layer, what is idle is one
// line, and what is still to come counts from now.
func TestStoryView(t *testing.T) {
	at := func(ago time.Duration, kind flow.EventKind, layer flow.Layer) flow.Event {
		return flow.Event{At: readAt.Add(-ago), Kind: kind, Layer: layer}
	}
	d := dossier.Dossier{
		At: readAt, Flow: flow.Flow{Lock: &flow.RedisKey{}},
		Lock: &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Found, ReadAt: readAt}, Type: "string", TTL: time.Hour}},
		Trail: &flow.Account{Events: []flow.Event{
			at(2*time.Hour, flow.Received, flow.LayerBroker), at(2*time.Hour-3*time.Second, flow.LockTried, flow.LayerRedis),
			at(2*time.Hour-3*time.Second, flow.RecordTried, flow.LayerMySQL), at(time.Minute, flow.RunDone, flow.LayerMySQL),
		}},
	}
	type line struct {
		kind        flow.EventKind
		lane        int
		since, idle string
	}
	want := []line{
		{flow.Received, 1, "", ""}, {flow.LockTried, 2, "+ 3 s", ""}, {flow.RecordTried, 3, "", ""},
		{flow.RunDone, 3, "", "1 h 58 min without an event"}, {flow.LockExpires, 2, "+ 1 h", "now; what follows is still to come"},
	}
	entries := clock{time.UTC}.newStoryView(answer.Answer{Dossier: d}).Entries
	if len(entries) != len(want) {
		t.Fatalf("%+v", entries)
	}
	for i, e := range entries {
		if got := (line{e.Kind, e.Lane, e.Since.EN, e.Idle.EN}); got != want[i] {
			t.Errorf("%+v, want %+v", got, want[i])
		}
	}
}
