package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// archiving opens idempotent_record with the archive named.
func archiving(t testing.TB, s *Server, archive string) *Ledger {
	t.Helper()
	m, err := NewMapping("idempotent_record", MappingSpec{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Options{Name: "orders", Server: s, Table: "idempotent_record", Mapping: m, Archive: archive})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheArchiveIsAskedForExactlyTheKey(t *testing.T) {
	db, _ := records(t)
	db.Exec(t, strings.NewReplacer("idempotent_record", "record_archive", "AUTO_INCREMENT ", "", "update_time DATETIME NOT NULL,", "update_time DATETIME NOT NULL, archived_at DATETIME(3) NOT NULL,").Replace(idempotentRecord))
	db.Exec(t, "INSERT INTO record_archive VALUES (7, 'gone', 'order', 2, '2025-01-01 10:00:00', '2025-01-01 10:00:01', '2025-01-09 03:00:00.5'), (8, 'CASE', 'order', 2, NOW(), NOW(), NOW())")
	insertRecord(t, db, "order", "here", 2)
	l := archiving(t, openServer(t, db), "record_archive")
	f := l.Find(soon(t), flow.Key{BizType: "order", BizID: "gone"})
	a := f.Archive
	if f.State != flow.Absent || a == nil || a.State != flow.Found || len(a.Rows) != 1 {
		t.Fatalf("%s %+v", f.State, a)
	}
	r := a.Rows[0]
	if !r.Exact || r.ID != "7" || r.Phase != flow.Completed || r.Archived.Text != "2025-01-09 03:00:00.500" || r.Archived.State != StampOK || r.RunTime != time.Second {
		t.Errorf("%+v", r)
	}
	if !strings.HasSuffix(a.Source, db.Name+".record_archive") || !strings.Contains(a.Command, "record_archive") || a.ReadAt.IsZero() {
		t.Errorf("%+v", a.Observation)
	}
	for id, want := range map[string]flow.State{"here": flow.Absent, "case": flow.Absent, "CASE": flow.Found, "none": flow.Absent} {
		if a := l.Find(soon(t), flow.Key{BizType: "order", BizID: id}).Archive; a.State != want || len(a.Rows) > 0 != (want == flow.Found) || !a.Reason.Empty() {
			t.Errorf("%s: %+v", id, a)
		}
	}
	// A row in both places: its key ran again after it was archived.
	insertRecord(t, db, "order", "gone", 2)
	if f := l.Find(soon(t), flow.Key{BizType: "order", BizID: "gone"}); f.State != flow.Found || f.Archive.State != flow.Found {
		t.Errorf("%s %s", f.State, f.Archive.State)
	}
}

func TestAnArchiveThatCannotBeReadSaysWhy(t *testing.T) {
	db, plain := records(t)
	insertRecord(t, db, "order", "1", 2)
	db.Exec(t, "CREATE TABLE no_columns (id BIGINT PRIMARY KEY)")
	db.Exec(t, strings.NewReplacer("idempotent_record", "no_index", ",\n\t\tUNIQUE KEY uk_biz (biz_type, biz_id)", "").Replace(idempotentRecord))
	s := openServer(t, db)
	for _, c := range []struct {
		table, reason string
		state         flow.State
	}{
		{"no_table", "there is no such table", flow.Error},
		{"no_columns", "there is no column", flow.Error},
		{"no_index", "no index begins with the key columns", flow.Unknown},
		{"no_index_{1..2}", "there is no such table", flow.Error},
	} {
		f := archiving(t, s, c.table).Find(soon(t), flow.Key{BizType: "order", BizID: "1"})
		if f.State != flow.Found || f.Archive.State != c.state || !strings.Contains(f.Archive.Reason.EN, c.reason) || f.Archive.Reason.ZH == "" {
			t.Errorf("%s: record %s, archive %s %q", c.table, f.State, f.Archive.State, f.Archive.Reason.EN)
		}
	}
	if f := plain.Find(soon(t), flow.Key{BizType: "order", BizID: "1"}); f.Archive != nil {
		t.Errorf("a ledger without an archive: %+v", f.Archive)
	}
}

func TestAnArchiveOfSeveralTables(t *testing.T) {
	db, _ := records(t)
	for i := range 3 {
		db.Exec(t, strings.Replace(idempotentRecord, "idempotent_record", fmt.Sprintf("old_%02d", i), 1))
	}
	db.Exec(t, "INSERT INTO old_01 (biz_type, biz_id, status, create_time, update_time) VALUES ('order', 'a', 2, NOW(), NOW())")
	l := archiving(t, openServer(t, db), "old_{00..02}")
	key := flow.Key{BizType: "order", BizID: "a"}
	if a := l.Find(soon(t), key).Archive; a.State != flow.Found || a.Rows[0].Archived.State != StampMissing {
		t.Errorf("%+v", a)
	}
	db.Exec(t, "DROP TABLE old_02")
	if a := l.Find(soon(t), key).Archive; a.State != flow.Found {
		t.Errorf("the row is there, whatever the other table holds: %+v", a)
	}
	if a := l.Find(soon(t), flow.Key{BizType: "order", BizID: "b"}).Archive; a.State != flow.Unknown {
		t.Errorf("a part could not be read: %+v", a)
	}
}

func TestAnArchiveOnAReplicaIsNeverAbsent(t *testing.T) {
	db, _ := records(t)
	db.Exec(t, "CREATE TABLE old LIKE idempotent_record")
	db.Exec(t, "INSERT INTO old (biz_type, biz_id, status, create_time, update_time) VALUES ('order', 'A', 2, NOW(), NOW())")
	l := archiving(t, openServer(t, db, func(o *ServerOptions) { o.Replica = true }), "old")
	for id, want := range map[string]flow.State{"A": flow.Found, "a": flow.Unknown, "none": flow.Unknown} {
		if a := l.Find(soon(t), flow.Key{BizType: "order", BizID: id}).Archive; a.State != want || a.Reason.Empty() != (want == flow.Found) {
			t.Errorf("%s: %+v", id, a)
		}
	}
}

func TestALockedArchiveLeavesTheAnswerAlone(t *testing.T) {
	db, _ := records(t)
	insertRecord(t, db, "order", "1", 2)
	db.Exec(t, "CREATE TABLE old LIKE idempotent_record")
	l := archiving(t, openServer(t, db), "old")
	key := flow.Key{BizType: "order", BizID: "1"}
	l.Find(soon(t), key) // reads the schemas
	conn, err := db.DB.Connx(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(soon(t), "LOCK TABLES old WRITE"); err != nil {
		t.Fatal(err)
	}
	f := l.Find(within(t, time.Second), key)
	if f.State != flow.Found || f.Archive.State != flow.Error || f.Archive.Reason.Empty() || f.Took > time.Second {
		t.Errorf("record %s, archive %s %q after %s", f.State, f.Archive.State, f.Archive.Reason.EN, f.Took)
	}
	if _, err := conn.ExecContext(soon(t), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
}

func TestAnArchiveIsAnotherTable(t *testing.T) {
	db := testkit.MySQL(t)
	m, err := NewMapping("idempotent_record", MappingSpec{})
	if err != nil {
		t.Fatal(err)
	}
	s := openServer(t, db)
	for archive, want := range map[string]string{
		"rec_03": "is the ledger itself", db.Name + ".rec_{02..09}": "is the ledger itself", "a.b.c": "is no table name",
	} {
		_, err := New(Options{Name: "orders", Server: s, Table: "rec_{00..07}", Mapping: m, Archive: archive})
		if err == nil || !strings.Contains(err.Error(), "ledger orders: archive: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", archive, err)
		}
	}
}
