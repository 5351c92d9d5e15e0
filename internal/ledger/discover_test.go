package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

func TestTablesAndViewsOfADatabaseAreListed(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	if names, complete, err := s.TableNames(soon(t), 10); err != nil || !complete || len(names) > 0 {
		t.Fatalf("an empty database: %v, %v, %v", names, complete, err)
	}
	db.Exec(t, consumeLog)
	db.Exec(t, "CREATE TABLE `odd ``name\"'` (a INT)")
	db.Exec(t, "CREATE VIEW seen AS SELECT * FROM consume_log")
	names, complete, err := s.TableNames(soon(t), 10)
	if want := "[{consume_log false} {odd `name\"' false} {seen true}]"; err != nil || !complete || fmt.Sprint(names) != want {
		t.Errorf("%v, %v, %v", names, complete, err)
	}
	if names, complete, err := s.TableNames(soon(t), 2); err != nil || complete || len(names) != 2 {
		t.Errorf("with a limit: %v, %v, %v", names, complete, err)
	}
}

func TestTheFactsOfATableAreRead(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	db.Exec(t, "CREATE TABLE `odd ``name` (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64) NOT NULL, "+
		"status ENUM('it''s','a,b','完成') NOT NULL COMMENT '1:处理中', day DATE, made DATETIME(3), UNIQUE KEY uk (biz_id, status), KEY part (biz_id(10)))")
	f, err := s.Facts(soon(t), "odd `name")
	if err != nil || len(f.Columns) != 5 || len(f.Keys) != 3 {
		t.Fatalf("%+v, %v", f, err)
	}
	id, _ := f.Column("ID")
	status, _ := f.Column("status")
	made, _ := f.Column("made")
	if !id.AutoIncrement || !id.Integer() || id.Text() {
		t.Errorf("%+v", id)
	}
	if !slices.Equal(status.Words, []string{"it's", "a,b", "完成"}) || status.Comment != "1:处理中" || !status.Text() {
		t.Errorf("%+v", status)
	}
	if !made.Moment() || made.Integer() {
		t.Errorf("%+v", made)
	}
	for _, k := range f.Keys {
		if k.Name == "uk" && (!k.Unique || k.Prefix || !slices.Equal(k.Columns, []string{"biz_id", "status"})) || k.Name == "part" && (k.Unique || !k.Prefix) {
			t.Errorf("%+v", k)
		}
	}
	if f, err := s.Facts(soon(t), "missing"); err != nil || len(f.Columns) > 0 {
		t.Errorf("a missing table: %+v, %v", f, err)
	}
	if _, ok := f.Column("missing"); ok {
		t.Error("a missing column is found")
	}
}

func TestTheNewestRowsComeFirstAndNoMoreThanAskedFor(t *testing.T) {
	db, l := records(t)
	shard := l.Shards()[0]
	if b, err := shard.Newest(soon(t), 10); err != nil || len(b.Rows) > 0 || b.DBNow.IsZero() {
		t.Fatalf("an empty table: %+v, %v", b, err)
	}
	// Ids with wide gaps, as a distributed generator gives them.
	for n := range 5 {
		db.Exec(t, "INSERT INTO idempotent_record (id, biz_type, biz_id, status, create_time, update_time) VALUES (?, 'pay', ?, 1, NOW(), NOW())",
			uint64(n)<<40+1, fmt.Sprintf("O-%d", n))
	}
	b, err := shard.Newest(soon(t), 3)
	var ids []string
	for _, r := range b.Rows {
		ids = append(ids, r.BizID)
	}
	if err != nil || strings.Join(ids, " ") != "O-4 O-3 O-2" {
		t.Errorf("%v, %v", ids, err)
	}
	db.Exec(t, consumeLog)
	if _, err := openLedger(t, openServer(t, db), "consume_log", "consume_log", MappingSpec{BizType: "x"}).Shards()[0].Newest(soon(t), 3); err == nil {
		t.Error("rows of a table without an integer key were read")
	}
}

func TestTheZoneOfTheServerIsTold(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	var before string
	if err := db.DB.Get(&before, "SELECT @@global.time_zone"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Exec(t, "SET GLOBAL time_zone = ?", before) })
	for zone, want := range map[string]int{"+00:00": 0, "+08:00": 480, "-03:30": -210} {
		db.Exec(t, "SET GLOBAL time_zone = ?", zone)
		if minutes, known, err := s.ZoneMinutes(soon(t)); err != nil || !known || minutes != want {
			t.Errorf("%s: %d, %v, %v", zone, minutes, known, err)
		}
	}
	db.Exec(t, "SET GLOBAL time_zone = 'SYSTEM'")
	if _, known, err := s.ZoneMinutes(soon(t)); err != nil || !known {
		t.Errorf("SYSTEM: %v, %v", known, err)
	}
}

func TestThePresetsAreHandedOutAsCopies(t *testing.T) {
	columns, words, ok := Shape("idempotent_record")
	if !ok || columns[roleBizID] != "biz_id" || len(words) != 3 {
		t.Fatalf("%v, %v, %v", columns, words, ok)
	}
	columns[roleBizID] = "changed"
	if again, _, _ := Shape("idempotent_record"); again[roleBizID] != "biz_id" {
		t.Error("a caller changed the preset")
	}
	for _, unknown := range []string{"", "nothing"} {
		if _, _, ok := Shape(unknown); ok {
			t.Errorf("%q is a preset", unknown)
		}
	}
}

func TestNamesThatAConfigurationCannotWriteAreTold(t *testing.T) {
	for name, want := range map[string]bool{"orders": false, "订单 表": false, "a.b": true, "a{0..3}": true, "a/b": true, `a\b`: true, "a{": true} {
		if got := !Unmappable(name).Empty(); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
