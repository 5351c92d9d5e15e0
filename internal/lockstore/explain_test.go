package lockstore

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestRefusalsOfTheServer(t *testing.T) {
	locked := testkit.StartRedis(t, "--requirepass", "pass-of-the-server")
	opened := testkit.StartRedis(t)
	for name, c := range map[string]struct {
		opts Options
		want string
	}{
		"no password":               {Options{Addresses: []string{locked.Addr}}, "asks for a password"},
		"no password, other db":     {Options{Addresses: []string{locked.Addr}, DB: 3}, "asks for a password"},
		"wrong password":            {Options{Addresses: []string{locked.Addr}, Password: "tell-nobody"}, "wrong Redis user or password"},
		"wrong user":                {Options{Addresses: []string{locked.Addr}, User: "nobody", Password: "tell-nobody"}, "wrong Redis user or password"},
		"no such database":          {Options{Addresses: []string{opened.Addr}, DB: 99}, "no database 99"},
		"a cluster client, no node": {Options{Addresses: []string{opened.Addr}, Mode: ModeCluster}, "mode: single"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c.opts)
			wantError(t, s.Look(t.Context(), "k"), c.want)
			wantFailure(t, s.Ping(t.Context()), c.want)
			_, err := s.Counters(t.Context(), "")
			wantFailure(t, err, c.want)
		})
	}
	t.Run("right password", func(t *testing.T) {
		s := open(t, Options{Addresses: []string{locked.Addr}, Password: "pass-of-the-server"})
		if got := s.Look(t.Context(), "k"); got.State != flow.Absent {
			t.Errorf("got %s %v", got.State, got.Reason)
		}
	})
}

// wantFailure checks an error that a method returned: explained, and without a secret.
func wantFailure(t testing.TB, err error, words string) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "redis main (") || failure.Text.ZH == "" {
		t.Errorf("got %v, want %q", err, words)
		return
	}
	if strings.Contains(err.Error()+failure.Text.ZH, "tell-nobody") {
		t.Errorf("the error tells the password: %v", err)
	}
}

// The server loads its data slowly, by a setting that Redis has for its own tests.
func TestLoading(t *testing.T) {
	server := testkit.StartRedis(t, "--enable-debug-command", "yes", "--key-load-delay", "0", "--loading-process-events-interval-bytes", "1024")
	client := admin(t, server.Addr)
	do(t, client, "DEBUG", "POPULATE", "2000", "k", "100")
	do(t, client, "CONFIG", "SET", "key-load-delay", "1000") // microseconds for each key
	s := open(t, Options{Addresses: []string{server.Addr}, Timeout: 5 * time.Second})
	reloaded := make(chan error)
	reloader := admin(t, server.Addr)
	reloader.Options().ReadTimeout = time.Minute
	go func() { reloaded <- reloader.Do(t.Context(), "DEBUG", "RELOAD").Err() }()
	testkit.Eventually(t, 20*time.Second, func() bool {
		e := s.Look(t.Context(), "absent")
		return e.State == flow.Error && strings.Contains(e.Reason.EN, "still loads its data")
	}, "no look met a Redis that loads")
	do(t, client, "CONFIG", "SET", "key-load-delay", "0")
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	if got := s.Look(t.Context(), "absent"); got.State != flow.Absent {
		t.Errorf("after loading: %s %v", got.State, got.Reason)
	}
}

func TestAReplicaWithoutItsMaster(t *testing.T) {
	server := testkit.StartRedis(t, "--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "no")
	wantError(t, open(t, Options{Addresses: []string{server.Addr}}).Look(t.Context(), "k"), "lost its master")
}

func TestAFullServer(t *testing.T) {
	server := testkit.StartRedis(t, "--maxclients", "1")
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	wantError(t, open(t, Options{Addresses: []string{server.Addr}}).Look(t.Context(), "k"), "it is full (maxclients)")
}

func TestNothingListens(t *testing.T) {
	s := open(t, Options{Addresses: []string{"127.0.0.1:1"}})
	wantError(t, s.Look(t.Context(), "k"), "connection refused: nothing listens on 127.0.0.1:1")
	wantFailure(t, s.Ping(t.Context()), "connection refused")
}

// Answers that a Redis 7 on the test machine does not give.
func TestRefusalsOfOtherServers(t *testing.T) {
	s := open(t, Options{Addresses: []string{"127.0.0.1:1"}})
	for message, want := range map[string]string{
		"ERR Client sent AUTH, but no password is set": "this Redis has none", // Redis 5
		"ERR invalid password":                         "wrong Redis user or password",
		"NOPERM No permissions to access a key":        "may not read this key", // Redis 7.2
		"ERR something new":                            "Redis refuses: ERR something new",
		"ERR AUTH <password> called without any password configured for the default": "this Redis has none", // Redis 6
	} {
		if got := s.explain(redisError(message), 0); !strings.Contains(got.EN, want) || got.ZH == "" {
			t.Errorf("%s: got %+v, want %q", message, got, want)
		}
	}
}

// Old servers and proxies echo the arguments of a command that they do not know, AUTH with its password included.
func TestForeignWordsAreMadeHarmless(t *testing.T) {
	s := open(t, Options{Addresses: []string{"127.0.0.1:1"}, Password: "tell-nobody", Mode: ModeSentinel, MasterName: "shop", SentinelPassword: "nor-this"})
	got := s.explain(redisError("ERR unknown command 'AUTH', with args beginning with: 'tell-nobody' 'nor-this' \n\x1b[31m"+strings.Repeat("x", 1000)), 0)
	for _, bad := range []string{"tell-nobody", "nor-this", "\n", "\x1b"} {
		if strings.Contains(got.EN+got.ZH, bad) {
			t.Errorf("%q holds %q", got.EN, bad)
		}
	}
	if len(got.EN) > maxMessage+100 {
		t.Errorf("%d bytes long", len(got.EN))
	}
}
