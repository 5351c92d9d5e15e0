package exporter

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// eventCounter counts events by their labels. Whatever changes it says so
// afterwards, so that what was made of it can be kept until then.
type eventCounter struct {
	vec     *prometheus.CounterVec
	changes *atomic.Uint64
}

// start makes a series, at zero unless it exists.
func (c eventCounter) start(labels ...string) {
	c.vec.WithLabelValues(labels...)
	c.changes.Add(1)
}

func (c eventCounter) inc(labels ...string) {
	c.vec.WithLabelValues(labels...).Inc()
	c.changes.Add(1)
}

// Describe implements prometheus.Collector.
func (c eventCounter) Describe(ch chan<- *prometheus.Desc) { c.vec.Describe(ch) }

// Collect implements prometheus.Collector.
func (c eventCounter) Collect(ch chan<- prometheus.Metric) { c.vec.Collect(ch) }

// eventHistogram is the like for durations.
type eventHistogram struct {
	vec     *prometheus.HistogramVec
	changes *atomic.Uint64
}

func (h eventHistogram) start(labels ...string) {
	h.vec.WithLabelValues(labels...)
	h.changes.Add(1)
}

func (h eventHistogram) observe(seconds float64, labels ...string) {
	h.vec.WithLabelValues(labels...).Observe(seconds)
	h.changes.Add(1)
}

// Describe implements prometheus.Collector.
func (h eventHistogram) Describe(ch chan<- *prometheus.Desc) { h.vec.Describe(ch) }

// Collect implements prometheus.Collector.
func (h eventHistogram) Collect(ch chan<- prometheus.Metric) { h.vec.Collect(ch) }
