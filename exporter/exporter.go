package exporter

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"idemscope/internal/doctor"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

const (
	defaultInterval    = 5 * time.Second
	defaultLookback    = 24 * time.Hour
	defaultMaxBizTypes = 200
	// The timeout of a poll is the interval, within these bounds.
	minTimeout = time.Second
	maxTimeout = 10 * time.Second
	// maxScrapes is how many scrapes are answered at a time.
	maxScrapes = 10
)

// Options of an Exporter. The maps are keyed by the configured names, which
// become label values.
type Options struct {
	// Flows are all configured flows.
	Flows []flow.Flow
	// Ledgers must hold every ledger that a flow names.
	Ledgers map[string]*ledger.Ledger
	// Counters reads the counters of instrumented consumers; nil when they are
	// not configured. CountersSource is the name of their Redis.
	Counters       func(context.Context) (lockstore.Counters, error)
	CountersSource string
	// Brokers must hold every broker that a queue names.
	Brokers map[string]Broker
	// Interval is the pause between two polls of a source; 0 means 5 s.
	Interval time.Duration
	// Lookback is how far back open records are searched at the start; 0 means 24 h.
	Lookback time.Duration
	// MaxBizTypes bounds the biz_type labels; 0 means 200. Configured types
	// are never cut.
	MaxBizTypes int
	// Judge judges suspects for the list of findings, at most FindingsPerSecond
	// of them; nil or 0 means no such list.
	Judge             Judge
	FindingsPerSecond int
	// Redis must hold every Redis that a lock or marker names; nil means that
	// nothing of locks and markers is exported.
	Redis map[string]*lockstore.Store
	// SweepKeysPerSecond bounds how many keys of one Redis are walked in a
	// second; 0 means that none are. SweepPause is the time between two sweeps of
	// it; 0 means 1 min.
	SweepKeysPerSecond int
	SweepPause         time.Duration
	// LockExpirations: the keyspace events of Redis are listened to.
	LockExpirations bool
	// Doctor examines the set-up; nil means that nothing of it is exported.
	Doctor func(context.Context) doctor.Report
	// Version of the program, for idemscope_build_info.
	Version string
	// Logger may be nil for none.
	Logger *slog.Logger
}

// Exporter polls the sources and keeps what it found for /metrics.
type Exporter struct {
	loops    []*loop
	findings *findings // nil without a judge
	// suspectKeys are what the sweeps of Redis found odd.
	suspectKeys suspectKeys
	// examined is what the doctor found; nil without one.
	examined *examined
	// figures remembers the last hours.
	figures *figures
	// background is what runs beside the loops until ctx ends.
	background []func(ctx context.Context)
	// parts are all metrics.
	parts []part
	// compress is how /metrics is sent to those who accept it.
	compress func(http.Handler) http.HandlerFunc
	log      *slog.Logger
}

// New checks the options. It reads nothing: Run does.
func New(o Options) (*Exporter, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("exporter: %w", err)
	}
	e := &Exporter{log: o.Logger}
	sums, descs := newSums(), newDescs()
	types := flow.NewCatalog(o.Flows).Types()
	sh := shared{labels: newLabels(o.MaxBizTypes, types, sums.labelOverflow), sums: sums, descs: descs, log: o.Logger}
	e.loops = newLoops(o, types, sh)
	e.figures = newFigures(figureSources{loops: e.loops, sums: sums, descs: descs, labels: sh.labels, counting: o.counting()}, o.Flows, o.Interval)
	e.background = append(e.background, e.figures.run)
	e.addRedis(o, sh)
	e.addDoctor(o)
	if e.findings = newFindings(o, e.loops, sh.labels); e.findings != nil && o.sweeps() {
		e.findings.keys = e.suspectKeys.list
	}
	var err error
	if e.compress, err = gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed)); err != nil {
		return nil, fmt.Errorf("exporter: %w", err)
	}
	if err := e.addParts(o, sh); err != nil {
		return nil, fmt.Errorf("exporter: %w", err)
	}
	return e, nil
}

