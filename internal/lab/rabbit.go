package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
)

// deadLetters bounds a dead-letter queue; its oldest messages go first.
const deadLetters = 10000

// The lab's exchanges. Messages are published to one, and dead-lettered to the other: a tap can be bound to both, as it
// could not to the default exchange.
const (
	publications   = "shop"
	deadLetterHome = "shop.dlx"
)

// errBrokerGone says that the broker closed a consumer's channel.
var errBrokerGone = errors.New("the broker closed the channel")

// rabbit is the lab's two connections to RabbitMQ: one publishes, one consumes.
type rabbit struct {
	publishing, consuming *amqp.Connection
	// mu guards channel, which is in confirm mode.
	mu      sync.Mutex
	channel *amqp.Channel
	// through is the exchange that leads to each queue.
	through map[string]string
}

func connectRabbit(address string) (*rabbit, error) {
	r := &rabbit{through: map[string]string{}}
	var err error
	if r.publishing, err = dialRabbit(address, "shop publisher"); err != nil {
		return nil, err
	}
	if r.consuming, err = dialRabbit(address, "shop consumer"); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.channel, err = r.publishing.Channel(); err == nil {
		err = r.channel.Confirm(false)
	}
	for name, kind := range map[string]string{publications: amqp.ExchangeTopic, deadLetterHome: amqp.ExchangeDirect} {
		if err == nil {
			err = r.channel.ExchangeDeclare(name, kind, true, false, false, false, nil)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rabbitmq channel: %w", err), r.close())
	}
	return r, nil
}

func dialRabbit(address, name string) (*amqp.Connection, error) {
	config := amqp.Config{Heartbeat: 10 * time.Second, Properties: amqp.NewConnectionProperties()}
	config.Properties.SetClientConnectionName(name)
	conn, err := amqp.DialConfig(address, config)
	if err != nil {
		return nil, fmt.Errorf("connect to rabbitmq: %w", err)
	}
	return conn, nil
}

func (r *rabbit) close() error {
	var err error
	for _, conn := range []*amqp.Connection{r.consuming, r.publishing} {
		if conn == nil {
			continue
		}
		if closing := conn.CloseDeadline(time.Now().Add(2 * time.Second)); !errors.Is(closing, amqp.ErrClosed) {
			err = errors.Join(err, closing)
		}
	}
	return err
}

// declare makes the queues of a flow: rejected messages of the work queue wait for delay in the retry queue and then come
// back.
func (r *rabbit) declare(q flow.Queue, delay time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	retry := q.Retry[0]
	for name, args := range map[string]amqp.Table{
		q.Name:       {"x-dead-letter-exchange": deadLetterHome, "x-dead-letter-routing-key": retry},
		retry:        {"x-dead-letter-exchange": deadLetterHome, "x-dead-letter-routing-key": q.Name, "x-message-ttl": delay.Milliseconds()},
		q.DeadLetter: {"x-max-length": int64(deadLetters)},
	} {
		if _, err := r.channel.QueueDeclare(name, true, false, false, false, args); err != nil {
			return fmt.Errorf("declare queue %s: %w", name, err)
		}
		if err := r.channel.QueueBind(name, name, deadLetterHome, false, nil); err != nil {
			return fmt.Errorf("bind queue %s: %w", name, err)
		}
		r.through[name] = deadLetterHome
	}
	if err := r.channel.QueueBind(q.Name, q.Name, publications, false, nil); err != nil {
		return fmt.Errorf("bind queue %s: %w", q.Name, err)
	}
	r.through[q.Name] = publications
	return nil
}

// publish sends a message to a queue and waits until the broker has it.
func (r *rabbit) publish(ctx context.Context, queue string, m message) error {
	body, err := m.encode()
	if err != nil {
		return err
	}
	r.mu.Lock()
	confirm, err := r.channel.PublishWithDeferredConfirmWithContext(ctx, r.through[queue], queue, true, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: m.BizID, Timestamp: time.Now(), Body: body,
	})
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("publish to %s: %w", queue, err)
	}
	taken, err := confirm.WaitContext(ctx)
	if err == nil && !taken {
		err = errors.New("the broker refused the message")
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", queue, err)
	}
	return nil
}

