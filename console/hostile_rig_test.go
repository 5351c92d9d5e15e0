package console

import (
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

const (
	// oddQueue is a queue's name; brokers take any text.
	oddQueue    = "=1+1<b>`x`</b>|\"'[q](http://evil)"
	hostileFlow = "hostile"
	hostileType = "=t<i>`"
)

// hostileRig is a console over stores whose every text comes from whoever writes
// messages: ids, lock values, results, workers, the name of a queue.
type hostileRig struct {
	desk    *answer.Desk
	flows   []flow.Flow
	catalog *flow.Catalog
	db      *testkit.Database
	redis   *redis.Client
}

func newHostileRig(t *testing.T) *hostileRig {
	t.Helper()
	r := &hostileRig{db: testkit.MySQL(t)}
	template := func(text string) flow.Template {
		parsed, err := flow.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	r.flows = []flow.Flow{{
		Name: hostileFlow, BizTypes: []string{hostileType, "plain"}, Ledger: "orders", StaleAfter: time.Minute, OnProcessing: flow.Refuse,
		Lock:   &flow.RedisKey{Redis: "main", Template: template("idem_lock:{biz_type}:{biz_id}"), TTL: time.Hour},
		Marker: &flow.RedisKey{Redis: "main", Template: template("idempotent:{biz_type}:{biz_id}"), TTL: 24 * time.Hour},
		Queue:  &flow.Queue{Broker: "rabbit", Name: oddQueue},
	}}
	r.catalog = flow.NewCatalog(r.flows)
	db := testkit.Redis(t)
	r.redis = db.Client
	store, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{db.Addr}, DB: db.DB, Timeout: rigDeadline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	gatherer, err := dossier.NewGatherer(dossier.Options{
		Catalog: r.catalog, Deadline: rigDeadline,
		Ledgers: map[string]dossier.Records{"orders": r.ledger(t)},
		Redis:   map[string]dossier.Keys{"main": store},
		Brokers: map[string]dossier.Queues{"rabbit": r.broker(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.desk = answer.NewDesk(answer.Options{Catalog: r.catalog, Gatherer: gatherer})
	return r
}

// ledger makes a table that keeps any bytes.
func (r *hostileRig) ledger(t *testing.T) *ledger.Ledger {
	t.Helper()
	r.db.Exec(t, `CREATE TABLE hostile (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARBINARY(700) NOT NULL, biz_type VARBINARY(64) NOT NULL,
		status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, result LONGBLOB, worker LONGBLOB, UNIQUE KEY uk_biz (biz_type, biz_id))`)
	server, err := ledger.NewServer(ledger.ServerOptions{
		Name: "main", Address: r.db.Addr, Database: r.db.Name, User: r.db.User, Password: r.db.Password, StatementLimit: rigDeadline,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	mapping, err := ledger.NewMapping("idempotent_record", ledger.MappingSpec{Columns: map[string]string{"result": "result", "worker": "worker"}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(ledger.Options{Name: "orders", Server: server, Table: "hostile", Mapping: mapping})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *hostileRig) broker(t *testing.T) *rabbitmq.Broker {
	t.Helper()
	vhost := testkit.RabbitMQ(t)
	connection, err := amqp.Dial(vhost.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.QueueDeclare(oddQueue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	b, err := rabbitmq.New(rabbitmq.Options{
		Name: "rabbit", Management: vhost.Management, Vhost: vhost.Name, User: vhost.Monitor, Password: vhost.MonitorPassword, Timeout: rigDeadline,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// put writes the text wherever a store keeps one of this key: its record, which has
// been silent for an hour, the value of its marker, and its result and worker. A text
// that the id column cannot hold stands in the other places of an id that it can.
func (r *hostileRig) put(t *testing.T, text string) flow.Key {
	t.Helper()
	k := flow.Key{BizType: hostileType, BizID: text}
	if len(text) > 700 {
		k.BizID = "long"
	}
	r.db.Exec(t, `INSERT INTO hostile (biz_type, biz_id, status, create_time, update_time, result, worker)
		VALUES (?, ?, 1, UTC_TIMESTAMP() - INTERVAL 2 HOUR, UTC_TIMESTAMP() - INTERVAL 1 HOUR, ?, ?)`, k.BizType, []byte(k.BizID), []byte(text), []byte(text))
	if err := r.redis.Set(t.Context(), r.flows[0].Marker.Render(k), text, 3*time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	return k
}
