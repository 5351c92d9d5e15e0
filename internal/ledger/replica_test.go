package ledger

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// startPair makes a primary with a table of records and a replica of it.
func startPair(t *testing.T) (primary, replica *testkit.Database) {
	t.Helper()
	start := func(args ...string) *testkit.Database {
		server := testkit.StartMariaDB(t, servers.MariaDBOptions{Grants: true, Args: args})
		db, err := sql.Open("mysql", "root@tcp("+server.Addr+")/")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return &testkit.Database{Addr: server.Addr, Name: "shop", User: "root", DB: sqlx.NewDb(db, "mysql"), Pid: server.Pid}
	}
	primary, replica = start("--log-bin=log", "--server-id=1"), start("--server-id=2", "--read-only")
	port := primary.Addr[strings.LastIndex(primary.Addr, ":")+1:]
	replica.Exec(t, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+", MASTER_USER = 'root'")
	replica.Exec(t, "START SLAVE")
	t.Cleanup(func() { replica.Exec(t, "STOP SLAVE") })
	primary.Exec(t, "CREATE DATABASE shop")
	primary.Exec(t, strings.Replace(idempotentRecord, "idempotent_record", "shop.idempotent_record", 1))
	put(t, primary, "first")
	return primary, replica
}

func put(t testing.TB, db *testkit.Database, id string) {
	t.Helper()
	db.Exec(t, "INSERT INTO shop.idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('order', ?, 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())", id)
}

func TestALookUpOnAReplicaTellsItsLag(t *testing.T) {
	primary, replica := startPair(t)
	l := openLedger(t, openServer(t, replica), "idempotent_record", "idempotent_record", MappingSpec{})
	look := func(id string) Found { return l.Find(soon(t), flow.Key{BizType: "order", BizID: id}) }
	testkit.Eventually(t, 60*time.Second, func() bool { return look("first").State == flow.Found }, "the row does not arrive")
	testkit.Eventually(t, 60*time.Second, func() bool { f := look("first"); return f.Replica && f.LagKnown && f.Lag == 0 }, "the replica does not say that it is up to date")
	if f := look("none"); f.State != flow.Unknown || !f.Replica {
		t.Errorf("absent on a replica: %s", f.State)
	}

	replica.Exec(t, "STOP SLAVE")
	testkit.Eventually(t, 60*time.Second, func() bool { return !look("first").LagKnown }, "a replica that stands still tells a lag")
	replica.Exec(t, "CHANGE MASTER TO MASTER_DELAY = 3600")
	replica.Exec(t, "START SLAVE")
	put(t, primary, "second")
	testkit.Eventually(t, 60*time.Second, func() bool { f := look("second"); return f.State == flow.Unknown && f.LagKnown && f.Lag >= time.Second }, "the lag does not grow")

	primaryLedger := openLedger(t, openServer(t, primary), "idempotent_record", "idempotent_record", MappingSpec{})
	if f := primaryLedger.Find(soon(t), flow.Key{BizType: "order", BizID: "second"}); f.State != flow.Found || f.Replica || f.LagKnown {
		t.Errorf("the primary: %s, replica %v, lag %s %v", f.State, f.Replica, f.Lag, f.LagKnown)
	}
}

// A hundred look-ups of one second share one question for the lag.
func TestTheLagIsAskedOnceASecond(t *testing.T) {
	db, l := records(t, func(o *ServerOptions) { o.Replica = true })
	asked := func() (n int) {
		q := "SELECT CAST(SUM(VARIABLE_VALUE) AS INT) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE 'COM_SHOW_SLAVE_STATUS' OR VARIABLE_NAME LIKE 'COM_SHOW_ALL_SLAVES_STATUS'"
		if err := db.DB.Get(&n, q); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, start := asked(), time.Now()
	const looks = 200
	for range looks {
		if f := l.Find(soon(t), flow.Key{BizType: "order", BizID: "none"}); f.LagKnown || f.State != flow.Unknown {
			t.Fatalf("%s, lag %s", f.State, f.Lag)
		}
	}
	seconds := int(time.Since(start)/freshLag) + 1
	if n := asked() - before; n < 1 || n > seconds {
		t.Errorf("asked %d times in %d seconds", n, seconds)
	}
}
