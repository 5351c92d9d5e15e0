package dossier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// Records finds the rows of one key in one ledger.
type Records interface {
	Find(ctx context.Context, k flow.Key) ledger.Found
}

// Keys looks at exact Redis keys: closely at one, and at which of some exist.
type Keys interface {
	Look(ctx context.Context, key string) lockstore.Entry
	LookSimilar(ctx context.Context, keys []string) []string
}

// Queues tells what a broker shows of a flow's queues.
type Queues interface {
	Evidence(ctx context.Context, q flow.Queue) broker.Evidence
}

// Teller tells what a source of events knows of a key. It never fails: what goes
// wrong is the account's state.
type Teller interface {
	Tell(ctx context.Context, f flow.Flow, k flow.Key) *flow.Account
}

// Options of a Gatherer. The maps are keyed by the configured names.
type Options struct {
	// Catalog of all flows. Mandatory.
	Catalog *flow.Catalog
	// Ledgers must hold every ledger that a flow names.
	Ledgers map[string]Records
	// Redis must hold every server that a lock or marker names.
	Redis map[string]Keys
	// Brokers must hold every broker that a queue names.
	Brokers map[string]Queues
	// Taps and Traces tell what a broker published, gave up and delivered; those
	// of a broker that has none are missing.
	Taps, Traces map[string]Teller
	// Trail tells the steps that consumers report. May be nil.
	Trail Teller
	// Audit tells what people tried to change. May be nil.
	Audit Teller
	// P99 tells the run time that 99 % of the runs of a biz_type stay below; 0 when
	// nobody counts. May be nil.
	P99 func(ctx context.Context, bizType string) (time.Duration, error)
	// Deadline of each store, for itself. Zero means one second.
	Deadline time.Duration
}

// Gatherer gathers dossiers. It is safe for concurrent use.
type Gatherer struct {
	options Options
	// until is when this gathering stops to wait for first answers, and last for what
	// is asked again after them; zero: it waits as long as the stores may take.
	until, last time.Time
}

// NewGatherer checks that every store that a flow names is there.
func NewGatherer(o Options) (*Gatherer, error) {
	if o.Catalog == nil {
		return nil, errors.New("gatherer without a catalog of flows")
	}
	if o.Deadline == 0 {
		o.Deadline = time.Second
	}
	for _, f := range o.Catalog.Flows() {
		if o.Ledgers[f.Ledger] == nil {
			return nil, fmt.Errorf("flow %s names ledger %s, which is not set up", f.Name, f.Ledger)
		}
		for _, shape := range []*flow.RedisKey{f.Lock, f.Marker} {
			if shape != nil && o.Redis[shape.Redis] == nil {
				return nil, fmt.Errorf("flow %s names redis %s, which is not set up", f.Name, shape.Redis)
			}
		}
		if f.Queue != nil && o.Brokers[f.Queue.Broker] == nil {
			return nil, fmt.Errorf("flow %s names broker %s, which is not set up", f.Name, f.Queue.Broker)
		}
	}
	return &Gatherer{options: o}, nil
}

// GatherWithin is Gather for somebody who waits no longer than patience: what has
// not answered by then is an observation in state unknown that is Pending.
func (g *Gatherer) GatherWithin(ctx context.Context, f flow.Flow, k flow.Key, patience time.Duration) Dossier {
	// What is left of the patience is for the second reading: else a slow store would
	// take the time away from a fast one.
	start := time.Now()
	hasty := &Gatherer{options: g.options, until: start.Add(patience * 2 / 3), last: start.Add(patience)}
	return hasty.Gather(ctx, f, k)
}

// Gather asks all stores at once. It always returns a dossier: a store that
// fails or does not answer in time is an observation in state error.
func (g *Gatherer) Gather(ctx context.Context, f flow.Flow, k flow.Key) Dossier {
	start := time.Now()
	record := g.askRecord(ctx, f, k)
	lock := g.askRedis(ctx, f.Lock, k)
	marker := g.askRedis(ctx, f.Marker, k)
	queues := g.askBroker(ctx, f.Queue)
	tap, trace := nothing[*flow.Account](), nothing[*flow.Account]()
	if f.Queue != nil {
		tap, trace = g.askTeller(ctx, g.options.Taps[f.Queue.Broker], f, k), g.askTeller(ctx, g.options.Traces[f.Queue.Broker], f, k)
	}
	trail, audited := g.askTeller(ctx, g.options.Trail, f, k), g.askTeller(ctx, g.options.Audit, f, k)
	p99 := g.askP99(ctx, k)

	d := Dossier{Key: k, Flow: f, P99: <-p99}
	d.Tap, d.Trace, d.Trail, d.Audit = <-tap, <-trace, <-trail, <-audited
	d.Record, d.Lock, d.Marker, d.Broker = <-record, <-lock, <-marker, <-queues
	if d.mayHaveMoved() {
		second := &Gatherer{options: g.options, until: g.last}
		again := second.askRecord(ctx, f, k)
		second.lookAround(ctx, &d)
		d.Record = <-again
	}
	d.At = time.Now()
	d.Took = d.At.Sub(start)
	return d
}

