package action

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/access"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// rig is an Actor over a real MariaDB and Redis, each behind a proxy.
type rig struct {
	*Actor
	db      *testkit.Database
	redis   *redis.Client
	log     *audit.Log
	options Options
	proxies map[string]*testkit.Proxy
	catalog *flow.Catalog
	gather  dossier.Options
	now     time.Time
}

func template(t testing.TB, text string) flow.Template {
	t.Helper()
	parsed, err := flow.ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// shopFlows: payments is as most flows are; the others are odd in one respect.
func shopFlows(t testing.TB) []flow.Flow {
	lock := &flow.RedisKey{Redis: "main", Template: template(t, "lock:{biz_type}:{biz_id}"), TTL: time.Minute}
	marker := &flow.RedisKey{Redis: "main", Template: template(t, "marker:{biz_type}:{biz_id}"), TTL: time.Hour}
	return []flow.Flow{
		{Name: "payments", BizTypes: []string{"pay"}, Ledger: "orders", Lock: lock, Marker: marker, StaleAfter: 5 * time.Minute, OnProcessing: flow.Refuse, Rerun: flow.RerunManual},
		{Name: "payouts", BizTypes: []string{"payout"}, Ledger: "orders", Lock: lock, Marker: marker, StaleAfter: 5 * time.Minute, Rerun: flow.RerunNever},
		{Name: "bare", BizTypes: []string{"bare"}, Ledger: "orders", StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual},
		{Name: "shared", BizTypes: []string{"a", "b"}, Ledger: "orders", Rerun: flow.RerunManual, StaleAfter: 5 * time.Minute,
			Lock:   &flow.RedisKey{Redis: "main", Template: template(t, "shared:{biz_id}"), TTL: time.Minute},
			Marker: &flow.RedisKey{Redis: "main", Template: template(t, "sharedmarker:{biz_id}"), TTL: time.Hour}},
		{Name: "folded", BizTypes: []string{"folded"}, Ledger: "folded", Lock: lock, Marker: marker, StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual},
		{Name: "watched", BizTypes: []string{"watched"}, Ledger: "orders", StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual,
			Lock: &flow.RedisKey{Redis: "main", Template: template(t, "lock:{biz_type}:{biz_id}"), TTL: time.Minute, Renewed: true}},
		{Name: "logged", BizTypes: []string{"log"}, Ledger: "logged", Lock: lock, Marker: marker, StaleAfter: 5 * time.Minute, Rerun: flow.RerunManual},
	}
}

func newRig(t *testing.T, change ...func(*rig, []flow.Flow)) *rig {
	t.Helper()
	r := &rig{db: testkit.MySQL(t), proxies: map[string]*testkit.Proxy{}}
	r.db.Exec(t, `CREATE TABLE record (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
		create_time DATETIME(6) NOT NULL, update_time DATETIME(6) NOT NULL, KEY (biz_type, biz_id)) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin`)
	r.db.Exec(t, `CREATE TABLE folded (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
		create_time DATETIME(6) NOT NULL, update_time DATETIME(6) NOT NULL, UNIQUE KEY (biz_type, biz_id)) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`)
	r.db.Exec(t, "CREATE TABLE logged (biz_id VARCHAR(64) PRIMARY KEY, handle_time DATETIME NOT NULL)")
	r.db.Exec(t, "CREATE TABLE record_archive LIKE record")
	store := testkit.Redis(t)
	r.redis = store.Client
	r.proxies["mysql"], r.proxies["redis"] = testkit.NewProxy(t, r.db.Addr), testkit.NewProxy(t, store.Addr)

	flows := shopFlows(t)
	r.gather = dossier.Options{Deadline: 10 * time.Second, Ledgers: map[string]dossier.Records{}, Brokers: map[string]dossier.Queues{}}
	r.options = Options{Ledgers: map[string]Records{}, Brokers: map[string]Replayer{}, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.clock() }}
	r.openMySQL(t)
	r.openRedis(t, store.DB)
	var err error
	if r.log, err = audit.Open(filepath.Join(t.TempDir(), "audit.jsonl")); err != nil {
		t.Fatal(err)
	}
	r.options.Journal, r.options.Unfinished, r.gather.Audit = r.log, FromLog(r.log), r.log
	for _, c := range change {
		c(r, flows)
	}
	r.catalog = flow.NewCatalog(flows)
	r.gather.Catalog = r.catalog
	gatherer, err := dossier.NewGatherer(r.gather)
	if err != nil {
		t.Fatal(err)
	}
	r.options.Flows = flows
	r.options.Desk = answer.NewDesk(answer.Options{Catalog: r.catalog, Gatherer: gatherer})
	if r.Actor, err = New(r.options); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) clock() time.Time {
	if r.now.IsZero() {
		return time.Now()
	}
	return r.now
}

func (r *rig) openMySQL(t *testing.T) {
	t.Helper()
	o := ledger.ServerOptions{Name: "main", Address: r.proxies["mysql"].Addr, Database: r.db.Name, User: r.db.User, StatementLimit: 10 * time.Second}
	server, err := ledger.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	resetter, err := ledger.NewResetter(o)
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
		r.gather.Ledgers[name] = l
		r.options.Ledgers[name] = Records{Plan: l.PlanReset, Reset: resetter.Reset}
	}
}

