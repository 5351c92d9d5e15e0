package janitor

import (
	"context"
	"sync"
	"time"
)

const (
	// tick is how often the schedule looks at the clock.
	tick = 15 * time.Second
	// again is after how long a run that failed is tried anew in the same window.
	again = 10 * time.Minute
	// estimateEvery is how often the backlog is estimated.
	estimateEvery = time.Hour
)

// diary is what the schedule remembers of one task.
type diary struct {
	// done names the night whose run has come to its end.
	done string
	// notBefore is when a run that failed may be tried again.
	notBefore time.Time
	// cut: the last run ended with its window, and left rows.
	cut bool
	// estimated is when the backlog was last estimated.
	estimated time.Time
	// warned is what was last said about the task.
	warned string
}

// Run keeps the schedule until ctx ends: each enabled task runs once in every
// window. Tasks of one server run one after the other.
func (j *Janitor) Run(ctx context.Context) {
	byServer := map[string][]*Task{}
	for i := range j.tasks {
		t := &j.tasks[i]
		byServer[t.server()] = append(byServer[t.server()], t)
	}
	var wg sync.WaitGroup
	for _, tasks := range byServer {
		wg.Go(func() { j.tend(ctx, tasks) })
	}
	wg.Wait()
}

// tend looks after the tasks of one server.
func (j *Janitor) tend(ctx context.Context, tasks []*Task) {
	diaries := make([]diary, len(tasks))
	for ctx.Err() == nil {
		for i, t := range tasks {
			j.look(ctx, t, &diaries[i])
		}
		j.pause(ctx, tick)
	}
}

// look does for one task what is due now.
func (j *Janitor) look(ctx context.Context, t *Task, d *diary) {
	now := j.now()
	if now.Sub(d.estimated) >= estimateEvery {
		d.estimated = now
		j.estimate(ctx, t, d)
	}
	switch {
	case !t.Enabled || ctx.Err() != nil:
	case !t.Window.Open(now):
		if d.cut {
			j.metrics.heldUp(t, ByWindow, tick)
		}
	case d.done == t.Window.Night(now) || now.Before(d.notBefore) || j.board.haltedIn(t.Name, t.Window.Night(now)):
	case t.stopped():
		j.metrics.heldUp(t, ByStopFile, tick)
		j.warn(t, d, "the stop file "+t.StopFile+" holds it up")
	default:
		j.scheduled(ctx, t, d)
	}
}

// estimate keeps the backlog's metric up to date, and says early what a run would be refused for.
func (j *Janitor) estimate(ctx context.Context, t *Task, d *diary) {
	p := j.plan(ctx, t, false)
	if ctx.Err() != nil || !t.Enabled {
		return
	}
	for _, r := range p.Refusals {
		j.warn(t, d, r.Text.EN)
		return
	}
	if !p.Unread.Empty() {
		j.warn(t, d, p.Unread.EN)
	}
}

// warn says once what keeps the task from running.
func (j *Janitor) warn(t *Task, d *diary, why string) {
	if d.warned != why {
		d.warned = why
		j.log.Warn("cleanup task cannot run", "task", t.Name, "why", why)
	}
}

// scheduled runs a task and notes when it is due again.
func (j *Janitor) scheduled(ctx context.Context, t *Task, d *diary) {
	night := t.Window.Night(j.now())
	j.log.Info("cleanup begins", "task", t.Name, "window", night)
	r := j.sweep(ctx, t, BySchedule)
	d.estimated, d.cut = j.now(), r.Ended == WindowClosed
	j.log.Info("cleanup ended", "task", t.Name, "ended", r.Ended, "why", r.Why.EN, "rows", r.Gone(), "took", r.Took.Round(time.Millisecond))
	switch r.Ended {
	case Done, OutOfRows, OutOfTime:
		d.done, d.warned = night, ""
		j.board.change(t.Name, func(p *pinned) { p.rested = night })
	case WindowClosed:
		if left := r.Plan.Candidates() - r.Gone(); left > 0 {
			j.log.Warn("cleanup falls behind: the window was too short", "task", t.Name, "rows", r.Gone(), "rows_left_estimated", left)
		}
	default:
		d.notBefore = j.now().Add(again)
	}
	if r.Gone() > 0 {
		// The plan of before the run would promise rows that are gone.
		j.plan(ctx, t, false)
	}
}
