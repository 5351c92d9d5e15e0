// Package doctor answers one question: is this set-up able to be idempotent at
// all? It asks the stores about themselves, and judges tables, servers, keys,
// queues and flows by a list of checks, each of which is a small pure function
// over what the stores said.
//
// It is not about single keys (that is package verdict) and mends nothing: it
// says what was seen, why that matters and what to do. What a store refuses to
// tell is reported as such, never as fine.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// deadline bounds one examination, whatever the stores do.
const deadline = 4 * time.Second

// Broker is what is asked of a broker.
type Broker interface {
	SetUp(ctx context.Context, named []broker.NamedQueue) (broker.SetUp, error)
}

// Options of a Doctor. The maps are keyed by the configured names.
type Options struct {
	// Flows are all configured flows. Mandatory.
	Flows []flow.Flow
	// Ledgers, Redis and Brokers hold every store that a flow names.
	Ledgers map[string]*ledger.Ledger
	Redis   map[string]*lockstore.Store
	Brokers map[string]Broker
	// ActMySQL and ActRedis are those that have a second user, as that user: with it,
	// something is changed.
	ActMySQL map[string]*ledger.Server
	ActRedis map[string]*lockstore.Store
	// Counters reads the counters of instrumented consumers from the Redis named
	// CountersSource; nil when none are configured.
	Counters       func(context.Context) (lockstore.Counters, error)
	CountersSource string
	// Retention is how long the cleanup keeps the records of a ledger; ok is false
	// when it does not clean that ledger. nil means that there is no cleanup.
	Retention func(ledger string) (keeps time.Duration, ok bool)
}

// Doctor examines one configuration. It is safe for concurrent use.
type Doctor struct {
	opts Options
	// turn holds the one permit to examine; last is what came of the last time.
	turn chan struct{}
	last Report
}

// New checks the options. It asks nothing: Examine does.
func New(o Options) (*Doctor, error) {
	if len(o.Flows) == 0 {
		return nil, errors.New("doctor: at least one flow is mandatory")
	}
	for _, f := range o.Flows {
		if o.Ledgers[f.Ledger] == nil {
			return nil, fmt.Errorf("doctor: flow %s names the ledger %q, which is not there", f.Name, f.Ledger)
		}
		for _, key := range keysOf(f) {
			if o.Redis[key.Redis] == nil {
				return nil, fmt.Errorf("doctor: flow %s names the redis %q, which is not there", f.Name, key.Redis)
			}
		}
		if f.Queue != nil && o.Brokers[f.Queue.Broker] == nil {
			return nil, fmt.Errorf("doctor: flow %s names the broker %q, which is not there", f.Name, f.Queue.Broker)
		}
	}
	return &Doctor{opts: o, turn: make(chan struct{}, 1)}, nil
}

// keysOf lists the flow's lock and marker, those that it has.
func keysOf(f flow.Flow) []flow.RedisKey {
	var keys []flow.RedisKey
	for _, k := range []*flow.RedisKey{f.Lock, f.Marker} {
		if k != nil {
			keys = append(keys, *k)
		}
	}
	return keys
}

// Examine asks all stores at once and judges what they say. It takes a few
// seconds at most; a store that does not answer shows in the report.
func (d *Doctor) Examine(ctx context.Context) Report { return d.Recent(ctx, 0) }

// Recent is Examine, unless the last report is younger than age: many readers
// at once cost the stores no more than one.
func (d *Doctor) Recent(ctx context.Context, age time.Duration) Report {
	d.turn <- struct{}{} // nobody holds it for longer than the deadline
	defer func() { <-d.turn }()
	if !d.last.At.IsZero() && time.Since(d.last.At) < age {
		return d.last
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	report := judge(d.gather(limited))
	report.At, report.Took = began, time.Since(began)
	if ctx.Err() == nil {
		d.last = report // a reader that went away has stopped the questions half-way
	}
	return report
}

// namedQueues lists what flows name on a broker, each queue once.
func namedQueues(name string, flows []flow.Flow) (queues []broker.NamedQueue) {
	add := func(queue string, role broker.Role) {
		if !slices.ContainsFunc(queues, func(q broker.NamedQueue) bool { return q.Name == queue }) {
			queues = append(queues, broker.NamedQueue{Name: queue, Role: role})
		}
	}
	for _, role := range []broker.Role{broker.RoleWork, broker.RoleRetry, broker.RoleDeadLetter} {
		for _, f := range flows {
			if f.Queue == nil || f.Queue.Broker != name {
				continue
			}
			for _, queue := range inRole(*f.Queue, role) {
				add(queue, role)
			}
		}
	}
	return queues
}

func inRole(q flow.Queue, role broker.Role) []string {
	switch {
	case role == broker.RoleWork:
		return []string{q.Name}
	case role == broker.RoleRetry:
		return q.Retry
	case q.DeadLetter != "":
		return []string{q.DeadLetter}
	}
	return nil
}

// visible words a list of names for a sentence.
func visible(names []string) string {
	const most = 8
	var words []string
	for i, name := range names {
		if i == most {
			words = append(words, fmt.Sprintf("… (+%d)", len(names)-most))
			break
		}
		words = append(words, flow.Visible(name))
	}
	return strings.Join(words, ", ")
}
