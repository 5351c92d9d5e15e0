package ledger

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// hostileIDs are ids that something on the way to a row might change.
var hostileIDs = []string{
	"ORD-1", "0", "00123", "-1", "1e3", "NULL", "null", " ", " lead", "trail ", "\t", "a\nb", "a\r\nb", "nul\x00byte", `back\slash`, `\`, `\'`,
	"'", "''", `"`, "`", "o'; DROP TABLE idempotent_record; --", "/* x */", "-- x", "?", "??", "%", "_", "a%b_c", "{biz_id}", "$1", ":name", "@@version",
	"订单-1", "é", "e\u0301", "ß", "😀", "\u202eabc", "\ufeffbom", "\u00a0nbsp", "a\u200bb", "İ", "K", "\U0010ffff", "\x7f", "\x1b[31m",
	strings.Repeat("x", 128), strings.Repeat("中", 128),
}

func TestHostileIDsAreFoundExactly(t *testing.T) {
	for _, column := range []string{"VARCHAR(128) COLLATE utf8mb4_nopad_bin", "VARCHAR(128) COLLATE utf8mb4_bin", "VARBINARY(512)"} {
		t.Run(column, func(t *testing.T) {
			db := testkit.MySQL(t)
			db.Exec(t, strings.Replace(idempotentRecord, "biz_id VARCHAR(128)", "biz_id "+column, 1))
			l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
			for _, id := range hostileIDs {
				insertRecord(t, db, "order", id, 2)
			}
			for _, id := range hostileIDs {
				if r := one(t, l, "order", id); !r.Exact || r.BizID != id || r.Phase != flow.Completed {
					t.Errorf("%q: %+v", id, r)
				}
				if f := l.Find(soon(t), flow.Key{BizType: "order", BizID: id + "!"}); len(id) < 128 && f.State != flow.Absent {
					t.Errorf("%q: %s %+v", id+"!", f.State, f.Rows)
				}
			}
			for _, long := range []string{strings.Repeat("y", 10240), strings.Repeat("'", 10240)} {
				f := l.Find(soon(t), flow.Key{BizType: "order", BizID: long})
				if f.State != flow.Absent || !f.TooLong || len(f.Rows) != 0 {
					t.Errorf("10 kB: %s too long %v, %d rows (%s)", f.State, f.TooLong, len(f.Rows), f.Reason.EN)
				}
			}
		})
	}
}

