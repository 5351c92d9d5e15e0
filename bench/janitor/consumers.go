package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"idemscope/bench/figure"
)

const (
	// pairs is how many records a second begin and complete, completeAfter how soon.
	pairs         = 300
	completeAfter = 20 * time.Millisecond
	// lateDuplicates and lateCompletions are how many messages a second come for
	// old keys: of every so many pairs one.
	lateDuplicate, lateCompletion = 20, 40
)

// waits are how long the statements of the consumers took from the time when each was due.
type waits struct {
	mu               sync.Mutex
	inserts, longest []time.Duration
	errs             []error
}

func (w *waits) add(insert bool, took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if insert {
		w.inserts = append(w.inserts, took)
	}
	w.longest = append(w.longest, took)
	if err != nil {
		w.errs = append(w.errs, err)
	}
}

// join adds the times of another round.
func (w *waits) join(other *waits) {
	w.inserts = append(w.inserts, other.inserts...)
	w.longest = append(w.longest, other.longest...)
}

// p99 is that of the inserts, in ms; max that of all statements.
func (w *waits) p99() float64 { return figure.Quantile(w.inserts, 0.99).Seconds() * 1000 }
func (w *waits) max() float64 { return figure.Quantile(w.longest, 1).Seconds() * 1000 }

// consumers keep consuming until ctx ends.
type consumers struct {
	db   *sql.DB
	rows int
	name int64
}

// consume works for that long at a steady pace, whether or not earlier statements have ended.
func (c *consumers) consume(ctx context.Context, length time.Duration) (*waits, error) {
	w := &waits{}
	var all sync.WaitGroup
	began := time.Now()
	for i := 0; time.Since(began) < length; i++ {
		due := began.Add(time.Duration(i) * time.Second / pairs)
		select {
		case <-ctx.Done():
			all.Wait()
			return w, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		c.name++
		id := fmt.Sprintf("NEW%d", c.name)
		all.Go(func() { c.pair(ctx, w, id, due) })
		if i%lateDuplicate == 0 {
			all.Go(func() { c.duplicate(ctx, w, due) })
		}
		if i%lateCompletion == 0 {
			all.Go(func() { c.completeOld(ctx, w, due) })
		}
	}
	all.Wait()
	return w, errors.Join(w.errs...)
}

func (c *consumers) pair(ctx context.Context, w *waits, id string, due time.Time) {
	_, err := c.db.ExecContext(ctx, "INSERT INTO "+table+" (biz_type, biz_id, status, create_time, update_time) VALUES ('type-0', ?, 1, UTC_TIMESTAMP(), UTC_TIMESTAMP())", id)
	w.add(true, time.Since(due), err)
	due = due.Add(completeAfter)
	time.Sleep(time.Until(due))
	_, err = c.db.ExecContext(ctx, "UPDATE "+table+" SET status = 2, update_time = UTC_TIMESTAMP() WHERE biz_type = 'type-0' AND biz_id = ?", id)
	w.add(false, time.Since(due), err)
}

// duplicate is a message that comes again after weeks: mostly the key is there, or
// the cleanup has just taken it away.
func (c *consumers) duplicate(ctx context.Context, w *waits, due time.Time) {
	seq := 1 + rand.IntN(c.rows)
	_, err := c.db.ExecContext(ctx, "INSERT INTO "+table+" (biz_type, biz_id, status, create_time, update_time) SELECT CONCAT('type-', ? MOD 5), CONCAT('ORD', MD5(?)), 1, UTC_TIMESTAMP(), UTC_TIMESTAMP()", seq, seq)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == 1062 {
		err = nil
	}
	w.add(false, time.Since(due), err)
}

// completeOld ends a run that has been silent for weeks.
func (c *consumers) completeOld(ctx context.Context, w *waits, due time.Time) {
	id := 33 * (1 + rand.IntN(c.rows/33))
	_, err := c.db.ExecContext(ctx, "UPDATE "+table+" SET status = 2, update_time = UTC_TIMESTAMP() WHERE id = ? AND status = 1", id)
	w.add(false, time.Since(due), err)
}
