package lockstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/testkit"
)

// fast is a pace that no test waits for.
const fast = 1_000_000

func beginsWith(prefixes ...string) func(string) bool {
	return func(key string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
	}
}

func sweepOf(s *Store, keysPerSecond int, prefixes ...string) *Sweep {
	return s.NewSweep(SweepOptions{Prefixes: prefixes, Wanted: beginsWith(prefixes...), KeysPerSecond: keysPerSecond})
}

// collect counts how often each key is handed over.
func collect(into map[string]int) func(TimedKey) {
	return func(k TimedKey) { into[k.Key]++ }
}

// wantPass walks once and wants exactly the keys, each once.
func wantPass(t testing.TB, w *Sweep, keys ...string) Pass {
	t.Helper()
	got := map[string]int{}
	p, err := w.Run(t.Context(), collect(got))
	if err != nil {
		t.Fatal(err)
	}
	wantOnce(t, got, keys)
	if p.Found != len(keys) || p.Inexact {
		t.Errorf("%+v, want %d keys", p, len(keys))
	}
	return p
}

func wantOnce(t testing.TB, got map[string]int, keys []string) {
	t.Helper()
	if len(got) != len(keys) {
		t.Errorf("%d keys, want %d", len(got), len(keys))
	}
	for _, key := range keys {
		if got[key] != 1 {
			t.Errorf("%q was handed over %d times", key, got[key])
			return
		}
	}
}

// populate makes n keys PREFIX:0, PREFIX:1, ... without a TTL.
func populate(t testing.TB, client *redis.Client, prefix string, n int) (keys []string) {
	t.Helper()
	for chunk := range slices.Chunk(make([]struct{}, n), 10_000) {
		pairs := make([]any, 0, 2*len(chunk))
		for range chunk {
			key := fmt.Sprint(prefix, ":", len(keys))
			keys = append(keys, key)
			pairs = append(pairs, key, "v")
		}
		do(t, client, slices.Concat([]any{"MSET"}, pairs)...)
	}
	return keys
}

