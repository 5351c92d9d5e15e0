package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/action"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// actionShop is a configuration over a real MariaDB and Redis, in a folder of its own.
type actionShop struct {
	db    *testkit.Database
	redis *redis.Client
	file  string
}

func newActionShop(t *testing.T, actions bool) *actionShop {
	t.Helper()
	s := &actionShop{db: testkit.MySQL(t), file: filepath.Join(t.TempDir(), "idemscope.yaml")}
	store := testkit.Redis(t)
	s.redis = store.Client
	s.db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,
		status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, UNIQUE KEY uk_biz (biz_type, biz_id))`)
	s.db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', 'stale', 1, UTC_TIMESTAMP() - INTERVAL 1 HOUR, UTC_TIMESTAMP() - INTERVAL 1 HOUR)")
	writeFile(t, s.file, fmt.Sprintf(`
listen: 127.0.0.1:0
mysql:
  main: {address: %q, database: %q, user: %q, act: {user: %q}}
redis:
  main: {addresses: [%q], db: %d}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
flows:
  payments: {biz_types: [pay], ledger: orders, lock: {redis: main, key: "lock:{biz_type}:{biz_id}", ttl: 15s}}
console: {actions: %v}
`, s.db.Addr, s.db.Name, s.db.User, s.db.User, store.Addr, store.DB, actions))
	return s
}

func (s *actionShop) run(t *testing.T, o ActionOptions) (exit int, out string) {
	t.Helper()
	var b bytes.Buffer
	o.Config, o.Out, o.Logger = s.file, &b, slog.New(slog.DiscardHandler)
	exit, err := Action(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return exit, b.String()
}

func TestActionsFromTheCommandLine(t *testing.T) {
	s := newActionShop(t, true)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.redis.Set(t.Context(), "lock:pay:1", "dead", 0).Err(); err != nil {
		t.Fatal(err)
	}
	release := ActionOptions{Kind: "release-lock", BizType: "pay", BizID: "1"}
	exit, out := s.run(t, release)
	if exit != 0 || !strings.Contains(out, "add --execute and --reason") || s.redis.Get(t.Context(), "lock:pay:1").Val() != "dead" {
		t.Errorf("%d\n%s", exit, out)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(s.file), "idemscope-audit.jsonl")); err == nil {
		t.Error("a precheck is in the audit")
	}
	release.Execute, release.Reason = true, "host is gone"
	exit, out = s.run(t, release)
	if exit != 0 || !strings.Contains(out, "the key was deleted") || !strings.Contains(out, "absent") || s.redis.Exists(t.Context(), "lock:pay:1").Val() != 0 {
		t.Errorf("%d\n%s", exit, out)
	}
	log, err := audit.Open(filepath.Join(filepath.Dir(s.file), "idemscope-audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := log.Read(t.Context(), audit.Query{})
	if err != nil || len(page.Entries) != 2 || page.Entries[0].Outcome != audit.Done || page.Entries[0].Who != me.Username || page.Entries[0].From != "" || page.Entries[0].Reason != "host is gone" {
		t.Errorf("%+v %v", page, err)
	}
	if exit, out = s.run(t, release); exit != 1 || !strings.Contains(out, "nothing to do") {
		t.Errorf("%d\n%s", exit, out)
	}
	reset := ActionOptions{Kind: "reset-record", BizType: "pay", BizID: "stale", Language: flow.Chinese, Execute: true, Reason: "r", JSON: true}
	exit, out = s.run(t, reset)
	var result action.ResultJSON
	if err := json.Unmarshal([]byte(out), &result); err != nil || exit != 0 || result.Outcome != audit.Done || !strings.Contains(result.Why, "记录已重置") {
		t.Errorf("%d %v\n%s", exit, err, out)
	}
	// The deed stands on the timeline of a look-up.
	var looked bytes.Buffer
	if _, err := Lookup(t.Context(), LookupOptions{Config: s.file, Words: []string{"pay", "stale"}, Language: flow.English, Out: &looked}); err != nil || !strings.Contains(looked.String(), "action reset-record: done") {
		t.Errorf("%v\n%s", err, looked.String())
	}
	for _, c := range []struct {
		o    ActionOptions
		exit int
		says string
	}{
		{ActionOptions{Kind: "replay", BizType: "pay", BizID: "1"}, 4, "REFUSED no_dead_letter_queue"},
		{ActionOptions{Kind: "clear-marker", BizType: "pay", BizID: "1", Execute: true, Reason: "r"}, 4, "the flow has no marker"},
		{ActionOptions{Kind: "reset-record", BizType: "pay", BizID: "none"}, 1, "Nothing to do"},
		{ActionOptions{Kind: "release-lock", BizType: "pay", BizID: "none", JSON: true}, 1, `"allowed": false`},
	} {
		if exit, out := s.run(t, c.o); exit != c.exit || !strings.Contains(out, c.says) {
			t.Errorf("%+v: %d\n%s", c.o, exit, out)
		}
	}
	for says, o := range map[string]ActionOptions{
		"--reason is needed": {Kind: "release-lock", BizType: "pay", BizID: "1", Execute: true, Reason: " "},
		"no flow names":      {Kind: "release-lock", BizType: "nobody", BizID: "1"},
		"there is no action": {Kind: "drop", BizType: "pay", BizID: "1"},
	} {
		o.Config, o.Out, o.Logger = s.file, &bytes.Buffer{}, slog.New(slog.DiscardHandler)
		if _, err := Action(t.Context(), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestActionsAreOffUnlessTheConfigurationSaysOtherwise(t *testing.T) {
	s := newActionShop(t, false)
	if err := s.redis.Set(t.Context(), "lock:pay:1", "dead", 0).Err(); err != nil {
		t.Fatal(err)
	}
	o := ActionOptions{Kind: "release-lock", BizType: "pay", BizID: "1", Execute: true, Reason: "r"}
	for _, asJSON := range []bool{false, true} {
		o.JSON = asJSON
		if exit, out := s.run(t, o); exit != 4 || !strings.Contains(out, "console.actions: true") {
			t.Errorf("%d\n%s", exit, out)
		}
	}
	address := serveConfig(t, s.file, nil)
	if status, body := post(t, address+"/api/v1/actions/release-lock", http.Header{"Content-Type": {"application/json"}}); status != http.StatusForbidden {
		t.Errorf("%d %s", status, body)
	}
	if s.redis.Get(t.Context(), "lock:pay:1").Val() != "dead" {
		t.Error("the lock is gone")
	}
}

// The program serves actions over its own stores and its own audit file.
func TestTheServiceActs(t *testing.T) {
	s := newActionShop(t, true)
	if err := s.redis.Set(t.Context(), "lock:pay:1", "dead", 0).Err(); err != nil {
		t.Fatal(err)
	}
	address := serveConfig(t, s.file, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/actions/release-lock", strings.NewReader(`{"type":"pay","id":"1","reason":"r","execute":true}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || s.redis.Exists(t.Context(), "lock:pay:1").Val() != 0 {
		t.Errorf("%d", response.StatusCode)
	}
	if list := get(t, address+"/audit"); !strings.Contains(list, "release") && !strings.Contains(list, "Release the lock") {
		t.Errorf("%s", list)
	}
}
