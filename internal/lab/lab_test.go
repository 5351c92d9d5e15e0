package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// startBudget is for a machine that does much else meanwhile; a quiet one takes under ten seconds.
const startBudget = time.Minute

// privateTemp gives the servers of a test a temporary directory of their own. Its path is short: it holds sockets.
func privateTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// TestLab starts one lab, looks at everything in it, and ends it.
func TestLab(t *testing.T) {
	temp := privateTemp(t)
	begin := time.Now()
	l, err := Start(t.Context(), Options{Listen: "127.0.0.1:9877"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Stop() }()
	took := time.Since(begin)
	t.Logf("started in %v", took)
	if took > startBudget {
		t.Errorf("the start took %v, more than %v", took, startBudget)
	}
	if len(l.Missing) > 0 {
		t.Fatalf("missing: %v", l.Missing)
	}
	t.Run("history", func(t *testing.T) { testHistory(t, l) })
	t.Run("samples", func(t *testing.T) { testSamples(t, l) })
	t.Run("config", func(t *testing.T) { testConfig(t, l) })
	t.Run("monitor", func(t *testing.T) { testMonitor(t, l) })
	t.Run("replayer", func(t *testing.T) { testReplayer(t, l) })
	t.Run("traffic", func(t *testing.T) { testTraffic(t, l) })
	t.Run("dead letters", func(t *testing.T) { testDeadLetters(t, l) })
	t.Run("samples after traffic", func(t *testing.T) { testSamples(t, l) })
	t.Run("stop", func(t *testing.T) { testStop(t, l, temp) })
}

func testHistory(t *testing.T, l *Lab) {
	var rows int
	for table, created := range map[string]string{
		"idempotent_record": "create_time", "settlement_record": "create_time", "coupon_record": "create_time",
		"message_deduplication": "created_at", "user_sign_record": "created_at",
	} {
		var n, falls, days int
		query := fmt.Sprintf(`SELECT COUNT(*), COALESCE(SUM(before_it > %[2]s), 0), TIMESTAMPDIFF(DAY, MIN(%[2]s), NOW())
			FROM (SELECT %[2]s, LAG(%[2]s) OVER (ORDER BY id) AS before_it FROM %[1]s) AS t`, table, created)
		if err := l.db.QueryRowx(query).Scan(&n, &falls, &days); err != nil {
			t.Fatal(err)
		}
		if falls > 0 {
			t.Errorf("%s: %d rows were created before the one with the next lower id", table, falls)
		}
		if days < 9 || days > 10 {
			t.Errorf("%s reaches back %d days", table, days)
		}
		rows += n
	}
	if rows < 20_000 || rows > 20_100 {
		t.Errorf("%d rows", rows)
	}
}

func testTraffic(t *testing.T, l *Lab) {
	before := countRecords(t, l)
	runUntil(t, l, 60*time.Second, func(truth Truth) bool {
		var all Tally
		for _, tally := range truth {
			all.LockConflict += tally.LockConflict
			all.DedupRecord += tally.DedupRecord
			all.DedupStatus += tally.DedupStatus
			all.Retry += tally.Retry
		}
		return len(truth) == len(trafficHabits()) && all.LockConflict > 0 && all.DedupRecord > 0 && all.DedupStatus > 10 && all.Retry > 0 &&
			truth["order_paid"].Killed > 0 && truth["points_grant"].Killed > 0 && truth["sign"].Completed > 0
	})
	truth := l.Truth()
	for bizType, tally := range truth {
		t.Logf("%s: %+v", bizType, tally)
		if tally.Deliveries != tally.Ends()+tally.Killed {
			t.Errorf("%s: %d deliveries, %d ends, %d killed", bizType, tally.Deliveries, tally.Ends(), tally.Killed)
		}
	}
	wantCounters(t, l.redis, truth)
	wantEffects(t, l, truth)
	after := countRecords(t, l)
	for bizType, tally := range truth {
		for _, phase := range []flow.Phase{flow.Processing, flow.Completed, flow.Failed} {
			if got := after[bizType][phase] - before[bizType][phase]; got != tally.Records[phase] {
				t.Errorf("%s: %d records %s, want %d", bizType, got, phase, tally.Records[phase])
			}
		}
	}
}

// runUntil makes traffic until enough has happened. It sends one message that fails once, so that no test waits for
// chance to make one.
func runUntil(t *testing.T, l *Lab, timeout time.Duration, enough func(Truth) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	m := message{BizType: "order_paid", BizID: "FAILS-ONCE-1", Lab: fate{FailRounds: 1}}
	if err := l.queues["payments"].publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, timeout, func() bool { return len(ended) > 0 || enough(l.Truth()) }, "traffic shows every end of a delivery")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !enough(l.Truth()) {
		t.Fatal("traffic ended by itself")
	}
}

