package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestEveryPresetReadsItsTable(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	type want struct {
		id      string
		status  string
		phase   flow.Phase
		age     time.Duration
		run     time.Duration // -1: not known
		created StampState
	}
	cases := []struct {
		preset, table, ddl string
		spec               MappingSpec
		insert             string
		rows               map[string]want
	}{
		{
			"idempotent_record", "idempotent_record", idempotentRecord, MappingSpec{},
			`INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES
				('t', 'run', 1, NOW() - INTERVAL 60 SECOND, NOW() - INTERVAL 30 SECOND), ('t', 'ok', 2, NOW() - INTERVAL 60 SECOND, NOW() - INTERVAL 30 SECOND),
				('t', 'bad', 3, NOW() - INTERVAL 60 SECOND, NOW() - INTERVAL 30 SECOND), ('t', 'odd', 7, NOW() - INTERVAL 60 SECOND, NOW() - INTERVAL 30 SECOND)`,
			map[string]want{
				"run": {"1", "1", flow.Processing, 30 * time.Second, -1, StampOK}, "ok": {"2", "2", flow.Completed, 30 * time.Second, 30 * time.Second, StampOK},
				"bad": {"3", "3", flow.Failed, 30 * time.Second, 30 * time.Second, StampOK}, "odd": {"4", "7", flow.Unmapped, 30 * time.Second, -1, StampOK},
			},
		},
		{
			"message_deduplication", "message_deduplication", messageDeduplication, MappingSpec{},
			`INSERT INTO message_deduplication (message_type, message_id, status, result, created_at, completed_at) VALUES
				('t', 'run', 'processing', NULL, NOW() - INTERVAL 60 SECOND, NULL), ('t', 'ok', 'completed', '{"n":1}', NOW() - INTERVAL 60 SECOND, NOW() - INTERVAL 20 SECOND), ('t', 'bad', 'failed', 'no money', NOW() - INTERVAL 60 SECOND, NULL)`,
			map[string]want{
				"run": {"1", "processing", flow.Processing, 60 * time.Second, -1, StampOK}, "ok": {"2", "completed", flow.Completed, 20 * time.Second, 40 * time.Second, StampOK},
				"bad": {"3", "failed", flow.Failed, 60 * time.Second, -1, StampOK},
			},
		},
		{
			"message_idempotence", "message_idempotence", messageIdempotence, MappingSpec{},
			`INSERT INTO message_idempotence (message_type, message_id, status, result, created_at, completed_at) VALUES
				('t', 'ok', 'completed', 'replayed', NOW(6) - INTERVAL 1500000 MICROSECOND, NOW(6)), ('t', 'null', 'processing', NULL, NULL, NULL), ('t', 'empty', '', NULL, NOW(6), NULL)`,
			map[string]want{
				"ok": {"1", "completed", flow.Completed, 0, 1500 * time.Millisecond, StampOK}, "null": {"2", "processing", flow.Processing, -1, -1, StampNull},
				"empty": {"3", "", flow.Unmapped, 0, -1, StampOK},
			},
		},
		{
			"message_processed", "message_processed", messageProcessed, MappingSpec{},
			`INSERT INTO message_processed (biz_type, message_id, status, processed_at) VALUES ('t', 'ok', 'success', NOW(3))`,
			map[string]want{"ok": {"1", "success", flow.Completed, 0, -1, StampOK}},
		},
		{
			"consume_log", "consume_log", consumeLog, MappingSpec{BizType: "t"},
			`INSERT INTO consume_log VALUES ('ok', NOW() - INTERVAL 1 DAY)`,
			map[string]want{"ok": {"", "present", flow.Completed, 24 * time.Hour, -1, StampOK}},
		},
		{
			"composite", "user_sign_record", userSign, MappingSpec{BizType: "t", BizID: "{user_id}:{sign_date}"},
			`INSERT INTO user_sign_record (user_id, sign_date, created_at) VALUES (7, '2025-01-15', NOW()), (8, '2025-01-15', NOW())`,
			map[string]want{"7:2025-01-15": {"1", "present", flow.Completed, 0, -1, StampOK}},
		},
		{
			"state_machine", "orders", orders, MappingSpec{BizType: "t"},
			`INSERT INTO orders (order_no, status, created_at, updated_at) VALUES ('new', 'pending', NOW() - INTERVAL 60 SECOND, NOW()), ('ok', 'shipped', NOW() - INTERVAL 60 SECOND, NOW())`,
			map[string]want{"new": {"1", "pending", flow.NotStarted, 0, -1, StampOK}, "ok": {"2", "shipped", flow.Completed, 0, time.Minute, StampOK}},
		},
		{
			"outbox", "outbox", outbox, MappingSpec{BizType: "t"},
			`INSERT INTO outbox (message_id, payload, status, retry_count, created_at, sent_at) VALUES ('wait', '{}', 'pending', 3, NOW() - INTERVAL 60 SECOND, NULL), ('ok', '{}', 'sent', 0, NOW() - INTERVAL 60 SECOND, NOW())`,
			map[string]want{"wait": {"1", "pending", flow.NotStarted, 60 * time.Second, -1, StampOK}, "ok": {"2", "sent", flow.Completed, 0, time.Minute, StampOK}},
		},
	}
	if len(cases) != len(Presets()) {
		t.Errorf("%d presets are tested of %v", len(cases), Presets())
	}
	for _, c := range cases {
		t.Run(c.preset, func(t *testing.T) {
			db.Exec(t, c.ddl)
			db.Exec(t, c.insert)
			l := openLedger(t, s, c.table, c.preset, c.spec)
			for bizID, w := range c.rows {
				r := one(t, l, "t", bizID)
				if !r.Exact || r.BizType != "t" || r.BizID != bizID || r.Table != db.Name+"."+c.table || r.ID != w.id || r.Status != w.status || r.Phase != w.phase || r.Created.State != w.created {
					t.Errorf("%s: %+v", bizID, r)
				}
				if (w.age >= 0) != r.AgeKnown || (r.AgeKnown && !near(r.Age, w.age)) {
					t.Errorf("%s: age %v %s, want %s", bizID, r.AgeKnown, r.Age, w.age)
				}
				if (w.run >= 0) != r.RunTimeKnown || (r.RunTimeKnown && (r.RunTime-w.run).Abs() > time.Second) {
					t.Errorf("%s: run time %v %s, want %s", bizID, r.RunTimeKnown, r.RunTime, w.run)
				}
			}
			for _, absent := range []string{"none", "7:2025-01-16", ""} {
				if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: absent}); f.State != flow.Absent || !near(time.Since(f.DBNow), 0) {
					t.Errorf("%q: %s %+v", absent, f.State, f)
				}
			}
		})
	}
	t.Run("optional columns", func(t *testing.T) {
		dedup := openLedger(t, s, "message_deduplication", "message_deduplication", MappingSpec{})
		if r := one(t, dedup, "t", "ok"); r.Result == nil || *r.Result != `{"n":1}` || r.Attempts != nil || r.Worker != nil {
			t.Errorf("%+v", r)
		}
		if r := one(t, dedup, "t", "run"); r.Result != nil || r.Completed.State != StampNull {
			t.Errorf("%+v", r)
		}
		box := openLedger(t, s, "outbox", "outbox", MappingSpec{BizType: "t"})
		if r := one(t, box, "t", "wait"); r.Attempts == nil || *r.Attempts != "3" {
			t.Errorf("%+v", r)
		}
	})
}

