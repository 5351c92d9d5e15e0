package scenarios

import (
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// misleading are states in which an obvious answer would mislead.
func misleading() []scenario {
	return []scenario{
		{
			field: "H-a", story: "record purged, and the only message is a dead letter: nobody delivers it", flow: "refunds",
			code: verdict.MaybeWaiting, layer: flow.LayerBroker, severity: verdict.Info,
			says: []string{"dead letter"}, never: []string{"delivered in its turn", "Start the consumers"},
		},
		{
			field: "F3", story: "failed, and the only message is a dead letter", flow: "refunds",
			left: []deed{record(failed, time.Hour, time.Hour)},
			code: verdict.FailedUnplaced, layer: flow.LayerBroker, severity: verdict.Warning,
			never: []string{"it runs again when it is delivered"},
		},
		{
			field: "A7", story: "silent for hours, and the lock's TTL is a thousand times too long: it proves no run", flow: "payments",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), lock(14 * time.Hour)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure, notes: "lock_ttl_implausible",
			never: []string{"running:"},
		},
		{
			field: "A9", story: "the reservation lives a day, its run fell silent three hours ago: the lock is as old", flow: "reservations",
			left: []deed{record(processing, 3*time.Hour, 3*time.Hour), lock(21 * time.Hour)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure,
			never: []string{"running:"},
		},
		{
			field: "A9", story: "silent for hours, and nobody declared how long the lock lives", flow: "ttl-less",
			left: []deed{record(processing, 3*time.Hour, 3*time.Hour), lock(21 * time.Hour)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure,
			never: []string{"running:"},
		},
		{
			field: "D6", story: "owned for a month and never started; nothing waits", flow: "jobs",
			left: []deed{insert("", jobColumns, theType, theID, "pending", "worker-1", ago(30*24*time.Hour), ago(30*24*time.Hour))},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			never: []string{"never seen", "Check the spelling"},
		},
		{
			field: "D6", story: "the sender's own table has held it as pending for days, after seven attempts", flow: "outbox",
			left: []deed{insert("", "message_id, status, retry_count, created_at", theID, "pending", 7, ago(3*24*time.Hour))},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			never: []string{"Check the spelling"},
		},
		{
			field: "E2", story: "one node finished, another failed the same retry: record and marker contradict", flow: "payments",
			left: []deed{record(failed, time.Hour, time.Hour), marker("success", 22*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical,
			says: []string{"business data"},
		},
		{
			field: "B4", story: "the lock changed hands before the run ended: it is older than the completion and younger than the run", flow: "payments",
			left: []deed{record(completed, 180*time.Second, 2*time.Second), lock(15 * time.Second)},
			code: verdict.MayHaveRunTwice, layer: flow.LayerRedis, severity: verdict.Warning, notes: "lock_left",
			never: []string{"it ran once"},
		},
		{
			field: "K9", story: "unique by message id alone: the advice is to put the type into the key", flow: "subscribers",
			left: []deed{insert("", "message_id, biz_type, status, processed_at", theID, "mailer", "completed", ago(time.Hour))},
			code: verdict.KeyAmbiguous, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"unique key"}, never: []string{"collation"},
		},
		{
			field: "A8", story: "failed hours ago, and its lock was never released: every retry is refused for 20 h", flow: "reservations",
			left: []deed{record(failed, 4*time.Hour, 4*time.Hour), lock(20 * time.Hour)},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical, notes: "lock_held",
			never: []string{"(work 0, retry 0, dead letter 0)"},
		},
		{
			field: "G2", story: "failed; its queue passes rejected messages on to one that the flow does not name", flow: "no dead letters named",
			left: []deed{record(failed, 4*time.Hour, 4*time.Hour)},
			code: verdict.Unknown, layer: flow.LayerBroker, severity: verdict.Unsure,
			says: []string{"names no dead_letter queue"}, never: []string{"retry 0"},
		},
		{
			field: "N5", story: "failed, and the queue that the flow names is not there", flow: "misnamed",
			left: []deed{record(failed, 4*time.Hour, 4*time.Hour)},
			code: verdict.Unknown, layer: flow.LayerBroker, severity: verdict.Unsure,
			says: []string{"there is no queue misnamed"}, never: []string{"retry 0"},
		},
		{
			field: "G1", story: "the marker says processing, rows come at the end, and a message is being worked on", flow: "presence",
			left: []deed{marker("processing", 24*time.Hour-10*time.Minute)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure,
			never: []string{"says done", "stuck"},
		},
		{
			field: "G1", story: "a marker that says processing outlived its run", flow: "payments",
			left: []deed{marker("processing", 20*time.Hour+30*time.Minute)},
			code: verdict.LostSuspected, layer: flow.LayerRedis, severity: verdict.Critical,
			never: []string{"says done"},
		},
		{
			field: "A2", story: "a lone lock: no layer is silent, and waiting for one is no advice", flow: "uniques",
			left: []deed{lock(20 * time.Minute)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure,
			says: []string{"only if its value is still the one shown here"}, never: []string{"when that layer answers"},
		},
		{
			field: "I6", story: "an id that the column can never store", flow: "old", bizID: "GIFT-🎁-2",
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			says: []string{"utf8mb4"}, never: []string{"when that layer answers"},
		},
		{
			field: "H-b", story: "replayed after its record was archived, and a run has begun", flow: "kept",
			left: []deed{insert("kept_record_archive", recordColumns, theType, theID, completed, ago(480*time.Hour), ago(480*time.Hour)), lock(50 * time.Second)},
			code: verdict.MayHaveRunTwice, layer: flow.LayerMySQL, severity: verdict.Warning,
			says: []string{"may be running again"},
		},
	}
}
