package exporter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// pageOf serves parts; what it logs goes into log.
func pageOf(log io.Writer, parts ...part) *page {
	return newPage(parts, slog.New(slog.NewTextHandler(log, nil)))
}

// ask scrapes once, as a client that accepts a format.
func ask(h http.Handler, query, accept string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/metrics"+query, nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer
}

func scrape(t *testing.T, h http.Handler) samples {
	t.Helper()
	return parse(t, ask(h, "", "text/plain").Body.Bytes())
}

// counting is a registry with one gauge per name, and how often it was gathered.
type counting struct {
	*prometheus.Registry
	vecs     map[string]*prometheus.GaugeVec
	gathered atomic.Int32
}

func newCounting(names ...string) *counting {
	c := &counting{Registry: prometheus.NewRegistry(), vecs: map[string]*prometheus.GaugeVec{}}
	for _, name := range names {
		c.vecs[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "h"}, []string{"of"})
		c.MustRegister(c.vecs[name])
		c.set(name, names[0], 1)
	}
	return c
}

func (c *counting) set(name, of string, value float64) { c.vecs[name].WithLabelValues(of).Set(value) }

func (c *counting) Gather() ([]*dto.MetricFamily, error) {
	c.gathered.Add(1)
	return c.Registry.Gather()
}

func TestOnlyWhatChangedIsGatheredAgain(t *testing.T) {
	var changes atomic.Uint64
	quiet, lively, always := newCounting("quiet"), newCounting("lively"), newCounting("always")
	p := pageOf(t.Output(), part{quiet, func() uint64 { return 0 }}, part{lively, changes.Load}, part{always, nil})
	want := samples{`quiet{of="quiet"}`: 1, `lively{of="lively"}`: 1, `always{of="always"}`: 1}
	for range 3 {
		scrape(t, p).want(t, want)
	}
	lively.set("lively", "lively", 7)
	always.set("always", "always", 8)
	changes.Add(1)
	for range 2 {
		scrape(t, p).want(t, samples{`quiet{of="quiet"}`: 1, `lively{of="lively"}`: 7, `always{of="always"}`: 8})
	}
	if q, l, a := quiet.gathered.Load(), lively.gathered.Load(), always.gathered.Load(); q != 1 || l != 2 || a != 5 {
		t.Errorf("5 scrapes and one change gather %d, %d and %d times, want 1, 2 and 5", q, l, a)
	}
}

func TestAChangeWhileGatheringIsNotMissed(t *testing.T) {
	var changes atomic.Uint64
	c := newCounting("n")
	during := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := c.Gather()
		if c.gathered.Load() == 1 { // too late for what was just gathered
			c.set("n", "n", 2)
			changes.Add(1)
		}
		return families, err
	})
	p := pageOf(t.Output(), part{during, changes.Load})
	scrape(t, p).want(t, samples{`n{of="n"}`: 1})
	scrape(t, p).want(t, samples{`n{of="n"}`: 2})
}

