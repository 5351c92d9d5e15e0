package tap

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

// Pace of a follower.
const (
	// markEvery is how often we write a mark, which shows that the stream is
	// read to its end. One takes some 150 bytes: 1.3 MB a day.
	markEvery = 10 * time.Second
	// standsAfter: a stream that delivers nothing for so long, while a mark of
	// ours is in it, stands still.
	standsAfter = 15 * time.Second
	// lookEvery is how often exchanges and bindings are read anew.
	lookEvery = 5 * time.Minute
	// searchEvery is how often the broker is asked to search its stream.
	searchEvery = 10 * time.Second
	// prefetch is how many messages are on their way to us at most.
	prefetch = 1000
	// ackEvery acks in heaps; a stream needs acks for its flow control alone.
	ackEvery = 200

	firstPause, longestPause = time.Second, 30 * time.Second
)

var (
	errGone    = link.Say(flow.T("the stream of the tap, or its queue of dead letters, is gone: run idemscope rabbitmq tap apply", "采集用的 stream 或死信队列不存在了：请运行 idemscope rabbitmq tap apply"))
	errStands  = link.Say(flow.T("the stream stands still: what was written to it does not come back", "stream 停滞：写入的内容读不回来"))
	errCut     = link.Say(flow.T("the connection was lost", "连接已断开"))
	errRemade  = link.Say(flow.T("the stream was made anew; it is read from its beginning", "stream 已被重建，正在从头读取"))
	errStarted = flow.T("the stream is being read from its beginning", "正在从头读取 stream")
)

// Follower follows the stream and keeps an index of it in memory.
type Follower struct {
	tap    *Tap
	logger *slog.Logger

	mu    sync.Mutex
	index *index

	// searched is when the broker was last asked for what the index has forgotten.
	searched time.Time

	// What Run alone uses.
	next   int64 // the offset to read next; -1: the first there is
	looked time.Time
}

// NewFollower makes a follower that knows nothing before Run.
func (t *Tap) NewFollower(logger *slog.Logger) *Follower {
	f := &Follower{tap: t, logger: logger, index: t.newIndex(), next: -1}
	f.index.lose(errStarted)
	return f
}

// Run follows the stream until ctx ends. After a failure it goes on from the last
// message that it has read.
func (f *Follower) Run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errGone) || errors.Is(err, errStands) || errors.Is(err, errRemade) {
			f.restart() // it may be another stream: its offsets mean nothing any more
		}
		reason := link.Words(err)
		f.current().lose(reason)
		f.logger.Warn("the tap is not followed", "broker", f.tap.options.Broker, "reason", reason.EN)
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		wait := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
		pause = min(2*pause, longestPause)
	}
}

// Tell is what the tap knows of a key; nil for a flow of another broker. For what
// the index has forgotten it asks the broker, where that can search.
func (f *Follower) Tell(ctx context.Context, fl flow.Flow, k flow.Key) *flow.Account {
	x := f.current()
	a := x.account(fl.Name, k)
	if a == nil || !x.forgot(fl.Name, a) || !searchable(x.version(), fl, k) || !f.maySearch() {
		return a
	}
	if found := f.tap.NewScanner().searchAlone(ctx, x, fl, k); found != nil {
		return found
	}
	return a
}

// maySearch bounds what a search costs the broker, which goes through all of the
// stream: look-ups in between are answered from the index, which says how far
// back it goes.
func (f *Follower) maySearch() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.searched) < searchEvery {
		return false
	}
	f.searched = time.Now()
	return true
}

// Tally counts what was read.
func (f *Follower) Tally() Tally {
	x := f.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tally
}

func (f *Follower) current() *index {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index
}

// follow reads the stream over one connection, until something fails.
func (f *Follower) follow(ctx context.Context) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	conn, err := f.tap.address.Dial(ctx, "idemscope tap")
	if err != nil {
		return f.fail(err)
	}
	var moving sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer moving.Wait()
	defer link.Close(conn)
	defer cancel()
	w, err := f.tap.newWriter(conn)
	if err != nil {
		return f.fail(err)
	}
	deliveries, ch, err := f.tap.consume(conn, f.offset())
	if err != nil {
		return f.fail(err)
	}
	moved := make(chan error, 1)
	if !f.current().version().Abilities().DeadLettersReachStreams {
		moving.Go(func() { moved <- f.tap.moveDeadLetters(ctx, conn) })
	}
	r := &reader{follower: f, connection: conn, writer: w, channel: ch}
	return f.fail(r.read(ctx, deliveries, moved))
}

func (f *Follower) fail(err error) error {
	return f.tap.address.Fail(flow.T("follow the stream %s", "读取 stream %s", flow.Visible(f.tap.options.Stream)), err)
}

func (f *Follower) offset() any {
	if f.next < 0 {
		return "first"
	}
	return f.next
}

