package exporter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/answer"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
	"idemscope/internal/verdict"
)

// findings makes a collector over the bench's ledger, on the bench's clock.
func (b *bench) findings(judge Judge) *findings {
	b.t.Helper()
	if judge == nil {
		judge = func(context.Context, flow.Place) (answer.Answer, error) { return answer.Answer{}, nil }
	}
	f := newFindings(Options{Judge: judge, FindingsPerSecond: 1000, Lookback: defaultLookback}, []*loop{b.loop}, b.source.labels)
	f.now = func() time.Time { return b.clock }
	return f
}

// round judges all that is due, one after the other.
func (f *findings) round(ctx context.Context) {
	f.mu.Lock()
	f.plan(f.now())
	f.mu.Unlock()
	for {
		s, ok := f.take()
		if !ok {
			return
		}
		f.inquire(ctx, s)
	}
}

// codes lists what is found, as "biz_id: verdict", in the order of the list.
func (f *findings) codes() string {
	var all []string
	for _, found := range f.report().List {
		all = append(all, fmt.Sprintf("%s: %s", found.Key.BizID, found.Code))
	}
	return strings.Join(all, ", ")
}

// deskBench is a bench whose findings are judged from its real table and a real
// Redis behind a proxy.
type deskBench struct {
	*bench
	redis *testkit.RedisDB
	way   *testkit.Proxy
	f     *findings
}

// lockLife outlasts every test.
const lockLife = 30 * time.Minute

// lastingRedis is a server of its own that keeps snapshots.
func lastingRedis(t *testing.T) *testkit.RedisDB {
	t.Helper()
	server := testkit.StartRedis(t, "--save", "3600 1")
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return &testkit.RedisDB{Addr: server.Addr, Client: client}
}

