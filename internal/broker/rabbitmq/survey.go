package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// surveyColumns are the facts that are asked for of the set-up of one queue.
const surveyColumns = "name,type,durable,auto_delete,arguments,effective_policy_definition,messages,messages_details.rate,consumers,head_message_timestamp"

// SetUp asks for the version, for what this user is, and for the set-up of each
// queue and of what takes its dead letters: GET requests, each for one thing by
// its name. The error is an *Error: the broker could not be asked at all.
func (b *Broker) SetUp(ctx context.Context, named []broker.NamedQueue) (broker.SetUp, error) {
	version, err := b.Ping(ctx)
	if err != nil {
		return broker.SetUp{}, err
	}
	s := broker.SetUp{Version: version, Queues: make([]broker.QueueSetUp, len(named))}
	start := time.Now()
	if s.Tags, err = b.tags(ctx); err != nil {
		s.TagsWhy = b.explain(err, time.Since(start))
	}
	var wg sync.WaitGroup
	free := make(chan struct{}, maxConnections)
	for i, q := range named {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			s.Queues[i] = b.surveyQueue(ctx, q)
		})
	}
	wg.Wait()
	return s, nil
}

// tags are a list since 3.9, and words with commas before.
func (b *Broker) tags(ctx context.Context) ([]string, error) {
	var me struct{ Tags json.RawMessage }
	if err := b.get(ctx, b.url("name,tags", "whoami"), &me); err != nil {
		return nil, err
	}
	var list []string
	if json.Unmarshal(me.Tags, &list) == nil {
		return list, nil
	}
	var words string
	if json.Unmarshal(me.Tags, &words) != nil {
		return nil, errNotRabbitMQ
	}
	return strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == ' ' }), nil
}

// declared is one queue as the management API shows it.
type declared struct {
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool `json:"auto_delete"`
	Arguments  object
	Policy     object `json:"effective_policy_definition"`
	Messages   *int64
	Details    struct{ Rate float64 } `json:"messages_details"`
	Consumers  *int64
	// Head is in seconds since 1970 where a classic queue knows it, else null or empty.
	Head json.RawMessage `json:"head_message_timestamp"`
}

func (b *Broker) surveyQueue(ctx context.Context, named broker.NamedQueue) broker.QueueSetUp {
	q := broker.QueueSetUp{Name: named.Name, Role: named.Role, DeliveryLimit: -1}
	var is declared
	start := time.Now()
	err := b.askFor(ctx, surveyColumns, named.Name, &is, &is.Name)
	switch {
	case errors.Is(err, errNoQueue):
		q.State = flow.Absent
		q.Reason = flow.T("there is no such queue in vhost %s", "vhost %s 中没有该队列", flow.Visible(b.opts.Vhost))
		return q
	case err != nil:
		q.State, q.Reason = flow.Error, b.explain(err, time.Since(start))
		return q
	}
	q.State, q.Kind, q.Durable, q.AutoDelete = flow.Found, is.Type, is.Durable, is.AutoDelete
	is.limits(&q)
	if is.Messages != nil && is.Consumers != nil {
		q.Counted, q.Messages, q.Consumers, q.Growth = true, *is.Messages, *is.Consumers, is.Details.Rate
	}
	q.HeadPublished = is.headPublished()
	q.DeadLetter = b.deadLetter(ctx, is)
	return q
}

