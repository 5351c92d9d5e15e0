package ledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

const archiveOfRecords = `CREATE TABLE idempotent_record_archive (
	id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL DEFAULT 1,
	create_time DATETIME NOT NULL, update_time DATETIME NOT NULL)`

// sweepTable returns the only table of a ledger.
func sweepTable(t *testing.T, l *Ledger, archive string) *SweepTable {
	t.Helper()
	tables, err := l.SweepTables(archive)
	if err != nil || len(tables) != 1 {
		t.Fatalf("%v, %d tables", err, len(tables))
	}
	return tables[0]
}

// The user of mysql.NAME.act needs what the refusal of a missing one names, and no more.
func TestTheNamedPrivilegesAreEnoughForASweepAndNeeded(t *testing.T) {
	db := testkit.MySQLFull(t)
	db.Exec(t, idempotentRecord)
	db.Exec(t, archiveOfRecords)
	db.Exec(t, "INSERT INTO idempotent_record VALUES (1, 'a', 't', 2, '2020-01-01', '2020-01-01'), (2, 'b', 't', 2, '2020-01-01', '2020-01-01')")
	user := "act_" + db.Name[len(db.Name)-12:]
	account := "'" + user + "'@'%'"
	db.Exec(t, "CREATE USER "+account+" IDENTIFIED BY 'x'")
	t.Cleanup(func() { db.Exec(t, "DROP USER "+account) })
	db.Exec(t, "GRANT SELECT, DELETE ON "+db.Name+".idempotent_record TO "+account)
	db.Exec(t, "GRANT SELECT, INSERT ON "+db.Name+".idempotent_record_archive TO "+account)
	as := func(o *ServerOptions) { o.User, o.Password = user, "x" }
	table := sweepTable(t, openLedger(t, openServer(t, db, as), "idempotent_record", "idempotent_record", MappingSpec{}), "idempotent_record_archive")
	hidden := func() (tables []string) {
		t.Helper()
		found, err := table.Obstacles(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found {
			if o.Code != "triggers_hidden" {
				t.Errorf("obstacle %s: %s", o.Code, o.Text.EN)
			}
			tables = append(tables, o.Text.EN)
		}
		return tables
	}
	if got := hidden(); len(got) != 2 || !strings.Contains(got[0], "GRANT TRIGGER ON `"+db.Name+"`.`idempotent_record` to the user of mysql.main.act") {
		t.Errorf("%q", got)
	}
	db.Exec(t, "GRANT TRIGGER ON "+db.Name+".idempotent_record TO "+account)
	if got := hidden(); len(got) != 1 || !strings.Contains(got[0], "_archive") {
		t.Errorf("%q", got)
	}
	db.Exec(t, "GRANT TRIGGER ON `"+strings.ReplaceAll(db.Name, "_", `\_`)+"`.* TO "+account)
	if got := hidden(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	b, err := sweepOnce(t, db, table, as)
	if err != nil || b.Gone != 1 {
		t.Errorf("%+v %v", b, err)
	}
	db.Exec(t, "REVOKE DELETE ON "+db.Name+".idempotent_record FROM "+account)
	db.Exec(t, "INSERT INTO idempotent_record VALUES (3, 'c', 't', 1, UTC_TIMESTAMP(), UTC_TIMESTAMP())")
	if b, err = sweepOnce(t, db, table, as); b.Gone != 0 || FaultOf(err) != FaultOther || !strings.Contains(Explain(err).EN, "1142") {
		t.Errorf("without DELETE: %+v %v", b, err)
	}
}

// sweepOnce cleans the first batch of a table, of all that is older than a day.
func sweepOnce(t *testing.T, db *testkit.Database, table *SweepTable, change ...func(*ServerOptions)) (SweepBatch, error) {
	t.Helper()
	o := ServerOptions{Name: "main", Address: db.Addr, Database: db.Name, User: db.User, Password: db.Password}
	for _, c := range change {
		c(&o)
	}
	sweeper, err := NewSweeper(o)
	if err != nil {
		t.Fatal(err)
	}
	defer sweeper.Close()
	session, err := sweeper.Open(soon(t), table)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	cutoff := time.Now().Add(-24 * time.Hour)
	b, err := session.Next(soon(t), Range{To: 1000}, 1000, cutoff)
	if err != nil {
		t.Fatal(err)
	}
	return session.Sweep(soon(t), b, cutoff)
}

func TestAnArchiveKeepsEveryByte(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "SET sql_mode = ''")
	db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128), biz_type VARBINARY(64),
		status TINYINT, create_time DATETIME(6), update_time TIMESTAMP(3) NULL, note TEXT CHARACTER SET utf8mb4, doubled INT AS (status * 2) STORED, raw BLOB, day DATE, f DOUBLE)`)
	db.Exec(t, "CREATE TABLE idempotent_record_archive LIKE idempotent_record")
	db.Exec(t, "ALTER TABLE idempotent_record_archive MODIFY note TEXT CHARACTER SET utf8mb4 AFTER id, ADD COLUMN archived_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP")
	insert := "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time, note, raw, day, f) VALUES (?, ?, 2, '2020-01-01 00:00:00.123456', '2020-03-04 05:06:07.891', ?, ?, ?, ?)"
	db.Exec(t, insert, "\t\n\\'\"\x00\u2028🙂 ", "\xff\xfe\x00", "tab\tline\nback\\slash \x1a 密🙂", "\x00\x01\xff", "0000-00-00", 0.1)
	db.Exec(t, insert, "", "", nil, nil, "2024-02-00", nil)
	db.Exec(t, insert, "newest", "", nil, nil, nil, 1e300)
	const columns = "id, biz_id, HEX(biz_type), status, create_time, update_time, HEX(note), doubled, HEX(raw), CAST(day AS CHAR), f"
	read := func(name string) (rows []string) {
		t.Helper()
		if err := db.DB.Select(&rows, "SELECT CONCAT_WS('|', "+strings.ReplaceAll(columns, ", ", ", '-', ")+") FROM "+name+" WHERE id < 3 ORDER BY id"); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := read("idempotent_record")
	table := sweepTable(t, openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{}), "idempotent_record_archive")
	if found, err := table.Obstacles(soon(t)); err != nil || len(found) != 0 {
		t.Fatalf("%+v %v", found, err)
	}
	if b, err := sweepOnce(t, db, table); err != nil || b.Gone != 2 {
		t.Fatalf("%+v %v", b, err)
	}
	if after := read("idempotent_record_archive"); !slices.Equal(before, after) || len(after) != 2 {
		t.Errorf("archived\n%q\nwere\n%q", after, before)
	}
}

func TestATriggerThatNobodyMaySeeIsNotDenied(t *testing.T) {
	table := table{"shop", "idempotent_record"}
	for line, want := range map[string]bool{
		"GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION":                            true,
		"GRANT SELECT, TRIGGER ON *.* TO `a`@`%`":                                             true,
		"GRANT SELECT ON *.* TO `a`@`%`":                                                      false,
		"GRANT USAGE ON *.* TO `trigger`@`%`":                                                 false,
		"GRANT SELECT, TRIGGER ON `shop`.* TO `a`@`%`":                                        true,
		"GRANT SELECT, TRIGGER ON `other`.* TO `a`@`%`":                                       false,
		"GRANT SELECT, DELETE, TRIGGER ON `shop`.`idempotent_record` TO `a`@`%`":              true,
		"GRANT SELECT, DELETE, TRIGGER ON `shop`.`idempotent_record_archive` TO `a`@`%`":      false,
		"GRANT `TRIGGER` TO `a`@`%`":                                                          false,
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, TRIGGER ON `shop`.* TO `a`@`10.0.0.%`": true,
	} {
		if got := seesTriggers([]string{line}, table); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
	if !seesTriggers(nil, table) || seesTriggers([]string{}, table) {
		t.Error("a server without privileges, or a user without any")
	}
	if !seesTriggers([]string{"GRANT TRIGGER ON `my\\_shop`.* TO `a`@`%`"}, tableOf("my_shop", "x")) {
		t.Error("an escaped name")
	}
}

func tableOf(database, name string) table { return table{database, name} }

func TestTheLeaseHasOneNameOfALengthThatServersTake(t *testing.T) {
	long := strings.Repeat("x", 64)
	names := []string{leaseName(table{"shop", "orders"}), leaseName(table{"shop", long}), leaseName(table{"shop", long[1:] + "y"}), leaseName(table{long, long})}
	if names[0] != "idemscope:janitor:shop.orders" {
		t.Errorf("%q", names[0])
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != 4 {
		t.Errorf("two tables share a lease: %q", names)
	}
	for _, name := range names {
		if len(name) > maxLock {
			t.Errorf("%q has %d bytes", name, len(name))
		}
	}
}

func TestAStoppedSweepChangesNothingMore(t *testing.T) {
	db, l := records(t)
	insertRecord(t, db, "t", "a", 2)
	table := sweepTable(t, l, "")
	sweeper, err := NewSweeper(ServerOptions{Name: "main", Address: db.Addr, Database: db.Name, User: db.User})
	if err != nil {
		t.Fatal(err)
	}
	defer sweeper.Close()
	session, err := sweeper.Open(soon(t), table)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	stopped := within(t, 0)
	<-stopped.Done()
	if _, err := session.Next(stopped, Range{To: 10}, 10, time.Now()); !errors.Is(err, stopped.Err()) {
		t.Errorf("next: %v", err)
	}
	if b, err := session.Sweep(stopped, SweepBatch{Range: Range{To: 10}}, time.Now()); !errors.Is(err, stopped.Err()) || b.Gone != 0 {
		t.Errorf("sweep: %+v %v", b, err)
	}
}
