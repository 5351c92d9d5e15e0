// Package trace counts, for some minutes and by an operator's order, how often
// RabbitMQ hands each message of the flows to a consumer. It turns the vhost's
// tracing (the firehose) on, takes the copies that it makes into a small queue
// of our own, and turns it off again: at the end, after an error, and, by a
// second process that watches over this one, after a crash.
//
// It is not for permanent use: tracing costs every message of the vhost. It
// cannot tell of acks, nor of what happened before it was armed.
package trace

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

// Queue is the name of the queue that takes the copies.
const Queue = "idemscope.trace"

// Bounds of a trace.
const (
	MinTime = 10 * time.Second
	MaxTime = 10 * time.Minute
)

// Cost is what an operator has to know before arming.
var Cost = []flow.Text{
	flow.T("it costs every message of the whole vhost, not only those of the flows. Measured on one node: +157% to +257% broker CPU per message on 3.10.8, +141% to +519% on 4.3.6, where throughput fell to 19% to 46%",
		"代价由整个 vhost 的每条消息承担，不仅是这些流程的消息。单节点实测：3.10.8 上每条消息的 Broker CPU 增加 157% 至 257%；4.3.6 上增加 141% 至 519%，吞吐降到 19% 至 46%"),
	flow.T("it ends by itself: at the time given, when this program stops, and when it crashes", "它会自行结束：到达设定时间、本程序停止或崩溃时"),
}

// Limits is what a trace does not tell.
var Limits = []flow.Text{
	flow.T("it does not show acks, rejections and expiries, nor the way of a dead letter inside the broker", "看不到确认、拒绝和过期，也看不到死信在 Broker 内部的转移"),
	flow.T("it does not show what was delivered before it was armed", "看不到开启之前的投递"),
	flow.T("times are those of arrival here: RabbitMQ gives none", "时间为到达本程序的时间：RabbitMQ 不提供"),
}

// Manager reads and switches the vhost's tracing. *rabbitmq.Broker with an
// administrator's credential is one.
type Manager interface {
	Tracing(ctx context.Context) (bool, error)
	SetTracing(ctx context.Context, on bool) error
}

// Options describe the trace of one broker.
type Options struct {
	// Broker is the configured name. Mandatory.
	Broker string
	// AMQP is the URL with the trace's own credential. Mandatory, secret.
	AMQP string
	// TLS is for an amqps URL; nil means the system's certificates.
	TLS *tls.Config
	// Manager switches tracing. Mandatory.
	Manager Manager
	// Flows are all that are configured; those of other brokers are ignored. Mandatory.
	Flows []flow.Flow
	// OwnUsers are users of ours on the broker, whose deliveries are not counted.
	OwnUsers []string
	// Guard makes the command that runs Guard in a process of its own. Mandatory.
	Guard func() (*exec.Cmd, error)
	// Order is what the guard is told; the trace sets its Deadline. Mandatory.
	Order Order
	// Logger is mandatory.
	Logger *slog.Logger
}

// Trace is the trace of one broker. It is safe for concurrent use.
type Trace struct {
	options Options
	address link.Address
	flows   []flow.Flow

	// arming is held while a trace is started, or an abandoned one is ended.
	arming sync.Mutex
	mu     sync.Mutex
	run    *run // the latest; nil before the first
}

// New checks the options. It does no I/O.
func New(o Options) (*Trace, error) {
	address, err := link.ParseAddress(o.AMQP, o.TLS)
	if err != nil {
		return nil, fmt.Errorf("trace of broker %s: amqp %w", o.Broker, err)
	}
	if o.Manager == nil || o.Guard == nil || o.Logger == nil {
		return nil, errors.New("trace: a manager, a guard and a logger are mandatory")
	}
	t := &Trace{options: o, address: address}
	t.options.OwnUsers = append(append([]string(nil), o.OwnUsers...), address.User())
	for _, f := range o.Flows {
		if f.Queue != nil && f.Queue.Broker == o.Broker {
			t.flows = append(t.flows, f)
		}
	}
	return t, nil
}

// Status is where the trace of a broker stands.
type Status struct {
	// Armed: tracing is on, by us.
	Armed bool
	// Since, Until: from when to when the latest trace runs or ran. Zero: there was none.
	Since, Until time.Time
	// Deliveries of the flows' queues, and how many of them name no key.
	Deliveries, Unread int64
	// Lossy: copies came faster than they could be taken, so that counts are too low.
	Lossy bool
	// Fault says what went wrong; empty when nothing did.
	Fault flow.Text
}

// Status of the latest trace.
func (t *Trace) Status() Status {
	if r := t.latest(); r != nil {
		return r.status()
	}
	return Status{}
}

// Counts are the keys with the most deliveries, at most n of them.
func (t *Trace) Counts(n int) []Count {
	if r := t.latest(); r != nil {
		return r.index.top(n)
	}
	return nil
}

// Tell is what the latest trace knows of a key; nil when there was none.
func (t *Trace) Tell(_ context.Context, f flow.Flow, k flow.Key) *flow.Account {
	if r := t.latest(); r != nil {
		return r.account(f.Name, k)
	}
	return nil
}

func (t *Trace) latest() *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run
}

// source names the trace in evidence.
func (t *Trace) source() string { return "trace of rabbitmq " + t.options.Broker }
