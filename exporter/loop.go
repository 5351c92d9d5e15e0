package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The kinds of sources.
const (
	kindLedger   = "ledger"
	kindCounters = "counters"
	kindBroker   = "broker"
)

// hurry is by how much the pause is cut while a source has more to read.
const hurry = 5

// source is one store that is polled. An error means that the source is down;
// the result beside it holds what is known nonetheless, mostly nothing.
type source interface {
	runOnce(ctx context.Context) (result, error)
}

// result is what one poll found out.
type result struct {
	metrics []prometheus.Metric
	// more: the poll stopped at its bound, so the next one comes sooner.
	more bool
}

// firstOf makes one error of those of several shards or queues: they mostly say
// the same. It is nil when there is none.
func firstOf(failures []error) error {
	if len(failures) > 1 {
		return fmt.Errorf("%w (and %d more failures)", failures[0], len(failures)-1)
	}
	return errors.Join(failures...)
}

// loop polls one source on its own clock and keeps its last result. A source
// that hangs delays nobody else: its poll ends at the timeout.
type loop struct {
	name, kind string
	source     source
	interval   time.Duration
	timeout    time.Duration
	log        *slog.Logger

	mu     sync.Mutex
	status status
}

// status is the state of a source after its last poll.
type status struct {
	polls   uint64 // that have ended; before the first, nothing is known
	up      bool
	metrics []prometheus.Metric
	took    time.Duration
	good    time.Time // end of the last successful poll; zero when there was none
}

func (s status) polled() bool { return s.polls > 0 }

// run polls until ctx ends.
func (l *loop) run(ctx context.Context) {
	for {
		pause := l.interval
		if l.poll(ctx) {
			pause /= hurry
		}
		timer := time.NewTimer(jitter(pause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// poll runs the source once and reports whether it has more to read.
func (l *loop) poll(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	began := time.Now()
	r, err := l.source.runOnce(limited)
	if ctx.Err() != nil {
		return false // the program ends: that says nothing about the source
	}
	l.keep(r, err, time.Since(began))
	return r.more
}

func (l *loop) keep(r result, err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.status
	l.status = status{polls: before.polls + 1, up: err == nil, metrics: r.metrics, took: took, good: before.good}
	if err == nil {
		l.status.good = time.Now()
	}
	switch {
	case err != nil && (before.up || !before.polled()):
		l.log.Warn("source cannot be read", "source", l.name, "kind", l.kind, "err", err)
	case err == nil && before.polled() && !before.up:
		l.log.Info("source can be read again", "source", l.name, "kind", l.kind)
	}
}

func (l *loop) last() status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// changes grows with each change of the status.
func (l *loop) changes() uint64 { return l.last().polls }

// jitter spreads d by a tenth, so that the polls of many sources do not stay in step.
func jitter(d time.Duration) time.Duration {
	return d - d/20 + rand.N(d/10+1)
}

// snapshots exports the last result of every loop and its health.
type snapshots struct {
	descs *descs
	loops []*loop
	// constant are the metrics of the configuration.
	constant []prometheus.Metric
}

// Describe implements prometheus.Collector.
func (s *snapshots) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.descs.all() {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It answers from memory.
func (s *snapshots) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s.constant {
		ch <- m
	}
	for _, l := range s.loops {
		st := l.last()
		if !st.polled() {
			continue
		}
		up := 0.0
		if st.up {
			up = 1
		}
		ch <- gauge(s.descs.up, up, l.name, l.kind)
		ch <- gauge(s.descs.pollDuration, st.took.Seconds(), l.name, l.kind)
		if !st.good.IsZero() {
			ch <- gauge(s.descs.lastPoll, float64(st.good.UnixMilli())/1000, l.name, l.kind)
		}
		for _, m := range st.metrics {
			ch <- m
		}
	}
}