func TestPresetWithoutItsOptionalColumns(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE message_processed (message_id VARCHAR(64) NOT NULL, biz_type VARCHAR(32) NOT NULL, processed_at DATETIME NOT NULL, UNIQUE KEY (message_id))`)
	db.Exec(t, `INSERT INTO message_processed VALUES ('m1', 't', NOW())`)
	l := openLedger(t, openServer(t, db), "message_processed", "message_processed", MappingSpec{})
	if r := one(t, l, "t", "m1"); r.Status != "present" || r.Phase != flow.Completed || r.ID != "" {
		t.Errorf("%+v", r)
	}
	expectProblems(t, l.Check(soon(t)), "optional_column: status", "no_integer_key: ", "folds_case: biz_type", "ignores_padding: biz_type", "folds_case: message_id", "ignores_padding: message_id")
	// Its unique key leaves the type out: another type's row refuses this one.
	f := l.Find(soon(t), flow.Key{BizType: "other", BizID: "m1"})
	if f.State != flow.Found || len(f.Rows) != 1 || f.Rows[0].Exact || f.Rows[0].BizType != "t" || len(f.Coverage) == 0 {
		t.Errorf("%+v", f)
	}
}

func TestMappingByHand(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE `we``ird table` (`no` BIGINT AUTO_INCREMENT PRIMARY KEY, `the type` INT NOT NULL, `the-id` VARCHAR(40) COLLATE utf8mb4_nopad_bin NOT NULL,"+
		" done BIT(1) NULL, born BIGINT NOT NULL, moved INT NOT NULL, ended DECIMAL(16,3) NULL, tries TINYINT, host VARBINARY(40), answer BLOB, UNIQUE KEY `odd``key` (`the-id`, `the type`))")
	now := time.Now().Unix()
	db.Exec(t, "INSERT INTO `we``ird table` (`the type`, `the-id`, done, born, moved, tries, host, answer) VALUES (12, 'a', 1, ?, ?, 2, 'h:1', ?), (12, 'b', 0, ?, 0, NULL, NULL, NULL), (12, 'c', NULL, ?, 0, NULL, NULL, NULL)",
		(now-90)*1000, now-60, strings.Repeat("x", 9000), (now-90)*1000, (now-90)*1000)
	l := openLedger(t, openServer(t, db), "we`ird table", "", MappingSpec{
		Columns: map[string]string{"id": "NO", "biz_type": "The Type", "biz_id": "the-id", "status": "done", "created": "born", "updated": "moved", "attempts": "tries", "worker": "host", "result": "answer"},
		Status:  map[string][]string{"completed": {"1"}, "processing": {"0"}},
	})
	r := one(t, l, "12", "a")
	if !r.Exact || r.ID != "1" || r.Phase != flow.Completed || r.Status != "1" || !near(r.Age, time.Minute) || !near(r.RunTime, 30*time.Second) || *r.Attempts != "2" || *r.Worker != "h:1" || len(*r.Result) != maxResult {
		t.Errorf("%+v", r)
	}
	// 0 in an integer time column means "not set": no age may come of it.
	if r := one(t, l, "12", "b"); r.Phase != flow.Processing || r.Updated.State != StampZero || r.AgeKnown || r.Worker != nil {
		t.Errorf("%+v", r)
	}
	if r := one(t, l, "12", "c"); r.Phase != flow.Unmapped || r.Status != "" {
		t.Errorf("%+v", r)
	}
	// The type is a number: MySQL takes other spellings of it for equal.
	if r := one(t, l, "012", "a"); r.Exact || r.BizType != "12" {
		t.Errorf("%+v", r)
	}
	if problems := l.Check(soon(t)); len(problems) != 0 {
		t.Errorf("%+v", problems)
	}
}

