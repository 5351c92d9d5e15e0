package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

const helpSuspects = " Suspects are records in processing for longer than the flow's stale_after, failed, or with an unmapped status, as far back as exporter.lookback " +
	"(and older ones that the ledger sweep has reached), keys with more than one record among those read lately, and what the last Redis sweep found odd."

// findingSeries are the labels of one series of idem_findings.
type findingSeries struct {
	flow, label string
	code        verdict.Code
	layer       flow.Layer
}

// findingsDescs are the gauges that are made anew at each scrape.
type findingsDescs struct{ found, pending *prometheus.Desc }

func newFindingsDescs() findingsDescs {
	var d findingsDescs
	d.found = prometheus.NewDesc("idem_findings",
		"Keys whose verdict is a problem (severity warning or critical) or, as verdict=\"unknown\", could not be decided; judged by the same rules as a look-up, "+
			"and again at pauses of 10 s to 5 min. A series that was there once stays, at 0."+helpSuspects,
		[]string{"flow", "biz_type", "verdict", "layer"}, nil)
	d.pending = prometheus.NewDesc("idemscope_findings_pending",
		"Suspects that were not judged yet, so that idem_findings may be too low. Absent before the first ledger was read."+helpSuspects, nil, nil)
	return d
}

func newFindingsJudged() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "idemscope_findings_judged_total",
		Help: "Look-ups made to judge suspects, at most exporter.findings.per_second."})
}

func newFindingsOverflow() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "idemscope_findings_overflow_total",
		Help: "Findings that were not put on the list because it was full (5000); they are judged again later."})
}

// Describe implements prometheus.Collector.
func (f *findings) Describe(ch chan<- *prometheus.Desc) {
	ch <- f.descs.found
	ch <- f.descs.pending
	f.judgedTotal.Describe(ch)
	f.overflow.Describe(ch)
}

// Collect implements prometheus.Collector. It answers from memory.
func (f *findings) Collect(ch chan<- prometheus.Metric) {
	f.judgedTotal.Collect(ch)
	f.overflow.Collect(ch)
	pending, known := f.pending()
	if known {
		ch <- gauge(f.descs.pending, float64(pending))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[findingSeries]int{}
	for _, q := range f.inquiries {
		if q.finding != nil {
			counts[q.series]++
		}
	}
	for s := range f.series {
		ch <- gauge(f.descs.found, float64(counts[s]), s.flow, s.label, string(s.code), string(s.layer))
	}
}
