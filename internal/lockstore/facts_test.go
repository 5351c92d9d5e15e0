package lockstore

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// facts looks until the server has told about itself: a busy machine may be late.
func facts(t testing.TB, s *Store, key string) Entry {
	t.Helper()
	var e Entry
	testkit.Eventually(t, 30*time.Second, func() bool { e = s.Look(t.Context(), key); return e.Server != nil }, "the server does not tell about itself: %v", e.Coverage)
	return e
}

func TestALookTellsAboutTheServer(t *testing.T) {
	server := testkit.StartRedis(t)
	s := open(t, Options{Addresses: []string{server.Addr}})
	e := facts(t, s, "k")
	f := e.Server
	if len(f.RunID) != 40 || f.Role != "master" || time.Since(f.Now).Abs() > time.Minute || f.Uptime < 0 || f.Uptime > 10*time.Minute {
		t.Errorf("%+v", f)
	}
	if f.Evicted != 0 || f.NoneEvictedFor != f.Uptime {
		t.Errorf("%d evicted, none for %s, up %s", f.Evicted, f.NoneEvictedFor, f.Uptime)
	}
	if e.State != flow.Absent || len(e.Coverage) != 0 {
		t.Errorf("%s %v", e.State, e.Coverage)
	}
}

func TestWhetherARestartMayKeepKeys(t *testing.T) {
	for _, c := range []struct {
		name       string
		args       []string
		hide       bool
		want, know bool
	}{
		{"nothing is kept", []string{"--save", ""}, false, false, true},
		{"snapshots", []string{"--save", "3600 1"}, false, true, true},
		{"append only file", []string{"--appendonly", "yes"}, false, true, true},
		{"append only file, configuration hidden", []string{"--appendonly", "yes"}, true, true, true},
		{"configuration hidden", []string{"--save", "3600 1"}, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := testkit.StartRedis(t, c.args...)
			opts := Options{Addresses: []string{server.Addr}}
			if c.hide {
				grant(t, server.Addr, slices.Concat([]string{"allkeys"}, grantsForLook, grantsForFacts)...)
				opts.User, opts.Password = "observer", "pass-of-observer"
			}
			if f := facts(t, open(t, opts), "k").Server; f.Persistent != c.want || f.PersistentKnown != c.know || f.Now.IsZero() {
				t.Errorf("%+v", f)
			}
		})
	}
}

// INFO and TIME are not needed: a look without them says what it does not know.
func TestALookWithoutLeaveToAskTheServer(t *testing.T) {
	server := testkit.StartRedis(t)
	do(t, admin(t, server.Addr), "SET", "k", "token", "EX", "1000")
	for _, rights := range [][]string{nil, {"+time"}} {
		grant(t, server.Addr, slices.Concat([]string{"allkeys"}, grantsForLook, rights)...)
		s := open(t, Options{Addresses: []string{server.Addr}, User: "observer", Password: "pass-of-observer"})
		var e Entry
		testkit.Eventually(t, 30*time.Second, func() bool {
			e = s.Look(t.Context(), "k")
			return len(e.Coverage) == 1 && strings.Contains(e.Coverage[0].EN, "may not run INFO") && e.Coverage[0].ZH != ""
		}, "the look does not say what it may not: %v", e.Coverage)
		if e.State != flow.Found || e.Value != "token" || e.Server != nil {
			t.Errorf("%+v", e)
		}
		// It is not asked again with every look.
		refused := monitor(t, server.Addr, func() { s.Look(t.Context(), "k") })
		if slices.ContainsFunc(refused, func(line string) bool { return strings.Contains(line, `"info"`) }) {
			t.Errorf("%q", refused)
		}
	}
	grant(t, server.Addr, slices.Concat([]string{"allkeys"}, grantsForLook, []string{"+info"})...)
	s := open(t, Options{Addresses: []string{server.Addr}, User: "observer", Password: "pass-of-observer"})
	if f := facts(t, s, "k").Server; f.RunID == "" || !f.Now.IsZero() {
		t.Errorf("without TIME: %+v", f)
	}
}

func TestLooksOfTwoSecondsShareTheFacts(t *testing.T) {
	server := testkit.StartRedis(t)
	s := open(t, Options{Addresses: []string{server.Addr}})
	facts(t, s, "k")
	start := time.Now()
	seen := monitor(t, server.Addr, func() {
		for range 100 {
			s.Look(t.Context(), "k")
		}
	})
	info := slices.DeleteFunc(seen, func(line string) bool { return !strings.Contains(line, `"info" "server"`) })
	if most := int(time.Since(start)/freshFacts) + 2; len(info) > most {
		t.Errorf("asked %d times, at most %d are needed", len(info), most)
	}
}

