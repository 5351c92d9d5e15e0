package lockstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

func hasLock(key string) bool { return strings.Contains(key, "lock") }

// sampled takes a sample and fails the test when that fails.
func sampled(t testing.TB, s *Store, o SampleOptions) (KeySample, time.Duration) {
	t.Helper()
	start := time.Now()
	sample, err := s.Sample(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sample, time.Since(start)
}

func TestASampleSeesEveryKeyOfASmallRedisAndLooksCloserAtSome(t *testing.T) {
	db := testkit.Redis(t)
	for n := range 30 {
		do(t, db.Client, "SET", fmt.Sprintf("session:%d", n), "x")
	}
	do(t, db.Client, "SET", "idem_lock:a", "token", "PX", 60000)
	do(t, db.Client, "SET", "idem_lock:for ever", strings.Repeat("v", 1000))
	do(t, db.Client, "HSET", "lock:hash", "f", "v")
	do(t, db.Client, "SET", "lock\x00\xff", "bytes", "PX", 60000)
	do(t, db.Client, "SET", "lock:"+strings.Repeat("long", MaxSampleName), "x")
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	sample, _ := sampled(t, s, SampleOptions{Keys: 20000, For: 300 * time.Millisecond, Closer: hasLock})
	if !sample.Complete || len(sample.Keys) != 34 || sample.Refused != nil {
		t.Fatalf("complete %v, %d keys, %v", sample.Complete, len(sample.Keys), sample.Refused)
	}
	got := map[string]SampledKey{}
	for _, k := range sample.Keys {
		got[k.Key] = k
	}
	if k := got["idem_lock:a"]; k.Type != "string" || k.Value != "token" || k.TTL <= 0 || k.TTL > time.Minute || k.NoTTL || k.Extended {
		t.Errorf("%+v", k)
	}
	if k := got["idem_lock:for ever"]; !k.NoTTL || len(k.Value) != sampleValue {
		t.Errorf("%+v", k)
	}
	if k := got["lock:hash"]; k.Type != "hash" || k.Value != "" {
		t.Errorf("%+v", k)
	}
	if k := got["lock\x00\xff"]; k.Value != "bytes" {
		t.Errorf("%+v", k)
	}
	if k := got["session:1"]; k.Type != "" {
		t.Errorf("looked closer at %+v", k)
	}
}

func TestASampleNoticesALockThatIsRenewedAndOneThatIsTakenAnew(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "SET", "lock:renewed", "token", "PX", 60000)
	do(t, db.Client, "SET", "lock:anew", "token", "PX", 60000)
	do(t, db.Client, "SET", "lock:left", "token", "PX", 60000)
	looks := 0
	// Between two walks the keys change: the condition is that they were seen once.
	closer := func(key string) bool { return true }
	w := &sampler{store: s, o: SampleOptions{Keys: 20000, For: time.Minute, Closer: closer}, pace: newPace(sampleRate), until: time.Now().Add(time.Minute), seen: map[string]*SampledKey{}}
	servers, err := s.primaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if ended, err := w.walk(t.Context(), servers[0]); err != nil || !ended {
			t.Fatal(ended, err)
		}
		looks++
		do(t, db.Client, "PEXPIRE", "lock:renewed", 120000)
		do(t, db.Client, "SET", "lock:anew", "another", "PX", 120000)
	}
	for _, k := range w.sample().Keys {
		if want := k.Key == "lock:renewed"; k.Extended != want {
			t.Errorf("%+v after %d looks", k, looks)
		}
	}
}

