package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// filled makes a table of n rows, one every second until now, and every seventh id burned.
func filled(t testing.TB, n int) (*testkit.Database, *Ledger) {
	t.Helper()
	db, l := records(t)
	db.Exec(t, fmt.Sprintf(`INSERT INTO idempotent_record (id, biz_type, biz_id, status, create_time, update_time)
		SELECT seq, CONCAT('type-', seq MOD 5), CONCAT('id-', seq), 1 + seq MOD 3, '2025-01-15 00:00:00' + INTERVAL seq SECOND, '2025-01-15 00:00:00' + INTERVAL seq + 2 SECOND
		FROM seq_1_to_%d WHERE seq MOD 7 <> 0`, n))
	db.Exec(t, "ANALYZE TABLE idempotent_record")
	return db, l
}

func ids(b Batch) (out []string) {
	for _, r := range b.Rows {
		out = append(out, r.ID)
	}
	return out
}

func TestTail(t *testing.T) {
	db, l := records(t)
	shard := l.Shards()[0]
	if id, err := shard.MaxID(soon(t)); id != 0 || err != nil {
		t.Errorf("empty: %d %v", id, err)
	}
	if id, err := shard.FirstIDSince(soon(t), time.Now()); id != 1 || err != nil {
		t.Errorf("empty: %d %v", id, err)
	}
	if b, err := shard.After(soon(t), 0, 10); err != nil || len(b.Rows) != 0 || !near(time.Since(b.DBNow), 0) {
		t.Errorf("empty: %+v %v", b, err)
	}
	for i := range 5 {
		insertRecord(t, db, "t", fmt.Sprint(i), 1+i%3)
	}
	db.Exec(t, "DELETE FROM idempotent_record WHERE id = 3")
	b, err := shard.After(soon(t), 1, 2)
	if err != nil || !slices.Equal(ids(b), []string{"2", "4"}) || !near(time.Since(b.DBNow), 0) {
		t.Errorf("%+v %v", b, err)
	}
	r := b.Rows[0]
	if r.BizType != "t" || r.BizID != "1" || r.Status != "2" || r.Phase != flow.Completed || !near(r.Age, time.Minute) || r.RunTime != 30*time.Second || r.Table != db.Name+".idempotent_record" {
		t.Errorf("%+v", r)
	}
	b, err = shard.ByID(soon(t), []uint64{5, 3, 1, math.MaxUint64})
	if err != nil || !slices.Equal(ids(b), []string{"1", "5"}) {
		t.Errorf("%+v %v", ids(b), err)
	}
	if b, err = shard.ByID(soon(t), nil); err != nil || len(b.Rows) != 0 || b.DBNow.IsZero() {
		t.Errorf("%+v %v", b, err)
	}
	if _, err = shard.ByID(soon(t), make([]uint64, MaxIDs+1)); err == nil {
		t.Error("more ids than allowed")
	}
	if b, err = shard.After(soon(t), math.MaxUint64, 0); err != nil || len(b.Rows) != 0 {
		t.Errorf("%+v %v", b, err)
	}
	if b, err = shard.After(soon(t), 0, -5); err != nil || len(b.Rows) != 1 {
		t.Errorf("a limit below 1 counts as 1: %+v %v", ids(b), err)
	}
}

func TestIDsBeyondInt64(t *testing.T) {
	db, l := records(t)
	db.Exec(t, "INSERT INTO idempotent_record (id, biz_type, biz_id, create_time, update_time) VALUES (18446744073709551614, 't', 'a', NOW(), NOW()), (9223372036854775808, 't', 'b', NOW(), NOW())")
	shard := l.Shards()[0]
	if id, err := shard.MaxID(soon(t)); id != math.MaxUint64-1 || err != nil {
		t.Errorf("%d %v", id, err)
	}
	if b, err := shard.After(soon(t), math.MaxInt64+1, 10); err != nil || !slices.Equal(ids(b), []string{"18446744073709551614"}) {
		t.Errorf("%v %v", ids(b), err)
	}
	if b, err := shard.ByID(soon(t), []uint64{math.MaxUint64 - 1}); err != nil || len(b.Rows) != 1 {
		t.Errorf("%v %v", ids(b), err)
	}
	if id, err := shard.FirstIDSince(soon(t), time.Now().Add(time.Hour)); id != math.MaxUint64 || err != nil {
		t.Errorf("%d %v", id, err)
	}
}

