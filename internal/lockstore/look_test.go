package lockstore

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestLookTellsWhatIsThere(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	for _, c := range []struct {
		name string
		set  []any
		want Entry
	}{
		{"nothing", nil, Entry{Observation: flow.Observation{State: flow.Absent}}},
		{"a lock", []any{"SET", "k", "host:1", "EX", "100"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", Value: "host:1", Length: 6, TTL: 100 * time.Second}},
		{"a lock that never expires", []any{"SET", "k", "host:1"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", Value: "host:1", Length: 6, NoTTL: true}},
		{"an empty value", []any{"SET", "k", "", "EX", "100"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", TTL: 100 * time.Second}},
		{"an empty value that never expires", []any{"SET", "k", ""}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", NoTTL: true}},
		{"a number", []any{"SET", "k", "1"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", Value: "1", Length: 1, NoTTL: true}},
		{"bytes that are no text", []any{"SET", "k", "\x00\xff\r\n"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", Value: "\x00\xff\r\n", Length: 4, NoTTL: true}},
		{"a hash", []any{"HSET", "k", "f", "v"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "hash", Foreign: true, NoTTL: true}},
		{"a list", []any{"RPUSH", "k", "v"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "list", Foreign: true, NoTTL: true}},
		{"a set", []any{"SADD", "k", "v"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "set", Foreign: true, NoTTL: true}},
		{"a sorted set", []any{"ZADD", "k", "1", "v"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "zset", Foreign: true, NoTTL: true}},
		{"a stream", []any{"XADD", "k", "*", "f", "v"}, Entry{Observation: flow.Observation{State: flow.Found}, Type: "stream", Foreign: true, NoTTL: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			do(t, db.Client, "DEL", "k")
			if c.set != nil {
				do(t, db.Client, c.set...)
			}
			got := s.Look(t.Context(), "k")
			if got.State != c.want.State || got.Type != c.want.Type || got.Foreign != c.want.Foreign || got.Value != c.want.Value ||
				got.Length != c.want.Length || got.NoTTL != c.want.NoTTL {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.TTL > c.want.TTL || got.TTL < c.want.TTL-50*time.Second {
				t.Errorf("TTL %s, want %s", got.TTL, c.want.TTL)
			}
			if got.Key != "k" || got.Took <= 0 || time.Since(got.ReadAt) > time.Minute || !got.Reason.Empty() {
				t.Errorf("header: %+v", got)
			}
			if got.Foreign != (len(got.Coverage) == 1) {
				t.Errorf("coverage of a value that was not read: %v", got.Coverage)
			}
		})
	}
}

func TestLookCutsALongValue(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	value := strings.Repeat("x", MaxValue) + "rest"
	do(t, db.Client, "SET", "k", value)
	got := s.Look(t.Context(), "k")
	if got.State != flow.Found || got.Value != value[:MaxValue] || got.Length != int64(len(value)) || len(got.Coverage) != 1 {
		t.Errorf("got state %s, %d bytes of %d, coverage %v", got.State, len(got.Value), got.Length, got.Coverage)
	}
}

func TestLookWaitsForExpiry(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "SET", "k", "v", "PX", "30")
	testkit.Eventually(t, 10*time.Second, func() bool { return s.Look(t.Context(), "k").State == flow.Absent }, "the lock has not lapsed")
}

// hostileKeys would find other keys, or none, if anything but their exact bytes were used.
func hostileKeys() []string {
	return []string{
		"*", "[", "k[ab]", "k?", `back\slash`, "nul\x00byte", "new\nline", "cr\r\n", "tab\t", " blanks ", "", "'", `"`, `it's "both"`, "$HOME`id`$(id)", "--help", "-n", "=x",
		"\xff\xfe", "\xe4\xb8", "订单:1", "emoji😀", "e\u0301", "\u202eright-to-left", "\u00a0", "order:{tag}:1", "{}", strings.Repeat("长", 3400) + "10 kB",
	}
}

func TestLookTakesKeysAsTheyAre(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	for _, decoy := range []string{"k", "ka", "kb", "k*", "order:1", "nul", "new", "blanks", "é", "订单"} {
		do(t, db.Client, "SET", decoy, "decoy")
	}
	for i, key := range hostileKeys() {
		if got := s.Look(t.Context(), key); got.State != flow.Absent {
			t.Errorf("key %d %.40q is found before it is set: %+v", i, key, got)
		}
		do(t, db.Client, "SET", key, "value "+key, "EX", "1000")
		if got := s.Look(t.Context(), key); got.State != flow.Found || got.Value != ("value " + key)[:min(MaxValue, 6+len(key))] {
			t.Errorf("key %d %.40q: %s %.40q %v", i, key, got.State, got.Value, got.Reason)
		}
	}
}

// The command that an engineer gets has to show the same key, from any POSIX shell.
func TestCommandShowsTheSameKey(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	for i, key := range hostileKeys() {
		do(t, db.Client, "SET", key, "value", "EX", "1000")
		for _, shell := range []string{"sh", "bash"} {
			out, err := exec.CommandContext(t.Context(), shell, "-c", s.Look(t.Context(), key).Command).CombinedOutput()
			if err != nil || !regexp.MustCompile(`^\d+\nvalue\n$`).Match(out) {
				t.Errorf("key %d %.40q: %s answers %.200q %v to %.200s", i, key, shell, out, err, s.Look(t.Context(), key).Command)
			}
		}
	}
}

func TestCommandNamesServerAndNoPassword(t *testing.T) {
	for want, opts := range map[string]Options{
		`redis-cli -h 10.0.0.1 -p 6379 -n 2 PTTL idem_lock:order:1; redis-cli -h 10.0.0.1 -p 6379 -n 2 GETRANGE idem_lock:order:1 0 4095`: {Addresses: []string{"10.0.0.1:6379"}, DB: 2},
		`redis-cli -h ::1 -p 6379 --user 'o'\''neil' --askpass PTTL idem_lock:order:1;`:                                                   {Addresses: []string{"[::1]:6379"}, User: "o'neil", Password: "secret"},
		`redis-cli -h a -p 7001 -c PTTL idem_lock:order:1;`:                                                                               {Addresses: []string{"a:7001", "b:7002"}, Mode: ModeCluster},
		`set -- $(redis-cli -h s -p 26379 --askpass SENTINEL GET-MASTER-ADDR-BY-NAME shop); redis-cli -h "$1" -p "$2" --askpass PTTL `:    {Addresses: []string{"s:26379"}, Mode: ModeSentinel, MasterName: "shop", Password: "secret", SentinelPassword: "secret"},
	} {
		opts.Name = "main"
		if got := open(t, opts).command("idem_lock:order:1"); !strings.HasPrefix(got, want) || strings.Contains(got, "secret") {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// What stands in production must not change because somebody looks.
func TestLookSendsReadCommandsOnly(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "SET", "k", "v", "EX", "1000")
	do(t, db.Client, "SADD", "idem_stat:types", "order")
	seen := monitor(t, db.Addr, func() {
		for _, key := range []string{"k", "absent"} {
			s.Look(t.Context(), key)
		}
		if _, err := s.Counters(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
	var commands []string
	for _, line := range seen {
		commands = append(commands, regexp.MustCompile(`\] "([^"]+)"`).FindStringSubmatch(line)[1])
	}
	// What the server says about itself is asked on the side; CONFIG GET, which
	// MONITOR leaves out, with it.
	aside := []string{"info", "time", "select"}
	commands = slices.DeleteFunc(commands, func(c string) bool { return slices.Contains(aside, c) })
	look := []string{"type", "strlen", "getrange", "pttl"}
	want := slices.Concat(look, look, []string{"sscan", "hmget", "ping"})
	if !slices.Equal(commands, want) {
		t.Errorf("the server ran %q, want %q", commands, want)
	}
}

// Between two commands of a pipeline other clients may run theirs.
func TestAKeyThatChangesWhileItIsRead(t *testing.T) {
	wrong := func() error { return redisError("WRONGTYPE Operation against a key holding the wrong kind of value") }
	s := open(t, Options{Addresses: []string{"127.0.0.1:1"}})
	for name, c := range map[string]struct {
		saw  sight
		want flow.State
	}{
		"lapses before its value is read": {sight{redis.NewStatusResult("string", nil), redis.NewIntResult(0, nil), redis.NewStringResult("", nil), redis.NewDurationResult(ttlNoKey, nil)}, flow.Absent},
		"lapses after its value was read": {sight{redis.NewStatusResult("string", nil), redis.NewIntResult(1, nil), redis.NewStringResult("v", nil), redis.NewDurationResult(ttlNoKey, nil)}, flow.Absent},
		"appears":                         {sight{redis.NewStatusResult("none", nil), redis.NewIntResult(1, nil), redis.NewStringResult("v", nil), redis.NewDurationResult(time.Second, nil)}, flow.Absent},
		"appears with another type":       {sight{redis.NewStatusResult("none", nil), redis.NewIntResult(0, wrong()), redis.NewStringResult("", wrong()), redis.NewDurationResult(time.Second, nil)}, flow.Absent},
		"becomes a hash":                  {sight{redis.NewStatusResult("string", nil), redis.NewIntResult(1, nil), redis.NewStringResult("", wrong()), redis.NewDurationResult(time.Second, nil)}, flow.Unknown},
		"was a hash":                      {sight{redis.NewStatusResult("hash", nil), redis.NewIntResult(1, nil), redis.NewStringResult("v", nil), redis.NewDurationResult(time.Second, nil)}, flow.Found},
	} {
		var e Entry
		s.judge(c.saw, &e)
		if e.State != c.want || e.Seen() == (e.State == flow.Unknown) || (e.State == flow.Unknown) == e.Reason.Empty() {
			t.Errorf("a key that %s: %s %v, want %s", name, e.State, e.Reason, c.want)
		}
	}
}

// redisError is an answer of the server that is an error.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
