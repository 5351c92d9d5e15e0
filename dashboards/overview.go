package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// criticalVerdicts matches the verdicts of severity critical.
const criticalVerdicts = `verdict=~"key_ambiguous|ran_twice|stuck|dead_lettered|lost_suspected"`

// overview shows the five figures of each flow, one row per flow.
func overview() *builder {
	d := frame(overviewUID, "idemscope / Overview", "Lock conflicts, dedup hits, retries, P99 under the lock TTL and stale records of every flow.").
		WithVariable(all(flows())).WithVariable(all(bizTypes())).WithVariable(console())
	now(d)
	d.WithRow(dashboard.NewRowBuilder("Flow $flow").Repeat("flow"))
	for _, p := range fiveFigures() {
		d.WithPanel(p.DataLinks(links(link("The flow in depth", "/d/"+flowUID+"?var-datasource=${datasource}&var-flow=${flow}&${__url_time_range}"))))
	}
	return d.WithRow(dashboard.NewRowBuilder("Local message tables (preset outbox)")).
		WithPanel(lines(about{"Messages that wait to be sent", "Rows of the local message table that are pending; failed ones are not among them.", number, 12},
			query{`sum by (ledger) (idem_outbox_pending)`, "{{ledger}}"})).
		WithPanel(lines(about{"Longest wait", "Time since the creation of the message that has waited longest to be sent.", seconds, 12},
			query{`max by (ledger) (idem_outbox_oldest_pending_age_seconds)`, "{{ledger}}"}))
}

// now adds the figures of this moment.
func now(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(figure(about{"Sources that cannot be read", "Ledgers, Redis, counters and brokers whose last poll failed. Their metrics are absent: silence of the other panels proves nothing.", number, 4},
			redFrom(1), query{`sum(1 - idemscope_source_up)`, ""})).
		WithPanel(figure(about{"Critical findings", "Keys with a verdict of severity critical: stuck, lost_suspected, dead_lettered, ran_twice, key_ambiguous.", number, 4},
			redFrom(1), query{`sum(idem_findings{flow=~"$flow",` + criticalVerdicts + `})`, ""}).
			NoValue("none seen").Links(links(link("List them in the console", "${console}/findings")))).
		WithPanel(figure(about{"Stale records", "Records in processing without a sign of life for longer than their flow's stale_after.", number, 4},
			orangeFrom(1), query{`sum(idem_records_stale` + ofBizType + `)`, ""})).
		WithPanel(figure(about{"Oldest in processing", "Time since the last sign of life of the record that has been silent longest.", seconds, 4},
			from(900, 3600), query{`max(idem_oldest_processing_age_seconds` + ofBizType + `)`, ""})).
		WithPanel(figure(about{"Highest P99 of the lock TTL", "The P99 of the run time as a share of the flow's lock TTL, for the biz_type that comes closest.", share, 4},
			from(0.5, 1), query{p99OfTTL, ""})).
		WithPanel(figure(about{"Dead letters", "Messages in the dead-letter queues of all flows.", number, 4},
			orangeFrom(1), query{`sum(idem_queue_messages{state="dead"})`, ""})).
		WithPanel(typeTable())
}

// p99OfTTL is the highest of all P99s over their lock's TTL.
var p99OfTTL = `max(` + belongs + `{flow=~"$flow",biz_type=~"$biz_type"}` +
	` * on (biz_type) group_left () (` + p99(`idem_run_duration_seconds_bucket`) + ` >= 0)` +
	` / on (flow) group_left () max by (flow) (idem_lock_ttl_seconds))`

// typeTable has one line per biz_type.
func typeTable() *table.PanelBuilder {
	columns := []struct{ name, unit, expr string }{
		{"Deliveries ended", perSecond, `sum by (biz_type) (rate(idem_lock_conflicts_total` + ofBizType + `[5m])) + sum by (biz_type) (rate(idem_dedup_hits_total` + ofBizType + `[5m])) + sum by (biz_type) (rate(idem_runs_total` + ofBizType + `[5m]))`},
		{"Lock conflicts", perSecond, `sum by (biz_type) (rate(idem_lock_conflicts_total` + ofBizType + `[5m]))`},
		{"Dedup hits", perSecond, `sum by (biz_type) (rate(idem_dedup_hits_total` + ofBizType + `[5m]))`},
		{"Retries", perSecond, `sum by (biz_type) (rate(idem_retries_total{biz_type=~"$biz_type",source="consumer"}[5m]))`},
		{"P99", seconds, `histogram_quantile(0.99, sum by (biz_type, le) (rate(idem_run_duration_seconds_bucket` + ofBizType + `[5m]))) >= 0`},
		{"In processing", number, `sum by (biz_type) (idem_records_processing` + ofBizType + `)`},
		{"Stale", number, `sum by (biz_type) (idem_records_stale` + ofBizType + `)`},
		{"Oldest", seconds, `max by (biz_type) (idem_oldest_processing_age_seconds` + ofBizType + `)`},
	}
	p := table.NewPanelBuilder().Title("biz_types, over the last five minutes").
		Description("One line per biz_type. Consumer counters give the first five columns, the ledger the last three.").
		Span(24).Height(9).Datasource(source())
	renamed := map[string]string{}
	for i, c := range columns {
		t := target(i, query{c.expr, ""}).Instant().Format(prometheus.PromQueryFormatTable)
		p.WithTarget(t)
		value := "Value #" + string(rune('A'+i))
		renamed[value] = c.name
		p.OverrideByName(c.name, []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}, {Id: "decimals", Value: 2}})
	}
	return p.
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true}, "renameByName": renamed,
		}}).
		OverrideByName("biz_type", []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{{
			"title": "Findings in the console", "url": "${console}/findings?biz_type=${__value.raw:percentencode}", "targetBlank": true,
		}}}})
}
