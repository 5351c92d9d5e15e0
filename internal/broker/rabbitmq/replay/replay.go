// Package replay moves one dead-lettered message back to the queue that it came
// from, by a person's order: it looks for the message in the dead-letter queue,
// publishes a copy, and removes the dead letter only once the broker has
// confirmed the copy. A message is never lost; after a crash in between it is in
// both queues, under the same x-replay-id.
//
// It is the one place that takes messages out of a queue of the application, and
// it takes them from dead-letter queues alone. Looking makes the others there
// show as redelivered; where it could do worse, it refuses.
//
// Its user needs to read the dead-letter queue and to write to the default
// exchange (amq.default), and nothing else.
package replay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

const (
	// maxMessages is how many dead letters one search takes, maxBytes their size.
	maxMessages = 1000
	maxBytes    = 64 << 20
	// searchTime bounds a search, confirmTime what is waited for the broker after it.
	searchTime  = 15 * time.Second
	confirmTime = 10 * time.Second
)

// Reader says how queues are set up. *rabbitmq.Broker is one.
type Reader interface {
	SetUp(ctx context.Context, named []broker.NamedQueue) (broker.SetUp, error)
}

// Options describe the replays of one broker.
type Options struct {
	// Broker is the configured name. Mandatory.
	Broker string
	// AMQP is the URL with the credential of replays. Mandatory, secret.
	AMQP string
	// TLS is for an amqps URL; nil means the system's certificates.
	TLS *tls.Config
	// Reader is mandatory.
	Reader Reader
	// Flows are all that are configured. Mandatory.
	Flows []flow.Flow
}

// Replayer replays messages of one broker. It is safe for concurrent use.
type Replayer struct {
	options Options
	address link.Address
	// beforeAck is called when the copy is confirmed and the dead letter still
	// there. Only tests set it.
	beforeAck func()
}

// New checks the options. It does no I/O.
func New(o Options) (*Replayer, error) {
	address, err := link.ParseAddress(o.AMQP, o.TLS)
	if err != nil {
		return nil, fmt.Errorf("replays of broker %s: amqp %w", o.Broker, err)
	}
	if o.Broker == "" || o.Reader == nil || len(o.Flows) == 0 {
		return nil, errors.New("replay: a broker, a reader and flows are mandatory")
	}
	return &Replayer{options: o, address: address, beforeAck: func() {}}, nil
}

// Look says how the dead-letter queue of a flow is set up, and whether messages
// may be replayed from it. It touches no message.
func (r *Replayer) Look(ctx context.Context, q flow.Queue) broker.DeadLetterQueue {
	start := time.Now()
	dead := broker.DeadLetterQueue{Name: q.DeadLetter}
	setUp, err := r.options.Reader.SetUp(ctx, []broker.NamedQueue{{Name: q.DeadLetter, Role: broker.RoleDeadLetter}})
	dead.Source, dead.ReadAt = "rabbitmq "+r.options.Broker, time.Now()
	dead.Took = dead.ReadAt.Sub(start)
	if err != nil {
		dead.State, dead.Reason = flow.Error, link.Words(err)
		return dead
	}
	one := setUp.Queues[0]
	if one.State != flow.Found {
		dead.State, dead.Reason = flow.Error, one.Reason
		return dead
	}
	version, err := rabbitmq.ParseVersion(setUp.Version)
	if err != nil {
		dead.State, dead.Reason = flow.Error, flow.T("%s", "%s", err.Error())
		return dead
	}
	dead.State, dead.Kind, dead.Messages, dead.Consumers, dead.Counted = flow.Found, one.Kind, one.Messages, one.Consumers, one.Counted
	dead.Refused = r.unfit(one, version)
	dead.Warnings = warnings(one)
	return dead
}

// unfit is why a search in the queue could do harm, or find nothing.
func (r *Replayer) unfit(q broker.QueueSetUp, v rabbitmq.Version) broker.Unfit {
	name := flow.Visible(q.Name)
	for _, f := range r.options.Flows {
		if f.Queue == nil || f.Queue.Broker != r.options.Broker {
			continue
		}
		for _, other := range append([]string{f.Queue.Name}, f.Queue.Retry...) {
			if other == q.Name {
				return broker.Unfit{Code: "shared_queue", Text: flow.T("queue %s is a work or retry queue of flow %s: messages are never taken from those", "队列 %s 是流程 %s 的工作或重试队列：绝不从中取消息", name, f.Name)}
			}
		}
	}
	switch q.Kind {
	case "classic":
		return broker.Unfit{}
	case "stream":
		return broker.Unfit{Code: "stream_queue", Text: flow.T("queue %s is a stream: its messages cannot be taken out; publish the message anew from the application", "队列 %s 是 stream：无法取出其中的消息；请由应用重新发布", name)}
	case "quorum":
		return unfitQuorum(q, v)
	}
	return broker.Unfit{Code: "unknown_queue_kind", Text: flow.T("queue %s is of the kind %s, which is not known here", "队列 %s 的类型为 %s，本程序不认识", name, flow.Visible(q.Kind))}
}

// unfitQuorum: where giving a message back counts as a failed delivery, searches
// would use up the limit of the others, and the broker would drop them.
func unfitQuorum(q broker.QueueSetUp, v rabbitmq.Version) broker.Unfit {
	can := v.Abilities()
	limit := q.DeliveryLimit
	if limit < 0 && !q.Unlimited && can.DeliveryLimit > 0 {
		limit = int64(can.DeliveryLimit)
	}
	if limit < 0 || !can.GetCounts {
		return broker.Unfit{}
	}
	return broker.Unfit{Code: "delivery_limit", Text: flow.T(
		"quorum queue %s gives a message up after %d deliveries, and on RabbitMQ %s each search counts as one for every message that it passes: set the policy delivery-limit to -1 for it",
		"quorum 队列 %s 在 %d 次投递后会丢弃消息，而在 RabbitMQ %s 上每次搜索都会给经过的每条消息计一次：请通过策略将其 delivery-limit 设为 -1", flow.Visible(q.Name), limit, v)}
}

func warnings(q broker.QueueSetUp) []flow.Text {
	texts := []flow.Text{flow.T(
		"to find the message, up to %d messages are taken from %s and given back; until then nobody else gets them, and afterwards they show as redelivered", "为找到该消息，最多从 %[2]s 取出 %[1]d 条消息再放回；期间他人取不到它们，之后它们会显示为重新投递",
		maxMessages, flow.Visible(q.Name))}
	if q.Kind == "quorum" && q.DeliveryLimit < 0 {
		texts = append(texts, flow.T("in this quorum queue, messages that are given back may go to its end: their order changes", "在该 quorum 队列中，放回的消息可能排到队尾：顺序会改变"))
	}
	if q.Counted && q.Consumers > 0 {
		texts = append(texts, flow.T("%d consumers read the dead-letter queue: one of them may take the message first", "有 %d 个消费者在读取死信队列：消息可能先被它们取走", q.Consumers))
	}
	return texts
}
