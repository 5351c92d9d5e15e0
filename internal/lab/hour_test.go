package lab

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"idemscope/exporter"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// An hour of a flow that sends three messages a second, compressed: its consumers against /metrics.
//
// MariaDB and Redis are real; the queue is in memory, because no counter here depends on the broker. What consumers
// count in Redis must equal what they met at every moment, whichever exporter reads it. What an exporter counts in the
// ledgers must equal what happened to the records while it ran; a restart explains what happened between the last
// reading of the old one and the first of the new one, and nothing else.
const (
	hourMessages = 10_800
	lateWriters  = 3
	pollInterval = 100 * time.Millisecond
)

// hourWorkers is how many consumers each flow has.
var hourWorkers = map[string]int{"payments": 24, "points": 24, "signs": 8}

// hour is the traffic, the truth about it, and the exporter that follows it.
type hour struct {
	t       *testing.T
	db      *sqlx.DB
	redis   *testkit.RedisDB
	log     *slog.Logger
	truth   *witness
	routes  []route
	queues  map[string]*hourQueue
	sender  *sender
	deleted atomic.Int64
	late    atomic.Int64

	open     exporter.Options
	exporter atomic.Pointer[follower]
	// before are the counts of exporters that have ended, blind what happened while none was reading.
	before, blind figures
}

// follower is one exporter from its start to its end.
type follower struct {
	metrics http.Handler
	end     func()
}

func TestAnHourOfTrafficIsCountedExactly(t *testing.T) {
	h := newHour(t)
	h.start()
	h.pass(0, 20*time.Minute, hourMessages/3, func() {})
	h.check("one exporter")

	h.restart() // while nothing happens
	h.check("a restart in silence")

	h.pass(20*time.Minute, time.Hour, hourMessages*2/3, h.restart)
	h.check("a restart in traffic")
	h.exporter.Load().end()

	h.wantVariety()
}

func newHour(t *testing.T) *hour {
	db, store := testkit.MySQL(t), testkit.Redis(t)
	if err := createTables(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	matched, err := openDB(db.Addr, db.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = matched.Close() })
	matched.SetMaxOpenConns(24)
	h := &hour{t: t, db: matched, redis: store, log: slog.New(slog.NewTextHandler(t.Output(), nil)), truth: newWitness(),
		queues: map[string]*hourQueue{}, before: figures{}, blind: figures{}}
	sending := map[string]queue{}
	var flows []flow.Flow
	used := map[string]bool{}
	for _, r := range routes(false) {
		if hourWorkers[r.Name] == 0 {
			continue
		}
		h.routes, flows, used[r.Ledger] = append(h.routes, r), append(flows, r.Flow), true
		h.queues[r.Name] = &hourQueue{ready: make(chan delivery, 100), failsAlone: r.Name == "payments", failing: map[string]bool{}}
		sending[r.Name] = h.queues[r.Name]
	}
	now := time.Now()
	h.sender = newSender(sending, firstID(now), now)
	h.open = exporter.Options{Flows: flows, Ledgers: openLedgers(t, db, used), CountersSource: redisName, Interval: pollInterval, Logger: h.log}
	counters, err := lockstore.New(lockstore.Options{Name: redisName, Addresses: []string{store.Addr}, DB: store.DB})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = counters.Close() })
	h.open.Counters = func(ctx context.Context) (lockstore.Counters, error) { return counters.Counters(ctx, "") }
	return h
}

