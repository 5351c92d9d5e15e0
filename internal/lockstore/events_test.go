package lockstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/testkit"
)

// ear notes what a store hears.
type ear struct {
	mu   sync.Mutex
	keys []string
}

func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.keys))
}

func (e *ear) wants(t testing.TB, keys []string) {
	t.Helper()
	want := slices.Sorted(slices.Values(keys))
	testkit.Eventually(t, 20*time.Second, func() bool { return len(e.heard()) >= len(want) }, "expirations are not heard")
	if got := e.heard(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// listen hears until the test ends, and returns when it is subscribed.
func listen(t testing.TB, s *Store) *ear {
	t.Helper()
	e := &ear{}
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- s.Expirations(ctx, Listener{Ready: func() { close(ready) }, Expired: func(key string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.keys = append(e.keys, key)
		}})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("listening does not end")
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("not subscribed: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("not subscribed")
	}
	return e
}

func TestExpirations(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, "--notify-keyspace-events", "Ex")
	client := admin(t, server.Addr)
	proxy := testkit.NewProxy(t, server.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: 3, Timeout: time.Second})
	heard := listen(t, s)
	three := redis.NewClient(&redis.Options{Addr: server.Addr, DB: 3, DisableIdentity: true})
	defer three.Close()
	do(t, client, "SET", "elsewhere", "v", "PX", "1")
	do(t, three, "SET", "deleted", "v")
	do(t, three, "DEL", "deleted")
	do(t, three, "SET", "\xff 键\r\n", "v", "PX", "1")
	heard.wants(t, []string{"\xff 键\r\n"})

	t.Run("the connection breaks", func(t *testing.T) {
		ended := make(chan error, 1)
		ready := make(chan struct{})
		go func() {
			ended <- s.Expirations(t.Context(), Listener{Ready: func() { close(ready) }, Expired: func(string) {}})
		}()
		<-ready
		proxy.Drop(true)
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "redis main") {
				t.Errorf("%v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the break is not noticed")
		}
		proxy.Drop(false)
	})
	t.Run("nobody confirms", func(t *testing.T) {
		proxy.Hang(true)
		defer proxy.Hang(false)
		start := time.Now()
		err := s.Expirations(t.Context(), Listener{Ready: func() { t.Error("ready") }, Expired: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), "no answer within") || time.Since(start) > 8*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
