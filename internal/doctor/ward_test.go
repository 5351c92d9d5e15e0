package doctor

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience is what one question to a store may take here: a busy machine may need it.
const patience = 10 * time.Second

const (
	soundColumns = `id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
		biz_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, biz_type VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
		status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL`
	soundTable = "(" + soundColumns + ", UNIQUE KEY uk_biz (biz_type, biz_id))"
)

// ward is a MySQL with a reading user, to which a test adds what it needs.
type ward struct {
	*testkit.Database
	// user and password are those of the reading user.
	user, password string
	server         *ledger.Server
	opts           Options
}

// newWard has one ledger, orders, and one flow, payments, for the type pay. Its
// consumers count. The table is made with ddl.
func newWard(t testing.TB, ddl string) *ward {
	t.Helper()
	db := testkit.MySQLFull(t)
	user, password := "reader_"+strings.ToLower(rand.Text()[:8]), rand.Text()
	db.Exec(t, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", user, password))
	db.Exec(t, fmt.Sprintf("GRANT SELECT ON `%s`.* TO '%s'@'%%'", db.Name, user))
	db.Exec(t, fmt.Sprintf("GRANT SLAVE MONITOR ON *.* TO '%s'@'%%'", user))
	t.Cleanup(func() {
		if _, err := db.DB.Exec(fmt.Sprintf("DROP USER '%s'@'%%'", user)); err != nil {
			t.Error(err)
		}
	})
	w := &ward{Database: db, user: user, password: password}
	if ddl != "" {
		db.Exec(t, "CREATE TABLE idempotent_record "+ddl)
	}
	w.opts = Options{
		Flows: []flow.Flow{{
			Name: "payments", BizTypes: []string{"pay"}, Ledger: "orders", StaleAfter: 5 * time.Minute,
			OnProcessing: flow.Retry, Rerun: flow.RerunManual,
		}},
		Ledgers:        map[string]*ledger.Ledger{},
		Redis:          map[string]*lockstore.Store{},
		Brokers:        map[string]Broker{},
		CountersSource: "main",
	}
	w.count(lockstore.TypeCounters{})
	w.reconnect(t)
	if ddl == soundTable {
		w.record(t, "pay", "seen-1", 2)
	}
	return w
}

// reconnect opens the ledger anew: servers keep what a user might do when it connected.
func (w *ward) reconnect(t testing.TB) {
	t.Helper()
	w.server = openServer(t, ledger.ServerOptions{Address: w.Addr, Database: w.Name, User: w.user, Password: w.password})
	w.addLedger(t, "orders", "idempotent_record", "idempotent_record", ledger.MappingSpec{})
}

func openServer(t testing.TB, o ledger.ServerOptions) *ledger.Server {
	t.Helper()
	o.Name, o.StatementLimit = "main", patience
	s, err := ledger.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (w *ward) addLedger(t testing.TB, name, table, preset string, spec ledger.MappingSpec) {
	t.Helper()
	m, err := ledger.NewMapping(preset, spec)
	if err != nil {
		t.Fatal(err)
	}
	if w.opts.Ledgers[name], err = ledger.New(ledger.Options{Name: name, Server: w.server, Table: table, Mapping: m}); err != nil {
		t.Fatal(err)
	}
}

func (w *ward) record(t testing.TB, bizType, bizID string, status int) {
	t.Helper()
	w.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES (?, ?, ?, UTC_TIMESTAMP(), UTC_TIMESTAMP())", bizType, bizID, status)
}

// count makes the consumers have counted this; a zero count has no type.
func (w *ward) count(types ...lockstore.TypeCounters) {
	types = slices.DeleteFunc(types, func(c lockstore.TypeCounters) bool { return c.BizType == "" })
	w.opts.Counters = func(context.Context) (lockstore.Counters, error) { return lockstore.Counters{Types: types}, nil }
}

// flow is the only flow of the ward.
func (w *ward) flow() *flow.Flow { return &w.opts.Flows[0] }

// examine makes the report, and checks what holds for every report.
func (w *ward) examine(t testing.TB) Report {
	t.Helper()
	d, err := New(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	r := d.Examine(t.Context())
	for _, p := range r.Problems {
		for _, text := range []flow.Text{p.Title, p.Why, p.Seen, p.Fix} {
			if text.EN == "" || text.ZH == "" || strings.Contains(text.EN+text.ZH, "%!") {
				t.Errorf("%s: %+v", p.Code, text)
			}
		}
	}
	return r
}

// words lists problems as "code kind name".
func words(r Report) (list []string) {
	for _, p := range r.Problems {
		list = append(list, fmt.Sprintf("%s %s %s", p.Code, p.Subject.Kind, p.Subject.Name))
	}
	slices.Sort(list)
	return list
}

// wantProblems fails the test unless exactly these are there and everything
// could be told.
func wantProblems(t testing.TB, r Report, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := words(r); !slices.Equal(got, want) {
		t.Errorf("problems\n got  %q\n want %q", got, want)
		for _, p := range r.Problems {
			t.Logf("%s: %s", p.Code, p.Seen.EN)
		}
	}
	for _, u := range r.Unsure {
		t.Errorf("could not be told: %s %v: %s", u.Code, u.Subject, u.Reason.EN)
	}
	for _, p := range r.Problems {
		if i := slices.IndexFunc(r.Fine, func(f Passed) bool { return f.Code == p.Code && f.Subject == p.Subject }); i >= 0 {
			t.Errorf("%s is a problem and fine", p.Code)
		}
	}
}

// problem returns the one problem of that code.
func problem(t testing.TB, r Report, code string) Problem {
	t.Helper()
	for _, p := range r.Problems {
		if p.Code == code {
			return p
		}
	}
	t.Fatalf("no problem %s among %q", code, words(r))
	return Problem{}
}

// isFine reports whether the check was made for some subject and found nothing.
func isFine(r Report, code string) bool {
	return slices.ContainsFunc(r.Fine, func(p Passed) bool { return p.Code == code })
}

// startMaster starts a Redis that is fit to hold locks: a password, an
// append-only file, a replica. It returns it with a client that may do everything.
func startMaster(t testing.TB, args ...string) (*servers.Redis, *redis.Client) {
	t.Helper()
	master := testkit.StartRedis(t, append([]string{"--requirepass", "pass-of-all", "--masterauth", "pass-of-all", "--appendonly", "yes"}, args...)...)
	host, port, _ := strings.Cut(master.Addr, ":")
	testkit.StartRedis(t, "--replicaof", host, port, "--masterauth", "pass-of-all")
	client := redis.NewClient(&redis.Options{Addr: master.Addr, Password: "pass-of-all", DisableIdentity: true})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, 20*time.Second, func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "connected_slaves:1")
	}, "the replica does not connect")
	do(t, client, append([]any{"ACL", "SETUSER", "observer", "on", ">pass-of-observer", "%R~*"}, toAny(strings.Fields(reading+" +config|get +acl|getuser"))...)...)
	return master, client
}

