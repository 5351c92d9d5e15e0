package lab

import (
	"fmt"
	"maps"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"idemscope/internal/flow"
)

// figures are values by series, written as in the exposition.
type figures map[string]float64

func sum(a, b figures) figures {
	all := maps.Clone(a)
	for series, n := range b {
		all[series] += n
	}
	return all
}

func difference(a, b figures) figures {
	rest := maps.Clone(a)
	for series, n := range b {
		rest[series] -= n
	}
	return rest
}

// isIn reports that none of f is more than in counted.
func (f figures) isIn(counted figures) bool {
	for series, n := range f {
		if counted[series] < n {
			return false
		}
	}
	return true
}

func (f figures) total() (n float64) {
	for _, value := range f {
		n += value
	}
	return n
}

// flatten gives each series its value; a histogram has one for each bucket, its count and its sum.
func flatten(families map[string]*dto.MetricFamily) figures {
	all := figures{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			series := func(suffix string, more ...string) string {
				return name + suffix + "{" + strings.Join(append(more, labels...), ",") + "}"
			}
			all[series("")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				all[series("_count")], all[series("_sum")] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.GetBucket() {
					all[series("_bucket", fmt.Sprintf("le=%q", fmt.Sprint(b.GetUpperBound())))] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}

// ledgerOf is the ledger of each biz_type that traffic uses.
var ledgerOf = map[string]string{"order_paid": "orders", "refund": "orders", "points_grant": "points", "points_revoke": "points", "sign": "signs"}

// consumed is what the counters of consumers must say.
func consumed(truth Truth) figures {
	want := figures{}
	for bizType, t := range truth {
		of := func(name, rest string, n uint64) {
			want[fmt.Sprintf("%s{biz_type=%q%s}", name, bizType, rest)] = float64(n)
		}
		of("idem_attempts_total", "", t.Deliveries)
		of("idem_lock_conflicts_total", "", t.LockConflict)
		of("idem_dedup_hits_total", `,layer="status"`, t.DedupStatus)
		of("idem_dedup_hits_total", `,layer="record"`, t.DedupRecord)
		of("idem_runs_total", `,outcome="completed"`, t.Completed)
		of("idem_runs_total", `,outcome="failed"`, t.Failed)
		of("idem_retries_total", `,source="consumer"`, t.Retry)
		of("idem_lock_lost_total", "", t.LockLost)
		of("idem_degraded_total", "", t.Degraded)
		of("idem_attempts_open", "", t.Deliveries-t.Ends())
		of("idem_run_duration_seconds_count", "", t.Completed+t.Failed)
		want[fmt.Sprintf("idem_run_duration_seconds_sum{biz_type=%q}", bizType)] = float64(t.MsSum) / 1000
		var below uint64
		for _, ms := range []uint64{5, 10, 25, 50, 100, 250, 500, 1000, 2000, 3000, 4000, 5000, 7500,
			10000, 15000, 20000, 30000, 60000, 120000, 300000} {
			below += t.Runs[fmt.Sprintf("ms_le_%d", ms)]
			want[fmt.Sprintf("idem_run_duration_seconds_bucket{le=%q,biz_type=%q}", fmt.Sprint(float64(ms)/1000), bizType)] = float64(below)
		}
	}
	return want
}

// recorded is what an exporter that always runs would count in the ledgers. Failures of points are not in it: copies of
// a message follow one another so fast there that a failure may be over before it is read. Signs have no status.
func recorded(truth Truth) figures {
	want := figures{}
	for bizType, ledger := range ledgerOf {
		t, labels := truth[bizType], fmt.Sprintf("{biz_type=%q,ledger=%q}", bizType, ledger)
		created := 0
		for _, n := range t.Records {
			created += n
		}
		want["idem_records_created_total"+labels] = float64(created)
		want["idem_records_completed_total"+labels] = float64(t.Records[flow.Completed])
		if ledger == "orders" {
			want["idem_records_failed_total"+labels] = float64(t.Failed)
			want[fmt.Sprintf(`idem_retries_total{biz_type=%q,source="ledger"}`, bizType)] = float64(t.Retry)
		}
	}
	return want
}

// unseen is how many of those may be missing although the exporter runs: a failed record whose retry fails within
// milliseconds looks, from one reading to the next, as if nothing had happened.
func unseen(truth Truth) figures {
	missing := figures{}
	for bizType, ledger := range ledgerOf {
		if ledger == "orders" {
			n := float64(truth[bizType].FailedAgain)
			missing[fmt.Sprintf("idem_records_failed_total{biz_type=%q,ledger=%q}", bizType, ledger)] = n
			missing[fmt.Sprintf(`idem_retries_total{biz_type=%q,source="ledger"}`, bizType)] = n
		}
	}
	return missing
}

// countedNow is what the running exporter has counted in the ledgers.
func (h *hour) countedNow() figures {
	counted := figures{}
	for series, n := range flatten(h.scrape()) {
		name, labels, _ := strings.Cut(series, "{")
		switch name {
		case "idem_records_created_total", "idem_records_completed_total", "idem_records_failed_total", "idem_record_duration_seconds_count":
			counted[series] = n
		case "idem_retries_total":
			if strings.Contains(labels, `source="ledger"`) {
				counted[series] = n
			}
		}
	}
	return counted
}

// compareRecords compares the gauges with the records that are left, the histograms with the counters, and what is never
// exact with its bounds.
func (h *hour) compareRecords(truth Truth, got, counted figures) (faults []string) {
	want := func(series string, value, least, most float64) {
		if value < least || value > most {
			faults = append(faults, fmt.Sprintf("%s is %v, want %v to %v", series, value, least, most))
		}
	}
	for bizType, ledger := range ledgerOf {
		t, labels := truth[bizType], fmt.Sprintf("{biz_type=%q,ledger=%q}", bizType, ledger)
		for _, name := range []string{"idemscope_records_vanished_total", "idem_records_unmapped"} {
			want(name+labels, got[name+labels], 0, 0)
		}
		processing := float64(t.Records[flow.Processing])
		want("idem_records_processing"+labels, got["idem_records_processing"+labels], processing, processing)
		durations := counted["idem_records_completed_total"+labels]
		if ledger == "signs" {
			durations = 0 // they have one time column
		}
		want("idem_record_duration_seconds_count"+labels, counted["idem_record_duration_seconds_count"+labels], durations, durations)
		if ledger == "points" {
			want("idem_records_failed_total"+labels, counted["idem_records_failed_total"+labels], 0, float64(t.Failed))
			retries := fmt.Sprintf(`idem_retries_total{biz_type=%q,source="ledger"}`, bizType)
			want(retries, counted[retries], 0, float64(t.Retry))
		}
	}
	return faults
}

// wantVariety: equal counters prove little unless everything has happened.
func (h *hour) wantVariety() {
	h.t.Helper()
	var all Tally
	for bizType, t := range h.truth.copy() {
		h.t.Logf("%s: %+v", bizType, t)
		all.Deliveries += t.Deliveries
		for _, sums := range []struct {
			all *uint64
			one uint64
		}{{&all.LockConflict, t.LockConflict}, {&all.DedupStatus, t.DedupStatus}, {&all.DedupRecord, t.DedupRecord}, {&all.Completed, t.Completed},
			{&all.Failed, t.Failed}, {&all.Killed, t.Killed}, {&all.Retry, t.Retry}, {&all.LockLost, t.LockLost}} {
			*sums.all += sums.one
		}
	}
	h.t.Logf("%d deliveries, %d records deleted, %d transactions that were late", all.Deliveries, h.deleted.Load(), h.late.Load())
	if all.Deliveries < hourMessages {
		h.t.Errorf("%d deliveries, want %d", all.Deliveries, hourMessages)
	}
	for what, n := range map[string]uint64{"lock conflicts": all.LockConflict, "hits of the status check": all.DedupStatus, "hits of the unique key": all.DedupRecord,
		"completed runs": all.Completed, "failed runs": all.Failed, "killed consumers": all.Killed, "retries": all.Retry, "lost locks": all.LockLost,
		"deleted records": uint64(h.deleted.Load()), "late transactions": uint64(h.late.Load())} {
		if n < 5 {
			h.t.Errorf("only %d %s", n, what)
		}
	}
}