func TestAFinishedPollShowsInTheNextScrape(t *testing.T) {
	value, failure := 0.0, error(nil)
	descs := newDescs()
	l := testLoop(sourceFunc(func(context.Context) (result, error) {
		if failure != nil {
			return result{}, failure
		}
		return result{metrics: []prometheus.Metric{gauge(descs.watched, value, "orders")}}, nil
	}), &bytes.Buffer{})
	e, err := New(Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	sums := newSums()
	e.parts, e.loops = nil, []*loop{l}
	if err := e.addParts(Options{}, shared{labels: newLabels(10, nil, sums.labelOverflow), sums: sums, descs: descs}); err != nil {
		t.Fatal(err)
	}
	h := e.Handler()
	scrape(t, h).absent(t, "idemscope_watched_records", "idemscope_source_up", "idem_")
	const watched, up = `idemscope_watched_records{source="orders"}`, `idemscope_source_up{kind="ledger",source="orders"}`
	for range 3 {
		value++
		l.poll(t.Context())
		scrape(t, h).want(t, samples{watched: value, up: 1})
	}
	failure = errors.New("refused")
	l.poll(t.Context())
	s := scrape(t, h)
	s.want(t, samples{up: 0})
	s.absent(t, watched)

	sums.startType("orders", "pay", &route{flow: "payments", lockTTL: time.Second})
	scrape(t, h).want(t, totals("pay", 0, 0, 0, 0))
	for _, event := range []func(){
		func() { sums.created.inc("orders", "pay") },
		func() { sums.completed.inc("orders", "pay"); sums.duration.observe(2, "orders", "pay") },
		func() { sums.failed.inc("orders", "pay") },
		func() { sums.retries.inc("pay") },
		func() { sums.longer.inc("payments", "pay") },
		func() { sums.vanished.inc("orders", "pay") },
		func() { sums.rowsRead.WithLabelValues("orders").Inc() },
		func() { sums.burned.WithLabelValues("orders").Inc() },
		func() { sums.watchOverflow.WithLabelValues("orders").Inc() },
		func() { sums.labelOverflow.Inc() },
		func() { sums.lockExpirations.WithLabelValues("payments").Inc() },
	} {
		before := scrape(t, h)
		event()
		if d := grown(before, scrape(t, h)).only("idem_", "idemscope_"); len(d) == 0 {
			t.Errorf("an event does not show; so far there is %v", before.only("idem_", "idemscope_"))
		}
	}
	got, want := scrape(t, h).only("idem_", "idemscope_"), gather(t, e.Gatherer()).only("idem_", "idemscope_")
	if !maps.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// Scrapes, polls and events at once: none sees less than what had ended before it.
func TestScrapesAtOnceNeverSeeThePast(t *testing.T) {
	sums, descs := newSums(), newDescs()
	var polls atomic.Int64
	l := testLoop(sourceFunc(func(context.Context) (result, error) {
		return result{metrics: []prometheus.Metric{gauge(descs.watched, float64(polls.Load()+1), "orders")}}, nil
	}), &bytes.Buffer{})
	e := &Exporter{loops: []*loop{l}, compress: func(h http.Handler) http.HandlerFunc { return h.ServeHTTP }, log: slog.New(slog.DiscardHandler)}
	if err := e.addParts(Options{}, shared{labels: newLabels(10, nil, sums.labelOverflow), sums: sums, descs: descs}); err != nil {
		t.Fatal(err)
	}
	h := e.Handler()
	var events atomic.Int64
	stop := make(chan struct{})
	var busy, scrapers sync.WaitGroup
	for _, step := range []func(){
		func() { l.poll(t.Context()); polls.Add(1) },
		func() { sums.created.inc("orders", "pay"); events.Add(1) },
	} {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					step()
				}
			}
		})
	}
	for range 3 {
		scrapers.Go(func() {
			for range 100 {
				least, leastPoll := events.Load(), polls.Load()
				body := ask(h, "?name[]=idem_records_created_total&name[]=idemscope_watched_records", "text/plain").Body
				s := parse(t, body.Bytes())
				if got := s[`idem_records_created_total{biz_type="pay",ledger="orders"}`]; got < float64(least) {
					t.Errorf("%v events, of %d that had happened", got, least)
				}
				if got := s[`idemscope_watched_records{source="orders"}`]; got < float64(leastPoll) {
					t.Errorf("poll %v, while %d had ended", got, leastPoll)
				}
			}
		})
	}
	scrapers.Wait()
	close(stop)
	busy.Wait()
}

func TestAMetricOfSeveralPartsIsOneFamily(t *testing.T) {
	var changes atomic.Uint64
	a, b := newCounting("a", "shared"), newCounting("b", "shared")
	p := pageOf(t.Output(), part{a, func() uint64 { return 0 }}, part{b, changes.Load})
	want := samples{`a{of="a"}`: 1, `b{of="b"}`: 1, `shared{of="a"}`: 1, `shared{of="b"}`: 1}
	scrape(t, p).want(t, want)
	b.set("shared", "b", 3)
	changes.Add(1)
	text := ask(p, "", "").Body.String()
	want[`shared{of="b"}`] = 3
	parse(t, []byte(text)).want(t, want)
	if n := strings.Count(text, "# TYPE shared gauge"); n != 1 {
		t.Errorf("the type stands there %d times:\n%s", n, text)
	}
}

func TestPartsThatContradictAreServedAsFarAsTheyAgree(t *testing.T) {
	var log bytes.Buffer
	a, b := newCounting("a", "shared"), newCounting("b", "shared")
	b.set("shared", "a", 5) // a series of part a
	p := pageOf(&log, part{a, nil}, part{b, nil})
	answer := ask(p, "", "")
	parse(t, answer.Body.Bytes()).want(t, samples{`a{of="a"}`: 1, `b{of="b"}`: 1, `shared{of="a"}`: 1, `shared{of="b"}`: 1})
	if answer.Code != http.StatusOK || !strings.Contains(log.String(), "incomplete") || !strings.Contains(log.String(), "shared") {
		t.Errorf("status %d, log %s", answer.Code, &log)
	}
}