// rabbitQueue is one work queue.
type rabbitQueue struct {
	rabbit *rabbit
	names  flow.Queue
}

func (q rabbitQueue) publish(ctx context.Context, m message) error {
	return q.rabbit.publish(ctx, q.names.Name, m)
}

func (q rabbitQueue) subscribe() (subscription, error) {
	channel, err := q.rabbit.consuming.Channel()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq channel: %w", err)
	}
	s := rabbitSubscription{rabbitQueue: q, channel: channel}
	if err = channel.Qos(1, 0, false); err == nil {
		s.deliveries, err = channel.Consume(q.names.Name, "", false, false, false, false, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("consume %s: %w", q.names.Name, err), channel.Close())
	}
	return s, nil
}

type rabbitSubscription struct {
	rabbitQueue
	channel    *amqp.Channel
	deliveries <-chan amqp.Delivery
}

func (s rabbitSubscription) next(ctx context.Context) (delivery, error) {
	select {
	case <-ctx.Done():
		return delivery{}, ctx.Err()
	case raw, open := <-s.deliveries:
		if !open {
			return delivery{}, fmt.Errorf("consume %s: %w", s.names.Name, errBrokerGone)
		}
		m, err := decode(raw.Body)
		if err != nil {
			return delivery{}, err
		}
		return delivery{
			message: m, round: rounds(raw.Headers, s.names.Name), redelivered: raw.Redelivered,
			settle: func(ctx context.Context, how settlement) error { return s.settle(ctx, raw, m, how) },
		}, nil
	}
}

// settle gives a message up by publishing a copy to the dead letters before the ack: a crash in between leaves two
// copies, never none.
func (s rabbitSubscription) settle(ctx context.Context, raw amqp.Delivery, m message, how settlement) error {
	switch how {
	case giveBack:
		return raw.Nack(false, false)
	case giveUp:
		if err := s.rabbit.publish(ctx, s.names.DeadLetter, m); err != nil {
			return err
		}
	}
	return raw.Ack(false)
}

// leave closes the channel; the broker delivers again what was not settled on it.
func (s rabbitSubscription) leave() error {
	if err := s.channel.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return err
	}
	return nil
}

// rounds reads from the x-death header how often the work queue has given the message back.
func rounds(headers amqp.Table, queue string) int {
	deaths, _ := headers["x-death"].([]any)
	for _, d := range deaths {
		death, _ := d.(amqp.Table)
		if count, ok := death["count"].(int64); ok && death["queue"] == queue && death["reason"] == "rejected" {
			return int(count)
		}
	}
	return 0
}

// monitor is the credential that idemscope gets: it sees totals and cannot touch a message.
type monitor struct {
	management     string
	user, password string
}

// awaitTotals waits until the management API shows the wanted number of messages of each queue. The broker samples its
// statistics, so that what has just been declared or published does not show at once.
func (m monitor) awaitTotals(ctx context.Context, want map[string]int) error {
	client := plainClient()
	for name, messages := range want {
		for {
			n, known, err := m.total(ctx, client, name)
			if err == nil && known && n == messages {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("queue %s shows %d messages instead of %d (%v): %w", name, n, messages, err, ctx.Err())
			}
			pause(ctx, 50*time.Millisecond)
		}
	}
	return nil
}

// plainClient makes a connection per call, which leaves no goroutine behind, and ignores proxy settings, which must not
// apply to our own loopback server.
func plainClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// total is unknown before the broker's first sample.
func (m monitor) total(ctx context.Context, client *http.Client, queue string) (n int, known bool, err error) {
	address := m.management + "/api/queues/" + url.PathEscape(vhost) + "/" + url.PathEscape(queue) + "?columns=messages"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, false, err
	}
	request.SetBasicAuth(m.user, m.password)
	response, err := client.Do(request)
	if err != nil {
		return 0, false, err
	}
	defer response.Body.Close()
	var answer struct{ Messages *int }
	if response.StatusCode != http.StatusOK {
		return 0, false, fmt.Errorf("management API: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Messages == nil {
		return 0, false, err
	}
	return *answer.Messages, true, nil
}
