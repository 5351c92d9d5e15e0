package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// slowHouse is one completed key in three real stores, each behind a proxy.
type slowHouse struct {
	config               string
	mysql, redis, rabbit *testkit.Proxy
}

func newSlowHouse(t *testing.T) slowHouse {
	t.Helper()
	db, redis, rabbit := testkit.MySQL(t), testkit.Redis(t), testkit.RabbitMQ(t)
	db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL,
		biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
		UNIQUE KEY uk_biz (biz_type, biz_id))`)
	db.Exec(t, `INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time) VALUES ('ORD-1', 'pay', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())`)
	declareQueue(t, rabbit.AMQP, "pay")
	h := slowHouse{
		config: filepath.Join(t.TempDir(), "idemscope.yaml"),
		mysql:  testkit.NewProxy(t, db.Addr), redis: testkit.NewProxy(t, redis.Addr),
		rabbit: testkit.NewProxy(t, strings.TrimPrefix(rabbit.Management, "http://")),
	}
	text := fmt.Sprintf(`
mysql:
  main: {address: %q, database: %q, user: %q, password: %q}
redis:
  main: {addresses: [%q], db: %d}
brokers:
  rabbit: {type: rabbitmq, management: "http://%s", vhost: %q, user: %q, password: %q}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
flows:
  payments:
    biz_types: [pay]
    ledger: orders
    lock: {redis: main, key: "idem_lock:{biz_type}:{biz_id}", ttl: 15s}
    marker: {redis: main, key: "idempotent:{biz_type}:{biz_id}", ttl: 24h}
    queue: {broker: rabbit, name: pay}
console: {lookup_timeout: 2s}
`, h.mysql.Addr, db.Name, db.User, db.Password, h.redis.Addr, redis.DB, h.rabbit.Addr, rabbit.Name, rabbit.Monitor, rabbit.MonitorPassword)
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func declareQueue(t *testing.T, address, name string) {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

func (h slowHouse) lookup(t *testing.T) answer.JSON {
	t.Helper()
	var out bytes.Buffer
	if _, err := Lookup(t.Context(), LookupOptions{Config: h.config, Words: []string{"pay", "ORD-1"}, JSON: true, Language: flow.English, Out: &out}); err != nil {
		t.Fatal(err)
	}
	var a answer.JSON
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestALookUpTakesAsLongAsItsSlowestStore delays every answer of every store.
// Asked in turn, the look-up would take the sum of what the layers took.
func TestALookUpTakesAsLongAsItsSlowestStore(t *testing.T) {
	h := newSlowHouse(t)
	for _, p := range []*testkit.Proxy{h.mysql, h.redis, h.rabbit} {
		p.Delay(60 * time.Millisecond)
	}
	a := h.lookup(t)
	slowest, sum := 0.0, 0.0
	for _, took := range []float64{a.Record.Took, a.Lock.Took, a.Broker.Took} {
		if took < 0.06 {
			t.Fatalf("a layer took %.3f s although every answer is delayed by 0.06 s", took)
		}
		slowest, sum = max(slowest, took), sum+took
	}
	t.Logf("broker %.3f s, lock %.3f s, record %.3f s; look-up %.3f s", a.Broker.Took, a.Lock.Took, a.Record.Took, a.Took)
	if a.Took < slowest || a.Took > slowest+(sum-slowest)/2 {
		t.Errorf("the look-up took %.3f s; its slowest layer %.3f s, all together %.3f s", a.Took, slowest, sum)
	}
	if a.Verdict.Code != "completed" {
		t.Errorf("verdict %s: %s", a.Verdict.Code, a.Verdict.Sentence)
	}
}

// TestOneHangingStoreCostsItsDeadline hangs each store in turn; the others are
// still shown, and the look-up ends.
func TestOneHangingStoreCostsItsDeadline(t *testing.T) {
	h := newSlowHouse(t)
	tests := map[string]struct {
		proxy   *testkit.Proxy
		verdict string
		hanging func(answer.JSON) flow.State
		others  func(answer.JSON) []flow.State
	}{
		"mysql":    {h.mysql, "unknown", recordState, func(a answer.JSON) []flow.State { return []flow.State{a.Lock.State, a.Broker.State} }},
		"redis":    {h.redis, "completed", func(a answer.JSON) flow.State { return a.Lock.State }, func(a answer.JSON) []flow.State { return []flow.State{a.Record.State, a.Broker.State} }},
		"rabbitmq": {h.rabbit, "completed", func(a answer.JSON) flow.State { return a.Broker.State }, func(a answer.JSON) []flow.State { return []flow.State{a.Record.State, a.Lock.State} }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.proxy.Hang(true)
			defer tt.proxy.Hang(false)
			a := h.lookup(t)
			if string(a.Verdict.Code) != tt.verdict || tt.hanging(a) != flow.Error {
				t.Errorf("verdict %s, hanging layer %s", a.Verdict.Code, tt.hanging(a))
			}
			for _, state := range tt.others(a) {
				if state == flow.Error {
					t.Errorf("another layer failed too: %+v", tt.others(a))
				}
			}
			if a.Took > 2.5 {
				t.Errorf("took %.2f s with a deadline of 2 s", a.Took)
			}
		})
	}
}

func recordState(a answer.JSON) flow.State { return a.Record.State }