// addParts makes one part of the metrics for each thing that changes by itself.
func (e *Exporter) addParts(o Options, sh shared) error {
	var failures []error
	add := func(changes func() uint64, all ...prometheus.Collector) {
		registry := prometheus.NewRegistry()
		for _, c := range all {
			failures = append(failures, registry.Register(c))
		}
		e.parts = append(e.parts, part{registry, changes})
	}
	add(sh.sums.changes.Load, sh.sums.byType()...)
	for _, l := range e.loops {
		add(l.changes, &snapshots{descs: sh.descs, loops: []*loop{l}})
	}
	add(func() uint64 { return 0 }, &snapshots{descs: sh.descs, constant: configured(sh, o.Flows)}, buildInfo(o.Version))
	always := append(sh.sums.rest(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if e.findings != nil {
		always = append(always, e.findings)
	}
	if e.examined != nil {
		always = append(always, e.examined)
	}
	add(nil, always...)
	return errors.Join(failures...)
}

// complete fills in the defaults and checks the rest.
func (o *Options) complete() error {
	if o.SweepKeysPerSecond < 0 || o.SweepPause < 0 {
		return errors.New("the rate and the pause of sweeps must not be negative")
	}
	if o.Interval < 0 || o.Lookback < 0 || o.MaxBizTypes < 0 || o.FindingsPerSecond < 0 {
		return errors.New("interval, lookback, the cap of biz_types and the rate of findings must not be negative")
	}
	if o.Counters != nil && o.CountersSource == "" {
		return errors.New("the source of the consumer counters has no name")
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Lookback == 0 {
		o.Lookback = defaultLookback
	}
	if o.SweepPause == 0 {
		o.SweepPause = defaultSweepPause
	}
	if o.MaxBizTypes == 0 {
		o.MaxBizTypes = defaultMaxBizTypes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, f := range o.Flows {
		if o.Ledgers[f.Ledger] == nil {
			return fmt.Errorf("flow %s names the ledger %q, which is not there", f.Name, f.Ledger)
		}
		if name, missing := o.missingRedis(f); missing {
			return fmt.Errorf("flow %s names the redis %q, which is not there", f.Name, name)
		}
		if f.Queue != nil && o.Brokers[f.Queue.Broker] == nil {
			return fmt.Errorf("flow %s names the broker %q, which is not there", f.Name, f.Queue.Broker)
		}
	}
	return nil
}

// counting is the name of the Redis in which consumers count; empty when none do.
func (o Options) counting() string {
	if o.Counters == nil {
		return ""
	}
	return o.CountersSource
}

// newLoops makes one loop per source, in a fixed order.
func newLoops(o Options, types []string, sh shared) []*loop {
	var loops []*loop
	add := func(name, kind string, s source) {
		loops = append(loops, newLoop(o, name, kind, s))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Ledgers)) {
		add(name, kindLedger, newLedgerSource(tableOf(name, o.Ledgers[name]), o.Flows, o.Lookback, sh))
	}
	if o.Counters != nil {
		add(o.CountersSource, kindCounters, &countersSource{shared: sh, name: o.CountersSource, read: o.Counters, types: types,
			reported: map[string]bool{}})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Brokers)) {
		// A broker without a named queue is never asked, so nothing is claimed of it.
		if queues := namedQueues(name, o.Flows); len(queues) > 0 {
			add(name, kindBroker, &queuesSource{shared: sh, name: name, broker: o.Brokers[name], queues: queues, missing: map[string]bool{}})
		}
	}
	return loops
}

func newLoop(o Options, name, kind string, s source) *loop {
	return &loop{name: name, kind: kind, source: s, interval: o.Interval,
		timeout: min(max(o.Interval, minTimeout), maxTimeout), log: o.Logger}
}

// Run polls all sources until ctx ends, and returns when every loop has ended.
// The end of ctx is no error.
func (e *Exporter) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, l := range e.loops {
		wg.Go(func() { l.run(ctx) })
	}
	for _, run := range e.background {
		wg.Go(func() { run(ctx) })
	}
	if e.findings != nil {
		wg.Go(func() { e.findings.run(ctx) })
	}
	wg.Wait()
	return nil
}

// Gatherer gathers all metrics anew, and checks them once more.
func (e *Exporter) Gatherer() prometheus.Gatherer {
	var all prometheus.Gatherers
	for _, p := range e.parts {
		all = append(all, p.from)
	}
	return all
}

// Handler serves /metrics from memory, with the metrics of more beside its own.
// OpenMetrics is not offered: it would change the le labels of the histograms,
// and so the identity of their series, depending on who scrapes. Native
// histograms travel in protobuf. The text is compressed the quickest way, which
// shrinks it well enough.
func (e *Exporter) Handler(more ...prometheus.Gatherer) http.Handler {
	parts := slices.Clone(e.parts)
	for _, g := range more {
		parts = append(parts, part{from: g})
	}
	return e.compress(newPage(parts, e.log))
}

// configured are the metrics that come from the configuration alone.
func configured(sh shared, flows []flow.Flow) []prometheus.Metric {
	var metrics []prometheus.Metric
	for _, f := range flows {
		if ttl := lockTTL(f); ttl > 0 {
			metrics = append(metrics, gauge(sh.descs.lockTTL, ttl.Seconds(), f.Name))
		}
		for _, bizType := range f.BizTypes {
			metrics = append(metrics, gauge(sh.descs.flowInfo, 1, f.Name, f.Ledger, sh.labels.of(bizType)))
		}
	}
	return metrics
}

func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "idemscope_build_info",
		Help:        "Always 1; the labels tell what is running.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
