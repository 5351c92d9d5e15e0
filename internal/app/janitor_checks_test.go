package app

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
	"idemscope/janitor"
)

// checkedConfig writes a configuration whose flow has a queue at a broker that is down.
func checkedConfig(t *testing.T, db *testkit.Database, reader, task string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idemscope.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
mysql:
  main: {address: %q, database: %s, user: %s, act: {user: root}}
brokers:
  rabbit: {management: "http://127.0.0.1:1", user: monitor, password: "hunter2"}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
flows:
  payments: {biz_types: [order_paid], ledger: orders, queue: {broker: rabbit, name: paid, dead_letter: paid.dlq}}
cleanup:
  tasks:
    orders:
      ledger: orders
      retain: 168h
      action: delete
%s`, db.Addr, db.Name, reader, task)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// janitorOf runs the command over a configuration.
func janitorOf(t *testing.T, o JanitorOptions) (exit int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var b bytes.Buffer
	o.Logger, o.Out = slog.New(slog.DiscardHandler), &b
	exit, err := Janitor(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return exit, b.String()
}

func TestDeadLettersThatNobodyCanCountRefuseARunUntilTheirQueueIsAllowed(t *testing.T) {
	db := oldRecords(t, 20)
	config := checkedConfig(t, db, "root", "")
	exit, text := janitorOf(t, JanitorOptions{Config: config, Execute: true})
	if exit != 4 || !strings.Contains(text, "allow_dead_letters: [paid.dlq]") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
	exit, text = janitorOf(t, JanitorOptions{Config: config, Language: flow.Chinese})
	if exit != 4 || !strings.Contains(text, "拒绝执行 [dead_letters_unread] 无法得知 broker rabbit 的队列 paid.dlq") || !strings.Contains(text, "通过 [read_only]") || strings.Contains(text, "hunter2") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
	exit, text = janitorOf(t, JanitorOptions{Config: checkedConfig(t, db, "root", "      allow_dead_letters: [paid.dlq]\n"), Execute: true})
	if exit != 0 || !strings.Contains(text, "20 rows") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
}

func TestTheChecksOfTheConfigurationReachTheRun(t *testing.T) {
	db := oldRecords(t, 20)
	const reader = "reader" // the private server lets every user in
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	task := fmt.Sprintf(`      allow_dead_letters: [paid.dlq]
      expect_schema: "%032d"
      throttle:
        max_threads_running: 0
        query: {sql: "SELECT SUBSTRING_INDEX(USER(), '@', 1) <> '%s'", max: 0}
        http: {url: %q}
`, 0, reader, s.URL+"/may-clean")
	exit, text := janitorOf(t, JanitorOptions{Config: checkedConfig(t, db, reader, task), Execute: true})
	_, hash, _ := strings.Cut(text, `write expect_schema: "`)
	if exit != 4 || len(hash) < 32 || asked.Load() != 0 {
		t.Fatalf("exit %d, asked %d times:\n%s", exit, asked.Load(), text)
	}
	task = strings.Replace(task, strings.Repeat("0", 32), hash[:32], 1)
	// The query lets only the user go on that reads.
	exit, text = janitorOf(t, JanitorOptions{Config: checkedConfig(t, db, reader, task), Execute: true})
	if exit != 0 || !strings.Contains(text, "20 rows") || strings.Contains(text, "held up") || asked.Load() == 0 {
		t.Errorf("exit %d, asked %d times:\n%s", exit, asked.Load(), text)
	}
}

func TestABusyServerBeyondTheCriticalLimitEndsTheRun(t *testing.T) {
	db := oldRecords(t, 20)
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = db.DB.ExecContext(ctx, "SELECT SLEEP(60)")
	}()
	defer func() { stop(); <-gone }()
	testkit.Eventually(t, 20*time.Second, func() bool {
		var name string
		var n int
		return db.DB.QueryRow("SHOW GLOBAL STATUS LIKE 'Threads_running'").Scan(&name, &n) == nil && n >= 2
	}, "no second statement runs")
	config := checkedConfig(t, db, "root", `      allow_dead_letters: [paid.dlq]
      throttle: {max_threads_running: 0, critical: {threads_running: 1}}
`)
	exit, text := janitorOf(t, JanitorOptions{Config: config, Execute: true})
	if exit != 1 || !strings.Contains(text, "ended early, 0 rows") || !strings.Contains(text, "throttle.critical.threads_running") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
	runs, err := janitor.NewHistory(filepath.Join(filepath.Dir(config), "idemscope-cleanup.jsonl")).List()
	if err != nil || len(runs) != 1 || runs[0].End != janitor.IsCritical || runs[0].WhyZH == "" {
		t.Errorf("%v %+v", err, runs)
	}
}

func TestAnImplausibleRunIsAcceptedOnceFromTheCommandLine(t *testing.T) {
	db := oldRecords(t, 0)
	config := checkedConfig(t, db, "root", "      allow_dead_letters: [paid.dlq]\n      batch: 10000\n")
	history := janitor.NewHistory(filepath.Join(filepath.Dir(config), "idemscope-cleanup.jsonl"))
	began := time.Now()
	if err := history.Append(janitor.Entry{Task: "orders", Ledger: "orders", Table: db.Name + ".idempotent_record", Began: began, Ended: began.Add(time.Second), Rows: 30, Batches: 1, End: janitor.Done}); err != nil {
		t.Fatal(err)
	}
	for from := range 13 {
		db.Exec(t, `INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time)
			SELECT 10 + ? * 10000 + seq, ? * 10000 + seq, 'bulk', 2, '2020-01-01', '2020-01-01' FROM seq_1_to_10000`, from, from)
	}
	db.Exec(t, "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time) VALUES ('last', 'order_paid', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())")
	exit, text := janitorOf(t, JanitorOptions{Config: config, Execute: true})
	if exit != 4 || !strings.Contains(text, "--accept-size") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
	exit, text = janitorOf(t, JanitorOptions{Config: config, AcceptSize: true, Exact: true})
	if exit != 0 || !strings.Contains(text, "allowed [implausible]") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
	exit, text = janitorOf(t, JanitorOptions{Config: config, Execute: true, AcceptSize: true})
	if exit != 0 || !strings.Contains(text, "130000 rows") {
		t.Errorf("exit %d:\n%s", exit, text)
	}
}
