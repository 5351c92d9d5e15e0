package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bench is a consumer on real stores, handed one message at a time.
type bench struct {
	consumer
	t *testing.T
}

func newBench(t *testing.T, flowName string) *bench {
	t.Helper()
	db, store := testkit.MySQL(t), testkit.Redis(t)
	if err := createTables(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	matched, err := openDB(db.Addr, db.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = matched.Close() })
	return &bench{t: t, consumer: consumer{
		route: routeOf(routes(true), flowName), db: matched, redis: store.Client,
		truth: newWitness(), log: slog.New(slog.DiscardHandler),
	}}
}

// hand delivers m and returns how it was settled.
func (b *bench) hand(m message, round int, redelivered bool) (settlement, error) {
	settled := settlement(-1)
	err := b.deliver(b.t.Context(), delivery{message: m, round: round, redelivered: redelivered,
		settle: func(_ context.Context, s settlement) error { settled = s; return nil }})
	return settled, err
}

// wants hands over m and checks how it is settled.
func (b *bench) wants(want settlement, m message, round int) {
	b.t.Helper()
	got, err := b.hand(m, round, false)
	if err != nil {
		b.t.Fatal(err)
	}
	if got != want {
		b.t.Fatalf("round %d of %s was settled with %d, not %d", round, m.BizID, got, want)
	}
}

