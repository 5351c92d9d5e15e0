package console

import (
	"time"

	"idemscope/internal/flow"
)

// CleanupJSON is the answer of /api/v1/cleanup.
type CleanupJSON struct {
	Tasks   []CleanupTaskJSON `json:"tasks"`
	History []CleanupRunJSON  `json:"history"`
}

// CleanupTaskJSON is where a task stands, as the API gives it. null is what
// nobody knows.
type CleanupTaskJSON struct {
	Task          string               `json:"task"`
	Ledger        string               `json:"ledger"`
	MySQL         string               `json:"mysql"`
	Action        string               `json:"action"`
	Tables        []string             `json:"tables"`
	RetainSeconds float64              `json:"retain_seconds"`
	State         string               `json:"state"`
	Why           string               `json:"why"`
	Enabled       bool                 `json:"enabled"`
	Opens         *time.Time           `json:"window_opens"`
	Closes        *time.Time           `json:"window_closes"`
	StopFile      string               `json:"stop_file"`
	Run           *CleanupProgressJSON `json:"run"`
	Plan          *CleanupPlanJSON     `json:"plan"`
}

// CleanupProgressJSON is a run at work.
type CleanupProgressJSON struct {
	Began         time.Time `json:"began"`
	By            string    `json:"by"`
	Table         string    `json:"table"`
	TableNumber   int       `json:"table_number"`
	Tables        int       `json:"tables"`
	Rows          int64     `json:"rows"`
	Planned       int64     `json:"rows_planned"`
	Share         float64   `json:"share_done"`
	RowsPerSecond float64   `json:"rows_per_second"`
	SecondsLeft   *float64  `json:"seconds_left"`
	HeldUpBy      string    `json:"held_up_by"`
}

// CleanupPlanJSON is the last plan.
type CleanupPlanJSON struct {
	Made       time.Time            `json:"made"`
	Cutoff     *time.Time           `json:"cutoff"`
	Exact      bool                 `json:"exact"`
	Rows       int64                `json:"rows"`
	Candidates int64                `json:"candidates"`
	Processing int64                `json:"processing_beyond_retention"`
	Batches    int64                `json:"batches"`
	Kept       map[string]int64     `json:"stay"`
	Tables     []CleanupTableJSON   `json:"tables"`
	PerDay     *float64             `json:"rows_per_day_reaching_cutoff"`
	PerSecond  *float64             `json:"measured_rows_per_second"`
	Seconds    *float64             `json:"run_seconds"`
	PerWindow  *int64               `json:"rows_per_window"`
	Binlog     *int64               `json:"binlog_bytes"`
	Behind     bool                 `json:"falling_behind"`
	Checks     []CleanupCheckJSON   `json:"checks"`
	Refusals   []CleanupRefusalJSON `json:"refusals"`
	Unread     string               `json:"unreadable"`
}

// CleanupTableJSON is one table of a plan.
type CleanupTableJSON struct {
	Table      string   `json:"table"`
	Archive    string   `json:"archive"`
	Candidates int64    `json:"candidates"`
	Data       *int64   `json:"data_bytes"`
	Index      *int64   `json:"index_bytes"`
	Free       *int64   `json:"free_bytes"`
	SQL        []string `json:"sql"`
}

// CleanupCheckJSON is one check before a run.
type CleanupCheckJSON struct {
	Code   string `json:"code"`
	Result string `json:"result"`
	Text   string `json:"text"`
}

// CleanupRefusalJSON is why a task must not run.
type CleanupRefusalJSON struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// CleanupRunJSON is a run of the past.
type CleanupRunJSON struct {
	Task    string     `json:"task"`
	Table   string     `json:"table"`
	Archive string     `json:"archive"`
	Began   time.Time  `json:"began"`
	Ended   time.Time  `json:"ended"`
	Rows    int64      `json:"rows"`
	Batches int        `json:"batches"`
	End     string     `json:"end"`
	Why     string     `json:"why"`
	Cutoff  *time.Time `json:"cutoff"`
	By      string     `json:"by"`
}

func newCleanupTaskJSON(t CleanupTask, lang flow.Language) CleanupTaskJSON {
	j := CleanupTaskJSON{
		Task: t.Name, Ledger: t.Ledger, MySQL: t.Server, Action: t.Action, Tables: append([]string{}, t.Tables...), RetainSeconds: t.Retain.Seconds(),
		State: t.State, Why: t.Why.In(lang), Enabled: t.Enabled, Opens: knownTime(t.Opens), Closes: knownTime(t.Closes), StopFile: t.StopFile,
	}
	if p := t.Run; p != nil {
		j.Run = &CleanupProgressJSON{
			Began: p.Began, By: p.By, Table: p.Table, TableNumber: p.Number, Tables: p.Tables, Rows: p.Rows, Planned: p.Planned,
			Share: p.Share, RowsPerSecond: p.PerSecond, HeldUpBy: p.Hold,
		}
		if p.Left > 0 {
			j.Run.SecondsLeft = new(p.Left.Seconds())
		}
	}
	if t.Plan != nil {
		j.Plan = newCleanupPlanJSON(t.Plan, lang)
	}
	return j
}

func newCleanupPlanJSON(p *CleanupPlan, lang flow.Language) *CleanupPlanJSON {
	f := p.Forecast
	j := &CleanupPlanJSON{
		Made: p.Made, Cutoff: knownTime(p.Cutoff), Exact: p.Exact, Rows: p.Rows, Candidates: p.Candidates, Processing: p.Processing, Batches: p.Batches,
		Kept: map[string]int64{}, Tables: []CleanupTableJSON{}, PerDay: f.PerDay, PerSecond: f.PerSecond, PerWindow: f.PerWindow, Binlog: f.BinlogBytes,
		Behind: f.Behind, Checks: []CleanupCheckJSON{}, Refusals: []CleanupRefusalJSON{}, Unread: p.Unread.In(lang),
	}
	if f.Takes != nil {
		j.Seconds = new(f.Takes.Seconds())
	}
	for _, k := range p.Kept {
		j.Kept[k.Kind] = k.Rows
	}
	for _, t := range p.Tables {
		one := CleanupTableJSON{Table: t.Name, Archive: t.Archive, Candidates: t.Candidates, SQL: append([]string{}, t.SQL...)}
		if t.Sized {
			one.Data, one.Index, one.Free = &t.Data, &t.Index, &t.Free
		}
		j.Tables = append(j.Tables, one)
	}
	for _, c := range p.Checks {
		j.Checks = append(j.Checks, CleanupCheckJSON{c.Code, c.Result, c.Text.In(lang)})
	}
	for _, r := range p.Refusals {
		j.Refusals = append(j.Refusals, CleanupRefusalJSON{r.Code, r.Text.In(lang)})
	}
	return j
}

func newCleanupRunJSON(r CleanupRun, lang flow.Language) CleanupRunJSON {
	return CleanupRunJSON{
		Task: r.Task, Table: r.Table, Archive: r.Archive, Began: r.Began, Ended: r.Ended, Rows: r.Rows, Batches: r.Batches,
		End: r.End, Why: r.Why.In(lang), Cutoff: knownTime(r.Cutoff), By: r.By,
	}
}

// knownTime is nil for a time that nobody knows.
func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
