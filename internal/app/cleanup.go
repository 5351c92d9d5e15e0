package app

import (
	"context"

	"idemscope/console"
	"idemscope/internal/ledger"
	"idemscope/janitor"
)

// cleanupDesk shows the janitor to the console.
type cleanupDesk struct{ *janitor.Janitor }

// offered is what the console gets; nil without a task.
func (d *cleanupDesk) offered(tasks int) console.Cleanup {
	if tasks == 0 {
		return nil
	}
	return d
}

// Tasks tells where each task stands.
func (d *cleanupDesk) Tasks() (tasks []console.CleanupTask) {
	for _, s := range d.Status() {
		t := console.CleanupTask{
			Name: s.Task, Ledger: s.Ledger, Action: s.Action, Server: s.Server, Tables: s.Tables, Retain: s.Retain, State: string(s.State), Why: s.Why,
			Enabled: s.Enabled, Opens: s.Opens, Closes: s.Closes, StopFile: s.StopFile,
		}
		if r := s.Run; r != nil {
			t.Run = &console.CleanupProgress{
				Began: r.Began, By: string(r.By), Table: r.Table, Number: r.Number, Tables: r.Tables, Rows: r.Rows, Planned: r.Planned,
				Share: r.Share, PerSecond: r.PerSecond, Left: r.Left, Hold: string(r.Hold),
			}
		}
		if s.Plan != nil {
			t.Plan = cleanupPlan(*s.Plan)
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func cleanupPlan(p janitor.Plan) *console.CleanupPlan {
	out := &console.CleanupPlan{Made: p.Made, Cutoff: p.Cutoff, Exact: len(p.Tables) > 0, Unread: p.Unread, Forecast: cleanupForecast(p)}
	kept := ledger.Tally{}
	for _, t := range p.Tables {
		out.Exact = out.Exact && t.Exact
		out.Rows, out.Candidates, out.Batches = out.Rows+t.Rows, out.Candidates+t.Candidates, out.Batches+t.Batches
		kept.Add(t.Kept)
		out.Tables = append(out.Tables, console.CleanupTable{
			Name: t.Table, Archive: t.Archive, Candidates: t.Candidates, Sized: t.Sized,
			Data: t.Footprint.Data, Index: t.Footprint.Index, Free: t.Footprint.Free, SQL: t.SQL,
		})
	}
	out.Processing = kept[ledger.InProcessing]
	for _, kind := range ledger.Kinds {
		if kept[kind] > 0 {
			out.Kept = append(out.Kept, console.CleanupKept{Kind: string(kind), Why: janitor.KindText(kind), Rows: kept[kind]})
		}
	}
	for _, c := range p.Checks {
		out.Checks = append(out.Checks, console.CleanupCheck{Code: c.Code, Result: string(c.Result), Word: c.Result.Word(), Text: c.Text})
	}
	for _, r := range p.Refusals {
		out.Refusals = append(out.Refusals, console.CleanupRefusal{Code: r.Code, Text: r.Text})
	}
	return out
}

func cleanupForecast(p janitor.Plan) console.CleanupForecast {
	f := p.Forecast
	out := console.CleanupForecast{Behind: f.Behind(), Notes: p.Note()}
	if f.PerDayKnown {
		out.PerDay = &f.PerDay
	}
	if f.Pace > 0 {
		out.PerSecond, out.Takes = &f.Pace, &f.Takes
	}
	if f.PerWindow > 0 {
		out.PerWindow = &f.PerWindow
	}
	if f.BinlogKnown {
		out.BinlogBytes = &f.Binlog
	}
	return out
}

// Runs lists the runs of the past.
func (d *cleanupDesk) Runs(limit int) (runs []console.CleanupRun) {
	for _, e := range d.Recent(limit) {
		run := console.CleanupRun{
			Task: e.Task, Table: e.Table, Archive: e.Archive, Began: e.Began, Ended: e.Ended, Rows: e.Rows, Batches: e.Batches,
			End: string(e.End), Why: e.Why(), By: string(e.By),
		}
		if e.Cutoff != nil {
			run.Cutoff = *e.Cutoff
		}
		runs = append(runs, run)
	}
	return runs
}

// Replan makes the plan of a task anew, from samples.
func (d *cleanupDesk) Replan(ctx context.Context, task string) error {
	_, err := d.Plan(ctx, task, false)
	return err
}
