package janitor

import (
	"maps"
	"strconv"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// PlanJSON is a plan as commands and the API give it: ids are text, times RFC
// 3339, durations seconds.
type PlanJSON struct {
	Task          string        `json:"task"`
	Ledger        string        `json:"ledger"`
	Action        string        `json:"action"`
	MySQL         string        `json:"mysql"`
	RetainSeconds float64       `json:"retain_seconds"`
	At            *time.Time    `json:"at"`
	Cutoff        *time.Time    `json:"cutoff"`
	Enabled       bool          `json:"enabled"`
	Opens         *time.Time    `json:"window_opens"`
	Tables        []TableJSON   `json:"tables"`
	Forecast      ForecastJSON  `json:"forecast"`
	Checks        []CheckJSON   `json:"checks"`
	Refusals      []RefusalJSON `json:"refusals"`
	Unread        string        `json:"unreadable"`
}

// ForecastJSON is what can be told of the days to come, all of it estimated;
// null is what nobody knows.
type ForecastJSON struct {
	RowsPerDay    *float64 `json:"rows_per_day_reaching_cutoff"`
	RowsPerSecond *float64 `json:"measured_rows_per_second"`
	Seconds       *float64 `json:"run_seconds"`
	PerWindow     *int64   `json:"rows_per_window"`
	Windows       *float64 `json:"windows_until_done"`
	BinlogBytes   *int64   `json:"binlog_bytes"`
	Behind        bool     `json:"falling_behind"`
}

func (f Forecast) json() (j ForecastJSON) {
	if j.Behind = f.Behind(); f.PerDayKnown {
		j.RowsPerDay = &f.PerDay
	}
	if f.Pace > 0 {
		j.RowsPerSecond, j.Seconds = &f.Pace, new(f.Takes.Seconds())
	}
	if f.PerWindow > 0 {
		j.PerWindow = &f.PerWindow
	}
	if f.Windows > 0 {
		j.Windows = &f.Windows
	}
	if f.BinlogKnown {
		j.BinlogBytes = &f.Binlog
	}
	return j
}

// TableJSON is the part of a plan about one table. Counts of rows that stay are
// null unless they were counted.
type TableJSON struct {
	Table      string                `json:"table"`
	Archive    string                `json:"archive"`
	Schema     string                `json:"schema_hash"`
	FirstID    string                `json:"first_id"`
	LastID     string                `json:"last_id"`
	HighestID  string                `json:"highest_id"`
	Exact      bool                  `json:"exact"`
	Rows       int64                 `json:"rows"`
	Candidates int64                 `json:"candidates"`
	Stay       map[ledger.Kind]int64 `json:"stay"`
	Processing int64                 `json:"processing_beyond_retention"`
	PerDay     *float64              `json:"rows_per_day_reaching_cutoff"`
	DataBytes  *int64                `json:"data_bytes"`
	IndexBytes *int64                `json:"index_bytes"`
	FreeBytes  *int64                `json:"free_bytes"`
	RowBytes   *int64                `json:"average_row_bytes"`
	Later      int64                 `json:"candidates_behind_younger"`
	Newest     int64                 `json:"candidates_with_highest_id"`
	Batches    int64                 `json:"batches"`
	SQL        []string              `json:"sql"`
}

// CheckJSON is one check, with its result: passed, refused, allowed, not_known or off.
type CheckJSON struct {
	Code   string `json:"code"`
	Result Result `json:"result"`
	Table  string `json:"table"`
	Text   string `json:"text"`
}

// RefusalJSON is one refusal.
type RefusalJSON struct {
	Code  string `json:"code"`
	Table string `json:"table"`
	Text  string `json:"text"`
}

// JSON returns the plan with its sentences in lang.
func (p Plan) JSON(lang flow.Language) PlanJSON {
	out := PlanJSON{
		Task: p.Task, Ledger: p.Ledger, Action: p.Action, MySQL: p.Server, RetainSeconds: p.Retain.Seconds(),
		At: known(p.At), Cutoff: known(p.Cutoff), Enabled: p.Enabled, Opens: known(p.Opens),
		Forecast: p.Forecast.json(), Tables: []TableJSON{}, Checks: []CheckJSON{}, Refusals: []RefusalJSON{}, Unread: p.Unread.In(lang),
	}
	for _, t := range p.Tables {
		one := TableJSON{
			Table: t.Table, Archive: t.Archive, Schema: t.Schema, FirstID: id(t.Bounds.First), LastID: id(t.Bounds.Last), HighestID: id(t.Bounds.Top),
			Exact: t.Exact, Rows: t.Rows, Candidates: t.Candidates, Stay: t.Stay, Later: t.Later, Newest: t.Newest,
			Batches: t.Batches, SQL: append([]string{}, t.SQL...), Processing: t.Processing(),
		}
		if t.PerDayKnown {
			one.PerDay = &t.PerDay
		}
		if t.Sized {
			one.DataBytes, one.IndexBytes, one.FreeBytes, one.RowBytes = &t.Footprint.Data, &t.Footprint.Index, &t.Footprint.Free, &t.Footprint.Row
		}
		out.Tables = append(out.Tables, one)
	}
	for _, c := range p.Checks {
		out.Checks = append(out.Checks, CheckJSON{Code: c.Code, Result: c.Result, Table: c.Table, Text: c.Text.In(lang)})
	}
	for _, r := range p.Refusals {
		out.Refusals = append(out.Refusals, RefusalJSON{Code: r.Code, Table: r.Table, Text: r.Text.In(lang)})
	}
	return out
}

// ReportJSON is what a run did.
type ReportJSON struct {
	Task        string            `json:"task"`
	Ended       Ended             `json:"ended"`
	Why         string            `json:"why"`
	Rows        int64             `json:"rows"`
	Began       time.Time         `json:"began"`
	TookSeconds float64           `json:"took_seconds"`
	Tables      []TableReportJSON `json:"tables"`
	Plan        PlanJSON          `json:"plan"`
}

// TableReportJSON is what a run did with one table.
type TableReportJSON struct {
	Table            string             `json:"table"`
	Archive          string             `json:"archive"`
	Rows             int64              `json:"rows"`
	Stayed           map[string]int64   `json:"stayed"`
	ReachedID        string             `json:"reached_id"`
	Batches          int                `json:"batches"`
	Retries          int                `json:"retries"`
	Unconfirmed      int64              `json:"unconfirmed"`
	ThrottledSeconds map[Reason]float64 `json:"throttled_seconds"`
	TookSeconds      float64            `json:"took_seconds"`
}

// JSON returns the report with its sentences in lang.
func (r Report) JSON(lang flow.Language) ReportJSON {
	out := ReportJSON{
		Task: r.Task, Ended: r.Ended, Why: r.Why.In(lang), Rows: r.Gone(), Began: r.Began, TookSeconds: r.Took.Seconds(),
		Tables: []TableReportJSON{}, Plan: r.Plan.JSON(lang),
	}
	for _, t := range r.Tables {
		throttled := map[Reason]float64{}
		for reason, d := range t.Throttled {
			throttled[reason] = d.Seconds()
		}
		out.Tables = append(out.Tables, TableReportJSON{
			Table: t.Table, Archive: t.Archive, Rows: t.Gone, Stayed: maps.Clone(t.Stayed), ReachedID: id(t.Reached),
			Batches: t.Batches, Retries: t.Retries, Unconfirmed: t.Unconfirmed, ThrottledSeconds: throttled, TookSeconds: t.Took.Seconds(),
		})
	}
	return out
}

func id(n uint64) string { return strconv.FormatUint(n, 10) }

// known leaves out a time that nobody knows.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
