package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/lab"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// product is the running program on the lab's servers.
type product struct {
	lab    *lab.Lab
	url    string
	config string
}

// startProduct runs the whole product as `idemscope demo` does.
func startProduct(t *testing.T) product {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	l, err := lab.Start(t.Context(), lab.Options{Listen: "127.0.0.1:0", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	if err := os.WriteFile(file, l.Config(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	traffic, served, started := make(chan error, 1), make(chan error, 1), make(chan string, 1)
	go func() { traffic <- l.Run(ctx) }()
	go func() {
		served <- Serve(ctx, ServeOptions{Config: file, Logger: logger, Started: func(url string) { started <- url }})
	}()
	t.Cleanup(func() {
		cancel()
		for _, ended := range []chan error{served, traffic} {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case address := <-started:
		return product{lab: l, url: address, config: file}
	case err := <-served:
		served <- err
		t.Fatalf("not served: %v", err)
	}
	return product{}
}

// TestTheMainJob runs the product on real stores under real traffic: tables,
// keys and queues in; verdicts and metrics out.
func TestTheMainJob(t *testing.T) {
	s := startProduct(t)
	if len(s.lab.Missing) > 0 {
		t.Fatalf("servers are missing: %v", s.lab.Missing)
	}
	t.Run("every sample gives its verdict", func(t *testing.T) {
		for _, sample := range s.lab.Samples() {
			t.Run(fmt.Sprintf("%s %.40q", sample.BizType, sample.BizID), func(t *testing.T) { s.checkSample(t, sample) })
		}
	})
	t.Run("every metric is there", s.checkMetrics)
	t.Run("Prometheus scrapes it", s.checkPrometheus)
	t.Run("a search finds a bare id", s.checkSearch)
	t.Run("every finding is listed", s.checkFindings)
}

// checkSample asks for one sample through the API and the command line.
func (s product) checkSample(t *testing.T, sample lab.Sample) {
	query := url.Values{"type": {sample.BizType}, "id": {sample.BizID}, "flow": {sample.Flow}}
	var viaAPI answer.JSON
	getJSON(t, s.url+"/api/v1/lookup?"+query.Encode(), &viaAPI)
	if string(viaAPI.Verdict.Code) != sample.Verdict || viaAPI.Verdict.Layer != sample.Layer {
		t.Fatalf("got %s/%s (%s), promised %s/%s: %s", viaAPI.Verdict.Code, viaAPI.Verdict.Layer, viaAPI.Verdict.Sentence,
			sample.Verdict, sample.Layer, sample.Story.EN)
	}
	var out bytes.Buffer
	exit, err := Lookup(t.Context(), LookupOptions{
		Config: s.config, Words: []string{sample.BizType, sample.BizID}, Flow: sample.Flow, JSON: true, Out: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	var viaCLI answer.JSON
	if err := json.Unmarshal(out.Bytes(), &viaCLI); err != nil {
		t.Fatal(err)
	}
	if viaCLI.Verdict.Code != viaAPI.Verdict.Code {
		t.Errorf("command line says %s, API says %s", viaCLI.Verdict.Code, viaAPI.Verdict.Code)
	}
	want := map[string]int{"ok": 0, "info": 0, "warning": 1, "critical": 1, "unknown": 3}[string(viaAPI.Verdict.Severity)]
	if exit != want {
		t.Errorf("exit code %d for severity %s", exit, viaAPI.Verdict.Severity)
	}
	page := get(t, s.url+"/key?lang=zh&"+query.Encode())
	if !strings.Contains(page, string(viaAPI.Verdict.Code)) {
		t.Errorf("the page does not name %s", viaAPI.Verdict.Code)
	}
}

// checkMetrics waits until every metric of the main job has a value above zero.
func (s product) checkMetrics(t *testing.T) {
	wanted := []string{
		"idem_lock_conflicts_total", "idem_dedup_hits_total", "idem_retries_total", "idem_attempts_total", "idem_runs_total",
		"idem_run_duration_seconds", "idem_record_duration_seconds", "idem_records_created_total", "idem_records_completed_total",
		"idem_records_failed_total", "idem_records_processing", "idem_records_stale", "idem_oldest_processing_age_seconds",
		"idem_runs_longer_than_lock_total", "idem_lock_ttl_seconds", "idem_queue_messages", "idem_queue_consumers",
		"idemscope_source_up", "idemscope_poll_duration_seconds", "idemscope_last_poll_timestamp_seconds", "idemscope_build_info",
	}
	var missing []string
	testkit.Eventually(t, time.Minute, func() bool {
		missing = missing[:0]
		values := scrape(t, s.url+"/metrics")
		for _, name := range wanted {
			if values[name] <= 0 {
				missing = append(missing, name)
			}
		}
		return len(missing) == 0
	}, "metrics without a value above zero: %v", &missing)
}

// scrape returns the sum over all series of each metric; for histograms, of the counts.
func scrape(t *testing.T, address string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(get(t, address)))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			sums[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sums
}

func (s product) checkSearch(t *testing.T) {
	samples := s.lab.Samples()
	i := slices.IndexFunc(samples, func(p lab.Sample) bool { return p.Verdict == "completed" })
	var out bytes.Buffer
	if _, err := Lookup(t.Context(), LookupOptions{Config: s.config, Words: []string{samples[i].BizID}, Out: &out, Language: flow.English}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "COMPLETED") {
		t.Errorf("a bare id is not found:\n%s", &out)
	}
}

func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answered %s: %.300s", address, response.Status, body)
	}
	return string(body)
}

func getJSON(t *testing.T, address string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(get(t, address)), into); err != nil {
		t.Fatal(err)
	}
}

// answers reports whether a PromQL query gave at least one sample.
func answers(address string) bool {
	response, err := http.Get(address)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var result struct {
		Data struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	return json.NewDecoder(response.Body).Decode(&result) == nil && len(result.Data.Result) > 0
}
