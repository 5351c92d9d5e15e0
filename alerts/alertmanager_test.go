package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

const alertmanagerFile = "alertmanager.example.yml"

func TestAmtoolAcceptsTheExample(t *testing.T) {
	run(t, "amtool", "check-config", alertmanagerFile)
}

func TestEveryAlertIsRoutedByItsSeverity(t *testing.T) {
	for _, r := range rules(t, alertFile) {
		want := map[string]string{"critical": "on-call", "warning": "tickets"}[r.Labels["severity"]]
		// --verify.receivers makes amtool fail when the alert goes elsewhere.
		run(t, "amtool", "config", "routes", "test", "--config.file="+alertmanagerFile, "--verify.receivers="+want,
			"alertname="+r.Alert, "severity="+r.Labels["severity"])
	}
}

type labels map[string]string

// TestInhibition gives alerts to a real Alertmanager and asks which it keeps quiet.
func TestInhibition(t *testing.T) {
	url := startAlertmanager(t)
	quiet := []labels{
		{"alertname": "IdemRunP99AboveHalfLockTTL", "flow": "payments", "biz_type": "pay", "instance": "a"},
		{"alertname": "IdemRunsLongerThanLock", "flow": "payments", "biz_type": "pay", "instance": "a"},
		{"alertname": "IdemIdHeadroomLow", "ledger": "orders"},
		{"alertname": "IdemFindingsWarning", "flow": "payments", "biz_type": "pay", "verdict": "failed_unplaced"},
		{"alertname": "IdemCleanupBehind", "task": "orders"},
		{"alertname": "IdemscopeDataOld", "source": "orders", "kind": "ledger", "instance": "a"},
		{"alertname": "IdemFindingsUndecided", "flow": "payments", "biz_type": "pay", "instance": "a"},
	}
	loud := []labels{
		{"alertname": "IdemRunP99AboveLockTTL", "flow": "payments", "biz_type": "pay", "instance": "a"},
		{"alertname": "IdemIdsRunOut", "ledger": "orders"},
		{"alertname": "IdemDeadLettersUnfinished", "flow": "payments", "biz_type": "pay"},
		{"alertname": "IdemCleanupNotRun", "task": "orders"},
		{"alertname": "IdemscopeSourceUnreadable", "source": "orders", "kind": "ledger", "instance": "a"},
		// Like the quiet ones, but of something else.
		{"alertname": "IdemRunP99AboveHalfLockTTL", "flow": "payments", "biz_type": "refund", "instance": "a"},
		{"alertname": "IdemIdHeadroomLow", "ledger": "points"},
		{"alertname": "IdemFindingsWarning", "flow": "payments", "biz_type": "pay", "verdict": "clock_skew"},
		{"alertname": "IdemCleanupBehind", "task": "points"},
		{"alertname": "IdemscopeDataOld", "source": "main", "kind": "redis", "instance": "a"},
		{"alertname": "IdemFindingsUndecided", "flow": "payments", "biz_type": "pay", "instance": "b"},
	}
	var alerts []map[string]labels
	for _, l := range append(quiet, loud...) {
		alerts = append(alerts, map[string]labels{"labels": l})
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		t.Fatal(err)
	}
	call(t, http.MethodPost, url+"/api/v2/alerts", body)

	var want []string
	for _, l := range quiet {
		want = append(want, fmt.Sprint(l))
	}
	testkit.Eventually(t, 10*time.Second, func() bool {
		var known []struct {
			Labels labels
			Status struct{ InhibitedBy []string }
		}
		if err := json.Unmarshal(call(t, http.MethodGet, url+"/api/v2/alerts", nil), &known); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range known {
			if len(a.Status.InhibitedBy) > 0 {
				got = append(got, fmt.Sprint(a.Labels))
			}
		}
		return len(known) == len(alerts) && sameSet(got, want)
	}, "Alertmanager does not keep exactly these quiet: %s", strings.Join(want, "\n"))
}

func sameSet(a, b []string) bool {
	in := map[string]bool{}
	for _, s := range a {
		in[s] = true
	}
	for _, s := range b {
		if !in[s] {
			return false
		}
	}
	return len(a) == len(b)
}

// startAlertmanager runs the example with receivers that lead nowhere, on loopback, until the test ends.
func startAlertmanager(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		if program, err = exec.LookPath("alertmanager"); err != nil {
			t.Fatalf("Alertmanager is needed (Debian package prometheus-alertmanager): %v", err)
		}
	}
	text, err := os.ReadFile(alertmanagerFile)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`http://\S+`).ReplaceAll(text, []byte("http://127.0.0.1:1/"))
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	ctx, cancel := context.WithCancel(context.Background())
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--cluster.listen-address=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // ended by our signal
		if t.Failed() {
			t.Logf("%s", &log)
		}
	})
	url := "http://" + address
	testkit.Eventually(t, 20*time.Second, func() bool {
		response, err := client().Get(url + "/-/ready")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, "Alertmanager is not ready")
	return url
}

func client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
}

func call(t *testing.T, method, url string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v\n%s", method, url, response.Status, err, &answer)
	}
	return answer.Bytes()
}
