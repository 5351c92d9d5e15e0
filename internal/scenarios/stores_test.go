package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Kinds K, L and N: what MySQL lets in, what its clock says, and stores that do not answer.

func uniqueKeys() []scenario {
	twice := func(c scenario) scenario {
		c.code, c.layer, c.severity = verdict.RanTwice, flow.LayerMySQL, verdict.Critical
		c.says = append(c.says, "It ran 2 times", "Look at the table's unique key")
		return c
	}
	shard := func(n int, status string) deed {
		return insert(fmt.Sprintf("shard_record_%d", n), recordColumns, theType, theID, status, ago(time.Hour), ago(time.Hour-time.Second))
	}
	return []scenario{
		{
			field: "K3", story: "a status that the column does not know was stored as nothing", flow: "messages",
			left: []deed{insertCarelessly("", messageColumns, theType, theID, "done", nil, instant(time.Hour), nil)},
			code: verdict.Unreadable, layer: flow.LayerMySQL, severity: verdict.Warning,
			says: []string{"status is empty", "SQL mode is strict"}, never: []string{"stuck"},
		},
		{
			field: "K3", story: "a number that no phase has", flow: "payments",
			left: []deed{record("7", time.Hour, time.Hour)},
			code: verdict.Unreadable, layer: flow.LayerMySQL, severity: verdict.Warning,
			says: []string{`status "7" is not in the configuration`},
		},
		twice(scenario{
			field: "K6", story: "NULL in the unique key let the same id in twice", flow: "nullable",
			left: []deed{record(completed, time.Hour, time.Hour-time.Second), record(completed, 50*time.Minute, 50*time.Minute-time.Second)},
		}),
		twice(scenario{
			field: "K7", story: "unique within a partition only: one id in two months", flow: "monthly",
			left: []deed{
				insert("", recordColumns, theType, theID, completed, "2025-01-31 23:59:58", "2025-01-31 23:59:59"),
				insert("", recordColumns, theType, theID, completed, "2025-02-01 00:00:08", "2025-02-01 00:00:09"),
			},
		}),
		twice(scenario{
			field: "K8", story: "one id ran on two shards", flow: "shards",
			left: []deed{shard(0, completed), shard(2, completed)},
			shows: func(t *testing.T, a answer.Answer) {
				if !strings.HasSuffix(a.Record.Rows[0].Table, "shard_record_0") || !strings.HasSuffix(a.Record.Rows[1].Table, "shard_record_2") {
					t.Errorf("the shards are not named: %s, %s", a.Record.Rows[0].Table, a.Record.Rows[1].Table)
				}
			},
		}),
		{
			field: "K8", story: "failed on one shard, completed on another", flow: "shards",
			left: []deed{shard(0, failed), shard(1, completed)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "more_records",
		},
		{
			field: "K8", story: "a shard that cannot be read may hold it", flow: "halved",
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			says: []string{"half_record_1"}, never: []string{"never seen", "lost"},
		},
		{
			field: "K8", story: "completed on the shard that answers, and the other one may hold it too", flow: "halved",
			left: []deed{insert("half_record_0", recordColumns, theType, theID, completed, ago(time.Hour), ago(time.Hour-time.Second))},
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			never: []string{"it ran once"},
		},
		{
			field: "K9", story: "two subscribers share a table whose unique key is the message id alone", flow: "subscribers",
			left: []deed{insert("", "message_id, biz_type, status, processed_at", theID, "mailer", "completed", ago(time.Hour))},
			code: verdict.KeyAmbiguous, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"this message would be skipped as a duplicate", "stored 0x6d61696c6572"}, never: []string{"it ran once"},
		},
		{
			field: "K10", story: "the connection broke during the commit, which had happened", flow: "transfers",
			left: []deed{record(completed, 90*time.Second, 80*time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
		},
		{
			field: "K11", story: "not on the replica yet", flow: "replica",
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure, notes: "replica",
			says: []string{"may be missing"}, never: []string{"never seen"},
		},
		{
			field: "K11", story: "the replica says processing, and its primary may know better", flow: "replica",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure, notes: "replica",
			says: []string{"Look the record up on the primary"}, never: []string{"stuck"},
		},
		{
			field: "K11", story: "the replica says completed, which nothing takes back", flow: "replica",
			left: []deed{record(completed, 2*time.Hour, 2*time.Hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "replica",
		},
	}
}

func aboutTime() []scenario {
	skewed := func(c scenario) scenario {
		c.code, c.layer, c.severity = verdict.ClockSkew, flow.LayerMySQL, verdict.Warning
		c.says = append(c.says, "no age is claimed")
		c.never = append(c.never, "stuck", "running", "ago")
		return c
	}
	zeroDate := "0000-00-00 00:00:00"
	return []scenario{
		skewed(scenario{
			field: "L1", story: "written in another zone: a live run seems to begin in eight hours", flow: "payments",
			left: []deed{record(processing, -8*time.Hour, -8*time.Hour)},
			says: []string{"mysql.*.time_zone"},
		}),
		skewed(scenario{
			field: "L3", story: "the hour that happens twice when the clocks go back", flow: "berlin",
			left: []deed{insert("", recordColumns, theType, theID, processing, "2025-10-26 02:30:00", "2025-10-26 02:30:00")},
			says: []string{"happened twice"},
		}),
		{
			field: "L2", story: "a DATETIME in the hour that the clocks skipped", flow: "berlin",
			left: []deed{insert("", recordColumns, theType, theID, processing, "2025-03-30 02:30:00", "2025-03-30 02:30:00")},
			code: verdict.Unreadable, layer: flow.LayerMySQL, severity: verdict.Warning,
			says: []string{"does not exist"}, never: []string{"stuck"},
		},
		{
			field: "L2", story: "picked just before the gap, and never written again", flow: "berlin",
			left: []deed{insert("", recordColumns, theType, theID, processing, "2025-03-30 01:59:50", "2025-03-30 01:59:59")},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
		},
		{
			field: "L3", story: "completed in the hour that happens twice", flow: "berlin",
			left: []deed{insert("", recordColumns, theType, theID, completed, "2025-10-26 02:30:00", "2025-10-26 02:30:00")},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
		},
		{
			field: "L5", story: "a zero date has no age", flow: "payments",
			left: []deed{insertCarelessly("", recordColumns, theType, theID, processing, zeroDate, zeroDate)},
			code: verdict.Unreadable, layer: flow.LayerMySQL, severity: verdict.Warning,
			never: []string{"stuck", "year 1"},
		},
		{
			field: "L5", story: "a record with a zero date does not hide the one beside it", flow: "keyless",
			left: []deed{
				insertCarelessly("", recordColumns, theType, theID, failed, zeroDate, "2025-00-00 12:00:00"),
				record(completed, time.Hour, time.Hour-time.Second),
			},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "more_records",
		},
	}
}

func watching() []scenario {
	unsure := func(c scenario) scenario {
		c.code, c.severity = verdict.Unknown, verdict.Unsure
		c.never = append(c.never, "never seen", "stuck", "lost")
		return c
	}
	return []scenario{
		unsure(scenario{field: "N5", story: "MySQL is down: nothing is claimed", flow: "absent", layer: flow.LayerMySQL, left: []deed{lock(30 * time.Second)}, never: []string{"record: none", "just beginning"}}),
		unsure(scenario{
			field: "N5", story: "Redis is down, and it decides", flow: "redis down", layer: flow.LayerRedis,
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)}, notes: "lock_unread marker_unread",
		}),
		unsure(scenario{
			field: "N5", story: "RabbitMQ is down, and it decides", flow: "broker down", layer: flow.LayerBroker,
			left: []deed{record(failed, 2*time.Hour, 2*time.Hour)}, notes: "broker_unread",
		}),
		{
			field: "N5", story: "Redis is down, and the record is completed all the same", flow: "redis down",
			left: []deed{record(completed, 2*time.Hour, 2*time.Hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_unread marker_unread",
		},
		unsure(scenario{
			field: "N5", story: "the queue that the flow names is not there: nothing is taken for empty", flow: "misnamed", layer: flow.LayerBroker,
			says: []string{"there is no queue misnamed, so its messages may be in a queue with another name"},
		}),
		{
			field: "N6", story: "somebody peeked, and the third peek was the last", flow: "peeked",
			left: []deed{record(failed, 10*time.Minute, 9*time.Minute)},
			code: verdict.LostSuspected, layer: flow.LayerBroker, severity: verdict.Critical,
		},
	}
}