func TestTailOfOddTables(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	db.Exec(t, consumeLog)
	db.Exec(t, "INSERT INTO consume_log VALUES ('a', NOW())")
	shard := openLedger(t, s, "consume_log", "consume_log", MappingSpec{BizType: "t"}).Shards()[0]
	_, err1 := shard.MaxID(soon(t))
	_, err2 := shard.After(soon(t), 0, 1)
	_, err3 := shard.ByID(soon(t), []uint64{1})
	_, err4 := shard.FirstIDSince(soon(t), time.Now())
	for _, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, ErrNoTail) || !strings.Contains(Explain(err).EN, db.Name+".consume_log: no single integer primary key") {
			t.Errorf("%v: %s", err, Explain(err).EN)
		}
	}
	// Partitioned by time: the key begins with the AUTO_INCREMENT column.
	db.Exec(t, `CREATE TABLE parted (id BIGINT NOT NULL AUTO_INCREMENT, biz_id VARCHAR(32) NOT NULL, handle_time DATETIME NOT NULL, PRIMARY KEY (id, handle_time), UNIQUE KEY (biz_id, handle_time))
		PARTITION BY RANGE (TO_DAYS(handle_time)) (PARTITION a VALUES LESS THAN (TO_DAYS('2025-01-01')), PARTITION b VALUES LESS THAN MAXVALUE)`)
	db.Exec(t, "INSERT INTO parted (biz_id, handle_time) VALUES ('x', '2024-12-31'), ('x', '2025-01-01'), ('y', '2025-01-02')")
	l := openLedger(t, s, "parted", "consume_log", MappingSpec{BizType: "t"})
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "x"}); len(f.Rows) != 2 || !f.Rows[1].Exact {
		t.Errorf("one id in two partitions: %+v", f.Rows)
	}
	if b, err := l.Shards()[0].After(soon(t), 1, 5); err != nil || !slices.Equal(ids(b), []string{"2", "3"}) {
		t.Errorf("%v %v", ids(b), err)
	}
	if id, err := l.Shards()[0].FirstIDSince(soon(t), time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)); id != 3 || err != nil {
		t.Errorf("%d %v", id, err)
	}
	// A named key beside a primary key that is text.
	db.Exec(t, "CREATE TABLE named (uuid CHAR(36) PRIMARY KEY, seq BIGINT NOT NULL AUTO_INCREMENT UNIQUE, handle_time DATETIME)")
	db.Exec(t, "INSERT INTO named VALUES ('u1', 5, NOW()), ('u2', 9, NOW())")
	l = openLedger(t, s, "named", "consume_log", MappingSpec{BizType: "t", Columns: map[string]string{"id": "seq", "biz_id": "uuid"}})
	if b, err := l.Shards()[0].After(soon(t), 5, 5); err != nil || !slices.Equal(ids(b), []string{"9"}) || b.Rows[0].BizID != "u2" || b.Rows[0].Phase != flow.Completed {
		t.Errorf("%+v %v", b, err)
	}
	// Without a created column nothing can be found by time.
	l = openLedger(t, s, "named", "consume_log", MappingSpec{BizType: "t", Columns: map[string]string{"id": "seq", "biz_id": "uuid", "created": "-"}})
	if _, err := l.Shards()[0].FirstIDSince(soon(t), time.Now()); !errors.Is(err, ErrNoTail) || !strings.Contains(Explain(err).EN, "no created column") {
		t.Errorf("%v", err)
	}
}

