package app

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

// TestTheServiceShowsItsFlows: what the exporter knows of a real table is on the
// page of its flow and in the JSON, and what no store tells is null.
func TestTheServiceShowsItsFlows(t *testing.T) {
	config := smallConfig(t, "127.0.0.1:0", "", "pay")
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,
		status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, UNIQUE KEY uk_biz (biz_type, biz_id))`)
	db.Exec(t, `INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES
		('pay', '1', 1, UTC_TIMESTAMP() - INTERVAL 1 HOUR, UTC_TIMESTAMP() - INTERVAL 1 HOUR), ('gift', '1', 1, UTC_TIMESTAMP(), UTC_TIMESTAMP())`)
	config = config[:strings.Index(config, "mysql:")] + `
mysql:
  main: {address: "` + db.Addr + `", database: ` + db.Name + `, user: ` + db.User + `, password: "` + db.Password + `"}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
console: {grafana: "https://grafana.example.com/"}
exporter: {interval: 1s}
flows:
  payments: {biz_types: [pay], ledger: orders, key_rule: "the order number <as it is>"}
`
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, config)
	address := serveConfig(t, file, nil)
	type figure struct {
		Value *float64 `json:"value"`
		Why   string   `json:"unknown_because"`
	}
	var all struct {
		Flows []struct {
			Flow    string            `json:"flow"`
			Figures map[string]any    `json:"figures"`
			Remarks []json.RawMessage `json:"remarks"`
		} `json:"flows"`
		Undeclared []struct {
			BizType string `json:"biz_type"`
			Open    *int64 `json:"processing"`
		} `json:"undeclared"`
	}
	read := func(name string) (f figure) {
		text, _ := json.Marshal(all.Flows[0].Figures[name])
		_ = json.Unmarshal(text, &f)
		return f
	}
	testkit.Eventually(t, 20*time.Second, func() bool {
		if err := json.Unmarshal([]byte(get(t, address+"/api/v1/flows")), &all); err != nil {
			t.Fatal(err)
		}
		stale := read("stale").Value
		return stale != nil && *stale == 1
	}, "the stale record does not show")
	if conflicts := read("lock_conflicts"); conflicts.Value != nil || !strings.Contains(conflicts.Why, "no counters") {
		t.Errorf("conflicts that nobody counts: %+v", conflicts)
	}
	if u := all.Undeclared; len(u) != 1 || u[0].BizType != "gift" || u[0].Open == nil || *u[0].Open != 1 {
		t.Errorf("undeclared: %+v", u)
	}
	if len(all.Flows[0].Remarks) == 0 {
		t.Error("the doctor has nothing to say of a flow without a lock and counters")
	}
	page := get(t, address+"/flows/payments")
	for _, want := range []string{"the order number &lt;as it is&gt;", "https://grafana.example.com/d/idemscope-flow?var-flow=payments", "consumers do not count"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