func TestHostileTypes(t *testing.T) {
	db, l := records(t)
	for _, bizType := range []string{"o'x", "a\x00b", `\`, "订单", "😀", " x"} {
		insertRecord(t, db, bizType, "1", 1)
		if r := one(t, l, bizType, "1"); !r.Exact || r.BizType != bizType {
			t.Errorf("%q: %+v", bizType, r)
		}
	}
}

func TestThePastedCommandFindsTheSameRow(t *testing.T) {
	for _, column := range []string{"VARCHAR(128)", "VARBINARY(512)"} {
		db := testkit.MySQL(t)
		db.Exec(t, strings.Replace(idempotentRecord, "biz_id VARCHAR(128)", "biz_id "+column, 1))
		s := openServer(t, db, func(o *ServerOptions) { o.Password = "hunter2" })
		l := openLedger(t, s, "idempotent_record", "idempotent_record", MappingSpec{})
		ids := hostileIDs
		if column == "VARBINARY(512)" {
			ids = append(ids, "\xff\xfe", "\xf0\x28\x8c")
		}
		for _, mode := range []string{"", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES"} {
			for _, id := range ids {
				if mode == "" {
					db.Exec(t, "INSERT IGNORE INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('o''t', ?, 2, NOW(), NOW())", []byte(id))
				}
				f := l.Find(soon(t), flow.Key{BizType: "o't", BizID: id})
				if len(f.Rows) == 0 || strings.Contains(f.Command, "hunter2") || !strings.HasPrefix(f.Command, "-- main ("+db.Addr+"), database "+db.Name+"\nSELECT ") {
					t.Fatalf("%q: %s %+v", id, f.Command, f)
				}
				conn, err := db.DB.Connx(soon(t))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := conn.ExecContext(soon(t), "SET SESSION sql_mode = ?", mode); err != nil {
					t.Fatal(err)
				}
				rows, err := conn.QueryxContext(soon(t), strings.TrimSuffix(f.Command, ";"))
				if err != nil {
					t.Fatalf("%q: %s: %v", id, f.Command, err)
				}
				var ids []string
				for rows.Next() {
					values, err := rows.SliceScan()
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, fmt.Sprint(values[3]))
				}
				rows.Close()
				conn.Close()
				var want []string
				for _, r := range f.Rows {
					want = append(want, r.ID)
				}
				if strings.Join(ids, ",") != strings.Join(want, ",") {
					t.Errorf("%q: pasted %v, found %v: %s", id, ids, want, f.Command)
				}
			}
		}
	}
}

func TestNearMissesAreShownNotTakenForTheKey(t *testing.T) {
	cases := []struct{ collation, stored, asked string }{
		{"utf8mb4_general_ci", "ORD-9A", "ORD-9a"},
		{"utf8mb4_general_ci", "x", "x "},
		{"utf8mb4_general_ci", "x ", "x"},
		{"utf8mb4_bin", "x", "x  "},
		{"utf8mb4_general_ci", "pay😀", "pay😁"},
		{"utf8mb4_general_ci", "e", "é"},
		{"utf8mb4_unicode_ci", "caf\u00e9", "cafe\u0301"},
		{"utf8mb4_unicode_ci", "ss", "ß"},
		{"latin1_swedish_ci", "STRASSE", "strasse"},
		{"utf8mb3_general_ci", "Ä", "ä"},
	}
	for i, c := range cases {
		db := testkit.MySQL(t)
		charset, _, _ := strings.Cut(c.collation, "_")
		db.Exec(t, strings.Replace(idempotentRecord, "biz_id VARCHAR(128)", "biz_id VARCHAR(128) CHARACTER SET "+charset+" COLLATE "+c.collation, 1))
		l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
		insertRecord(t, db, "order", c.stored, 2)
		if r := one(t, l, "order", c.asked); r.Exact || r.BizID != c.stored {
			t.Errorf("%d %s: asked %q: %+v", i, c.collation, c.asked, r)
		}
		if r := one(t, l, "order", c.stored); !r.Exact || r.BizID != c.stored {
			t.Errorf("%d %s: stored %q: %+v", i, c.collation, c.stored, r)
		}
		if r := one(t, l, "ORDER", c.stored); r.Exact || r.BizType != "order" {
			t.Errorf("%d: another spelling of the type: %+v", i, r)
		}
	}
}

func TestExactRowsComeFirst(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, strings.Replace(idempotentRecord, "UNIQUE KEY", "KEY", 1))
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	for _, id := range []string{"A", "a ", "a", "a"} {
		insertRecord(t, db, "t", id, 2)
	}
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
	if len(f.Rows) != 4 || !f.Rows[0].Exact || !f.Rows[1].Exact || f.Rows[2].Exact || f.Rows[0].ID != "3" || f.Rows[2].ID != "1" {
		t.Errorf("%+v", f.Rows)
	}
	for range 30 {
		insertRecord(t, db, "t", "a", 2)
	}
	f = l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
	if len(f.Rows) != maxRows || f.State != flow.Found || !strings.Contains(f.Coverage[0].EN, "at least 20 rows") {
		t.Errorf("%d rows, %v", len(f.Rows), f.Coverage)
	}
}

func TestTwoRowsAcrossANullableUniqueKey(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, strings.NewReplacer("update_time DATETIME NOT NULL", "update_time DATETIME NOT NULL, tenant INT NULL", "(biz_type, biz_id)", "(biz_type, biz_id, tenant)").Replace(idempotentRecord))
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	insertRecord(t, db, "t", "a", 2)
	insertRecord(t, db, "t", "a", 2)
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"}); len(f.Rows) != 2 || !f.Rows[0].Exact || !f.Rows[1].Exact {
		t.Errorf("%+v", f.Rows)
	}
}

func TestIDsLongerThanTheColumn(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE texts (biz_id VARCHAR(8) PRIMARY KEY, handle_time DATETIME)")
	db.Exec(t, "CREATE TABLE bytes (biz_id VARBINARY(8) PRIMARY KEY, handle_time DATETIME)")
	s := openServer(t, db)
	cases := []struct {
		table, stored, asked string
		tooLong              bool
	}{
		{"texts", "12345678", "123456789", true},
		{"texts", "中文中文中文中文", "中文中文中文中文!", true},
		{"texts", "中文中文中文中x", "中文中文中文中x", false},
		{"texts", "abc", "abc       ", true}, // equal by padding, and longer than the column
		{"bytes", "\xffbinary!", "\xffbinary!!", true},
		{"bytes", "中文12", "中文12", false},
		{"bytes", "中文12", "中文123", true},
	}
	for _, c := range cases {
		db.Exec(t, "INSERT INTO "+c.table+" VALUES (?, NOW()) ON DUPLICATE KEY UPDATE handle_time = NOW()", []byte(c.stored))
		f := openLedger(t, s, c.table, "consume_log", MappingSpec{BizType: "t"}).Find(soon(t), flow.Key{BizType: "t", BizID: c.asked})
		if f.TooLong != c.tooLong || f.Width != 8 || f.State != flow.Found || len(f.Rows) != 1 || f.Rows[0].Exact == c.tooLong || f.Rows[0].BizID != c.stored {
			t.Errorf("%s %q: %+v", c.table, c.asked, f)
		}
	}
	f := openLedger(t, s, "texts", "consume_log", MappingSpec{BizType: "t"}).Find(soon(t), flow.Key{BizType: "t", BizID: "no such row at all"})
	if f.State != flow.Absent || !f.TooLong || len(f.Coverage) == 0 {
		t.Errorf("%+v", f)
	}
}

func TestCharacterSets(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	for _, charset := range []string{"utf8mb4", "utf8mb3", "latin1", "gbk", "ascii", "binary", "utf16"} {
		kind := "VARCHAR(32) CHARACTER SET " + charset
		db.Exec(t, fmt.Sprintf("CREATE TABLE t_%s (biz_id %s PRIMARY KEY, handle_time DATETIME)", charset, kind))
		l := openLedger(t, s, "t_"+charset, "consume_log", MappingSpec{BizType: "t"})
		for _, id := range []string{"plain", "é", "中", "😀"} {
			_, err := db.DB.Exec("INSERT INTO t_"+charset+" VALUES (?, NOW())", id)
			f := l.Find(soon(t), flow.Key{BizType: "t", BizID: id})
			switch {
			case err == nil && (f.State != flow.Found || !f.Rows[0].Exact || f.Rows[0].BizID != id):
				t.Errorf("%s %q: stored, but %s %s %+v", charset, id, f.State, f.Reason.EN, f.Rows)
			case err != nil && (f.State != flow.Unknown || !strings.Contains(f.Reason.EN, "character set cannot hold this id")):
				t.Errorf("%s %q: cannot be stored, but %s %s", charset, id, f.State, f.Reason.EN)
			}
		}
		f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "bad\xff"})
		want := flow.Unknown
		if charset == "binary" {
			want = flow.Absent
		}
		if f.State != want || (want == flow.Unknown && !strings.Contains(f.Reason.EN, "not UTF-8")) {
			t.Errorf("%s: not UTF-8: %s %s", charset, f.State, f.Reason.EN)
		}
	}
	db.Exec(t, "INSERT INTO t_binary VALUES (?, NOW())", []byte("bad\xff"))
	if r := one(t, openLedger(t, s, "t_binary", "consume_log", MappingSpec{BizType: "t"}), "t", "bad\xff"); !r.Exact {
		t.Errorf("%+v", r)
	}
}

// A list of the id and what it would be cut to is refused with another number.
func TestALongIDThatTheCharacterSetLacks(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE short (biz_id VARCHAR(4) CHARACTER SET latin1 PRIMARY KEY, handle_time DATETIME)")
	l := openLedger(t, openServer(t, db), "short", "consume_log", MappingSpec{BizType: "t"})
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "中文订单号"}); f.State != flow.Unknown || !strings.Contains(f.Reason.EN, "character set cannot hold this id") {
		t.Errorf("%s %s", f.State, f.Reason.EN)
	}
}

func TestConstantTypeHoldsNoOther(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, consumeLog)
	db.Exec(t, "INSERT INTO consume_log VALUES ('a', NOW())")
	l := openLedger(t, openServer(t, db), "consume_log", "consume_log", MappingSpec{BizType: "log"})
	one(t, l, "log", "a")
	f := l.Find(soon(t), flow.Key{BizType: "other", BizID: "a"})
	if f.State != flow.Absent || len(f.Coverage) != 1 || !strings.Contains(f.Coverage[0].EN, "only biz_type log") || f.ReadAt.IsZero() {
		t.Errorf("%+v", f)
	}
}

func TestCompositeIDs(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, userSign)
	db.Exec(t, "INSERT INTO user_sign_record (user_id, sign_date, created_at) VALUES (7, '2025-01-15', NOW()), (9007199254740993, '2025-01-15', NOW())")
	s := openServer(t, db)
	l := openLedger(t, s, "user_sign_record", "composite", MappingSpec{BizType: "sign", BizID: "user:{user_id}:{sign_date}"})
	for id, exact := range map[string]bool{"user:7:2025-01-15": true, "user:9007199254740993:2025-01-15": true, "user:007:2025-01-15": false, "user:7:2025-1-15": false, "user:7:20250115": false, "user:7x:2025-01-15": false} {
		if r := one(t, l, "sign", id); r.Exact != exact || !strings.HasSuffix(r.BizID, ":2025-01-15") {
			t.Errorf("%s: %+v", id, r)
		}
	}
	for _, id := range []string{"user:8:2025-01-15", "user:9007199254740992:2025-01-15", "user:7:2025-02-31", "user:7:yesterday"} {
		if f := l.Find(soon(t), flow.Key{BizType: "sign", BizID: id}); f.State != flow.Absent || f.Width != 0 {
			t.Errorf("%s: %+v", id, f)
		}
	}
	for _, id := range []string{"7:2025-01-15", "user::2025-01-15", "user:7:", "USER:7:2025-01-15", "", strings.Repeat(":", 10240)} {
		f := l.Find(soon(t), flow.Key{BizType: "sign", BizID: id})
		if id != strings.Repeat(":", 10240) && (f.State != flow.Absent || len(f.Coverage) == 0 || !strings.Contains(f.Coverage[0].EN, "does not fit the template")) {
			t.Errorf("%s: %+v", id, f)
		}
	}
	db.Exec(t, "CREATE TABLE pairs (a VARCHAR(4) COLLATE utf8mb4_bin NOT NULL, b VARCHAR(64) COLLATE utf8mb4_bin NOT NULL, UNIQUE KEY (a, b))")
	db.Exec(t, "INSERT INTO pairs VALUES ('x', 'y:z'), ('x:y', 'z'), ('abcd', 'q')")
	pairs := openLedger(t, s, "pairs", "composite", MappingSpec{BizType: "pair", BizID: "{a}:{b}"})
	// Two rows render to the same id: both are it.
	if f := pairs.Find(soon(t), flow.Key{BizType: "pair", BizID: "x:y:z"}); len(f.Rows) != 2 || !f.Rows[0].Exact || !f.Rows[1].Exact || strings.Count(f.Command, "SELECT") != 2 {
		t.Errorf("%+v", f)
	}
	// A part longer than its column is cut and shown as a near miss.
	if f := pairs.Find(soon(t), flow.Key{BizType: "pair", BizID: "abcde:q"}); len(f.Rows) != 1 || f.Rows[0].Exact || f.TooLong {
		t.Errorf("%+v", f)
	}
	if f := pairs.Find(soon(t), flow.Key{BizType: "pair", BizID: strings.Repeat("a:", 40) + "q"}); f.State != flow.Unknown || !strings.Contains(f.Reason.EN, "more than 16 ways") {
		t.Errorf("%s %s", f.State, f.Reason.EN)
	}
	if f := pairs.Find(soon(t), flow.Key{BizType: "pair", BizID: "x:\xff"}); f.State != flow.Unknown {
		t.Errorf("%s", f.State)
	}
}

func TestNoIndexNoScan(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	good := []string{"KEY (biz_id)", "KEY (biz_id, create_time)", "KEY (biz_type, biz_id)", "KEY (biz_id, biz_type, status)", "UNIQUE KEY (biz_type(3), biz_id(5))"}
	bad := []string{"KEY (biz_type)", "KEY (create_time, biz_id)", "KEY (biz_type, create_time, biz_id)", "KEY (status)", "KEY (biz_id) IGNORED", "FULLTEXT KEY (biz_id)", "KEY (id, biz_id)"}
	for i, keys := range append(good, bad...) {
		table := fmt.Sprintf("keys_%d", i)
		ddl := strings.NewReplacer("idempotent_record", table, "UNIQUE KEY uk_biz (biz_type, biz_id)", keys).Replace(idempotentRecord)
		db.Exec(t, ddl)
		db.Exec(t, "INSERT INTO "+table+" (biz_type, biz_id, status, create_time, update_time) VALUES ('t', 'a', 2, NOW(), NOW())")
		f := openLedger(t, s, table, "idempotent_record", MappingSpec{}).Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
		if i < len(good) && (f.State != flow.Found || len(f.Rows) != 1) {
			t.Errorf("%s: %s %s", keys, f.State, f.Reason.EN)
		}
		if i >= len(good) && (f.State != flow.Error || !strings.Contains(f.Reason.EN, "no index begins with the key columns") || f.Reason.ZH == "") {
			t.Errorf("%s: %s %s", keys, f.State, f.Reason.EN)
		}
	}
	db.Exec(t, "CREATE VIEW a_view AS SELECT * FROM keys_0")
	if f := openLedger(t, s, "a_view", "idempotent_record", MappingSpec{}).Find(soon(t), flow.Key{BizType: "t", BizID: "a"}); f.State != flow.Error {
		t.Errorf("view: %s", f.State)
	}
	// A unique key on a long text is a hash, which refuses duplicates and finds nothing.
	db.Exec(t, "CREATE TABLE long_ids (biz_id TEXT NOT NULL, handle_time DATETIME, UNIQUE KEY (biz_id))")
	l := openLedger(t, s, "long_ids", "consume_log", MappingSpec{BizType: "t"})
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"}); f.State != flow.Error {
		t.Errorf("hash: %s", f.State)
	}
}

func TestHexOfTheCommandIsTheAskedID(t *testing.T) {
	db, l := records(t)
	insertRecord(t, db, "t", "a\nb", 1)
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a\nb"})
	if !strings.Contains(f.Command, "_utf8mb4 0x"+hex.EncodeToString([]byte("a\nb"))) || strings.Contains(f.Command, "?") {
		t.Error(f.Command)
	}
}
