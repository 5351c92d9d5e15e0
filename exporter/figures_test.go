package exporter

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// figuresRig has figures over a real ledger and real counters, each behind a
// proxy, and steps by hand.
type figuresRig struct {
	*bench
	redis              *testkit.RedisDB
	mysqlWay, redisWay *testkit.Proxy
	figures            *figures
	loops              []*loop
	queues             *queuesSource
}

func newFiguresRig(t *testing.T, flows ...flow.Flow) *figuresRig {
	t.Helper()
	db, store := testkit.MySQL(t), testkit.Redis(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	r := &figuresRig{bench: &bench{Database: db, t: t, clock: time.Now()}, redis: store,
		mysqlWay: testkit.NewProxy(t, db.Addr), redisWay: testkit.NewProxy(t, store.Addr)}
	counters, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{r.redisWay.Addr}, DB: store.DB})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = counters.Close() })
	o := Options{
		Flows: flows, CountersSource: "main",
		Ledgers:  map[string]*ledger.Ledger{"orders": openLedger(t, db, benchOptions{address: r.mysqlWay.Addr, table: "idempotent_record", preset: "idempotent_record"})},
		Brokers:  map[string]Broker{"rabbit": answers{}},
		Counters: func(ctx context.Context) (lockstore.Counters, error) { return counters.Counters(ctx, "") },
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.figures, r.loops = e.figures, e.loops
	r.figures.began = r.clock
	r.figures.now = func() time.Time { return r.clock }
	for _, l := range r.loops {
		switch s := l.source.(type) {
		case *ledgerSource:
			s.now = func() time.Time { return r.clock }
		case *queuesSource:
			r.queues = s
		}
	}
	return r
}

// step lets a minute pass: every source is polled, and a point is taken.
func (r *figuresRig) step() answer.Figures {
	r.t.Helper()
	r.passes(time.Minute)
	for _, l := range r.loops {
		l.poll(r.t.Context())
	}
	r.figures.note()
	return r.figures.list()
}

