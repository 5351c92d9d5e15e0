package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stage is the demo with its traffic, and a Prometheus that scrapes it and evaluates the rules. Both are private and
// listen on free loopback ports.
type stage struct {
	metrics, prometheus string // URLs
	stops               []func()
}

// demo runs while the tests of this package run.
var demo stage

func TestMain(m *testing.M) {
	// Well below the time after which `go test` would kill this process and leave the children behind.
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	code := 1
	if err := demo.start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the demo cannot be watched:", err)
	} else {
		code = m.Run()
	}
	cancel()
	for i := len(demo.stops) - 1; i >= 0; i-- {
		demo.stops[i]()
	}
	os.Exit(code)
}

func (s *stage) start(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "idemscope-dashboards-")
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "idemscope")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/idemscope")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build idemscope: %w\n%s", err, out)
	}
	said, err := s.run(ctx, dir, program, "demo", "--listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var address string
	if err := wait(ctx, 2*time.Minute, func() bool {
		found := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/metrics`).FindStringSubmatch(said.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	}); err != nil {
		return fmt.Errorf("the demo does not say where it is: %w\n%s", err, said)
	}
	s.metrics = "http://" + address + "/metrics"
	if err := s.startPrometheus(ctx, dir, address); err != nil {
		return err
	}
	config := regexp.MustCompile(`--config (\S+)`).FindStringSubmatch(said.String())
	if config == nil {
		return fmt.Errorf("the demo does not say where its configuration is:\n%s", said)
	}
	return s.cleanAgain(ctx, "http://"+address, config[1])
}

// cleanAgain shortens the retention, so that the janitor runs while Prometheus watches: its first run is over before the
// first scrape.
func (s *stage) cleanAgain(ctx context.Context, url, config string) error {
	if err := wait(ctx, 2*time.Minute, func() bool {
		samples, err := s.query(`idem_janitor_last_success_timestamp_seconds > 0`)
		return err == nil && len(samples) > 0
	}); err != nil {
		return fmt.Errorf("the cleanup at the start does not come to its end: %w", err)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	shorter := regexp.MustCompile(`retain: \w+`).ReplaceAll(text, []byte("retain: 120h"))
	if err := os.WriteFile(config, shorter, 0o600); err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second}
	response, err := client.Post(url+"/-/reload", "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("reload: %s: %s", response.Status, answer), err)
	}
	return nil
}

func (s *stage) startPrometheus(ctx context.Context, dir, target string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	var rules []string
	for _, name := range []string{"idemscope.recording.rules.yml", "idemscope.rules.yml"} {
		path, err := filepath.Abs("../alerts/" + name)
		if err != nil {
			return err
		}
		rules = append(rules, path)
	}
	config, err := json.Marshal(map[string]any{ // JSON is YAML
		"global":         map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     rules,
		"scrape_configs": []any{map[string]any{"job_name": "idemscope", "static_configs": []any{map[string]any{"targets": []string{target}}}}},
	})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s.prometheus = "http://" + address
	said, err := s.run(ctx, dir, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	if err != nil {
		return fmt.Errorf("%w (Debian package prometheus)", err)
	}
	if err := wait(ctx, time.Minute, func() bool { _, err := get(s.prometheus + "/-/ready"); return err == nil }); err != nil {
		return fmt.Errorf("prometheus is not ready: %w\n%s", err, said)
	}
	return nil
}

// output can be read while a process writes it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run starts a process that is told to stop when ctx ends, and waited for by stops.
func (s *stage) run(ctx context.Context, dir, program string, args ...string) (*output, error) {
	said := &output{}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, func() { _ = cmd.Wait() }) // it ends by our signal
	return said, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// wait polls until done, or for limit.
func wait(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}

func get(url string) ([]byte, error) {
	client := &http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status + ": " + string(body))
	}
	return body, err
}

// families are the names of the metric families that the demo exports, once its first sweeps, look-ups and examination are done.
func (s *stage) families(t *testing.T) map[string]bool {
	t.Helper()
	var names map[string]bool
	complete := func() bool {
		text, err := get(s.metrics)
		if err != nil {
			t.Fatal(err)
		}
		names = map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "#" && words[1] == "TYPE" {
				names[words[2]] = true
			}
		}
		return names["idem_findings"] && names["idem_locks"] && names["idemscope_sweep_completed_timestamp_seconds"] && names["idemscope_doctor_problems"]
	}
	if err := wait(t.Context(), 2*time.Minute, complete); err != nil {
		t.Errorf("the first sweeps, look-ups and examination do not end: %v", err)
	}
	return names
}

// sample is one series of an instant query.
type sample struct {
	Metric map[string]string
	Value  []any
}

// query asks Prometheus for the values of now.
func (s *stage) query(expr string) ([]sample, error) {
	body, err := get(s.prometheus + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Result []sample } }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	return answer.Data.Result, nil
}
