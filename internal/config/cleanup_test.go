package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestACleanupTaskIsReadWhole(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal(`time_zone: Asia/Shanghai
cleanup:
  tasks:
    orders: {ledger: orders, retain: 168h, action: archive, archive: {table: old}, batch: 500, window: "23:30-04:00", enabled: true,
      run_time: 2h, rows: 1000, stop_file: stop, throttle: {replicas: [main], max_replica_lag: 3s, max_threads_running: 0, max_history_length: 7,
        query: {sql: "SELECT COUNT(*) FROM jobs WHERE note <> '#'", max: -3}, http: {url: "https://u:p@host:8443/t/x?y=z"},
        critical: {threads_running: 200, history_length: 8, replica_lag: 1m}},
      allow_dead_letters: [paid.dlq], expect_schema: 0123456789abcdef0123456789abcdef, max_growth: 0}
`), "ledger: orders}\n", "ledger: orders, queue: {broker: rabbit, name: paid, dead_letter: paid.dlq}}\n", 1), nil)
	want := CleanupTask{
		Name: "orders", Ledger: "orders", Retain: 168 * time.Hour, Action: CleanupArchive, ArchiveTable: "old", Batch: 500,
		Window: Window{From: 23*60 + 30, To: 4 * 60}, TimeZone: c.TimeZone, Enabled: true, RunTime: 2 * time.Hour, Rows: 1000, StopFile: "stop",
		Throttle: Throttle{Replicas: []string{"main"}, MaxReplicaLag: 3 * time.Second, MaxHistoryLength: 7, Duty: 50,
			Query: ThrottleQuery{SQL: "SELECT COUNT(*) FROM jobs WHERE note <> '#'", Max: -3}, HTTP: "https://u:p@host:8443/t/x?y=z",
			Critical: Critical{ThreadsRunning: 200, HistoryLength: 8, ReplicaLag: time.Minute}},
		Checks: CleanupChecks{AllowDeadLetters: []string{"paid.dlq"}, ExpectSchema: "0123456789abcdef0123456789abcdef"},
	}
	if got := c.Cleanup.Tasks; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if c.Ledgers[0].Archive != "old" {
		t.Errorf("look-ups search the archive %q", c.Ledgers[0].Archive)
	}
	wantSame(t, c)
}

func TestACleanupTaskHasSafeDefaults(t *testing.T) {
	c := mustParse(t, minimal("cleanup: {tasks: {orders: {ledger: orders, retain: 1h, action: delete}}}"), nil)
	want := CleanupTask{
		Name: "orders", Ledger: "orders", Retain: time.Hour, Action: CleanupDelete, Batch: 500, TimeZone: time.UTC,
		Throttle: Throttle{MaxReplicaLag: 10 * time.Second, MaxThreadsRunning: 50, MaxHistoryLength: 100_000, Duty: 50},
		Checks:   CleanupChecks{MaxGrowth: 10},
	}
	if got := c.Cleanup.Tasks; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if c.Cleanup.History != "idemscope-cleanup.jsonl" {
		t.Errorf("history %q", c.Cleanup.History)
	}
	wantSame(t, c)
	c = mustParse(t, minimal("cleanup: {history: {file: /var/lib/idemscope/runs}, tasks: {orders: {ledger: orders, retain: 1h, action: delete}}}"), nil)
	if c.Cleanup.History != "/var/lib/idemscope/runs" {
		t.Errorf("history %q", c.Cleanup.History)
	}
	wantSame(t, c)
	if c := mustParse(t, minimal(""), nil); len(c.Cleanup.Tasks) != 0 || c.Cleanup.History != "" || c.MySQL[0].Act != (Account{}) {
		t.Errorf("%+v", c)
	}
}

func TestTheSecondCredentialIsReadAndMasked(t *testing.T) {
	c := mustParse(t, strings.Replace(minimal(""), "user: idemscope}", `user: idemscope, act: {user: cleaner, password: "${P}"}}`, 1), map[string]string{"P": marker})
	if a := c.MySQL[0].Act; a.User != "cleaner" || a.Password.Reveal() != marker {
		t.Fatalf("%+v", c.MySQL[0].Act)
	}
	for way, text := range printed(t, c.MySQL) {
		if strings.Contains(text, marker) {
			t.Errorf("through %s: %s", way, text)
		}
	}
	redacted, err := c.Redacted()
	if err != nil || strings.Contains(string(redacted), marker) || !strings.Contains(string(redacted), "user: cleaner") {
		t.Errorf("%v\n%s", err, redacted)
	}
	wantSame(t, c)
}

func TestTheURLOfAThrottleIsNeverShownWhole(t *testing.T) {
	for address, want := range map[string]string{
		"http://" + marker + ":x@host:80/": "http://host:80/<secret>",
		"http://host/" + marker:            "http://host/<secret>",
		"http://host?k=" + marker:          "http://host/<secret>",
		"http://host:81":                   "http://host:81\n",
	} {
		c := mustParse(t, minimal(`cleanup: {tasks: {orders: {ledger: orders, retain: 1h, action: delete, throttle: {http: {url: "${U}"}}}}}`), map[string]string{"U": address})
		redacted, err := c.Redacted()
		if err != nil || strings.Contains(string(redacted), marker) || !strings.Contains(strings.ReplaceAll(string(redacted), `"`, ""), want) {
			t.Errorf("%v\n%s", err, redacted)
		}
		for way, text := range printed(t, c.Cleanup) {
			if strings.Contains(text, marker) {
				t.Errorf("through %s: %s", way, text)
			}
		}
		wantSame(t, c)
	}
}

// The commented section of the example is a configuration, too.
func TestTheCleanupOfTheExampleCanBeUncommented(t *testing.T) {
	data, err := readFile("../../examples/idemscope.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, tail, ok := strings.Cut(string(data), "# cleanup:\n")
	if !ok {
		t.Fatal("the example has no section cleanup")
	}
	text := head + "cleanup:\n" + strings.ReplaceAll("\n"+tail, "\n# ", "\n")
	text = strings.NewReplacer("# act:", "act:", "#   user: idemscope_act", "  user: idemscope_act", "#   password: ${MYSQL_ACT_PASSWORD}", "  password: ${MYSQL_ACT_PASSWORD}").Replace(text)
	c, err := Parse("example.yaml", []byte(text), func(string) (string, bool) { return "x", true }, noFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cleanup.Tasks) != 1 || c.Cleanup.Tasks[0].Rows != 10_000_000 || c.MySQL[0].Act.User == "" {
		t.Errorf("%+v %+v", c.Cleanup, c.MySQL[0].Act)
	}
}