// count adds to the fields of one biz_type as a consumer does.
func (r *figuresRig) count(bizType string, fields map[string]int64) {
	r.t.Helper()
	r.redis.Client.SAdd(r.t.Context(), "idem_stat:types", bizType)
	for name, n := range fields {
		if err := r.redis.Client.HIncrBy(r.t.Context(), "idem_stat:{"+bizType+"}", name, n).Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// lastPoints words the newest n points, - for one that is not known.
func lastPoints(l answer.Line, n int) (words []string) {
	for _, p := range l.Tail(n).Points {
		if math.IsNaN(p) {
			words = append(words, "-")
		} else {
			words = append(words, fmt.Sprintf("%.3g", p))
		}
	}
	return words
}

func wantPoints(t *testing.T, what string, l answer.Line, want ...string) {
	t.Helper()
	if got := lastPoints(l, len(want)); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v (%s)", what, got, want, l.Why.EN)
	}
}

// only returns the figures of the flow payments.
func only(t *testing.T, f answer.Figures) answer.FlowFigures {
	t.Helper()
	one, ok := f.Of("payments")
	if !ok {
		t.Fatalf("no figures of the flow: %+v", f)
	}
	return one
}

func TestFiguresAreIncrementsAndNeverGuesses(t *testing.T) {
	t.Parallel()
	r := newFiguresRig(t, payments())
	f := only(t, r.step())
	if f.Conflicts.Why.Empty() || f.P99Hour.Runs != 0 {
		t.Errorf("nobody has counted: %+v", f.Conflicts.Why)
	}
	wantPoints(t, "nothing counted", f.Conflicts, "-", "-")
	r.count("pay", map[string]int64{"attempt": 10, "lock_conflict": 3, "dedup_status": 4, "completed": 2, "ms_le_100": 2, "ms_sum": 120})
	wantPoints(t, "first counts after a reading of zero", only(t, r.step()).Conflicts, "-", "3")
	r.count("pay", map[string]int64{"lock_conflict": 2, "dedup_record": 1, "retry": 5, "ms_le_1000": 100, "completed": 100})
	r.count("refund", map[string]int64{"lock_conflict": 4})
	f = only(t, r.step())
	wantPoints(t, "the flow", f.Conflicts, "-", "3", "6")
	wantPoints(t, "both layers", f.Dedup(), "-", "4", "1")
	wantPoints(t, "retries", f.Retries, "-", "0", "5")
	wantPoints(t, "P99", f.P99, "-", "0.0995", "0.995")
	wantPoints(t, "one type", f.Types[1].Conflicts, "-", "-", "4")
	if q := f.P99Hour; q.Runs != 102 || q.Seconds < 0.9 || q.Seconds > 1 || f.P99By != answer.ByConsumers || f.RetriesBy != answer.ByConsumers {
		t.Errorf("P99 of the hour: %+v by %s", q, f.P99By)
	}

	// The hash of one type is deleted: its count begins anew, which is a gap and no spike.
	r.redis.Client.Del(t.Context(), "idem_stat:{pay}")
	r.count("pay", map[string]int64{"lock_conflict": 1})
	r.count("refund", map[string]int64{"lock_conflict": 7})
	wantPoints(t, "after a reset", only(t, r.step()).Conflicts, "3", "6", "-")
	r.count("pay", map[string]int64{"lock_conflict": 1})
	wantPoints(t, "the reset is over", only(t, r.step()).Conflicts, "6", "-", "1")

	// Redis is away for two minutes: what was counted in that time belongs to no minute.
	r.redisWay.Drop(true)
	f = only(t, r.step())
	if f.Conflicts.Why.EN != "the counters in redis main cannot be read" {
		t.Errorf("why: %q", f.Conflicts.Why.EN)
	}
	r.step()
	r.count("pay", map[string]int64{"lock_conflict": 50})
	r.redisWay.Drop(false)
	testkit.Eventually(t, 10*time.Second, func() bool { f := only(t, r.step()); return f.Conflicts.Why.Empty() }, "the counters are not read again")
	f = only(t, r.step())
	sum, _ := f.Conflicts.Tail(60).Sum()
	if got := lastPoints(f.Conflicts, 1)[0]; got != "0" || sum != 3+6+1 {
		t.Errorf("after the outage: last %s, sum %v, %v", got, sum, lastPoints(f.Conflicts, 12))
	}
}

func TestFiguresOfTheLedgerWhereNobodyCounts(t *testing.T) {
	t.Parallel()
	r := newFiguresRig(t, payments())
	r.step()
	r.insert("pay", processing, "a")
	r.insert("pay", failed, "b")
	r.insert("gift", processing, "g")
	r.step()
	r.update("pay", "a", completed, -40, 0)
	r.update("pay", "b", processing, -9, -400)
	all := r.step()
	f := only(t, all)
	wantPoints(t, "stale", f.Stale, "0", "0", "1")
	wantPoints(t, "retries", f.Retries, "0", "1")
	if f.RetriesBy != answer.ByLedger || f.P99By != answer.ByLedger || f.P99Hour.Runs != 1 || f.P99Hour.Seconds < 30 || f.P99Hour.Seconds > 60 || f.Stale.Now != 1 {
		t.Errorf("%s %s %+v, stale now %v", f.RetriesBy, f.P99By, f.P99Hour, f.Stale.Now)
	}
	wantPoints(t, "conflicts", f.Conflicts, "-", "-")
	want := []answer.UndeclaredType{{BizType: "gift", Ledger: "orders", Open: 1, OpenKnown: true}}
	if !slices.Equal(all.Undeclared, want) {
		t.Errorf("undeclared: %+v, want %+v", all.Undeclared, want)
	}
	r.mysqlWay.Drop(true)
	f = only(t, r.step())
	wantPoints(t, "stale, unread", f.Stale, "1", "-")
	if !math.IsNaN(f.Stale.Now) || f.Stale.Why.EN != "the ledger orders cannot be read" {
		t.Errorf("now %v because %q", f.Stale.Now, f.Stale.Why.EN)
	}
}

func TestAFlowThatTakesTheRestHasItsTypes(t *testing.T) {
	t.Parallel()
	everything := payments()
	everything.BizTypes, everything.Rest = nil, true
	r := newFiguresRig(t, everything)
	r.insert("gift", processing, "1")
	r.insert("\x01card", processing, "1")
	r.step()
	all := r.step()
	var names []string
	for _, one := range only(t, all).Types {
		names = append(names, one.BizType)
	}
	if !slices.Equal(names, []string{"\x01card", "gift"}) || len(all.Undeclared) != 0 {
		t.Errorf("types %q, undeclared %+v", names, all.Undeclared)
	}
}

func TestTheBacklogIsThatOfTheWorkAndRetryQueues(t *testing.T) {
	t.Parallel()
	f := payments()
	f.Queue = &flow.Queue{Broker: "rabbit", Name: "order.paid", Retry: []string{"order.retry"}, DeadLetter: "dead"}
	r := newFiguresRig(t, f)
	queue := func(name string, role broker.Role, state flow.State, n int64) broker.Queue {
		return broker.Queue{Name: name, Role: role, Ready: n, Unacked: 1, Consumers: 2, Observation: flow.Observation{State: state}}
	}
	r.queues.broker = answers{queue("order.paid", broker.RoleWork, flow.Found, 5), queue("order.retry", broker.RoleRetry, flow.Found, 3), queue("dead", broker.RoleDeadLetter, flow.Found, 9)}
	got := only(t, r.step())
	wantPoints(t, "backlog", got.Backlog, "-", "10")
	if got.Backlog.Now != 10 || len(got.Queues) != 3 || got.Queues[2].Dead != 10 || got.Queues[0].Ready != 5 || !got.Queues[1].Known {
		t.Errorf("%+v", got.Queues)
	}
	r.queues.broker = answers{queue("order.paid", broker.RoleWork, flow.Found, 5), queue("order.retry", broker.RoleRetry, flow.Absent, 3)}
	got = only(t, r.step())
	wantPoints(t, "backlog with an unknown queue", got.Backlog, "10", "-")
	if got.Backlog.Why.Empty() || !math.IsNaN(got.Backlog.Now) || got.Queues[1].Known || got.Queues[1].Why.Empty() {
		t.Errorf("%+v", got.Queues)
	}
}

func TestStepsThatWereMissedAreGaps(t *testing.T) {
	t.Parallel()
	r := newFiguresRig(t, payments())
	r.count("pay", map[string]int64{"lock_conflict": 1})
	r.step()
	r.count("pay", map[string]int64{"lock_conflict": 1})
	wantPoints(t, "before", only(t, r.step()).Conflicts, "-", "1")
	r.passes(3 * time.Minute) // the process stood still
	r.count("pay", map[string]int64{"lock_conflict": 40})
	wantPoints(t, "after", only(t, r.step()).Conflicts, "1", "-", "-", "-", "-")
	r.count("pay", map[string]int64{"lock_conflict": 2})
	wantPoints(t, "and on", only(t, r.step()).Conflicts, "1", "-", "-", "-", "-", "2")
	// Once more in the same step, and without a poll since.
	r.figures.note()
	r.passes(time.Minute)
	r.figures.note()
	wantPoints(t, "no news", only(t, r.figures.list()).Conflicts, "2", "-")
}

func TestFiguresForgetAfterSixHours(t *testing.T) {
	t.Parallel()
	s := newFigureSeries(int(figureSpan/figureStep), figureStep)
	v := unseen()
	for step := 1; step <= 1000; step++ {
		v.values[lineConflicts] = float64(step)
		v.runs = spread{}
		v.runs[5] = 1
		s.skip(step, step)
		s.set(step, v)
	}
	got := s.copyOf(lineConflicts, 1000)
	if len(got) != 360 || got[0] != 641 || got[359] != 1000 {
		t.Errorf("%d points from %v to %v", len(got), got[0], got[len(got)-1])
	}
	if n := s.runs.all().total(); n < 56 || n > 60 {
		t.Errorf("%d runs in the last hour, one each minute", n)
	}
	s.skip(1001, 1000+61)
	if n := s.runs.all().total(); n != 0 {
		t.Errorf("%d runs after an hour without any", n)
	}
}

// TestFiguresStaySmall bounds what one biz_type with all its lines takes.
func TestFiguresStaySmall(t *testing.T) {
	const many = 500
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := make([]*figureSeries, many)
	for i := range all {
		all[i] = newFigureSeries(int(figureSpan/figureStep), figureStep)
		v := seen{}
		v.runs[1], v.records[1] = 1, 1
		for step := 1; step < 80; step++ {
			all[i].skip(step, step)
			all[i].set(step, v)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int(after.HeapAlloc-before.HeapAlloc) / many
	t.Logf("%d bytes for each series, %d by its own account", each, all[0].bytes())
	if each > 20<<10 || all[0].bytes() > each {
		t.Errorf("a series takes %d bytes", each)
	}
	runtime.KeepAlive(all)
}

func TestQuantilesAreThoseOfPrometheus(t *testing.T) {
	for _, c := range []struct {
		bucket int
		n      uint64
		want   answer.Quantile
	}{
		{0, 0, answer.Quantile{}},
		{0, 100, answer.Quantile{Runs: 100, Seconds: 0.005 * 0.99}},
		{3, 10, answer.Quantile{Runs: 10, Seconds: 0.025 + 0.025*0.99}},
		{bounds - 1, 1, answer.Quantile{Runs: 1, Seconds: 300, Beyond: true}},
	} {
		var s spread
		s[c.bucket] = c.n
		got := s.quantile()
		if got.Runs != c.want.Runs || math.Abs(got.Seconds-c.want.Seconds) > 1e-9 || got.Beyond != c.want.Beyond {
			t.Errorf("%d in bucket %d: %+v, want %+v", c.n, c.bucket, got, c.want)
		}
	}
}
