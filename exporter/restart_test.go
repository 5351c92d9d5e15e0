package exporter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// serverAt is a MariaDB of this test's own, whose data outlives it.
type serverAt struct {
	t       *testing.T
	options servers.MariaDBOptions
	addr    string
	m       *servers.MariaDB
}

// newServerAt starts a server on a port and a data directory that a later one can take over.
func newServerAt(t *testing.T, args ...string) *serverAt {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	options := servers.MariaDBOptions{Args: append([]string{"--datadir=" + t.TempDir(), "--port=" + strconv.Itoa(port)}, args...)}
	s := &serverAt{t: t, addr: "127.0.0.1:" + strconv.Itoa(port), options: options}
	s.start()
	return s
}

// newReplicator starts a server that can replicate: that needs the system tables.
func newReplicator(t *testing.T, args ...string) *serverAt {
	t.Helper()
	s := &serverAt{t: t, options: servers.MariaDBOptions{Grants: true, Args: args}}
	s.start()
	s.addr = s.m.Addr
	return s
}

func (s *serverAt) start() {
	s.t.Helper()
	m, err := servers.StartMariaDB(context.Background(), s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			s.t.Error(err)
		}
	})
	s.m = m
}

// takeOver starts the server, which has ended, where another one was.
func (s *serverAt) takeOver(other *serverAt) {
	s.t.Helper()
	s.addr = other.addr
	s.options.Args[1] = other.options.Args[1] // the port
	s.start()
}

// shutDown ends the server in good order.
func (s *serverAt) shutDown(db *testkit.Database) {
	s.t.Helper()
	db.Exec(s.t, "SHUTDOWN")
	testkit.Eventually(s.t, 20*time.Second, func() bool { return errors.Is(syscall.Kill(s.m.Pid, 0), syscall.ESRCH) }, "the server ends")
	if err := s.m.Stop(); err != nil {
		s.t.Error(err)
	}
}

// database makes a database on the server.
func (s *serverAt) database() *testkit.Database {
	s.t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Logger = "tcp", s.addr, "root", &mysql.NopLogger{}
	cfg.Params = map[string]string{"time_zone": "'+00:00'"}
	open := func() *sqlx.DB {
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			s.t.Fatal(err)
		}
		db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
		s.t.Cleanup(func() { _ = db.Close() })
		return db
	}
	if _, err := open().Exec("CREATE DATABASE IF NOT EXISTS test"); err != nil {
		s.t.Fatal(err)
	}
	cfg.DBName = "test"
	return &testkit.Database{Addr: s.addr, Name: "test", User: "root", DB: open(), Pid: s.m.Pid}
}

func TestServerThatRestarts(t *testing.T) {
	t.Parallel()
	own := newServerAt(t, "--innodb-flush-log-at-trx-commit=1")
	db := own.database()
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	b := newBench(t, db, benchOptions{})
	b.good()
	b.insert("pay", processing, "a", "b")
	insert(t, b.begin(), "pay", completed, "torn off")
	b.insert("pay", completed, "c")
	b.good().want(t, totals("pay", 3, 1, 0, 0))

	own.shutDown(db)
	b.poll().want(t, samples{isUp: 0})
	own.start()
	testkit.Eventually(t, 20*time.Second, func() bool { return b.DB.Ping() == nil }, "the server is back")
	b.update("pay", "a", completed, -1, 0)
	b.insert("pay", completed, "d")
	testkit.Eventually(t, 20*time.Second, func() bool { return b.poll()[isUp] == 1 }, "the ledger is read again")
	s := b.good()
	s.want(t, totals("pay", 4, 3, 0, 0))
	s.want(t, samples{inProgress: 1, vanishedPay: 0})
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 1})
}

