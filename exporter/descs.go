package exporter

import "github.com/prometheus/client_golang/prometheus"

// descs are the metrics that are made anew from each reading of a source. They
// are absent while their source cannot be read: a value that nobody knows is
// never exported as 0.
type descs struct {
	processing, stale, oldest, unmapped, watched, caughtUp *prometheus.Desc
	outboxPending, outboxOldest, headroom, atWidth         *prometheus.Desc
	replicaLag, ledgerSweepProgress, sweepCompleted        *prometheus.Desc

	lockConflicts, dedupHits, retries, attempts, runs, attemptsOpen, lockLost, degraded, runDuration *prometheus.Desc
	contractErrors                                                                                   *prometheus.Desc

	queueMessages, queueConsumers, queueRedeliveries *prometheus.Desc

	lockTTL, flowInfo *prometheus.Desc

	keys keyDescs

	up, pollDuration, lastPoll *prometheus.Desc
}

func newDescs() *descs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	const counted = " Counted by instrumented consumers in Redis (field "
	return &descs{
		processing: desc("idem_records_processing",
			"Records in the status processing, from polling the MySQL table. Records older than exporter.lookback at the start of this process are known "+
				"when the first sweep has passed them (idemscope_ledger_sweep_progress_ratio).", "ledger", "biz_type"),
		stale: desc("idem_records_stale",
			"Records in processing without a sign of life for longer than the flow's stale_after, from polling the MySQL table. Age by the database's clock.", "ledger", "biz_type"),
		oldest: desc("idem_oldest_processing_age_seconds",
			"Time since the last sign of life of the record that has been silent longest in processing, by the database's clock; 0 when there is none.", "ledger", "biz_type"),
		unmapped: desc("idem_records_unmapped",
			"Records with an empty status, or with one that the configuration gives no meaning, from polling the MySQL table. "+
				"Those without a sign of life for longer than exporter.lookback are left out.", "ledger", "biz_type"),
		outboxPending: desc("idem_outbox_pending",
			"Messages of a local message table (preset outbox) that wait to be sent, from polling the MySQL table. Failed ones are not among them.", "ledger"),
		outboxOldest: desc("idem_outbox_oldest_pending_age_seconds",
			"Time since the creation of the message that has waited longest to be sent (since its last update without a created column), by the database's clock; "+
				"0 when none waits.", "ledger"),
		headroom: desc("idem_record_id_headroom_ratio",
			"Part of the range of the MySQL id column (type and sign) above the highest id that was seen: 1 is all, 0 is none. Of a sharded ledger the shard with the least.", "ledger"),
		atWidth: desc("idem_ids_at_column_width",
			"Records whose biz_id has as many characters as the MySQL column keeps: longer ids may have been cut. Counted among the rows that this process "+
				"has read: those of exporter.lookback at its start, the new ones since, and older open ones. Ids of a fixed length fill their column by design.", "ledger"),
		replicaLag: desc("idemscope_replica_lag_seconds",
			"How far the replica is behind, in whole seconds by its own account. Absent on a primary, while replication stands still, and without the privilege to ask.", "source"),
		ledgerSweepProgress: desc("idemscope_ledger_sweep_progress_ratio",
			"How much of the ledger's past the running sweep for old open records has read, 0 to 1; 1 between two sweeps.", "source"),
		sweepCompleted: desc("idemscope_sweep_completed_timestamp_seconds",
			"Unix time at which the last complete sweep of the source ended. Absent before the first.", "source", "kind"),
		watched: desc("idemscope_watched_records",
			"Open records (in processing, failed, not started) that are read again until they end.", "source"),
		caughtUp: desc("idemscope_tail_caught_up",
			"1 when the tail of the ledger has been read to its end; 0 while older rows are still being read, when the gauges of open records are too low.", "source"),

		lockConflicts: desc("idem_lock_conflicts_total", "Deliveries that found the lock taken."+counted+"lock_conflict).", "biz_type"),
		dedupHits: desc("idem_dedup_hits_total",
			"Duplicates that were stopped: layer=\"status\" by the status check, layer=\"record\" by the unique key."+counted+"dedup_status, dedup_record).", "biz_type", "layer"),
		retries: prometheus.NewDesc("idem_retries_total", helpRetries, []string{"biz_type"}, prometheus.Labels{"source": "consumer"}),
		attempts: desc("idem_attempts_total",
			"Deliveries that entered the guard."+counted+"attempt). Stays 0 for consumers that write only once per delivery.", "biz_type"),
		runs: desc("idem_runs_total", "Runs of the business logic that ended."+counted+"completed, failed).", "biz_type", "outcome"),
		attemptsOpen: desc("idem_attempts_open",
			"Attempts minus their ends: deliveries in flight, or runs that died. From the counters of instrumented consumers in Redis.", "biz_type"),
		lockLost: desc("idem_lock_lost_total", "Releases that found another holder of the lock, or none."+counted+"lock_lost).", "biz_type"),
		degraded: desc("idem_degraded_total", "Deliveries that only the record guarded, because Redis was down."+counted+"degraded).", "biz_type"),
		runDuration: desc("idem_run_duration_seconds",
			"Run time of completed and failed runs, measured and counted by instrumented consumers in Redis, in milliseconds and fixed buckets.", "biz_type"),
		contractErrors: desc("idemscope_contract_errors",
			"Values in the consumers' counters that break the instrumentation contract, in the last reading; they are skipped.", "source"),

		queueMessages: desc("idem_queue_messages",
			"Messages from the broker's statistics, which lag a few seconds: ready, unacked and (held back by the broker) delayed in a work queue; all of a retry queue are delayed, all of a dead-letter queue dead.",
			"broker", "queue", "state"),
		queueConsumers: desc("idem_queue_consumers", "Consumers of the queue, from the broker's statistics.", "broker", "queue"),
		queueRedeliveries: desc("idem_queue_redeliveries_total",
			"Deliveries that were not the first, since the broker's statistics of the queue began. Absent when the broker keeps none.", "broker", "queue"),

		keys: newKeyDescs(),

		lockTTL: desc("idem_lock_ttl_seconds",
			"TTL of the flow's lock, from the configuration. Absent for a flow without a lock, without a declared TTL, or with a lock that a watchdog renews.", "flow"),

		flowInfo: desc("idem_flow_info",
			"Always 1: tells the flow and the ledger of a biz_type, from the configuration; for a flow that takes the rest of its ledger, the biz_types seen in the MySQL table.",
			"flow", "ledger", "biz_type"),

		up:           desc("idemscope_source_up", "1 when the last poll of the source succeeded, else 0.", "source", "kind"),
		pollDuration: desc("idemscope_poll_duration_seconds", "Duration of the last poll of the source, successful or not.", "source", "kind"),
		lastPoll:     desc("idemscope_last_poll_timestamp_seconds", "Unix time at which the last successful poll of the source ended.", "source", "kind"),
	}
}

func (d *descs) all() []*prometheus.Desc {
	return append(d.keys.all(), d.processing, d.stale, d.oldest, d.unmapped, d.watched, d.caughtUp,
		d.outboxPending, d.outboxOldest, d.headroom, d.atWidth, d.replicaLag, d.ledgerSweepProgress, d.sweepCompleted,
		d.lockConflicts, d.dedupHits, d.retries, d.attempts, d.runs, d.attemptsOpen, d.lockLost, d.degraded, d.runDuration, d.contractErrors,
		d.queueMessages, d.queueConsumers, d.queueRedeliveries, d.lockTTL, d.flowInfo, d.up, d.pollDuration, d.lastPoll)
}

// gauge and counter make one sample. They panic on a wrong number of labels
// only, which is a fault of this package.
func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func counter(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}
