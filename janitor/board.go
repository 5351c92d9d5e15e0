package janitor

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// State is where a task stands.
type State string

// The states.
const (
	// Running: batches are at work. HeldUp: the run waits for the server or its replicas.
	Running State = "running"
	HeldUp  State = "throttled"
	// Waiting: the window is closed, or about to be used. Resting: the run of this
	// window has come to its end.
	Waiting State = "waiting_for_window"
	Resting State = "idle"
	// ByHand: the service does not run the task.
	ByHand State = "not_enabled"
	// Halted: a stop file, or an operator, holds it up.
	Halted State = "stopped"
	// Barred: the plan refuses a run. Broken: the last run failed.
	Barred State = "refused"
	Broken State = "failed"
)

// Status is where a task stands, from memory.
type Status struct {
	Task, Ledger, Action, Server string
	Tables                       []string
	Retain                       time.Duration
	State                        State
	// Why says more; empty when the state says all.
	Why     flow.Text
	Enabled bool
	// Opens and Closes are the present window, or the next; zero without one.
	Opens, Closes time.Time
	StopFile      string
	// Run is the run at work; nil when there is none.
	Run *Progress
	// Plan is the last one; nil before the first.
	Plan *Plan
}

// Progress is how far a run is.
type Progress struct {
	Began time.Time
	By    By
	// Table is at work, the Number-th of Tables.
	Table          string
	Number, Tables int
	// Rows are gone, in Batches; Planned is how many were to go, estimated.
	Rows, Planned int64
	Batches       int
	// Share is the part of the ids that was walked, 0 to 1.
	Share float64
	// PerSecond is how many rows went in each of the last seconds.
	PerSecond float64
	// Left is the time to the end at this pace; 0 when it cannot be told yet.
	Left time.Duration
	// Hold is why it waits at this moment; empty when it does not.
	Hold     Reason
	HoldText flow.Text
}

// rateSpan is the time over which the pace of a run is taken.
const rateSpan = 30 * time.Second

// mark is how far a run was at one time.
type mark struct {
	at   time.Time
	rows int64
}

// run is a run at work, with what its progress is made of.
type run struct {
	Progress
	cancel context.CancelFunc
	// total and before are ids: of all tables, and of those that are done.
	total, before float64
	marks         []mark
	stoppedBy     string
	told          bool
}

// board is what is known of every task at this moment.
type board struct {
	mu    sync.Mutex
	tasks map[string]*pinned
}

// pinned is what the board has of one task.
type pinned struct {
	run  *run
	plan *Plan
	// last is how the last run of this process ended; zero before the first.
	last ending
	// rested names the night whose run has come to its end, halted the one in
	// which an operator wanted none.
	rested, halted string
	haltedBy       string
}

func (b *board) of(task string) *pinned {
	if b.tasks == nil {
		b.tasks = map[string]*pinned{}
	}
	p := b.tasks[task]
	if p == nil {
		p = &pinned{}
		b.tasks[task] = p
	}
	return p
}

// change runs do with what is pinned of the task.
func (b *board) change(task string, do func(*pinned)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do(b.of(task))
}

// begin notes that a run has begun.
func (b *board) begin(t *Task, by By, now time.Time, cancel context.CancelFunc) {
	b.change(t.Name, func(p *pinned) {
		p.run = &run{Progress: Progress{Began: now, By: by, Tables: len(t.Tables)}, cancel: cancel}
		if by == BySchedule && p.halted != "" && t.Window.Open(now) && p.halted == t.Window.Night(now) {
			// Told to stop between the look at the clock and now.
			p.run.told, p.run.stoppedBy = true, p.haltedBy
			cancel()
		}
	})
}

// planned notes what the run is about to do.
func (b *board) planned(task string, plan Plan) {
	b.change(task, func(p *pinned) {
		if p.run == nil {
			return
		}
		p.run.Planned = plan.Candidates()
		for _, table := range plan.Tables {
			visit := table.visit()
			p.run.total += float64(visit.To - visit.After)
		}
	})
}

// table notes that the run has come to its next table.
func (b *board) table(task, name string, done ledger.Range) {
	b.change(task, func(p *pinned) {
		if p.run != nil {
			p.run.Table, p.run.Number = name, p.run.Number+1
			p.run.before += float64(done.To - done.After)
		}
	})
}

// walked notes how far the run is.
func (b *board) walked(task string, rows int64, batches int, ids uint64, now time.Time) {
	b.change(task, func(p *pinned) {
		r := p.run
		if r == nil {
			return
		}
		r.Rows, r.Batches = r.Rows+rows, r.Batches+batches
		if r.total > 0 {
			r.Share = min((r.before+float64(ids))/r.total, 1)
		}
		if n := len(r.marks); n == 0 || now.Sub(r.marks[n-1].at) >= time.Second {
			r.marks = append(r.marks, mark{now, r.Rows})
		}
		for len(r.marks) > 2 && now.Sub(r.marks[0].at) > rateSpan {
			r.marks = r.marks[1:]
		}
	})
}

