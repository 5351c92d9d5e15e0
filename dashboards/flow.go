package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// ofLedger keeps the ledgers that hold a chosen biz_type.
const ofLedger = ` and on (ledger) idem_records_created_total` + ofBizType

// oneFlow shows all that is known of one flow.
func oneFlow() *builder {
	d := frame(flowUID, "idemscope / Flow", "One flow in depth: deliveries, run times, records, keys in Redis, queues and findings.").
		WithVariable(flows()).WithVariable(all(bizTypes())).
		WithVariable(all(choice("queue", "Queue", `label_values(idem_queue_messages, queue)`, ""))).
		WithVariable(console())
	deliveries(d)
	runTimes(d)
	records(d)
	keys(d)
	queues(d)
	return d
}

func deliveries(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Deliveries")).
		WithPanel(stacked(lines(about{"How deliveries end", "Per second, as consumers count them: the lock was taken, a duplicate was stopped by the status check or by the unique key, the run completed or failed.", perSecond, 12},
			query{`sum(rate(idem_lock_conflicts_total` + ofBizType + `[$__rate_interval])` + ofFlow + `)`, "lock conflict"},
			query{`sum by (layer) (rate(idem_dedup_hits_total` + ofBizType + `[$__rate_interval])` + ofFlow + `)`, "duplicate: {{layer}}"},
			query{`sum by (outcome) (rate(idem_runs_total` + ofBizType + `[$__rate_interval])` + ofFlow + `)`, "run: {{outcome}}"}))).
		WithPanel(marked(lines(about{"Share of lock conflicts", "Of all deliveries that ended.", share, 6},
			query{`sum by (biz_type) (rate(idem_lock_conflicts_total` + ofBizType + `[$__rate_interval])) / (` + perType(`idem_lock_conflicts_total`) + ` + ` + perType(`idem_dedup_hits_total`) + ` + ` + perType(`idem_runs_total`) + `)` + ofFlow, "{{biz_type}}"}),
			orangeFrom(0.3)).Max(1)).
		WithPanel(lines(about{"Attempts that have not ended", "In flight, or died. What grows and does not come back is crashes. Stays 0 for consumers that write only once per delivery.", number, 6},
			query{`sum by (biz_type) (idem_attempts_open` + ofBizType + `)` + ofFlow, "{{biz_type}}"})).
		WithPanel(lines(about{"Retries", "Runs per second of keys whose last run had failed, as consumers count them, and as the ledger shows them.", perSecond, 8},
			query{`sum by (biz_type, source) (rate(idem_retries_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "{{biz_type}} {{source}}"})).
		WithPanel(lines(about{"Locks lost", "Releases per second that found another holder of the lock, or none: the lock had expired.", perSecond, 8},
			query{perType(`idem_lock_lost_total`+ofBizType) + ofFlow, "{{biz_type}}"})).
		WithPanel(lines(about{"Deliveries without a lock", "Per second, guarded by the record alone because Redis was down.", perSecond, 8},
			query{perType(`idem_degraded_total`+ofBizType) + ofFlow, "{{biz_type}}"}))
}

func runTimes(d *builder) {
	limit := query{`max by (flow) (idem_lock_ttl_seconds{flow=~"$flow"})`, ttlLegend + " {{flow}}"}
	d.WithRow(dashboard.NewRowBuilder("Run time and lock")).
		WithPanel(underTTL(lines(about{"Run time under the lock TTL", "P50, P95 and P99, measured by consumers.", seconds, 8},
			query{quantile("0.5", `idem_run_duration_seconds_bucket`) + ofFlow, "P50 {{biz_type}}"},
			query{quantile("0.95", `idem_run_duration_seconds_bucket`) + ofFlow, "P95 {{biz_type}}"},
			query{p99(`idem_run_duration_seconds_bucket`) + ofFlow, "P99 {{biz_type}}"}, limit))).
		WithPanel(underTTL(lines(about{"From created to completed under the lock TTL", "P99 from the time columns of the ledger, with their resolution. For a retried record it spans all its runs, so it may lie above the lock TTL without harm.", seconds, 8},
			query{p99(`idem_record_duration_seconds_bucket`) + ofFlow, "P99 {{biz_type}}"}, limit))).
		WithPanel(lines(about{"Runs longer than the lock", "First runs of records, in ten minutes, that took at least as long as the lock lives: while they ran on, only the unique key kept a second run away.", number, 8},
			query{`sum by (biz_type) (increase(idem_runs_longer_than_lock_total{flow=~"$flow",biz_type=~"$biz_type"}[10m]))`, "{{biz_type}}"})).
		WithPanel(heatmap.NewPanelBuilder().Title("Run times").Description("How many runs took how long, measured by consumers.").
			Span(24).Height(8).Datasource(source()).
			Calculate(false).
			YAxis(heatmap.NewYAxisConfigBuilder().Unit(seconds)).
			Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Steps(64)).
			Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle)).
			WithTarget(target(0, query{`sum by (le) (increase(idem_run_duration_seconds_bucket` + ofBizType + `[$__rate_interval])` + ofFlow + `)`, "{{le}}"}).
				Format(prometheus.PromQueryFormatHeatmap).Range()))
}

func records(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Records")).
		WithPanel(lines(about{"Records per second", "Created, completed, failed, and deleted before they ended, seen in the ledger.", perSecond, 8},
			query{`sum by (biz_type) (rate(idem_records_created_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "created {{biz_type}}"},
			query{`sum by (biz_type) (rate(idem_records_completed_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "completed {{biz_type}}"},
			query{`sum by (biz_type) (rate(idem_records_failed_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "failed {{biz_type}}"},
			query{`sum by (biz_type) (rate(idemscope_records_vanished_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "deleted while open {{biz_type}}"})).
		WithPanel(lines(about{"In processing", "Records in processing, and those of them that are stale: without a sign of life for longer than stale_after.", number, 8},
			query{`sum by (biz_type) (idem_records_processing` + ofBizType + `)` + ofFlow, "in processing {{biz_type}}"},
			query{`sum by (biz_type) (idem_records_stale` + ofBizType + `)` + ofFlow, "stale {{biz_type}}"})).
		WithPanel(marked(lines(about{"Oldest in processing", "Time since the last sign of life of the record that has been silent longest.", seconds, 8},
			query{`max by (biz_type) (idem_oldest_processing_age_seconds` + ofBizType + `)` + ofFlow, "{{biz_type}}"}), redFrom(3600))).
		WithPanel(lines(about{"Ids burned", "Ids per second of the flow's ledger that stay without a row: inserts refused by the unique key, or rolled back. An upper bound for dedup hits that needs no instrumentation.", perSecond, 8},
			query{`sum by (ledger) (rate(idem_record_ids_burned_total[$__rate_interval]))` + ofLedger, "{{ledger}}"})).
		WithPanel(marked(lines(about{"Id range left", "Share of the id column's range that is left, by its type and sign. At 0 every insert fails.", share, 8},
			query{`min by (ledger) (idem_record_id_headroom_ratio)` + ofLedger, "{{ledger}}"}), redFrom(0.1)).Max(1)).
		WithPanel(lines(about{"Records that say nothing", "Records whose status is empty or named nowhere in the configuration, and records whose biz_id fills its column and may be cut.", number, 8},
			query{`sum by (biz_type) (idem_records_unmapped` + ofBizType + `)` + ofFlow, "unmapped {{biz_type}}"},
			query{`sum by (ledger) (idem_ids_at_column_width)` + ofLedger, "at column width {{ledger}}"}))
}

func keys(d *builder) {
	const flow = `{flow=~"$flow"}`
	d.WithRow(dashboard.NewRowBuilder("Keys in Redis, and findings")).
		WithPanel(lines(about{"Locks", "Counted by the last complete sweep of the keys. Without TTL: they never expire by themselves. Implausible: the TTL is above the declared one.", number, 8},
			query{`sum by (flow) (idem_locks` + flow + `)`, "locks"},
			query{`sum by (flow) (idem_locks_without_ttl` + flow + `)`, "without TTL"},
			query{`sum by (flow) (idem_locks_implausible_ttl` + flow + `)`, "implausible TTL"})).
		WithPanel(lines(about{"Markers", "Counted by the last complete sweep of the keys. Without record: the marker says done and the ledger has no record, among a random sample of the markers.", number, 8},
			query{`sum by (flow) (idem_markers` + flow + `)`, "markers"},
			query{`sum by (flow) (idemscope_markers_sampled` + flow + `)`, "in the sample"},
			query{`sum by (flow) (idem_markers_without_record` + flow + `)`, "in the sample, without record"})).
		WithPanel(lines(about{"Locks that lapsed", "Per second: locks that expired instead of being released, from Redis' keyspace events, where exporter.lock_expirations is on and the server publishes them.", perSecond, 8},
			query{`sum by (flow) (rate(idem_lock_expirations_total` + flow + `[$__rate_interval]))`, "lapsed"})).
		WithPanel(stacked(lines(about{"Findings", "Keys whose verdict is not healthy, by verdict and the layer that failed.", number, 24},
			query{`sum by (verdict, layer) (idem_findings{flow=~"$flow",biz_type=~"$biz_type"}) > 0`, "{{verdict}} {{layer}}"})).
			Links(links(link("List them in the console", "${console}/findings?flow=${flow:percentencode}"))).
			DataLinks(links(link("List these in the console", "${console}/findings?flow=${flow:percentencode}&verdict=${__field.labels.verdict}"))))
}

func queues(d *builder) {
	const queue = `{queue=~"$queue"}`
	d.WithRow(dashboard.NewRowBuilder("Queues (metrics of queues name no flow: choose yours above)")).
		WithPanel(stacked(lines(about{"Messages", "By state, from the broker's statistics: ready, unacked, delayed (retry queues) and dead (dead-letter queues).", number, 8},
			query{`sum by (queue, state) (idem_queue_messages` + queue + `) > 0`, "{{queue}} {{state}}"}))).
		WithPanel(lines(about{"Redeliveries", "Deliveries per second that were not the first.", perSecond, 8},
			query{`sum by (queue) (rate(idem_queue_redeliveries_total` + queue + `[$__rate_interval]))`, "{{queue}}"})).
		WithPanel(lines(about{"Consumers", "0 for a work queue means that nobody works. Retry and dead-letter queues have none by nature.", number, 8},
			query{`sum by (queue) (idem_queue_consumers` + queue + `)`, "{{queue}}"}))
}
