package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/console"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
	"idemscope/janitor"
)

// cleanupState is what the API says of the cleanup.
type cleanupState struct {
	Tasks   []console.CleanupTaskJSON `json:"tasks"`
	History []console.CleanupRunJSON  `json:"history"`
}

func readCleanup(t *testing.T, address string) (s cleanupState) {
	t.Helper()
	if err := json.Unmarshal([]byte(get(t, address+"/api/v1/cleanup")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTheServiceShowsItsCleanup: a run by hand and a run of the service stand in
// one history, the plan is there, and a view changes nothing.
func TestTheServiceShowsItsCleanup(t *testing.T) {
	db := oldRecords(t, 20)
	file := cleanupConfig(t, db, ", rows: 5")
	var out, log bytes.Buffer
	exit, err := Janitor(t.Context(), JanitorOptions{Config: file, Execute: true, Logger: slog.New(slog.NewTextHandler(&log, nil)), Out: &out})
	if err != nil || exit != 1 {
		t.Fatalf("exit %d, %v: %s", exit, err, out.String())
	}
	// Two windows that make up the day: one of them is open.
	now := time.Now().UTC()
	window := "00:00-12:00"
	if now.Hour() >= 12 {
		window = "12:00-00:00"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, strings.Replace(string(text), "rows: 5", `enabled: true, window: "`+window+`"`, 1))
	address := serveConfig(t, file, nil)
	var s cleanupState
	testkit.Eventually(t, time.Minute, func() bool {
		s = readCleanup(t, address)
		return len(s.History) == 2 && s.Tasks[0].State == "idle"
	}, "the run of the service does not show")
	if service, hand := s.History[0], s.History[1]; service.By != "schedule" || service.Rows != 15 || service.End != "done" || hand.By != "command" || hand.Rows != 5 || hand.End != "rows" || hand.Cutoff == nil {
		t.Errorf("%+v\n%+v", service, hand)
	}
	task := s.Tasks[0]
	if task.Plan == nil || task.Plan.PerSecond == nil || len(task.Plan.Tables) != 1 || task.Opens == nil || task.Run != nil || task.Plan.Kept["failed"] != 1 {
		t.Errorf("%+v %+v", task, task.Plan)
	}
	page := get(t, address+"/cleanup?lang=zh")
	for _, want := range []string{"本次窗口已完成", "命令行", "OPTIMIZE TABLE"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// Nobody may stop it while the configuration allows no actions.
	if status, _ := post(t, address+"/cleanup/stop", http.Header{}); status < 400 {
		t.Errorf("stopped without leave: %d", status)
	}
	if history, err := os.ReadFile(filepath.Join(filepath.Dir(file), "idemscope-cleanup.jsonl")); err != nil || bytes.Count(history, []byte("\n")) != 2 {
		t.Errorf("%v\n%s", err, history)
	}
}

func TestARunShowsItsProgressOnATerminalAndLogsItElsewhere(t *testing.T) {
	p := janitor.Progress{Rows: 1234, Share: 0.5, PerSecond: 99.6, Left: 90 * time.Second, Tables: 2, Number: 1}
	if got, want := progressLine(p, flow.English), "[############------------]  50 %  1234 rows  100 rows/s  table 1 of 2  about 1 min 30 s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Hold, p.HoldText = janitor.ByLag, flow.T("the replica r1 is 20 s behind", "从库 r1 落后 20 秒")
	if got := progressLine(p, flow.Chinese); !strings.HasSuffix(got, "等待：从库 r1 落后 20 秒") {
		t.Errorf("%q", got)
	}
	if full := progressLine(janitor.Progress{Share: 1}, flow.English); !strings.HasPrefix(full, "[########################] 100 %") {
		t.Errorf("%q", full)
	}
	db := oldRecords(t, 20)
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		o := JanitorOptions{Config: cleanupConfig(t, db, ""), Execute: true, Terminal: terminal, Logger: slog.New(slog.DiscardHandler), Out: &out}
		if exit, err := Janitor(t.Context(), o); err != nil || exit != 0 {
			t.Fatalf("exit %d, %v", exit, err)
		}
		if strings.Contains(out.String(), clearLine) != terminal || !strings.Contains(out.String(), "done") {
			t.Errorf("terminal %t: %q", terminal, out.String())
		}
	}
}
