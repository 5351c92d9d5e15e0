package tap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

// Size bounds what the stream keeps.
type Size struct {
	// MaxAge of a message. At least a minute.
	MaxAge time.Duration
	// MaxBytes of the stream on each node that holds it. At least 10 MB.
	MaxBytes int64
}

const (
	minAge   = time.Minute
	minBytes = 10_000_000
	// segments is into how many files the stream is cut: whole files are dropped.
	segments = 20
	// maxSegment is RabbitMQ's own size of a file.
	maxSegment = 500_000_000
	// deadLetters and deadLetterBytes bound the queue of dead letters, which
	// fills only while nobody collects; its oldest messages go first.
	deadLetters     = 100_000
	deadLetterBytes = 100_000_000
)

// Plan is what has to be made, or removed, for a tap.
type Plan struct {
	Version rabbitmq.Version
	Steps   []Step
	// Blind says what the tap cannot see.
	Blind []Blind
	// Notes say what the tap costs and what it proves.
	Notes []flow.Text
}

// Blind is one thing of a flow that the tap cannot see.
type Blind struct {
	Flow string
	Text flow.Text
}

// Step is one change of the broker.
type Step struct {
	Text   flow.Text
	Effect flow.Text
	// Done: it is there already, or gone already.
	Done bool
	do   func(ctx context.Context, w *writer) error
}

// Pending reports whether anything is left to be done.
func (p Plan) Pending() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return !s.Done })
}

// Plan reads the broker and says what Apply would do. It changes nothing. The
// error words what stands in the way.
func (t *Tap) Plan(ctx context.Context, size Size) (Plan, error) {
	if size.MaxAge < minAge || size.MaxBytes < minBytes {
		return Plan{}, link.Say(flow.T("the tap keeps at least %v and %d bytes: raise --max-age or --max-bytes", "采集流至少保留 %v 和 %d 字节：请调大 --max-age 或 --max-bytes", flow.Span(minAge), minBytes))
	}
	top, err := t.look(ctx, t.flows)
	if err != nil {
		return Plan{}, err
	}
	can := top.version.Abilities()
	if !can.Streams {
		return Plan{}, link.Say(flow.T("RabbitMQ %s has no streams; a tap needs 3.9 or newer", "RabbitMQ %s 没有 stream；采集需要 3.9 或更新版本", top.version))
	}
	p := Plan{Version: top.version, Notes: notes}
	if err := t.planStream(ctx, &p, top, size); err != nil {
		return Plan{}, err
	}
	if err := t.planDeadLetters(ctx, &p, top); err != nil {
		return Plan{}, err
	}
	for _, f := range t.flows {
		for _, text := range top.blind[f.Name] {
			p.Blind = append(p.Blind, Blind{Flow: f.Name, Text: text})
		}
		if !f.Queue.NamesID() {
			p.Blind = append(p.Blind, Blind{Flow: f.Name, Text: noField})
		}
	}
	return p, nil
}

// noField: a message id is not taken for the biz_id unless the flow says so,
// because a publisher that tries again mostly makes a new one.
var noField = flow.T("the flow does not say where its messages hold the biz_id: set queue.id",
	"该流程没有说明消息中业务 ID 的位置：请设置 queue.id")

var notes = []flow.Text{
	flow.T("cost: each message that is published to a tapped exchange is stored once more. Measured on one node with persistent messages of 300 B: +73% broker CPU per message on 3.10.8, +21% to +39% on 4.3.6; nothing for other exchanges",
		"代价：发布到被采集交换机的每条消息会多存一份。单节点、300 字节持久消息实测：3.10.8 上每条消息的 Broker CPU 增加 73%，4.3.6 上增加 21% 至 39%；其他交换机不受影响"),
	flow.T("it does not show deliveries, acks, or messages sent to a queue by the default exchange", "它看不到投递、确认，也看不到经默认交换机直接发往队列的消息"),
}

// streamBindings are those that the stream needs.
func streamBindings(top topology) []rabbitmq.Binding {
	routes := top.feeds
	if top.version.Abilities().DeadLettersReachStreams {
		routes = slices.Concat(routes, top.deaths)
	}
	return bindings(routes)
}

func (t *Tap) planStream(ctx context.Context, p *Plan, top topology, size Size) error {
	stream := t.options.Stream
	there, err := t.options.Manager.Layout(ctx, stream)
	if err != nil {
		return err
	}
	args := streamArguments(size)
	if err := sameQueue(there, "stream", args); err != nil {
		return err
	}
	p.Steps = append(p.Steps, declareStep(stream, args, there.Exists, flow.T(
		"stream %s, which keeps messages for %v, at most %s", "stream %s，保留 %v 内的消息，最多 %s", flow.Visible(stream), flow.Span(size.MaxAge), megabytes(size.MaxBytes))))
	kind, err := t.options.Manager.ExchangeKind(ctx, stream)
	if err != nil {
		return err
	}
	if kind != "" && kind != "fanout" {
		return link.Say(flow.T("there is an exchange %s of kind %s that is not ours: choose another name under tap.stream", "已有名为 %s、类型为 %s 的交换机，并非本工具创建：请在 tap.stream 中换一个名称", flow.Visible(stream), flow.Visible(kind)))
	}
	own := rabbitmq.Binding{Exchange: stream}
	p.Steps = append(p.Steps, Step{
		Text: flow.T("create exchange %s (fanout) for our own marks in the stream", "创建交换机 %s（fanout），用于在 stream 中写入我们自己的标记", flow.Visible(stream)), Done: kind != "",
		do: func(_ context.Context, w *writer) error {
			return w.ExchangeDeclare(stream, "fanout", true, false, false, false, nil)
		},
	})
	wanted := append([]rabbitmq.Binding{own}, streamBindings(top)...)
	t.planBindings(p, stream, wanted, there.Bindings)
	return nil
}