// testDeadLetters: what the broker does with a message that fails in every round.
func testDeadLetters(t *testing.T, l *Lab) {
	r := routeOf(l.routes, "payments")
	r.Queue = queueNamed("lab.test")
	if err := l.rabbit.declare(*r.Queue, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	c := l.consumer(r)
	c.truth = newWitness()
	q := rabbitQueue{rabbit: l.rabbit, names: *r.Queue}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := q.subscribe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.consume(ctx, s) }()
	hopeless := message{BizType: "order_paid", BizID: "HOPELESS-1", Lab: fate{FailRounds: maxRounds}}
	if err := q.publish(ctx, hopeless); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() bool {
		n, _, err := l.monitor.total(ctx, plainClient(), r.Queue.DeadLetter)
		return err == nil && n == 1
	}, "the message is among the dead letters")
	cancel()
	if err := errors.Join(<-ended, s.leave()); err != nil {
		t.Fatal(err)
	}
	if tally := c.truth.copy()["order_paid"]; tally.Failed != maxRounds || tally.Deliveries != maxRounds {
		t.Errorf("%+v", tally)
	}
	if !inQueue(t, l, r.Queue.DeadLetter, hopeless.BizID) {
		t.Error("another message is among the dead letters")
	}
}

// countRecords counts the records of every biz_type by phase.
func countRecords(t *testing.T, l *Lab) map[string]map[flow.Phase]int {
	t.Helper()
	counts := map[string]map[flow.Phase]int{}
	for _, query := range []string{
		"SELECT biz_type, CAST(status AS CHAR), COUNT(*) FROM idempotent_record GROUP BY 1, 2",
		"SELECT message_type, CAST(status AS CHAR), COUNT(*) FROM message_deduplication GROUP BY 1, 2",
		"SELECT 'sign', 'completed', COUNT(*) FROM user_sign_record",
	} {
		rows, err := l.db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var bizType, status string
			var n int
			if err := rows.Scan(&bizType, &status, &n); err != nil {
				t.Fatal(err)
			}
			phase := messageTable().phases[status]
			if phase == "" {
				phase = recordTable("").phases[status]
			}
			if counts[bizType] == nil {
				counts[bizType] = map[flow.Phase]int{}
			}
			counts[bizType][phase] += n
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

// wantEffects: exactly one effect per id, except where the lock is shorter than the slow runs.
func wantEffects(t *testing.T, l *Lab, truth Truth) {
	t.Helper()
	var found []struct {
		Type           string
		IDs, Sum, Most int
	}
	if err := l.db.Select(&found, "SELECT biz_type AS type, COUNT(*) AS ids, SUM(effects) AS sum, MAX(effects) AS most FROM lab_effects GROUP BY biz_type"); err != nil {
		t.Fatal(err)
	}
	if len(found) != len(truth) {
		t.Errorf("%d biz_types have effects, want %d", len(found), len(truth))
	}
	for _, f := range found {
		tally := truth[f.Type]
		if uint64(f.Sum) != tally.Effects || tally.Effects != tally.Completed || f.IDs != tally.Records[flow.Completed] {
			t.Errorf("%s: %+v, truth %+v", f.Type, f, tally)
		}
		if f.Most != 1 && !strings.HasPrefix(f.Type, "points_") {
			t.Errorf("%s: an effect happened %d times", f.Type, f.Most)
		}
	}
}

// wantCounters compares the hashes of the instrumentation contract with the truth, field by field.
func wantCounters(t *testing.T, store *redis.Client, truth Truth) {
	t.Helper()
	types := store.SMembers(t.Context(), "idem_stat:types").Val()
	if len(types) != len(truth) {
		t.Errorf("counted types %v, want %d", types, len(truth))
	}
	for bizType, tally := range truth {
		want := map[string]uint64{
			"attempt": tally.Deliveries, "lock_conflict": tally.LockConflict, "dedup_status": tally.DedupStatus, "dedup_record": tally.DedupRecord,
			"completed": tally.Completed, "failed": tally.Failed, "acquired": tally.Acquired, "retry": tally.Retry,
			"lock_lost": tally.LockLost, "degraded": tally.Degraded, "ms_sum": tally.MsSum,
		}
		maps.Copy(want, tally.Runs)
		got := store.HGetAll(t.Context(), "idem_stat:{"+bizType+"}").Val()
		for field, text := range got {
			if n, err := strconv.ParseUint(text, 10, 64); err != nil || n != want[field] {
				t.Errorf("%s: counter %s is %s, want %d", bizType, field, text, want[field])
			}
		}
		for field, n := range want {
			if _, counted := got[field]; n > 0 && !counted {
				t.Errorf("%s: counter %s is missing, want %d", bizType, field, n)
			}
		}
	}
}

func testStop(t *testing.T, l *Lab, temp string) {
	running := make(chan error, 1)
	go func() { running <- l.Run(t.Context()) }()
	deliveries := l.Truth()["order_paid"].Deliveries
	testkit.Eventually(t, 10*time.Second, func() bool { return l.Truth()["order_paid"].Deliveries > deliveries }, "traffic runs again")

	begin := time.Now()
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > runEndTimeout {
		t.Errorf("stop took %v", took)
	}
	if err := <-running; err != nil {
		t.Errorf("traffic under a stopped lab: %v", err)
	}
	if err := l.Run(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("a stopped lab runs: %v", err)
	}
	if err := l.Stop(); err != nil {
		t.Errorf("the second stop: %v", err)
	}
	for name, server := range map[string]struct {
		pid  int
		addr string
	}{"mariadb": {l.mariadb.Pid, l.mariadb.Addr}, "redis": {l.redisServer.Pid, l.redisServer.Addr}, "rabbitmq": {l.rabbitmq.Pid, l.rabbitmq.AMQP}} {
		if err := syscall.Kill(server.pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: process %d: %v", name, server.pid, err)
		}
		if conn, err := net.Dial("tcp", server.addr); err == nil {
			_ = conn.Close()
			t.Errorf("%s still listens on %s", name, server.addr)
		}
	}
	wantEmpty(t, temp)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d files are left, such as %s", len(left), left[0].Name())
	}
}

func TestWithoutRabbitMQ(t *testing.T) {
	temp := privateTemp(t)
	absent := servers.NotInstalled{Program: "rabbitmq-server", Install: "apt-get install rabbitmq-server"}
	l, err := start(t.Context(), Options{Listen: "127.0.0.1:9877"}, func(context.Context, servers.RabbitMQOptions) (*servers.RabbitMQ, error) {
		return nil, absent
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Stop() }()
	if len(l.Missing) != 1 || !strings.Contains(l.Missing[0].Error(), "apt-get install rabbitmq-server") {
		t.Errorf("missing: %v", l.Missing)
	}
	if config := string(l.Config()); strings.Contains(config, "broker") || strings.Contains(config, "queue") {
		t.Errorf("the configuration names a broker:\n%s", config)
	}
	verdicts := map[string]string{}
	for _, s := range l.Samples() {
		verdicts[s.BizID] = s.Verdict
	}
	for id, want := range map[string]string{
		"2025-01-14/shop-12": "failed_unplaced", "2025-01-15/shop-31": "stuck", "IMP-20250115-03": "never_seen", "2025-01-16/shop-07": "never_seen",
	} {
		if verdicts[id] != want {
			t.Errorf("%s: %q, want %q", id, verdicts[id], want)
		}
	}
	runUntil(t, l, 30*time.Second, func(truth Truth) bool {
		tally := truth["order_paid"]
		return tally.Completed > 5 && tally.Killed > 0 && tally.LockConflict > 0 && tally.Retry > 0
	})
	wantCounters(t, l.redis, l.Truth())
	wantEffects(t, l, l.Truth())
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
	wantEmpty(t, temp)
}

func TestStartWithoutServersTellsHowToInstallThem(t *testing.T) {
	temp := privateTemp(t)
	t.Setenv("PATH", "")
	l, err := Start(t.Context(), Options{Listen: "127.0.0.1:9877"})
	var absent servers.NotInstalled
	if !errors.As(err, &absent) || !strings.Contains(err.Error(), "install") || l != nil {
		t.Fatalf("lab %v, error %v", l, err)
	}
	wantEmpty(t, temp)
}
