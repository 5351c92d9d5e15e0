package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

const (
	// maxRounds is how often a message may fail before it goes to the dead letters.
	maxRounds = 5
	// deliveryTimeout bounds one delivery, work included.
	deliveryTimeout = 30 * time.Second
)

var (
	// errKilled stands for the death of a consumer: nothing of what it holds is cleaned up.
	errKilled = errors.New("the consumer was killed")
	errWork   = errors.New("the work failed")
)

// consumer is the reference consumer of one flow. It keeps to the order of the domain: status check, lock, record in
// processing, work, completed, unlock, ack.
type consumer struct {
	route
	db    *sqlx.DB
	redis *redis.Client
	truth *witness
	log   *slog.Logger
	// worker names it in the trail.
	worker string
}

// consume works off deliveries until ctx ends (nil) or the consumer is killed (errKilled).
func (c consumer) consume(ctx context.Context, s subscription) error {
	c.worker = "lab-" + rand.Text()[:8]
	for {
		d, err := s.next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := c.deliver(ctx, d); err != nil {
			return err
		}
	}
}

// deliver takes one delivery through the guard. When ctx ends meanwhile, the delivery is still brought to its end, with
// the simulated work cut short.
func (c consumer) deliver(ctx context.Context, d delivery) error {
	stores, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	defer cancel()
	trail := &steps{client: c.redis, worker: c.worker, delivery: d}
	trail.note(flow.Received, "")
	done, err := c.done(stores, d.key())
	if err != nil {
		c.log.Warn("status check failed, the message is given back", "biz_type", d.BizType, "error", err)
		return d.settle(stores, giveBack)
	}
	c.truth.note(d.BizType, func(t *Tally) { t.Deliveries++ })
	if done {
		trail.note(flow.StatusChecked, "completed")
		c.count(stores, ending{bizType: d.BizType, outcome: dedupStatus, unlocked: true}, trail)
		return c.settle(stores, d, ack, trail)
	}
	trail.note(flow.StatusChecked, "open")
	l := acquire(stores, c.redis, d.BizType, c.Lock.Render(d.key()), c.Lock.TTL, c.patience)
	e := ending{bizType: d.BizType, outcome: lockConflict, acquired: l.state == lockHeld, degraded: l.state == lockDown}
	trail.note(flow.LockTried, l.state.String())
	settle := giveBack
	if l.state != lockRefused {
		if settle, err = c.run(ctx, stores, d, &e, trail); err != nil {
			c.truth.note(d.BizType, func(t *Tally) { t.Killed++ })
			return err
		}
	}
	e.lockLost = l.release(stores)
	if l.state == lockHeld {
		trail.note(flow.Unlocked, map[bool]string{true: "lost", false: ""}[e.lockLost])
	}
	c.count(stores, e, trail)
	return c.settle(stores, d, settle, trail)
}

// settle ends the delivery and reports it once that is done.
func (c consumer) settle(ctx context.Context, d delivery, how settlement, trail *steps) error {
	if err := d.settle(ctx, how); err != nil {
		return err
	}
	kind := flow.Acked
	if how == giveBack {
		kind = flow.GivenBack
	}
	trail.note(kind, "")
	trail.write(ctx)
	return nil
}

// done is the status check: the marker first, which is quick, then the record, which is the truth.
func (c consumer) done(ctx context.Context, k flow.Key) (bool, error) {
	if c.Marker != nil {
		// Without an answer from Redis the record decides alone.
		if n, err := c.redis.Exists(ctx, c.Marker.Render(k)).Result(); err == nil && n == 1 {
			return true, nil
		}
	}
	return c.book.completed(ctx, c.db, k)
}

