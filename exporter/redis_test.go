package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

func forever(key string) lockstore.TimedKey { return lockstore.TimedKey{Key: key, NoTTL: true} }

func TestRedisGoesDownAndComesBack(t *testing.T) {
	t.Parallel()
	s := newKeyStage(t, keyStageOptions{})
	s.set("shop:lock:pay:1", time.Hour)
	s.run()
	s.reaches(samples{redisUp: 1, ofFlow("idem_locks"): 1})
	for _, fault := range []func(bool){s.redisWay.Hang, s.redisWay.Drop} {
		fault(true)
		s.reaches(samples{redisUp: 0})
		s.now().absent(t, "idem_locks", "idem_markers", "idemscope_sweep_keys", "idem_redis_evicted_keys_total")
		fault(false)
		s.reaches(samples{redisUp: 1, ofFlow("idem_locks"): 1})
	}
}

func TestSweepsCanBeOff(t *testing.T) {
	t.Parallel()
	s := newKeyStage(t, keyStageOptions{tune: func(o *Options) { o.SweepKeysPerSecond = 0 }})
	s.set("shop:lock:pay:1", 0)
	s.run()
	s.reaches(samples{redisUp: 1, `idem_redis_evicted_keys_total{redis="main"}`: 0})
	s.now().absent(t, "idem_locks", "idem_markers", "idemscope_sweep_keys", "idemscope_sweep_duration", "idemscope_markers")
}

func TestMissingRights(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer admin.Close()
	grant := func(rights string) {
		args := []any{"ACL", "SETUSER", "observer", "reset", "on", ">pass-of-observer", "%R~shop:*"}
		for right := range strings.FieldsSeq(rights) {
			args = append(args, right)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Set(t.Context(), "shop:lock:pay:1", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	grant("+scan +pttl")
	s := newKeyStage(t, keyStageOptions{addr: server.Addr, user: "observer"})
	s.run()
	s.reaches(samples{redisUp: 1, ofFlow("idem_locks"): 1})
	s.now().absent(t, "idem_redis_evicted_keys_total")
	if n := strings.Count(s.log.String(), "may not run INFO"); n != 1 {
		t.Errorf("the missing right is said %d times: %s", n, s.log)
	}
	grant("+pttl")
	s.reaches(samples{redisUp: 0})
	s.now().absent(t, "idem_locks")
	if !strings.Contains(s.log.String(), "may not run SCAN: grant it") {
		t.Errorf("log: %s", s.log)
	}
	grant("+scan +pttl")
	s.reaches(samples{redisUp: 1, ofFlow("idem_locks"): 1})
}

func TestEvictionsNeverFall(t *testing.T) {
	var e evictions
	for _, step := range []struct {
		a, b uint64
		want float64
	}{{5, 0, 5}, {7, 1, 8}, {0, 1, 8}, {2, 2, 11}} {
		if got := e.add(map[string]uint64{"a": step.a, "b": step.b}); got != step.want {
			t.Errorf("%v: %v", step, got)
		}
	}
}

func TestLockExpirations(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	s := newKeyStage(t, keyStageOptions{addr: server.Addr, tune: func(o *Options) { o.LockExpirations = true }})
	s.redis.Client = redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer s.redis.Client.Close()
	s.run()
	testkit.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(s.log.String(), "does not publish expirations") && strings.Contains(s.log.String(), "notify-keyspace-events to Ex")
	}, "nobody says that nothing is published")
	s.set("shop:lock:pay:unheard", time.Millisecond)
	testkit.Eventually(t, 5*time.Second, func() bool { return s.redis.Client.DBSize(t.Context()).Val() == 0 }, "the key does not expire")
	s.now().absent(t, "idem_lock_expirations_total")
	if set := s.redis.Client.ConfigGet(t.Context(), "notify-keyspace-events").Val()["notify-keyspace-events"]; set != "" {
		t.Errorf("the configuration of the server was changed to %s", set)
	}

	// Turned on later: the first event shows it.
	if err := s.redis.Client.ConfigSet(t.Context(), "notify-keyspace-events", "Ex").Err(); err != nil {
		t.Fatal(err)
	}
	s.set("session:1", time.Millisecond)
	s.reaches(samples{ofFlow("idem_lock_expirations_total"): 0})
	for _, key := range []string{"shop:lock:pay:1", "shop:lock:refund:2", "shop:lock:other:3", "shop:done:pay:4"} {
		s.set(key, time.Millisecond)
	}
	s.reaches(samples{ofFlow("idem_lock_expirations_total"): 2})

	// The connection breaks, and comes back.
	s.redisWay.Drop(true)
	testkit.Eventually(t, 10*time.Second, func() bool { return strings.Contains(s.log.String(), "cannot be heard") }, "the break is not noticed")
	s.redisWay.Drop(false)
	testkit.Eventually(t, 10*time.Second, func() bool { return strings.Contains(s.log.String(), "can be heard again") }, "it does not come back")
	s.set("shop:lock:pay:5", time.Millisecond)
	s.reaches(samples{ofFlow("idem_lock_expirations_total"): 3})
	if n := strings.Count(s.log.String(), "does not publish"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func TestSilenceIsSuspicious(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "observer", "on", ">pass-of-observer", "~*", "&*", "+@all", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	s := newKeyStage(t, keyStageOptions{addr: server.Addr, user: "observer"})
	source := s.source()
	e := &keyEvents{name: "main", store: source.store, keys: source.sweep.keys, counted: newLockExpirations(), log: source.log,
		retry: time.Second, silence: 50 * time.Millisecond}
	s.exporter.background = append(s.exporter.background, e.run)
	s.run()
	testkit.Eventually(t, 10*time.Second, func() bool { return strings.Contains(s.log.String(), "no key has expired for long") }, "nobody wonders")
}
