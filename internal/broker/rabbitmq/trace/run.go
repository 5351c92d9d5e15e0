package trace

import (
	"context"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

const (
	exchange      = "amq.rabbitmq.trace"
	deliverPrefix = "deliver."
	// maxKey is how long a routing key may be.
	maxKey = 255

	// copies and copyBytes bound our queue; the oldest copies go first.
	copies    = 50_000
	copyBytes = 64_000_000
	// expires is how long our queue stays after we are gone. While it is there, a
	// trace that was left on is known to be ours.
	expires = 24 * time.Hour
	// offTime bounds our own attempts to switch tracing off; the guard goes on.
	offTime = 15 * time.Second
)

// run is one trace, from its arming on.
type run struct {
	trace *Trace
	index *index
	conn  *amqp.Connection
	ch    *amqp.Channel
	guard *guard
	since time.Time
	until time.Time
	end   context.CancelFunc
	done  chan struct{}

	mu    sync.Mutex
	ended time.Time // zero while it runs
	lossy bool
	fault flow.Text
}

// Errors of Arm, in words.
var (
	ErrArmed = link.Say(flow.T("a trace of this broker is armed already", "该 Broker 的追踪已经开启"))
	ErrOn    = link.Say(flow.T("tracing is on already, by somebody else, who would lose it at our end: ask them, or turn it off with rabbitmqctl trace_off",
		"追踪已由他人开启，本工具结束时会将其关闭：请先与对方确认，或用 rabbitmqctl trace_off 关闭"))
	ErrTime = link.Say(flow.T("a trace runs from %v to %v", "追踪时长为 %v 至 %v", flow.Span(MinTime), flow.Span(MaxTime)))
)

// Arm turns tracing on for d, and returns when it is on. The trace then runs by
// itself until d is over, ctx ends, or Disarm. The error is worded in both languages.
func (t *Trace) Arm(ctx context.Context, d time.Duration) error {
	if d < MinTime || d > MaxTime {
		return ErrTime
	}
	t.arming.Lock()
	defer t.arming.Unlock()
	if t.Status().Armed {
		return ErrArmed
	}
	on, err := t.options.Manager.Tracing(ctx)
	if err != nil {
		return err
	}
	if on {
		return ErrOn
	}
	r := &run{trace: t, index: t.newIndex(), done: make(chan struct{})}
	copied, err := r.open(ctx)
	if err != nil {
		return t.address.Fail(flow.T("prepare the queue of the trace", "准备追踪队列"), err)
	}
	if err := r.start(ctx, d); err != nil {
		r.close()
		return err
	}
	runCtx, cancel := context.WithDeadline(ctx, r.until)
	r.end = cancel
	t.mu.Lock()
	t.run = r
	t.mu.Unlock()
	go r.collect(runCtx, copied)
	t.options.Logger.Warn("tracing of the whole vhost is on", "broker", t.options.Broker, "until", r.until)
	return nil
}

// open makes the queue and consumes it, alone: that is also what shows that
// somebody owns the trace.
func (r *run) open(ctx context.Context) (<-chan amqp.Delivery, error) {
	var err error
	if r.conn, err = r.trace.address.Dial(ctx, "idemscope trace"); err != nil {
		return nil, err
	}
	fail := func(err error) (<-chan amqp.Delivery, error) {
		link.Close(r.conn)
		return nil, err
	}
	if r.ch, err = r.conn.Channel(); err != nil {
		return fail(err)
	}
	if _, err = r.ch.QueueDeclare(Queue, true, false, false, false, amqp.Table{
		"x-queue-type": "classic", "x-max-length": int64(copies), "x-max-length-bytes": int64(copyBytes), "x-overflow": "drop-head", "x-expires": expires.Milliseconds(),
	}); err != nil {
		return fail(err)
	}
	for _, f := range r.trace.flows {
		for _, queue := range f.Queue.All() {
			if len(deliverPrefix)+len(queue) > maxKey {
				return fail(link.Say(flow.T("the name of queue %s is too long to be traced", "队列名 %s 过长，无法追踪", flow.Visible(queue))))
			}
			if err = r.ch.QueueBind(Queue, deliverPrefix+queue, exchange, false, nil); err != nil {
				return fail(err)
			}
		}
	}
	copied, err := r.ch.Consume(Queue, "", true, true, false, false, nil)
	if err != nil {
		return fail(err)
	}
	if _, err := r.ch.QueuePurge(Queue, false); err != nil { // copies of an earlier trace
		return fail(err)
	}
	return copied, nil
}

// start sets the guard up, and only then turns tracing on.
func (r *run) start(ctx context.Context, d time.Duration) error {
	o := r.trace.options
	order := o.Order
	order.Deadline = time.Now().Add(d + offTime)
	command, err := o.Guard()
	if err == nil {
		r.guard, err = startGuard(ctx, command, order)
	}
	if err != nil {
		return link.Say(flow.T("the process that would end the trace after a crash does not start, so it is not armed: %s", "用于在崩溃后结束追踪的进程无法启动，因此不开启追踪：%s", flow.Visible(err.Error())))
	}
	if err := o.Manager.SetTracing(ctx, true); err != nil {
		// It may be on all the same, when only the answer was lost.
		r.off()
		return err
	}
	r.since = time.Now()
	r.until = r.since.Add(d)
	return nil
}

// collect takes the copies until the end.
func (r *run) collect(ctx context.Context, copied <-chan amqp.Delivery) {
	defer close(r.done)
	defer r.end()
	closed := r.conn.NotifyClose(make(chan *amqp.Error, 1))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	r.follow(time.Now())
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case err := <-closed:
			if err == nil {
				err = amqp.ErrClosed
			}
			r.fail(r.trace.address.Explain(err))
			running = false
		case d, open := <-copied:
			if !open {
				r.fail(flow.T("the queue of the trace is gone", "追踪队列不存在了"))
				running = false
				break
			}
			r.index.add(d, time.Now())
		case now := <-tick.C:
			r.watch()
			r.follow(now)
		}
	}
	r.off()
	r.drain(copied)
	r.mu.Lock()
	r.ended = time.Now()
	r.mu.Unlock()
	r.close()
}

