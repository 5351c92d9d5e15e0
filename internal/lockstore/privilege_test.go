package lockstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// What a Redis user has to be granted, and nothing else: HELLO and AUTH are
// open to everybody.
var (
	grantsForLook     = []string{"+type", "+strlen", "+getrange", "+pttl"}
	grantsForCounters = []string{"+sscan", "+hmget"}
	grantsForPing     = []string{"+ping"}
	grantsForFacts    = []string{"+info", "+time"}
	grantsForTrail    = []string{"+xread", "+xrange", "+xlen", "+xrevrange"}
	grantForOtherDB   = []string{"+select"}
	grantForCluster   = []string{"+cluster|slots"}
	// On the sentinels. With +sentinel|sentinels +subscribe &+switch-master as
	// well, other sentinels are found and a failover is noticed at once.
	grantForSentinel = []string{"+sentinel|get-master-addr-by-name"}
)

// grant makes the user observer with exactly these rights.
func grant(t testing.TB, addr string, rights ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "observer", "reset", "on", ">pass-of-observer"}
	for _, right := range rights {
		args = append(args, right)
	}
	do(t, admin(t, addr), args...)
}

func TestLeastPrivilege(t *testing.T) {
	server := testkit.StartRedis(t)
	keys := []string{"%R~idem_lock:*", "%R~idem_stat:*"}
	all := slices.Concat(grantsForLook, grantsForCounters, grantsForPing, grantForOtherDB)
	data := redis.NewClient(&redis.Options{Addr: server.Addr, DB: 5, DisableIdentity: true})
	defer data.Close()
	do(t, data, "SADD", "idem_stat:types", "order")
	do(t, data, "SET", "idem_lock:order:2", "token")

	look := func(db int) Entry {
		s := open(t, Options{Addresses: []string{server.Addr}, DB: db, User: "observer", Password: "pass-of-observer"})
		return s.Look(t.Context(), "idem_lock:order:1")
	}
	grant(t, server.Addr, slices.Concat(keys, all)...)
	for _, db := range []int{0, 5} {
		s := open(t, Options{Addresses: []string{server.Addr}, DB: db, User: "observer", Password: "pass-of-observer"})
		if got := s.Look(t.Context(), "idem_lock:order:1"); got.State != flow.Absent {
			t.Errorf("db %d: %s %v", db, got.State, got.Reason)
		}
		if _, err := s.Counters(t.Context(), ""); err != nil {
			t.Errorf("db %d: %v", db, err)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("db %d: %v", db, err)
		}
		wantError(t, s.Look(t.Context(), "session:1"), "may not read this key")
	}

	grant(t, server.Addr, slices.Concat(keys, grantsForLook)...)
	if got := look(0); got.State != flow.Absent {
		t.Errorf("the rights for a look do not suffice: %s %v", got.State, got.Reason)
	}
	wantError(t, look(5), "may not run SELECT: grant it")

	for _, missing := range all {
		rest := slices.DeleteFunc(slices.Clone(all), func(right string) bool { return right == missing })
		grant(t, server.Addr, slices.Concat(keys, rest)...)
		s := open(t, Options{Addresses: []string{server.Addr}, DB: 5, User: "observer", Password: "pass-of-observer"})
		_, countErr := s.Counters(t.Context(), "")
		said := s.Look(t.Context(), "idem_lock:order:2").Reason.EN + errorText(countErr) + errorText(s.Ping(t.Context()))
		if want := "may not run " + strings.ToUpper(missing[1:]) + ":"; !strings.Contains(said, want) {
			t.Errorf("without %s: %q, want %q", missing, said, want)
		}
	}

	grant(t, server.Addr, keys...)
	wantError(t, look(0), "may not run TYPE, STRLEN, GETRANGE, PTTL: grant it")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