// look reads topology and bindings, and keeps the old ones when it cannot.
func (f *Follower) look(ctx context.Context) error {
	top, untied, err := f.tap.lookAll(ctx, f.tap.flows)
	if err == nil {
		f.current().use(top, untied)
	}
	if err != nil && f.looked.IsZero() {
		return err
	}
	f.looked = time.Now()
	return nil
}

// lookAll reads the topology, and for which flows the stream lacks a binding.
func (t *Tap) lookAll(ctx context.Context, flows []flow.Flow) (topology, map[string]bool, error) {
	top, err := t.look(ctx, flows)
	if err != nil {
		return topology{}, nil, err
	}
	stream, err := t.options.Manager.Layout(ctx, t.options.Stream)
	if err != nil {
		return topology{}, nil, err
	}
	if !stream.Exists {
		return topology{}, nil, errGone
	}
	untied := map[string]bool{}
	for _, r := range top.feeds {
		if len(lacking(bindings([]route{r}), stream.Bindings)) > 0 {
			untied[r.flow] = true
		}
	}
	return top, untied, nil
}

// consume follows the stream from an offset on. A stream needs a prefetch and acks.
func (t *Tap) consume(conn *amqp.Connection, offset any) (<-chan amqp.Delivery, *amqp.Channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	deliveries, err := ch.Consume(t.options.Stream, "", false, false, false, false, amqp.Table{"x-stream-offset": offset})
	return deliveries, ch, err
}

// reader reads the stream over one connection.
type reader struct {
	follower   *Follower
	connection *amqp.Connection
	writer     *writer
	channel    *amqp.Channel
	// sent is the mark that must come back.
	sent mark
	// moved is when a message came, or when the mark was sent.
	moved time.Time
	acks  int
}

// read reads until something fails, which includes ctx.
func (r *reader) read(ctx context.Context, deliveries <-chan amqp.Delivery, moved <-chan error) error {
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	if err := r.send(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-moved:
			if err != nil {
				return err
			}
		case <-tick.C:
			if err := r.tick(ctx); err != nil {
				return err
			}
		case d, open := <-deliveries:
			if !open && r.connection.IsClosed() {
				return errCut
			}
			if !open {
				return errGone
			}
			if err := r.take(d, len(deliveries) == 0); err != nil {
				return err
			}
		}
	}
}

// tick writes the next mark once the last one has come back.
func (r *reader) tick(ctx context.Context) error {
	if r.sent.id != "" {
		if time.Since(r.moved) > standsAfter {
			return errStands
		}
		return nil
	}
	if time.Since(r.follower.looked) > lookEvery {
		if err := r.follower.look(ctx); err != nil {
			return err
		}
	}
	return r.send(ctx)
}

func (r *reader) send(ctx context.Context) error {
	r.sent, r.moved = newMark(markHere), time.Now()
	return r.writer.mark(ctx, r.sent)
}

// take indexes one message.
func (r *reader) take(d amqp.Delivery, idle bool) error {
	f := r.follower
	offset, ok := whole(d.Headers["x-stream-offset"])
	if !ok {
		return errors.New("a message without an offset")
	}
	switch {
	case f.next >= 0 && offset < f.next:
		return errRemade
	case f.next >= 0 && offset > f.next:
		f.current().gap()
	}
	f.next, r.moved = offset+1, time.Now()
	x := f.current()
	if m, isMark := x.add(d, time.Now()); isMark && m.id == r.sent.id {
		x.follow(m.at)
		r.sent = mark{}
	}
	if r.acks++; r.acks%ackEvery == 0 || idle {
		return r.channel.Ack(d.DeliveryTag, true)
	}
	return nil
}

// restart forgets everything.
func (f *Follower) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.index, f.next, f.looked = f.tap.newIndex(), -1, time.Time{}
}

// moveDeadLetters moves dead letters to the stream, for versions that do not do
// so themselves. Each is acked only when the stream has it, so that none is lost;
// one may be moved twice when the line breaks in between. It ends with an error,
// or with nil when there is no such queue.
func (t *Tap) moveDeadLetters(ctx context.Context, conn *amqp.Connection) error {
	layout, err := t.options.Manager.Layout(ctx, t.options.DeadLetters)
	if err != nil || !layout.Exists {
		return err
	}
	w, err := t.newWriter(conn)
	if err != nil {
		return err
	}
	if err := w.Qos(100, 0, false); err != nil {
		return err
	}
	letters, err := w.Consume(t.options.DeadLetters, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d, open := <-letters:
			if !open && conn.IsClosed() {
				return errCut
			}
			if !open {
				return errGone
			}
			// What has no death was published to the exchange by a client: it is
			// in the stream already.
			if died, ok := deathOf(d); ok {
				if err := w.write(ctx, relayed(d, died)); err != nil {
					return err
				}
			}
			if err := d.Ack(false); err != nil {
				return err
			}
		}
	}
}
