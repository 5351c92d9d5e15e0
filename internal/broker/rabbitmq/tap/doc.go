// Package tap tells what was published to the exchanges that feed the flows, and
// what was dead-lettered, without touching a message of an application: a stream
// of our own is bound to those exchanges and followed.
//
// It cannot tell of deliveries or acks, nor of messages that a publisher sends
// to a queue by the default exchange, to which nothing can be bound. It is the
// only place that makes something on a broker, and that only by Apply and Remove.
package tap

import (
	"context"
	"crypto/tls"
	"fmt"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

// Names of what a tap consists of, where the configuration gives none.
const (
	DefaultStream      = "idemscope.tap"
	DefaultDeadLetters = "idemscope.tap.dead"
)

// Manager reads how the broker is set up. *rabbitmq.Broker is one.
type Manager interface {
	Version(ctx context.Context) (rabbitmq.Version, error)
	Layout(ctx context.Context, queue string) (rabbitmq.Layout, error)
	ExchangeKind(ctx context.Context, exchange string) (string, error)
}

// Options describe the tap of one broker.
type Options struct {
	// Broker is the configured name. Mandatory.
	Broker string
	// AMQP is the URL with the tap's own credential. Mandatory, secret.
	AMQP string
	// TLS is for an amqps URL; nil means the system's certificates.
	TLS *tls.Config
	// Stream is the name of the stream, and of the exchange through which we
	// write to it. Empty means DefaultStream.
	Stream string
	// DeadLetters is the name of the queue that takes dead letters where the
	// broker's version lets none into a stream. Empty means DefaultDeadLetters.
	DeadLetters string
	// Flows are all that are configured; those of other brokers are ignored. Mandatory.
	Flows []flow.Flow
	// Manager reads exchanges, bindings and queues. Mandatory.
	Manager Manager
}

// Tap is the tap of one broker. It is safe for concurrent use.
type Tap struct {
	options Options
	address link.Address
	flows   []flow.Flow
}

// New checks the options. It does no I/O.
func New(o Options) (*Tap, error) {
	address, err := link.ParseAddress(o.AMQP, o.TLS)
	if err != nil {
		return nil, fmt.Errorf("tap of broker %s: amqp %w", o.Broker, err)
	}
	if o.Stream == "" {
		o.Stream = DefaultStream
	}
	if o.DeadLetters == "" {
		o.DeadLetters = DefaultDeadLetters
	}
	t := &Tap{options: o, address: address}
	for _, f := range o.Flows {
		if f.Queue != nil && f.Queue.Broker == o.Broker {
			t.flows = append(t.flows, f)
		}
	}
	return t, nil
}

// User is the name of the tap's own user.
func (t *Tap) User() string { return t.address.User() }

// source names the tap in evidence.
func (t *Tap) source() string {
	return fmt.Sprintf("tap of rabbitmq %s (stream %s)", t.options.Broker, flow.Visible(t.options.Stream))
}