func TestSweepFindsOurKeysAmongOthers(t *testing.T) {
	t.Parallel()
	db := testkit.Redis(t)
	populate(t, db.Client, "session", 50_000)
	populate(t, db.Client, "idea", 50_000) // begins like ours
	ours := slices.Concat(populate(t, db.Client, "idem_lock", 500), populate(t, db.Client, "idempotent", 300))
	do(t, db.Client, "PEXPIRE", "idem_lock:7", 100_000)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	w := sweepOf(s, fast, "idem_lock:", "idempotent:")

	for range 2 { // a sweep walks again and again
		wantPass(t, w, ours...)
	}
	var seven TimedKey
	if _, err := w.Run(t.Context(), func(k TimedKey) {
		if k.Key == "idem_lock:7" {
			seven = k
		} else if !k.NoTTL {
			t.Errorf("%s has %s left", k.Key, k.TTL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if seven.NoTTL || seven.TTL > 100*time.Second || seven.TTL < 50*time.Second {
		t.Errorf("time left: %+v", seven)
	}
}

func TestSweepOfAnEmptyDatabase(t *testing.T) {
	db := testkit.Redis(t)
	wantPass(t, sweepOf(open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}), fast, "lock:"))
}

// A prefix means its bytes, whatever they mean in a pattern.
func TestSweepTakesPrefixesLiterally(t *testing.T) {
	t.Parallel()
	s := func(db *testkit.RedisDB) *Store { return open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}) }
	decoys := []any{"lock:1", "lockx:1", "lo:1", "a:1", "锁:1", "x", "^", "-"}
	for _, prefixes := range [][]string{
		{"lock*:"}, {"lock?:"}, {"l[o]ck:"}, {`l\ock:`}, {"[^a]:"}, {"a-z:", "a]:", "a^:", `a\:`, "a[:"}, {"*"}, {"^", "]"}, {"锁:"}, {"锁:", "锂:"},
		{"nul\x00:"}, {"\xff\xfe", "\xff\xfd"}, {"{shop}:lock:"}, {"{", "}"}, {"new\nline"}, {"%", "%d"},
	} {
		db := testkit.Redis(t)
		var keys []string
		for _, p := range prefixes {
			keys = append(keys, p+"1", p+"*")
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		for _, key := range keys {
			do(t, db.Client, "SET", key, "v")
		}
		for _, decoy := range decoys {
			do(t, db.Client, "SET", decoy, "v")
		}
		wanted := keys
		for _, decoy := range decoys {
			if d := decoy.(string); beginsWith(prefixes...)(d) && !slices.Contains(keys, d) {
				wanted = append(wanted, d)
			}
		}
		wantPass(t, sweepOf(s(db), fast, prefixes...), wanted...)
		// The server itself leaves out what cannot match.
		all, _, err := db.Client.Scan(t.Context(), 0, patternOf(prefixes), 1000).Result()
		if err != nil || len(all) != len(wanted) {
			t.Errorf("pattern %q of %q: %q, %v, want %q", patternOf(prefixes), prefixes, all, err, wanted)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		want     string
	}{
		{[]string{"idem_lock:"}, "idem_lock:*"},
		{[]string{"idem_lock:", "idempotent:"}, "idem[_p]*"},
		{[]string{"lock:", "mark:", "lock:a"}, "[lm]*"},
		{[]string{"lock:", "lock:a:"}, "lock:*"},
		{[]string{"lock:", ""}, ""},
		{[]string{"a^", "a]"}, `a[\]\^]*`},
	} {
		if got := patternOf(c.prefixes); got != c.want {
			t.Errorf("%q: %s, want %s", c.prefixes, got, c.want)
		}
	}
}

// While the server changes the size of its table, SCAN names keys twice. Each is
// handed over once, and none that stays is missed.
func TestSweepWhileTheTableChangesItsSize(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	ours := populate(t, client, "lock", 10_000)
	s := open(t, Options{Addresses: []string{server.Addr}})
	named := 0
	w := s.NewSweep(SweepOptions{Prefixes: []string{"lock:"}, KeysPerSecond: 30_000, Wanted: func(key string) bool {
		named++
		return beginsWith("lock:")(key)
	}})
	got := map[string]int{}
	ended := make(chan error, 1)
	go func() {
		_, err := w.Run(t.Context(), collect(got))
		ended <- err
	}()
	for {
		for chunk := range slices.Chunk(populate(t, client, "ballast", 20_000), 10_000) {
			do(t, client, append([]any{"UNLINK"}, anys(chunk)...)...)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			wantOnce(t, got, ours)
			t.Logf("SCAN named %d keys for %d", named, len(ours))
			return
		default:
		}
	}
}

func anys(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

func TestSweepTellsKeysApartUpToABound(t *testing.T) {
	w := (&Store{}).NewSweep(SweepOptions{Prefixes: []string{""}, Wanted: beginsWith(""), KeysPerSecond: 1})
	w.seen = map[uint64]struct{}{}
	names := make([]string, maxSeen+10)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	w.note(names[:maxSeen])
	if w.full || len(w.unseen([]string{"0", "9", "x", "x", "y"})) != 2 {
		t.Error("keys are not told apart")
	}
	if w.note(names[maxSeen:]); !w.full || len(w.seen) != maxSeen {
		t.Errorf("%d keys are remembered", len(w.seen))
	}
}

func TestSweepWithKeysThatExpireMeanwhile(t *testing.T) {
	t.Parallel()
	db := testkit.Redis(t)
	stay := populate(t, db.Client, "lock:stay", 1000)
	for i := range 1000 {
		do(t, db.Client, "SET", fmt.Sprint("lock:go:", i), "v", "PX", 1+i/4)
	}
	w := sweepOf(open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}), 5000, "lock:")
	got := map[string]int{}
	p, err := w.Run(t.Context(), collect(got))
	if err != nil {
		t.Fatal(err)
	}
	for key, times := range got {
		if times != 1 {
			t.Errorf("%s was handed over %d times", key, times)
		}
	}
	for _, key := range stay {
		if got[key] != 1 {
			t.Errorf("%s is missing", key)
		}
	}
	if p.Found != len(got) {
		t.Errorf("%d found, %d handed over", p.Found, len(got))
	}
}
