package console

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/replay"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// deedRig is a console with actions over a real MariaDB, Redis and RabbitMQ.
type deedRig struct {
	*httptest.Server
	db      *testkit.Database
	redis   *redis.Client
	ch      *amqp.Channel
	log     *audit.Log
	desk    *answer.Desk
	proxies map[string]*testkit.Proxy
	// person asks each request.
	person access.Person
	// replica: what the ledgers read is one. alter changes the actor, last of all.
	replica bool
	alter   func(o *action.Options)
}

var operator = access.Person{Name: "alice", Roles: []access.Role{access.Viewer, access.Payload, access.Operator}, From: "10.0.0.7"}

func newDeedRig(t *testing.T, change ...func(*deedRig)) *deedRig {
	t.Helper()
	r := &deedRig{db: testkit.MySQL(t), proxies: map[string]*testkit.Proxy{}, person: operator}
	for _, c := range change {
		c(r)
	}
	for table, collation := range map[string]string{"record": "utf8mb4_nopad_bin", "folded": "utf8mb4_general_ci", "record_archive": "utf8mb4_nopad_bin"} {
		r.db.Exec(t, `CREATE TABLE `+table+` (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
			create_time DATETIME(6) NOT NULL, update_time DATETIME(6) NOT NULL, KEY (biz_type, biz_id)) CHARACTER SET utf8mb4 COLLATE `+collation)
	}
	r.db.Exec(t, "CREATE TABLE logged (biz_id VARBINARY(64) PRIMARY KEY, handle_time DATETIME NOT NULL)")
	flows := deedFlows(t)
	gather := dossier.Options{Catalog: flow.NewCatalog(flows), Deadline: rigDeadline, Ledgers: map[string]dossier.Records{}}
	o := action.Options{Flows: flows, Ledgers: map[string]action.Records{}, Logger: slog.New(slog.DiscardHandler)}
	r.openMySQL(t, &gather, &o)
	r.openRedis(t, &gather, &o)
	r.openRabbit(t, &gather, &o)
	var err error
	if r.log, err = audit.Open(filepath.Join(t.TempDir(), "audit.jsonl")); err != nil {
		t.Fatal(err)
	}
	gather.Audit = r.log
	gatherer, err := dossier.NewGatherer(gather)
	if err != nil {
		t.Fatal(err)
	}
	r.desk = answer.NewDesk(answer.Options{Catalog: gather.Catalog, Gatherer: gatherer})
	o.Desk, o.Journal, o.Unfinished = r.desk, r.log, action.FromLog(r.log)
	if r.alter != nil {
		r.alter(&o)
	}
	actor, err := action.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(t, Options{Desk: r.desk, Flows: flows, Actions: true, Actor: actor, Audit: r.log, Traces: idleTrace()})
	return r
}

func (r *deedRig) serve(t *testing.T, o Options) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	var err error
	if o.Guard, err = access.New(access.Options{
		Rules:  access.Rules{access.Viewer: {"alice", "eve"}, access.Payload: {"alice", "eve"}, access.Operator: {"alice"}},
		Proxy:  &access.Proxy{Header: "X-User", From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Memory: access.NewMemory(nil), Audit: o.Audit, Logger: o.Logger, Actions: true,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Guard.Close)
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	// A proxy in front says who asks.
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.person.Name != "" {
			req.Header.Set("X-User", r.person.Name)
		}
		req.Header.Set("X-Forwarded-For", operator.From)
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
}

func deedFlows(t *testing.T) []flow.Flow {
	t.Helper()
	template := func(text string) flow.Template {
		parsed, err := flow.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	lock := &flow.RedisKey{Redis: "main", Template: template("lock:{biz_type}:{biz_id}"), TTL: time.Minute}
	marker := &flow.RedisKey{Redis: "main", Template: template("marker:{biz_type}:{biz_id}"), TTL: time.Hour}
	return []flow.Flow{
		{Name: "payments", BizTypes: []string{"pay"}, Ledger: "orders", Lock: lock, Marker: marker, StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual,
			Queue: &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: "pay.dlq", IDField: "biz_id"}},
		{Name: "payouts", BizTypes: []string{"payout"}, Ledger: "orders", Lock: lock, StaleAfter: 5 * time.Minute, Rerun: flow.RerunNever,
			Queue: &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: "limited.dlq", IDField: "biz_id"}},
		{Name: "bare", BizTypes: []string{"bare"}, Ledger: "orders", StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual},
		{Name: "shared", BizTypes: []string{"a", "b"}, Ledger: "orders", StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual,
			Lock: &flow.RedisKey{Redis: "main", Template: template("shared:{biz_id}"), TTL: time.Minute}},
		{Name: "folded", BizTypes: []string{"folded"}, Ledger: "folded", Lock: lock, StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual,
			Queue: &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: "stream.dlq", IDField: "biz_id"}},
		{Name: "logged", BizTypes: []string{"log"}, Ledger: "logged", Lock: lock, Marker: marker, StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual},
		{Name: "limited", BizTypes: []string{"lim"}, Ledger: "orders", StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual,
			Queue: &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: "limited.dlq", IDField: "biz_id"}},
		{Name: "streamed", BizTypes: []string{"str"}, Ledger: "orders", StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual,
			Queue: &flow.Queue{Broker: "rabbit", Name: "pay", DeadLetter: "stream.dlq", IDField: "biz_id"}},
	}
}