// held notes why the run waits; nil when it does not any more.
func (b *board) held(task string, h *hold) {
	b.change(task, func(p *pinned) {
		switch {
		case p.run == nil:
		case h == nil:
			p.run.Hold, p.run.HoldText = "", flow.Text{}
		default:
			p.run.Hold, p.run.HoldText = h.reason, h.text
		}
	})
}

// end notes how the run ended.
func (b *board) end(task string, r Report) {
	b.change(task, func(p *pinned) { p.run, p.last = nil, ending{r.Ended, r.Why} })
}

// progress makes a copy with pace and remaining time.
func (r *run) progress(now time.Time) *Progress {
	p := r.Progress
	if n := len(r.marks); n > 0 {
		since, rows := r.marks[0].at, r.marks[0].rows
		if n == 1 {
			since, rows = r.Began, 0
		}
		if d := now.Sub(since); d > 0 {
			p.PerSecond = float64(r.Rows-rows) / d.Seconds()
		}
	}
	if elapsed := now.Sub(r.Began); p.Share > 0.01 && elapsed > time.Second {
		p.Left = time.Duration(float64(elapsed) * (1 - p.Share) / p.Share).Round(time.Second)
	}
	return &p
}

// Status tells where every task stands, in the order of the configuration. It
// asks no server.
func (j *Janitor) Status() []Status {
	now := j.now()
	all := make([]Status, 0, len(j.tasks))
	for i := range j.tasks {
		all = append(all, j.statusOf(&j.tasks[i], now))
	}
	return all
}

func (j *Janitor) statusOf(t *Task, now time.Time) Status {
	s := Status{Task: t.Name, Ledger: t.Ledger, Action: t.action(), Server: t.server(), Retain: t.Retain, Enabled: t.Enabled, StopFile: t.StopFile}
	for _, table := range t.Tables {
		s.Tables = append(s.Tables, table.Name())
	}
	if !t.Window.None() {
		s.Opens, s.Closes = t.Window.present(now)
	}
	stopped := t.stopped()
	j.board.change(t.Name, func(p *pinned) {
		s.Plan = p.plan
		if p.run != nil {
			s.Run = p.run.progress(now)
		}
		s.State, s.Why = p.state(t, now, stopped)
	})
	return s
}

// state tells where the task stands, the most pressing first.
func (p *pinned) state(t *Task, now time.Time, stopped bool) (State, flow.Text) {
	night := ""
	if t.Window.Open(now) {
		night = t.Window.Night(now)
	}
	switch {
	case p.run != nil && p.run.Hold != "":
		return HeldUp, p.run.HoldText
	case p.run != nil:
		return Running, flow.Text{}
	case stopped:
		return Halted, flow.T("the stop file %s exists; remove it to let the task run", "停止文件 %s 存在；删除后任务才会运行", t.StopFile)
	case night != "" && p.halted == night:
		return Halted, flow.T("%s stopped it for this window", "%s 已停止本次窗口的运行", p.haltedBy)
	case p.plan != nil && len(p.plan.Refusals) > 0:
		return Barred, p.plan.Refusals[0].Text
	case p.last.ended == Failed || p.last.ended == Unread || p.last.ended == Throttled || p.last.ended == IsCritical || p.last.ended == Refused || p.last.ended == Taken:
		return Broken, p.last.why
	case !t.Enabled:
		return ByHand, flow.Text{}
	case night != "" && p.rested == night:
		return Resting, flow.Text{}
	}
	return Waiting, flow.Text{}
}

// Stop ends the run of a task that is at work, and lets the schedule begin none
// before the next window. With a stop file, that is written, too: then the task
// does not run before somebody removes it. who is shown; error: there is no such
// task, or the file cannot be written (the run is ended all the same).
func (j *Janitor) Stop(task, who string) error {
	t, err := j.task(task)
	if err != nil {
		return err
	}
	now := j.now()
	j.board.change(task, func(p *pinned) {
		if t.Window.Open(now) {
			p.halted, p.haltedBy = t.Window.Night(now), who
		}
		if p.run != nil {
			p.run.told, p.run.stoppedBy = true, who
			p.run.cancel()
		}
	})
	j.log.Warn("cleanup is stopped by an operator", "task", task, "who", who)
	if t.StopFile == "" {
		return nil
	}
	text := fmt.Sprintf("written by idemscope at %s for %s; remove this file to let the task run\n", now.Format(time.RFC3339), who)
	if err := os.WriteFile(t.StopFile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the stop file: %w", err)
	}
	return nil
}

// stopText says who ended the run.
func (b *board) stopText(task string) flow.Text {
	text := flow.T("the run was told to stop", "运行被要求停止")
	b.change(task, func(p *pinned) {
		if p.run != nil && p.run.told {
			text = flow.T("%s stopped the run", "%s 停止了运行", p.run.stoppedBy)
		}
	})
	return text
}

// haltedIn reports whether an operator wanted no run in this night.
func (b *board) haltedIn(task, night string) (halted bool) {
	b.change(task, func(p *pinned) { halted = p.halted == night })
	return halted
}
