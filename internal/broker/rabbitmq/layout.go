package rabbitmq

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"idemscope/internal/flow"
)

// Layout is how one queue is set up: what leads to it, and where its dead letters go.
type Layout struct {
	// Exists is false when RabbitMQ has no such queue; then the rest is empty.
	Exists bool
	Name   string
	// Kind is RabbitMQ's word: classic, quorum, stream.
	Kind string
	// Arguments are those of the declaration. Whole numbers are int64.
	Arguments map[string]any
	// Bindings lead to the queue. The one of the default exchange, which every
	// queue has, is left out.
	Bindings []Binding
	// DeadLetters is nil when rejected and expired messages are dropped.
	DeadLetters *DeadLetters
}

// Binding leads from an exchange to a queue.
type Binding struct {
	Exchange string
	Key      string
	// Arguments matter to a headers exchange. Whole numbers are int64.
	Arguments map[string]any
}

// DeadLetters is where a queue's dead letters go, by argument or policy.
type DeadLetters struct {
	// Exchange is empty for the default exchange.
	Exchange string
	// Key replaces a message's own routing key when HasKey is set.
	Key    string
	HasKey bool
}

// Layout reads how a queue is set up. The error is an *Error; it holds no secret.
func (b *Broker) Layout(ctx context.Context, queue string) (Layout, error) {
	start := time.Now()
	layout, err := b.layout(ctx, queue)
	if err != nil {
		return Layout{}, b.failure(err, start)
	}
	return layout, nil
}

func (b *Broker) layout(ctx context.Context, queue string) (Layout, error) {
	var described answer
	err := b.askFor(ctx, columns, queue, &described, &described.Name)
	switch {
	case err == errNoQueue:
		return Layout{Name: queue}, nil
	case err != nil:
		return Layout{}, err
	}
	layout := Layout{Exists: true, Name: queue, Kind: described.Type, Arguments: described.Arguments.values(), DeadLetters: described.deadLetters()}
	var bindings []struct {
		Source    string
		Key       string `json:"routing_key"`
		Arguments object
	}
	address := b.url("source,routing_key,arguments", "queues", b.opts.Vhost, queue, "bindings")
	if err := b.get(ctx, address, &bindings); err != nil {
		return Layout{}, err
	}
	for _, one := range bindings {
		if one.Source != "" {
			layout.Bindings = append(layout.Bindings, Binding{Exchange: one.Source, Key: one.Key, Arguments: one.Arguments.values()})
		}
	}
	return layout, nil
}

// deadLetters reads both places in which they can be set; an argument overrides a policy.
func (a answer) deadLetters() *DeadLetters {
	var d DeadLetters
	text := func(argument, policy string) (string, bool) {
		for _, raw := range []json.RawMessage{a.Arguments[argument], a.Policy[policy]} {
			var s string
			if raw != nil && json.Unmarshal(raw, &s) == nil {
				return s, true
			}
		}
		return "", false
	}
	var set bool
	if d.Exchange, set = text("x-dead-letter-exchange", "dead-letter-exchange"); !set {
		return nil
	}
	d.Key, d.HasKey = text("x-dead-letter-routing-key", "dead-letter-routing-key")
	return &d
}

// values decodes an object. Whole numbers stay whole: a binding's argument that
// became a float would match other messages.
func (o object) values() map[string]any {
	values := map[string]any{}
	for name, raw := range o {
		var v any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if d.Decode(&v) != nil {
			continue
		}
		if n, ok := v.(json.Number); ok {
			if whole, err := n.Int64(); err == nil {
				v = whole
			} else if v, err = n.Float64(); err != nil {
				continue
			}
		}
		values[name] = v
	}
	return values
}

// ExchangeKind returns RabbitMQ's word for the kind of an exchange: direct,
// topic, fanout, headers or that of a plugin; empty when there is no such
// exchange. The error is an *Error; it holds no secret.
func (b *Broker) ExchangeKind(ctx context.Context, exchange string) (string, error) {
	start := time.Now()
	var described struct{ Name, Type string }
	err := errUnnameable
	if !isDots(exchange) && exchange != "" {
		err = b.get(ctx, b.url("name,type", "exchanges", b.opts.Vhost, exchange), &described)
	}
	switch {
	case isMissing(err):
		return "", nil
	case err == nil && described.Name != exchange:
		err = errNotRabbitMQ
	}
	if err != nil {
		return "", b.failure(err, start)
	}
	return described.Type, nil
}

// Version asks which version of RabbitMQ runs. The error is an *Error; it holds no secret.
func (b *Broker) Version(ctx context.Context) (Version, error) {
	start := time.Now()
	text, err := b.Ping(ctx)
	if err != nil {
		return Version{}, err
	}
	v, err := ParseVersion(text)
	if err != nil {
		return Version{}, b.failure(errNotRabbitMQ, start)
	}
	return v, nil
}

// Vhost is the configured vhost.
func (b *Broker) Vhost() string { return b.opts.Vhost }

// Host is the address of the management API, for people.
func (b *Broker) Host() string { return (&url.URL{Scheme: b.base.Scheme, Host: b.base.Host}).String() }

// Words are the explanation for people.
func (e *Error) Words() flow.Text { return e.Text }

func (b *Broker) failure(err error, start time.Time) *Error {
	return &Error{Text: b.explain(err, time.Since(start)), Source: b.source(), cause: err}
}
