package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

// withIndex makes a table of n rows, every hundredth of them in processing.
func withIndex(t *testing.T, status, index, engine string, n int) (*testkit.Database, *Shard) {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, strings.NewReplacer("status TINYINT NOT NULL DEFAULT 1", "status "+status, "(biz_type, biz_id))", "(biz_type, biz_id), "+index+") ENGINE="+engine).Replace(idempotentRecord))
	db.Exec(t, fmt.Sprintf(`INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time)
		SELECT 't', seq, IF(seq MOD 100 = 0, '1', '2'), '2025-01-15', '2025-01-15' FROM seq_1_to_%d`, n))
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	return db, l.Shards()[0]
}

func TestRowsOfOneStatus(t *testing.T) {
	const n = 20000
	for _, c := range []struct{ status, index, engine string }{
		{"TINYINT NOT NULL", "KEY s (status)", "InnoDB"},
		{"TINYINT NULL", "KEY s (status, id)", "InnoDB"},
		{"VARCHAR(16) NOT NULL", "KEY s (status)", "InnoDB"},
		{"ENUM('2','1') NOT NULL", "KEY s (status)", "InnoDB"},
		{"BINARY(1) NOT NULL", "KEY s (status)", "InnoDB"},
		{"DECIMAL(3) NOT NULL", "KEY s (status)", "InnoDB"},
		{"TINYINT NOT NULL", "KEY s (status, id)", "MyISAM"},
	} {
		name := c.status + " " + c.index + " " + c.engine
		db, shard := withIndex(t, c.status, c.index, c.engine, n)
		var found int
		var last uint64
		read := rowsRead(t, db, func() {
			for {
				b, err := shard.WithStatus(soon(t), "1", last, 50)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, r := range b.Rows {
					if id := parseID(r.ID); id <= last || id%100 != 0 || r.Status != "1" {
						t.Fatalf("%s: id %d after %d, status %s", name, id, last, r.Status)
					}
					last = parseID(r.ID)
				}
				if found += len(b.Rows); len(b.Rows) < 50 {
					return
				}
			}
		})
		if found != n/100 || read > 2*n/100+100 {
			t.Errorf("%s: %d rows found, %d looked at", name, found, read)
		}
	}
}

func TestNoIndexForAStatus(t *testing.T) {
	for _, c := range []struct{ status, index, engine string }{
		{"TINYINT NOT NULL", "KEY s (biz_id)", "InnoDB"},
		{"TINYINT NOT NULL", "KEY s (status, create_time)", "InnoDB"},
		{"TINYINT NOT NULL", "KEY s (biz_type, status)", "InnoDB"},
		{"VARCHAR(16) NOT NULL", "KEY s (status(1))", "InnoDB"},
		{"TINYINT NOT NULL", "KEY s (status) IGNORED", "InnoDB"},
		{"TINYINT NOT NULL", "KEY s (status)", "MyISAM"},
	} {
		_, shard := withIndex(t, c.status, c.index, c.engine, 10)
		if _, err := shard.WithStatus(soon(t), "1", 0, 5); !errors.Is(err, ErrNoIndex) || !strings.Contains(Explain(err).EN, "no index holds the status column") {
			t.Errorf("%s, %s, %s: %v", c.status, c.index, c.engine, err)
		}
	}
	db := testkit.MySQL(t)
	db.Exec(t, userSign)
	l := openLedger(t, openServer(t, db), "user_sign_record", "composite", MappingSpec{BizType: "sign", BizID: "{user_id}:{sign_date}"})
	if _, err := l.Shards()[0].WithStatus(soon(t), "1", 0, 5); !errors.Is(err, ErrNoIndex) {
		t.Errorf("without a status column: %v", err)
	}
}

