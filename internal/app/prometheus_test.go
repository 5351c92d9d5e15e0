package app

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// checkPrometheus lets a real Prometheus scrape the service for a while, and
// reads its log: a warning means that the exposition is wrong.
func (s product) checkPrometheus(t *testing.T) {
	dir := t.TempDir()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	scraped, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: idemscope\n  static_configs: [{targets: [%q]}]\n", scraped.Host)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	var log bytes.Buffer
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--enable-feature=native-histograms")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("a real Prometheus is needed (Debian package prometheus): %v", err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		for line := range strings.Lines(log.String()) {
			complaint := strings.Contains(line, "level=warn") || strings.Contains(line, "level=error")
			if complaint && !strings.Contains(line, "Received SIGTERM") {
				t.Errorf("Prometheus complains: %s", line)
			}
		}
	}()
	query := "http://" + address + "/api/v1/query?query="
	testkit.Eventually(t, 30*time.Second, func() bool { return answers(query + url.QueryEscape(`count_over_time(up{job="idemscope"}[1m]) > 5`)) }, "Prometheus has not scraped five times")
	for _, promql := range []string{
		`min_over_time(up{job="idemscope"}[1m]) == 1`,
		`sum(idem_attempts_total) > 0`,
		`histogram_quantile(0.99, sum by (le) (rate(idem_run_duration_seconds_bucket[1m]))) > 0`,
		`histogram_count(sum(idem_record_duration_seconds)) > 0`,
	} {
		if !answers(query + url.QueryEscape(promql)) {
			t.Errorf("no result for %s", promql)
		}
	}
}