func newDeskBench(t *testing.T) *deskBench {
	t.Helper()
	pay := payments()
	pay.Rerun, pay.OnProcessing = flow.RerunManual, flow.Refuse
	template, err := flow.ParseTemplate("lock:{biz_type}:{biz_id}")
	if err != nil {
		t.Fatal(err)
	}
	// A watchdog extends the lock of a run that is silent for long, and Redis keeps
	// snapshots: a lock that is not there was not lost by a start.
	pay.Lock.Template, pay.Lock.Renewed, pay.Lock.TTL = template, true, lockLife
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	d := &deskBench{bench: newBench(t, db, benchOptions{flows: []flow.Flow{pay}}), redis: lastingRedis(t)}
	d.way = testkit.NewProxy(t, d.redis.Addr)
	store, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{d.way.Addr}, DB: d.redis.DB, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	catalog := flow.NewCatalog([]flow.Flow{pay})
	gatherer, err := dossier.NewGatherer(dossier.Options{
		Catalog: catalog, Deadline: 500 * time.Millisecond, Redis: map[string]dossier.Keys{"main": store},
		Ledgers: map[string]dossier.Records{"orders": openLedger(t, db, benchOptions{table: "idempotent_record", preset: "idempotent_record"})},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.f = d.findings(answer.NewDesk(answer.Options{Catalog: catalog, Gatherer: gatherer}).Answer)
	d.registry.MustRegister(d.f)
	return d
}

// look polls the ledger and judges what is due.
func (d *deskBench) look() samples {
	d.t.Helper()
	d.good()
	d.f.round(d.t.Context())
	return gather(d.t, d.registry)
}

const (
	stuckPay      = `idem_findings{biz_type="pay",flow="payments",layer="mysql",verdict="stuck"}`
	unknownPay    = `idem_findings{biz_type="pay",flow="payments",layer="redis",verdict="unknown"}`
	findPending   = `idemscope_findings_pending`
	findJudged    = `idemscope_findings_judged_total`
	findOverflown = `idemscope_findings_overflow_total`
)

func TestFindingComesAndLeaves(t *testing.T) {
	d := newDeskBench(t)
	for _, id := range []string{"stuck <b>\x01", "alive", "young"} {
		d.insert("pay", processing, id)
	}
	d.update("pay", "stuck <b>\x01", processing, -3600, -3600)
	d.update("pay", "alive", processing, -3600, -3600)
	if err := d.redis.Client.Set(t.Context(), "lock:pay:alive", "worker", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := d.redis.Client.PExpire(t.Context(), "lock:pay:alive", lockLife).Err(); err != nil {
		t.Fatal(err)
	}
	gather(t, d.registry).absent(t, "idem_findings", findPending)
	d.good()
	gather(t, d.registry).want(t, samples{findPending: 2, findJudged: 0})
	d.look().want(t, samples{stuckPay: 1, findPending: 0, findJudged: 2, findOverflown: 0})
	lint(t, d.registry)
	if got := d.f.codes(); got != "stuck <b>\x01: stuck" {
		t.Fatalf("found %q", got)
	}
	first := d.f.report().List[0]
	if age, ok := first.Age(first.JudgedAt); !ok || age < time.Hour || age > time.Hour+time.Minute {
		t.Errorf("age %s, known %v", age, ok)
	}

	d.passes(firstPause * 2)
	d.look().want(t, samples{findJudged: 4}) // the row of the stuck key is not judged beside its key
	again := d.f.report().List[0]
	if !again.Since.Equal(first.Since) || !again.JudgedAt.After(first.JudgedAt) || !again.Began.Equal(first.Began) {
		t.Errorf("first %+v, again %+v", first, again)
	}

	d.update("pay", "stuck <b>\x01", completed, -3600, 0)
	d.passes(maxPause + time.Second) // until the record is read again
	d.look().want(t, samples{stuckPay: 0, findPending: 0})
	if got := d.f.codes(); got != "" {
		t.Errorf("found %q", got)
	}
}

// A mended key leaves soon, however long its pause had grown: its ledger names it no more.
func TestMendedKeyIsJudgedAtOnce(t *testing.T) {
	d := newDeskBench(t)
	d.insert("pay", failed, "a")
	d.update("pay", "a", failed, -3600, -3600)
	d.look()
	for range 6 {
		d.passes(2 * longestPause)
		d.look()
	}
	if got := d.f.codes(); got != "a: failed_unplaced" {
		t.Fatalf("found %q", got)
	}
	d.Exec(t, "DELETE FROM idempotent_record")
	d.passes(maxPause + time.Second)
	d.look()
	if got := d.f.codes(); got != "" {
		t.Errorf("found %q", got)
	}
}

func TestHangingRedisGivesUnknownAtMost(t *testing.T) {
	d := newDeskBench(t)
	d.insert("pay", processing, "stale", "held")
	d.update("pay", "stale", processing, -3600, -3600)
	d.update("pay", "held", processing, -3600, -3600)
	if err := d.redis.Client.Set(t.Context(), "lock:pay:held", "worker", lockLife).Err(); err != nil {
		t.Fatal(err)
	}
	d.way.Hang(true)
	d.look().want(t, samples{unknownPay: 2})
	if s := gather(t, d.registry); s.has(samples{stuckPay: 1}) {
		t.Error("a guess was made while Redis hangs")
	}
	d.way.Hang(false)
	testkit.Eventually(t, 10*time.Second, func() bool {
		d.passes(2 * unsurePause)
		return d.look().has(samples{unknownPay: 0, stuckPay: 1})
	}, "the findings are not decided")
	if got := d.f.codes(); got != "stale: stuck" {
		t.Errorf("found %q", got)
	}
	d.way.Hang(true)
	d.passes(2 * longestPause)
	d.look().want(t, samples{unknownPay: 2, stuckPay: 0})
}

// scripted judges by the biz_id alone: everything but "ok" is stuck.
func scripted(_ context.Context, p flow.Place) (answer.Answer, error) {
	v := verdict.Verdict{Code: verdict.Stuck, Severity: verdict.Critical, Layer: flow.LayerRedis}
	if p.Key.BizID == "ok" {
		v = verdict.Verdict{Code: verdict.Running, Severity: verdict.OK}
	}
	return answer.Answer{Dossier: dossier.Dossier{Key: p.Key, Flow: flow.Flow{Name: p.Flow}, At: time.Now()}, Verdict: v}, nil
}

func places(ids ...string) func() []flow.Place {
	return func() (all []flow.Place) {
		for _, id := range ids {
			all = append(all, flow.Place{Flow: "payments", Key: flow.Key{BizType: "pay", BizID: id}})
		}
		return all
	}
}

func TestKeysAreSuspectsToo(t *testing.T) {
	b := recordBench(t)
	f := b.findings(scripted)
	f.keys = places("a", "ok", "a")
	f.round(t.Context())
	if got := f.codes(); got != "a: stuck" {
		t.Errorf("found %q", got)
	}
	if pending, _ := f.pending(); pending != 0 || len(f.inquiries) != 2 {
		t.Errorf("%d pending, %d inquiries", pending, len(f.inquiries))
	}
	f.keys = places()
	f.round(t.Context())
	if got := f.codes(); got != "a: stuck" || len(f.inquiries) != 1 {
		t.Errorf("a finding left because nobody names it: %q, %d inquiries", got, len(f.inquiries))
	}
}

func TestListIsBounded(t *testing.T) {
	b := recordBench(t)
	f := b.findings(scripted)
	f.max, f.keys = 2, places("a", "b", "c", "d")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f)
	f.round(t.Context())
	if n := len(f.report().List); n != 2 {
		t.Errorf("%d on the list", n)
	}
	gather(t, registry).want(t, samples{findOverflown: 2, `idem_findings{biz_type="pay",flow="payments",layer="redis",verdict="stuck"}`: 2})
	texts, _ := f.coverage()
	if last := texts[len(texts)-1].EN; last != "The list is full: there are more than 2 findings." {
		t.Error(last)
	}
	// One is mended: another one takes its place.
	mended := f.report().List[0].Key.BizID
	f.judge = func(ctx context.Context, p flow.Place) (answer.Answer, error) {
		if p.Key.BizID == mended {
			p.Key.BizID = "ok"
		}
		return scripted(ctx, p)
	}
	for range 2 {
		b.passes(2 * longestPause)
		f.round(t.Context())
	}
	if list := f.report().List; len(list) != 2 || list[0].Key.BizID == mended || list[1].Key.BizID == mended {
		t.Errorf("%+v", list)
	}
}

func TestPausesGrow(t *testing.T) {
	b := recordBench(t)
	times := 0
	f := b.findings(func(ctx context.Context, p flow.Place) (answer.Answer, error) { times++; return scripted(ctx, p) })
	f.keys = places("a", "ok")
	start := b.clock
	for b.clock.Sub(start) < time.Hour {
		f.round(t.Context())
		b.passes(time.Second)
	}
	// 10, 20, 40, 80, 160 s and then 300 s: 5 + (3600-310)/300 each, and the first.
	if times < 28 || times > 38 {
		t.Errorf("two keys were judged %d times in an hour", times)
	}
}

// TestBudget: look-ups start no faster than allowed, and no more of them run at
// a time.
func TestBudget(t *testing.T) {
	b := recordBench(t)
	var mu sync.Mutex
	var running, most int
	var starts []time.Time
	release := make(chan struct{})
	f := b.findings(func(ctx context.Context, p flow.Place) (answer.Answer, error) {
		mu.Lock()
		starts = append(starts, time.Now())
		running++
		most = max(most, running)
		mu.Unlock()
		<-release
		mu.Lock()
		running--
		mu.Unlock()
		return scripted(ctx, p)
	})
	f.now, f.perSecond = time.Now, 50
	var ids []string
	for i := range 60 {
		ids = append(ids, fmt.Sprint(i))
	}
	f.keys = places(ids...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.run(ctx); close(ended) }()
	begun := func() int { mu.Lock(); defer mu.Unlock(); return len(starts) }
	testkit.Eventually(t, 5*time.Second, func() bool { return begun() >= 4 }, "not 4 look-ups at once")
	held := time.Now()
	testkit.Eventually(t, 5*time.Second, func() bool { return time.Since(held) > 10*time.Second/50 }, "ten ticks do not pass")
	close(release)
	testkit.Eventually(t, 10*time.Second, func() bool { return begun() == 60 }, "not all are judged")
	cancel()
	<-ended
	if most != 4 {
		t.Errorf("%d look-ups at once", most)
	}
	// Whatever second one looks at: 50 ticks, and one that a slow machine kept waiting.
	for i, from := range starts {
		n := 0
		for _, at := range starts[i:] {
			if at.Sub(from) < time.Second {
				n++
			}
		}
		if n > 52 {
			t.Errorf("%d look-ups within a second", n)
		}
	}
}

func TestEndOfTheProgramIsNoVerdict(t *testing.T) {
	b := recordBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	f := b.findings(func(ctx context.Context, p flow.Place) (answer.Answer, error) { cancel(); return scripted(ctx, p) })
	f.keys = places("a")
	f.round(ctx)
	if got := f.codes(); got != "" || len(f.inquiries) != 1 {
		t.Errorf("found %q", got)
	}
}

func TestNoFindingsWithoutBudget(t *testing.T) {
	e, err := New(Options{Judge: scripted})
	if err != nil {
		t.Fatal(err)
	}
	if found := e.Findings(); len(found.List) != 0 || len(found.Coverage) != 1 {
		t.Errorf("%+v", found)
	}
	gather(t, e.Gatherer()).absent(t, "idem_findings", "idemscope_findings")
}
