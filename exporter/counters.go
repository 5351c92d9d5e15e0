package exporter

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/lockstore"
)

// maxReported bounds the contract errors that are remembered as already logged.
const maxReported = 1000

// countersSource reads what instrumented consumers have counted in Redis. The
// sums live there, so unlike the sums of ledgers they are absent while Redis
// cannot be read, and fall when the hashes are deleted, which Prometheus takes
// for a counter reset.
type countersSource struct {
	shared
	name  string
	read  func(context.Context) (lockstore.Counters, error)
	types []string // the configured ones

	reported map[string]bool
	cut      bool
}

func (s *countersSource) runOnce(ctx context.Context) (result, error) {
	counters, err := s.read(ctx)
	if err != nil {
		return result{}, err
	}
	s.report(counters)
	byLabel := map[string]lockstore.TypeCounters{}
	for _, bizType := range s.types {
		byLabel[s.labels.of(bizType)] = lockstore.TypeCounters{}
	}
	for _, c := range counters.Types {
		label := s.labels.of(c.BizType)
		byLabel[label] = plus(byLabel[label], c)
	}
	metrics := []prometheus.Metric{gauge(s.descs.contractErrors, float64(len(counters.ContractErrors)), s.name)}
	for label, c := range byLabel {
		metrics = append(metrics, s.metrics(label, c)...)
	}
	return result{metrics: metrics}, nil
}

func (s *countersSource) metrics(label string, c lockstore.TypeCounters) []prometheus.Metric {
	d := s.descs
	return []prometheus.Metric{
		counter(d.lockConflicts, float64(c.LockConflict), label),
		counter(d.dedupHits, float64(c.DedupStatus), label, "status"),
		counter(d.dedupHits, float64(c.DedupRecord), label, "record"),
		counter(d.retries, float64(c.Retry), label),
		counter(d.attempts, float64(c.Attempt), label),
		counter(d.runs, float64(c.Completed), label, "completed"),
		counter(d.runs, float64(c.Failed), label, "failed"),
		counter(d.lockLost, float64(c.LockLost), label),
		counter(d.degraded, float64(c.Degraded), label),
		gauge(d.attemptsOpen, attemptsOpen(c), label),
		runDuration(d.runDuration, c, label),
	}
}

// attemptsOpen is never negative: consumers that write only once per delivery
// count ends without attempts, and the two writes are not read at one instant.
func attemptsOpen(c lockstore.TypeCounters) float64 {
	ends := c.LockConflict + c.DedupStatus + c.DedupRecord + c.Completed + c.Failed
	if ends >= c.Attempt {
		return 0
	}
	return float64(c.Attempt - ends)
}

// runDuration is a classic histogram only: the consumers count in fixed buckets,
// and a native one would claim a finer knowledge.
func runDuration(d *prometheus.Desc, c lockstore.TypeCounters, label string) prometheus.Metric {
	bounds := durationBounds()
	buckets := make(map[float64]uint64, len(bounds))
	var count uint64
	for i, n := range c.Buckets {
		count += n
		if i < len(bounds) {
			buckets[bounds[i]] = count
		}
	}
	return prometheus.MustNewConstHistogram(d, count, float64(c.MsSum)/1000, buckets, label)
}

// plus adds up two types that share a label.
func plus(a, b lockstore.TypeCounters) lockstore.TypeCounters {
	a.Attempt += b.Attempt
	a.LockConflict += b.LockConflict
	a.DedupStatus += b.DedupStatus
	a.DedupRecord += b.DedupRecord
	a.Completed += b.Completed
	a.Failed += b.Failed
	a.Retry += b.Retry
	a.LockLost += b.LockLost
	a.Degraded += b.Degraded
	a.MsSum += b.MsSum
	for i, n := range b.Buckets {
		a.Buckets[i] += n
	}
	return a
}

// report logs each contract error once.
func (s *countersSource) report(c lockstore.Counters) {
	for _, message := range c.ContractErrors {
		if !s.reported[message] && len(s.reported) < maxReported {
			s.reported[message] = true
			s.log.Warn("consumer counter breaks the contract", "source", s.name, "problem", message)
		}
	}
	if c.Cut && !s.cut {
		s.log.Warn("too many biz_types in the consumer counters; the rest is not read", "source", s.name, "read", len(c.Types))
	}
	s.cut = c.Cut
}
