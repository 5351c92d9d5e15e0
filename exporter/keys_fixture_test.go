package exporter

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// keyStage is an exporter on a real Redis and a real MySQL, whose sweeps do not
// pause.
type keyStage struct {
	*bench
	redis              *testkit.RedisDB
	redisWay, mysqlWay *testkit.Proxy
	exporter           *Exporter
	log                *syncBuffer
}

const redisUp = `idemscope_source_up{kind="redis",source="main"}`

func template(t testing.TB, text string) flow.Template {
	t.Helper()
	parsed, err := flow.ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// guarded is the flow payments with a lock and a marker, and signs with a marker alone.
func guarded(t testing.TB) []flow.Flow {
	f := payments()
	f.Lock = &flow.RedisKey{Redis: "main", Prefix: "shop:", Template: template(t, "lock:{biz_type}:{biz_id}"), TTL: 15 * time.Second}
	f.Marker = &flow.RedisKey{Redis: "main", Prefix: "shop:", Template: template(t, "done:{biz_type}:{biz_id}"), TTL: time.Hour}
	signs := flow.Flow{Name: "signs", BizTypes: []string{"sign"}, Ledger: "orders",
		Marker: &flow.RedisKey{Redis: "main", Prefix: "shop:", Template: template(t, "sign:{biz_id}")}}
	return []flow.Flow{f, signs}
}

type keyStageOptions struct {
	user  string // of Redis, with the password pass-of-observer
	addr  string // of Redis; empty for the shared one
	flows []flow.Flow
	tune  func(*Options)
}

func newKeyStage(t *testing.T, o keyStageOptions) *keyStage {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	s := &keyStage{bench: &bench{Database: db, t: t}, redis: &testkit.RedisDB{Addr: o.addr}, log: &syncBuffer{}, mysqlWay: testkit.NewProxy(t, db.Addr)}
	if o.addr == "" {
		s.redis = testkit.Redis(t)
	}
	s.redisWay = testkit.NewProxy(t, s.redis.Addr)
	store, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{s.redisWay.Addr}, DB: s.redis.DB, User: o.user, Password: password(o.user)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if o.flows == nil {
		o.flows = guarded(t)
	}
	options := Options{
		Flows:   o.flows,
		Ledgers: map[string]*ledger.Ledger{"orders": openLedger(t, db, benchOptions{address: s.mysqlWay.Addr, table: "idempotent_record", preset: "idempotent_record"})},
		Redis:   map[string]*lockstore.Store{"main": store}, SweepKeysPerSecond: 1_000_000, SweepPause: 50 * time.Millisecond,
		Interval: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	if o.tune != nil {
		o.tune(&options)
	}
	if s.exporter, err = New(options); err != nil {
		t.Fatal(err)
	}
	if sweep := s.source().sweep; sweep != nil {
		sweep.patience = 100 * time.Millisecond
	}
	return s
}

func password(user string) string {
	if user == "" {
		return ""
	}
	return "pass-of-observer"
}

func (s *keyStage) source() *redisSource {
	for _, l := range s.exporter.loops {
		if l.kind == kindRedis {
			return l.source.(*redisSource)
		}
	}
	s.t.Fatal("no loop for Redis")
	return nil
}

// run works until the test ends.
func (s *keyStage) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.exporter.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			s.t.Error("run does not end")
		}
	})
}

func (s *keyStage) now() samples { return gather(s.t, s.exporter.Gatherer()) }

// reaches waits until a scrape shows the samples.
func (s *keyStage) reaches(want samples) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.now().want(s.t, want)
			s.t.Logf("log: %s", s.log)
		}
	}()
	testkit.Eventually(s.t, 20*time.Second, func() bool { return s.now().has(want) }, "metrics do not get there")
}

// set makes a key; ttl 0 means none.
func (s *keyStage) set(key string, ttl time.Duration) {
	s.t.Helper()
	if err := s.redis.Client.Set(s.t.Context(), key, "token", ttl).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *keyStage) del(key string) {
	s.t.Helper()
	if err := s.redis.Client.Del(s.t.Context(), key).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// ofFlow spells a series of the flow payments.
func ofFlow(name string) string { return fmt.Sprintf("%s{flow=%q}", name, "payments") }

func place1(flowName, bizType, bizID string) flow.Place {
	return flow.Place{Flow: flowName, Key: flow.Key{BizType: bizType, BizID: bizID}}
}
