package janitor

import (
	"context"
	"errors"
	"os"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Reason is why a task is held up.
type Reason string

// The reasons.
const (
	ByWindow      Reason = "window"
	ByLag         Reason = "replica_lag"
	ByUnreachable Reason = "replica_unreachable"
	ByThreads     Reason = "threads_running"
	ByHistory     Reason = "history_length"
	ByBatchTime   Reason = "batch_time"
	ByStopFile    Reason = "stop_file"
)

var reasons = []Reason{ByWindow, ByLag, ByUnreachable, ByThreads, ByHistory, ByBatchTime, ByStopFile}

// hold is one reason to wait, in words.
type hold struct {
	reason Reason
	text   flow.Text
}

// slowBatch is from when a batch of the smallest size is a reason to wait: the
// server is too busy for us.
const slowBatch = farOver * batchTarget

// lagTimeout bounds the question to one replica.
const lagTimeout = 3 * time.Second

// probeLoad asks what could hold the sweep up; nil when nothing does.
func (s *sweep) probeLoad(ctx context.Context) (*hold, error) {
	load, err := s.session.Load(ctx)
	if err != nil {
		return nil, err
	}
	limits := s.task.Limits
	if max := limits.MaxThreadsRunning; max > 0 && load.ThreadsRunning > max {
		return &hold{ByThreads, flow.T("%d threads run on the server; the limit is %d", "服务器上有 %d 个线程在运行，上限为 %d", load.ThreadsRunning, max)}, nil
	}
	if max := limits.MaxHistoryLength; max > 0 && load.History > max {
		return &hold{ByHistory, flow.T("the history list has %d entries, because a transaction is long or the purge is behind; the limit is %d", "历史链表长度为 %d（有长事务，或 purge 落后），上限为 %d", load.History, max)}, nil
	}
	if limits.MaxHistoryLength > 0 && !load.HistoryKnown && !s.historyWarned {
		s.historyWarned = true
		s.log.Warn("the length of the history list cannot be read and is not watched; grant PROCESS, or set max_history_length: 0", "task", s.task.Name)
	}
	return laggard(ctx, limits), nil
}

// laggard is the first replica that does not keep up, or does not say so.
func laggard(ctx context.Context, limits Limits) *hold {
	for _, r := range limits.Replicas {
		asked, cancel := context.WithTimeout(ctx, lagTimeout)
		lag, err := r.Lag(asked)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return &hold{ByUnreachable, flow.T("the lag of the replica %s is not known: %s", "无法得知从库 %s 的延迟：%s", r.Name(), ledger.Explain(err))}
		case lag > limits.MaxReplicaLag:
			return &hold{ByLag, flow.T("the replica %s is %s behind; the limit is %s", "从库 %s 落后 %s，上限为 %s", r.Name(), flow.Span(lag), flow.Span(limits.MaxReplicaLag))}
		}
	}
	return nil
}

// stopped reports whether the stop file exists. A file that cannot be looked for
// counts as there: whoever put it there wants no sweep.
func (t *Task) stopped() (stopFile bool) {
	if t.StopFile == "" {
		return false
	}
	_, err := os.Stat(t.StopFile)
	return !errors.Is(err, os.ErrNotExist)
}

// throttle waits as long as something holds the sweep up, looking again and
// again, but not for ever. It returns why the run has to end, or nothing.
func (s *sweep) throttle(ctx context.Context) (*ending, error) {
	now := s.janitor.now()
	if now.Before(s.probeAt) {
		return nil, nil
	}
	began := now
	for {
		held, err := s.probeLoad(ctx)
		if err != nil {
			return nil, err
		}
		now = s.janitor.now()
		s.probeAt = now.Add(s.janitor.probe)
		if held == nil {
			s.holding = ""
			s.janitor.board.held(s.task.Name, nil)
			// An altered table is noticed between batches, too.
			return nil, s.session.CheckShape(ctx)
		}
		if now.Sub(began) >= s.janitor.patience {
			return &ending{Throttled, flow.T("held up for %s: %s", "已等待 %s：%s", flow.Span(now.Sub(began)), held.text)}, nil
		}
		s.heldUp(ctx, held, s.janitor.probe)
		if end := s.over(ctx); end != nil {
			return end, nil
		}
	}
}

// heldUp waits for a reason, counts the time, and says so once.
func (s *sweep) heldUp(ctx context.Context, h *hold, d time.Duration) {
	if s.holding != h.reason {
		s.holding = h.reason
		s.log.Warn("cleanup is held up", "task", s.task.Name, "table", s.table.Name(), "reason", h.reason, "why", h.text.EN)
	}
	s.janitor.board.held(s.task.Name, h)
	began := s.janitor.now()
	s.janitor.pause(ctx, d)
	waited := s.janitor.now().Sub(began)
	s.janitor.metrics.heldUp(s.task, h.reason, waited)
	s.report.Throttled[h.reason] += waited
}
