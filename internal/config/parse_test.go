package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
)

func TestDefaults(t *testing.T) {
	c := mustParse(t, minimal(""), nil)
	want := &Config{
		Listen:   "127.0.0.1:9877",
		TimeZone: time.UTC,
		MySQL:    []MySQL{{Name: "main", Address: "127.0.0.1:3306", Database: "shop", User: "idemscope", TimeZone: time.UTC, MaxConnections: 4}},
		Redis:    []Redis{{Name: "main", Addresses: []string{"127.0.0.1:6379"}, Mode: RedisSingle}},
		Brokers:  []Broker{{Name: "rabbit", Type: RabbitMQ, Management: "http://127.0.0.1:15672", Vhost: "/", User: "monitor"}},
		Ledgers:  []Ledger{{Name: "orders", MySQL: "main", Table: "idempotent_record", Preset: "idempotent_record"}},
		Flows:    []flow.Flow{{Name: "payments", BizTypes: []string{"order_paid"}, Ledger: "orders", StaleAfter: 5 * time.Minute, OnProcessing: flow.Refuse, Rerun: flow.RerunManual}},
		Console:  Console{LookupTimeout: time.Second, Audit: "idemscope-audit.jsonl"},
		Exporter: Exporter{Interval: 5 * time.Second, Lookback: 24 * time.Hour, MaxBizTypes: 200, Findings: Findings{PerSecond: 20}, Sweep: Sweep{KeysPerSecond: 2000, Pause: time.Minute}},
		file:     c.file,
		places:   c.places,
	}
	if !reflect.DeepEqual(c, want) {
		t.Fatalf("got\n%+v\nwant\n%+v", c, want)
	}
}

// The example shows every key, and what it shows is what it sets.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("../../examples/idemscope.yaml")
	if err != nil {
		t.Fatal(err)
	}
	env := environment(map[string]string{"MYSQL_PASSWORD": "m", "RABBIT_PASSWORD": "r"})
	c, err := Parse("examples/idemscope.yaml", data, env, noFile)
	if err != nil {
		t.Fatal(err)
	}
	m := c.MySQL[0]
	if _, offset := time.Date(2025, 1, 1, 0, 0, 0, 0, m.TimeZone).Zone(); m.Password.Reveal() != "m" || offset != 8*3600 || m.TLS != nil {
		t.Errorf("mysql: %+v", m)
	}
	if got := c.Ledgers[2].Status["failed"]; !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("status words: %q", got)
	}
	wantQueue := flow.Queue{Broker: "rabbit", Name: "order.paid", Retry: []string{"order.paid.retry"}, DeadLetter: "order.paid.dlq", IDField: "biz_id", TypeField: "biz_type", AckTimeout: 30 * time.Minute}
	if q := c.Flows[0].Queue; !reflect.DeepEqual(*q, wantQueue) {
		t.Errorf("queue: %+v", q)
	}
	wantSame(t, c)
	for _, key := range strings.Fields(`listen web_config time_zone mysql redis brokers ledgers flows counters console exporter
		address socket database user password password_file replica max_connections tls
		ca_file cert_file key_file server_name insecure_skip_verify
		addresses db mode master_name sentinel_user sentinel_password key_prefix type management vhost
		table preset biz_type biz_id columns status biz_types ledger lock marker queue key ttl renewed
		broker name retry dead_letter id json ack_timeout stale_after on_processing rerun
		prefix trail archive language lookup_timeout interval lookback max_biz_types findings per_second
		sweep keys_per_second pause lock_expirations key_rule grafana
		environment path_prefix auth passwords_file oidc issuer client_id client_secret redirect_url name_claim groups_claim scopes
		proxy header groups_header from session session_key_file roles viewer payload operator mask json patterns`) {
		if !strings.Contains(string(data), key+":") {
			t.Errorf("the example does not show %s", key)
		}
	}
}