func TestARestartShowsAtOnce(t *testing.T) {
	server := testkit.StartRedis(t, "--save", "", "--enable-debug-command", "yes")
	s := open(t, Options{Addresses: []string{server.Addr}})
	client := admin(t, server.Addr)
	do(t, client, "SET", "k", "token", "EX", "1000")
	before := facts(t, s, "k")
	if before.State != flow.Found {
		t.Fatalf("%+v", before)
	}
	// It starts anew without its keys. No answer comes: the connection breaks.
	if err := client.Do(t.Context(), "DEBUG", "RESTART").Err(); err == nil {
		t.Fatal("the server goes on")
	}
	var e Entry
	testkit.Eventually(t, 30*time.Second, func() bool { e = s.Look(t.Context(), "k"); return e.State == flow.Absent && e.Server != nil }, "it does not come back: %v", e.Reason)
	if e.Server.RunID == before.Server.RunID {
		t.Error("the facts are those of the server before")
	}
	if b := e.Before; b == nil || b.RunID != before.Server.RunID || !b.Found || b.Role != "master" || !b.Expires.After(e.ReadAt) {
		t.Errorf("the earlier look: %+v", b)
	}
}

func TestEvictionsAreDatedFromTheFirstLook(t *testing.T) {
	server := testkit.StartRedis(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random")
	client := admin(t, server.Addr)
	fill := func(from string) {
		for i := range 600 {
			do(t, client, "SET", fmt.Sprint(from, i), strings.Repeat("v", 10_000))
		}
	}
	fill("a")
	s := open(t, Options{Addresses: []string{server.Addr}})
	first := facts(t, s, "k").Server
	if first.Evicted < 100 || first.NoneEvictedFor != 0 {
		t.Fatalf("%+v", first)
	}
	testkit.Eventually(t, 30*time.Second, func() bool { return facts(t, s, "k").Server.NoneEvictedFor > time.Second }, "the quiet time does not grow")
	fill("b")
	testkit.Eventually(t, 30*time.Second, func() bool { f := facts(t, s, "k").Server; return f.Evicted > first.Evicted && f.NoneEvictedFor == 0 }, "the new evictions do not show")
	// Somebody resets the count: zero then does not mean never.
	do(t, client, "CONFIG", "RESETSTAT")
	testkit.Eventually(t, 30*time.Second, func() bool { f := facts(t, s, "k").Server; return f.Evicted == 0 && f.NoneEvictedFor < f.Uptime }, "the reset passes for a clean record")
}

func TestClusterTellsOfTheNodeThatHoldsTheKey(t *testing.T) {
	t.Parallel()
	addresses := startCluster(t)
	all := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, DisableIdentity: true})
	defer all.Close()
	s := open(t, Options{Addresses: addresses[:1], Mode: ModeCluster})
	nodes := map[string]bool{}
	for i := range 20 {
		key := fmt.Sprintf("idem_lock:type%d:1", i)
		holder, err := all.MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		want := infoField(holder.Info(t.Context(), "server").Val(), "run_id")
		if got := facts(t, s, key).Server.RunID; got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
		nodes[want] = true
	}
	if len(nodes) != 3 {
		t.Errorf("%d nodes hold the keys", len(nodes))
	}
}

// A server that answers looks and keeps silent about itself costs a little
// patience and no more.
func TestAServerThatIsSlowToTellDelaysNoLook(t *testing.T) {
	f := newFactSheets()
	s := &Store{facts: f, opts: Options{Name: "main", Timeout: time.Second}, dials: new(atomic.Uint64)}
	f.byNode[""] = &factSheet{pending: make(chan struct{})}
	var e Entry
	start := time.Now()
	s.tellFacts(t.Context(), server{}, &e)
	if took := time.Since(start); took < factsGrace || took > 10*time.Second || e.Server != nil || len(e.Coverage) != 1 {
		t.Errorf("after %s: %+v", took, e)
	}
	ctx, cancel := contextWithTimeout(t, 50*time.Millisecond)
	defer cancel()
	s.tellFacts(ctx, server{}, &e)
	if ctx.Err() != nil {
		t.Error("the patience outlives the deadline")
	}
}

func TestFactsThatLackWhatDecidesAreNone(t *testing.T) {
	whole := "# Server\r\nrun_id:abc\r\nuptime_in_seconds:7\r\nrole:slave\r\nevicted_keys:3\r\naof_enabled:0\r\n"
	if f, ok := factsOf(whole); !ok || f.Uptime != 7*time.Second || f.Role != "slave" || f.Evicted != 3 || f.PersistentKnown {
		t.Errorf("%+v %v", f, ok)
	}
	for _, missing := range []string{"run_id:abc\r\n", "uptime_in_seconds:7\r\n", "evicted_keys:3\r\n"} {
		if _, ok := factsOf(strings.Replace(whole, missing, "", 1)); ok {
			t.Errorf("without %q", missing)
		}
	}
}
