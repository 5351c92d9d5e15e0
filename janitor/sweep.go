package janitor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Sweep runs one task now and tells what it did. scheduled binds the run to the
// window of the task: it ends when the window closes. Everything that goes wrong
// is part of the report; the error says that there is no such task.
func (j *Janitor) Sweep(ctx context.Context, task string, scheduled bool) (Report, error) {
	t, err := j.task(task)
	if err != nil {
		return Report{}, err
	}
	by := ByCommand
	if scheduled {
		by = BySchedule
	}
	return j.sweep(ctx, t, by), nil
}

func (j *Janitor) sweep(ctx context.Context, t *Task, by By) (r Report) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r = Report{Task: t.Name, Began: j.now()}
	j.board.begin(t, by, r.Began, cancel)
	defer func() {
		r.Took = j.now().Sub(r.Began)
		j.board.end(t.Name, r)
		j.record(r, t, by)
	}()
	j.metrics.running.WithLabelValues(t.Name).Set(1)
	defer j.metrics.running.WithLabelValues(t.Name).Set(0)
	r.Plan = j.plan(ctx, t, false)
	if end := r.Plan.against(); end != nil {
		r.Ended, r.Why = end.ended, end.why
		return r
	}
	j.board.planned(t.Name, r.Plan)
	budget := &budget{until: t.Window, scheduled: by == BySchedule, began: r.Began}
	var done ledger.Range
	for i, table := range t.Tables {
		j.board.table(t.Name, table.Name(), done)
		done = r.Plan.Tables[i].visit()
		s := &sweep{
			janitor: j, task: t, table: table, log: j.log, budget: budget, cutoff: r.Plan.Cutoff,
			within: r.Plan.Tables[i].visit(), size: newSizer(t.Batch), report: newTableReport(table),
		}
		r.Tables = append(r.Tables, s.report)
		end := s.run(ctx)
		j.backlog(t, r)
		if end.ended != Done {
			r.Ended, r.Why = end.ended, end.why
			return r
		}
	}
	r.Ended = Done
	j.metrics.backlog.WithLabelValues(t.Name).Set(0)
	j.metrics.success.WithLabelValues(t.Name).Set(float64(j.now().UnixMilli()) / 1000)
	return r
}

// against is why a plan must not be run, or nil.
func (p Plan) against() *ending {
	if len(p.Refusals) > 0 {
		return &ending{Refused, p.Refusals[0].Text}
	}
	if !p.Unread.Empty() {
		return &ending{Unread, p.Unread}
	}
	return nil
}

// backlog keeps the estimate of the plan up to date with what is gone.
func (j *Janitor) backlog(t *Task, r Report) {
	j.metrics.backlog.WithLabelValues(t.Name).Set(float64(max(r.Plan.Candidates()-r.Gone(), 0)))
}

// budget is what a whole run may use.
type budget struct {
	began     time.Time
	until     Window
	scheduled bool
	rows      int64
}

// sweep is the walk through one table.
type sweep struct {
	janitor *Janitor
	task    *Task
	table   *ledger.SweepTable
	log     *slog.Logger
	budget  *budget
	cutoff  time.Time
	size    *sizer
	report  *TableReport

	session Session
	// within is what is left to walk.
	within ledger.Range
	// first is where the walk began.
	first uint64
	// current is the batch that was tried last, tries how often it failed in a row.
	current ledger.SweepBatch
	tries   int

	probeAt       time.Time
	holding       Reason
	historyWarned bool
}

func (s *sweep) run(ctx context.Context) *ending {
	began := s.janitor.now()
	s.report.Began, s.first = began, s.within.After
	defer func() { s.report.Took, s.report.Reached = s.janitor.now().Sub(began), s.within.After }()
	if end := s.over(ctx); end != nil {
		return end
	}
	if s.within.After >= s.within.To {
		return &ending{ended: Done}
	}
	session, err := s.task.Open(ctx, s.table)
	if err != nil {
		return s.fail(ctx, err)
	}
	s.session = session
	defer func() { s.session.Close() }()
	for s.within.After < s.within.To {
		if end := s.step(ctx); end != nil {
			return end
		}
	}
	return &ending{ended: Done}
}

