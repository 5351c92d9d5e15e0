package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// outcome is the field that counts how a delivery ended. The words are those of the instrumentation contract.
type outcome string

const (
	lockConflict outcome = "lock_conflict"
	dedupStatus  outcome = "dedup_status"
	dedupRecord  outcome = "dedup_record"
	runCompleted outcome = "completed"
	runFailed    outcome = "failed"
)

// ending is what a consumer counts when a delivery ends.
type ending struct {
	bizType string
	outcome outcome
	// unlocked: the delivery ended before it tried the lock, so its attempt is counted only now.
	unlocked                            bool
	acquired, retry, lockLost, degraded bool
	took                                time.Duration
}

// ran reports that the work was done, or tried.
func (e ending) ran() bool { return e.outcome == runCompleted || e.outcome == runFailed }

// countAttempt adds the first write of a delivery to the pipeline that tries the lock.
func countAttempt(ctx context.Context, pipe redis.Pipeliner, bizType string) {
	pipe.SAdd(ctx, "idem_stat:types", bizType)
	pipe.HIncrBy(ctx, counterKey(bizType), "attempt", 1)
}

// countEnd makes the last write of a delivery, with the steps noted until then. A consumer never fails because counting
// failed.
func countEnd(ctx context.Context, client *redis.Client, e ending, trail *steps) {
	_, _ = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		trail.into(ctx, pipe)
		if e.unlocked {
			countAttempt(ctx, pipe, e.bizType)
		}
		key := counterKey(e.bizType)
		pipe.HIncrBy(ctx, key, string(e.outcome), 1)
		for _, flag := range []struct {
			field string
			set   bool
		}{{"acquired", e.acquired}, {"retry", e.retry}, {"lock_lost", e.lockLost}, {"degraded", e.degraded}} {
			if flag.set {
				pipe.HIncrBy(ctx, key, flag.field, 1)
			}
		}
		if e.ran() {
			pipe.HIncrBy(ctx, key, bucketOf(e.took), 1)
			pipe.HIncrBy(ctx, key, "ms_sum", int64(milliseconds(e.took)))
		}
		return nil
	})
}

// counterKey has the braces in the key: a Cluster hash tag.
func counterKey(bizType string) string { return "idem_stat:{" + bizType + "}" }

// bucketOf names the field of the first bound that fits a run time.
func bucketOf(took time.Duration) string {
	for _, bound := range []uint64{5, 10, 25, 50, 100, 250, 500, 1000, 2000, 3000, 4000, 5000, 7500,
		10000, 15000, 20000, 30000, 60000, 120000, 300000} {
		if milliseconds(took) <= bound {
			return fmt.Sprintf("ms_le_%d", bound)
		}
	}
	return "ms_le_inf"
}