func (r *deedRig) openMySQL(t *testing.T, gather *dossier.Options, o *action.Options) {
	t.Helper()
	r.proxies["mysql"] = testkit.NewProxy(t, r.db.Addr)
	options := ledger.ServerOptions{Name: "main", Address: r.proxies["mysql"].Addr, Database: r.db.Name, User: r.db.User, StatementLimit: rigDeadline, Replica: r.replica}
	server, err := ledger.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	resetter, err := ledger.NewResetter(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Close(), resetter.Close() })
	for name, spec := range map[string]struct{ table, preset, archive, bizType string }{
		"orders": {"record", "idempotent_record", "record_archive", ""}, "folded": {"folded", "idempotent_record", "", ""}, "logged": {"logged", "consume_log", "", "log"},
	} {
		mapping, err := ledger.NewMapping(spec.preset, ledger.MappingSpec{BizType: spec.bizType})
		if err != nil {
			t.Fatal(err)
		}
		l, err := ledger.New(ledger.Options{Name: name, Server: server, Table: spec.table, Mapping: mapping, Archive: spec.archive})
		if err != nil {
			t.Fatal(err)
		}
		gather.Ledgers[name], o.Ledgers[name] = l, action.Records{Plan: l.PlanReset, Reset: resetter.Reset}
	}
}

func (r *deedRig) openRedis(t *testing.T, gather *dossier.Options, o *action.Options) {
	t.Helper()
	db := testkit.Redis(t)
	r.redis, r.proxies["redis"] = db.Client, testkit.NewProxy(t, db.Addr)
	options := lockstore.Options{Name: "main", Addresses: []string{r.proxies["redis"].Addr}, DB: db.DB, Timeout: rigDeadline}
	store, err := lockstore.New(options)
	if err != nil {
		t.Fatal(err)
	}
	options.Once = true
	act, err := lockstore.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = store.Close(), act.Close() })
	gather.Redis, o.Redis = map[string]dossier.Keys{"main": store}, map[string]action.Redis{"main": {Release: act.Release}}
}

func (r *deedRig) openRabbit(t *testing.T, gather *dossier.Options, o *action.Options) {
	t.Helper()
	v := testkit.RabbitMQ(t)
	conn, err := amqp.Dial(v.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if r.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]amqp.Table{
		"pay": nil, "pay.dlq": nil, "limited.dlq": {"x-queue-type": "quorum", "x-delivery-limit": int64(3)}, "stream.dlq": {"x-queue-type": "stream"},
	} {
		if _, err := r.ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			t.Fatal(err)
		}
	}
	management, err := url.Parse(v.Management)
	if err != nil {
		t.Fatal(err)
	}
	r.proxies["rabbit"] = testkit.NewProxy(t, management.Host)
	reader, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: "http://" + r.proxies["rabbit"].Addr, Vhost: v.Name, User: v.Monitor, Password: v.MonitorPassword, Timeout: rigDeadline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	replayer, err := replay.New(replay.Options{Broker: "rabbit", AMQP: v.AMQP, Reader: reader, Flows: o.Flows})
	if err != nil {
		t.Fatal(err)
	}
	gather.Brokers, o.Brokers = map[string]dossier.Queues{"rabbit": reader}, map[string]action.Replayer{"rabbit": replayer}
}