func TestFirstIDSince(t *testing.T) {
	_, l := filled(t, 2000)
	shard := l.Shards()[0]
	base := time.Date(2025, 1, 15, 0, 0, 0, 0, time.UTC)
	for _, second := range []int{-100, 0, 1, 2, 8, 500, 1000, 1399, 1401, 1999, 2000, 2001, 9999} {
		id, err := shard.FirstIDSince(soon(t), base.Add(time.Duration(second)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		// Every row from id on is young, every row before it is old.
		want := min(max(second, 1), 2001)
		for want%7 == 0 {
			want++
		}
		b, err := shard.After(soon(t), id-1, 1)
		if err != nil || want <= 2000 && (len(b.Rows) != 1 || b.Rows[0].ID != fmt.Sprint(want)) || want > 2000 && len(b.Rows) != 0 {
			t.Errorf("second %d: id %d leads to %v, want %d (%v)", second, id, ids(b), want, err)
		}
	}
}

func TestFirstIDSinceMissesNoRowWithoutATime(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, strings.Replace(idempotentRecord, "create_time DATETIME NOT NULL", "create_time DATETIME NULL", 1))
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) SELECT 't', seq, 1, IF(seq BETWEEN 50 AND 55, NULL, '2025-01-15' + INTERVAL seq SECOND), NOW() FROM seq_1_to_100")
	shard := l.Shards()[0]
	if id, err := shard.FirstIDSince(soon(t), time.Date(2025, 1, 15, 0, 1, 10, 0, time.UTC)); id != 70 || err != nil {
		t.Errorf("%d %v", id, err)
	}
	db.Exec(t, "UPDATE idempotent_record SET create_time = NULL")
	if id, err := shard.FirstIDSince(soon(t), time.Now()); id != 1 || err != nil {
		t.Errorf("%d %v", id, err)
	}
}

func TestTypes(t *testing.T) {
	db, l := filled(t, 2000)
	types, complete, err := l.Types(soon(t), 10)
	if err != nil || !complete || !slices.Equal(types, []string{"type-0", "type-1", "type-2", "type-3", "type-4"}) {
		t.Errorf("%v %v %v", types, complete, err)
	}
	for limit, whole := range map[int]bool{3: false, 5: true} {
		if types, complete, err := l.Types(soon(t), limit); err != nil || complete != whole || len(types) != limit {
			t.Errorf("limit %d: %v %v %v", limit, types, complete, err)
		}
	}
	for _, bizType := range []string{"", "订单", "nul\x00", "TYPE-1", "a'b", "type-1 "} {
		db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, create_time, update_time) VALUES (?, 'x', NOW(), NOW()) ON DUPLICATE KEY UPDATE status = 1", bizType)
	}
	types, complete, err = l.Types(soon(t), 100)
	// Spellings that the collation takes for equal appear once.
	if err != nil || !complete || len(types) != 9 || !slices.IsSorted(types) {
		t.Errorf("%q %v %v", types, complete, err)
	}
	s := l.server
	for i, c := range []struct {
		kind, key string
		want      []string
	}{
		{"INT NOT NULL", "UNIQUE KEY (biz_type, biz_id)", []string{"10", "9"}},
		{"VARBINARY(20) NULL", "KEY (biz_type), KEY (biz_id)", []string{"10", "9"}},
		{"ENUM('9','10') NOT NULL", "UNIQUE KEY (biz_type, biz_id)", nil},
		{"VARCHAR(20) NOT NULL", "UNIQUE KEY (biz_id, biz_type)", nil},
		{"VARCHAR(20) NOT NULL", "UNIQUE KEY (biz_type(1), biz_id)", nil},
	} {
		table := fmt.Sprintf("typed_%d", i)
		db.Exec(t, strings.NewReplacer("idempotent_record", table, "biz_type VARCHAR(64) NOT NULL", "biz_type "+c.kind, "UNIQUE KEY uk_biz (biz_type, biz_id)", c.key).Replace(idempotentRecord))
		db.Exec(t, "INSERT INTO "+table+" (biz_type, biz_id, create_time, update_time) VALUES ('9', 'a', NOW(), NOW()), ('10', 'b', NOW(), NOW()), ('9', 'c', NOW(), NOW())")
		types, complete, err := openLedger(t, s, table, "idempotent_record", MappingSpec{}).Types(soon(t), 10)
		if c.want == nil {
			if !errors.Is(err, ErrNoIndex) || !strings.Contains(Explain(err).EN, "no index begins with the biz_type column") {
				t.Errorf("%s %s: %v %v", c.kind, c.key, types, err)
			}
		} else if err != nil || !complete || !slices.Equal(types, c.want) {
			t.Errorf("%s %s: %v %v", c.kind, c.key, types, err)
		}
	}
	db.Exec(t, consumeLog)
	if types, complete, err := openLedger(t, s, "consume_log", "consume_log", MappingSpec{BizType: "log"}).Types(soon(t), 10); err != nil || !complete || !slices.Equal(types, []string{"log"}) {
		t.Errorf("%v %v", types, err)
	}
}

