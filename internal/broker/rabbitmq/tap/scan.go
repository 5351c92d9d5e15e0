package tap

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

const (
	// scanBack is how far back a scan looks. RabbitMQ can be asked for the part
	// of a stream since a time, not for its end backwards.
	scanBack = time.Hour
	// scanIdle is how long nothing may come before the stream counts as read to
	// its end, once the last part that it had at the start was reached.
	scanIdle = 250 * time.Millisecond
	// scanReserve is left of the caller's time for the answer.
	scanReserve = 100 * time.Millisecond
)

// Scanner answers one question at a time by reading the last hour of the stream,
// for a process that does not live long enough to follow it. It writes nothing.
type Scanner struct{ tap *Tap }

// NewScanner makes a scanner.
func (t *Tap) NewScanner() *Scanner { return &Scanner{t} }

// Tell reads as much as the deadline of ctx allows. The account says what was
// read; nil for a flow of another broker.
func (s *Scanner) Tell(ctx context.Context, fl flow.Flow, k flow.Key) *flow.Account {
	began := time.Now()
	x := s.tap.newIndex()
	if x.flows[fl.Name] == nil {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-scanReserve))
		defer cancel()
	}
	n, whole, err := s.scan(ctx, x, x.flows[fl.Name].flow, began)
	if err != nil {
		x.lose(link.Words(err))
	} else {
		x.follow(time.Now())
	}
	a := x.account(fl.Name, k)
	a.ReadAt, a.Took = time.Now(), time.Since(began)
	if err != nil {
		return a
	}
	if !whole {
		a.Since = time.Time{}
		a.Coverage = []flow.Text{flow.T("%d messages of the last %v of the stream were read, not all: there was no time for more", "时间不够，只读取了 stream 最近 %[2]v 内的 %[1]d 条消息，并非全部", n, flow.Span(scanBack))}
		if a.State == flow.Absent {
			a.State, a.Reason = flow.Unknown, a.Coverage[0]
		}
		return a
	}
	a.Coverage = append(a.Coverage, flow.T("read now: the last %v of the stream, %d messages", "本次读取：stream 最近 %v 内的 %d 条消息", flow.Span(scanBack), n))
	return a
}

// scan fills the index. whole: everything of the last hour was read.
func (s *Scanner) scan(ctx context.Context, x *index, fl flow.Flow, began time.Time) (n int, whole bool, err error) {
	top, untied, err := s.tap.lookAll(ctx, []flow.Flow{fl})
	if err != nil {
		return 0, false, err
	}
	x.use(top, untied)
	conn, err := s.tap.address.Dial(ctx, "idemscope look-up")
	if err != nil {
		return 0, false, s.fail(err)
	}
	defer link.Close(conn)
	last, any, err := s.last(ctx, conn)
	if err != nil || !any {
		return 0, err == nil, err
	}
	from := began.Add(-scanBack)
	deliveries, ch, err := s.tap.consume(conn, from)
	if err != nil {
		return 0, false, s.fail(err)
	}
	n, whole, err = s.drain(ctx, x, ch, deliveries, last)
	if x.since.Before(from) && !x.since.IsZero() {
		x.since = from // the part that holds the time begins earlier, by a little
	}
	return n, whole, err
}

func (s *Scanner) fail(err error) error {
	return s.tap.address.Fail(flow.T("read the stream %s", "读取 stream %s", flow.Visible(s.tap.options.Stream)), err)
}

// last is the offset at which the last part of the stream begins; any is false
// for a stream that holds nothing.
func (s *Scanner) last(ctx context.Context, conn *amqp.Connection) (offset int64, any bool, err error) {
	deliveries, ch, err := s.tap.consume(conn, "last")
	if err != nil {
		return 0, false, s.fail(err)
	}
	defer ch.Close()
	idle := time.NewTimer(scanIdle)
	defer idle.Stop()
	select {
	case <-ctx.Done():
		return 0, false, s.fail(ctx.Err())
	case <-idle.C:
		return 0, false, nil
	case d, open := <-deliveries:
		if !open {
			return 0, false, errGone
		}
		offset, any = whole(d.Headers["x-stream-offset"])
		return offset, any, nil
	}
}

// drain reads until the end of the stream, or of the time.
func (s *Scanner) drain(ctx context.Context, x *index, ch *amqp.Channel, deliveries <-chan amqp.Delivery, last int64) (n int, all bool, err error) {
	reached := false
	idle := time.NewTimer(scanIdle)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return n, false, nil
		case <-idle.C:
			if reached {
				return n, true, nil
			}
			idle.Reset(scanIdle)
		case d, open := <-deliveries:
			if !open {
				return n, false, errGone
			}
			x.add(d, time.Now())
			n++
			if offset, ok := whole(d.Headers["x-stream-offset"]); ok && offset >= last {
				reached = true
			}
			if n%ackEvery == 0 {
				if err := ch.Ack(d.DeliveryTag, true); err != nil {
					return n, false, s.fail(err)
				}
			}
			idle.Reset(scanIdle)
		}
	}
}
