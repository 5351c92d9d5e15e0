package ledger

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

func TestPing(t *testing.T) {
	db := testkit.MySQL(t)
	st, err := openServer(t, db).Ping(soon(t))
	if err != nil || st.Dialect != MariaDB || !strings.Contains(st.Version, "MariaDB") || !near(time.Since(st.DBNow), 0) || st.ReadOnly {
		t.Errorf("%+v %v", st, err)
	}
}

func TestReadOnlyServer(t *testing.T) {
	private := testkit.StartMariaDB(t, servers.MariaDBOptions{Args: []string{"--read-only", "--default-time-zone=+05:30"}})
	s, err := NewServer(ServerOptions{Name: "replica", Socket: private.Socket, Database: "information_schema", User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if st, err := s.Ping(soon(t)); err != nil || !st.ReadOnly {
		t.Errorf("%+v %v", st, err)
	}
	if _, err := s.db.ExecContext(soon(t), "CREATE DATABASE shop"); !isNumber(err, 1792) {
		t.Fatal(err)
	}
	var zone string
	if err := s.db.QueryRowxContext(soon(t), "SELECT @@time_zone").Scan(&zone); err != nil || zone != "+00:00" {
		t.Errorf("the session has the server's time zone %s (%v)", zone, err)
	}
	admin, err := sql.Open("mysql", "root@tcp("+private.Addr+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, q := range []string{"CREATE DATABASE shop", strings.Replace(consumeLog, "TABLE ", "TABLE shop.", 1), "INSERT INTO shop.consume_log VALUES ('a', NOW())"} {
		if _, err := admin.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	l := openLedger(t, s, "shop.consume_log", "consume_log", MappingSpec{BizType: "t"})
	for id, want := range map[string]flow.State{"a": flow.Found, "none": flow.Unknown} {
		if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: id}); f.State != want || !f.Replica || len(f.Coverage) == 0 {
			t.Errorf("%s: %+v", id, f)
		}
	}
}

func TestReplicaByConfiguration(t *testing.T) {
	_, l := records(t, func(o *ServerOptions) { o.Replica = true })
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "none"}); f.State != flow.Unknown || !f.Replica {
		t.Errorf("%+v", f)
	}
}

