package lockstore

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	one, two := []string{"127.0.0.1:6379"}, []string{"127.0.0.1:6379", "127.0.0.1:6380"}
	for want, opts := range map[string]Options{
		"a name is needed":                         {Addresses: one},
		"an address is needed":                     {Name: "main"},
		`address "127.0.0.1" is not host:port`:     {Name: "main", Addresses: []string{"127.0.0.1"}},
		"database numbers start at 0":              {Name: "main", Addresses: one, DB: -1},
		"mode single takes one address, not 2":     {Name: "main", Addresses: two},
		"a cluster has database 0 only":            {Name: "main", Addresses: two, Mode: ModeCluster, DB: 1},
		"a master name is needed in mode sentinel": {Name: "main", Addresses: one, Mode: ModeSentinel},
		"and only there":                           {Name: "main", Addresses: one, MasterName: "shop"},
		`mode "ring" is not one of`:                {Name: "main", Addresses: one, Mode: "ring"},
	} {
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestModeDecidesTheClient(t *testing.T) {
	one, two := []string{"127.0.0.1:1"}, []string{"127.0.0.1:1", "127.0.0.1:2"}
	for _, opts := range []Options{{Addresses: one}, {Addresses: one, Mode: ModeSingle, DB: 3}, {Addresses: two, Mode: ModeSentinel, MasterName: "shop"}} {
		if s := open(t, opts); !is[*redis.Client](s) {
			t.Errorf("%+v makes a %T", opts, s.client)
		}
	}
	for _, addresses := range [][]string{one, two} {
		if s := open(t, Options{Addresses: addresses, Mode: ModeCluster}); !is[*redis.ClusterClient](s) {
			t.Errorf("a cluster of %d addresses makes a %T", len(addresses), s.client)
		}
	}
}

func is[T any](s *Store) bool { _, ok := s.client.(T); return ok }

func TestSourceNamesThePlace(t *testing.T) {
	for want, opts := range map[string]Options{
		"redis main (127.0.0.1:6379 db 2)":                           {Addresses: []string{"127.0.0.1:6379"}, DB: 2},
		"redis main (cluster a:1, b:2)":                              {Addresses: []string{"a:1", "b:2"}, Mode: ModeCluster},
		"redis main (master shop of sentinel a:26379, b:26379 db 0)": {Addresses: []string{"a:26379", "b:26379"}, Mode: ModeSentinel, MasterName: "shop"},
	} {
		if got := open(t, opts).source(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPing(t *testing.T) {
	db := testkit.Redis(t)
	if err := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerThatComesBackIsReadAtOnce(t *testing.T) {
	db := testkit.Redis(t)
	proxy := testkit.NewProxy(t, db.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB, Timeout: 2 * time.Second})
	do(t, db.Client, "SET", "k", "v")
	if got := s.Look(t.Context(), "k"); got.State != flow.Found {
		t.Fatalf("before: %s %v", got.State, got.Reason)
	}
	proxy.Drop(true)
	for range 3 * poolSize {
		wantError(t, s.Look(t.Context(), "k"), "connection refused: nothing listens on "+proxy.Addr)
	}
	proxy.Drop(false)
	if got := s.Look(t.Context(), "k"); got.State != flow.Found {
		t.Errorf("after: %s %v", got.State, got.Reason)
	}
}

// A server restarts, or drops idle clients: the next look must not show that.
func TestAClosedConnectionIsReplaced(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	s.Look(t.Context(), "k")
	do(t, db.Client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	if got := s.Look(t.Context(), "k"); got.State != flow.Absent {
		t.Errorf("got %s %v", got.State, got.Reason)
	}
}

func TestAHangingServerCostsTheTimeout(t *testing.T) {
	t.Parallel()
	db := testkit.Redis(t)
	proxy := testkit.NewProxy(t, db.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB, Timeout: 300 * time.Millisecond})
	if got := s.Look(t.Context(), "k"); got.State != flow.Absent {
		t.Fatalf("before: %s %v", got.State, got.Reason)
	}
	proxy.Hang(true)
	// More looks than connections: the last ones meet an empty pool.
	for range 2 * poolSize {
		start := time.Now()
		got := s.Look(t.Context(), "k")
		wantError(t, got, "no answer within ")
		if waited := time.Since(start); waited > 2*time.Second || got.Took < 250*time.Millisecond {
			t.Errorf("waited %s, says %s", waited, got.Took)
		}
	}
	proxy.Hang(false)
	testkit.Eventually(t, 10*time.Second, func() bool { return s.Look(t.Context(), "k").State == flow.Absent }, "it does not heal")
}

func TestTheCallersDeadlineCountsToo(t *testing.T) {
	db := testkit.Redis(t)
	proxy := testkit.NewProxy(t, db.Addr)
	proxy.Hang(true)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB})
	ctx, cancel := contextWithTimeout(t, 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	wantError(t, s.Look(ctx, "k"), "no answer within 1")
	if waited := time.Since(start); waited > 3*time.Second {
		t.Errorf("waited %s", waited)
	}
}

func TestACancelledQuestion(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	ctx, cancel := contextWithTimeout(t, time.Hour)
	cancel()
	wantError(t, s.Look(ctx, "k"), "called off")
}

func TestAfterClose(t *testing.T) {
	s, err := New(Options{Name: "main", Addresses: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Look(t.Context(), "k"), "the program is stopping")
}
