package scenarios

import (
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Kinds I and J: two ids that one store takes for the same, and keys that two ids share.

// longer is an id of 34 characters; cut is what a column of 32 keeps of it.
const (
	longer = "PARTNER-CALLBACK-2025-0000001-RT-2"
	cut    = "PARTNER-CALLBACK-2025-0000001-RT"
)

func whichID() []scenario {
	ambiguous := func(c scenario) scenario {
		c.code, c.layer, c.severity = verdict.KeyAmbiguous, flow.LayerMySQL, verdict.Critical
		c.never = append(c.never, "it ran once", "send the message again")
		return c
	}
	return []scenario{
		ambiguous(scenario{
			field: "I1", story: "the collation takes two generated ids for one", flow: "payments", bizID: "ORD-9A",
			left: []deed{recordOf("ORD-9a", completed, time.Hour, time.Hour-time.Second)},
			says: []string{"0x4f52442d3941", "0x4f52442d3961", "collation that compares bytes"},
		}),
		{
			field: "I1", story: "the id that the record belongs to is plainly completed", flow: "payments", bizID: "ORD-9B",
			left: []deed{record(completed, time.Hour, time.Hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
		},
		ambiguous(scenario{
			field: "I1", story: "the other id's record answers although this id holds a lock of its own", flow: "payments", bizID: "ORD-9C",
			left: []deed{recordOf("ORD-9c", processing, time.Minute, time.Minute), lock(lockTTL)},
			says: []string{"Do not act on either key"},
		}),
		ambiguous(scenario{
			field: "I2", story: "utf8mb4_bin ignores a blank at the end, Redis does not", flow: "padded", bizID: "SO-77 ",
			left: []deed{recordOf("SO-77", completed, time.Hour, time.Hour-time.Second)},
			says: []string{"0x534f2d373720", "0x534f2d3737"},
		}),
		{
			field: "I2", story: "a collation without padding tells them apart", flow: "exact", bizID: "SO-78 ",
			left: []deed{recordOf("SO-78", completed, time.Hour, time.Hour-time.Second)},
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info, notes: "other_spelling",
			says: []string{"exact_order / SO-78 (completed)"}, never: []string{"it ran"},
		},
		ambiguous(scenario{
			field: "I3", story: "two emoji are one to the collation", flow: "payments", bizID: "GIFT-🎁",
			left: []deed{recordOf("GIFT-🎉", completed, time.Hour, time.Hour-time.Second)},
			says: []string{"0x474946542df09f8e81", "0x474946542df09f8e89"},
		}),
		ambiguous(scenario{
			field: "I4", story: "one letter in two spellings, equal to utf8mb4_unicode_ci", flow: "unicode", bizID: "CAFE\u0301-1",
			left: []deed{recordOf("CAF\u00c9-1", completed, time.Hour, time.Hour-time.Second)},
		}),
		ambiguous(scenario{
			field: "I4", story: "sharp s and its long spelling", flow: "unicode", bizID: "STRASSE-1",
			left: []deed{recordOf("STRA\u00dfE-1", completed, time.Hour, time.Hour-time.Second)},
		}),
		{
			field: "I4", story: "one letter in two spellings, two ids to utf8mb4_general_ci", flow: "payments", bizID: "CAFE\u0301-2",
			left: []deed{recordOf("CAF\u00c9-2", completed, time.Hour, time.Hour-time.Second)},
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info, notes: "other_spelling",
			says: []string{"Check the spelling of the id"},
		},
		ambiguous(scenario{
			field: "I5", story: "cut on insert, asked for in full", flow: "narrow", bizID: longer,
			left: []deed{insertCarelessly("", recordColumns, theType, longer, completed, ago(time.Hour), ago(time.Hour-time.Second))},
			says: []string{"longer than the 32 characters", "Widen the column"},
		}),
		ambiguous(scenario{
			field: "I5", story: "too long for the column, and not there at all", flow: "narrow", bizID: strings.Repeat("9", 40),
			says: []string{"refused, or cut"},
		}),
		{
			field: "I6", story: "a three-byte column cannot hold an emoji, and the message loops", flow: "old", bizID: "GIFT-🎁-1",
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			says: []string{"character set cannot hold this id", "an insert of this id fails"}, never: []string{"never seen"},
		},
		{
			field: "I5", story: "an id that exactly fills the column", flow: "narrow", bizID: cut[:31] + "X",
			left: []deed{record(completed, time.Hour, time.Hour-time.Second)},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "id_fills_column",
			shows: func(t *testing.T, a answer.Answer) {
				if !a.Record.Rows[0].IDFills {
					t.Error("it is not noticed that the id fills the column")
				}
			},
		},
	}
}

func keySpelling() []scenario {
	return []scenario{
		{
			field: "J1", story: "the separator stands in a biz_type: one lock, two keys", flow: "subtypes", bizType: "order", bizID: "refund:7",
			left: []deed{lock(30 * time.Second)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure, notes: "lock_ambiguous",
			says: []string{"could be another key's as well", "put {biz_type} into the template"}, never: []string{"running", "a run is just beginning"},
		},
		{
			field: "J1", story: "the same lock, asked for by its other owner", flow: "subtypes", bizType: "order:refund", bizID: "7",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), lock(30 * time.Second)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure, notes: "lock_ambiguous",
			never: []string{"running", "stuck"},
		},
		{
			field: "J1", story: "a shared lock that is absent is held by nobody", flow: "subtypes", bizType: "order", bizID: "refund:8",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
		},
		{
			field: "J2", story: "leading zeros belong to the id", flow: "payments", bizID: "00123",
			left: []deed{recordOf("123", failed, time.Hour, time.Hour-time.Second)},
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info,
			never: []string{"failed"},
		},
		{
			field: "J4", story: "an id with glob characters is looked for as it is", flow: "payments", bizID: "a[1]*?",
			left: []deed{redisString("idem_lock:order_paid:a1xx", time.Minute), redisString("idem_lock:order_paid:a[1]xx", time.Minute)},
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info,
		},
		{
			field: "J4", story: "an id with glob characters finds its own lock", flow: "payments", bizID: "b[1]*?",
			left: []deed{lockForEver},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical, notes: "lock_without_ttl",
		},
		{
			field: "J5", story: "a library's hash stands where the lock belongs, without TTL", flow: "payments",
			left: []deed{hashInPlaceOfLock(0)},
			code: verdict.Stuck, layer: flow.LayerRedis, severity: verdict.Critical, notes: "lock_foreign_type lock_without_ttl",
		},
		{
			field: "J5", story: "a library's hash stands where the lock belongs", flow: "payments",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), hashInPlaceOfLock(10 * time.Minute)},
			code: verdict.Unknown, layer: flow.LayerRedis, severity: verdict.Unsure, notes: "lock_foreign_type lock_ttl_implausible",
			says: []string{"holds a hash"}, never: []string{"running", "stuck"},
		},
		{
			field: "J6", story: "a 19-digit number in a pasted message keeps its digits", flow: "payments", bizID: "9007199254740993123",
			query: `{"biz_type":"order_paid","biz_id":9007199254740993123}`,
			left: []deed{
				record(completed, time.Hour, time.Hour-time.Second),
				recordOf("9007199254740992000", failed, time.Hour, time.Hour-time.Second),
			},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK,
			never: []string{"failed"},
		},
		{
			field: "J7", story: "ids that are equal to a number are not equal to its text", flow: "payments", bizID: "10086",
			left: []deed{
				recordOf("10086a", completed, time.Hour, time.Hour-time.Second), recordOf("010086", completed, time.Hour, time.Hour-time.Second),
				recordOf("1.0086e4", completed, time.Hour, time.Hour-time.Second),
			},
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info,
		},
		{
			field: "J8", story: "the lock was taken under another prefix than the one configured", flow: "payments", bizID: "SO-J8",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), redisString("shop:idem_lock:order_paid:SO-J8", time.Minute)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
			shows: func(t *testing.T, a answer.Answer) {
				if !strings.Contains(a.Lock.Command, "idem_lock:order_paid:SO-J8") {
					t.Errorf("the command does not name the key that was looked at: %s", a.Lock.Command)
				}
			},
		},
	}
}
