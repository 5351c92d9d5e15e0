package ledger

import (
	"strings"
	"testing"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// Partitions by month force the time into the unique key, which then holds
// within one month only.
func TestTwoRowsAcrossPartitionsAreBothFound(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, strings.NewReplacer("PRIMARY KEY,", ",", "UNIQUE KEY uk_biz (biz_type, biz_id)", "PRIMARY KEY (id, create_time), UNIQUE KEY uk_biz (biz_type, biz_id, create_time)").Replace(idempotentRecord)+
		` PARTITION BY RANGE (TO_DAYS(create_time)) (PARTITION p1 VALUES LESS THAN (TO_DAYS('2025-02-01')), PARTITION p2 VALUES LESS THAN (TO_DAYS('2025-03-01')), PARTITION p3 VALUES LESS THAN MAXVALUE)`)
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('t', 'a', 2, '2025-01-31 23:59:59', '2025-01-31 23:59:59'), ('t', 'a', 2, '2025-02-01 00:00:00', '2025-02-01 00:00:00'), ('t', 'b', 2, '2025-03-05 00:00:00', '2025-03-05 00:00:00'), ('t', 'b:v2', 2, '2025-01-05 00:00:00', '2025-01-05 00:00:00')")
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
	if f.State != flow.Found || len(f.Rows) != 2 || !f.Rows[0].Exact || !f.Rows[1].Exact || f.Rows[0].ID == f.Rows[1].ID {
		t.Errorf("%s %+v", f.State, f.Rows)
	}
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "b"}); len(f.Rows) != 1 || len(f.Neighbours) != 1 || f.Neighbours[0].BizID != "b:v2" {
		t.Errorf("%+v %+v", f.Rows, f.Neighbours)
	}
}

// A unique key holds within one shard only: both rows count, and each names its table.
func TestTwoRowsAcrossShardsAreBothFound(t *testing.T) {
	db := testkit.MySQL(t)
	for _, name := range []string{"rec_0", "rec_1"} {
		db.Exec(t, strings.Replace(idempotentRecord, "idempotent_record", name, 1))
		db.Exec(t, "INSERT INTO "+name+" (biz_type, biz_id, status, create_time, update_time) VALUES ('t', 'a', 2, NOW(), NOW())")
	}
	l := openLedger(t, openServer(t, db), "rec_{0..1}", "idempotent_record", MappingSpec{})
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"})
	if f.State != flow.Found || len(f.Rows) != 2 || f.Rows[0].Table == f.Rows[1].Table || !f.Rows[0].Exact || !f.Rows[1].Exact || len(f.Neighbours) != 0 {
		t.Errorf("%s %+v, neighbours %+v", f.State, f.Rows, f.Neighbours)
	}
	// The one row that can be read stays, and the answer says that a part is missing.
	db.Exec(t, "DROP TABLE rec_1")
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"}); f.State != flow.Unknown || len(f.Rows) != 1 || !strings.Contains(f.Reason.EN, "rec_1") {
		t.Errorf("%s %q %+v", f.State, f.Reason.EN, f.Rows)
	}
}

// Which ids are one to a collation differs; either way each is told from the other.
func TestSpellingsAreNearMissesOrNeighbours(t *testing.T) {
	const nfc, nfd = "caf\u00e9", "cafe\u0301"
	for _, c := range []struct {
		collation, stored, asked string
		equal                    bool
	}{
		{"utf8mb4_general_ci", nfc, nfd, false},
		{"utf8mb4_unicode_ci", nfc, nfd, true},
		{"utf8mb4_bin", nfc, nfd, false},
		{"utf8mb4_bin", "pay ", "pay", true},
		{"utf8mb4_nopad_bin", "pay ", "pay", false},
		{"utf8mb4_bin", "pay\n", "pay", false},
		{"utf8mb4_bin", "PAY", "pay", false},
		{"utf8mb4_general_ci", "PAY", "pay", true},
		{"utf8mb4_unicode_ci", "１２", "12", true},
		{"utf8mb4_general_ci", "１２", "12", false},
	} {
		db := testkit.MySQL(t)
		db.Exec(t, strings.Replace(idempotentRecord, "biz_id VARCHAR(128)", "biz_id VARCHAR(128) COLLATE "+c.collation, 1))
		l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
		insertRecord(t, db, "order", c.stored, 2)
		f := l.Find(soon(t), flow.Key{BizType: "order", BizID: c.asked})
		switch {
		case c.equal && (f.State != flow.Found || len(f.Rows) != 1 || f.Rows[0].Exact || f.Rows[0].BizID != c.stored || len(f.Neighbours) != 0):
			t.Errorf("%s: %q asked, %q stored: %s %+v, neighbours %+v", c.collation, c.asked, c.stored, f.State, f.Rows, f.Neighbours)
		case !c.equal && (f.State != flow.Absent || len(f.Neighbours) != 1 || f.Neighbours[0].Kind != OtherSpelling || f.Neighbours[0].BizID != c.stored):
			t.Errorf("%s: %q asked, %q stored: %s %+v, neighbours %+v", c.collation, c.asked, c.stored, f.State, f.Rows, f.Neighbours)
		}
	}
}
