package replay

import (
	"context"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

// run is one replay on a connection of its own, which ends with it: whatever is
// held then goes back.
type run struct {
	*Replayer
	order    broker.ReplayOrder
	queue    string
	ch       *amqp.Channel
	returned chan amqp.Return
	report   broker.ReplayReport
	// held are the deliveries to give back, in the order in which they came.
	held []uint64
}

// Replay looks for the message and moves it. The error is worded in both
// languages and means that nothing was published.
func (r *Replayer) Replay(ctx context.Context, o broker.ReplayOrder) (broker.ReplayReport, error) {
	// Asked anew: a queue may have been declared again, as one that must not be touched.
	if q := r.Look(ctx, *o.Flow.Queue); q.State != flow.Found {
		return broker.ReplayReport{}, link.Say(q.Reason)
	} else if q.Refused.Code != "" {
		return broker.ReplayReport{}, link.Say(q.Refused.Text)
	}
	conn, err := r.address.Dial(ctx, "idemscope replay")
	if err != nil {
		return broker.ReplayReport{}, r.fail(err)
	}
	defer link.Close(conn)
	one := &run{Replayer: r, order: o, queue: o.Flow.Queue.DeadLetter, returned: make(chan amqp.Return, 1)}
	if one.ch, err = conn.Channel(); err != nil {
		return broker.ReplayReport{}, r.fail(err)
	}
	if err := one.ch.Confirm(false); err != nil {
		return broker.ReplayReport{}, r.fail(err)
	}
	one.ch.NotifyReturn(one.returned)
	found, err := one.search(ctx)
	if err != nil {
		return broker.ReplayReport{}, r.fail(err)
	}
	if found != nil {
		if err := one.move(ctx, *found); err != nil {
			return broker.ReplayReport{}, r.fail(err)
		}
	}
	one.giveBack()
	return one.report, nil
}

func (r *Replayer) fail(err error) error {
	return r.address.Fail(flow.T("replay on broker %s", "在 Broker %s 上重放", r.options.Broker), err)
}

// search takes messages until the asked one comes. All that it passes is held, or
// they would come again.
func (r *run) search(ctx context.Context) (*amqp.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	queue, err := r.ch.QueueDeclarePassive(r.queue, true, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	r.report.Total, r.report.End = queue.Messages, broker.NotFound
	size := 0
	for r.report.Looked < min(queue.Messages, maxMessages) && size < maxBytes && ctx.Err() == nil {
		d, ok, err := r.ch.Get(r.queue, false)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		r.report.Looked++
		size += len(d.Body)
		if r.asked(d) {
			return &d, nil
		}
		r.held = append(r.held, d.DeliveryTag)
	}
	return nil, nil
}

// asked reports the message that is looked for. One that could as well be about
// another key is not.
func (r *run) asked(d amqp.Delivery) bool {
	keys := r.order.Flow.KeysOf(d.MessageId, d.Body)
	switch {
	case !slices.Contains(keys, r.order.Key):
		return false
	case r.order.MessageID != "" && d.MessageId != r.order.MessageID:
		return false
	case len(keys) > 1:
		r.report.End = broker.Ambiguous
		return false
	}
	return true
}

// move publishes a copy and removes the dead letter. An error means that nothing
// was published.
func (r *run) move(ctx context.Context, d amqp.Delivery) error {
	r.report.Message = describe(r.queue, d)
	m := &r.report.Message
	keep := func(end broker.ReplayEnd) error {
		r.report.End = end
		r.held = append(r.held, d.DeliveryTag)
		return nil
	}
	m.Target = r.order.Flow.Queue.Name
	if origin := death(d).queue; origin != "" {
		if origin != r.order.Flow.Queue.Name && !slices.Contains(r.order.Flow.Queue.Retry, origin) {
			r.report.Why = flow.T("it came from queue %s, which the flow does not name", "它来自队列 %s，而该流程没有配置该队列", flow.Visible(origin))
			return keep(broker.Origin)
		}
		m.Target = origin
	}
	if err := r.order.Announce(ctx, *m); err != nil {
		r.report.Why = link.Words(err)
		return keep(broker.Stopped)
	}
	confirmed, err := r.ch.PublishWithDeferredConfirmWithContext(ctx, "", m.Target, true, false, r.copied(d))
	if err != nil {
		if r.ch.IsClosed() {
			return keep(broker.Unconfirmed)
		}
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	taken, err := confirmed.WaitContext(waiting)
	switch {
	case err != nil || r.ch.IsClosed() && !taken:
		return keep(broker.Unconfirmed)
	case !taken:
		return keep(broker.Rejected)
	}
	select {
	case back := <-r.returned:
		// A return comes before its confirm.
		r.report.Why = flow.T("%d %s", "%d %s", back.ReplyCode, flow.Visible(back.ReplyText))
		return keep(broker.Unroutable)
	default:
	}
	r.beforeAck()
	r.report.End = broker.InBoth
	if r.ch.Ack(d.DeliveryTag, false) == nil && r.settled() {
		r.report.End = broker.Moved
	}
	return nil
}

// settled asks something on the same channel: by its answer, all that was sent
// before has been done.
func (r *run) settled() bool {
	_, err := r.ch.QueueDeclarePassive(r.queue, true, false, false, false, nil)
	return err == nil
}

// giveBack returns what is held, one by one and in its order, by which the queue
// keeps its own. What cannot be returned goes back when the connection ends.
func (r *run) giveBack() {
	for _, tag := range r.held {
		if r.ch.Nack(tag, false, true) != nil {
			return
		}
	}
	r.settled()
}

// copied is the message as it is published again: with all that the application
// gave it, and without what the broker added or would act on.
func (r *run) copied(d amqp.Delivery) amqp.Publishing {
	headers := amqp.Table{}
	for name, value := range d.Headers {
		if !added(name) {
			headers[name] = value
		}
	}
	headers["x-replay-id"] = r.report.Message.ReplayID
	headers["x-replayed-by"] = r.order.By
	return amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}