// run claims the record, does the work and writes down how it ended. Its only error is errKilled.
func (c consumer) run(ctx, stores context.Context, d delivery, e *ending, trail *steps) (settlement, error) {
	claim, err := c.book.begin(stores, c.db, d.key(), c.OnProcessing)
	if err != nil {
		trail.note(flow.RecordTried, "error")
		return c.failed(d, e, err), nil
	}
	if !claim.granted {
		trail.note(flow.RecordTried, "refused")
		e.outcome = dedupRecord
		return c.refused(claim), nil
	}
	trail.note(flow.RecordTried, "granted")
	trail.note(flow.RunBegan, "")
	// A run that dies leaves this behind.
	trail.write(stores)
	e.retry = claim.met == flow.Failed
	c.truth.moved(d.BizType, claim.met, claim.phase)
	start := time.Now()
	err = work(ctx, d)
	if errors.Is(err, errKilled) {
		return 0, err
	}
	if err == nil {
		err = c.complete(stores, d, claim)
	}
	e.took = time.Since(start)
	if errors.Is(err, errRefused) {
		trail.note(flow.RunFailed, "refused by the unique key")
		e.outcome = dedupRecord
		return ack, nil
	}
	if err != nil {
		trail.note(flow.RunFailed, "")
		return c.failed(d, e, errors.Join(err, c.fail(stores, claim))), nil
	}
	trail.note(flow.RunDone, "")
	e.outcome = runCompleted
	return ack, nil
}

// refused says what becomes of a message whose record somebody else has.
func (c consumer) refused(met claim) settlement {
	switch {
	case met.met == flow.Completed:
		return ack
	case met.met == flow.Processing && c.OnProcessing == flow.Refuse:
		// If the first run died, this message is lost. That is what this policy means.
		return ack
	}
	return giveBack
}

// failed counts a failed run and lets the message come again, up to maxRounds.
func (c consumer) failed(d delivery, e *ending, err error) settlement {
	e.outcome = runFailed
	if !errors.Is(err, errWork) {
		c.log.Warn("run failed", "biz_type", d.BizType, "error", err)
	}
	if d.round+1 >= maxRounds {
		return giveUp
	}
	return giveBack
}

// work is the simulated business logic. When ctx ends it is cut short and counts as done.
func work(ctx context.Context, d delivery) error {
	took := time.Duration(d.Lab.Ms) * time.Millisecond
	if d.Lab.Kill && d.round == 0 && !d.redelivered {
		pause(ctx, took/2)
		return errKilled
	}
	pause(ctx, took)
	if d.round < d.Lab.FailRounds {
		return errWork
	}
	return nil
}

// complete does the effect, marks the record and leaves the marker. It is no error that somebody else has marked the
// record already: this run was one too many, and its effect stands.
func (c consumer) complete(ctx context.Context, d delivery, claim claim) error {
	marked, err := c.book.complete(ctx, c.db, claim, effectOf(d.key()))
	if err != nil {
		return err
	}
	c.truth.note(d.BizType, func(t *Tally) { t.Effects++ })
	if marked {
		c.truth.moved(d.BizType, claim.phase, flow.Completed)
	}
	if c.Marker != nil {
		if err := c.redis.Set(ctx, c.Marker.Render(d.key()), "success", c.Marker.TTL).Err(); err != nil {
			c.log.Warn("marker not set, the record alone says completed", "biz_type", d.BizType, "error", err)
		}
	}
	return nil
}

// fail marks the record, unless another run of the same key has marked it already.
func (c consumer) fail(ctx context.Context, claim claim) error {
	marked, err := c.book.fail(ctx, c.db, claim)
	if marked {
		c.truth.moved(claim.key.BizType, claim.phase, flow.Failed)
	}
	return err
}

func (c consumer) count(ctx context.Context, e ending, trail *steps) {
	countEnd(ctx, c.redis, e, trail)
	c.truth.ended(e)
}

// effectOf counts the effect of a key. It stands for what must happen once: a payment, an e-mail, a grant of points.
func effectOf(k flow.Key) effect {
	return func(ctx context.Context, db sqlx.ExecerContext) error {
		_, err := db.ExecContext(ctx, `INSERT INTO lab_effects (biz_type, biz_id, effects) VALUES (?, ?, 1)
			ON DUPLICATE KEY UPDATE effects = effects + 1`, k.BizType, k.BizID)
		if err != nil {
			return fmt.Errorf("effect: %w", err)
		}
		return nil
	}
}
