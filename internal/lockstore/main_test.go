package lockstore

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// open makes a store that is closed at the end of the test.
func open(t testing.TB, opts Options) *Store {
	t.Helper()
	if opts.Name == "" {
		opts.Name = "main"
	}
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second // nothing here waits for it; a busy machine may need it
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// admin is a client with all rights, closed at the end of the test.
func admin(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func do(t testing.TB, client redis.UniversalClient, args ...any) {
	t.Helper()
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// wantError checks that the entry says why it could not be read, in both languages.
func wantError(t testing.TB, e Entry, words string) {
	t.Helper()
	if e.State != flow.Error || !strings.Contains(e.Reason.EN, words) || e.Reason.ZH == "" {
		t.Errorf("got %s %+v, want an error with %q", e.State, e.Reason, words)
	}
}

// monitor lists the commands that the server runs during do, one line each.
func monitor(t testing.TB, addr string, during func()) []string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "MONITOR\r\n")
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q %v", lines.Text(), lines.Err())
	}
	during()
	const end = "end-of-the-recording"
	if err := admin(t, addr).Echo(context.Background(), end).Err(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for lines.Scan() && !strings.Contains(lines.Text(), end) {
		if !strings.Contains(lines.Text(), `"hello"`) {
			seen = append(seen, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return seen
}

func contextWithTimeout(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
