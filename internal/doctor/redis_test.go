package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// TestARedisThatIsSetUpBadlyIsReported breaks one thing of a sound Redis at a time.
func TestARedisThatIsSetUpBadlyIsReported(t *testing.T) {
	master, admin := startMaster(t)
	w := newWard(t, soundTable)
	sound := lockstore.Options{Addresses: []string{master.Addr}, User: "observer", Password: "pass-of-observer"}
	w.addRedis(t, sound)
	wantProblems(t, w.examine(t))

	do(t, admin, "CONFIG", "SET", "maxmemory-policy", "volatile-lru") // without a limit it never evicts
	wantProblems(t, w.examine(t))
	do(t, admin, "CONFIG", "SET", "maxmemory", "100mb")
	r := w.examine(t)
	wantProblems(t, r, "redis_evicts redis main")
	if p := problem(t, r, "redis_evicts"); !strings.Contains(p.Seen.EN, "volatile-lru, with a limit of 100 MB") || r.Exit() != 1 {
		t.Errorf("%+v", p)
	}
	// Locks are among what goes first.
	for i := range 50 {
		do(t, admin, "SET", "filler:"+strings.Repeat("x", 1000+i), strings.Repeat("y", 10_000), "EX", 3600)
	}
	do(t, admin, "CONFIG", "SET", "maxmemory", "1mb")
	testkit.Eventually(t, 10*time.Second, func() bool {
		_ = admin.Set(t.Context(), "lock", "x", 10*time.Second).Err() // it may find no memory
		return !strings.Contains(admin.Info(t.Context(), "stats").Val(), "evicted_keys:0\r")
	}, "nothing is evicted")
	wantProblems(t, w.examine(t), "redis_evicts redis main", "redis_evicted redis main")
	do(t, admin, "CONFIG", "RESETSTAT")
	do(t, admin, "CONFIG", "SET", "maxmemory", "0")
	do(t, admin, "FLUSHALL")

	do(t, admin, "CONFIG", "SET", "appendonly", "no")
	wantProblems(t, w.examine(t), "redis_not_persistent redis main")
	do(t, admin, "CONFIG", "SET", "save", "3600 1")
	wantProblems(t, w.examine(t))

	// Another database has the keys, where markers are expected.
	do(t, admin, "SET", "other", "1")
	wantProblems(t, w.examine(t))
	sound.DB = 5
	w.addRedis(t, sound)
	r = w.examine(t)
	wantProblems(t, r, "redis_empty_db redis main")
	if p := problem(t, r, "redis_empty_db"); !strings.Contains(p.Seen.EN, "db 5 has no key, while others have: db0: 1") {
		t.Error(p.Seen.EN)
	}
	w.flow().Marker, w.opts.CountersSource = nil, "elsewhere" // locks come and go
	wantProblemsOf(t, w.examine(t), KindRedis)
	sound.DB, w.opts.CountersSource = 0, "main"

	// A user that may do everything.
	sound.User, sound.Password = "", "pass-of-all"
	w.addRedis(t, sound)
	wantProblems(t, w.examine(t), "redis_rights_wide redis main")
}

// wantProblemsOf is wantProblems for the subjects of one kind.
func wantProblemsOf(t testing.TB, r Report, kind Kind, codes ...string) {
	t.Helper()
	var got []string
	for _, p := range r.Problems {
		if p.Subject.Kind == kind {
			got = append(got, p.Code)
		}
	}
	if strings.Join(got, " ") != strings.Join(codes, " ") {
		t.Errorf("%s: got %q, want %q", kind, got, codes)
	}
}

func TestAReplicaAndALonelyOpenRedisAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	open := testkit.StartRedis(t, "--protected-mode", "no", "--bind", "0.0.0.0")
	w.addRedis(t, lockstore.Options{Addresses: []string{open.Addr}})
	wantProblemsOf(t, w.examine(t), KindRedis, "redis_not_persistent", "redis_open", "redis_rights_wide", "redis_no_replica")

	closed := testkit.StartRedis(t, "--appendonly", "yes")
	w.addRedis(t, lockstore.Options{Addresses: []string{closed.Addr}})
	wantProblemsOf(t, w.examine(t), KindRedis, "redis_rights_wide", "redis_no_replica")

	host, port, _ := strings.Cut(closed.Addr, ":")
	replica := testkit.StartRedis(t, "--replicaof", host, port, "--appendonly", "yes")
	client := redis.NewClient(&redis.Options{Addr: replica.Addr, DisableIdentity: true})
	defer client.Close()
	testkit.Eventually(t, 20*time.Second, func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica does not connect")
	w.addRedis(t, lockstore.Options{Addresses: []string{replica.Addr}})
	wantProblemsOf(t, w.examine(t), KindRedis, "redis_is_replica", "redis_rights_wide")
}

