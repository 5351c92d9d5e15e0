package janitor

import (
	"context"
	"fmt"
	"hash/crc64"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"idemscope/internal/archive"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		sweepAsChild()
		return
	}
	testkit.Main(m)
}

const record = `CREATE TABLE idempotent_record (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL DEFAULT 1,
	create_time DATETIME NOT NULL, update_time DATETIME NULL, UNIQUE KEY uk_biz (biz_type, biz_id)) CHARSET utf8mb4`

const recordArchive = `CREATE TABLE idempotent_record_archive LIKE idempotent_record`

const plainArchive = `ALTER TABLE idempotent_record_archive DROP INDEX uk_biz, ADD INDEX uk_biz (biz_type, biz_id)`

// place says where a ledger is and how it looks.
type place struct {
	addr, database, table, preset, archive string
	// files is the directory for the rows; empty when they do not go to files.
	files string
	zone  *time.Location
	spec  ledger.MappingSpec
}

func recordsIn(db *testkit.Database) place {
	return place{addr: db.Addr, database: db.Name, table: "idempotent_record", preset: "idempotent_record"}
}

// open makes a task of a place. closeAll ends its connections; on an error there are none.
func (p place) open() (t Task, closeAll func(), err error) {
	options := ledger.ServerOptions{Name: "main", Address: p.addr, Database: p.database, User: "root", Zone: p.zone, StatementLimit: 10 * time.Second}
	server, err := ledger.NewServer(options)
	if err != nil {
		return t, nil, err
	}
	sweeper, err := ledger.NewSweeper(options)
	if err != nil {
		return t, nil, err
	}
	closeAll = func() { _, _ = server.Close(), sweeper.Close() }
	tables, err := p.tables(server)
	if err != nil {
		closeAll()
		return t, nil, err
	}
	open := Plainly(sweeper.Open)
	if p.files != "" {
		for _, table := range tables {
			table.IntoFiles(p.files)
		}
		open = IntoFiles(sweeper.Open, archive.Options{Directory: p.files, Compression: archive.Zstd, MaxBytes: 20_000})
	}
	return Task{Name: "orders", Ledger: "orders", Tables: tables, Open: open, Retain: week, Batch: 2000}, closeAll, nil
}

func (p place) tables(server *ledger.Server) ([]*ledger.SweepTable, error) {
	mapping, err := ledger.NewMapping(p.preset, p.spec)
	if err != nil {
		return nil, err
	}
	l, err := ledger.New(ledger.Options{Name: "orders", Server: server, Table: p.table, Mapping: mapping})
	if err != nil {
		return nil, err
	}
	return l.SweepTables(p.archive)
}

const week = 7 * 24 * time.Hour

// task is open for a test.
func (p place) task(t testing.TB) Task {
	t.Helper()
	task, closeAll, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeAll)
	return task
}

// hire makes a janitor that never pauses.
func hire(t testing.TB, tasks ...Task) *Janitor {
	t.Helper()
	j, err := New(Options{Tasks: tasks, Metrics: NewMetrics(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	j.pause = func(ctx context.Context, _ time.Duration) { sleep(ctx, time.Millisecond) }
	return j
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func soon(t testing.TB) context.Context { return within(t, time.Minute) }

// sweepNow runs the only task and expects an end.
func sweepNow(t testing.TB, j *Janitor, want Ended) Report {
	t.Helper()
	r, err := j.Sweep(soon(t), j.Tasks()[0], false)
	if err != nil || r.Ended != want {
		t.Fatalf("ended %s (%s) %v, want %s; %+v", r.Ended, r.Why.EN, err, want, r.Tables)
	}
	return r
}

// fill inserts n rows with a status, that many days old.
func fill(t testing.TB, db *testkit.Database, n, status, days int) {
	t.Helper()
	var start uint64
	if err := db.DB.Get(&start, "SELECT COALESCE(MAX(id), 0) FROM idempotent_record"); err != nil {
		t.Fatal(err)
	}
	for n > 0 {
		part := min(n, 5000)
		db.Exec(t, fmt.Sprintf(`INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time)
			SELECT %[1]d + seq, CONCAT('ORD', %[1]d + seq), 'order_paid', %[2]d, UTC_TIMESTAMP() - INTERVAL %[3]d DAY, UTC_TIMESTAMP() - INTERVAL %[3]d DAY FROM seq_1_to_%[4]d`,
			start, status, days, part))
		n, start = n-part, start+uint64(part)
	}
}

func count(t testing.TB, db *sqlx.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.Get(&n, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// rowsOf reads every row of a table that satisfies a condition, byte for byte, by its id.
func rowsOf(t testing.TB, db *sqlx.DB, table, condition string) map[string]string {
	t.Helper()
	rows, err := db.Queryx("SELECT * FROM " + table + " WHERE " + condition + " ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, v := range values {
			switch value := v.(type) {
			case nil:
				b.WriteString("<nil>|")
			case []byte:
				fmt.Fprintf(&b, "%q|", value)
			case time.Time:
				fmt.Fprintf(&b, "%q|", value.Format("2006-01-02 15:04:05.999999"))
			default:
				fmt.Fprintf(&b, "%q|", fmt.Sprint(value))
			}
		}
		first, _, _ := strings.Cut(b.String(), "|")
		all[first] = b.String()
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// checksum of rows, whatever their order.
func checksum(rows map[string]string) uint64 {
	var sum uint64
	for _, row := range rows {
		sum ^= crc64.Checksum([]byte(row), crc64.MakeTable(crc64.ECMA))
	}
	return sum
}

// ids lists what is in a table, in order.
func ids(t testing.TB, db *sqlx.DB, table string) []uint64 {
	t.Helper()
	var all []uint64
	if err := db.Select(&all, "SELECT id FROM "+table+" ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	return all
}

func wantIDs(t testing.TB, what string, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: ids %v, want %v", what, got, want)
	}
}