func TestIDLimit(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	for i, c := range []struct {
		kind  string
		limit uint64
	}{
		{"TINYINT", 127}, {"TINYINT UNSIGNED", 255}, {"SMALLINT", 32767}, {"SMALLINT UNSIGNED", 65535}, {"MEDIUMINT", 8388607},
		{"MEDIUMINT UNSIGNED", 16777215}, {"INT", 2147483647}, {"INT(11) UNSIGNED ZEROFILL", 4294967295}, {"BIGINT", 9223372036854775807},
		{"BIGINT(20) UNSIGNED", 18446744073709551615},
	} {
		table := fmt.Sprint("limit_", i)
		db.Exec(t, "CREATE TABLE "+table+" (id "+c.kind+" AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(9) UNIQUE, handle_time DATETIME)")
		if got, err := openLedger(t, s, table, "consume_log", MappingSpec{BizType: "t"}).Shards()[0].IDLimit(soon(t)); err != nil || got != c.limit {
			t.Errorf("%s: %d %v", c.kind, got, err)
		}
	}
}

func TestIDThatFillsItsColumn(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	for i, c := range []struct {
		kind, id string
		fills    bool
	}{
		{"VARCHAR(4)", "abcd", true}, {"VARCHAR(4)", "abc", false}, {"VARCHAR(4)", "订单号码", true}, {"VARCHAR(4)", "订单", false},
		{"VARBINARY(4)", "订", false}, {"VARBINARY(3)", "订", true}, {"CHAR(4)", "abcd", true}, {"VARCHAR(4) CHARACTER SET latin1", "éééé", true},
		{"INT", "1234", false}, {"TEXT", "abcd", false},
	} {
		table := fmt.Sprint("fills_", i)
		db.Exec(t, "CREATE TABLE "+table+" (id INT AUTO_INCREMENT PRIMARY KEY, biz_id "+c.kind+", handle_time DATETIME)")
		db.Exec(t, "INSERT INTO "+table+" (biz_id) VALUES (?)", c.id)
		b, err := openLedger(t, s, table, "consume_log", MappingSpec{BizType: "t"}).Shards()[0].After(soon(t), 0, 1)
		if err != nil || len(b.Rows) != 1 || b.Rows[0].IDFills != c.fills {
			t.Errorf("%s %q: %+v %v", c.kind, c.id, b.Rows, err)
		}
	}
}

func TestVitals(t *testing.T) {
	db := testkit.MySQLFull(t)
	db.Exec(t, idempotentRecord)
	reader := *db
	reader.User, reader.Password = "vitals_reader", "secret"
	db.Exec(t, "CREATE USER vitals_reader IDENTIFIED BY 'secret'")
	t.Cleanup(func() { db.Exec(t, "DROP USER vitals_reader") })
	db.Exec(t, "GRANT SELECT ON "+db.Name+".idempotent_record TO vitals_reader")
	for _, replica := range []bool{false, true} {
		l := openLedger(t, openServer(t, &reader, func(o *ServerOptions) { o.Replica = replica }), "idempotent_record", "idempotent_record", MappingSpec{})
		// A user who may not ask for the lag learns all the rest.
		if v, err := l.Vitals(soon(t)); err != nil || v != (Vitals{Replica: replica, Step: 1}) {
			t.Errorf("%+v %v", v, err)
		}
	}
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	db.Exec(t, "SET GLOBAL read_only = 1, GLOBAL auto_increment_increment = 3")
	t.Cleanup(func() { db.Exec(t, "SET GLOBAL read_only = 0, GLOBAL auto_increment_increment = 1") })
	if v, err := l.Vitals(soon(t)); err != nil || v != (Vitals{Replica: true, Step: 3}) {
		t.Errorf("%+v %v", v, err)
	}
}

func TestWorstLag(t *testing.T) {
	for _, c := range []struct {
		channels []string
		lag      time.Duration
		known    bool
	}{
		{nil, 0, false}, {[]string{"0"}, 0, true}, {[]string{"3", "70"}, 70 * time.Second, true}, {[]string{"3", ""}, 0, false},
	} {
		if lag, known := worst(c.channels); lag != c.lag || known != c.known {
			t.Errorf("%q: %s %v", c.channels, lag, known)
		}
	}
}
