package dossier

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The stores here are scripted, because what is tested is the order and the
// patience of the gathering: no real server can be made to finish a run exactly
// between two of our reads. Real servers are asked in the tests of package app.

type records func(ctx context.Context) ledger.Found

func (r records) Find(ctx context.Context, _ flow.Key) ledger.Found { return r(ctx) }

type keys func(ctx context.Context, key string) lockstore.Entry

func (k keys) Look(ctx context.Context, key string) lockstore.Entry { return k(ctx, key) }

func (k keys) LookSimilar(context.Context, []string) []string { return nil }

type queues func(ctx context.Context) broker.Evidence

func (q queues) Evidence(ctx context.Context, _ flow.Queue) broker.Evidence { return q(ctx) }

func seen(s flow.State) flow.Observation { return flow.Observation{State: s, ReadAt: time.Now()} }

func in(p flow.Phase) ledger.Found {
	return ledger.Found{Observation: seen(flow.Found), Rows: []ledger.Row{{Exact: true, Phase: p}}}
}

func absentKey(context.Context, string) lockstore.Entry {
	return lockstore.Entry{Observation: seen(flow.Absent)}
}

func noMessages(context.Context) broker.Evidence {
	return broker.Evidence{Observation: seen(flow.Absent)}
}

func gatherer(t *testing.T, r Records, k Keys, q Queues) (*Gatherer, flow.Flow) {
	t.Helper()
	lock, err := flow.ParseTemplate("lock:{biz_type}:{biz_id}")
	if err != nil {
		t.Fatal(err)
	}
	f := flow.Flow{
		Name: "payments", BizTypes: []string{"pay"}, Ledger: "orders",
		Lock: &flow.RedisKey{Redis: "main", Template: lock}, Queue: &flow.Queue{Broker: "rabbit", Name: "q"},
	}
	g, err := NewGatherer(Options{
		Catalog: flow.NewCatalog([]flow.Flow{f}), Deadline: 100 * time.Millisecond,
		Ledgers: map[string]Records{"orders": r}, Redis: map[string]Keys{"main": k}, Brokers: map[string]Queues{"rabbit": q},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, f
}

var key = flow.Key{BizType: "pay", BizID: "1"}

func TestARunThatEndsBetweenTwoReadsIsNotTakenForStuck(t *testing.T) {
	reads := 0
	r := records(func(context.Context) ledger.Found {
		reads++
		if reads == 1 {
			return in(flow.Processing)
		}
		return in(flow.Completed)
	})
	g, f := gatherer(t, r, keys(absentKey), queues(noMessages))
	if d := g.Gather(t.Context(), f, key); d.Record.Rows[0].Phase != flow.Completed {
		t.Errorf("the record still reads %s", d.Record.Rows[0].Phase)
	}
}

func TestACompletedRecordIsReadOnce(t *testing.T) {
	reads := 0
	r := records(func(context.Context) ledger.Found { reads++; return in(flow.Completed) })
	g, f := gatherer(t, r, keys(absentKey), queues(noMessages))
	if g.Gather(t.Context(), f, key); reads != 1 {
		t.Errorf("read %d times", reads)
	}
}

func TestStoresAreAskedAtOnce(t *testing.T) {
	// Every store waits until all three were asked: asked in turn, they would
	// wait for their deadlines.
	asked := make(chan struct{}, 3)
	all := make(chan struct{})
	go func() {
		for range 3 {
			<-asked
		}
		close(all)
	}()
	wait := func(ctx context.Context) flow.State {
		asked <- struct{}{}
		select {
		case <-all:
			return flow.Absent
		case <-ctx.Done():
			return flow.Error
		}
	}
	r := records(func(ctx context.Context) ledger.Found {
		if wait(ctx) == flow.Error {
			return ledger.Found{Observation: seen(flow.Error)}
		}
		return in(flow.Completed)
	})
	k := keys(func(ctx context.Context, _ string) lockstore.Entry {
		return lockstore.Entry{Observation: seen(wait(ctx))}
	})
	q := queues(func(ctx context.Context) broker.Evidence { return broker.Evidence{Observation: seen(wait(ctx))} })
	g, f := gatherer(t, r, k, q)
	d := g.Gather(t.Context(), f, key)
	if d.Record.State != flow.Found || d.Lock.State != flow.Absent || d.Broker.State != flow.Absent {
		t.Errorf("not at once: record %s, lock %s, broker %s", d.Record.State, d.Lock.State, d.Broker.State)
	}
}

func TestAStoreThatIgnoresItsDeadlineCostsNoMore(t *testing.T) {
	release := make(chan struct{})
	k := keys(func(context.Context, string) lockstore.Entry { <-release; return lockstore.Entry{} })
	g, f := gatherer(t, records(func(context.Context) ledger.Found { return in(flow.Completed) }), k, queues(noMessages))
	d := g.Gather(t.Context(), f, key)
	close(release)
	if d.Lock.State != flow.Error || d.Lock.Reason.Empty() || d.Lock.Key != "lock:pay:1" {
		t.Errorf("lock: %+v", d.Lock)
	}
	if d.Record.State != flow.Found || d.Broker.State != flow.Absent {
		t.Errorf("the other layers suffered: record %s, broker %s", d.Record.State, d.Broker.State)
	}
}

func TestLayersThatTheFlowDoesNotHaveAreNil(t *testing.T) {
	g, f := gatherer(t, records(func(context.Context) ledger.Found { return in(flow.Completed) }), keys(absentKey), queues(noMessages))
	f.Lock, f.Queue = nil, nil
	if d := g.Gather(t.Context(), f, key); d.Lock != nil || d.Marker != nil || d.Broker != nil {
		t.Errorf("lock %v, marker %v, broker %v", d.Lock, d.Marker, d.Broker)
	}
}

func TestNewGathererNamesWhatIsMissing(t *testing.T) {
	f := flow.Flow{Name: "payments", Ledger: "orders"}
	if _, err := NewGatherer(Options{Catalog: flow.NewCatalog([]flow.Flow{f})}); err == nil {
		t.Error("a flow without its ledger was accepted")
	}
}

// TestPatienceEndsBeforeTheDeadline: who does not wait gets what is there, and what
// is not is pending, which is neither absent nor an error.
func TestPatienceEndsBeforeTheDeadline(t *testing.T) {
	r := records(func(context.Context) ledger.Found { return in(flow.Completed) })
	ended := make(chan struct{})
	q := queues(func(ctx context.Context) broker.Evidence {
		<-ctx.Done()
		close(ended)
		return broker.Evidence{Observation: seen(flow.Error)}
	})
	g, f := gatherer(t, r, keys(absentKey), q)
	g.options.Deadline = time.Hour
	d := g.GatherWithin(t.Context(), f, key, 20*time.Millisecond)
	if o := d.Broker.Observation; o.State != flow.Unknown || !o.Pending || o.Reason.EN != "not read yet" || o.Source != "broker rabbit" || !d.Pending() {
		t.Errorf("%+v", o)
	}
	<-ended // the store is not left working for nobody
}

// TestTheSecondReadingIsNotWaitedForEither: an open record that could not be read
// again in time is pending: it may have moved.
func TestTheSecondReadingIsNotWaitedForEither(t *testing.T) {
	reads := make(chan struct{}, 2)
	reads <- struct{}{}
	r := records(func(ctx context.Context) ledger.Found {
		select {
		case <-reads:
			return in(flow.Processing)
		case <-ctx.Done():
			return ledger.Found{Observation: seen(flow.Error)}
		}
	})
	g, f := gatherer(t, r, keys(absentKey), queues(noMessages))
	g.options.Deadline = time.Hour
	if d := g.GatherWithin(t.Context(), f, key, 20*time.Millisecond); !d.Record.Pending || len(d.Record.Rows) != 0 {
		t.Errorf("%+v", d.Record)
	}
	reads <- struct{}{}
	reads <- struct{}{}
	g.options.Deadline = 100 * time.Millisecond
	if d := g.Gather(t.Context(), f, key); d.Pending() || d.Record.State != flow.Found {
		t.Errorf("%+v", d.Record)
	}
}

// TestASlowStoreDoesNotHideAFastOne: the time that one store takes is not taken from
// the second reading of another.
func TestASlowStoreDoesNotHideAFastOne(t *testing.T) {
	r := records(func(context.Context) ledger.Found { return in(flow.Processing) })
	q := queues(func(ctx context.Context) broker.Evidence {
		<-ctx.Done()
		return broker.Evidence{Observation: seen(flow.Error)}
	})
	g, f := gatherer(t, r, keys(absentKey), q)
	g.options.Deadline = time.Hour
	if d := g.GatherWithin(t.Context(), f, key, 900*time.Millisecond); d.Record.State != flow.Found || d.Lock.State != flow.Absent || !d.Broker.Pending {
		t.Errorf("record %+v, lock %+v, broker %+v", d.Record.Observation, d.Lock.Observation, d.Broker.Observation)
	}
}