// step cleans one batch and pauses, or finds out why not.
func (s *sweep) step(ctx context.Context) *ending {
	if end := s.over(ctx); end != nil {
		return end
	}
	end, err := s.throttle(ctx)
	if err == nil && end == nil {
		began := s.janitor.now()
		if err = s.batch(ctx); err == nil {
			s.janitor.pause(ctx, s.task.Limits.rest(s.janitor.now().Sub(began)))
			return nil
		}
	}
	if err != nil {
		return s.recover(ctx, err)
	}
	return end
}

// over is why the run has to end before its work is done, or nil.
func (s *sweep) over(ctx context.Context) *ending {
	b, now := s.budget, s.janitor.now()
	switch {
	case ctx.Err() != nil:
		return &ending{Stopped, s.janitor.board.stopText(s.task.Name)}
	case s.task.stopped():
		return &ending{StopFile, flow.T("the stop file %s exists; remove it to let the task run", "停止文件 %s 存在；删除后任务才会运行", s.task.StopFile)}
	case b.scheduled && !b.until.Open(now):
		return &ending{WindowClosed, flow.T("the window has closed; the rest waits for the next one", "时间窗口已关闭，其余留待下次窗口")}
	case s.task.RunTime > 0 && now.Sub(b.began) >= s.task.RunTime:
		return &ending{OutOfTime, flow.T("the run has reached its limit of %s (run_time)", "已达到运行时长上限 %s（run_time）", flow.Span(s.task.RunTime))}
	case s.task.Rows > 0 && b.rows >= s.task.Rows:
		return &ending{OutOfRows, flow.T("the run has reached its limit of %d rows (rows)", "已达到行数上限 %d（rows）", s.task.Rows)}
	}
	return nil
}

// limit is how many rows the next batch looks at: a limit of rows is kept exactly.
func (s *sweep) limit() int {
	if s.task.Rows > 0 {
		return int(min(int64(s.size.next()), s.task.Rows-s.budget.rows))
	}
	return s.size.next()
}

// batch looks at the next rows and lets the candidates go.
func (s *sweep) batch(ctx context.Context) error {
	b, err := s.session.Next(ctx, s.within, s.limit(), s.cutoff)
	if err != nil {
		return err
	}
	s.current = b
	if !b.Due {
		s.passed(b)
		return nil
	}
	began := s.janitor.now()
	swept, err := s.session.Sweep(ctx, b, s.cutoff)
	took := s.janitor.now().Sub(began)
	if err != nil {
		return err
	}
	s.janitor.metrics.batches.WithLabelValues(s.task.Name).Observe(took.Seconds())
	s.passed(swept)
	tooSlow := took > slowBatch && s.size.atSmallest()
	s.size.learn(took, swept.Tally.Total(), swept.Gone)
	if tooSlow {
		s.heldUp(ctx, &hold{ByBatchTime, flow.T("a batch of %d rows took %s", "%d 行的批次耗时 %s", swept.Tally.Total(), flow.Span(took))}, min(took, 10*time.Second))
	}
	return nil
}

// passed counts a batch that is settled, and moves on.
func (s *sweep) passed(b ledger.SweepBatch) {
	batches := 0
	if b.Gone > 0 {
		batches = 1
	}
	s.report.Batches += batches
	s.janitor.board.walked(s.task.Name, b.Gone, batches, b.To-s.first, s.janitor.now())
	s.report.Gone += b.Gone
	s.budget.rows += b.Gone
	s.janitor.metrics.gone(s.task, b.Gone)
	for kind, n := range b.Tally {
		reason := string(kind)
		if kind == ledger.Candidate {
			reason, n = reasonLocked, n-b.Gone
		}
		if n > 0 {
			s.report.Stayed[reason] += n
			s.janitor.metrics.stayed(s.task, reason, n)
		}
	}
	s.within.After = b.To
	s.current, s.tries = ledger.SweepBatch{}, 0
}

