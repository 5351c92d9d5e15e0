package app

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// lookUps is how often the stores are looked at, in all ways together.
const lookUps = 1000

// TestLookingChangesNothing looks a thousand times, in every way that the
// product offers, at keys in all their states, while exporter, sweep and findings
// run, and compares everything that the stores can tell with what it was.
func TestLookingChangesNothing(t *testing.T) {
	db, keys, broker := newWatchedMySQL(t), newWatchedRedis(t), newWatchedQueues(t)
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, watchedConfig(db, keys, broker))
	var said bytes.Buffer
	if exit, err := Tap(t.Context(), TapOptions{Config: file, Action: TapApply, MaxAge: time.Hour, MaxBytes: 50_000_000, Language: flow.English, Out: &said}); exit != 0 || err != nil {
		t.Fatalf("make the tap: %d %v\n%s", exit, err, &said)
	}
	broker.fill(t)
	rows, content := db.checksum(t), keys.content(t)
	statements, commands := db.watch(t), keys.watch(t)

	address := serveConfig(t, file, nil)
	lookAround(t, address, file)
	// Each loop of the exporter goes round at least once more.
	polls := func() float64 { return scrape(t, address+"/metrics")["idemscope_last_poll_timestamp_seconds"] }
	if told := get(t, address+"/api/v1/lookup?type=quorum&id=m-3"); !strings.Contains(told, `"published"`) {
		t.Errorf("the tap was not followed:\n%s", told)
	}
	last := polls()
	testkit.Eventually(t, time.Minute, func() bool { return polls() > last }, "the exporter polls no more")

	t.Run("MySQL is only read", func(t *testing.T) {
		checkStatements(t, statements())
		if after := db.checksum(t); after != rows {
			t.Errorf("the table's checksum was %s and is %s", rows, after)
		}
	})
	t.Run("Redis is only read", func(t *testing.T) {
		checkCommands(t, commands())
		if after := keys.content(t); !slices.Equal(after, content) {
			t.Errorf("Redis held\n%q\nand holds\n%q", content, after)
		}
	})
	t.Run("RabbitMQ hands the messages over as if nobody had looked", broker.compare)
}

// watchedConfig follows the stores with everything turned on that reads them.
func watchedConfig(db *watchedMySQL, keys *watchedRedis, broker *watchedQueues) string {
	text := fmt.Sprintf(`
listen: 127.0.0.1:0
mysql:
  main: {address: %q, database: shop, user: %s}
redis:
  main: {addresses: [%q]}
brokers:
  rabbit: {type: rabbitmq, management: %q, vhost: %q, user: %q, password: %q, tap: {amqp: %q}}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
counters: {redis: main, trail: true}
exporter: {interval: 1s, lock_expirations: true, sweep: {pause: 1s}, findings: {per_second: 50}}
console: {lookup_timeout: 30s}
cleanup: {tasks: {orders: {ledger: orders, retain: 168h, action: delete}}}
flows:
`, db.Addr, lookingUser, keys.Addr, broker.vhost.Management, broker.vhost.Name, broker.vhost.Monitor, broker.vhost.MonitorPassword, broker.vhost.AMQP)
	for _, kind := range queueKinds {
		text += fmt.Sprintf(`  %[1]s:
    biz_types: [%[1]s]
    ledger: orders
    lock: {redis: main, key: "idem_lock:{biz_type}:{biz_id}", ttl: 1h}
    marker: {redis: main, key: "idempotent:{biz_type}:{biz_id}", ttl: 24h}
    queue: {broker: rabbit, name: %[1]s.looked_at, dead_letter: %[1]s.looked_at.dead, id: {json: biz_id}}
`, kind)
	}
	return text
}

// lookAround looks at every key in every way, some ways at the same time.
func lookAround(t *testing.T, address, file string) {
	t.Helper()
	var ways []func(bizType, id string) error
	for _, path := range []string{
		"/api/v1/lookup?type=TYPE&id=ID", "/api/v1/lookup?type=TYPE&id=ID", "/key?type=TYPE&id=ID&lang=en", "/key?type=TYPE&id=ID&lang=zh", "/api/v1/search?q=ID",
		"/search?q=TYPE%3AID", "/search?q=%7B%22biz_id%22%3A%22ID%22%7D", "/api/v1/findings", "/findings", "/metrics", "/", "/readyz", "/doctor", "/api/v1/doctor", "/trace",
		"/flows", "/flows/TYPE", "/api/v1/flows", "/cleanup", "/api/v1/cleanup",
	} {
		ways = append(ways, func(bizType, id string) error {
			return fetch(address + strings.NewReplacer("TYPE", bizType, "ID", url.QueryEscape(id)).Replace(path))
		})
	}
	ways = append(ways, func(bizType, id string) error {
		_, err := Lookup(t.Context(), LookupOptions{Config: file, Words: []string{bizType, id}, Language: flow.Chinese, Out: io.Discard})
		return err
	}, func(_, id string) error {
		_, err := Lookup(t.Context(), LookupOptions{Config: file, Words: []string{id}, JSON: true, Language: flow.English, Out: io.Discard})
		return err
	}, func(bizType, _ string) error {
		_, err := Findings(t.Context(), FindingsOptions{Config: file, Flow: bizType, Language: flow.English, Logger: slog.New(slog.DiscardHandler), Out: new(bytes.Buffer)})
		return err
	})
	errs := make([]error, lookUps)
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range lookUps {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = ways[i%len(ways)](queueKinds[i/len(ways)%len(queueKinds)], lookedAt[i%len(lookedAt)])
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("look-up %d: %v", i, err)
		}
	}
}

// lookedAt are the ids: every state of a record, a lock or marker alone, one that
// MySQL could take for another, one that only a message has, and one that nobody has.
var lookedAt = []string{"done", "fresh", "stuck", "failed", "unmapped", "lock-only", "marker-only", "DONE", "m-3", "nobody", strings.Repeat("x", 200), "a:b c'\"\\"}

// fetch asks once; a page without findings or keys is an answer, too.
func fetch(address string) error {
	response, err := http.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return nil
}