// drain counts what was copied before tracing was switched off.
func (r *run) drain(copied <-chan amqp.Delivery) {
	const idle = 200 * time.Millisecond
	for {
		timer := time.NewTimer(idle)
		select {
		case d, open := <-copied:
			timer.Stop()
			if !open {
				return
			}
			r.index.add(d, time.Now())
		case <-timer.C:
			return
		}
	}
}

// watch notes when copies pile up: then the oldest are being dropped.
func (r *run) watch() {
	q, err := r.ch.QueueDeclarePassive(Queue, true, false, false, false, nil)
	if err == nil && q.Messages > copies/2 {
		r.mu.Lock()
		r.lossy = true
		r.mu.Unlock()
	}
}

func (r *run) follow(now time.Time) {
	for _, log := range r.index.logs {
		log.Follow(r.since, now)
	}
}

func (r *run) fail(reason flow.Text) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = reason
	r.trace.options.Logger.Error("the trace ended early", "broker", r.trace.options.Broker, "reason", reason.EN)
}

// off turns tracing off and releases the guard. When that fails, the guard keeps trying.
func (r *run) off() {
	ctx, cancel := context.WithTimeout(context.Background(), offTime)
	defer cancel()
	if err := switchOff(ctx, r.trace.options.Manager); err != nil {
		reason := link.Words(err)
		r.fail(flow.T("TRACING IS STILL ON; it is being tried again. By hand: rabbitmqctl trace_off -p VHOST. Reason: %s", "追踪仍处于开启状态，正在重试关闭。手动关闭：rabbitmqctl trace_off -p VHOST。原因：%s", reason))
		r.guard.abandon()
		return
	}
	r.guard.release()
	r.trace.options.Logger.Info("tracing is off", "broker", r.trace.options.Broker)
}

