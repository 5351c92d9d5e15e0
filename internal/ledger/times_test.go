package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestTimesInEveryColumnType(t *testing.T) {
	db := testkit.MySQL(t)
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	loose, err := db.DB.Connx(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer loose.Close()
	cases := []struct {
		kind, mode, stored string
		zone               *time.Location
		state              StampState
		text, instant      string
	}{
		{"DATETIME", "", "'2025-01-15 10:00:00'", time.FixedZone("", 8*3600), StampOK, "2025-01-15 10:00:00", "2025-01-15T02:00:00Z"},
		{"DATETIME(3)", "", "'2025-01-15 10:00:00.123'", nil, StampOK, "2025-01-15 10:00:00.123", "2025-01-15T10:00:00.123Z"},
		{"DATETIME(6)", "", "'2025-01-15 10:00:00.123456'", nil, StampOK, "2025-01-15 10:00:00.123456", "2025-01-15T10:00:00.123456Z"},
		{"TIMESTAMP NULL", "", "'2025-01-15 10:00:00'", time.FixedZone("", 8*3600), StampOK, "2025-01-15 10:00:00+00:00", "2025-01-15T10:00:00Z"},
		{"TIMESTAMP(6) NULL", "", "'2025-01-15 10:00:00.5'", nil, StampOK, "2025-01-15 10:00:00.500000+00:00", "2025-01-15T10:00:00.5Z"},
		{"DATE", "", "'2025-01-15'", newYork, StampOK, "2025-01-15", "2025-01-15T05:00:00Z"},
		{"INT UNSIGNED", "", "1736935200", newYork, StampOK, "1736935200", "2025-01-15T10:00:00Z"},
		{"BIGINT", "", "1736935200123", nil, StampOK, "1736935200123", "2025-01-15T10:00:00.123Z"},
		{"BIGINT", "", "0", nil, StampZero, "0", ""},
		{"DATETIME", "", "NULL", nil, StampNull, "", ""},
		{"DATETIME", "", "'0000-00-00'", nil, StampZero, "0000-00-00 00:00:00", ""},
		{"DATETIME(3)", "", "'2025-02-00 10:00:00'", nil, StampZero, "2025-02-00 10:00:00.000", ""},
		{"DATETIME", "ALLOW_INVALID_DATES", "'2025-02-31 10:00:00'", nil, StampZero, "2025-02-31 10:00:00", ""},
		{"TIMESTAMP NULL", "", "'0000-00-00'", nil, StampZero, "0000-00-00 00:00:00+00:00", ""},
		{"DATETIME", "", "'2025-11-02 01:30:00'", newYork, StampAmbiguous, "2025-11-02 01:30:00", "2025-11-02T06:30:00Z"},
		{"DATETIME", "", "'2025-03-09 02:30:00'", newYork, StampZero, "2025-03-09 02:30:00", ""},
		{"TIMESTAMP NULL", "", "'2025-03-09 02:30:00'", newYork, StampOK, "2025-03-09 02:30:00+00:00", "2025-03-09T02:30:00Z"},
	}
	for i, c := range cases {
		table := fmt.Sprintf("times_%d", i)
		db.Exec(t, "CREATE TABLE "+table+" (biz_id VARCHAR(9) PRIMARY KEY, handle_time "+c.kind+")")
		for _, q := range []string{"SET SESSION sql_mode = '" + c.mode + "'", "INSERT INTO " + table + " VALUES ('a', " + c.stored + ")"} {
			if _, err := loose.ExecContext(soon(t), q); err != nil {
				t.Fatal(err)
			}
		}
		s := openServer(t, db, func(o *ServerOptions) { o.Zone = c.zone })
		f := openLedger(t, s, table, "consume_log", MappingSpec{BizType: "t"}).Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
		if len(f.Rows) != 1 {
			t.Errorf("%s %s: %s %s", c.kind, c.stored, f.State, f.Reason.EN)
			continue
		}
		got := f.Rows[0].Created
		instant := ""
		if !got.Time.IsZero() {
			instant = got.Time.UTC().Format(time.RFC3339Nano)
		}
		if got.State != c.state || got.Text != c.text || instant != c.instant || f.Rows[0].AgeKnown != (c.state == StampOK) {
			t.Errorf("%s %s: %+v, age known %v", c.kind, c.stored, got, f.Rows[0].AgeKnown)
		}
		if strings.Contains(f.Command, "SET time_zone = '+00:00';\n") != strings.HasPrefix(c.kind, "TIMESTAMP") {
			t.Errorf("%s: %s", c.kind, f.Command)
		}
	}
}

func TestOneBadRowHidesNoOther(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, strings.Replace(idempotentRecord, "UNIQUE KEY", "KEY", 1))
	insertRecord(t, db, "t", "a", 2)
	db.Exec(t, "INSERT IGNORE INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('t', 'a', 2, '0000-00-00', '0000-00-00')")
	insertRecord(t, db, "t", "a", 3)
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
	if len(f.Rows) != 3 || f.Rows[0].Created.State != StampOK || f.Rows[1].Created.State != StampZero || f.Rows[1].AgeKnown || !f.Rows[2].AgeKnown {
		t.Errorf("%+v", f.Rows)
	}
}
