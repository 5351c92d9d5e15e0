package exporter

import (
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"idemscope/internal/flow"
)

// figureSources are the loops and sums from whose last results figures are made.
type figureSources struct {
	loops  []*loop
	sums   *sums
	descs  *descs
	labels *labels
	// counting is the name of the Redis in which consumers count; empty when none do.
	counting string
}

// reading is what all sources knew at one time.
type reading struct {
	counters countersRead
	ledgers  map[string]ledgerRead
	queues   map[queueName]queueRead
	brokers  map[string]bool // that could be read
	// retries are those that ledgers showed, by label.
	retries map[string]float64
}

// pollState tells readings apart: a source that was not polled since says nothing new.
type pollState struct {
	polls uint64
	up    bool
}

// newer reports whether the source was read since before.
func (p pollState) newer(before pollState) bool { return p.up && p.polls > before.polls }

type countersRead struct {
	pollState
	types map[string]countedType
}

// countedType is what consumers have counted of one label.
type countedType struct {
	conflicts, dedupStatus, dedupRecord, retries float64
	runs                                         spread
	// any: something was counted at all.
	any bool
}

// fell reports whether a count is lower than before: it began anew.
func (c countedType) fell(before countedType) bool {
	_, grew := c.runs.since(before.runs)
	return c.conflicts < before.conflicts || c.dedupStatus < before.dedupStatus || c.dedupRecord < before.dedupRecord || c.retries < before.retries || !grew
}

type ledgerRead struct {
	pollState
	// caughtUp: the tail was read to its end. swept: the past was, too.
	caughtUp, swept bool
	outbox          bool
	stale, open     map[string]float64
	durations       map[string]spread
}

type queueName struct{ broker, queue string }

type queueRead struct {
	states    map[string]int64
	consumers int64
}

// read takes what is in memory.
func (s figureSources) read() reading {
	r := reading{ledgers: map[string]ledgerRead{}, queues: map[queueName]queueRead{}, brokers: map[string]bool{}, retries: map[string]float64{}}
	for _, l := range s.loops {
		st := l.last()
		state := pollState{st.polls, st.up}
		switch l.kind {
		case kindCounters:
			r.counters = s.readCounters(state, st.metrics)
		case kindLedger:
			r.ledgers[l.name] = s.readLedger(l, state, st.metrics)
		case kindBroker:
			r.brokers[l.name] = st.up
			s.readQueues(r, st.metrics)
		}
	}
	for _, m := range collect(s.sums.retries.vec) {
		v := newValue(m)
		r.retries[v.label("biz_type")] = v.number
	}
	for _, m := range collect(s.sums.duration.vec) {
		v := newValue(m)
		if l, ok := r.ledgers[v.label("ledger")]; ok {
			l.durations[v.label("biz_type")] = v.spread
		}
	}
	return r
}

func (s figureSources) readCounters(state pollState, metrics []prometheus.Metric) countersRead {
	r := countersRead{state, map[string]countedType{}}
	for _, m := range metrics {
		if m.Desc() == s.descs.contractErrors || m.Desc() == s.descs.attemptsOpen {
			continue
		}
		v := newValue(m)
		label := v.label("biz_type")
		c := r.types[label]
		s.addTo(&c, m.Desc(), v)
		c.any = c.any || v.number > 0 || v.spread.total() > 0
		r.types[label] = c
	}
	return r
}

func (s figureSources) addTo(c *countedType, d *prometheus.Desc, v value) {
	switch d {
	case s.descs.lockConflicts:
		c.conflicts += v.number
	case s.descs.dedupHits:
		if v.label("layer") == "record" {
			c.dedupRecord += v.number
		} else {
			c.dedupStatus += v.number
		}
	case s.descs.retries:
		c.retries += v.number
	case s.descs.runDuration:
		c.runs = c.runs.plus(v.spread)
	}
}

