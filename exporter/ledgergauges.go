package exporter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are what the last cycle found out about the ledger.
func (s *ledgerSource) gauges(behind bool) []prometheus.Metric {
	standings, now := map[string]standing{}, s.now()
	for _, t := range s.tails {
		t.watch.addTo(standings, now)
	}
	metrics := []prometheus.Metric{
		gauge(s.descs.caughtUp, number(!behind), s.name),
		gauge(s.descs.watched, float64(s.watched()), s.name),
		gauge(s.descs.atWidth, float64(s.atWidth()), s.name),
	}
	if ratio, ok := s.headroom(); ok {
		metrics = append(metrics, gauge(s.descs.headroom, ratio, s.name))
	}
	if lag, ok := s.server.lag(); ok {
		metrics = append(metrics, gauge(s.descs.replicaLag, lag.Seconds(), s.name))
	}
	metrics = append(metrics, s.sweep.metrics()...)
	if s.outbox {
		return append(metrics, s.outboxGauges(standings)...)
	}
	return append(metrics, s.typeGauges(standings)...)
}

// typeGauges are those of each biz_type.
func (s *ledgerSource) typeGauges(standings map[string]standing) (metrics []prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for label, to := range s.known {
		standing := standings[label]
		metrics = append(metrics,
			gauge(s.descs.processing, float64(standing.waiting), s.name, label),
			gauge(s.descs.unmapped, float64(standing.unmapped), s.name, label),
			gauge(s.descs.oldest, standing.oldest.Seconds(), s.name, label))
		if to != nil {
			metrics = append(metrics, gauge(s.descs.stale, float64(standing.stale), s.name, label))
		}
		// Named types come from the configuration, also while the ledger is down.
		if to != nil && to == s.routes.rest {
			metrics = append(metrics, gauge(s.descs.flowInfo, 1, to.flow, s.name, label))
		}
	}
	return metrics
}

func (s *ledgerSource) outboxGauges(standings map[string]standing) []prometheus.Metric {
	pending, oldest := 0, time.Duration(0)
	for _, standing := range standings {
		pending += standing.waiting
		oldest = max(oldest, standing.oldest)
	}
	return []prometheus.Metric{
		gauge(s.descs.outboxPending, float64(pending), s.name),
		gauge(s.descs.outboxOldest, oldest.Seconds(), s.name),
	}
}

// headroom is the part of the ids that is left, in the shard that has least.
func (s *ledgerSource) headroom() (ratio float64, ok bool) {
	ratio = 1
	for _, t := range s.tails {
		if t.limit > 0 {
			ratio, ok = min(ratio, 1-float64(max(t.history, t.mark, t.top))/float64(t.limit)), true
		}
	}
	return max(ratio, 0), ok
}

// atWidth is how many of the rows that were read have an id that fills its column.
func (s *ledgerSource) atWidth() (n int) {
	for _, t := range s.tails {
		n += t.atWidth
	}
	return n
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
