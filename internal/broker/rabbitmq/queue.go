package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// columns are the facts that are asked for of one queue.
const columns = "name,type,state,arguments,effective_policy_definition," +
	"messages,messages_ready,messages_unacknowledged,consumers,message_stats.redeliver"

// Queues asks for each queue by its name, at most maxConnections at a time, and
// answers in the same order. The timeout holds for each; ctx bounds them all.
//
// A queue whose totals RabbitMQ has not sampled yet is Unknown, as is one that
// is down.
func (b *Broker) Queues(ctx context.Context, named []broker.NamedQueue) []broker.Queue {
	queues := make([]broker.Queue, len(named))
	var wg sync.WaitGroup
	free := make(chan struct{}, maxConnections)
	for i, q := range named {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			queues[i] = b.queue(ctx, q)
		})
	}
	wg.Wait()
	return queues
}

func (b *Broker) queue(ctx context.Context, named broker.NamedQueue) broker.Queue {
	q := broker.Queue{Name: named.Name, Role: named.Role}
	var answer answer
	start := time.Now()
	err := b.askFor(ctx, columns, named.Name, &answer, &answer.Name)
	q.Observation = flow.Observation{
		Source:  b.source() + ", queue " + flow.Visible(named.Name),
		ReadAt:  time.Now(),
		Took:    time.Since(start),
		Command: b.command(named.Name),
	}
	switch {
	case err == nil:
		answer.fill(&q)
	case errors.Is(err, errNoQueue):
		q.State = flow.Absent
		q.Reason = flow.T("there is no such queue in vhost %s", "vhost %s 中没有该队列", flow.Visible(b.opts.Vhost))
	default:
		q.State = flow.Error
		q.Reason = b.explain(err, q.Took)
	}
	return q
}

// askFor gets the columns of one queue into answer; named is where the answer
// has the queue's name. RabbitMQ answers a queue that is missing and a vhost that
// is missing in the same way; an exchange that every vhost has tells them apart.
func (b *Broker) askFor(ctx context.Context, columns, name string, answer any, named *string) error {
	if isDots(name) {
		return errUnnameable
	}
	err := b.get(ctx, b.url(columns, "queues", b.opts.Vhost, name), answer)
	switch {
	case err == nil && *named != name:
		return errNotRabbitMQ
	case !isMissing(err):
		return err
	}
	var exchange struct{}
	err = b.get(ctx, b.url("name", "exchanges", b.opts.Vhost, "amq.direct"), &exchange)
	switch {
	case err == nil:
		return errNoQueue
	case isMissing(err):
		return errNoVhost
	}
	return err
}

// answer is one queue as the management API shows it. What RabbitMQ has not
// sampled yet is missing there, and nil here: a queue has its totals
// some seconds after its declaration.
type answer struct {
	Name         string
	Type         string
	State        string
	Arguments    object
	Policy       object `json:"effective_policy_definition"`
	Messages     *int64
	Ready        *int64 `json:"messages_ready"`
	Unacked      *int64 `json:"messages_unacknowledged"`
	Consumers    *int64
	MessageStats object `json:"message_stats"`
}

// object is a JSON object. An empty one may come as an empty list, for which
// Erlang has the same value.
type object map[string]json.RawMessage

func (o *object) UnmarshalJSON(data []byte) error {
	if string(data) == "[]" {
		return nil
	}
	return json.Unmarshal(data, (*map[string]json.RawMessage)(o))
}

func (o object) has(name string) bool { _, ok := o[name]; return ok }

// fill puts the facts into the queue.
func (a answer) fill(q *broker.Queue) {
	q.Kind = a.Type
	// An empty name is an exchange, too: the default one.
	q.DeadLetterExchange = a.Arguments.has("x-dead-letter-exchange") || a.Policy.has("dead-letter-exchange")
	if text, ok := a.MessageStats["redeliver"]; ok {
		q.RedeliveredKnown = json.Unmarshal(text, &q.Redelivered) == nil
	}
	q.State = flow.Unknown
	switch {
	case a.State != "" && a.State != "running" && a.State != "idle" && a.State != "flow":
		q.Reason = flow.T("the queue is in the state %s: its totals say nothing", "队列状态为 %s：其统计数字不可信", flow.Visible(a.State))
	case a.Ready == nil || a.Unacked == nil || a.Consumers == nil:
		q.Reason = flow.T("RabbitMQ has not counted this queue yet; that takes some seconds after its declaration", "RabbitMQ 尚未统计该队列；队列声明后需要几秒钟")
	case *a.Ready < 0 || *a.Unacked < 0 || *a.Consumers < 0:
		// Taken together they could look like an empty queue.
		q.Reason = flow.T("RabbitMQ gives figures below zero, which say nothing", "RabbitMQ 给出的数字小于零，不可信")
	default:
		q.State = flow.Found
		q.Ready, q.Unacked, q.Consumers = *a.Ready, *a.Unacked, *a.Consumers
		if a.Messages != nil {
			q.Other = max(0, *a.Messages-q.Ready-q.Unacked)
		}
	}
}
