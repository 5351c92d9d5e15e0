package console

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/answer"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// rig is a console over a real MariaDB, Redis and RabbitMQ, each with a
// password and behind a proxy of its own.
type rig struct {
	*httptest.Server
	db      *testkit.Database
	redis   *redis.Client
	channel *amqp.Channel
	proxies map[string]*testkit.Proxy
	secrets []string
}

// rigDeadline is how long a store may take: a busy machine needs more than production.
const rigDeadline = 5 * time.Second

func newRig(t *testing.T, deadline time.Duration) *rig {
	t.Helper()
	r := &rig{proxies: map[string]*testkit.Proxy{}}
	flows := shopFlows(t)[:2]
	catalog := flow.NewCatalog(flows)
	ledgers := r.mysql(t, deadline)
	records := map[string]dossier.Records{}
	for name, l := range ledgers {
		records[name] = l
	}
	gatherer, err := dossier.NewGatherer(dossier.Options{
		Catalog: catalog, Ledgers: records, Deadline: deadline,
		Redis:   map[string]dossier.Keys{"main": r.openRedis(t, deadline)},
		Brokers: map[string]dossier.Queues{"rabbit": r.rabbit(t, deadline)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = serve(t, Options{
		Desk: answer.NewDesk(answer.Options{Catalog: catalog, Gatherer: gatherer}), Flows: flows,
		Zone: time.FixedZone("+08:00", 8*3600), Version: "0.1.0",
	})
	return r
}

func (r *rig) proxy(t *testing.T, layer, target string) string {
	t.Helper()
	r.proxies[layer] = testkit.NewProxy(t, target)
	return r.proxies[layer].Addr
}

// secret makes a password that can be looked for.
func (r *rig) secret() string {
	password := "pw-" + rand.Text()
	r.secrets = append(r.secrets, password)
	return password
}

// mysql makes the tables, and a user that may read them.
func (r *rig) mysql(t *testing.T, deadline time.Duration) map[string]*ledger.Ledger {
	t.Helper()
	r.db = testkit.MySQLFull(t)
	r.db.Exec(t, "CREATE DATABASE shop")
	t.Cleanup(func() { r.db.Exec(t, "DROP DATABASE shop") })
	user, password := strings.ToLower("reader"+rand.Text()[:8]), r.secret()
	for _, table := range []string{"idempotent_record", "points_record"} {
		collation := "utf8mb4_nopad_bin"
		if table == "points_record" {
			collation = "utf8mb4_general_ci"
		}
		r.db.Exec(t, `CREATE TABLE shop.`+table+` (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,
			status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, UNIQUE KEY uk_biz (biz_type, biz_id)) CHARACTER SET utf8mb4 COLLATE `+collation)
	}
	r.db.Exec(t, "CREATE USER `"+user+"`@`%` IDENTIFIED BY '"+password+"'")
	r.db.Exec(t, "GRANT SELECT ON shop.* TO `"+user+"`@`%`")
	t.Cleanup(func() { r.db.Exec(t, "DROP USER `"+user+"`@`%`") })
	server, err := ledger.NewServer(ledger.ServerOptions{
		Name: "main", Address: r.proxy(t, "mysql", r.db.Addr), Database: "shop", User: user, Password: password, StatementLimit: deadline,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	mapping, err := ledger.NewMapping("idempotent_record", ledger.MappingSpec{})
	if err != nil {
		t.Fatal(err)
	}
	ledgers := map[string]*ledger.Ledger{}
	for name, table := range map[string]string{"orders": "idempotent_record", "points": "points_record"} {
		if ledgers[name], err = ledger.New(ledger.Options{Name: name, Server: server, Table: table, Mapping: mapping}); err != nil {
			t.Fatal(err)
		}
	}
	return ledgers
}

func (r *rig) openRedis(t *testing.T, deadline time.Duration) *lockstore.Store {
	t.Helper()
	password := r.secret()
	server := testkit.StartRedis(t, "--requirepass", password)
	r.redis = redis.NewClient(&redis.Options{Addr: server.Addr, Password: password, DisableIdentity: true})
	t.Cleanup(func() { _ = r.redis.Close() })
	store, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{r.proxy(t, "redis", server.Addr)}, Password: password, Timeout: deadline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// rabbit declares the queues of the payments flow.
func (r *rig) rabbit(t *testing.T, deadline time.Duration) *rabbitmq.Broker {
	t.Helper()
	vhost := testkit.RabbitMQ(t)
	connection, err := amqp.Dial(vhost.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if r.channel, err = connection.Channel(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"order.paid", "order.paid.retry", "order.paid.dlq"} {
		if _, err := r.channel.QueueDeclare(name, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.secrets = append(r.secrets, vhost.MonitorPassword, vhost.AdminPassword)
	management, err := url.Parse(vhost.Management)
	if err != nil {
		t.Fatal(err)
	}
	b, err := rabbitmq.New(rabbitmq.Options{
		Name: "rabbit", Management: "http://" + r.proxy(t, "broker", management.Host), Vhost: vhost.Name,
		User: vhost.Monitor, Password: vhost.MonitorPassword, Timeout: deadline,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// record writes one row whose last sign of life is age ago.
func (r *rig) record(t *testing.T, table, bizType, bizID string, status int, age time.Duration) {
	t.Helper()
	r.db.Exec(t, `INSERT INTO shop.`+table+` (biz_type, biz_id, status, create_time, update_time)
		VALUES (?, ?, ?, UTC_TIMESTAMP() - INTERVAL ? SECOND, UTC_TIMESTAMP() - INTERVAL ? SECOND)`,
		bizType, bizID, status, int(age.Seconds())+2, int(age.Seconds()))
}

func (r *rig) setRedis(t *testing.T, key, value string, ttl time.Duration) {
	t.Helper()
	if err := r.redis.Set(t.Context(), key, value, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

// publish puts messages into a queue and waits until the totals show them.
func (r *rig) publish(t *testing.T, queue string, n int) {
	t.Helper()
	for range n {
		if err := r.channel.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
}

// lookup returns the page and the JSON of a key.
func (r *rig) lookup(t *testing.T, bizType, bizID string) (reply, document) {
	t.Helper()
	got := get(t, r.URL+keyPath(bizType, bizID))
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%s / %s: %d", bizType, shown(bizID), got.StatusCode)
	}
	return got, got.document(t)
}
