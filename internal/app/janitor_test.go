package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
	"idemscope/janitor"
)

// cleanupConfig writes a configuration with one cleanup task.
func cleanupConfig(t *testing.T, db *testkit.Database, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idemscope.yaml")
	text := fmt.Sprintf(`listen: 127.0.0.1:0
mysql:
  main: {address: %q, database: %s, user: root, act: {user: root}}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
flows:
  payments: {biz_types: [order_paid], ledger: orders}
cleanup:
  tasks:
    orders: {ledger: orders, retain: 168h, action: delete%s}
`, db.Addr, db.Name, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// oldRecords makes a table with old completed records, one that is failed, and a young one.
func oldRecords(t *testing.T, completed int) *testkit.Database {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64) NOT NULL, biz_type VARCHAR(64) NOT NULL,
		status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, UNIQUE KEY (biz_type, biz_id))`)
	for i := range completed {
		db.Exec(t, "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time) VALUES (?, 'order_paid', 2, '2020-01-01', '2020-01-01')", i)
	}
	db.Exec(t, "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time) VALUES ('failed', 'order_paid', 3, '2020-01-01', '2020-01-01')")
	db.Exec(t, "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time) VALUES ('young', 'order_paid', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())")
	return db
}

func TestTheCommandPlansFirstAndSweepsOnlyWithExecute(t *testing.T) {
	db := oldRecords(t, 20)
	command := func(o JanitorOptions) (exit int, out string) {
		t.Helper()
		var b bytes.Buffer
		o.Config, o.Logger, o.Out = cleanupConfig(t, db, ""), slog.New(slog.DiscardHandler), &b
		exit, err := Janitor(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return exit, b.String()
	}
	rows := func() (n int) {
		t.Helper()
		if err := db.DB.Get(&n, "SELECT COUNT(*) FROM idempotent_record"); err != nil {
			t.Fatal(err)
		}
		return n
	}
	exit, plan := command(JanitorOptions{Exact: true})
	for _, want := range []string{"20 rows go", "1 rows stay: failed: a person decides", "1 rows stay: changed too recently", "DELETE FROM `" + db.Name + "`.`idempotent_record` WHERE `id` > 0 AND"} {
		if !strings.Contains(plan, want) {
			t.Errorf("no %q in\n%s", want, plan)
		}
	}
	if exit != 0 || rows() != 22 {
		t.Errorf("exit %d, %d rows", exit, rows())
	}
	exit, text := command(JanitorOptions{JSON: true, Exact: true})
	var parsed struct{ Tasks []janitor.PlanJSON }
	if err := json.Unmarshal([]byte(text), &parsed); err != nil || exit != 0 || parsed.Tasks[0].Tables[0].Candidates != 20 || parsed.Tasks[0].Tables[0].LastID != "21" {
		t.Errorf("%v, exit %d:\n%s", err, exit, text)
	}
	exit, report := command(JanitorOptions{Execute: true, Language: flow.Chinese})
	if exit != 0 || rows() != 2 || !strings.Contains(report, "任务 orders：完成，20 行") {
		t.Errorf("exit %d, %d rows:\n%s", exit, rows(), report)
	}
}

func TestTheServiceSweepsInItsWindowAndExportsIt(t *testing.T) {
	db := oldRecords(t, 20)
	// Two windows that make up the day: one of them is open.
	for _, window := range []string{"00:00-12:00", "12:00-00:00"} {
		s, err := newService(cleanupConfig(t, db, `, enabled: true, window: "`+window+`"`), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}()
		families, err := s.process.Gather()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = true
		}
		for _, name := range []string{"idem_janitor_rows_total", "idem_janitor_batch_duration_seconds", "idem_janitor_throttled_seconds_total", "idem_janitor_last_success_timestamp_seconds", "idem_janitor_running"} {
			if !names[name] {
				t.Errorf("no series of %s", name)
			}
		}
	}
	testkit.Eventually(t, time.Minute, func() bool {
		var n int
		return db.DB.Get(&n, "SELECT COUNT(*) FROM idempotent_record") == nil && n == 2
	}, "the service has not swept")
}