func TestNoSessionCanWrite(t *testing.T) {
	db, l := records(t, func(o *ServerOptions) { o.MaxConns = 3 })
	insertRecord(t, db, "t", "a", 1)
	s := l.server
	// Three connections at once, so that each is a new one, and a transaction.
	for range 3 {
		conn, err := s.db.Connx(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, q := range []string{
			"INSERT INTO idempotent_record (biz_type, biz_id, create_time, update_time) VALUES ('t', 'b', NOW(), NOW())",
			"UPDATE idempotent_record SET status = 2", "DELETE FROM idempotent_record", "TRUNCATE idempotent_record", "DROP TABLE idempotent_record",
			"CREATE TABLE other (a INT)", "REPLACE INTO idempotent_record (id, biz_type, biz_id, create_time, update_time) VALUES (1, 't', 'b', NOW(), NOW())",
		} {
			if _, err := conn.ExecContext(soon(t), q); !isNumber(err, 1792) {
				t.Errorf("%s: %v", q, err)
			}
		}
		tx, err := conn.BeginTxx(soon(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("DELETE FROM idempotent_record"); !isNumber(err, 1792) {
			t.Errorf("in a transaction: %v", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		var zone, names string
		var limit float64
		var locks, rowLocks int
		q := "SELECT @@time_zone, @@character_set_client, @@max_statement_time, @@lock_wait_timeout, @@innodb_lock_wait_timeout"
		if err := conn.QueryRowxContext(soon(t), q).Scan(&zone, &names, &limit, &locks, &rowLocks); err != nil {
			t.Fatal(err)
		}
		if zone != "+00:00" || names != "utf8mb4" || limit != 10 || locks != lockWait || rowLocks != lockWait {
			t.Errorf("zone %s, names %s, limit %v, locks %d and %d", zone, names, limit, locks, rowLocks)
		}
	}
	var rows int
	if err := db.DB.Get(&rows, "SELECT COUNT(*) FROM idempotent_record WHERE status = 1"); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestTheServerEndsWhatNobodyWaitsFor(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db, func(o *ServerOptions) { o.StatementLimit = time.Second })
	running := func() int {
		var n int
		if err := db.DB.Get(&n, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(60)%'"); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var n sql.NullString
	ctx, cancel := context.WithCancel(soon(t))
	done := make(chan error, 1)
	go func() { done <- s.scan(ctx, statement{text: "SELECT SLEEP(60)"}, []any{&n}, func() {}) }()
	testkit.Eventually(t, 5*time.Second, func() bool { return running() == 1 }, "the statement never ran")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || Explain(err).EN != "the look-up was called off" {
		t.Errorf("%v", err)
	}
	testkit.Eventually(t, 5*time.Second, func() bool { return running() == 0 }, "the statement still runs")
	if err := s.scan(soon(t), statement{text: "SELECT SLEEP(60)"}, []any{&n}, func() {}); !isNumber(err, 1969) || !strings.Contains(Explain(err).EN, "time limit") {
		t.Errorf("%v", err)
	}
}

func TestErrorsAreExplainedWithoutSecrets(t *testing.T) {
	db := testkit.MySQLFull(t)
	db.Exec(t, idempotentRecord)
	db.Exec(t, consumeLog)
	user := "u_" + db.Name
	for _, q := range []string{
		"CREATE USER " + user + " IDENTIFIED BY 'geheim-hunter2'",
		"GRANT SELECT ON " + db.Name + ".idempotent_record TO " + user,
		"GRANT INSERT ON " + db.Name + ".consume_log TO " + user,
	} {
		db.Exec(t, q)
	}
	t.Cleanup(func() { db.Exec(t, "DROP USER "+user) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	as := func(password string, change ...func(*ServerOptions)) *Server {
		base := func(o *ServerOptions) { o.User, o.Password = user, password }
		return openServer(t, db, append([]func(*ServerOptions){base}, change...)...)
	}
	cases := []struct {
		name, want string
		server     *Server
		query      string
	}{
		{"wrong password", "user or password is wrong", as("geheim-wrong"), "SELECT 1"},
		{"unknown database", "may not use the database", as("geheim-hunter2", func(o *ServerOptions) { o.Database = "nowhere" }), "SELECT 1"},
		{"unknown database, privileged", "no such database", openServer(t, db, func(o *ServerOptions) { o.Database = "nowhere" }), "SELECT 1"},
		{"table", "may not read the table", as("geheim-hunter2"), "SELECT 1 FROM nothing"},
		{"table, privileged", "no such table", openServer(t, db), "SELECT 1 FROM nothing"},
		{"column", "no such column", as("geheim-hunter2"), "SELECT nothing FROM idempotent_record"},
		{"denied", "may not read the table", as("geheim-hunter2"), "SELECT 1 FROM consume_log"},
		{"refused", "connection refused: nothing listens at 127.0.0.1:", as("geheim-hunter2", func(o *ServerOptions) { o.Address = nobody }), "SELECT 1"},
		{"no socket", "no socket", as("geheim-hunter2", func(o *ServerOptions) { o.Address, o.Socket = "", filepath.Join(t.TempDir(), "s") }), "SELECT 1"},
		{"tls", "TLS failed", as("geheim-hunter2", func(o *ServerOptions) { o.TLS = &tls.Config{} }), "SELECT 1"},
		{"syntax", "MySQL error 1064", as("geheim-hunter2"), "SELEKT"},
		{"killed", "somebody killed the statement", openServer(t, db), "KILL QUERY CONNECTION_ID()"},
		{"connection killed", "the server ended the connection", openServer(t, db), "KILL CONNECTION_ID()"},
	}
	for _, c := range cases {
		var v sql.NullString
		err := c.server.scan(soon(t), statement{text: c.query}, []any{&v}, func() {})
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		text := Explain(err)
		if !strings.Contains(text.EN, c.want) || text.ZH == "" {
			t.Errorf("%s: %q for %v", c.name, text.EN, err)
		}
		if strings.Contains(err.Error()+text.EN+text.ZH, "geheim") {
			t.Errorf("%s: the password is in %q or %q", c.name, err, text.EN)
		}
	}
	full := Explain(crowd(t, db))
	if !strings.Contains(full.EN, "no connection left") && !strings.Contains(full.EN, "used up its share") {
		t.Errorf("too many connections: %s", full.EN)
	}
}

// crowd opens more connections than one user may have.
func crowd(t *testing.T, db *testkit.Database) error {
	t.Helper()
	user := "c_" + db.Name
	db.Exec(t, "CREATE USER "+user+" WITH MAX_USER_CONNECTIONS 1")
	db.Exec(t, "GRANT SELECT ON "+db.Name+".* TO "+user)
	t.Cleanup(func() { db.Exec(t, "DROP USER "+user) })
	s := openServer(t, db, func(o *ServerOptions) { o.User = user })
	first, err := s.db.Connx(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = s.db.Connx(soon(t))
	return err
}

func TestSelectOnOneTableIsEnough(t *testing.T) {
	db := testkit.MySQLFull(t)
	db.Exec(t, idempotentRecord)
	insertRecord(t, db, "order", "1", 2)
	user := "least_" + db.Name
	db.Exec(t, "CREATE USER "+user+" IDENTIFIED BY 'x'")
	db.Exec(t, "GRANT SELECT ON "+db.Name+".idempotent_record TO "+user)
	t.Cleanup(func() { db.Exec(t, "DROP USER "+user) })
	s := openServer(t, db, func(o *ServerOptions) { o.User, o.Password = user, "x" })
	l := openLedger(t, s, "idempotent_record", "idempotent_record", MappingSpec{})
	if r := one(t, l, "order", "1"); !r.Exact {
		t.Errorf("%+v", r)
	}
	if st, err := s.Ping(soon(t)); err != nil || st.DBNow.IsZero() {
		t.Errorf("%+v %v", st, err)
	}
	for _, p := range l.Check(soon(t)) {
		if p.Severity == SeverityError {
			t.Errorf("%+v", p)
		}
	}
	shard := l.Shards()[0]
	if id, err := shard.MaxID(soon(t)); id != 1 || err != nil {
		t.Errorf("%d %v", id, err)
	}
	if types, _, err := l.Types(soon(t), 10); len(types) != 1 || err != nil {
		t.Errorf("%v %v", types, err)
	}
	if _, err := s.db.ExecContext(soon(t), "DELETE FROM idempotent_record"); err == nil {
		t.Error("it can delete")
	}
}

func TestKilledConnectionsAreReplaced(t *testing.T) {
	db, l := records(t, func(o *ServerOptions) { o.MaxConns = 2 })
	insertRecord(t, db, "t", "a", 1)
	for range 3 {
		one(t, l, "t", "a")
		var ids []int64
		if err := db.DB.Select(&ids, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND ID <> CONNECTION_ID()", db.Name); err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			t.Fatal("no connection to kill")
		}
		for _, id := range ids {
			db.Exec(t, "KILL ?", id)
		}
		testkit.Eventually(t, 5*time.Second, func() bool {
			var n int
			err := db.DB.Get(&n, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = ? AND ID <> CONNECTION_ID()", db.Name)
			return err == nil && n == 0
		}, "the connections live on")
	}
	one(t, l, "t", "a")
}

func TestHangingServer(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, idempotentRecord)
	insertRecord(t, db, "t", "a", 1)
	proxy := testkit.NewProxy(t, db.Addr)
	s := openServer(t, db, func(o *ServerOptions) { o.Address = proxy.Addr })
	l := openLedger(t, s, "idempotent_record", "idempotent_record", MappingSpec{})
	hang := func(when string) {
		proxy.Hang(true)
		start := time.Now()
		f := l.Find(within(t, 300*time.Millisecond), flow.Key{BizType: "t", BizID: "a"})
		// What is told is the wait of the one statement: less than the deadline when the machine was slow to ask.
		told := regexp.MustCompile(`^no answer within ([123])00 ms$`).FindStringSubmatch(f.Reason.EN)
		if f.State != flow.Error || told == nil || f.Reason.ZH != told[1]+"00 毫秒内没有应答" || time.Since(start) > 3*time.Second || f.Took < 300*time.Millisecond {
			t.Errorf("%s: %s %q after %s", when, f.State, f.Reason.EN, time.Since(start))
		}
		proxy.Hang(false)
	}
	hang("while connecting")
	one(t, l, "t", "a")
	hang("while asking")
	one(t, l, "t", "a")
	proxy.Drop(true)
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"}); f.State != flow.Error || f.Reason.Empty() {
		t.Errorf("dropped: %s %s", f.State, f.Reason.EN)
	}
	proxy.Drop(false)
	testkit.Eventually(t, 5*time.Second, func() bool {
		return l.Find(soon(t), flow.Key{BizType: "t", BizID: "a"}).State == flow.Found
	}, "it does not come back")
}
