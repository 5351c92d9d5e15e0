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
	// ByQuery: its number is above the limit. ByQueryFailed: it gave no number.
	ByQuery       Reason = "query"
	ByQueryFailed Reason = "query_failed"
	// ByHTTP: the answer was not of the class 2xx. ByHTTPFailed: there was none.
	ByHTTP       Reason = "http"
	ByHTTPFailed Reason = "http_unreachable"
)

var reasons = []Reason{
	ByWindow, ByLag, ByUnreachable, ByThreads, ByHistory, ByBatchTime, ByStopFile, ByQuery, ByQueryFailed, ByHTTP, ByHTTPFailed,
}

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

// probeLoad asks what could hold the sweep up, or end it; both are nil when nothing does.
func (s *sweep) probeLoad(ctx context.Context) (*hold, *ending, error) {
	load, err := s.session.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	limits := s.task.Limits
	if !load.HistoryKnown && !s.historyWarned && max(limits.MaxHistoryLength, limits.Critical.HistoryLength) > 0 {
		s.historyWarned = true
		s.log.Warn("the length of the history list cannot be read and is not watched; grant PROCESS, or set max_history_length: 0", "task", s.task.Name)
	}
	lags := lagsOf(ctx, limits.Replicas)
	if end := limits.Critical.against(load, lags); end != nil {
		return nil, end, nil
	}
	for _, check := range []func() *hold{
		func() *hold { return limits.busy(load) },
		func() *hold { return limits.laggard(lags) },
		func() *hold { return limits.Query.ask(ctx) },
		func() *hold { return limits.HTTP.ask(ctx) },
	} {
		if held := check(); held != nil && ctx.Err() == nil {
			return held, nil, nil
		}
	}
	return nil, nil, nil
}

// busy is what the server's load says against going on.
func (l Limits) busy(load ledger.Load) *hold {
	if max := l.MaxThreadsRunning; max > 0 && load.ThreadsRunning > max {
		return &hold{ByThreads, flow.T("%d threads run on the server; the limit is %d", "服务器上有 %d 个线程在运行，上限为 %d", load.ThreadsRunning, max)}
	}
	if max := l.MaxHistoryLength; max > 0 && load.History > max {
		return &hold{ByHistory, flow.T("the history list has %d entries, because a transaction is long or the purge is behind; the limit is %d", "历史链表长度为 %d（有长事务，或 purge 落后），上限为 %d", load.History, max)}
	}
	return nil
}

// replicaLag is what one replica answered.
type replicaLag struct {
	name string
	lag  time.Duration
	err  error
}

func lagsOf(ctx context.Context, replicas []Replica) (lags []replicaLag) {
	for _, r := range replicas {
		asked, cancel := context.WithTimeout(ctx, lagTimeout)
		lag, err := r.Lag(asked)
		cancel()
		lags = append(lags, replicaLag{r.Name(), lag, err})
	}
	return lags
}

// laggard is the first replica that does not keep up, or does not say so.
func (l Limits) laggard(lags []replicaLag) *hold {
	for _, r := range lags {
		switch {
		case r.err != nil:
			return &hold{ByUnreachable, flow.T("the lag of the replica %s is not known: %s", "无法得知从库 %s 的延迟：%s", r.name, ledger.Explain(r.err))}
		case r.lag > l.MaxReplicaLag:
			return &hold{ByLag, flow.T("the replica %s is %s behind; the limit is %s", "从库 %s 落后 %s，上限为 %s", r.name, flow.Span(r.lag), flow.Span(l.MaxReplicaLag))}
		}
	}
	return nil
}

// against is why the run has to end at once, or nil. What is not known ends nothing.
func (c Critical) against(load ledger.Load, lags []replicaLag) *ending {
	if c.ThreadsRunning > 0 && load.ThreadsRunning > c.ThreadsRunning {
		return &ending{IsCritical, flow.T("%d threads run on the server; the critical limit is %d (throttle.critical.threads_running), so the run ends",
			"服务器上有 %d 个线程在运行，超过临界值 %d，运行立即结束（throttle.critical.threads_running）", load.ThreadsRunning, c.ThreadsRunning)}
	}
	if c.HistoryLength > 0 && load.HistoryKnown && load.History > c.HistoryLength {
		return &ending{IsCritical, flow.T("the history list has %d entries; the critical limit is %d (throttle.critical.history_length), so the run ends",
			"历史链表长度为 %d，超过临界值 %d，运行立即结束（throttle.critical.history_length）", load.History, c.HistoryLength)}
	}
	for _, r := range lags {
		if c.ReplicaLag > 0 && r.err == nil && r.lag > c.ReplicaLag {
			return &ending{IsCritical, flow.T("the replica %s is %s behind; the critical limit is %s (throttle.critical.replica_lag), so the run ends",
				"从库 %s 落后 %s，超过临界值 %s，运行立即结束（throttle.critical.replica_lag）", r.name, flow.Span(r.lag), flow.Span(c.ReplicaLag))}
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
		held, end, err := s.probeLoad(ctx)
		if err != nil || end != nil {
			return end, err
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
