package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func openResetter(t testing.TB, db *testkit.Database, change ...func(*ServerOptions)) *Resetter {
	t.Helper()
	o := ServerOptions{Name: "main", Address: db.Addr, Database: db.Name, User: db.User, Password: db.Password}
	for _, c := range change {
		c(&o)
	}
	r, err := NewResetter(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func plan(t testing.TB, l *Ledger, bizType, bizID string) ResetPlan {
	t.Helper()
	p, err := l.PlanReset(soon(t), flow.Key{BizType: bizType, BizID: bizID}, one(t, l, bizType, bizID))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// timedTable makes a table whose time columns have the type, and its ledger.
func timedTable(t *testing.T, kind, status string, zone *time.Location, spec MappingSpec) (*testkit.Database, *Ledger) {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,
		status `+status+` NOT NULL, create_time `+kind+` NOT NULL, update_time `+kind+` NOT NULL, UNIQUE KEY uk_biz (biz_type, biz_id))`)
	return db, openLedger(t, openServer(t, db, func(o *ServerOptions) { o.Zone = zone }), "idempotent_record", "idempotent_record", spec)
}

// Each type of a time column gets the database's time, so that the record is
// young afterwards, in the application's zone.
func TestResetSetsStatusAndTimeOfOneRow(t *testing.T) {
	shanghai := time.FixedZone("+08:00", 8*3600)
	words := MappingSpec{Status: map[string][]string{"processing": {"Doing"}, "completed": {"done"}, "failed": {"failed"}}}
	for name, c := range map[string]struct {
		kind, status, was, old string
		spec                   MappingSpec
		exact                  bool // the column keeps parts of a second
	}{
		"datetime":       {"DATETIME", "TINYINT", "1", "UTC_TIMESTAMP() + INTERVAL 8 HOUR - INTERVAL 1 HOUR", MappingSpec{}, false},
		"microseconds":   {"DATETIME(6)", "TINYINT", "1", "UTC_TIMESTAMP(6) + INTERVAL 8 HOUR - INTERVAL 3600123456 MICROSECOND", MappingSpec{}, true},
		"timestamp":      {"TIMESTAMP(3)", "VARCHAR(16) CHARACTER SET latin1", "'Doing'", "UTC_TIMESTAMP(3) - INTERVAL 1 HOUR", words, true},
		"seconds":        {"BIGINT", "ENUM('Doing','done','failed')", "'Doing'", "UNIX_TIMESTAMP() - 3600", words, false},
		"milliseconds":   {"BIGINT", "CHAR(8)", "'Doing'", "FLOOR(UNIX_TIMESTAMP(NOW(6)) * 1000) - 3600123", words, true},
		"bits and bytes": {"DATETIME", "BIT(3)", "b'001'", "UTC_TIMESTAMP() + INTERVAL 7 HOUR", MappingSpec{}, false},
		"binary words":   {"DATETIME", "VARBINARY(16)", "'Doing'", "UTC_TIMESTAMP() + INTERVAL 7 HOUR", words, false},
	} {
		t.Run(name, func(t *testing.T) {
			db, l := timedTable(t, c.kind, c.status, shanghai, c.spec)
			for _, id := range []string{"7", "8"} {
				db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', ?, "+c.was+", "+c.old+", "+c.old+")", id)
			}
			before := one(t, l, "pay", "7")
			if before.Phase != flow.Processing || before.Age < 59*time.Minute {
				t.Fatalf("%+v", before)
			}
			p := plan(t, l, "pay", "7")
			r := openResetter(t, db)
			if changed, err := r.Reset(soon(t), p); err != nil || !changed {
				t.Fatalf("%v %v\n%s", changed, err, p.SQL)
			}
			after := one(t, l, "pay", "7")
			if after.Phase != flow.Failed || after.Age < -time.Second || after.Age > 30*time.Second || after.Created != before.Created || after.ID != before.ID {
				t.Errorf("%+v\n%s", after, p.SQL)
			}
			if other := one(t, l, "pay", "8"); other.Phase != flow.Processing {
				t.Errorf("another row was changed: %+v", other)
			}
			// The same once more: the row is not what was read.
			if changed, err := r.Reset(soon(t), p); err != nil || changed {
				t.Errorf("%v %v", changed, err)
			}
		})
	}
}

func TestResetLeavesARowAloneThatIsNotAsItWasRead(t *testing.T) {
	for name, change := range map[string]string{
		"status":        "UPDATE idempotent_record SET status = 2",
		"update time":   "UPDATE idempotent_record SET update_time = update_time + INTERVAL 1 MICROSECOND",
		"create time":   "UPDATE idempotent_record SET create_time = create_time - INTERVAL 1 MICROSECOND",
		"gone":          "DELETE FROM idempotent_record",
		"created anew":  "REPLACE INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', '7', 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
		"another key":   "UPDATE idempotent_record SET biz_id = '77'",
		"the same id":   "UPDATE idempotent_record SET id = id + 1",
		"nothing at it": "",
	} {
		db, l := timedTable(t, "DATETIME(6)", "TINYINT", time.UTC, MappingSpec{})
		db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', '7', 1, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)")
		p := plan(t, l, "pay", "7")
		if change != "" {
			db.Exec(t, change)
		}
		if changed, err := openResetter(t, db).Reset(soon(t), p); err != nil || changed != (change == "") {
			t.Errorf("%s: %v %v", name, changed, err)
		}
	}
}

func TestResetOfHostileKeysAndNullTimes(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, messageDeduplication)
	l := openLedger(t, openServer(t, db), "message_deduplication", "message_deduplication", MappingSpec{})
	ids := []string{"", "' OR '1'='1", `\`, "a\x00b", "\n", "长 ", "%_"}
	for _, id := range ids {
		db.Exec(t, "INSERT INTO message_deduplication (message_type, message_id, status, created_at) VALUES ('pay', ?, 'processing', NOW() - INTERVAL 1 HOUR)", id)
	}
	r := openResetter(t, db)
	for i, id := range ids {
		p := plan(t, l, "pay", id)
		if p.Updated != "" {
			t.Errorf("%q has no column for the time of a change", p.Updated)
		}
		if changed, err := r.Reset(soon(t), p); err != nil || !changed {
			t.Errorf("%q: %v %v", id, changed, err)
		}
		var failed int
		if err := db.DB.Get(&failed, "SELECT COUNT(*) FROM message_deduplication WHERE status = 'failed'"); err != nil || failed != i+1 {
			t.Errorf("%q: %d rows failed, want %d (%v)", id, failed, i+1, err)
		}
	}
}

func TestWhatCanNeverBeSetBackSaysWhy(t *testing.T) {
	db := testkit.MySQL(t)
	for _, table := range []string{orders, outbox, consumeLog, idempotentRecord} {
		db.Exec(t, table)
	}
	db.Exec(t, "CREATE TABLE no_id (biz_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL, create_time DATETIME, update_time DATETIME)")
	s := openServer(t, db)
	for _, c := range []struct {
		table, preset, code string
		spec                MappingSpec
	}{
		{"orders", "state_machine", "state_machine", MappingSpec{BizType: "pay"}},
		{"outbox", "outbox", "outbox", MappingSpec{BizType: "pay"}},
		{"consume_log", "consume_log", "no_status", MappingSpec{BizType: "pay"}},
		{"idempotent_record", "idempotent_record", "no_failed_status", MappingSpec{Status: map[string][]string{"processing": {"1"}, "completed": {"2"}}}},
		{"no_id", "idempotent_record", "no_row_id", MappingSpec{}},
		{"idempotent_record", "idempotent_record", "elsewhere", MappingSpec{}},
	} {
		row := Row{ID: "1", Table: "other.table", Status: "1"}
		if c.code == "no_row_id" {
			row.ID = ""
		}
		_, err := openLedger(t, s, c.table, c.preset, c.spec).PlanReset(soon(t), flow.Key{BizType: "pay", BizID: "1"}, row)
		var no *NoReset
		if !errors.As(err, &no) || no.Code != c.code || no.Text.ZH == "" {
			t.Errorf("%s: %v", c.code, err)
		}
	}
}

// A user that may read, and update status and time alone, is enough; a reader is refused.
func TestResetNeedsTheRightsThatAreDocumented(t *testing.T) {
	db := testkit.MySQLFull(t)
	db.Exec(t, idempotentRecord)
	insertRecord(t, db, "pay", "7", 1)
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	p := plan(t, l, "pay", "7")
	for _, user := range []string{"actor_" + db.Name, "reader_" + db.Name} {
		db.Exec(t, "CREATE USER `"+user+"`@`%` IDENTIFIED BY 'pw'")
		t.Cleanup(func() { db.Exec(t, "DROP USER `"+user+"`@`%`") })
		db.Exec(t, "GRANT SELECT ON "+db.Name+".idempotent_record TO `"+user+"`@`%`")
	}
	db.Exec(t, "GRANT UPDATE (status, update_time) ON "+db.Name+".idempotent_record TO `actor_"+db.Name+"`@`%`")
	as := func(user string) func(*ServerOptions) {
		return func(o *ServerOptions) { o.User, o.Password = user+db.Name, "pw" }
	}
	if changed, err := openResetter(t, db, as("reader_")).Reset(soon(t), p); err == nil || changed || !Unchanged(err) || !strings.Contains(Explain(err).EN, "114") {
		t.Errorf("%v %v", changed, err)
	}
	if changed, err := openResetter(t, db, as("actor_")).Reset(soon(t), p); err != nil || !changed {
		t.Errorf("%v %v", changed, err)
	}
}

func TestOnlyWhatNeverReachedTheServerIsCertainlyUnchanged(t *testing.T) {
	db, l := records(t)
	insertRecord(t, db, "pay", "7", 1)
	p := plan(t, l, "pay", "7")
	proxy := testkit.NewProxy(t, db.Addr)
	r := openResetter(t, db, func(o *ServerOptions) { o.Address = proxy.Addr })
	proxy.Hang(true)
	if _, err := r.Reset(within(t, 200*time.Millisecond), p); err == nil || Unchanged(err) {
		t.Errorf("a server that hangs: %v", err)
	}
	proxy.Hang(false)
	proxy.Drop(true)
	if _, err := r.Reset(soon(t), p); err == nil || !Unchanged(err) {
		t.Errorf("a server that is not there: %v", err)
	}
}