func TestTypesOfShards(t *testing.T) {
	db, l := sharded(t, 3)
	for i, bizType := range []string{"b", "a", "b"} {
		db.Exec(t, fmt.Sprintf("INSERT INTO idempotent_record_%02d (biz_type, biz_id, create_time, update_time) VALUES (?, 'x', NOW(), NOW())", i), bizType)
	}
	if types, complete, err := l.Types(soon(t), 2); err != nil || !complete || !slices.Equal(types, []string{"a", "b"}) {
		t.Errorf("%v %v %v", types, complete, err)
	}
	if types, complete, err := l.Types(soon(t), 1); err != nil || complete || !slices.Equal(types, []string{"a"}) {
		t.Errorf("%v %v %v", types, complete, err)
	}
}

// rowsRead counts, on the whole private server, the rows that statements touch
// while do runs.
func rowsRead(t *testing.T, db *testkit.Database, do func()) int {
	t.Helper()
	count := func() int {
		var total int
		q := "SELECT CAST(SUM(VARIABLE_VALUE) AS INT) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE 'HANDLER\\_READ\\_%'"
		if err := db.DB.Get(&total, q); err != nil {
			t.Fatal(err)
		}
		return total
	}
	count()
	first := count()
	own := count() - first // what counting itself reads
	before := count()
	do()
	return count() - before - own
}

func TestNothingScans(t *testing.T) {
	const rows = 50000
	db, l := filled(t, rows)
	shard := l.Shards()[0]
	if _, err := shard.MaxID(soon(t)); err != nil { // reads the schema
		t.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	byID := make([]uint64, 100)
	for i := range byID {
		byID[i] = uint64(i * 400)
	}
	find := func(id string) func() {
		return func() {
			if f := l.Find(soon(t), flow.Key{BizType: "type-1", BizID: id}); !f.Seen() {
				t.Errorf("%s %s", f.State, f.Reason.EN)
			}
		}
	}
	cases := []struct {
		name string
		do   func()
		most int
	}{
		// One row for the key, and one dive into the index for each neighbour that could be.
		{"find", find("id-1"), 60},
		{"find, absent", find("none"), 60},
		{"find, too long", find(strings.Repeat("x", 10240)), 5},
		{"after", func() { _, err := shard.After(soon(t), 20000, 100); must(err) }, 110},
		{"after the end", func() { _, err := shard.After(soon(t), rows, 1000); must(err) }, 5},
		{"by id", func() { _, err := shard.ByID(soon(t), byID); must(err) }, 210},
		{"highest id", func() { _, err := shard.MaxID(soon(t)); must(err) }, 3},
		{"first since", func() {
			_, err := shard.FirstIDSince(soon(t), time.Date(2025, 1, 15, 5, 0, 0, 0, time.UTC))
			must(err)
		}, 60},
		{"types", func() { _, _, err := l.Types(soon(t), 100); must(err) }, 20},
	}
	for _, c := range cases {
		if n := rowsRead(t, db, c.do); n > c.most {
			t.Errorf("%s reads %d rows, at most %d are needed", c.name, n, c.most)
		}
	}
	if n := rowsRead(t, db, func() { db.Exec(t, "DO (SELECT COUNT(*) FROM idempotent_record WHERE status > 0)") }); n < rows/2 {
		t.Errorf("a scan counts as %d rows only: this test proves nothing", n)
	}
}