func toAny(words []string) (out []any) {
	for _, w := range words {
		out = append(out, w)
	}
	return out
}

func do(t testing.TB, client *redis.Client, args ...any) {
	t.Helper()
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// addRedis makes a store the ward's main Redis, with a lock and a marker of the flow in it.
func (w *ward) addRedis(t testing.TB, o lockstore.Options) *lockstore.Store {
	t.Helper()
	o.Name, o.Timeout = "main", patience
	s, err := lockstore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.opts.Redis["main"] = s
	w.flow().Lock = redisKey(t, "idem_lock:{biz_type}:{biz_id}", 15*time.Second)
	w.flow().Marker = redisKey(t, "idempotent:{biz_type}:{biz_id}", 24*time.Hour)
	return s
}

func redisKey(t testing.TB, template string, ttl time.Duration) *flow.RedisKey {
	t.Helper()
	parsed, err := flow.ParseTemplate(template)
	if err != nil {
		t.Fatal(err)
	}
	return &flow.RedisKey{Redis: "main", Template: parsed, TTL: ttl}
}

// addBroker gives the flow a queue order.paid with order.paid.dlq, of which
// nothing is declared. It returns a channel with all rights.
func (w *ward) addBroker(t testing.TB, change func(*rabbitmq.Options)) (*testkit.Vhost, *amqp.Channel) {
	t.Helper()
	v := testkit.RabbitMQ(t)
	o := rabbitmq.Options{Name: "rabbit", Management: v.Management, Vhost: v.Name, User: v.Monitor, Password: v.MonitorPassword, Timeout: patience}
	if change != nil {
		change(&o)
	}
	b, err := rabbitmq.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	w.opts.Brokers["rabbit"] = b
	w.flow().Queue = &flow.Queue{Broker: "rabbit", Name: "order.paid", DeadLetter: "order.paid.dlq"}
	conn, err := amqp.Dial(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return v, ch
}

func declare(t testing.TB, ch *amqp.Channel, name string, args amqp.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// sound are the arguments of a work queue whose dead letters go to the flow's queue for them.
func sound(more amqp.Table) amqp.Table {
	args := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "order.paid.dlq"}
	for name, value := range more {
		args[name] = value
	}
	return args
}

func serverOptions(address string) ledger.ServerOptions {
	return ledger.ServerOptions{Address: address, Database: "shop", User: "reader", Password: "secret-of-reader"}
}
