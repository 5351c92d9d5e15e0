package main

import "github.com/grafana/grafana-foundation-sdk/go/timeseries"

// ofFlow keeps the biz_types of the chosen flows.
const (
	ofFlow    = ` and on (biz_type) ` + belongs + `{flow=~"$flow"}`
	ofBizType = `{biz_type=~"$biz_type"}`
)

// perType adds up the rate of a counter per biz_type.
func perType(counter string) string {
	return `sum by (biz_type) (rate(` + counter + `[$__rate_interval]))`
}

// fiveFigures are the panels that say how a flow does: lock conflicts, dedup hits, retries, the P99 under the lock TTL,
// and stale records.
func fiveFigures() []*timeseries.PanelBuilder {
	p99 := []query{
		{p99(`idem_run_duration_seconds_bucket`) + ofFlow, "{{biz_type}}"},
		{`max by (flow) (idem_lock_ttl_seconds{flow=~"$flow"})`, ttlLegend + " {{flow}}"},
	}
	return []*timeseries.PanelBuilder{
		lines(about{"Lock conflicts", "Deliveries per second that found the lock taken, as consumers count them. Rising: a storm of duplicates, or a lock that is held for longer.", perSecond, 5},
			query{perType(`idem_lock_conflicts_total`+ofBizType) + ofFlow, "{{biz_type}}"}),
		lines(about{"Dedup hits", "Duplicates per second that were stopped by the status check, or by the unique key (record). Record hits without lock conflicts: the lock stops nobody.", perSecond, 5},
			query{`sum by (biz_type, layer) (rate(idem_dedup_hits_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "{{biz_type}} {{layer}}"}),
		lines(about{"Retries", "Runs per second of keys whose last run had failed, as consumers count them, and as the ledger shows them.", perSecond, 4},
			query{`sum by (biz_type, source) (rate(idem_retries_total` + ofBizType + `[$__rate_interval]))` + ofFlow, "{{biz_type}} {{source}}"}),
		underTTL(lines(about{"P99 of the run time under the lock TTL", "99 of 100 runs are faster, as consumers measure them. Above half of the lock TTL is a warning; above it, runs outlive their lock.", seconds, 5}, p99...)),
		lines(about{"Stale records", "Records in processing without a sign of life for longer than the flow's stale_after. While one stands, the unique key refuses every retry of its key.", number, 5},
			query{`sum by (biz_type) (idem_records_stale` + ofBizType + `)` + ofFlow, "{{biz_type}}"}),
	}
}

func quantile(q, histogram string) string {
	return `histogram_quantile(` + q + `, sum by (biz_type, le) (rate(` + histogram + ofBizType + `[$__rate_interval])))`
}

func p99(histogram string) string { return quantile("0.99", histogram) }