func TestAPartThatFailsLeavesTheOthers(t *testing.T) {
	var log bytes.Buffer
	broken := part{prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("out of order") }), func() uint64 { return 0 }}
	p := pageOf(&log, broken, part{newCounting("a"), nil})
	for range 2 {
		answer := ask(p, "", "")
		if answer.Code != http.StatusOK {
			t.Errorf("status %d", answer.Code)
		}
		parse(t, answer.Body.Bytes()).want(t, samples{`a{of="a"}`: 1})
	}
	if n := strings.Count(log.String(), "out of order"); n != 2 {
		t.Errorf("the log tells of it %d times: %s", n, &log)
	}
	if answer := ask(pageOf(&log, broken), "", ""); answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), "out of order") {
		t.Errorf("without anything to say: status %d, %s", answer.Code, answer.Body)
	}
}

func TestFormatsAreNegotiated(t *testing.T) {
	e, err := New(Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	sums := newSums()
	sums.startType("orders", "pay", nil)
	sums.duration.observe(3, "orders", "pay")
	registry := prometheus.NewRegistry()
	registry.MustRegister(sums.duration)
	h := e.Handler(registry)
	const protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	for _, c := range []struct{ accept, want string }{
		{"", "text/plain; version=0.0.4"},
		{"text/plain", "text/plain; version=0.0.4"},
		{"application/openmetrics-text; version=1.0.0", "text/plain; version=0.0.4"},
		{protobuf, "application/vnd.google.protobuf"},
		{protobuf + ";escaping=allow-utf-8", "escaping=allow-utf-8"},
		{"text/plain;version=0.0.4;escaping=underscores", "escaping=underscores"},
		{protobuf, "application/vnd.google.protobuf"}, // from what was kept
	} {
		answer := ask(h, "", c.accept)
		if got := answer.Header().Get("Content-Type"); !strings.Contains(got, c.want) {
			t.Errorf("accepting %q: served as %q", c.accept, got)
		}
		if got := answer.Header().Values("Vary"); !slices.Contains(got, "Accept") {
			t.Errorf("varies by %q", got)
		}
		histogram := decode(t, answer)["idem_record_duration_seconds"].GetMetric()[0].GetHistogram()
		if histogram.GetSampleCount() != 1 || len(histogram.GetBucket()) < 20 {
			t.Errorf("accepting %q: %v", c.accept, histogram)
		}
		if native := len(histogram.GetPositiveSpan()) > 0; native != strings.Contains(c.want+c.accept, "protobuf") {
			t.Errorf("accepting %q: native buckets: %v", c.accept, native)
		}
	}
}

// decode reads an answer in whatever format it has.
func decode(t *testing.T, answer *httptest.ResponseRecorder) map[string]*dto.MetricFamily {
	t.Helper()
	decoder := expfmt.NewDecoder(answer.Body, expfmt.ResponseFormat(answer.Header()))
	families := map[string]*dto.MetricFamily{}
	for {
		f := &dto.MetricFamily{}
		err := decoder.Decode(f)
		if errors.Is(err, io.EOF) {
			return families
		}
		if err != nil {
			t.Fatal(err)
		}
		if families[f.GetName()] != nil {
			t.Fatalf("%s stands there twice", f.GetName())
		}
		families[f.GetName()] = f
	}
}

func TestMetricsCanBeAskedForByName(t *testing.T) {
	p := pageOf(t.Output(), part{newCounting("a", "b", "c"), nil})
	if got, want := parse(t, ask(p, "?name[]=a&name[]=c&name[]=nowhere", "").Body.Bytes()), (samples{`a{of="a"}`: 1, `c{of="a"}`: 1}); !maps.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// slowWriter takes nothing before it is let go.
type slowWriter struct {
	*httptest.ResponseRecorder
	begun chan<- struct{}
	goOn  <-chan struct{}
}

func (w slowWriter) Write(p []byte) (int, error) {
	w.begun <- struct{}{}
	<-w.goOn
	return w.ResponseRecorder.Write(p)
}

func TestTooManyScrapesAtOnceAreTurnedAway(t *testing.T) {
	p := pageOf(t.Output(), part{newCounting("a"), nil})
	begun, goOn := make(chan struct{}, maxScrapes), make(chan struct{})
	var slow sync.WaitGroup
	for range maxScrapes {
		slow.Go(func() {
			p.ServeHTTP(slowWriter{httptest.NewRecorder(), begun, goOn}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		})
	}
	for range maxScrapes {
		<-begun
	}
	if answer := ask(p, "", ""); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", answer.Code)
	}
	close(goOn)
	slow.Wait()
	if answer := ask(p, "", ""); answer.Code != http.StatusOK {
		t.Errorf("afterwards: status %d", answer.Code)
	}
}
