package exporter

import (
	"bytes"
	"database/sql"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

const recordTable = `(
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
	create_time DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, update_time DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
	UNIQUE KEY uk_biz (biz_type, biz_id))`

// Stored words of the preset idempotent_record.
const (
	processing = 1
	completed  = 2
	failed     = 3
)

// payments is the flow of the tests.
func payments() flow.Flow {
	return flow.Flow{Name: "payments", BizTypes: []string{"pay", "refund"}, Ledger: "orders", StaleAfter: 5 * time.Minute,
		Lock: &flow.RedisKey{Redis: "main", TTL: 15 * time.Second}}
}

// bench is one ledger on a real server, polled step by step.
type bench struct {
	*testkit.Database
	t      *testing.T
	source *ledgerSource
	loop   *loop
	// clock is what the source takes for the time.
	clock    time.Time
	registry *prometheus.Registry
	log      *bytes.Buffer
}

// benchOptions describe a bench: zero values are those of idempotent_record and payments.
type benchOptions struct {
	address    string
	table      string
	preset     string
	mapping    ledger.MappingSpec
	flows      []flow.Flow
	maxTypes   int
	lookback   time.Duration
	maxWatched int
	replica    bool
	zone       *time.Location
	conns      int
}

// recordBench has the table idempotent_record, empty.
func recordBench(t *testing.T) *bench {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	return newBench(t, db, benchOptions{})
}

func newBench(t *testing.T, db *testkit.Database, o benchOptions) *bench {
	t.Helper()
	if o.table == "" {
		o.table, o.preset = "idempotent_record", "idempotent_record"
	}
	if o.flows == nil {
		o.flows = []flow.Flow{payments()}
	}
	if o.lookback == 0 {
		o.lookback = defaultLookback
	}
	if o.maxTypes == 0 {
		o.maxTypes = defaultMaxBizTypes
	}
	b := &bench{Database: db, t: t, clock: time.Now(), registry: prometheus.NewPedanticRegistry(), log: &bytes.Buffer{}}
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	sums, descs := newSums(), newDescs()
	sh := shared{labels: newLabels(o.maxTypes, flow.NewCatalog(o.flows).Types(), sums.labelOverflow), sums: sums, descs: descs, log: logger}
	b.source = newLedgerSource(tableOf("orders", openLedger(t, db, o)), o.flows, o.lookback, sh)
	b.source.now = func() time.Time { return b.clock }
	if o.maxWatched > 0 {
		b.source.room.left.Store(int64(o.maxWatched))
	}
	b.loop = &loop{name: "orders", kind: kindLedger, source: b.source, timeout: 10 * time.Second, log: logger}
	b.registry.MustRegister(everything(sums, &snapshots{descs: descs, loops: []*loop{b.loop}})...)
	return b
}

func openLedger(t *testing.T, db *testkit.Database, o benchOptions) *ledger.Ledger {
	t.Helper()
	if o.address == "" {
		o.address = db.Addr
	}
	server, err := ledger.NewServer(ledger.ServerOptions{Name: "main", Address: o.address, Database: db.Name, User: db.User, Password: db.Password,
		Replica: o.replica, Zone: o.zone, MaxConns: o.conns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // an error where the server went away before
	mapping, err := ledger.NewMapping(o.preset, o.mapping)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(ledger.Options{Name: "orders", Server: server, Table: o.table, Mapping: mapping})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// poll lets the default interval pass, runs one cycle and returns what a scrape
// then shows.
func (b *bench) poll() samples {
	b.t.Helper()
	b.passes(defaultInterval)
	b.loop.poll(b.t.Context())
	return gather(b.t, b.registry)
}

// good polls and fails the test when the ledger cannot be read.
func (b *bench) good() samples {
	b.t.Helper()
	s := b.poll()
	if s[`idemscope_source_up{kind="ledger",source="orders"}`] != 1 {
		b.t.Fatalf("the ledger cannot be read: %s", b.log)
	}
	return s
}

// passes moves the clock of the source.
func (b *bench) passes(d time.Duration) { b.clock = b.clock.Add(d) }

// insert adds records and returns the id of the last one.
func (b *bench) insert(bizType string, status int, ids ...string) uint64 {
	b.t.Helper()
	return insert(b.t, b.DB, bizType, status, ids...)
}

func insert(t *testing.T, on sqlx.ExecerContext, bizType string, status int, ids ...string) uint64 {
	t.Helper()
	var result sql.Result
	for _, id := range ids {
		var err error
		result, err = on.ExecContext(t.Context(), "INSERT INTO idempotent_record (biz_type, biz_id, status) VALUES (?, ?, ?)", bizType, id, status)
		if err != nil {
			t.Fatal(err)
		}
	}
	id, err := result.LastInsertId()
	if err != nil {
		t.Fatal(err)
	}
	return uint64(id)
}

// begin opens a transaction that is rolled back at the end unless it was committed.
func (b *bench) begin() *sqlx.Tx {
	b.t.Helper()
	tx, err := b.DB.Beginx()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// session is a connection with session variables of its own.
func (b *bench) session(variables string) *sqlx.Conn {
	b.t.Helper()
	conn, err := b.DB.Connx(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.ExecContext(b.t.Context(), "SET SESSION "+variables); err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// refuse inserts records whose keys are taken: each burns an id.
func (b *bench) refuse(bizType string, ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		if _, err := b.DB.Exec("INSERT INTO idempotent_record (biz_type, biz_id, status) VALUES (?, ?, 1)", bizType, id); err == nil {
			b.t.Fatalf("key %s %s is not taken", bizType, id)
		}
	}
}

// update sets a record's status and its times, relative to the database's clock in seconds.
func (b *bench) update(bizType, bizID string, status, created, updated int) {
	b.t.Helper()
	result, err := b.DB.Exec(`UPDATE idempotent_record SET status = ?, create_time = UTC_TIMESTAMP() + INTERVAL ? SECOND,
		update_time = UTC_TIMESTAMP() + INTERVAL ? SECOND WHERE biz_type = ? AND biz_id = ?`, status, created, updated, bizType, bizID)
	if err != nil {
		b.t.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n != 1 {
		b.t.Fatalf("%d rows updated", n)
	}
}

// totals are the counters of the ledger for one biz_type.
func totals(bizType string, created, completed, failed, retries float64) samples {
	l := `{biz_type="` + bizType + `",ledger="orders"}`
	return samples{
		"idem_records_created_total" + l: created, "idem_records_completed_total" + l: completed, "idem_records_failed_total" + l: failed,
		"idem_record_duration_seconds_count" + l:                         completed,
		`idem_retries_total{biz_type="` + bizType + `",source="ledger"}`: retries,
	}
}

const (
	burned      = `idem_record_ids_burned_total{ledger="orders"}`
	rowsRead    = `idemscope_rows_read_total{source="orders"}`
	watched     = `idemscope_watched_records{source="orders"}`
	caughtUp    = `idemscope_tail_caught_up{source="orders"}`
	inProgress  = `idem_records_processing{biz_type="pay",ledger="orders"}`
	stalePay    = `idem_records_stale{biz_type="pay",ledger="orders"}`
	oldestPay   = `idem_oldest_processing_age_seconds{biz_type="pay",ledger="orders"}`
	longerPay   = `idem_runs_longer_than_lock_total{biz_type="pay",flow="payments"}`
	vanishedPay = `idemscope_records_vanished_total{biz_type="pay",ledger="orders"}`
	isUp        = `idemscope_source_up{kind="ledger",source="orders"}`
)

// handlerReads is how many rows the server has looked at so far.
func (b *bench) handlerReads() int64 {
	b.t.Helper()
	var sum int64
	if err := b.DB.Get(&sum, `SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS
		WHERE VARIABLE_NAME IN ('HANDLER_READ_FIRST','HANDLER_READ_KEY','HANDLER_READ_LAST','HANDLER_READ_NEXT','HANDLER_READ_PREV','HANDLER_READ_RND','HANDLER_READ_RND_NEXT')`); err != nil {
		b.t.Fatal(err)
	}
	return sum
}

// grown is what changed from one scrape to the next.
func grown(before, after samples) samples {
	d := samples{}
	for series, value := range after {
		if value != before[series] {
			d[series] = value - before[series]
		}
	}
	return d
}

// seriesNames lists the names that a scrape shows.
func seriesNames(s samples) []string {
	names := map[string]bool{}
	for series := range s {
		name, _, _ := strings.Cut(series, "{")
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