// headPublished is zero as well for a figure beyond the year 2262: some
// publishers count milliseconds or set the largest number there is.
func (is declared) headPublished() time.Time {
	var seconds int64
	if json.Unmarshal(is.Head, &seconds) != nil || seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// limits reads what bounds a message's stay in the queue.
func (is declared) limits(q *broker.QueueSetUp) {
	if n, ok := is.number("delivery-limit"); ok {
		q.DeliveryLimit, q.Unlimited = max(n, -1), n < 0
	}
	_, length := is.number("max-length")
	_, size := is.number("max-length-bytes")
	q.Bounded = length || size
	q.Overflow, _ = is.word("overflow")
	q.MessageTTL, q.Expires = is.span("message-ttl")
	q.Mirrored = is.Policy.has("ha-mode")
	q.AckTimeout, _ = is.span("consumer-timeout")
}

// span is a setting in milliseconds.
func (is declared) span(name string) (time.Duration, bool) {
	ms, ok := is.number(name)
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, ok
}

// number is the setting of the queue's argument or of its policies: the lower
// one where both have it, as RabbitMQ takes it.
func (is declared) number(name string) (n int64, ok bool) {
	for _, text := range [][]byte{is.Arguments["x-"+name], is.Policy[name]} {
		var one int64
		if len(text) == 0 || json.Unmarshal(text, &one) != nil {
			continue
		}
		if !ok || one < n {
			n = one
		}
		ok = true
	}
	return n, ok
}

// word is the setting of the queue's argument, or else of its policies.
func (is declared) word(name string) (word string, ok bool) {
	for _, text := range [][]byte{is.Arguments["x-"+name], is.Policy[name]} {
		if len(text) > 0 && json.Unmarshal(text, &word) == nil {
			return word, true
		}
	}
	return "", false
}

// deadLetter follows dead letters one step: to the exchange, and to whether
// anything is bound to it.
func (b *Broker) deadLetter(ctx context.Context, is declared) *broker.DeadLetter {
	exchange, ok := is.word("dead-letter-exchange")
	if !ok {
		return nil
	}
	d := &broker.DeadLetter{Exchange: exchange}
	d.Key, _ = is.word("dead-letter-routing-key")
	start := time.Now()
	var err error
	switch {
	case exchange != "":
		err = b.followExchange(ctx, d)
	case d.Key == "":
		d.State = flow.Unknown
		d.Reason = flow.T("they keep their own routing key, which differs from message to message", "它们保留各自的路由键，每条消息可能不同")
	default:
		err = b.followQueue(ctx, d)
	}
	if err != nil {
		d.State, d.Reason = flow.Error, b.explain(err, time.Since(start))
	}
	return d
}

func (b *Broker) followQueue(ctx context.Context, d *broker.DeadLetter) error {
	var target struct{ Name string }
	err := b.askFor(ctx, "name", d.Key, &target, &target.Name)
	d.State = flow.Found
	if errors.Is(err, errNoQueue) {
		d.State = flow.Absent
		d.Reason = flow.T("the default exchange would pass them to the queue %s, and there is none", "默认交换机会把它们转到队列 %s，而该队列不存在", flow.Visible(d.Key))
		return nil
	}
	return err
}

func (b *Broker) followExchange(ctx context.Context, d *broker.DeadLetter) error {
	if isDots(d.Exchange) {
		return errUnnameable
	}
	name := flow.Visible(d.Exchange)
	var exchange struct{ Arguments object }
	err := b.get(ctx, b.url("name,arguments", "exchanges", b.opts.Vhost, d.Exchange), &exchange)
	if isMissing(err) {
		d.State = flow.Absent
		d.Reason = flow.T("there is no exchange %s", "没有交换机 %s", name)
		return nil
	}
	if err != nil {
		return err
	}
	var bound []struct{ Destination string }
	if err := b.get(ctx, b.url("destination", "exchanges", b.opts.Vhost, d.Exchange, "bindings", "source"), &bound); err != nil {
		return err
	}
	d.State = flow.Found
	switch {
	case len(bound) > 0:
	case exchange.Arguments.has("alternate-exchange"):
	default:
		d.State = flow.Absent
		d.Reason = flow.T("nothing is bound to the exchange %s", "交换机 %s 上没有任何绑定", name)
	}
	return nil
}

// Worded is the text for people, for those who do not know this package.
func (e *Error) Worded() flow.Text { return e.Text }