func TestASampleOfAMillionForeignKeysStaysWithinItsBudget(t *testing.T) {
	server := testkit.StartRedis(t, "--enable-debug-command", "local")
	client := admin(t, server.Addr)
	do(t, client, "DEBUG", "POPULATE", 1000000, "foreign")
	do(t, client, "SET", "idem_lock:pay:1", "token")
	s := open(t, Options{Addresses: []string{server.Addr}})
	var sample KeySample
	var took time.Duration
	commands := monitor(t, server.Addr, func() {
		sample, took = sampled(t, s, SampleOptions{Keys: 20000, For: 2 * time.Second, Closer: hasLock})
	})
	t.Logf("%d keys walked in %s with %d commands", sample.Walked, took, len(commands))
	if sample.Complete || sample.Walked > 21000 || len(sample.Keys) > 21000 || len(sample.Keys) < 500 {
		t.Errorf("complete %v, %d walked, %d keys", sample.Complete, sample.Walked, len(sample.Keys))
	}
	// One page more may be under way when the time ends.
	if took > 12*time.Second {
		t.Errorf("it took %s", took)
	}
	onlyReads(t, commands)
}

// onlyReads checks that every command is one that a least-privilege user may run.
func onlyReads(t testing.TB, commands []string) {
	t.Helper()
	if len(commands) == 0 {
		t.Error("no command was recorded")
	}
	for _, line := range commands {
		_, command, _ := strings.Cut(line, `] "`)
		name, _, _ := strings.Cut(command, `"`)
		switch strings.ToLower(name) {
		case "scan", "type", "pttl", "getrange", "select", "ping", "info", "auth":
		default:
			t.Errorf("ran %s", line)
		}
	}
}

func TestASampleMakesDoWithoutRightsOnForeignKeys(t *testing.T) {
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	do(t, client, "SET", "idem_lock:a", "token", "PX", 60000)
	do(t, client, "SET", "lock:foreign", "token", "PX", 60000)
	look := func(rights ...string) (KeySample, error) {
		grant(t, server.Addr, rights...)
		s := open(t, Options{Addresses: []string{server.Addr}, User: "observer", Password: "pass-of-observer"})
		return s.Sample(t.Context(), SampleOptions{Keys: 100, For: 200 * time.Millisecond, Closer: hasLock})
	}
	sample, err := look("%R~idem_lock:*", "+scan", "+type", "+pttl", "+getrange")
	if err != nil || len(sample.Keys) != 2 || sample.Keys[0].Type != "string" || sample.Keys[1].Type != "" {
		t.Errorf("%+v, %v", sample, err)
	}
	sample, err = look("%R~idem_lock:*", "+scan")
	if err != nil || len(sample.Keys) != 2 || sample.Refused == nil || !strings.Contains(sample.Refused.Text.EN, "TYPE") {
		t.Errorf("%+v, %v", sample, err)
	}
	_, err = look("%R~idem_lock:*")
	var failure *Error
	if !errors.As(err, &failure) || !strings.Contains(failure.Text.EN, "SCAN") {
		t.Errorf("without SCAN: %v", err)
	}
}

func TestAProbeFindsTheKeysThatExist(t *testing.T) {
	db := testkit.Redis(t)
	do(t, db.Client, "SET", "idempotent:pay:2", "success", "PX", 60000)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	found, err := s.Probe(t.Context(), []string{"idempotent:pay:1", "idempotent:pay:2"})
	if err != nil || len(found) != 1 || found[0].Key != "idempotent:pay:2" || found[0].Value != "success" {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := s.Probe(t.Context(), nil); err != nil || len(found) > 0 {
		t.Errorf("nothing asked: %+v, %v", found, err)
	}
}

func TestAServerSaysHowItRuns(t *testing.T) {
	server := testkit.StartRedis(t)
	if kind, err := open(t, Options{Addresses: []string{server.Addr}}).Kind(t.Context()); err != nil || kind != "standalone" {
		t.Errorf("%q, %v", kind, err)
	}
	grant(t, server.Addr, "+ping")
	if kind, err := open(t, Options{Addresses: []string{server.Addr}, User: "observer", Password: "pass-of-observer"}).Kind(t.Context()); err != nil || kind != "" {
		t.Errorf("without INFO: %q, %v", kind, err)
	}
	clustered := testkit.StartRedis(t, "--cluster-enabled", "yes")
	if kind, err := open(t, Options{Addresses: []string{clustered.Addr}}).Kind(t.Context()); err != nil || kind != "cluster" {
		t.Errorf("%q, %v", kind, err)
	}
}
