package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	ofTask = `{task=~"$task"}`
	// gone are the rows that a task took out of its tables.
	gone = `idem_janitor_rows_total{task=~"$task",action=~"deleted|archived"}`
	// batchTarget is what a transaction of the janitor is to take at most, in seconds.
	batchTarget = 0.025
)

// cleanup shows what the janitor does: what goes and what stays, how long it holds others up and what holds it up.
func cleanup() *builder {
	d := frame(cleanupUID, "idemscope / Cleanup", "The cleanup of completed records: whether it runs, what goes, what stays and why, and what waits.").
		WithVariable(all(choice("task", "Task", `label_values(idem_janitor_running, task)`, ""))).
		WithVariable(console())
	cleanupNow(d)
	rowsOfTasks(d)
	batches(d)
	return d
}

func cleanupNow(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Now")).
		WithPanel(figure(about{"Tasks that run", "Tasks whose tables are being cleaned at this moment.", number, 4},
			alarm{}, query{`sum(idem_janitor_running` + ofTask + `)`, ""})).
		WithPanel(figure(about{"Longest since a complete run", "Time since a run came to its end, for the task for which it is longest; tasks without one since the start are left out.", seconds, 5},
			from(108000, 172800), query{`max(` + sinceComplete + `)`, ""}).NoValue("none since the start")).
		WithPanel(figure(about{"Tasks without a complete run", "Since idemscope started. Tasks that it does not run on a schedule (enabled: false) are always among them.", number, 5},
			alarm{}, query{`sum(idem_janitor_last_success_timestamp_seconds` + ofTask + ` == bool 0)`, ""})).
		WithPanel(figure(about{"Backlog", "Completed rows beyond the retention that are still there, estimated.", number, 5},
			alarm{}, query{`sum(idem_janitor_backlog_rows` + ofTask + `)`, ""})).
		WithPanel(figure(about{"Gone in 24 hours", "Rows deleted or archived.", number, 5},
			alarm{}, query{`sum(increase(` + gone + `[24h]))`, ""}))
}

// sinceComplete has one series per task that has come to its end since the start.
const sinceComplete = `time() - max by (task) (idem_janitor_last_success_timestamp_seconds` + ofTask + ` > 0)`

func rowsOfTasks(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Rows")).
		WithPanel(lines(about{"Rows that go", "Per second, deleted or archived.", perSecond, 8},
			query{`sum by (task, action) (rate(` + gone + `[$__rate_interval]))`, "{{task}} {{action}}"})).
		WithPanel(lines(about{"Rows that stay", "Rows per second that a run looked at and left, with the reason; they count again with every run.", perSecond, 8},
			query{`sum by (task, reason) (rate(idem_janitor_rows_total{task=~"$task",action="skipped"}[$__rate_interval]))`, "{{task}} {{reason}}"})).
		WithPanel(lines(about{"Backlog", "Completed rows beyond the retention that are still there, estimated from samples of the id range. What does not come back to 0 after a run falls behind.", number, 8},
			query{`sum by (task) (idem_janitor_backlog_rows` + ofTask + `)`, "{{task}}"}))
}

func batches(d *builder) {
	d.WithRow(dashboard.NewRowBuilder("Runs and batches")).
		WithPanel(marked(lines(about{"Duration of a batch", "P50, P95 and P99 of the transactions, while a run goes on: for so long one can hold up a consumer. The dashed line is the target of 25 ms.", seconds, 8},
			query{batchQuantile("0.5"), "P50 {{task}}"},
			query{batchQuantile("0.95"), "P95 {{task}}"},
			query{batchQuantile("0.99"), "P99 {{task}}"}), orangeFrom(batchTarget))).
		WithPanel(lines(about{"Batches above the target", "Share of the transactions that took more than 25 ms, while a run goes on.", share, 8},
			query{`1 - sum by (task) (rate(idem_janitor_batch_duration_seconds_bucket{task=~"$task",le="0.025"}[$__rate_interval])) / sum by (task) (rate(idem_janitor_batch_duration_seconds_count` + ofTask + `[$__rate_interval]))`, "{{task}}"}).Max(1)).
		WithPanel(stacked(lines(about{"Held up", "Share of the time for which a task was held up, by reason. window: rows were left, and the next window has not opened.", share, 8},
			query{`sum by (task, reason) (rate(idem_janitor_throttled_seconds_total` + ofTask + `[$__rate_interval]))`, "{{task}} {{reason}}"}))).
		WithPanel(lines(about{"Runs", "1 while the tables of the task are being cleaned.", number, 12},
			query{`max by (task) (idem_janitor_running` + ofTask + `)`, "{{task}}"}).Max(1)).
		WithPanel(marked(lines(about{"Time since a complete run", "A run that ends with its window, with a limit of its own or with an error does not count.", seconds, 12},
			query{sinceComplete, "{{task}}"}), redFrom(172800)))
}

func batchQuantile(q string) string {
	return `histogram_quantile(` + q + `, sum by (task, le) (rate(idem_janitor_batch_duration_seconds_bucket` + ofTask + `[$__rate_interval])))`
}
