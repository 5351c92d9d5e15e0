package janitor

import (
	"context"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Plan is what a run of a task would do.
type Plan struct {
	Task, Ledger, Action, Server string
	Retain                       time.Duration
	// Made is when the plan was made, by this machine's clock.
	Made time.Time
	// At is the database's clock, and Cutoff the time before which records must
	// have changed last, to the second. Both are zero when the server was not read.
	At, Cutoff time.Time
	Tables     []TablePlan
	// Binlog is the format in which the server logs changes; empty when it logs none.
	Binlog string
	// Forecast is what can be told of the days to come.
	Forecast Forecast
	// Checks are all that was asked before a run, with the answers.
	Checks []Check
	// Refusals speak against the run; none means that it may begin.
	Refusals []Refusal
	// accepted: somebody wants the run however large it is.
	accepted bool
	// Unread says what could not be read; empty when all was.
	Unread flow.Text
	// Enabled: the service runs the task; Opens is when its window next does, by
	// this machine's clock, zero without a window.
	Enabled bool
	Opens   time.Time
}

// TablePlan is the part of a plan about one table.
type TablePlan struct {
	Table, Archive string
	// Schema is the hash of what the table is like.
	Schema string
	Bounds ledger.Bounds
	// Exact: every row was counted. Else the numbers are estimated from samples.
	Exact bool
	// Rows is how many rows a run looks at, and Candidates how many of them go.
	Rows, Candidates int64
	// Stay has the rows of the whole table that stay, by kind. Exact plans only.
	Stay ledger.Tally
	// Later is how many rows could go and stand behind younger ones: a later run
	// finds them. Newest is 1 when the row with the highest id could go: it never
	// does. Exact plans only.
	Later, Newest int64
	// Kept has those of the rows that a run looks at that stay, by kind. Estimated
	// like Rows, so a sample may have missed the few that there are.
	Kept ledger.Tally
	// PerDay is how many rows a day reach the cutoff in the next days, estimated;
	// valid when PerDayKnown.
	PerDay      float64
	PerDayKnown bool
	// Footprint is the room that the table takes; valid when Sized.
	Footprint ledger.Footprint
	Sized     bool
	// Batches is how many transactions a run needs at most, with full batches.
	Batches int64
	// SQL is what each batch runs, here over the whole range.
	SQL []string
}

// Plan makes the plan of one task. It changes nothing. exact counts every row of
// the tables, which reads them whole; else samples are taken. What could not be
// read is part of the plan.
func (j *Janitor) Plan(ctx context.Context, task string, exact bool) (Plan, error) {
	t, err := j.task(task)
	if err != nil {
		return Plan{}, err
	}
	return j.plan(ctx, t, exact), nil
}

// plan makes the plan and pins it to the board.
func (j *Janitor) plan(ctx context.Context, t *Task, exact bool) Plan {
	p := j.newPlan(ctx, t, exact)
	if ctx.Err() == nil {
		p.Made = j.now()
		j.board.change(t.Name, func(pinned *pinned) { pinned.plan = &p })
	}
	return p
}

func (j *Janitor) newPlan(ctx context.Context, t *Task, exact bool) Plan {
	p := Plan{Task: t.Name, Ledger: t.Ledger, Action: t.action(), Server: t.server(), Retain: t.Retain, Enabled: t.Enabled, accepted: j.acceptSize}
	if !t.Window.None() {
		p.Opens = t.Window.Opens(j.now())
	}
	state, err := t.Tables[0].State(ctx)
	if err != nil {
		p.answer(t.askAct())
		p.Unread = ledger.Explain(err)
		return p
	}
	p.At, p.Cutoff = state.DBNow, state.DBNow.Add(-t.Retain).Truncate(time.Second)
	p.Binlog = state.Binlog
	for _, a := range t.ask(state) {
		p.answer(a)
	}
	p.inQueues(ctx, t)
	for _, table := range t.Tables {
		if err := p.add(ctx, t, table, exact); err != nil {
			p.Unread = flow.T("%s: %s", "%s：%s", table.Name(), ledger.Explain(err))
			return p
		}
	}
	past := j.recent()
	for _, table := range p.Tables {
		p.plausible(t, table, past)
	}
	j.metrics.backlog.WithLabelValues(t.Name).Set(float64(p.Candidates()))
	j.forecast(t, &p)
	return p
}

// Processing is how many of the rows that a run looks at are in processing,
// beyond the retention: a person decides on them.
func (t TablePlan) Processing() int64 { return t.Kept[ledger.InProcessing] }

// Candidates is how many rows of all tables go.
func (p Plan) Candidates() (n int64) {
	for _, t := range p.Tables {
		n += t.Candidates
	}
	return n
}

// add plans one table. One that must not be cleaned is not read any further.
func (p *Plan) add(ctx context.Context, t *Task, table *ledger.SweepTable, exact bool) error {
	obstacles, err := table.Obstacles(ctx)
	if err != nil {
		return err
	}
	p.likeTable(table, obstacles)
	hash, err := table.Fingerprint(ctx)
	if err != nil {
		return err
	}
	p.likeBefore(t, table.Name(), hash)
	plan := TablePlan{Table: table.Name(), Archive: table.Archive(), Schema: hash, Exact: exact}
	defer func() { p.Tables = append(p.Tables, plan) }()
	if unwalkable(obstacles) {
		return nil
	}
	if plan.Bounds, err = table.Bounds(ctx, p.Cutoff); err != nil {
		return err
	}
	if plan.SQL, err = table.SQL(ctx, plan.visit(), p.Cutoff); err != nil {
		return err
	}
	count := plan.estimate
	if exact {
		count = plan.count
	}
	if err := count(ctx, table, p.Cutoff); err != nil {
		return err
	}
	plan.Batches = (plan.Rows + int64(t.Batch) - 1) / int64(t.Batch)
	if err := plan.ahead(ctx, table, p.Cutoff, t.Retain); err != nil {
		return err
	}
	// What cannot be told of the size keeps no run back.
	plan.Footprint, plan.Sized, _ = table.Footprint(ctx)
	return nil
}

// unwalkable reports whether the obstacles keep the rows from being counted, too.
func unwalkable(obstacles []ledger.Obstacle) bool {
	for _, o := range obstacles {
		switch o.Code {
		case "no_integer_key", "no_time_column":
			return true
		}
	}
	return false
}

// visit is the range that a run walks.
func (p *TablePlan) visit() ledger.Range {
	after := max(p.Bounds.First, 1) - 1
	return ledger.Range{After: after, To: max(p.Bounds.Last, after)}
}

const (
	// countRows is how many rows one statement counts.
	countRows = 5000
	// segments and sampleRows are how finely a large table is sampled, and
	// sampleAbove is from how many ids on it is.
	segments    = 32
	sampleRows  = 250
	sampleAbove = 20_000
)

// count looks at every row of the table.
func (p *TablePlan) count(ctx context.Context, table *ledger.SweepTable, cutoff time.Time) error {
	visited, err := countAll(ctx, table, p.visit(), cutoff)
	if err != nil {
		return err
	}
	visit, top := p.visit(), max(p.Bounds.Top, 1)
	behind, err := countAll(ctx, table, ledger.Range{After: visit.To, To: max(top-1, visit.To)}, cutoff)
	if err != nil {
		return err
	}
	newest, err := countAll(ctx, table, ledger.Range{After: max(top-1, visit.To), To: p.Bounds.Top}, cutoff)
	if err != nil {
		return err
	}
	p.Rows, p.Candidates, p.Kept = visited.Total(), visited[ledger.Candidate], ledger.Tally{}
	p.Kept.Add(visited)
	delete(p.Kept, ledger.Candidate)
	p.Later, p.Newest = behind[ledger.Candidate], newest[ledger.Candidate]
	p.Stay = ledger.Tally{}
	for _, part := range []ledger.Tally{visited, behind, newest} {
		p.Stay.Add(part)
	}
	delete(p.Stay, ledger.Candidate)
	return nil
}

func countAll(ctx context.Context, table *ledger.SweepTable, within ledger.Range, cutoff time.Time) (ledger.Tally, error) {
	all := ledger.Tally{}
	for within.After < within.To {
		tally, seen, err := table.Count(ctx, within, countRows, cutoff)
		if err != nil {
			return nil, err
		}
		all.Add(tally)
		within.After = seen.To
	}
	return all, nil
}

// estimate looks at some rows in each of many equal parts of the range.
func (p *TablePlan) estimate(ctx context.Context, table *ledger.SweepTable, cutoff time.Time) error {
	kinds, err := sampled(ctx, table, p.visit(), segments, cutoff)
	var rows float64
	p.Kept = ledger.Tally{}
	for kind, n := range kinds {
		rows += n
		if kind != ledger.Candidate {
			p.Kept[kind] = int64(n)
		}
	}
	p.Rows, p.Candidates = int64(rows), int64(kinds[ledger.Candidate])
	return err
}