// The address leads to another server, to which the last row never came.
func TestPrimaryThatIsSwitched(t *testing.T) {
	t.Parallel()
	first, second := newServerAt(t), newServerAt(t)
	db := first.database()
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	b := newBench(t, db, benchOptions{})
	b.good()
	b.insert("pay", processing, "a", "b")
	b.insert("pay", completed, "c")
	kept := b.insert("pay", processing, "d")
	b.insert("pay", completed, "lost")
	b.good().want(t, totals("pay", 5, 2, 0, 0))

	other := second.database()
	other.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	insert(t, other.DB, "pay", processing, "a", "b")
	insert(t, other.DB, "pay", completed, "c")
	insert(t, other.DB, "pay", processing, "d")
	first.shutDown(db)
	b.poll().want(t, samples{isUp: 0})
	second.shutDown(other)
	second.takeOver(first)
	testkit.Eventually(t, 20*time.Second, func() bool { return b.DB.Ping() == nil }, "the second server is there")
	if again := b.insert("pay", processing, "e"); again != kept+1 {
		t.Fatalf("the next id is %d", again)
	}
	b.insert("pay", completed, "lost") // its message comes again
	b.update("pay", "a", completed, -1, 0)
	testkit.Eventually(t, 20*time.Second, func() bool { return b.poll()[isUp] == 1 }, "the ledger is read again: %s", b.log)
	s := b.good()
	s.want(t, totals("pay", 7, 4, 0, 0)) // the lost run happened twice, and is counted twice
	s.want(t, samples{inProgress: 3, vanishedPay: 0})
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 0})
}

// A crash may take the last rows with it. Their ids are given out again.
func TestServerThatLosesItsLastRows(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", completed, "a")
	kept := b.insert("pay", processing, "b")
	b.insert("pay", processing, "c")
	b.insert("pay", completed, "d")
	b.good().want(t, totals("pay", 4, 2, 0, 0))
	b.Exec(t, "DELETE FROM idempotent_record WHERE id > ?", kept)
	b.Exec(t, fmt.Sprintf("ALTER TABLE idempotent_record AUTO_INCREMENT = %d", kept+1))
	if again := b.insert("pay", processing, "e"); again != kept+1 {
		t.Fatalf("the next id is %d", again)
	}
	b.insert("pay", completed, "c") // its consumer tries again
	b.good()
	s := b.good()
	s.want(t, totals("pay", 6, 3, 0, 1))
	s.want(t, samples{inProgress: 2, vanishedPay: 1})
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 0})
}

func TestReplicaTellsItsLag(t *testing.T) {
	t.Parallel()
	const lag = `idemscope_replica_lag_seconds{source="orders"}`
	primary := newReplicator(t, "--log-bin=log", "--server-id=1")
	replica := newReplicator(t, "--server-id=2", "--read-only")
	source, db := primary.database(), replica.database()
	source.Exec(t, "CREATE TABLE idempotent_record "+recordTable)

	b := newBench(t, db, benchOptions{})
	port := primary.addr[len("127.0.0.1:"):]
	db.Exec(t, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+", MASTER_USER = 'root', MASTER_DELAY = 0")
	b.poll().absent(t, lag) // it stands still
	db.Exec(t, "START SLAVE")
	testkit.Eventually(t, 20*time.Second, func() bool { _, told := b.poll()[lag]; return told }, "the replica tells its lag: %s", b.log)
	insert(t, source.DB, "pay", completed, "a")
	testkit.Eventually(t, 20*time.Second, func() bool { return b.poll()["idem_records_created_total{biz_type=\"pay\",ledger=\"orders\"}"] == 1 }, "the row arrives")
	b.good().want(t, samples{lag: 0})

	db.Exec(t, "STOP SLAVE")
	b.poll().absent(t, lag)
	db.Exec(t, "CHANGE MASTER TO MASTER_DELAY = 3600")
	db.Exec(t, "START SLAVE")
	insert(t, source.DB, "pay", completed, "b")
	insert(t, source.DB, "pay", completed, "c")
	b.passes(vitalsEvery)
	testkit.Eventually(t, 20*time.Second, func() bool { return b.poll()[lag] >= 1 }, "the replica falls behind")
	b.source.server.mu.Lock()
	behind := b.source.server.vitals.Lag
	b.source.server.mu.Unlock()
	if got := b.source.tails[0].grace(); got < holeGrace+behind || behind <= 0 {
		t.Errorf("holes wait %s while the replica is %s behind", got, behind)
	}
	lint(t, b.registry)
}
