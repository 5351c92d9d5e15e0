package scenarios

import (
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Kinds A and B: locks that stay and locks that go.

func lockOutlives() []scenario {
	return []scenario{
		{
			field: "A1", story: "the lock's expiry was a second command, and the consumer died before it", flow: "payments",
			left: []deed{lockForEver},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical, notes: "lock_without_ttl",
			says:  []string{"never expires", "every delivery is refused by the lock", "only if its value is still the one shown here"},
			never: []string{"expires in", "running"},
		},
		{
			field: "A1", story: "a run that works under a lock without TTL is not stuck", flow: "payments",
			left: []deed{lockForEver, record(processing, 40*time.Second, 20*time.Second)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_without_ttl",
			never: []string{"stuck"},
		},
		{
			field: "A2", story: "the queue was purged, the lock lives in another store and stayed", flow: "uniques",
			left: []deed{lock(20 * time.Minute)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure,
			says:  []string{"the lock is held but no record shows a run", "0 ready, 0 unacked"},
			never: []string{"running", "published"},
		},
		{
			field: "A5", story: "a forced shutdown left the lock, and the message that came back is refused by it", flow: "unique retries",
			left: []deed{lock(20 * time.Minute)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure,
			says:  []string{"queue notices.retry: 1 ready"},
			never: []string{"running"},
			shows: func(t *testing.T, a answer.Answer) {
				if a.Lock.Value != "worker-7:4711:5f3a" {
					t.Errorf("the owner's token is not shown: %q", a.Lock.Value)
				}
			},
		},
		{
			field: "A6", story: "a watchdog goes on extending a lock whose run is over", flow: "reports",
			left: []deed{record(completed, 4*time.Minute, 3*time.Minute), lock(59 * time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_left",
			never: []string{"running"},
		},
		{
			field: "A7", story: "seconds were taken for milliseconds: a fresh run's lock lives a thousand times too long", flow: "payments",
			left: []deed{record(processing, time.Minute, 30*time.Second), lock(1000 * lockTTL)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_ttl_implausible",
			says: []string{"more than the 1 min that the flow declares"},
		},
		{
			field: "A8", story: "a message that failed for good keeps its marker, and new ones are dropped", flow: "refunds",
			left: []deed{record(failed, 4*time.Hour, 4*time.Hour+-5*time.Second), marker("processing", 20*time.Hour+30*time.Minute)},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical,
			says:  []string{"turns away every retry", "The marker expires in 20 h", "queue refunds.dlq: 1 ready"},
			never: []string{"nothing will retry it"},
		},
		{
			field: "A10", story: "a lock without expiry whose owner was killed by a deploy", flow: "payments",
			left: []deed{record(processing, 3*time.Hour, 3*time.Hour), lockForEver},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical, notes: "lock_without_ttl",
			never: []string{"expires in"},
			shows: func(t *testing.T, a answer.Answer) {
				for _, part := range []string{a.Lock.Key, "-n "} {
					if !strings.Contains(a.Lock.Command, part) {
						t.Errorf("the command does not name %q: %s", part, a.Lock.Command)
					}
				}
			},
		},
	}
}

func lockLost() []scenario {
	return []scenario{
		{
			field: "B1", story: "the run outlived its lock; whether it was delivered again nobody saw", flow: "payments",
			left: []deed{record(completed, time.Hour, time.Hour-145*time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "unprotected_for",
			says: []string{"it took 1 min 25 s longer than the lock's TTL"},
		},
		{
			field: "B1", story: "the run goes on, its lock is gone", flow: "transfers",
			left: []deed{record(processing, 3*time.Minute, 2*time.Minute)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_absent",
			says: []string{"a second delivery would get past Redis to the unique key"},
		},
		{
			field: "B3", story: "the first run overran, a second consumer took the lock", flow: "transfers",
			left: []deed{record(processing, 200*time.Second, 200*time.Second), lock(lockTTL)},
			code: verdict.MayHaveRunTwice, layer: flow.LayerRedis, severity: verdict.Warning,
			says:  []string{"the lock was taken anew", "its lock (TTL 1 min) was too short"},
			never: []string{"it ran 2 times"},
		},
		{
			field: "B3", story: "a watchdog extends the lock of a long run", flow: "reports",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), lock(50 * time.Second)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "renewed",
			never: []string{"twice"},
		},
		{
			field: "B6", story: "the lock was freed at the first failure, the retry waits", flow: "notices",
			left: []deed{record(failed, 10*time.Minute, 9*time.Minute)},
			code: verdict.FailedUnplaced, layer: flow.LayerBroker, severity: verdict.Warning,
			says:  []string{"retry 1"},
			never: []string{"lost"},
		},
		{
			field: "B7", story: "every retry lets in one more copy", flow: "imports",
			left: []deed{record(failed, 10*time.Minute, 9*time.Minute)},
			code: verdict.FailedUnplaced, layer: flow.LayerBroker, severity: verdict.Warning,
			says: []string{"work 3, retry 0, dead letter 0", "which is unknown"},
		},
		{
			field: "B8", story: "the lock lives 10 s and the slowest handler takes 60 s", flow: "exports",
			left: []deed{record(completed, 2*time.Hour, 2*time.Hour-time.Minute)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "unprotected_for",
			says: []string{"50 s longer than the lock's TTL"},
		},
	}
}
