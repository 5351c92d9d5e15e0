package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
	"idemscope/internal/verdict"
)

// evicting is a Redis that keeps keys over a restart and throws them away for want of memory.
const evicting = "evicting"

// forgetfulRedis are cases in which a lock is missing and Redis may be the reason. The shop's own Redis keeps nothing
// over a restart, and was started when the suite was.
func forgetfulRedis() []scenario {
	unsure := func(c scenario) scenario {
		c.code, c.layer, c.severity = verdict.Unknown, flow.LayerRedis, verdict.Unsure
		c.never = append(c.never, "nobody holds the lock", "set the record back")
		return c
	}
	return []scenario{
		unsure(scenario{
			field: "B2", story: "Redis was started anew since the run's last sign of life: the extended lock may be lost", flow: "reports",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			says: []string{"Redis was started", "may have lost it", "Look for the consumer itself"},
		}),
		unsure(scenario{
			field: "B2", story: "Redis was started anew, and a lock of 24 h would still live", flow: "reservations",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			says: []string{"Redis was started"},
		}),
		unsure(scenario{
			field: "B5", story: "Redis threw keys with an expiry away, the lock among them", flow: "evicted",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), lockEvicted},
			says: []string{"Redis has evicted keys for want of memory"},
		}),
		{
			field: "B5", story: "Redis evicts, but this lock would have expired by itself", flow: "evicted briefly",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour)},
			code: verdict.Stuck, layer: flow.LayerMySQL, severity: verdict.Critical,
		},
		{
			field: "B5", story: "Redis evicts, and a fresh record needs no lock as proof", flow: "evicted",
			left: []deed{record(processing, time.Minute, 20*time.Second)},
			code: verdict.Running, layer: flow.LayerNone, severity: verdict.OK, notes: "lock_absent lock_gone_early",
		},
		unsure(scenario{
			field: "B3", story: "the lock was taken on a primary that died before its replica had it", flow: "moved",
			left: []deed{record(processing, 2*time.Hour, 2*time.Hour), failedOver},
			says: []string{"another Redis server answers now", "a failover may have lost it"},
		}),
		{
			field: "B1", story: "the lock fell to another consumer while the record was in processing", flow: "reports",
			left: []deed{record(processing, 3*time.Minute, 3*time.Minute), takenOver},
			code: verdict.MayHaveRunTwice, layer: flow.LayerRedis, severity: verdict.Warning,
			never: []string{"running:"},
		},
	}
}

// moving is a Redis behind an address that leads to another server after a failover.
const moving = "moving"

// movingRedis are the two servers behind the address.
type movingRedis struct {
	way           *testkit.Proxy
	before, after *redis.Client
}

// openMoving starts both servers; each would have kept its keys over a restart.
func openMoving(t *testing.T) movingRedis {
	t.Helper()
	start := func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: testkit.StartRedis(t, "--appendonly", "yes").Addr, DisableIdentity: true})
		closeAtEnd(t, client.Close)
		return client
	}
	m := movingRedis{before: start(), after: start()}
	m.way = testkit.NewProxy(t, m.before.Options().Addr)
	return m
}

// failedOver takes the key's lock on the first server, looks it up, and moves the
// address to a replica that never got the lock.
func failedOver(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
	t.Helper()
	if err := s.moving.before.Set(t.Context(), f.Lock.Render(k), "worker-7:4711:5f3a", 20*time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	a, err := s.desk.Answer(t.Context(), flow.Place{Flow: f.Name, Key: k})
	if err != nil || a.Lock.State != flow.Found {
		t.Fatalf("before the failover: %v, lock %s", err, a.Lock.State)
	}
	s.moving.way.Point(s.moving.after.Options().Addr)
}

// takenOver is a lock that a look has seen, and that then fell to another consumer.
func takenOver(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
	t.Helper()
	s.set(t, f.Lock.Render(k), "worker-7:4711:5f3a", 20*time.Second)
	if _, err := s.desk.Answer(t.Context(), flow.Place{Flow: f.Name, Key: k}); err != nil {
		t.Fatal(err)
	}
	s.set(t, f.Lock.Render(k), "worker-8:4712:77aa", 59*time.Second)
}

// openEvicting starts the evicting Redis and returns a client with full rights.
func openEvicting(t *testing.T) *redis.Client {
	t.Helper()
	server := testkit.StartRedis(t, "--appendonly", "yes", "--maxmemory-policy", "volatile-ttl")
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	closeAtEnd(t, client.Close)
	return client
}

// lockEvicted takes the key's lock for a day and then leaves Redis no memory for it.
func lockEvicted(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
	t.Helper()
	ctx, key := t.Context(), f.Lock.Render(k)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.evicting.Set(ctx, key, "worker-7:4711:5f3a", f.Lock.TTL).Err())
	must(s.evicting.ConfigSet(ctx, "maxmemory", "1").Err())
	testkit.Eventually(t, counted, func() bool {
		// Each write first makes room, and is refused when that is not enough.
		if err := s.evicting.Set(ctx, "other", "x", time.Minute).Err(); err != nil && !strings.HasPrefix(err.Error(), "OOM") {
			t.Fatal(err)
		}
		left, err := s.evicting.Exists(ctx, key).Result()
		must(err)
		return left == 0
	}, "the lock is not evicted")
	must(s.evicting.ConfigSet(ctx, "maxmemory", "0").Err())
	testkit.Eventually(t, counted, func() bool {
		info, err := s.evicting.Info(ctx, "server").Result()
		must(err)
		return !strings.Contains(info, "uptime_in_seconds:0\r")
	}, "Redis is not up for a second")
}

// archived are cases in which the clean-up moved the record before.
func archived() []scenario {
	const archive = "kept_record_archive"
	old := 20 * 24 * time.Hour
	moved := insert(archive, recordColumns, theType, theID, completed, ago(old), ago(old-time.Second))
	return []scenario{
		{
			field: "H-a", story: "completed, and moved to the archive", flow: "kept",
			left: []deed{moved},
			code: verdict.Archived, layer: flow.LayerNone, severity: verdict.OK,
			says: []string{"its record was archived", "Nothing stops a further delivery but a marker"}, never: []string{"never seen"},
		},
		{
			field: "H-b", story: "replayed after its record was archived, and it ran again", flow: "kept",
			left: []deed{moved, record(completed, time.Hour, time.Hour-time.Second)},
			code: verdict.RanTwice, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"then a message of the same key ran again", "Keep records for longer"},
		},
		{
			field: "H-a", story: "neither in the ledger nor in the archive", flow: "kept",
			code: verdict.NeverSeen, layer: flow.LayerNone, severity: verdict.Info,
		},
		{
			field: "H-a", story: "the archive is not there: it may hold the record", flow: "unkept",
			code: verdict.Unknown, layer: flow.LayerMySQL, severity: verdict.Unsure,
			says: []string{"the archive could not be read"}, never: []string{"never seen"},
		},
	}
}