func (r *rig) openRedis(t *testing.T, db int) {
	t.Helper()
	o := lockstore.Options{Name: "main", Addresses: []string{r.proxies["redis"].Addr}, DB: db, Timeout: 10 * time.Second}
	store, err := lockstore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Once = true
	act, err := lockstore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = store.Close(), act.Close() })
	r.gather.Redis = map[string]dossier.Keys{"main": store}
	r.options.Redis = map[string]Redis{"main": {Release: act.Release}}
}

var alice = access.Person{Name: "alice", Roles: []access.Role{access.Viewer, access.Operator}, From: "10.0.0.7"}

func as(t testing.TB, p access.Person) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return access.With(ctx, p)
}

func place(bizType, id string) flow.Place {
	names := map[string]string{"pay": "payments", "payout": "payouts", "a": "shared", "b": "shared", "log": "logged"}
	name := names[bizType]
	if name == "" {
		name = bizType
	}
	return flow.Place{Flow: name, Key: flow.Key{BizType: bizType, BizID: id}}
}

func (r *rig) look(t testing.TB, k Kind, p flow.Place) Precheck {
	t.Helper()
	pre, err := r.Precheck(as(t, alice), p, k)
	if err != nil {
		t.Fatal(err)
	}
	return pre
}

// order carries the ticket through its text, as a form does.
func (r *rig) order(t testing.TB, p Precheck) Result {
	t.Helper()
	ticket, err := ParseTicket(p.Ticket.String())
	if err != nil {
		t.Fatal(err)
	}
	return r.Do(as(t, alice), ticket, "because")
}

func (r *rig) set(t testing.TB, key, value string, ttl time.Duration) {
	t.Helper()
	if err := r.redis.Set(t.Context(), key, value, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

// value is what the key holds; "-" for nothing.
func (r *rig) value(t testing.TB, key string) string {
	t.Helper()
	v, err := r.redis.Get(t.Context(), key).Result()
	if err != nil {
		return "-"
	}
	return v
}

func (r *rig) record(t testing.TB, table, bizType, id string, status int, age time.Duration) {
	t.Helper()
	r.db.Exec(t, "INSERT INTO "+table+` (biz_type, biz_id, status, create_time, update_time)
		VALUES (?, ?, ?, UTC_TIMESTAMP(6) - INTERVAL ? SECOND, UTC_TIMESTAMP(6) - INTERVAL ? SECOND)`, bizType, id, status, int(age.Seconds())+2, int(age.Seconds()))
}

func (r *rig) status(t testing.TB, bizType, id string) (status int) {
	t.Helper()
	if err := r.db.DB.Get(&status, "SELECT status FROM record WHERE biz_type = ? AND biz_id = ?", bizType, id); err != nil {
		t.Fatal(err)
	}
	return status
}

func codes(all []Refusal) (list []string) {
	for _, one := range all {
		list = append(list, one.Code)
	}
	return list
}

// wantRefused checks that precheck and order both refuse, for the reason, in both languages.
func (r *rig) wantRefused(t testing.TB, k Kind, p flow.Place, code string) {
	t.Helper()
	pre := r.look(t, k, p)
	if pre.Allowed() || !slices.Contains(codes(pre.Refusals), code) {
		t.Errorf("%s %v: precheck refuses %v, want %s", k, p.Key, codes(pre.Refusals), code)
	}
	result := r.order(t, pre)
	if result.Outcome != audit.Refused || !slices.Contains(codes(result.Refusals), code) {
		t.Errorf("%s %v: %s %v, want %s", k, p.Key, result.Outcome, codes(result.Refusals), code)
	}
	for _, one := range append(pre.Refusals, result.Refusals...) {
		if one.Text.EN == "" || one.Text.ZH == "" || strings.Contains(one.Text.EN+one.Text.ZH, "%!") {
			t.Errorf("%s: text %+v", one.Code, one.Text)
		}
	}
	r.wantJournal(t, p, audit.Begun, audit.Refused)
}

// wantJournal checks the latest entries of a key, the oldest of them first.
func (r *rig) wantJournal(t testing.TB, p flow.Place, outcomes ...audit.Outcome) []audit.Entry {
	t.Helper()
	page, err := r.log.Read(t.Context(), audit.Query{Key: &p.Key, Limit: len(outcomes)})
	if err != nil {
		t.Fatal(err)
	}
	entries := slices.Clone(page.Entries)
	slices.Reverse(entries)
	var got []audit.Outcome
	for _, e := range entries {
		got = append(got, e.Outcome)
		if e.Attempt != entries[len(entries)-1].Attempt || e.Attempt == "" {
			t.Errorf("entries of several attempts: %+v", entries)
		}
	}
	if !slices.Equal(got, outcomes) {
		t.Errorf("%v: journal has %v, want %v", p.Key, got, outcomes)
	}
	return entries
}