// settled waits until the broker has counted the queues of the key's flow, with
// so many messages in the one.
func (r *deedRig) settled(t *testing.T, bizType, queue string, ready, unacked int64) {
	t.Helper()
	testkit.Eventually(t, 40*time.Second, func() bool {
		places, err := r.desk.Places(flow.Key{BizType: bizType, BizID: "x"}, "")
		if err != nil {
			return false
		}
		a, err := r.desk.Answer(t.Context(), places[0])
		if err != nil {
			return false
		}
		good := true
		for _, q := range a.Broker.Queues {
			good = good && q.State == flow.Found && (q.Name != queue || q.Ready == ready && q.Unacked == unacked)
		}
		return good
	}, "the queues of %s were not counted", bizType)
}

func (r *deedRig) record(t *testing.T, table, bizType, id string, status int, age time.Duration) {
	t.Helper()
	r.db.Exec(t, "INSERT INTO "+table+` (biz_type, biz_id, status, create_time, update_time)
		VALUES (?, ?, ?, UTC_TIMESTAMP(6) - INTERVAL ? SECOND, UTC_TIMESTAMP(6) - INTERVAL ? SECOND)`, bizType, id, status, int(age.Seconds())+2, int(age.Seconds()))
}

func (r *deedRig) set(t *testing.T, key, value string, ttl time.Duration) {
	t.Helper()
	if err := r.redis.Set(t.Context(), key, value, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

// send posts a body and reads the answer to its end.
func (r *deedRig) send(t *testing.T, path, kind string, body []byte, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	checkDescribed(t, request, response, text)
	return reply{response, string(text)}
}

// form opens the dialog of an action and returns what its form would send.
func (r *deedRig) form(t *testing.T, kind, bizType, id string) url.Values {
	t.Helper()
	if r.person.Name == "" {
		return url.Values{} // nobody gets a page
	}
	got := get(t, r.URL+"/action?"+url.Values{"kind": {kind}, "type": {bizType}, "id": {id}}.Encode())
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%s %q: %d", kind, id, got.StatusCode)
	}
	values := url.Values{}
	for _, form := range got.document(t).all("form", "deed-form") {
		for _, input := range form.all("input", "") {
			name, _ := attribute(input.Node, "name")
			value, _ := attribute(input.Node, "value")
			values.Set(name, value)
		}
	}
	return values
}

// token is that of a form which was just opened; empty for who gets none.
func (r *deedRig) token(t *testing.T) string {
	t.Helper()
	if r.person.Name == "" {
		return ""
	}
	_, rest, _ := strings.Cut(get(t, r.URL+"/trace").body, `name="form_token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

// submit sends a form with a token of its own, as a page that was just opened has it.
func (r *deedRig) submit(t *testing.T, values url.Values, headers ...string) reply {
	t.Helper()
	values = maps.Clone(values)
	if token := r.token(t); token != "" {
		values.Set("form_token", token)
	}
	return r.send(t, "/action", "application/x-www-form-urlencoded", []byte(values.Encode()), headers...)
}

// api posts an order and reads the answer.
func (r *deedRig) api(t *testing.T, kind string, o actionOrder) (status int, result action.ResultJSON, pre action.PrecheckJSON) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	got := r.send(t, "/api/v1/actions/"+kind, "application/json", body)
	into := any(&result)
	if !o.Execute {
		into = &pre
	}
	if err := json.Unmarshal([]byte(got.body), into); err != nil {
		t.Fatalf("%v\n%s", err, got.body)
	}
	return got.StatusCode, result, pre
}

func refusalCodes(all []action.RefusalJSON) string {
	var list []string
	for _, one := range all {
		list = append(list, one.Code)
	}
	return strings.Join(list, " ")
}
