package lockstore

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/testkit"
)

func TestSweepGoesOnAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	ours := populate(t, client, "lock", 5_000)
	proxy := testkit.NewProxy(t, server.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, Timeout: 2 * time.Second})
	w := sweepOf(s, 10_000, "lock:")
	got := map[string]int{}
	interruptions := 0
	for {
		_, err := w.Run(t.Context(), func(k TimedKey) {
			got[k.Key]++
			if len(got) == 1000 || len(got) == 3000 {
				proxy.Drop(true)
			}
		})
		if err == nil {
			break
		}
		var failure *Error
		if !errors.As(err, &failure) || failure.Text.ZH == "" {
			t.Fatalf("%v", err)
		}
		interruptions++
		proxy.Drop(false)
	}
	if interruptions == 0 {
		t.Error("nothing was interrupted")
	}
	wantOnce(t, got, ours)
	// Going on is not beginning anew: no page is walked many times.
	if calls := commandCalls(t, client)["scan"]; calls > 15 {
		t.Errorf("%d pages for 5 and %d interruptions", calls, interruptions)
	}
}

// The cursor of a server that was started anew means nothing.
func TestSweepBeginsAnewOnAnotherServer(t *testing.T) {
	t.Parallel()
	first, second := testkit.StartRedis(t), testkit.StartRedis(t)
	populate(t, admin(t, first.Addr), "lock", 3_000)
	ours := populate(t, admin(t, second.Addr), "lock", 3_000)
	s := open(t, Options{Addresses: []string{first.Addr}})
	w := sweepOf(s, 20_000, "lock:")
	got := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := w.Run(ctx, func(k TimedKey) { got[k.Key]++; cancel() }); err == nil {
		t.Fatal("not interrupted")
	}
	w.store = open(t, Options{Addresses: []string{second.Addr}})
	if _, err := w.Run(t.Context(), collect(got)); err != nil {
		t.Fatal(err)
	}
	wantOnce(t, got, ours)
}

// commandCalls is how often the server ran each command.
func commandCalls(t testing.TB, client *redis.Client) map[string]int {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		calls[m[1]], _ = strconv.Atoi(m[2])
	}
	return calls
}

func TestSweepKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	populate(t, client, "session", 20_000)
	populate(t, client, "lock", 200)
	const rate = 4000
	s := open(t, Options{Addresses: []string{server.Addr}})
	w := sweepOf(s, rate, "lock:")
	ctx, cancel := contextWithTimeout(t, 2*time.Second)
	defer cancel()
	start := time.Now()
	_, err := w.Run(ctx, func(TimedKey) {})
	took := time.Since(start)
	if err == nil {
		t.Fatalf("20200 keys took %s", took)
	}
	calls := commandCalls(t, client)
	walked := calls["scan"]*rate/pagesPerSecond + calls["pttl"]
	if most := rate*took.Seconds() + rate/pagesPerSecond; float64(walked) > most {
		t.Errorf("walked %d keys in %s, want %.0f at most", walked, took, most)
	}
	if least := rate * took.Seconds() / 10; float64(walked) < least { // the machine may be busy
		t.Errorf("walked %d keys in %s, want %.0f at least", walked, took, least)
	}
	for name := range calls {
		if !slices.Contains([]string{"scan", "pttl", "info", "hello", "config|get", "mset", "client|setinfo", "select", "command"}, name) {
			t.Errorf("the command %s was run", name)
		}
	}
}

func TestSweepSendsReadCommandsOnly(t *testing.T) {
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	populate(t, client, "lock", 300)
	s := open(t, Options{Addresses: []string{server.Addr}, DB: 0})
	w := sweepOf(s, fast, "lock:")
	lines := monitor(t, server.Addr, func() {
		if _, err := w.Run(t.Context(), func(TimedKey) {}); err != nil {
			t.Error(err)
		}
		if _, err := s.Evictions(t.Context()); err != nil {
			t.Error(err)
		}
	})
	command := regexp.MustCompile(`\] "([^"]+)"`)
	seen := map[string]int{}
	for _, line := range lines {
		if m := command.FindStringSubmatch(line); m != nil {
			seen[strings.ToLower(m[1])]++
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []string{"info", "pttl", "scan"}) || seen["pttl"] != 300 {
		t.Errorf("the server saw %v", seen)
	}
}

func TestPaceBrakesWhileTheServerIsSlow(t *testing.T) {
	p := newPace(2000)
	if p.count != 100 {
		t.Fatalf("a page has %d keys", p.count)
	}
	var usual time.Duration
	pause := func(took time.Duration) time.Duration {
		p.begun = time.Now()
		p.spent(p.count, took, &usual)
		return p.next.Sub(p.begun)
	}
	const normal, slow = time.Millisecond, 50 * time.Millisecond
	for range 10 {
		if got := pause(normal); got != 50*time.Millisecond {
			t.Fatalf("pause %s", got)
		}
	}
	for want := 100 * time.Millisecond; want <= 3200*time.Millisecond; want *= 2 {
		if got := pause(slow); got != want {
			t.Errorf("pause %s, want %s", got, want)
		}
	}
	if got := pause(slow); got != 3200*time.Millisecond {
		t.Errorf("the pause grows to %s", got)
	}
	for range maxBrake {
		pause(normal)
	}
	if got := pause(normal); got != 50*time.Millisecond {
		t.Errorf("the pause stays at %s", got)
	}
	// A server that stays slow is normal in the end.
	for range 1000 {
		pause(slow)
	}
	if got := pause(slow); got != 50*time.Millisecond {
		t.Errorf("the pause stays at %s for good", got)
	}
}

func TestSweepGoesSlowerOnASlowServer(t *testing.T) {
	t.Parallel()
	db := testkit.Redis(t)
	populate(t, db.Client, "lock", 5_000)
	proxy := testkit.NewProxy(t, db.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB})
	w := sweepOf(s, 2_000, "lock:")
	ctx, cancel := contextWithTimeout(t, 3*time.Second)
	defer cancel()
	if _, err := w.Run(ctx, func(TimedKey) { proxy.Delay(150 * time.Millisecond) }); err == nil {
		t.Error("the pass ended in spite of the pauses")
	}
	if w.pace.brake < 2 {
		t.Errorf("the pauses were doubled %d times", w.pace.brake)
	}
}

func TestSweepOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	db := testkit.Redis(t)
	ours := populate(t, db.Client, "lock", 1000)
	proxy := testkit.NewProxy(t, db.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, DB: db.DB, Timeout: 300 * time.Millisecond})
	w := sweepOf(s, 5_000, "lock:")
	got := map[string]int{}
	_, err := w.Run(t.Context(), func(k TimedKey) { got[k.Key]++; proxy.Hang(true) })
	if err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("got %v", err)
	}
	start := time.Now()
	if _, err := w.Run(t.Context(), collect(got)); err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
	before := len(got)
	proxy.Hang(false)
	testkit.Eventually(t, 20*time.Second, func() bool {
		_, err := w.Run(t.Context(), collect(got))
		return err == nil
	}, "the sweep does not go on")
	wantOnce(t, got, ours)
	if before == 0 {
		t.Error("nothing was found before")
	}
}

func TestSweepEndsWithItsContext(t *testing.T) {
	db := testkit.Redis(t)
	populate(t, db.Client, "lock", 1000)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	ctx, cancel := contextWithTimeout(t, 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := sweepOf(s, 100, "lock:").Run(ctx, func(TimedKey) {}); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