const (
	// maxTries is how often in a row a lock or a lost connection is borne.
	maxTries = 6
	// firstDelay doubles with every try.
	firstDelay = 200 * time.Millisecond
)

// recover makes the next try possible, or tells why there is none. Nothing has
// changed, unless the commit's answer was lost.
func (s *sweep) recover(ctx context.Context, err error) *ending {
	if ctx.Err() != nil {
		return s.fail(ctx, err)
	}
	var unsettled *ledger.Unsettled
	lost := ledger.FaultOf(err) == ledger.FaultLost
	switch {
	case errors.As(err, &unsettled):
		return s.settle(ctx, unsettled)
	case !lost && ledger.FaultOf(err) != ledger.FaultLock:
		return s.fail(ctx, err)
	}
	s.tries++
	s.report.Retries++
	s.log.Warn("a batch is tried again", "task", s.task.Name, "table", s.table.Name(), "after_id", s.within.After, "try", s.tries, "err", err)
	if lost {
		if s.tries > maxTries {
			return s.fail(ctx, err)
		}
		return s.reopen(ctx)
	}
	if s.tries > maxTries && s.size.atSmallest() && s.current.To > s.within.After {
		// Somebody holds a few rows; the rest must not wait for them.
		told, err := s.session.Tell(ctx, s.current, s.cutoff)
		if err != nil {
			return s.fail(ctx, err)
		}
		s.passed(told)
		return nil
	}
	s.size.shrink()
	s.janitor.pause(ctx, firstDelay<<min(s.tries-1, 4))
	return nil
}

// reopen replaces a session whose connection is gone. The old one may still hold
// the lease for a moment.
func (s *sweep) reopen(ctx context.Context) *ending {
	s.session.Abandon()
	var err error
	for try := range maxTries {
		s.janitor.pause(ctx, firstDelay<<try)
		var session Session
		if session, err = s.task.Open(ctx, s.table); err == nil {
			s.session = session
			return nil
		}
		if fault := ledger.FaultOf(err); ctx.Err() != nil || fault != ledger.FaultLost && fault != ledger.FaultTaken {
			break
		}
	}
	return s.fail(ctx, err)
}

// settle finds out whether a batch happened whose commit was not answered. Until
// that is known, its rows count as unconfirmed.
func (s *sweep) settle(ctx context.Context, u *ledger.Unsettled) *ending {
	s.report.Unconfirmed = u.Batch.Gone
	s.report.Retries++
	s.log.Warn("the answer to a commit was lost; the table is read again", "task", s.task.Name, "table", s.table.Name(), "after_id", s.within.After, "err", u)
	if end := s.reopen(ctx); end != nil {
		return end
	}
	committed, err := s.session.Settle(ctx, u, s.cutoff)
	if err != nil {
		return s.fail(ctx, err)
	}
	s.report.Unconfirmed = 0
	if committed {
		s.passed(u.Batch)
	}
	return nil
}

// fail words the end of a run by an error.
func (s *sweep) fail(ctx context.Context, err error) *ending {
	if ctx.Err() != nil {
		return &ending{Stopped, s.janitor.board.stopText(s.task.Name)}
	}
	why := flow.T("%s: %s", "%s：%s", s.table.Name(), ledger.Explain(err))
	switch ledger.FaultOf(err) {
	case ledger.FaultTaken:
		return &ending{Taken, ledger.Explain(err)}
	case ledger.FaultReadOnly, ledger.FaultAltered:
		return &ending{Refused, why}
	case ledger.FaultArchive:
		return &ending{Refused, flow.T("%s. The batch was taken back. Compare the archive table with the rows from id %d on, and mend the archive", "%s。该批次已回滚。请核对归档表与 ID 大于等于 %d 的行，并修正归档表", why, s.within.After+1)}
	}
	s.log.Error("cleanup failed", "task", s.task.Name, "table", s.table.Name(), "err", err)
	return &ending{Failed, why}
}