// TestWhatARedisRefusesIsCannotTell: managed servers refuse CONFIG, and a narrow user much more.
func TestWhatARedisRefusesIsCannotTell(t *testing.T) {
	master, admin := startMaster(t)
	w := newWard(t, soundTable)
	w.addRedis(t, lockstore.Options{Addresses: []string{master.Addr}, User: "narrow", Password: "pass-of-narrow"})
	for rights, want := range map[string]string{
		"+info +time +acl|whoami":                    "redis_rights_wide", // the append-only file shows in INFO
		"+info +acl|whoami +acl|getuser +config|get": "redis_clock",
		"+time +acl": "redis_evicts redis_evicted redis_not_persistent redis_no_replica redis_is_replica redis_empty_db",
		"":           "redis_evicts redis_evicted redis_not_persistent redis_no_replica redis_is_replica redis_rights_wide redis_empty_db redis_clock",
	} {
		do(t, admin, append([]any{"ACL", "SETUSER", "narrow", "reset", "on", ">pass-of-narrow", "%R~*", "+ping"}, toAny(strings.Fields(rights))...)...)
		r := w.examine(t)
		var got []string
		for _, u := range r.Unsure {
			got = append(got, u.Code)
			if !strings.Contains(u.Reason.EN, "may not run") {
				t.Errorf("%s: %s", u.Code, u.Reason.EN)
			}
		}
		if strings.Join(got, " ") != want || len(r.Problems) > 0 || r.Exit() != 3 {
			t.Errorf("with %q: %q cannot be told, want %q; problems %q", rights, got, want, words(r))
		}
	}
}

// TestFactsOfRedisThatCannotBeMadeHere: a clock that is off, an address beyond
// this machine, a server that is older than ACLs.
func TestFactsOfRedisThatCannotBeMadeHere(t *testing.T) {
	facts := func(change func(*redisFacts)) redisFacts {
		f := redisFacts{name: "main", password: true}
		f.survey.is.Info = lockstore.Info{Role: "master", Replicas: 1, Policy: "noeviction", AppendOnly: true}
		f.survey.is.Rights = lockstore.Rights{User: "observer", Commands: reading}
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		change func(*redisFacts)
		want   string
	}{
		"sound":                    {func(*redisFacts) {}, ""},
		"ahead":                    {func(f *redisFacts) { f.survey.is.ClockAhead = 3 * time.Second }, "redis_clock"},
		"behind":                   {func(f *redisFacts) { f.survey.is.ClockAhead = -time.Hour }, "redis_clock"},
		"a slow answer":            {func(f *redisFacts) { f.survey.is.ClockAhead, f.survey.is.ClockMargin = 3*time.Second, 2*time.Second }, ""},
		"no password, far away":    {func(f *redisFacts) { f.password, f.remote = false, true }, "redis_open"},
		"no password, this host":   {func(f *redisFacts) { f.password, f.survey.is.Config.Bind = false, "127.0.0.1 -::1" }, ""},
		"no password, all hosts":   {func(f *redisFacts) { f.password = false }, "redis_open"},
		"no password, protected":   {func(f *redisFacts) { f.password, f.survey.is.Config.Protected = false, true }, ""},
		"no ACLs":                  {func(f *redisFacts) { f.survey.is.Rights = lockstore.Rights{} }, "redis_rights_wide"},
		"all but writing":          {func(f *redisFacts) { f.survey.is.Rights.Commands = "+@all -@write" }, ""},
		"a proxy without a policy": {func(f *redisFacts) { f.survey.is.Info.Policy = "" }, "?redis_evicts"},
	} {
		var r Report
		apply(&r, Subject{KindRedis, "main"}, redisRules, facts(c.change))
		var got []string
		for _, p := range r.Problems {
			got = append(got, p.Code)
		}
		for _, u := range r.Unsure {
			got = append(got, "?"+u.Code)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if s := clockSeen(-90*time.Second, time.Millisecond); s != flow.T("its clock is 1 min 30 s behind that of idemscope (give or take 1 ms)", "其时钟比 idemscope 慢 1 分 30 秒（误差 1 毫秒）") {
		t.Errorf("%+v", s)
	}
}
