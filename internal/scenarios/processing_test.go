package scenarios

import (
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Kinds C, D and E: who is dead, who only looks dead, and who wrote last.

const jobColumns = "kind, job_no, state, worker, created_at, heartbeat_at"

func janitorHarm() []scenario {
	return []scenario{
		{
			field: "C1", story: "a sweeper removed the lock of a run that works", flow: "transfers",
			left: []deed{record(processing, 90*time.Second, time.Minute)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_absent",
			never: []string{"stuck", "dead", "died"},
		},
		{
			field: "C2", story: "nobody is named as owner, and a message is being worked on", flow: "busy jobs",
			left: []deed{insert("", jobColumns, theType, theID, "running", nil, ago(20*time.Minute), ago(11*time.Minute))},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical, notes: "unacked_could_be_it",
			says:  []string{"this could be among them, and its consumer still at work", "Check that no consumer still works on it"},
			never: []string{"orphan", "is dead"},
			shows: func(t *testing.T, a answer.Answer) {
				if a.Record.Rows[0].Worker != nil {
					t.Errorf("an owner is shown where the column is NULL: %q", *a.Record.Rows[0].Worker)
				}
			},
		},
		{
			field: "C3", story: "claimed long ago, and its heartbeat is fresh", flow: "jobs",
			left: []deed{insert("", jobColumns, theType, theID, "running", "worker-3", ago(9*time.Hour), ago(20*time.Second))},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_absent",
			never: []string{"9 h"},
		},
		{
			field: "C3", story: "claimed and never touched again", flow: "jobs",
			left: []deed{insert("", jobColumns, theType, theID, "running", "worker-3", ago(9*time.Hour), ago(9*time.Hour))},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"without a sign of life for 9 h"},
		},
		{
			field: "C4", story: "a guard failed a healthy run at exactly its limit, and the worker is still busy", flow: "transfers",
			left: []deed{record(failed, 7500*time.Second, 300*time.Second)},
			code: verdict.FailedUnplaced, layer: flow.LayerBroker, severity: verdict.Warning,
			says:  []string{"work 3"},
			never: []string{"died", "is dead", "crash", "lost"},
		},
		{
			field: "C6", story: "it only waits behind a busy consumer: no lock, no owner, a frozen time", flow: "busy jobs",
			left: []deed{insert("", jobColumns, theType, theID, "pending", nil, ago(3*time.Hour), ago(3*time.Hour))},
			code: verdict.MaybeWaiting, layer: flow.LayerBroker, severity: verdict.Info,
			says:  []string{"2 ready, 1 unacked, 1 consumers"},
			never: []string{"stuck", "lost"},
		},
		{
			field: "C7", story: "the heartbeat is never sent, but the lock still covers the run", flow: "slow imports",
			left: []deed{record(processing, 4*time.Minute, 4*time.Minute), lock(6 * time.Minute)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK,
			never: []string{"stuck", "twice"},
		},
	}
}

func processingForEver() []scenario {
	return []scenario{
		{
			field: "D1", story: "killed in mid-run; the next delivery will be refused, acked and lost", flow: "payments",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"nobody holds the lock", "refused by the unique key, acked, and lost", "only if status and time are still those shown here"},
		},
		{
			field: "D1", story: "killed in mid-run; the next delivery will come again and again", flow: "imports",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"it comes again and again"}, never: []string{"and lost"},
		},
		{
			field: "D1", story: "killed in mid-run; the next delivery takes it over", flow: "notices",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"takes the record over and runs"}, never: []string{"and lost"},
		},
		{
			field: "D1", story: "killed in mid-run, and its marker drops what comes next", flow: "payments",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), marker("processing", 22*time.Hour+30*time.Minute)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"The marker expires in 22 h", "Clear the marker as well"},
		},
		{
			field: "D2", story: "one of two records of a dead worker", flow: "jobs",
			left: []deed{
				insert("", jobColumns, theType, "tenant-5-next", "pending", nil, ago(time.Hour), ago(time.Hour)),
				insert("", jobColumns, theType, theID, "running", "worker-9", ago(14*time.Hour), ago(14*time.Hour)),
			},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"14 h"},
		},
		{
			field: "D3", story: "in progress, its end is NULL: the age counts from the beginning", flow: "messages",
			left: []deed{insert("", "message_type, message_id, status, created_at, completed_at", theType, theID, "processing", instant(time.Hour), nil)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"without a sign of life for 1 h"},
		},
		{
			field: "D3", story: "in progress, and all times are NULL", flow: "messages",
			left: []deed{insert("", "message_type, message_id, status, created_at, completed_at", theType, theID, "processing", nil, nil)},
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			says: []string{"no time column tells for how long"}, never: []string{"stuck"},
		},
		{
			field: "D3", story: "in progress, in a table without times", flow: "timeless",
			left: []deed{insert("", "biz_type, biz_id, status", theType, theID, "doing")},
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			says: []string{"no time column tells for how long", "ledgers.*.columns.updated"}, never: []string{"stuck"},
		},
		{
			field: "D4", story: "the run did something outside that must not happen twice", flow: "settlements",
			left: []deed{record(processing, 26*time.Hour, 26*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			says:  []string{"This flow must not run twice (rerun: never)", "before or after"},
			never: []string{"set the record back", "send the message again"},
		},
		{
			field: "D5", story: "the failure could not be written down either", flow: "payments",
			left: []deed{record(processing, 31*time.Minute, 30*time.Minute)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			never: []string{"crash", "exception"},
		},
	}
}

func lateWriter() []scenario {
	return []scenario{
		{
			field: "E1", story: "declared timed out, then written completed by its old worker", flow: "payments",
			left: []deed{record(completed, 3*time.Hour, time.Hour)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "unprotected_for",
			says: []string{"completed 1 h ago"},
		},
		{
			field: "E3", story: "reclaimed twice, and the third owner works", flow: "jobs",
			left: []deed{
				insert("", jobColumns+", attempts", theType, theID, "running", "worker-2", ago(2*time.Hour), ago(0), 3),
				lock(lockTTL),
			},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK,
			never: []string{"stuck", "twice"},
			shows: func(t *testing.T, a answer.Answer) {
				if r := a.Record.Rows[0]; r.Attempts == nil || *r.Attempts != "3" || r.Worker == nil || *r.Worker != "worker-2" {
					t.Errorf("the present owner and attempt are not shown: %+v", r)
				}
			},
		},
	}
}
