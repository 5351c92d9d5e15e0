package janitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/ledger"
)

// Reasons for which rows stay, beside those of ledger.Kind.
const (
	// reasonLocked: somebody held the row for so long that it was left for the next run.
	reasonLocked = "locked"
	// reasonExpired: the row was older than the retention.
	reasonExpired = "expired"
)

// Metrics count what the tasks do. They outlive a configuration, as counters must.
type Metrics struct {
	rows      *prometheus.CounterVec
	batches   *prometheus.HistogramVec
	throttled *prometheus.CounterVec
	backlog   *prometheus.GaugeVec
	success   *prometheus.GaugeVec
	running   *prometheus.GaugeVec
	enabled   *prometheus.GaugeVec
	declared  map[string]bool
}

// NewMetrics makes metrics without a series.
func NewMetrics() *Metrics {
	return &Metrics{
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "idem_janitor_rows_total",
			Help: "Rows of MySQL tables that the janitor deleted or archived (reason expired), or looked at and left (action skipped): a row that stays counts again with every run. " +
				"Rows whose commit was never confirmed are not counted."}, []string{"task", "action", "reason"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "idem_janitor_batch_duration_seconds",
			Help:    "Duration of the janitor's transactions: for how long one can hold up a consumer. The target is 25 ms.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"task"}),
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "idem_janitor_throttled_seconds_total",
			Help: "Time for which the janitor held a task up, by reason. The pauses between batches, which take as long as the work, are not among it. " +
				"Reason window: the last run ended with its window, rows were left, and the next window has not opened."}, []string{"task", "reason"}),
		backlog: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idem_janitor_backlog_rows",
			Help: "Completed rows beyond the retention that are still in the MySQL tables, estimated from samples of the id range. Absent until it was estimated."}, []string{"task"}),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idem_janitor_last_success_timestamp_seconds",
			Help: "Unix time at which a run of the task last came to its end, by this process's clock; 0 when none has since the process started."}, []string{"task"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idem_janitor_running",
			Help: "1 while this process cleans the tables of the task, else 0."}, []string{"task"}),
		enabled: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idem_janitor_enabled",
			Help: "1 when this process runs the task by itself in its window (cleanup.tasks.NAME.enabled), else 0: then it runs by hand only."}, []string{"task"}),
		declared: map[string]bool{},
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.rows, m.batches, m.throttled, m.backlog, m.success, m.running, m.enabled}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}

// declare gives every task its series, and takes those of tasks that are gone.
func (m *Metrics) declare(tasks []Task) {
	now := map[string]bool{}
	for _, t := range tasks {
		now[t.Name] = true
		m.rows.WithLabelValues(t.Name, "deleted", reasonExpired)
		m.rows.WithLabelValues(t.Name, "archived", reasonExpired)
		for _, kind := range ledger.Kinds {
			if kind != ledger.Candidate {
				m.rows.WithLabelValues(t.Name, "skipped", string(kind))
			}
		}
		m.rows.WithLabelValues(t.Name, "skipped", reasonLocked)
		m.batches.WithLabelValues(t.Name)
		for _, reason := range reasons {
			m.throttled.WithLabelValues(t.Name, string(reason))
		}
		m.success.WithLabelValues(t.Name)
		m.running.WithLabelValues(t.Name)
		enabled := 0.0
		if t.Enabled {
			enabled = 1
		}
		m.enabled.WithLabelValues(t.Name).Set(enabled)
	}
	for name := range m.declared {
		if !now[name] {
			m.forget(name)
		}
	}
	m.declared = now
}

func (m *Metrics) forget(task string) {
	label := prometheus.Labels{"task": task}
	m.rows.DeletePartialMatch(label)
	m.batches.DeletePartialMatch(label)
	m.throttled.DeletePartialMatch(label)
	for _, gauge := range []*prometheus.GaugeVec{m.backlog, m.success, m.running, m.enabled} {
		gauge.DeletePartialMatch(label)
	}
}

// gone counts rows that were deleted or archived.
func (m *Metrics) gone(t *Task, rows int64) {
	action := "deleted"
	if t.archives() {
		action = "archived"
	}
	m.rows.WithLabelValues(t.Name, action, reasonExpired).Add(float64(rows))
}

// stayed counts rows that were left.
func (m *Metrics) stayed(t *Task, reason string, rows int64) {
	m.rows.WithLabelValues(t.Name, "skipped", reason).Add(float64(rows))
}

func (m *Metrics) heldUp(t *Task, reason Reason, d time.Duration) {
	m.throttled.WithLabelValues(t.Name, string(reason)).Add(d.Seconds())
}
