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

// Scanner answers one question at a time, for a process that does not live long
// enough to follow the stream: by the broker's own filter where that finds all
// messages of the key, else by reading the last hour. It writes nothing.
type Scanner struct{ tap *Tap }

// NewScanner makes a scanner.
func (t *Tap) NewScanner() *Scanner { return &Scanner{t} }

var outOfTime = flow.T("the broker's own filter did not come to the end of the stream in the time there was", "Broker 自身的过滤器没能在限定时间内搜索到 stream 末尾")

// extent is how much of the stream an answer rests on.
type extent struct {
	// messages were read or, filtered, carry the id.
	messages int
	// whole: all messages of the key were, in the last hour or, filtered, in the stream.
	whole bool
	// filtered: the broker searched the stream from its beginning.
	filtered bool
	// capped: it found more than is read.
	capped bool
	// early is what it found before the time for it was over.
	early []amqp.Delivery
	// note says why that is not the whole answer, although the version can give it;
	// empty otherwise.
	note flow.Text
}

// Tell reads as much as the deadline of ctx allows. The account says what was
// read; nil for a flow of another broker.
func (s *Scanner) Tell(ctx context.Context, fl flow.Flow, k flow.Key) *flow.Account {
	began := time.Now()
	x := s.tap.newIndex()
	if x.flows[fl.Name] == nil {
		return nil
	}
	ctx, cancel := withReserve(ctx)
	defer cancel()
	read, err := s.scan(ctx, x, x.flows[fl.Name].flow, k, began)
	return x.answer(fl.Name, k, began, read, err)
}

// withReserve leaves a part of the caller's time for the answer.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-scanReserve))
	}
	return ctx, func() {}
}

// answer is the account of what was read at once.
func (x *index) answer(name string, k flow.Key, began time.Time, read extent, err error) *flow.Account {
	if err != nil {
		x.lose(link.Words(err))
	} else {
		x.follow(time.Now())
	}
	a := x.account(name, k)
	a.ReadAt, a.Took = time.Now(), time.Since(began)
	if err != nil {
		return a
	}
	if !read.whole {
		a.Since = time.Time{}
		a.Coverage = []flow.Text{read.shortfall()}
		if a.State == flow.Absent {
			a.State, a.Reason = flow.Unknown, a.Coverage[0]
		}
		return a
	}
	a.Coverage = append(a.Coverage, read.words())
	if !read.note.Empty() {
		a.Coverage = append(a.Coverage, read.note)
	}
	return a
}

// words say what was read.
func (e extent) words() flow.Text {
	if e.filtered {
		return flow.T("searched now by the broker's own filter: the whole stream, %d messages carry the id; it does not find the id of a publisher by AMQP 1.0 that is no text", "本次由 Broker 自身的过滤器搜索：整个 stream，有 %d 条消息带有该 ID；生产者用 AMQP 1.0 发布且 ID 不是文本类型的消息无法找到", e.messages)
	}
	return flow.T("read now: the last %v of the stream, %d messages", "本次读取：stream 最近 %v 内的 %d 条消息", flow.Span(scanBack), e.messages)
}

// shortfall says that not all was read.
func (e extent) shortfall() flow.Text {
	if e.capped {
		return flow.T("the broker's own filter finds too many messages: only the first %d and the latest were read", "Broker 自身的过滤器找到的消息过多：只读取了最早的 %d 条和最新的一批", maxMatches)
	}
	return flow.T("%d messages of the last %v of the stream were read, not all: there was no time for more", "时间不够，只读取了 stream 最近 %[2]v 内的 %[1]d 条消息，并非全部", e.messages, flow.Span(scanBack))
}

// scan fills the index.
func (s *Scanner) scan(ctx context.Context, x *index, fl flow.Flow, k flow.Key, began time.Time) (extent, error) {
	top, untied, err := s.tap.lookAll(ctx, []flow.Flow{fl})
	if err != nil {
		return extent{}, err
	}
	x.use(top, untied)
	conn, err := s.tap.address.Dial(ctx, "idemscope look-up")
	if err != nil {
		return extent{}, s.fail(err)
	}
	defer link.Close(conn)
	var found extent
	if searchable(top.version, fl, k) {
		half, cancel := halfOf(ctx)
		defer cancel()
		if found, err = s.search(half, x, conn, k.BizID); err != nil {
			found.note = flow.T("the broker's own filter could not be used: %s", "无法使用 Broker 自身的过滤器：%s", link.Words(err))
		} else if found.whole || found.capped {
			return found, nil
		}
	}
	return s.scanHour(ctx, x, conn, found, began)
}

// halfOf leaves time to read the last hour when the stream is too long to search.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, time.Now().Add(time.Until(deadline)/2))
	}
	return ctx, func() {}
}

// scanHour reads the last hour, and takes what a search found before it.
func (s *Scanner) scanHour(ctx context.Context, x *index, conn *amqp.Connection, found extent, began time.Time) (extent, error) {
	read := extent{note: found.note}
	last, any, err := s.last(ctx, conn)
	if err != nil || !any {
		read.whole = err == nil
		return read, err
	}
	from := began.Add(-scanBack)
	deliveries, ch, err := s.tap.consume(conn, from)
	if err != nil {
		return extent{}, s.fail(err)
	}
	take := func(d amqp.Delivery) {
		for _, e := range found.early {
			if offsetOf(e) < offsetOf(d) {
				x.add(e, time.Now())
			}
		}
		found.early = nil
		x.add(d, time.Now())
	}
	read.messages, read.whole, err = s.drain(ctx, ch, deliveries, last, take)
	for _, e := range found.early { // nothing came in the last hour
		x.add(e, time.Now())
	}
	if x.since.Before(from) && !x.since.IsZero() {
		x.since = from // the part that holds the time begins earlier, by a little
	}
	return read, err
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

// drain takes messages until the end of the stream, or of the time.
func (s *Scanner) drain(ctx context.Context, ch *amqp.Channel, deliveries <-chan amqp.Delivery, last int64, take func(amqp.Delivery)) (n int, all bool, err error) {
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
			take(d)
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
