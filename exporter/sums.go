package exporter

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/lockstore"
)

const helpRetries = "Runs of keys whose last run had failed. source=\"consumer\": counted by instrumented consumers in Redis (field retry). " +
	"source=\"ledger\": by polling MySQL, records seen to leave the status failed, and keys whose unfinished row vanished and " +
	"that came back in a new one within exporter.lookback; a retry that starts and fails again between two reads is not counted there."

// sums are the counters and histograms that this process adds up from what it
// sees in ledgers. They are monotone whatever the stores do, so they stay
// exported while a source is down; Prometheus bridges their restart at zero.
type sums struct {
	// Those by biz_type are many series, so their changes are noted.
	created, completed, failed, vanished eventCounter   // ledger, biz_type
	duration                             eventHistogram // ledger, biz_type
	retries                              eventCounter   // biz_type
	longer                               eventCounter   // flow, biz_type
	changes                              *atomic.Uint64 // of all of them

	burned                  *prometheus.CounterVec // ledger
	rowsRead, watchOverflow *prometheus.CounterVec // source
	labelOverflow           prometheus.Counter
	lockExpirations         *prometheus.CounterVec // flow
}

func newSums() *sums {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	changes := new(atomic.Uint64)
	events := func(name, help string, labels ...string) eventCounter {
		return eventCounter{counter(name, help, labels...), changes}
	}
	return &sums{
		changes: changes,
		created: events("idem_records_created_total",
			"Records that appeared in the MySQL table since this process started, by polling the tail of the primary key. "+
				"A record that is inserted and deleted between two polls is not counted.", "ledger", "biz_type"),
		completed: events("idem_records_completed_total",
			"Records seen to reach the status completed in the MySQL table since this process started.", "ledger", "biz_type"),
		failed: events("idem_records_failed_total",
			"Times that a record was seen to reach the status failed in the MySQL table since this process started. "+
				"A failure that is retried between two reads is not counted.", "ledger", "biz_type"),
		duration: eventHistogram{prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idem_record_duration_seconds",
			Help: "Time from creation to last update of records seen to complete, from the time columns of the MySQL table and with their " +
				"resolution (1 s for DATETIME). For a retried record it spans all its runs. Negative times are not counted.",
			Buckets:                         durationBounds(),
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  160,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"ledger", "biz_type"}), changes},
		retries: eventCounter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: "idem_retries_total", Help: helpRetries,
			ConstLabels: prometheus.Labels{"source": "ledger"}}, []string{"biz_type"}), changes},
		longer: events("idem_runs_longer_than_lock_total",
			"First runs of records that took at least as long as the configured TTL of the flow's lock, from the time columns of the MySQL table and "+
				"with their resolution. Later runs of a retried record and locks that a watchdog renews are left out.", "flow", "biz_type"),
		burned: counter("idem_record_ids_burned_total",
			"Ids of the MySQL table that stayed without a row between two seen rows for a minute: inserts refused by the unique key, or rolled back. "+
				"An upper bound for dedup hits: upserts and rows deleted within a poll burn ids too. With auto_increment_increment above 1 "+
				"a gap counts one id per step. One gap counts 10000 at most. On a replica the minute is longer by its lag.", "ledger"),
		vanished: events("idemscope_records_vanished_total",
			"Open records (in processing, failed, not started) that were deleted from the MySQL table, or made way for another key under the same id.", "ledger", "biz_type"),
		rowsRead: counter("idemscope_rows_read_total",
			"Rows that the database returned to this process for the tail, for open records and for the sweep.", "source"),
		watchOverflow: counter("idemscope_watch_overflow_total",
			"Open records that are not followed because the ledger has more of them than are watched at a time; gauges of open records are then too low.", "source"),
		lockExpirations: newLockExpirations(),
		labelOverflow: prometheus.NewCounter(prometheus.CounterOpts{Name: "idemscope_label_overflow_total",
			Help: "Readings of a biz_type beyond exporter.max_biz_types, exported as biz_type=\"other\": a record once, consumer counters at each poll."}),
	}
}

// byType are those whose changes are noted, rest are the others.
func (s *sums) byType() []prometheus.Collector {
	return []prometheus.Collector{s.created, s.completed, s.failed, s.duration, s.retries, s.longer, s.vanished}
}

func (s *sums) rest() []prometheus.Collector {
	return []prometheus.Collector{s.burned, s.rowsRead, s.watchOverflow, s.labelOverflow, s.lockExpirations}
}

// startLedger makes the series of a ledger that is readable for the first time.
func (s *sums) startLedger(ledger string) {
	s.burned.WithLabelValues(ledger)
	s.watchOverflow.WithLabelValues(ledger)
}

// startType makes the series of one biz_type, at zero unless they exist.
func (s *sums) startType(ledger, label string, to *route) {
	s.created.start(ledger, label)
	s.completed.start(ledger, label)
	s.failed.start(ledger, label)
	s.duration.start(ledger, label)
	s.retries.start(label)
	if to != nil && to.lockTTL > 0 {
		s.longer.start(to.flow, label)
	}
}

// durationBounds are the buckets of the instrumentation contract in seconds, so
// that record and run durations can be compared bucket by bucket.
func durationBounds() []float64 {
	bounds := make([]float64, 0, len(lockstore.RunBounds))
	for _, ms := range lockstore.RunBounds {
		bounds = append(bounds, float64(ms)/1000)
	}
	return bounds
}
