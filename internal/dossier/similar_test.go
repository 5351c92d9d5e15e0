package dossier

import (
	"context"
	"slices"
	"testing"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// spelled shows one key, and has the others under another spelling.
type spelled struct {
	keys
	asked chan []string
}

func (s spelled) LookSimilar(_ context.Context, keys []string) []string {
	s.asked <- keys
	return keys[:1]
}

func TestOtherSpellingsAreLookedForWhenLockAndMarkerAreAbsent(t *testing.T) {
	heldKey := keys(func(context.Context, string) lockstore.Entry { return lockstore.Entry{Observation: seen(flow.Found)} })
	failed := keys(func(context.Context, string) lockstore.Entry { return lockstore.Entry{Observation: seen(flow.Error)} })
	for _, c := range []struct {
		name  string
		keys  keys
		phase flow.Phase
		asked bool
	}{
		{"no lock, run open", absentKey, flow.Processing, true},
		{"no lock, run completed", absentKey, flow.Completed, false},
		{"lock held", heldKey, flow.Processing, false},
		{"lock not read", failed, flow.Processing, false},
	} {
		store := spelled{keys: c.keys, asked: make(chan []string, 2)}
		g, f := gatherer(t, records(func(context.Context) ledger.Found { return in(c.phase) }), store, queues(noMessages))
		d := g.Gather(t.Context(), f, flow.Key{BizType: "pay", BizID: "a1 "})
		if len(store.asked) > 0 != c.asked {
			t.Errorf("%s: asked %d times", c.name, len(store.asked))
		}
		if c.asked && (!slices.Equal(d.Lock.Similar, []string{"lock:pay:a1"}) || !slices.Contains(<-store.asked, "lock:pay:A1")) {
			t.Errorf("%s: %q", c.name, d.Lock.Similar)
		}
	}
}