func TestCatalog(t *testing.T) {
	c := mustParse(t, `
redis:
  main: {addresses: ["127.0.0.1:6379"], key_prefix: "shop:"}
flows:
  signs: {biz_types: ["*"], ledger: signs}
  rest: {biz_types: ["*"], ledger: orders, lock: {redis: main, key: "{{biz_id}}:{biz_type}"}, key_rule: "id: <order no>, as it is\n"}
  payments: {biz_types: [order_paid, " Order "], ledger: orders, marker: {redis: main, key: "m:{biz_id}", ttl: 1h30m}, stale_after: 1s, on_processing: resume, rerun: never}
ledgers:
  orders: {mysql: main, table: idempotent_record}
  signs: {mysql: main, table: sign, biz_type: sign, biz_id: "{user_id}:{sign_date}"}
mysql: {main: {socket: /run/mysqld/mysqld.sock, database: shop, user: idemscope}}
counters: {redis: main, prefix: "app:"}
console: {grafana: "https://grafana.example.com/sub/"}
`, nil)
	flows := c.Catalog()
	if flows[1].KeyRule != "id: <order no>, as it is\n" {
		t.Errorf("key rule: %q", flows[1].KeyRule)
	}
	if c.Console.Grafana != "https://grafana.example.com/sub" {
		t.Errorf("grafana: %q", c.Console.Grafana)
	}
	if names := []string{flows[0].Name, flows[1].Name, flows[2].Name}; !slices.Equal(names, []string{"signs", "rest", "payments"}) {
		t.Fatalf("order of the flows: %v", names)
	}
	if f := flows[0]; f.Rest || !slices.Equal(f.BizTypes, []string{"sign"}) {
		t.Errorf(`"*" of a ledger with one biz_type: %+v`, f)
	}
	if f := flows[1]; !f.Rest || f.BizTypes != nil {
		t.Errorf(`"*": %+v`, f)
	}
	key := flow.Key{BizType: "order_paid", BizID: "7"}
	if got := flows[1].Lock.Render(key); got != "shop:{7}:order_paid" {
		t.Errorf("lock key %q", got)
	}
	if f := flows[2]; f.Marker.Render(key) != "shop:m:7" || f.Marker.TTL != 90*time.Minute || f.StaleAfter != time.Second || f.OnProcessing != flow.Resume || f.Rerun != flow.RerunNever {
		t.Errorf("payments: %+v, marker %+v", f, f.Marker)
	}
	if got := flows[2].BizTypes; !slices.Equal(got, []string{"order_paid", " Order "}) {
		t.Errorf("biz_types are not kept as they are: %q", got)
	}
	if got := c.Counters.Prefix; got != "shop:app:" {
		t.Errorf("prefix of the counters: %q", got)
	}
	flows[0].Name = "changed"
	if c.Catalog()[0].Name != "signs" {
		t.Error("the catalog is not a copy")
	}
}

// Two ledgers may hold the same biz_type, and each may have a rest.
func TestLedgersDoNotShareBizTypes(t *testing.T) {
	text := strings.Replace(minimal(`  others: {biz_types: ["*"], ledger: orders}
  old: {biz_types: [order_paid], ledger: old}
  old_rest: {biz_types: ["*"], ledger: old}
`), "ledgers:\n", "ledgers:\n  old: {mysql: main, table: idempotent_record_old}\n", 1)
	if flows := mustParse(t, text, nil).Catalog(); len(flows) != 4 || !flows[1].Rest || !flows[3].Rest {
		t.Fatalf("got %+v", flows)
	}
}

func TestAt(t *testing.T) {
	c := mustParse(t, minimal("exporter:\n  interval: 5s\n"), nil)
	for path, want := range map[string]string{
		"":                            "test.yaml:1:1",
		"mysql":                       "test.yaml:1:1",
		"mysql.main":                  "test.yaml:2:3",
		"mysql.main.address":          "test.yaml:2:10",
		"ledgers.orders.preset":       "test.yaml:8:51",
		"ledgers.orders.columns.id":   "test.yaml:8:3",
		"flows.payments.biz_types":    "test.yaml:10:14",
		"flows.payments.biz_types[0]": "test.yaml:10:26",
		"flows.payments.biz_types[9]": "test.yaml:10:14",
		"exporter.interval":           "test.yaml:12:3",
		"exporter.lookback":           "test.yaml:11:1",
		"nothing.at.all":              "test.yaml:1:1",
	} {
		if got := c.At(path); got != want {
			t.Errorf("At(%q) is %s, want %s", path, got, want)
		}
	}
}

func TestListen(t *testing.T) {
	for listen, open := range map[string]bool{
		"127.0.0.1:0":              false,
		"127.8.9.1:9877":           false,
		"[::1]:9877":               false,
		"[::ffff:127.0.0.1]:9877":  false,
		"localhost:9877":           false,
		"LOCALHOST:9877":           false,
		":9877":                    true,
		"0.0.0.0:9877":             true,
		"[::]:9877":                true,
		"192.168.0.1:9877":         true,
		"localhost.example.com:80": true,
	} {
		text := minimal("listen: \"" + listen + "\"\n")
		if _, err := parse(text, nil); (err != nil) != open {
			t.Errorf("listen %s: %v", listen, err)
		}
		c, err := Parse("/etc/idemscope/idemscope.yaml", []byte(text+"web_config: web.yaml\n"), environment(nil), files(map[string]string{"/etc/idemscope/web.yaml": "basic_auth_users: {ops: x}"}))
		if err != nil || c.Listen != listen || c.WebConfig != "/etc/idemscope/web.yaml" {
			t.Errorf("listen %s with web_config: %v, %+v", listen, err, c)
		}
	}
}

