package scenarios

import (
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Kinds F, G and H: too many deliveries, too few effects, and records that went before their messages.

const messageColumns = "message_type, message_id, status, result, created_at, completed_at"

func deliveredAgain() []scenario {
	return []scenario{
		{
			field: "F1", story: "the ack timeout passed, and the import may still be at work", flow: "transfers",
			left: []deed{record(processing, 31*time.Minute, 31*time.Minute)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical, notes: "unacked_could_be_it",
			says: []string{"its consumer still at work"},
		},
		{
			field: "F3", story: "the first attempt succeeded, the retry was marked failed and dead-lettered", flow: "refunds",
			left: []deed{record(completed, 40*time.Minute, 40*time.Minute-20*time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			never: []string{"lost", "retry it"},
		},
		{
			field: "F4", story: "the batch is read again after a rebalance, this one was done", flow: "imports",
			left: []deed{record(completed, 2*time.Minute, 2*time.Minute-time.Second), marker("1", 23*time.Hour)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			says: []string{"Every further delivery is a duplicate"},
		},
		{
			field: "F5", story: "old messages come back in a flood", flow: "imports",
			left: []deed{record(completed, 6*24*time.Hour, 6*24*time.Hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			never: []string{"waits", "lost"},
		},
		{
			field: "F6", story: "a message is given back in a tight loop before anything is written", flow: "transfers",
			code: verdict.MaybeWaiting, layer: flow.LayerBroker, severity: verdict.Info,
			never: []string{"never seen"},
		},
		{
			field: "F8", story: "twenty pollers took the same row, two of them finished", flow: "keyless",
			left: []deed{record(completed, time.Hour, time.Hour-2*time.Second), record(completed, time.Hour, time.Hour-3*time.Second)},
			code: verdict.RanTwice, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"It ran 2 times"},
		},
		{
			field: "F8", story: "two pollers took the same row, one of them is still at it", flow: "keyless",
			left: []deed{record(completed, 2*time.Minute, time.Minute), record(processing, 2*time.Minute, 2*time.Minute)},
			code: verdict.MayHaveRunTwice, layer: flow.LayerMySQL, severity: verdict.Warning,
			says: []string{"2 records"}, never: []string{"it ran 2 times"},
		},
	}
}

func neverDone() []scenario {
	return []scenario{
		{
			field: "G1", story: "the marker was written before the work was known to be good", flow: "payments",
			left: []deed{marker("1", 20*time.Hour+30*time.Minute)},
			code: verdict.LostSuspected, layer: flow.LayerRedis, severity: verdict.Critical,
			says:  []string{"nothing proves the effect", "clear the marker first, then publish again", "The marker expires in 20 h"},
			never: []string{"completed", "it ran"},
		},
		{
			field: "G1", story: "the marker without a record drops the messages that wait", flow: "imports",
			left: []deed{marker("1", 20*time.Hour+30*time.Minute)},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical,
			says: []string{"every delivery is dropped while the marker lives", "Find out in the business data"},
		},
		{
			field: "G2", story: "failed, and the delivery limit dropped the message for want of a dead-letter target", flow: "coupons",
			left: []deed{record(failed, 10*time.Minute, 9*time.Minute)},
			code: verdict.LostSuspected, layer: flow.LayerBroker, severity: verdict.Critical,
			says: []string{"nothing will retry it", "delivery limit"},
		},
		{
			field: "G3", story: "acked before the durable write, and nothing was written", flow: "payments",
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info,
			says: []string{"This does not prove that it was never published", "a message that was acked leave the same picture"},
		},
		{
			field: "G5", story: "done, but its message could not be removed and went to the dead letters", flow: "refunds",
			left: []deed{record(completed, 5*time.Hour, 5*time.Hour-time.Second), marker("success", 19*time.Hour)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			never: []string{"lost", "retry it"},
		},
		{
			field: "G6", story: "the marker stands under another spelling of the id", flow: "payments", bizID: "Invoice-7",
			left: []deed{redisString("idempotent:order_paid:INVOICE-7", time.Hour)},
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info, notes: "redis_similar",
			says: []string{"idempotent:order_paid:INVOICE-7"}, never: []string{"the marker says"},
		},
		{
			field: "G7", story: "a run that ended normally and did nothing", flow: "messages",
			left: []deed{insert("", messageColumns, theType, theID, "completed", "", instant(time.Hour), instant(time.Hour-time.Second))},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			shows: func(t *testing.T, a answer.Answer) {
				if r := a.Record.Rows[0].Result; r == nil || *r != "" {
					t.Errorf("an empty result is not told from none: %v", r)
				}
			},
		},
		{
			field: "G7", story: "a run whose result is NULL", flow: "messages",
			left: []deed{insert("", messageColumns, theType, theID, "completed", nil, instant(time.Hour), instant(time.Hour-time.Second))},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			shows: func(t *testing.T, a answer.Answer) {
				if r := a.Record.Rows[0].Result; r != nil {
					t.Errorf("a result is shown where the column is NULL: %q", *r)
				}
			},
		},
		{
			field: "G8", story: "the sender counts five attempts, the broker stored one message", flow: "jobs",
			left: []deed{insert("", jobColumns+", attempts", theType, theID, "failed", "worker-1", ago(time.Hour), ago(50*time.Minute), 5)},
			code: verdict.LostSuspected, layer: flow.LayerBroker, severity: verdict.Critical,
			shows: func(t *testing.T, a answer.Answer) {
				if r := a.Record.Rows[0]; r.Attempts == nil || *r.Attempts != "5" {
					t.Errorf("the attempts are not shown: %+v", r)
				}
			},
		},
	}
}

func retention() []scenario {
	return []scenario{
		{
			field: "H-a", story: "record and marker were purged, and the dead letters still hold a message", flow: "refunds",
			code: verdict.MaybeWaiting, layer: flow.LayerBroker, severity: verdict.Info,
			never: []string{"never seen", "never published", "stuck"},
		},
		{
			field: "H-d", story: "lock and marker are gone after completion: the record alone stops a copy", flow: "payments",
			left: []deed{record(completed, 30*time.Hour, 30*time.Hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			says: []string{"lock: none", "marker: none", "the record stops it"},
		},
	}
}
