package lockstore

import (
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

// TestASurveyOnlyReads watches what the server runs, and compares what it is set to.
func TestASurveyOnlyReads(t *testing.T) {
	server := testkit.StartRedis(t, "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru", "--save", "3600 1")
	do(t, admin(t, server.Addr), "SET", "a", "1")
	s := open(t, Options{Addresses: []string{server.Addr}, DB: 3})
	var surveys []ServerSurvey
	var err error
	lines := monitor(t, server.Addr, func() { surveys, err = s.Survey(t.Context()) })
	if err != nil || len(surveys) != 1 {
		t.Fatal(surveys, err)
	}
	for _, line := range lines {
		_, command, _ := strings.Cut(line, "] ")
		words := strings.ToLower(strings.ReplaceAll(command, `"`, ""))
		known := false
		for _, allowed := range []string{"select 3", "info", "time", "config get save", "config get protected-mode", "config get bind", "acl whoami", "acl getuser default"} {
			known = known || words == allowed
		}
		if !known && !strings.Contains(words, "echo") {
			t.Errorf("it runs %s", command)
		}
	}
	got := surveys[0]
	i := got.Info
	if i.Role != "master" || i.Policy != "allkeys-lru" || i.MaxMemory != 50<<20 || i.AppendOnly || i.Keys[0] != 1 || len(i.Keys) != 1 || i.Version == "" || i.Replicas != 0 || i.Evicted != 0 {
		t.Errorf("%+v", i)
	}
	if got.Config.Save != "3600 1" || got.Rights.User != "default" || !got.Rights.Writes() || got.ClockAhead.Abs() > 2e9 || got.ClockMargin < 0 {
		t.Errorf("%+v", got)
	}
	if s.DB() != 3 || s.Remote() || s.HasPassword() {
		t.Error("the configuration is told wrongly")
	}
}

func TestASurveyOfAServerThatIsDownIsAnError(t *testing.T) {
	proxy := testkit.NewProxy(t, "127.0.0.1:1")
	proxy.Drop(true)
	if _, err := open(t, Options{Addresses: []string{proxy.Addr}}).Survey(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if !open(t, Options{Addresses: []string{"10.0.0.1:6379"}}).Remote() || !open(t, Options{Addresses: []string{"cache.internal:6379"}}).Remote() {
		t.Error("an address elsewhere passes for this machine")
	}
}