// state reads what a key has left: the record's phase, its effects, and whether lock and marker stand.
func (b *bench) state(k flow.Key) (phase flow.Phase, effects int, locked, marked bool) {
	b.t.Helper()
	if table, ok := b.book.(statusTable); ok {
		var err error
		if _, phase, err = table.find(b.t.Context(), b.db, k); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.db.Get(&effects, "SELECT COALESCE(SUM(effects), 0) FROM lab_effects WHERE biz_type = ? AND biz_id = ?", k.BizType, k.BizID); err != nil {
		b.t.Fatal(err)
	}
	locked = b.redis.Exists(b.t.Context(), b.Lock.Render(k)).Val() == 1
	if b.Marker != nil {
		marked = b.redis.Exists(b.t.Context(), b.Marker.Render(k)).Val() == 1
	}
	return phase, effects, locked, marked
}

func (b *bench) wantState(k flow.Key, phase flow.Phase, effects int, locked, marked bool) {
	b.t.Helper()
	p, e, l, m := b.state(k)
	if p != phase || e != effects || l != locked || m != marked {
		b.t.Fatalf("%v: phase %q, %d effects, locked %v, marked %v; want %q, %d, %v, %v", k, p, e, l, m, phase, effects, locked, marked)
	}
}

func TestOrdinaryRunAndDuplicate(t *testing.T) {
	b := newBench(t, "payments")
	m := message{BizType: "order_paid", BizID: "A-1"}
	b.wants(ack, m, 0)
	b.wantState(m.key(), flow.Completed, 1, false, true)
	b.wants(ack, m, 0)
	b.redis.Del(t.Context(), b.Marker.Render(m.key()))
	b.wants(ack, m, 0) // the record alone stops it
	b.wantState(m.key(), flow.Completed, 1, false, false)
	tally := b.truth.copy()["order_paid"]
	if tally.Deliveries != 3 || tally.Completed != 1 || tally.DedupStatus != 2 || tally.Acquired != 1 || tally.Records[flow.Completed] != 1 {
		t.Fatalf("%+v", tally)
	}
	wantCounters(t, b.redis, b.truth.copy())
}

func TestFailureIsRetriedAndThenGivenUp(t *testing.T) {
	b := newBench(t, "payments")
	once := message{BizType: "order_paid", BizID: "A-1", Lab: fate{FailRounds: 1}}
	b.wants(giveBack, once, 0)
	b.wantState(once.key(), flow.Failed, 0, false, false)
	b.wants(ack, once, 1)
	b.wantState(once.key(), flow.Completed, 1, false, true)
	hopeless := message{BizType: "refund", BizID: "A-2", Lab: fate{FailRounds: maxRounds}}
	for round := range maxRounds - 1 {
		b.wants(giveBack, hopeless, round)
	}
	b.wants(giveUp, hopeless, maxRounds-1)
	b.wantState(hopeless.key(), flow.Failed, 0, false, false)
	truth := b.truth.copy()
	if n := truth["order_paid"].Retry; n != 1 {
		t.Errorf("%d retries of order_paid, want 1", n)
	}
	if n := truth["refund"].Retry; n != maxRounds-1 {
		t.Errorf("%d retries of refund, want %d", n, maxRounds-1)
	}
	wantCounters(t, b.redis, truth)
}

func TestLockRefusesASecondConsumer(t *testing.T) {
	b := newBench(t, "payments")
	m := message{BizType: "order_paid", BizID: "A-1"}
	b.redis.Set(t.Context(), b.Lock.Render(m.key()), "somebody", time.Minute)
	b.wants(giveBack, m, 0)
	b.wantState(m.key(), "", 0, true, false) // the other's lock is left alone
	if got := b.redis.Get(t.Context(), b.Lock.Render(m.key())).Val(); got != "somebody" {
		t.Fatalf("the lock is now held by %q", got)
	}
	wantCounters(t, b.redis, b.truth.copy())
}

func TestPatientConsumerWaitsForTheLock(t *testing.T) {
	b := newBench(t, "payments")
	b.patience = 10 * time.Second
	m := message{BizType: "order_paid", BizID: "A-1"}
	b.redis.Set(t.Context(), b.Lock.Render(m.key()), "somebody", 50*time.Millisecond)
	b.wants(ack, m, 0)
	b.wantState(m.key(), flow.Completed, 1, false, true)
}

func TestKilledConsumerLeavesLockAndRecord(t *testing.T) {
	b := newBench(t, "payments")
	m := message{BizType: "order_paid", BizID: "A-1", Lab: fate{Kill: true}}
	if _, err := b.hand(m, 0, false); !errors.Is(err, errKilled) {
		t.Fatalf("error %v, want errKilled", err)
	}
	b.wantState(m.key(), flow.Processing, 0, true, false)
	if ttl := b.redis.PTTL(t.Context(), b.Lock.Render(m.key())).Val(); ttl <= 0 || ttl > 15*time.Second {
		t.Fatalf("the lock's TTL is %v", ttl)
	}
	tally := b.truth.copy()["order_paid"]
	if tally.Killed != 1 || tally.Ends() != 0 || tally.Records[flow.Processing] != 1 {
		t.Fatalf("%+v", tally)
	}
	wantCounters(t, b.redis, b.truth.copy())
}

func TestProcessingRecordMeetsThePolicy(t *testing.T) {
	for policy, want := range map[flow.OnProcessing]struct {
		settled settlement
		phase   flow.Phase
		effects int
		outcome outcome
	}{
		flow.Refuse: {ack, flow.Processing, 0, dedupRecord},
		flow.Retry:  {giveBack, flow.Processing, 0, dedupRecord},
		flow.Resume: {ack, flow.Completed, 1, runCompleted},
	} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t, "points")
			b.OnProcessing = policy
			m := message{BizType: "points_grant", BizID: "A-1", Lab: fate{Kill: true}}
			if _, err := b.hand(m, 0, false); !errors.Is(err, errKilled) {
				t.Fatalf("error %v, want errKilled", err)
			}
			b.redis.Del(t.Context(), b.Lock.Render(m.key())) // as if it had expired
			if got, err := b.hand(m, 0, true); err != nil || got != want.settled {
				t.Fatalf("settled with %d and error %v, want %d", got, err, want.settled)
			}
			b.wantState(m.key(), want.phase, want.effects, false, false)
			tally := b.truth.copy()["points_grant"]
			if n := *tally.outcome(want.outcome); n != 1 {
				t.Fatalf("%d %s, want 1", n, want.outcome)
			}
		})
	}
}