// openLedgers opens those that the flows use, as the configuration of the lab says.
func openLedgers(t *testing.T, db *testkit.Database, used map[string]bool) map[string]*ledger.Ledger {
	t.Helper()
	server, err := ledger.NewServer(ledger.ServerOptions{Name: mysqlName, Address: db.Addr, Database: db.Name, User: db.User, Password: db.Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	opened := map[string]*ledger.Ledger{}
	for _, text := range ledgers() {
		if !used[text.Name] {
			continue
		}
		spec := ledger.MappingSpec{BizType: text.BizType, BizID: text.BizID}
		if text.Columns != "" {
			spec.Columns = map[string]string{"id": "id", "created": "created_at"}
		}
		mapping, err := ledger.NewMapping(text.Preset, spec)
		if err != nil {
			t.Fatal(err)
		}
		if opened[text.Name], err = ledger.New(ledger.Options{Name: text.Name, Server: server, Table: text.Table, Mapping: mapping}); err != nil {
			t.Fatal(err)
		}
	}
	return opened
}

// start starts an exporter and returns when it has read everything once.
func (h *hour) start() {
	h.t.Helper()
	e, err := exporter.New(h.open)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = e.Run(ctx) }()
	end := sync.OnceFunc(func() { cancel(); <-ended })
	h.t.Cleanup(end)
	h.exporter.Store(&follower{e.Handler(), end})
	testkit.Eventually(h.t, time.Minute, func() bool {
		m := flatten(h.scrape())
		up, caughtUp := 0.0, 0.0
		for series, n := range m {
			switch name, _, _ := strings.Cut(series, "{"); name {
			case "idemscope_source_up":
				up += n
			case "idemscope_tail_caught_up":
				caughtUp += n
			}
		}
		ledgers := float64(len(h.open.Ledgers))
		return caughtUp == ledgers && up == ledgers+1 // and the counters
	}, "the exporter reads")
}

// restart ends the exporter and starts a new one.
func (h *hour) restart() {
	h.t.Helper()
	truth := h.truth.copy()
	counted := recorded(truth)
	least := difference(counted, unseen(truth))
	testkit.Eventually(h.t, time.Minute, func() bool { return least.isIn(sum(h.before, h.countedNow())) }, "the old exporter has counted all so far")
	h.exporter.Load().end()
	h.before = sum(h.before, h.countedNow())
	h.start()
	h.seen(h.t.Context()) // what was committed before has been noted by now
	h.blind = sum(h.blind, difference(recorded(h.truth.copy()), counted))
}

// scrape reads /metrics.
func (h *hour) scrape() map[string]*dto.MetricFamily {
	h.t.Helper()
	answer := httptest.NewRecorder()
	h.exporter.Load().metrics.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		h.t.Errorf("exposition is not valid: %v", err)
	}
	return families
}

// lastReading is when the ledger that was read least lately was read, in Unix seconds.
func (h *hour) lastReading() float64 {
	last := 0.0
	for _, m := range h.scrape()["idemscope_last_poll_timestamp_seconds"].GetMetric() {
		if at := m.GetGauge().GetValue(); last == 0 || at < last {
			last = at
		}
	}
	return last
}

// check waits until /metrics tells the truth, and looks once more some polls later: nothing may be counted twice.
func (h *hour) check(when string) {
	h.t.Helper()
	truth := h.truth.copy()
	var faults []string
	deadline := time.Now().Add(30 * time.Second)
	for faults = h.compare(truth); len(faults) > 0 && time.Now().Before(deadline); faults = h.compare(truth) {
		h.seen(h.t.Context())
	}
	h.seen(h.t.Context())
	if faults = h.compare(truth); len(faults) > 0 {
		h.t.Errorf("%s:\n%s", when, strings.Join(faults, "\n"))
	}
	want, got := recorded(truth), sum(h.before, h.countedNow())
	missing := difference(want, got)
	for event := range missing {
		if _, compared := want[event]; !compared {
			delete(missing, event)
		}
	}
	h.t.Logf("%s: of %v events in the ledgers %v are not counted; %v happened around restarts, %v were retries that failed again at once",
		when, want.total(), missing.total(), h.blind.total(), unseen(truth).total()/2)
}

// compare lists what /metrics and the truth tell differently.
func (h *hour) compare(truth Truth) (faults []string) {
	got := flatten(h.scrape())
	for series, want := range consumed(truth) {
		if value, there := got[series]; !there || value != want {
			faults = append(faults, fmt.Sprintf("%s is %v (there: %v), want %v", series, value, there, want))
		}
	}
	counted, missing := sum(h.before, h.countedNow()), sum(h.blind, unseen(truth))
	for event, want := range recorded(truth) {
		if n := counted[event]; n > want || n < want-missing[event] {
			faults = append(faults, fmt.Sprintf("%s is %v, want %v less at most %v", event, n, want, missing[event]))
		}
	}
	faults = append(faults, h.compareRecords(truth, got, counted)...)
	slices.Sort(faults)
	return faults
}