func TestTimeZones(t *testing.T) {
	for text, offset := range map[string]int{
		"UTC": 0, "+00:00": 0, "-00:00": 0, "+08:00": 8 * 3600, "-09:30": -(9*3600 + 1800), "+14:00": 14 * 3600, "Asia/Shanghai": 8 * 3600, "America/St_Johns": -(3*3600 + 1800),
	} {
		zone, ok := parseZone(text)
		if !ok {
			t.Errorf("%s is refused", text)
			continue
		}
		if _, got := time.Date(2025, 1, 1, 0, 0, 0, 0, zone).Zone(); got != offset || zone.String() != text {
			t.Errorf("%s: %d seconds, called %s", text, got, zone)
		}
	}
	for _, text := range []string{"+8:00", "+0800", "+14:01", "+08:60", "Local", "SYSTEM", "../UTC", "/etc/localtime", "CST-8 ", "北京"} {
		if zone, ok := parseZone(text); ok {
			t.Errorf("%q is taken as %s", text, zone)
		}
	}
}

func TestRedisModes(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal(""), "redis:\n", `redis:
  group: {addresses: ["a:26379", "b:26379"], mode: sentinel, master_name: mymaster, sentinel_user: s, db: 3}
  cluster: {addresses: ["a:6379"], mode: cluster, db: 0}
`, 1), nil)
	want := []Redis{
		{Name: "group", Addresses: []string{"a:26379", "b:26379"}, Mode: RedisSentinel, MasterName: "mymaster", SentinelUser: "s", DB: 3},
		{Name: "cluster", Addresses: []string{"a:6379"}, Mode: RedisCluster},
		{Name: "main", Addresses: []string{"127.0.0.1:6379"}, Mode: RedisSingle},
	}
	if !reflect.DeepEqual(c.Redis, want) {
		t.Fatalf("got %+v", c.Redis)
	}
}

func TestAnchorsAndMerges(t *testing.T) {
	c := mustParse(t, `
mysql:
  main: &server
    address: "127.0.0.1:3306"
    database: &database shop
    user: idemscope
  archive:
    <<: *server
    database: archive
  copy: {<<: [{user: other}, *server], socket: "", database: *database}
ledgers:
  orders: {mysql: main, table: idempotent_record, status: {completed: [2, "done"]}, columns: {updated: , worker: "-"}}
flows:
  payments: {biz_types: [order_paid], ledger: orders}
`, nil)
	got := []string{}
	for _, m := range c.MySQL {
		got = append(got, m.Name+" "+m.Address+" "+m.Database+" "+m.User)
	}
	if want := []string{"main 127.0.0.1:3306 shop idemscope", "archive 127.0.0.1:3306 archive idemscope", "copy 127.0.0.1:3306 shop other"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	l := c.Ledgers[0]
	if !reflect.DeepEqual(l.Status, map[string][]string{"completed": {"2", "done"}}) || !reflect.DeepEqual(l.Columns, map[string]string{"updated": "", "worker": "-"}) {
		t.Errorf("ledger: %+v", l)
	}
	wantSame(t, c)
}

func TestUnusualSpellings(t *testing.T) {
	c := mustParse(t, `
mysql:
  1:
    address: "127.0.0.1:3306"
    database: >-
      shop
    user: ${USER_NAME}
    password: |-
      two
      ${LINES}
    replica: True
redis:
brokers: ~
ledgers:
  1.5: {mysql: "1", table: idempotent_record}
flows:
  true: {biz_types: [order_paid], ledger: "1.5", lock: , on_processing: "${MODE:-}"}
`, map[string]string{"USER_NAME": "idemscope", "LINES": "lines"})
	m := c.MySQL[0]
	if m.Name != "1" || m.Database != "shop" || m.User != "idemscope" || m.Password.Reveal() != "two\nlines" || !m.Replica {
		t.Errorf("mysql: %+v, password %q", m, m.Password.Reveal())
	}
	if f := c.Flows[0]; f.Name != "true" || f.Ledger != "1.5" || f.Lock != nil || f.OnProcessing != flow.Refuse {
		t.Errorf("flow: %+v", f)
	}
	wantSame(t, c)
}

func TestAQueueMayHoldTheBizIDInTheMessageID(t *testing.T) {
	c := mustParse(t, minimal(`  refunds:
    biz_types: [refund]
    ledger: orders
    queue: {broker: rabbit, name: refunds, id: {property: message_id}, type: {json: kind}}
`), nil)
	if q := c.Flows[1].Queue; q.IDProperty != flow.PropertyMessageID || q.IDField != "" || q.TypeField != "kind" || !q.NamesID() {
		t.Errorf("%+v", q)
	}
	wantSame(t, c)
}