// A run that outlives its lock lets a second one in: what the short lock of the points flow is there to show.
func TestRunOutlivesItsLock(t *testing.T) {
	b := newBench(t, "points")
	b.Lock.TTL = 50 * time.Millisecond
	m := message{BizType: "points_grant", BizID: "A-1", Lab: fate{Ms: 600}}
	first := make(chan error, 1)
	go func() {
		_, err := b.hand(m, 0, false)
		first <- err
	}()
	testkit.Eventually(t, 5*time.Second, func() bool {
		phase, _, locked, _ := b.state(m.key())
		return phase == flow.Processing && !locked
	}, "the first run loses its lock")
	quick := m
	quick.Lab.Ms = 1
	b.wants(ack, quick, 0)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	b.wantState(m.key(), flow.Completed, 2, false, false)
	tally := b.truth.copy()["points_grant"]
	if tally.LockLost != 1 || tally.Completed != 2 || tally.Effects != 2 || tally.Records[flow.Completed] != 1 {
		t.Fatalf("%+v", tally)
	}
	wantCounters(t, b.redis, b.truth.copy())
}

func TestSignIsRefusedByTheUniqueKey(t *testing.T) {
	b := newBench(t, "signs")
	m := message{BizType: "sign", BizID: "7:2025-01-15"}
	b.wants(ack, m, 0)
	b.wantState(m.key(), "", 1, false, true)
	// A second consumer whose status check came too early gets as far as the unique key.
	e := ending{bizType: "sign"}
	if s, err := b.run(t.Context(), t.Context(), delivery{message: m}, &e, &steps{client: b.redis}); err != nil || s != ack || e.outcome != dedupRecord {
		t.Fatalf("settled with %d, outcome %q, error %v", s, e.outcome, err)
	}
	b.wantState(m.key(), "", 1, false, true)
}

func TestWithoutRedisTheRecordAloneGuards(t *testing.T) {
	b := newBench(t, "payments")
	store := b.redis
	b.redis = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer b.redis.Close()
	m := message{BizType: "order_paid", BizID: "A-1"}
	b.wants(ack, m, 0)
	b.wants(ack, m, 0)
	if tally := b.truth.copy()["order_paid"]; tally.Degraded != 1 || tally.Completed != 1 || tally.DedupStatus != 1 {
		t.Fatalf("%+v", tally)
	}
	b.redis = store
	b.wantState(m.key(), flow.Completed, 1, false, false)
}

func TestRenewTakesAnExpiredLockAgainButNoForeignOne(t *testing.T) {
	store := testkit.Redis(t).Client
	l := newLock(store, "k")
	for _, before := range []func(){func() {}, func() {}, func() { store.Del(t.Context(), "k") }} {
		before()
		if held, err := l.renew(t.Context(), time.Minute); err != nil || !held {
			t.Fatalf("held %v, error %v", held, err)
		}
	}
	store.Set(t.Context(), "k", "somebody", time.Minute)
	if held, err := l.renew(t.Context(), time.Hour); err != nil || held {
		t.Fatalf("a foreign lock: held %v, error %v", held, err)
	}
	if !l.release(t.Context()) || store.Get(t.Context(), "k").Val() != "somebody" {
		t.Fatal("a foreign lock was released")
	}
}

func TestADeliveryLeavesItsTrail(t *testing.T) {
	b := newBench(t, "payments")
	b.worker = "lab-1"
	m := message{BizType: "order_paid", BizID: "SO-1"}
	b.wants(ack, m, 0)
	b.wants(ack, m, 0)
	var got []string
	for _, entry := range b.redis.XRange(t.Context(), "idem_trail", "-", "+").Val() {
		if entry.Values["t"] != "order_paid" || entry.Values["b"] != "SO-1" || entry.Values["w"] != "lab-1" {
			t.Errorf("entry %v", entry.Values)
		}
		got = append(got, strings.TrimSuffix(fmt.Sprintf("%s %s", entry.Values["s"], entry.Values["o"]), " "))
	}
	want := []string{"received", "status open", "lock held", "insert granted", "run", "done", "unlock", "ack", "received", "status completed", "ack"}
	if !slices.Equal(got, want) {
		t.Errorf("the trail is %q, want %q", got, want)
	}
}
