package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const ofSource = `{source=~"$source"}`

// itself shows how the exporter does: whether it reads its sources, how old its data is and what it costs.
func itself() *builder {
	d := frame(itselfUID, "idemscope / Exporter", "idemscope itself: what it can read, how old its data is, what it costs, and what it leaves out.").
		WithVariable(all(choice("source", "Source", `label_values(idemscope_source_up, source)`, ""))).
		WithVariable(console())
	reading(d)
	depth(d)
	judging(d)
	process(d)
	return d
}

func reading(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Reading")).
		WithPanel(lines(about{"Can be read", "1: the last poll of the source succeeded. 0: its gauges are absent now.", number, 8},
			query{`min by (source, kind) (idemscope_source_up` + ofSource + `)`, "{{kind}} {{source}}"}).Max(1)).
		WithPanel(marked(lines(about{"Age of the data", "Time since the last successful poll.", seconds, 8},
			query{`time() - max by (source, kind) (idemscope_last_poll_timestamp_seconds` + ofSource + `)`, "{{kind}} {{source}}"}), orangeFrom(120))).
		WithPanel(lines(about{"Duration of a poll", "Successful or not.", seconds, 8},
			query{`max by (source, kind) (idemscope_poll_duration_seconds` + ofSource + `)`, "{{kind}} {{source}}"})).
		WithPanel(lines(about{"Rows read", "Rows per second that the databases returned for the tail and for open records.", perSecond, 8},
			query{`sum by (source) (rate(idemscope_rows_read_total` + ofSource + `[$__rate_interval]))`, "{{source}}"})).
		WithPanel(lines(about{"Tail read to its end", "0 while older rows are still being read after a start: gauges of open records are then too low.", number, 8},
			query{`min by (source) (idemscope_tail_caught_up` + ofSource + `)`, "{{source}}"}).Max(1)).
		WithPanel(lines(about{"Open records that are followed", "In processing, failed or not started; they are read again until they end.", number, 8},
			query{`sum by (source) (idemscope_watched_records` + ofSource + `)`, "{{source}}"}))
}

func depth(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Sweeps and limits")).
		WithPanel(marked(lines(about{"Age of the last sweep", "Time since the last complete pass over old records (ledger) and over keys (redis).", seconds, 8},
			query{`time() - max by (source, kind) (idemscope_sweep_completed_timestamp_seconds` + ofSource + `)`, "{{kind}} {{source}}"}), redFrom(86400))).
		WithPanel(lines(about{"Progress of the sweep of old records", "How much of the ledger's past the running sweep for old open records has read; 1 between two sweeps.", share, 8},
			query{`min by (source) (idemscope_ledger_sweep_progress_ratio` + ofSource + `)`, "{{source}}"}).Max(1)).
		WithPanel(lines(about{"Duration of the last sweep", "Of the last complete one, interruptions included.", seconds, 8},
			query{`max by (source, kind) (idemscope_sweep_duration_seconds` + ofSource + `)`, "{{kind}} {{source}}"})).
		WithPanel(lines(about{"Left out", "In ten minutes: open records beyond the cap of those that are followed, readings of biz_types beyond exporter.max_biz_types, and findings beyond the list. Above 0, gauges are too low, or types are folded into other.", number, 8},
			query{`sum by (source) (increase(idemscope_watch_overflow_total` + ofSource + `[10m]))`, "not followed {{source}}"},
			query{`sum(increase(idemscope_label_overflow_total[10m]))`, "folded into other"},
			query{`sum(increase(idemscope_findings_overflow_total[10m]))`, "findings not listed"})).
		WithPanel(lines(about{"Counters that break the contract", "Values in the consumers' counters that break the instrumentation contract; they are skipped.", number, 8},
			query{`sum by (source) (idemscope_contract_errors` + ofSource + `)`, "{{source}}"})).
		WithPanel(lines(about{"Evictions in Redis", "Keys in ten minutes. Locks, markers and counters can be among them.", number, 8},
			query{`sum by (redis) (increase(idem_redis_evicted_keys_total[10m]))`, "{{redis}}"}))
}

func judging(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Judging, keys and replicas")).
		WithPanel(lines(about{"Keys judged", "Suspicious keys per second that were looked up in all three layers.", perSecond, 6},
			query{`sum(rate(idemscope_findings_judged_total[$__rate_interval]))`, "judged"})).
		WithPanel(lines(about{"Keys waiting to be judged", "Suspicious keys that have not been looked up yet: the findings may be too few.", number, 6},
			query{`sum(idemscope_findings_pending)`, "waiting"})).
		WithPanel(lines(about{"Replica lag", "By the replica's own account, in whole seconds. Absent on a primary.", seconds, 6},
			query{`max by (source) (idemscope_replica_lag_seconds` + ofSource + `)`, "{{source}}"})).
		WithPanel(lines(about{"Keys that the last sweep found", "Locks and markers, each counted once.", number, 6},
			query{`sum by (source) (idemscope_sweep_keys_seen` + ofSource + `)`, "{{source}}"}))
}

func process(d *builder) {
	const us = ` * on (job, instance) group_left (version) idemscope_build_info`
	d.WithRow(dashboard.NewRowBuilder("Process")).
		WithPanel(lines(about{"Memory", "Resident.", size, 6},
			query{`process_resident_memory_bytes` + us, "{{instance}} {{version}}"})).
		WithPanel(lines(about{"CPU", "Cores.", number, 6},
			query{`rate(process_cpu_seconds_total[$__rate_interval])` + us, "{{instance}}"})).
		WithPanel(lines(about{"Goroutines", "They follow the number of sources, not of records.", number, 6},
			query{`go_goroutines` + us, "{{instance}}"})).
		WithPanel(lines(about{"Configuration", "1: the running configuration is the one in the file. 0: the last reload was refused, and the old one goes on.", number, 6},
			query{`min by (instance) (idemscope_config_last_reload_successful)`, "{{instance}}"}).Max(1))
}
