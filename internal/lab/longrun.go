package lab

import (
	"context"
	"errors"
	"fmt"

	"idemscope/internal/flow"
)

// longRun is a run that lasts as long as the lab: its consumer renews the lock and touches the record. It counts no
// attempt, because no delivery began it.
type longRun struct {
	consumer
	table statusTable
	key   flow.Key
	lock  lock
	id    int64 // of the record
}

// beginLongRun takes the lock and writes the record of the running sample.
func beginLongRun(ctx context.Context, c consumer) (*longRun, error) {
	k := runningSample().key()
	run := &longRun{consumer: c, table: recordTable("idempotent_record"), key: k, lock: newLock(c.redis, c.Lock.Render(k))}
	held, err := run.lock.renew(ctx, c.Lock.TTL)
	if err == nil && !held {
		err = errors.New("somebody holds the lock")
	}
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", k.BizID, err)
	}
	claim, err := run.table.begin(ctx, c.db, k, c.OnProcessing)
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", k.BizID, err)
	}
	run.id = claim.id
	return run, nil
}

// work goes on until ctx ends. A sign of life that cannot be given now is given at the next turn.
func (r *longRun) work(ctx context.Context) {
	for {
		pause(ctx, r.Lock.TTL/3)
		if ctx.Err() != nil {
			return
		}
		if held, err := r.lock.renew(ctx, r.Lock.TTL); err != nil || !held {
			r.log.Warn("the lock of the long run was not renewed", "held", held, "error", err)
		}
		if _, err := r.table.change(ctx, r.db, r.table.resumeSQL, r.id); err != nil {
			r.log.Warn("the record of the long run was not touched", "error", err)
		}
	}
}
