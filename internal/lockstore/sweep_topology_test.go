package lockstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/testkit"
)

// What a sweep needs, and what it asks for and does without.
var (
	grantsForSweep = []string{"+scan", "+pttl"}
	grantForInfo   = []string{"+info"}
	grantsToListen = []string{"+subscribe", "+ping", "&__keyevent@0__:expired"}
	grantForConfig = []string{"+config|get"}
)

func TestSweepOfACluster(t *testing.T) {
	t.Parallel()
	addresses := startCluster(t)
	all := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, DisableIdentity: true})
	defer all.Close()
	var ours []string
	for i := range 600 {
		ours = append(ours, fmt.Sprint("lock:", i))
		do(t, all, "SET", ours[i], "v", "EX", "1000")
		do(t, all, "SET", fmt.Sprint("session:", i), "v")
	}
	opts := Options{Addresses: addresses[:1], Mode: ModeCluster}

	wantPass(t, sweepOf(open(t, opts), fast, "lock:"), ours...)

	t.Run("interrupted", func(t *testing.T) {
		w := sweepOf(open(t, opts), 5_000, "lock:")
		got := map[string]int{}
		interruptions := 0
		for {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := w.Run(ctx, func(k TimedKey) {
				if got[k.Key]++; interruptions < 3 {
					cancel()
				}
			})
			cancel()
			if err == nil {
				break
			}
			interruptions++
		}
		if interruptions < 2 { // the last one may come too late
			t.Errorf("interrupted %d times", interruptions)
		}
		wantOnce(t, got, ours)
	})
	t.Run("a tag in the prefix", func(t *testing.T) {
		do(t, all, "SET", "{shop}:lock:1", "v")
		do(t, all, "SET", "{shop}:lock:2", "v")
		wantPass(t, sweepOf(open(t, opts), fast, "{shop}:lock:"), "{shop}:lock:1", "{shop}:lock:2")
	})
	t.Run("evictions", func(t *testing.T) {
		evicted, err := open(t, opts).Evictions(t.Context())
		if err != nil || len(evicted) != 3 {
			t.Errorf("%v %v", evicted, err)
		}
		for _, address := range addresses {
			if n, there := evicted[address]; !there || n != 0 {
				t.Errorf("%s: %d %v", address, n, there)
			}
		}
	})
	t.Run("expirations", func(t *testing.T) {
		s := open(t, opts)
		if yes, known := s.PublishesExpirations(t.Context()); yes || !known {
			t.Errorf("publishes %v, known %v", yes, known)
		}
		for _, address := range addresses {
			do(t, admin(t, address), "CONFIG", "SET", "notify-keyspace-events", "Ex")
		}
		if yes, known := s.PublishesExpirations(t.Context()); !yes || !known {
			t.Errorf("publishes %v, known %v", yes, known)
		}
		heard := listen(t, s)
		var want []string
		for i := range 30 { // on all nodes
			want = append(want, fmt.Sprint("gone:", i))
			do(t, all, "SET", want[i], "v", "PX", "1")
		}
		heard.wants(t, want)
	})
	t.Run("least privilege", func(t *testing.T) {
		for _, address := range addresses {
			grant(t, address, slices.Concat([]string{"%R~lock:*"}, grantsForSweep, grantForCluster)...)
		}
		opts := opts
		opts.User, opts.Password = "observer", "pass-of-observer"
		wantPass(t, sweepOf(open(t, opts), fast, "lock:"), ours...)
		for _, address := range addresses {
			grant(t, address, slices.Concat([]string{"%R~lock:*"}, grantsForSweep)...)
		}
		wantRefusal(t, sweepOf(open(t, opts), fast, "lock:"), "may not run CLUSTER|SLOTS: grant it")
	})
}

func wantRefusal(t testing.TB, w *Sweep, words string) {
	t.Helper()
	_, err := w.Run(t.Context(), func(TimedKey) {})
	var failure *Error
	if err == nil || !strings.Contains(err.Error(), words) || !errors.As(err, &failure) || !failure.Refused() {
		t.Errorf("got %v, want %q", err, words)
	}
}

func TestSweepThroughASentinel(t *testing.T) {
	db := testkit.Redis(t)
	ours := populate(t, db.Client, "lock", 300)
	s := open(t, Options{Addresses: []string{startSentinel(t, db.Addr)}, Mode: ModeSentinel, MasterName: "shop", DB: db.DB})
	w := sweepOf(s, 2_000, "lock:")
	got := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := w.Run(ctx, func(k TimedKey) { got[k.Key]++; cancel() }); err == nil {
		t.Error("not interrupted")
	}
	if _, err := w.Run(t.Context(), collect(got)); err != nil {
		t.Error(err)
	}
	wantOnce(t, got, ours)
}

func TestPrivilegesOfASweep(t *testing.T) {
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	ours := populate(t, client, "lock", 100)
	populate(t, client, "session", 100)
	observer := func(rights ...[]string) *Store {
		grant(t, server.Addr, slices.Concat(append(rights, []string{"%R~lock:*"})...)...)
		return open(t, Options{Addresses: []string{server.Addr}, User: "observer", Password: "pass-of-observer"})
	}
	wantPass(t, sweepOf(observer(grantsForSweep), fast, "lock:"), ours...)
	wantRefusal(t, sweepOf(observer(grantsForSweep[:1]), fast, "lock:"), "may not run PTTL: grant it")
	wantRefusal(t, sweepOf(observer(grantsForSweep[1:]), fast, "lock:"), "may not run SCAN: grant it")
	wantRefusal(t, sweepOf(observer(grantsForSweep), fast, "lock:", "session:"), "may not read this key")

	_, err := observer(grantsForSweep).Evictions(t.Context())
	var failure *Error
	if !errors.As(err, &failure) || !failure.Refused() || !strings.Contains(err.Error(), "may not run INFO") {
		t.Errorf("evictions: %v", err)
	}
	if _, err := observer(grantForInfo).Evictions(t.Context()); err != nil {
		t.Error(err)
	}
	if _, known := observer(grantForInfo).PublishesExpirations(t.Context()); known {
		t.Error("known without CONFIG GET")
	}
	if yes, known := observer(grantForConfig).PublishesExpirations(t.Context()); yes || !known {
		t.Errorf("publishes %v, known %v", yes, known)
	}
	for _, c := range []struct {
		rights []string
		words  string
	}{
		{grantsToListen[1:], "may not run SUBSCRIBE: grant it"},
		{grantsToListen[:2], "grant &__keyevent@0__:expired"},
	} {
		err := observer(c.rights).Expirations(t.Context(), Listener{Ready: func() {}, Expired: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%v: %v, want %q", c.rights, err, c.words)
		}
	}
	heard := listen(t, observer(grantsToListen))
	do(t, client, "CONFIG", "SET", "notify-keyspace-events", "KEA")
	do(t, client, "SET", "gone:1", "v", "PX", "1")
	heard.wants(t, []string{"gone:1"})
}