// close removes the queue. It expires by itself when that fails.
func (r *run) close() {
	if !r.conn.IsClosed() {
		_, _ = r.ch.QueueDelete(Queue, false, false, false)
	}
	link.Close(r.conn)
}

// Disarm ends the trace, if there is one, and returns when it has ended.
func (t *Trace) Disarm() {
	if r := t.latest(); r != nil {
		r.end()
		<-r.done
	}
}

// Done is closed when the latest trace has ended; nil when there was none.
func (t *Trace) Done() <-chan struct{} {
	if r := t.latest(); r != nil {
		return r.done
	}
	return nil
}

// Recover turns tracing off that an earlier process of ours left on: our queue is
// there, and nobody consumes it. It reports whether it did.
func (t *Trace) Recover(ctx context.Context) (recovered bool, err error) {
	t.arming.Lock()
	defer t.arming.Unlock()
	if t.Status().Armed {
		return false, nil
	}
	on, err := t.options.Manager.Tracing(ctx)
	if err != nil || !on {
		return false, err
	}
	conn, err := t.address.Dial(ctx, "idemscope trace")
	if err != nil {
		return false, t.address.Fail(flow.T("look for an abandoned trace", "检查遗留的追踪"), err)
	}
	defer link.Close(conn)
	ch, err := conn.Channel()
	if err != nil {
		return false, t.address.Fail(flow.T("look for an abandoned trace", "检查遗留的追踪"), err)
	}
	q, err := ch.QueueDeclarePassive(Queue, true, false, false, false, nil)
	if link.Code(err) == amqp.NotFound || err == nil && q.Consumers > 0 {
		return false, nil // somebody else's, or another process of ours
	}
	if err != nil {
		return false, t.address.Fail(flow.T("look for an abandoned trace", "检查遗留的追踪"), err)
	}
	if err := switchOff(ctx, t.options.Manager); err != nil {
		return false, err
	}
	t.options.Logger.Error("tracing was still on by an earlier process of ours; it is off now", "broker", t.options.Broker)
	_, _ = ch.QueueDelete(Queue, false, false, false)
	return true, nil
}

func (r *run) status() Status {
	r.mu.Lock()
	s := Status{Armed: r.ended.IsZero(), Since: r.since, Until: r.until, Lossy: r.lossy, Fault: r.fault}
	if !s.Armed {
		s.Until = r.ended
	}
	r.mu.Unlock()
	r.index.mu.Lock()
	defer r.index.mu.Unlock()
	s.Deliveries, s.Unread = r.index.deliveries, r.index.unread
	return s
}

// account is what the trace knows of a key.
func (r *run) account(name string, k flow.Key) *flow.Account {
	log := r.index.logs[name]
	if log == nil {
		return nil
	}
	s := r.status()
	a := log.Of(k)
	r.index.mu.Lock()
	doubtful := r.index.doubtful[name]
	r.index.mu.Unlock()
	a.Coverage = slices.Clone(Limits)
	from, to := s.Since.UTC().Format(time.RFC3339), s.Until.UTC().Format(time.RFC3339)
	var gap flow.Text
	switch {
	case !s.Armed:
		gap = flow.T("the trace ran from %s to %s", "追踪从 %s 运行到 %s", from, to)
	case s.Lossy:
		gap = flow.T("copies came too fast; some deliveries are not counted", "副本到达过快，部分投递没有计入")
	case doubtful:
		gap = flow.T("some deliveries of this flow could not be read", "该流程有部分投递无法读取")
	default:
		a.Coverage = append(a.Coverage, flow.T("traced since %s", "自 %s 起追踪", from))
		return a
	}
	a.Since = time.Time{}
	a.Coverage = append(a.Coverage, gap)
	if len(a.Events) > 0 {
		a.State, a.Reason = flow.Found, flow.Text{}
	} else {
		a.State, a.Reason = flow.Unknown, gap
	}
	return a
}