func TestStatusWordsOfEveryType(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	for i, kind := range []string{"VARCHAR(20)", "CHAR(20)", "ENUM('new','done')", "VARBINARY(20)", "TEXT"} {
		table := fmt.Sprintf("status_%d", i)
		db.Exec(t, "CREATE TABLE "+table+" (biz_id VARCHAR(20) PRIMARY KEY, status "+kind+", t DATETIME)")
		db.Exec(t, "INSERT INTO "+table+" VALUES ('a', 'done', NOW()), ('b', NULL, NOW())")
		l := openLedger(t, s, table, "consume_log", MappingSpec{BizType: "t", Columns: map[string]string{"status": "status", "created": "t"}, Status: map[string][]string{"completed": {"done"}}})
		if r := one(t, l, "t", "a"); r.Status != "done" || r.Phase != flow.Completed {
			t.Errorf("%s: %+v", kind, r)
		}
		if r := one(t, l, "t", "b"); r.Status != "" || r.Phase != flow.Unmapped {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

// expectProblems compares problems with "code: a word of the text".
func expectProblems(t *testing.T, got []Problem, want ...string) {
	t.Helper()
	for _, w := range want {
		code, word, _ := strings.Cut(w, ": ")
		found := false
		for _, p := range got {
			found = found || (p.Code == code && strings.Contains(p.Text.EN, word))
		}
		if !found {
			t.Errorf("no problem %q", w)
		}
	}
	if len(got) != len(want) || t.Failed() {
		for _, p := range got {
			t.Logf("%s %s: %s", p.Severity, p.Code, p.Text.EN)
		}
		if len(got) != len(want) {
			t.Errorf("%d problems, want %d", len(got), len(want))
		}
	}
}