func (s figureSources) readLedger(l *loop, state pollState, metrics []prometheus.Metric) ledgerRead {
	r := ledgerRead{pollState: state, stale: map[string]float64{}, open: map[string]float64{}, durations: map[string]spread{}}
	if source, ok := l.source.(*ledgerSource); ok {
		r.outbox = source.outbox
	}
	for _, m := range metrics {
		switch m.Desc() {
		case s.descs.caughtUp:
			r.caughtUp = newValue(m).number == 1
		case s.descs.sweepCompleted:
			r.swept = true
		case s.descs.stale:
			v := newValue(m)
			r.stale[v.label("biz_type")] = v.number
		case s.descs.processing:
			v := newValue(m)
			r.open[v.label("biz_type")] = v.number
		}
	}
	return r
}

func (s figureSources) readQueues(r reading, metrics []prometheus.Metric) {
	for _, m := range metrics {
		if d := m.Desc(); d != s.descs.queueMessages && d != s.descs.queueConsumers {
			continue
		}
		v := newValue(m)
		name := queueName{v.label("broker"), v.label("queue")}
		q, known := r.queues[name]
		if !known {
			q.states = map[string]int64{}
		}
		if m.Desc() == s.descs.queueMessages {
			q.states[v.label("state")] = int64(v.number)
		} else {
			q.consumers = int64(v.number)
		}
		r.queues[name] = q
	}
}

// backlog is how many messages of a flow wait in its work and retry queues; NaN
// when one of those queues is not known.
func (r reading) backlog(f flow.Flow) float64 {
	if f.Queue == nil {
		return math.NaN()
	}
	sum := 0.0
	for _, name := range append([]string{f.Queue.Name}, f.Queue.Retry...) {
		q, ok := r.queues[queueName{f.Queue.Broker, validLabel(name)}]
		if !ok {
			return math.NaN()
		}
		for _, n := range q.states {
			sum += float64(n)
		}
	}
	return sum
}

// labelsOf lists the labels of a flow's biz_types: those that it names, or those
// of its ledger that it takes. It is never more than one ledger has.
func (s figureSources) labelsOf(f flow.Flow) (all []string) {
	for _, bizType := range f.BizTypes {
		if label := s.labels.of(bizType); !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	if f.Rest {
		for label, to := range s.seenIn(f.Ledger) {
			if to == f.Name {
				all = append(all, label)
			}
		}
	}
	slices.Sort(all)
	return all
}

// seenIn has the labels that a ledger has shown, with their flow; empty for none.
func (s figureSources) seenIn(ledger string) map[string]string {
	for _, l := range s.loops {
		source, ok := l.source.(*ledgerSource)
		if ok && l.name == ledger && !source.outbox {
			return source.seen()
		}
	}
	return nil
}

// seen has every label of this ledger with the name of its flow; empty for none.
func (s *ledgerSource) seen() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]string, len(s.known))
	for label, to := range s.known {
		all[label] = ""
		if to != nil {
			all[label] = to.flow
		}
	}
	return all
}

// value is what one metric says.
type value struct {
	labels []*dto.LabelPair
	number float64
	spread spread
}

// newValue reads a metric. One that cannot be read is an empty one: /metrics reports it.
func newValue(m prometheus.Metric) (v value) {
	var out dto.Metric
	if m.Write(&out) != nil {
		return v
	}
	v.labels = out.GetLabel()
	switch {
	case out.GetCounter() != nil:
		v.number = out.GetCounter().GetValue()
	case out.GetGauge() != nil:
		v.number = out.GetGauge().GetValue()
	case out.GetHistogram() != nil:
		v.spread = spreadOf(out.GetHistogram())
	}
	return v
}

// spreadOf takes the classic buckets apart: they add up from one to the next.
func spreadOf(h *dto.Histogram) (s spread) {
	var below uint64
	for i, b := range h.GetBucket() {
		if i >= bounds-1 {
			break
		}
		s[i] = b.GetCumulativeCount() - below
		below = b.GetCumulativeCount()
	}
	s[bounds-1] = h.GetSampleCount() - below
	return s
}

func (v value) label(name string) string {
	for _, l := range v.labels {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// collect lists the metrics of a collector.
func collect(c prometheus.Collector) (all []prometheus.Metric) {
	ch := make(chan prometheus.Metric)
	go func() {
		defer close(ch)
		c.Collect(ch)
	}()
	for m := range ch {
		all = append(all, m)
	}
	return all
}
