package exporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// prometheusServer is a private Prometheus that scrapes one target.
type prometheusServer struct {
	t    *testing.T
	addr string
	log  *syncBuffer
}

// syncBuffer is a buffer that a process writes while a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

const scrapeConfig = `
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs:
  - job_name: idemscope
    static_configs: [{targets: [%q]}]
`

// startPrometheus runs the program from PATH and stops it when the test ends.
func startPrometheus(t *testing.T, target string, args ...string) *prometheusServer {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, scrapeConfig, target), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &prometheusServer{t: t, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), log: &syncBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "prometheus", append([]string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + p.addr}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start prometheus (Debian package prometheus): %v", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // ended by our signal
	})
	return p
}

// query returns the result of an instant query; nil while there is none.
func (p *prometheusServer) query(expr string) []promSample {
	p.t.Helper()
	body, _, err := fetch(p.t, "http://"+p.addr+"/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil
	}
	var answer struct {
		Data struct{ Result []promSample }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil
	}
	return answer.Data.Result
}

// promSample is one series of an instant query: a value or a native histogram.
type promSample struct {
	Metric    map[string]string
	Value     []any
	Histogram []any
}

func (p *prometheusServer) value(expr string) string {
	p.t.Helper()
	result := p.query(expr)
	if len(result) != 1 || len(result[0].Value) != 2 {
		return fmt.Sprint(result)
	}
	return fmt.Sprint(result[0].Value[1])
}

// complaints returns the lines of the log that are no plain information.
func (p *prometheusServer) complaints() []string {
	var lines []string
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "level=warn") || strings.Contains(line, "level=error") {
			lines = append(lines, line)
		}
	}
	return lines
}

// fetch gets a URL without keeping the connection.
func fetch(t *testing.T, url string) (body []byte, header http.Header, err error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return nil, nil, err
	}
	if response.StatusCode != http.StatusOK {
		return body, response.Header, fmt.Errorf("status %d", response.StatusCode)
	}
	return body, response.Header, nil
}

func TestPrometheusScrapesUs(t *testing.T) {
	for _, c := range []struct {
		name, format string
		args         []string
		native       bool
	}{
		{name: "text", format: "text/plain"},
		{name: "protobuf", format: "application/vnd.google.protobuf", args: []string{"--enable-feature=native-histograms"}, native: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.run()
			s.insert("pay", completed, "a", "b")
			s.Exec(t, "UPDATE idempotent_record SET create_time = update_time - INTERVAL 20 SECOND WHERE biz_id = 'a'")
			s.insert("pay", processing, "c")
			var format syncBuffer
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.exporter.Handler().ServeHTTP(w, r)
				fmt.Fprintln(&format, w.Header().Get("Content-Type"))
			}))
			defer web.Close()
			p := startPrometheus(t, strings.TrimPrefix(web.URL, "http://"), c.args...)

			const labels = `{biz_type="pay",ledger="orders"}`
			testkit.Eventually(t, 20*time.Second, func() bool { return p.value("idem_records_created_total"+labels) == "3" }, "the count arrives: %s", p.log)
			for expr, want := range map[string]string{
				"up":                                     "1",
				"sum(idemscope_source_up)":               "3",
				"idem_records_processing" + labels:       "1",
				"idem_records_completed_total" + labels:  "2",
				`idem_lock_ttl_seconds{flow="payments"}`: "15",
			} {
				if got := p.value(expr); got != want {
					t.Errorf("%s is %s, want %s", expr, got, want)
				}
			}
			count := "idem_record_duration_seconds_count" + labels
			if c.native {
				count = "histogram_count(idem_record_duration_seconds" + labels + ")"
				if result := p.query("idem_record_duration_seconds" + labels); len(result) != 1 || len(result[0].Histogram) != 2 {
					t.Errorf("native histogram: %v", result)
				}
			}
			if got := p.value(count); got != "2" {
				t.Errorf("%s is %s, want 2", count, got)
			}
			if got := p.complaints(); len(got) > 0 {
				t.Errorf("prometheus complains: %s", got)
			}
			if !strings.Contains(format.String(), c.format) {
				t.Errorf("served as %s", format.String())
			}
		})
	}
}
