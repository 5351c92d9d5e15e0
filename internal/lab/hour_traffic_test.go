package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// seenAfter is the time after which a reading of the ledger sees every change of a record: an open one is read again
// after a tenth of the time since its last sign of life, a second rounded up included, and none here that still
// changes is silent for longer than ten seconds.
const seenAfter = 2 * time.Second

// hourQueue is a queue in memory that delivers again only what the exporter has seen fail: between two readings a
// failure and its retry leave no trace in a ledger.
type hourQueue struct {
	ready chan delivery
	// failsAlone: of a message that is going to fail there is one copy, whose retries therefore come after the pause.
	failsAlone bool

	mu      sync.Mutex
	failing map[string]bool
	held    []delivery
}

func (q *hourQueue) publish(ctx context.Context, m message) error {
	if q.failsAlone && m.Lab.FailRounds > 0 && !q.first(m) {
		return nil
	}
	return q.offer(ctx, delivery{message: m})
}

func (q *hourQueue) first(m message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failing[m.BizID] {
		return false
	}
	q.failing[m.BizID] = true
	return true
}

func (q *hourQueue) offer(ctx context.Context, d delivery) error {
	select {
	case q.ready <- d:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *hourQueue) hold(d delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = append(q.held, d)
}

func (q *hourQueue) takeHeld() []delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	held := q.held
	q.held = nil
	return held
}

func (q *hourQueue) subscribe() (subscription, error) { return &hourSubscription{queue: q}, nil }

type hourSubscription struct {
	queue *hourQueue
	open  *delivery
}

func (s *hourSubscription) next(ctx context.Context) (delivery, error) {
	select {
	case d := <-s.queue.ready:
		s.open = &d
		d.settle = func(_ context.Context, how settlement) error {
			again := *s.open
			if s.open = nil; how == giveBack {
				again.round++
				s.queue.hold(again)
			}
			return nil
		}
		return d, nil
	case <-ctx.Done():
		return delivery{}, ctx.Err()
	}
}

func (s *hourSubscription) leave() error {
	if s.open != nil {
		again := *s.open
		again.redelivered = true
		s.queue.hold(again)
	}
	return nil
}

// pass lets simulated time go by, from one instant to another, with that many messages in it; meanwhile happens in their
// midst. It returns when all of them were delivered at least once and what was begun has come to its end.
func (h *hour) pass(from, to time.Duration, messages int, meanwhile func()) {
	h.t.Helper()
	sending, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	var crew, others sync.WaitGroup
	for _, r := range h.routes {
		for range hourWorkers[r.Name] {
			crew.Go(func() { h.work(sending, r) })
		}
	}
	others.Go(func() { h.deliverAgain(sending) })
	others.Go(func() { h.cleanUp(sending) })
	for i := range lateWriters {
		others.Go(func() { h.writeLate(sending, i) })
	}
	half, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		for n := range messages {
			now := h.sender.start.Add(from + (to-from)*time.Duration(n)/time.Duration(messages))
			if err := h.sender.step(sending, now); err != nil {
				h.t.Errorf("send: %v", err)
				break
			}
			if n == messages/2 {
				close(half)
			}
		}
	}()
	select {
	case <-half:
		meanwhile()
	case <-sent:
	}
	<-sent
	testkit.Eventually(h.t, time.Minute, func() bool { return h.waiting() == 0 }, "the queues become empty")
	cancel()
	crew.Wait()
	others.Wait()
}

func (h *hour) waiting() (n int) {
	for _, q := range h.queues {
		n += len(q.ready)
	}
	return n
}

// work is one consumer and those who take its place when it is killed.
func (h *hour) work(ctx context.Context, r route) {
	c := consumer{route: r, db: h.db, redis: h.redis.Client, truth: h.truth, log: h.log}
	for ctx.Err() == nil {
		s, _ := h.queues[r.Name].subscribe()
		if err := errors.Join(ignoreKill(c.consume(ctx, s)), s.leave()); err != nil {
			h.t.Errorf("consumer of %s: %v", r.Name, err)
			return
		}
	}
}

// deliverAgain gives the messages that came back to the consumers, once the exporter has seen why.
func (h *hour) deliverAgain(ctx context.Context) {
	for ctx.Err() == nil {
		back := map[*hourQueue][]delivery{}
		for _, q := range h.queues {
			back[q] = q.takeHeld()
		}
		h.seen(ctx)
		for q, held := range back {
			for _, d := range held {
				if q.offer(ctx, d) != nil {
					q.hold(d) // for the next pass
				}
			}
		}
	}
}

// finished finds completed records, as a clean-up job does.
var finished = map[string]string{
	"idempotent_record":     "SELECT id FROM idempotent_record WHERE status = 2 AND id % 3 = 0 ORDER BY id LIMIT 200",
	"message_deduplication": "SELECT id FROM message_deduplication WHERE status = 'completed' AND id % 3 = 0 ORDER BY id LIMIT 200",
}

// cleanUp deletes completed records by primary key, once the exporter has seen them.
func (h *hour) cleanUp(ctx context.Context) {
	for ctx.Err() == nil {
		done := map[string][]uint64{}
		for table, query := range finished {
			var ids []uint64
			if err := h.db.SelectContext(ctx, &ids, query); err != nil && ctx.Err() == nil {
				h.t.Errorf("look for finished records: %v", err)
			}
			done[table] = ids
		}
		h.seen(ctx)
		if ctx.Err() != nil {
			return // the exporter may not have seen them
		}
		for table, ids := range done {
			for _, id := range ids {
				if _, err := h.db.Exec("DELETE FROM "+table+" WHERE id = ?", id); err != nil {
					h.t.Errorf("clean up: %v", err)
				}
				h.deleted.Add(1)
			}
		}
	}
}

// writeLate is a consumer that does everything in one transaction, and commits late or not at all.
func (h *hour) writeLate(ctx context.Context, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		tx, err := h.db.Beginx()
		if err != nil {
			h.t.Errorf("begin: %v", err)
			return
		}
		id := fmt.Sprintf("LATE-%d-%d", writer, h.late.Add(1))
		_, err = tx.Exec("INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('refund', ?, 2, NOW(), NOW())", id)
		h.seen(ctx)
		if err != nil || n%2 == 1 {
			err = errors.Join(err, tx.Rollback())
		} else if err = tx.Commit(); err == nil {
			h.truth.moved("refund", "", flow.Completed)
		}
		if err != nil {
			h.t.Errorf("write late: %v", err)
		}
	}
}

// seen waits until the exporter has read whatever is committed now.
func (h *hour) seen(ctx context.Context) {
	at, readings := time.Now().Add(seenAfter), map[float64]bool{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(readings) < 2 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if last := h.lastReading(); last > float64(at.UnixMilli())/1000 {
			readings[last] = true
		}
	}
}