// planDeadLetters gives dead letters a queue where they cannot reach the stream.
func (t *Tap) planDeadLetters(ctx context.Context, p *Plan, top topology) error {
	name := t.options.DeadLetters
	there, err := t.options.Manager.Layout(ctx, name)
	if err != nil {
		return err
	}
	wanted := bindings(top.deaths)
	if top.version.Abilities().DeadLettersReachStreams || len(wanted) == 0 {
		if there.Exists {
			p.Steps = append(p.Steps, deleteStep(name))
		}
		return nil
	}
	args := amqp.Table{"x-queue-type": "classic", "x-max-length": int64(deadLetters), "x-max-length-bytes": int64(deadLetterBytes), "x-overflow": "drop-head"}
	if err := sameQueue(there, "classic", args); err != nil {
		return err
	}
	step := declareStep(name, args, there.Exists, flow.T("queue %s for copies of dead letters, at most %d; the collector moves them to the stream", "队列 %s，存放死信副本，最多 %d 条；由采集器转入 stream", flow.Visible(name), deadLetters))
	step.Effect = flow.T("RabbitMQ %s lets no dead letter into a stream. While nobody collects, the oldest copies are dropped", "RabbitMQ %s 不会把死信写入 stream。无人采集期间，最旧的副本会被丢弃", top.version)
	p.Steps = append(p.Steps, step)
	t.planBindings(p, name, wanted, there.Bindings)
	return nil
}

// planBindings adds what is missing and takes away what no flow needs any more.
func (t *Tap) planBindings(p *Plan, queue string, wanted, there []rabbitmq.Binding) {
	missing := lacking(wanted, there)
	for _, b := range wanted {
		done := len(lacking([]rabbitmq.Binding{b}, missing)) > 0
		p.Steps = append(p.Steps, Step{
			Text: flow.T("bind %s to exchange %s, key %q", "把 %s 绑定到交换机 %s，路由键 %q", flow.Visible(queue), flow.Visible(b.Exchange), b.Key), Done: done,
			do: func(ctx context.Context, w *writer) error {
				if err := w.QueueBind(queue, b.Key, b.Exchange, false, amqp.Table(b.Arguments)); err != nil {
					return err
				}
				if queue != t.options.Stream {
					return nil
				}
				m := newMark(markBound)
				m.exchange = b.Exchange
				return w.mark(ctx, m)
			},
		})
	}
	for _, b := range lacking(there, wanted) {
		p.Steps = append(p.Steps, Step{
			Text: flow.T("unbind %s from exchange %s, key %q: no flow needs it", "解除 %s 与交换机 %s 的绑定，路由键 %q：已没有流程需要", flow.Visible(queue), flow.Visible(b.Exchange), b.Key),
			do: func(_ context.Context, w *writer) error {
				return w.QueueUnbind(queue, b.Key, b.Exchange, amqp.Table(b.Arguments))
			},
		})
	}
}

func declareStep(name string, args amqp.Table, done bool, what flow.Text) Step {
	return Step{
		Text: flow.T("create %s", "创建 %s", what), Done: done,
		do: func(_ context.Context, w *writer) error {
			_, err := w.QueueDeclare(name, true, false, false, false, args)
			return err
		},
	}
}

func deleteStep(name string) Step {
	return Step{
		Text: flow.T("delete queue %s with what it keeps", "删除队列 %s 及其内容", flow.Visible(name)),
		do: func(_ context.Context, w *writer) error {
			_, err := w.QueueDelete(name, false, false, false)
			return err
		},
	}
}

func streamArguments(s Size) amqp.Table {
	return amqp.Table{
		"x-queue-type": "stream", "x-max-age": ageWord(s.MaxAge), "x-max-length-bytes": s.MaxBytes,
		"x-stream-max-segment-size-bytes": min(s.MaxBytes/segments, maxSegment),
	}
}

// ageWord is a span in RabbitMQ's words.
func ageWord(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1_000_000) }

// sameQueue refuses a queue of the name that is set up in another way.
func sameQueue(there rabbitmq.Layout, kind string, args amqp.Table) error {
	if !there.Exists {
		return nil
	}
	name := flow.Visible(there.Name)
	if there.Kind != kind {
		return link.Say(flow.T("there is a queue %s, and it is a %s, not a %s: choose another name in the configuration", "已有名为 %s 的队列，其类型是 %s 而不是 %s：请在配置中换一个名称", name, flow.Visible(there.Kind), kind))
	}
	for _, key := range slices.Sorted(maps.Keys(args)) {
		// The kind may come from a default of the vhost instead of an argument.
		if have := there.Arguments[key]; key != "x-queue-type" && fmt.Sprint(have) != fmt.Sprint(args[key]) {
			return link.Say(flow.T("queue %s is there with %s=%v instead of %v: repeat the options it was made with, or remove the tap first, which forgets what it holds",
				"队列 %s 已存在，但 %s=%v 而不是 %v：请使用创建时的选项，或先移除采集（会丢失其中的内容）", name, key, shown(have), args[key]))
		}
	}
	return nil
}

func shown(v any) any {
	if s, ok := v.(string); ok {
		return flow.Visible(s)
	}
	if v == nil {
		return "-"
	}
	return v
}
