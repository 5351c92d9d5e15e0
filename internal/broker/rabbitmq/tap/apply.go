package tap

import (
	"context"
	"crypto/rand"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

// confirmTime bounds the wait for the broker to have a message.
const confirmTime = 10 * time.Second

var (
	// errUnrouted: the exchange led our message to no queue.
	errUnrouted = link.Say(flow.T("the exchange of the tap is not bound to its stream: run idemscope rabbitmq tap apply",
		"采集用的交换机没有绑定到 stream：请运行 idemscope rabbitmq tap apply"))
	errNotTaken = link.Say(flow.T("the broker did not take a message for the stream", "Broker 没有接收写入 stream 的消息"))
)

// writer writes to the stream, one message at a time.
type writer struct {
	*amqp.Channel
	exchange string
	returned chan amqp.Return
}

func (t *Tap) newWriter(conn *amqp.Connection) (*writer, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return &writer{Channel: ch, exchange: t.options.Stream, returned: ch.NotifyReturn(make(chan amqp.Return, 1))}, nil
}

// Apply does what is pending in the plan, in order, and reports each step after
// it is done. It stops at the first failure; planning and applying again goes on
// from there.
func (t *Tap) Apply(ctx context.Context, p Plan, report func(Step)) error {
	if !p.Pending() {
		return nil
	}
	conn, err := t.address.Dial(ctx, "idemscope tap apply")
	if err != nil {
		return t.address.Fail(flow.T("connect as the tap's user", "以采集用户连接"), err)
	}
	defer link.Close(conn)
	w, err := t.newWriter(conn)
	if err != nil {
		return t.address.Fail(flow.T("connect as the tap's user", "以采集用户连接"), err)
	}
	for _, s := range p.Steps {
		if s.Done {
			continue
		}
		if err := s.do(ctx, w); err != nil {
			return t.address.Fail(s.Text, err)
		}
		report(s)
	}
	return nil
}

// PlanRemoval says what Apply would take away: all that a tap is made of. It
// changes nothing.
func (t *Tap) PlanRemoval(ctx context.Context) (Plan, error) {
	var p Plan
	var err error
	if p.Version, err = t.options.Manager.Version(ctx); err != nil {
		return Plan{}, err
	}
	for _, name := range []string{t.options.DeadLetters, t.options.Stream} {
		layout, err := t.options.Manager.Layout(ctx, name)
		if err != nil {
			return Plan{}, err
		}
		if layout.Exists {
			p.Steps = append(p.Steps, deleteStep(name))
		}
	}
	kind, err := t.options.Manager.ExchangeKind(ctx, t.options.Stream)
	if err != nil {
		return Plan{}, err
	}
	if kind != "" {
		p.Steps = append(p.Steps, Step{
			Text: flow.T("delete exchange %s", "删除交换机 %s", flow.Visible(t.options.Stream)),
			do: func(_ context.Context, w *writer) error {
				return w.ExchangeDelete(t.options.Stream, false, false)
			},
		})
	}
	return p, nil
}

// mark is a message of our own in the stream. It tells how far the stream was
// read, and from when on an exchange is bound to it.
type mark struct {
	kind     string
	exchange string // of a markBound
	id       string
	at       time.Time
}

const (
	markBound = "bound"
	markHere  = "here"

	headerMark     = "idemscope_mark" // no hyphen: a filter has to name it
	headerExchange = "idemscope-exchange"
	headerAt       = "idemscope-at" // Unix time in ms, by the clock of the writer
)

func newMark(kind string) mark { return mark{kind: kind, id: rand.Text(), at: time.Now()} }

// mark writes a mark.
func (w *writer) mark(ctx context.Context, m mark) error {
	return w.write(ctx, amqp.Publishing{
		MessageId: m.id, DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{headerMark: m.kind, headerExchange: m.exchange, headerAt: m.at.UnixMilli()},
	})
}

// write puts a message into the stream and returns when the broker has it.
func (w *writer) write(ctx context.Context, message amqp.Publishing) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	confirm, err := w.PublishWithDeferredConfirmWithContext(ctx, w.exchange, "", true, false, message)
	if err != nil {
		return err
	}
	taken, err := confirm.WaitContext(ctx)
	select {
	case _, isReturn := <-w.returned:
		// A return arrives before the confirm; a closed channel is no return.
		if isReturn {
			return errUnrouted
		}
	default:
	}
	if err == nil && !taken {
		err = errNotTaken
	}
	return err
}
