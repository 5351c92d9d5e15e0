package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"idemscope/internal/flow"
)

// message is the body of a message: the key, and what the simulated work of the lab will be like.
type message struct {
	BizType string `json:"biz_type"`
	BizID   string `json:"biz_id"`
	Lab     fate   `json:"lab"`
}

// fate is how the work of a message goes.
type fate struct {
	// Ms is how long it takes, in milliseconds.
	Ms int `json:"ms"`
	// FailRounds is how many rounds fail before one succeeds.
	FailRounds int `json:"fail_rounds,omitempty"`
	// Kill ends the consumer in the middle of the first delivery.
	Kill bool `json:"kill,omitempty"`
}

func (m message) key() flow.Key { return flow.Key{BizType: m.BizType, BizID: m.BizID} }

func (m message) encode() ([]byte, error) { return json.Marshal(m) }

func decode(body []byte) (message, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return message{}, fmt.Errorf("message body: %w", err)
	}
	return m, nil
}

// settlement is what a consumer does with a delivery at its end.
type settlement int

const (
	// ack: the message is done with.
	ack settlement = iota
	// giveBack: it comes again after a delay.
	giveBack
	// giveUp: it goes to the dead letters.
	giveUp
)

// delivery is one hand-over of a message.
type delivery struct {
	message
	// round is how often the message was given back before.
	round int
	// redelivered: an earlier delivery was not settled. False proves nothing.
	redelivered bool
	settle      func(ctx context.Context, s settlement) error
}

// queue is a work queue with its retry queue and dead letters.
type queue interface {
	publish(ctx context.Context, m message) error
	// subscribe adds a consumer that is handed one message at a time.
	subscribe() (subscription, error)
}

// subscription is one consumer's place at a queue.
type subscription interface {
	// next waits for a delivery. It fails with the context's error when that ends.
	next(ctx context.Context) (delivery, error)
	// leave ends the subscription; what was delivered and not settled is delivered again to somebody.
	leave() error
}

// memoryCapacity bounds how many messages a queue in memory holds.
const memoryCapacity = 4096

// memoryQueue stands in for the broker where none is installed. Its messages end with the process.
type memoryQueue struct {
	ready chan delivery
}

func newMemoryQueue() *memoryQueue { return &memoryQueue{ready: make(chan delivery, memoryCapacity)} }

func (q *memoryQueue) publish(ctx context.Context, m message) error {
	select {
	case q.ready <- delivery{message: m}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// offer puts a message back. A full queue drops it: there is no sender to hold up.
func (q *memoryQueue) offer(d delivery) {
	select {
	case q.ready <- d:
	default:
	}
}

func (q *memoryQueue) subscribe() (subscription, error) { return &memorySubscription{queue: q}, nil }

// memorySubscription remembers the delivery that is not settled yet.
type memorySubscription struct {
	queue *memoryQueue
	open  *delivery
}

func (s *memorySubscription) next(ctx context.Context) (delivery, error) {
	select {
	case d := <-s.queue.ready:
		d.settle = s.settle
		s.open = &d
		return d, nil
	case <-ctx.Done():
		return delivery{}, ctx.Err()
	}
}

func (s *memorySubscription) settle(_ context.Context, how settlement) error {
	d := *s.open
	s.open = nil
	if how == giveBack {
		d.round++
		time.AfterFunc(retryDelay, func() { s.queue.offer(d) })
	}
	return nil
}

func (s *memorySubscription) leave() error {
	if s.open != nil {
		d := *s.open
		d.redelivered = true
		s.queue.offer(d)
	}
	return nil
}
