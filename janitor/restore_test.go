package janitor

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"idemscope/internal/archive"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// putBack restores every file of the place.
func putBack(t testing.TB, p place, execute bool) (total ledger.Restored, err error) {
	t.Helper()
	task := p.task(t)
	session, err := task.Open(soon(t), task.Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, path := range archiveFiles(t, p.files) {
		f, err := archive.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		err = f.Each(func(rows []archive.Row) error {
			r, err := session.(*ledger.SweepSession).Restore(soon(t), f.Columns, rows, execute)
			total.Inserted, total.There = total.Inserted+r.Inserted, total.There+r.There
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// emptied is a table whose old rows, of every kind of column, went to files.
func emptied(t *testing.T) (db *testkit.Database, p place, before map[string]string) {
	t.Helper()
	db = testkit.MySQL(t)
	db.Exec(t, oddRecord)
	db.Exec(t, oddRows)
	p = recordsIn(db)
	p.files = t.TempDir()
	before = rowsOf(t, db.DB, "idempotent_record", "1 = 1")
	sweepNow(t, hire(t, p.task(t)), Done)
	return db, p, before
}

func TestRestoredRowsAreWhatTheyWere(t *testing.T) {
	db, p, before := emptied(t)
	db.Exec(t, "ALTER TABLE idempotent_record ADD COLUMN later INT NULL FIRST")
	if r, err := putBack(t, p, false); err != nil || r != (ledger.Restored{Inserted: 3}) || len(ids(t, db.DB, "idempotent_record")) != 1 {
		t.Fatalf("without execute: %+v %v", r, err)
	}
	if r, err := putBack(t, p, true); err != nil || r != (ledger.Restored{Inserted: 3}) {
		t.Fatalf("%+v %v", r, err)
	}
	if r, err := putBack(t, p, true); err != nil || r != (ledger.Restored{There: 3}) {
		t.Fatalf("a second time: %+v %v", r, err)
	}
	db.Exec(t, "ALTER TABLE idempotent_record DROP COLUMN later")
	if after := rowsOf(t, db.DB, "idempotent_record", "1 = 1"); !maps.Equal(after, before) {
		t.Errorf("were\n%q\nare\n%q", before, after)
	}
}

func TestARowIsNeverOverwritten(t *testing.T) {
	for name, c := range map[string]struct{ prepare, want string }{
		"the id is taken":              {"INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time) VALUES (2, 'new', 'x', 1, UTC_TIMESTAMP())", "another row with the id 2"},
		"the row has changed":          {"INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time) VALUES (2, '', '', 2, '2020-01-01', '2020-01-02')", "another row with the id 2"},
		"the business key is taken":    {"INSERT INTO idempotent_record (biz_id, biz_type, status, create_time) VALUES ('', '', 1, UTC_TIMESTAMP())", "does not take the rows back"},
		"a column is gone":             {"ALTER TABLE idempotent_record DROP COLUMN more", "no column more"},
		"a column has become computed": {"ALTER TABLE idempotent_record DROP COLUMN more, ADD COLUMN more INT AS (status) VIRTUAL", "no column more"},
		"a value is demanded":          {"ALTER TABLE idempotent_record ADD COLUMN must INT NOT NULL", "must have a value"},
		"a column is too narrow":       {"ALTER TABLE idempotent_record MODIFY more VARBINARY(2) NULL", "does not take the rows back"},
	} {
		t.Run(name, func(t *testing.T) {
			db, p, _ := emptied(t)
			db.Exec(t, "ALTER TABLE idempotent_record ADD UNIQUE KEY (biz_type, biz_id)")
			db.Exec(t, c.prepare)
			before := rowsOf(t, db.DB, "idempotent_record", "1 = 1")
			r, err := putBack(t, p, true)
			var conflict *ledger.RestoreConflict
			if !errors.As(err, &conflict) || !strings.Contains(err.Error(), c.want) || r.Inserted != 0 {
				t.Errorf("%+v %v", r, err)
			}
			if after := rowsOf(t, db.DB, "idempotent_record", "1 = 1"); !maps.Equal(after, before) {
				t.Errorf("the table changed: %q", after)
			}
		})
	}
}