// mayHaveMoved reports that the record must be read once more, after the other
// layers. A consumer marks its record before it releases the lock and acks the
// message: a record read as open (or absent) before the lock was seen absent
// could belong to a run that ended in between, and would look stuck or lost.
func (d Dossier) mayHaveMoved() bool {
	if !d.Record.Seen() || d.Lock == nil && d.Marker == nil && d.Broker == nil {
		return false
	}
	return !slices.ContainsFunc(d.Record.Rows, func(r ledger.Row) bool { return r.Exact && r.Phase == flow.Completed })
}

func (g *Gatherer) askRecord(ctx context.Context, f flow.Flow, k flow.Key) <-chan ledger.Found {
	ask := func(ctx context.Context) ledger.Found { return g.options.Ledgers[f.Ledger].Find(ctx, k) }
	late := func(o flow.Observation) ledger.Found {
		o.Source = "ledger " + f.Ledger
		return ledger.Found{Observation: o}
	}
	return bounded(ctx, g, ask, late)
}

func (g *Gatherer) askRedis(ctx context.Context, shape *flow.RedisKey, k flow.Key) <-chan *RedisEvidence {
	if shape == nil {
		return nothing[*RedisEvidence]()
	}
	key := shape.Render(k)
	owners, open := g.options.Catalog.Owners(shape.Redis, key, k)
	ask := func(ctx context.Context) *RedisEvidence {
		return &RedisEvidence{Entry: g.options.Redis[shape.Redis].Look(ctx, key), Owners: owners, OwnersOpen: open}
	}
	late := func(o flow.Observation) *RedisEvidence {
		o.Source = "redis " + shape.Redis
		return &RedisEvidence{Entry: lockstore.Entry{Observation: o, Key: key}, Owners: owners, OwnersOpen: open}
	}
	return bounded(ctx, g, ask, late)
}

func (g *Gatherer) askBroker(ctx context.Context, q *flow.Queue) <-chan *broker.Evidence {
	if q == nil {
		return nothing[*broker.Evidence]()
	}
	ask := func(ctx context.Context) *broker.Evidence {
		e := g.options.Brokers[q.Broker].Evidence(ctx, *q)
		return &e
	}
	late := func(o flow.Observation) *broker.Evidence {
		o.Source = "broker " + q.Broker
		return &broker.Evidence{Observation: o}
	}
	return bounded(ctx, g, ask, late)
}

func (g *Gatherer) askTeller(ctx context.Context, t Teller, f flow.Flow, k flow.Key) <-chan *flow.Account {
	if t == nil {
		return nothing[*flow.Account]()
	}
	ask := func(ctx context.Context) *flow.Account { return t.Tell(ctx, f, k) }
	late := func(o flow.Observation) *flow.Account { return &flow.Account{Observation: o} }
	return bounded(ctx, g, ask, late)
}

// askP99 is a help to judge a run that goes on; without it nothing is lost, so a
// failure is none.
func (g *Gatherer) askP99(ctx context.Context, k flow.Key) <-chan time.Duration {
	if g.options.P99 == nil {
		return nothing[time.Duration]()
	}
	ask := func(ctx context.Context) time.Duration {
		p99, err := g.options.P99(ctx, k.BizType)
		if err != nil {
			return 0
		}
		return p99
	}
	return bounded(ctx, g, ask, func(flow.Observation) time.Duration { return 0 })
}

// nothing answers at once for a layer that the flow does not have.
func nothing[E any]() <-chan E {
	answer := make(chan E, 1)
	var none E
	answer <- none
	return answer
}

// impatience fires when nobody waits for answers any more; nil when everybody does.
func (g *Gatherer) impatience() <-chan time.Time {
	if g.until.IsZero() {
		return nil
	}
	return time.After(time.Until(g.until))
}

// bounded runs ask with its own deadline. Stores are asked to honour it; for a
// client library that does not, late makes the answer a little after the
// deadline and the store's own goroutine ends by itself whenever it can.
func bounded[E any](ctx context.Context, g *Gatherer, ask func(context.Context) E, late func(flow.Observation) E) <-chan E {
	const grace = 50 * time.Millisecond
	deadline, impatience := g.options.Deadline, g.impatience()
	answer, out := make(chan E, 1), make(chan E, 1)
	start := time.Now()
	askCtx, cancel := context.WithTimeout(ctx, deadline)
	go func() { answer <- ask(askCtx) }()
	go func() {
		defer cancel()
		overdue := time.NewTimer(deadline + grace)
		defer overdue.Stop()
		select {
		case e := <-answer:
			out <- e
		case <-overdue.C:
			out <- late(flow.Observation{
				State: flow.Error, ReadAt: time.Now(), Took: time.Since(start),
				Reason: flow.T("no answer within %v", "%v内没有应答", flow.Span(deadline)),
			})
		case <-impatience:
			out <- late(flow.Observation{
				State: flow.Unknown, Pending: true, ReadAt: time.Now(), Took: time.Since(start),
				Reason: flow.T("not read yet", "尚未读取"),
			})
		}
	}()
	return out
}
