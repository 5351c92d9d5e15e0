package exporter

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// countersBench polls the counters of a real Redis.
type countersBench struct {
	*testkit.RedisDB
	t        *testing.T
	loop     *loop
	registry *prometheus.Registry
	log      bytes.Buffer
}

func newCountersBench(t *testing.T, prefix string, types ...string) *countersBench {
	t.Helper()
	b := &countersBench{RedisDB: testkit.Redis(t), t: t, registry: prometheus.NewPedanticRegistry()}
	store, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{b.Addr}, DB: b.DB})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	logger := slog.New(slog.NewTextHandler(&b.log, nil))
	sums, descs := newSums(), newDescs()
	source := &countersSource{
		shared: shared{labels: newLabels(10, types, sums.labelOverflow), sums: sums, descs: descs, log: logger},
		name:   "main", types: types, reported: map[string]bool{},
		read: func(ctx context.Context) (lockstore.Counters, error) { return store.Counters(ctx, prefix) },
	}
	b.loop = &loop{name: "main", kind: kindCounters, source: source, timeout: time.Second, log: logger}
	b.registry.MustRegister(everything(sums, &snapshots{descs: descs, loops: []*loop{b.loop}})...)
	return b
}

func (b *countersBench) poll() samples {
	b.t.Helper()
	b.loop.poll(b.t.Context())
	return gather(b.t, b.registry)
}

// count writes the fields of one biz_type as a consumer does.
func (b *countersBench) count(prefix, bizType string, fields ...any) {
	b.t.Helper()
	ctx := b.t.Context()
	if err := b.Client.SAdd(ctx, prefix+"idem_stat:types", bizType).Err(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.Client.HSet(ctx, prefix+"idem_stat:{"+bizType+"}", fields...).Err(); err != nil {
		b.t.Fatal(err)
	}
}

const countersUp = `idemscope_source_up{kind="counters",source="main"}`

func TestConsumerCounters(t *testing.T) {
	b := newCountersBench(t, "app:", "pay", "refund")
	b.count("app:", "pay", "attempt", 100, "lock_conflict", 7, "dedup_status", 20, "dedup_record", 3, "completed", 60, "failed", 5,
		"acquired", 68, "retry", 4, "lock_lost", 2, "degraded", 1,
		"ms_le_5", 10, "ms_le_100", 30, "ms_le_300000", 20, "ms_le_inf", 5, "ms_sum", 123456, "unknown_field", "x")
	s := b.poll()
	s.want(t, samples{
		countersUp: 1,
		`idem_lock_conflicts_total{biz_type="pay"}`:               7,
		`idem_dedup_hits_total{biz_type="pay",layer="status"}`:    20,
		`idem_dedup_hits_total{biz_type="pay",layer="record"}`:    3,
		`idem_retries_total{biz_type="pay",source="consumer"}`:    4,
		`idem_attempts_total{biz_type="pay"}`:                     100,
		`idem_runs_total{biz_type="pay",outcome="completed"}`:     60,
		`idem_runs_total{biz_type="pay",outcome="failed"}`:        5,
		`idem_attempts_open{biz_type="pay"}`:                      5,
		`idem_lock_lost_total{biz_type="pay"}`:                    2,
		`idem_degraded_total{biz_type="pay"}`:                     1,
		`idem_run_duration_seconds_count{biz_type="pay"}`:         65,
		`idem_run_duration_seconds_sum{biz_type="pay"}`:           123.456,
		`idemscope_contract_errors{source="main"}`:                0,
		`idem_attempts_total{biz_type="refund"}`:                  0, // configured
		`idem_run_duration_seconds_count{biz_type="refund"}`:      0,
		`idem_retries_total{biz_type="refund",source="consumer"}`: 0,
	})
	lint(t, b.registry)

	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "idem_run_duration_seconds" {
			continue
		}
		h := f.Metric[0].GetHistogram()
		if h.Schema != nil {
			t.Error("fixed buckets are exported as a native histogram")
		}
		for _, bucket := range h.Bucket {
			want := map[float64]uint64{0.005: 10, 0.05: 10, 0.1: 40, 120: 40, 300: 60}
			if n, ok := want[bucket.GetUpperBound()]; ok && bucket.GetCumulativeCount() != n {
				t.Errorf("bucket %v has %d, want %d", bucket.GetUpperBound(), bucket.GetCumulativeCount(), n)
			}
		}
		if len(h.Bucket) != len(lockstore.RunBounds) {
			t.Errorf("%d buckets", len(h.Bucket))
		}
	}
}

func TestAttemptsOpenIsNeverNegative(t *testing.T) {
	b := newCountersBench(t, "")
	b.count("", "once", "completed", 9) // a consumer that writes only once per delivery
	b.poll().want(t, samples{`idem_attempts_open{biz_type="once"}`: 0, `idem_attempts_total{biz_type="once"}`: 0})
}

func TestTypesThatShareALabelAreAddedUp(t *testing.T) {
	b := newCountersBench(t, "")
	b.count("", "a\xff", "attempt", 1, "completed", 1, "ms_le_5", 1, "ms_sum", 3)
	b.count("", `a\xFF`, "attempt", 2, "failed", 2, "ms_le_5", 2, "ms_sum", 4)
	b.poll().want(t, samples{`idem_attempts_total{biz_type="a\\xFF"}`: 3, `idem_run_duration_seconds_count{biz_type="a\\xFF"}`: 3,
		`idem_run_duration_seconds_sum{biz_type="a\\xFF"}`: 0.007})
	for i := range 30 {
		b.count("", strings.Repeat("x", i+1), "attempt", 1)
	}
	s := b.poll()
	// The cap is 10: two spellings of the first label, eight more, and other.
	if n := len(s.only("idem_attempts_total")); n != 10 {
		t.Errorf("%d biz_type labels", n)
	}
	if s[`idem_attempts_total{biz_type="other"}`] == 0 {
		t.Error("nothing is counted as other")
	}
}

func TestContractErrorsAreLoggedOnce(t *testing.T) {
	b := newCountersBench(t, "")
	b.count("", "pay", "attempt", "many", "completed", 3)
	for range 3 {
		b.poll().want(t, samples{`idemscope_contract_errors{source="main"}`: 1, `idem_runs_total{biz_type="pay",outcome="completed"}`: 3, countersUp: 1})
	}
	if got := strings.Count(b.log.String(), "breaks the contract"); got != 1 {
		t.Errorf("%d log lines: %s", got, b.log.String())
	}
	b.count("", "pay", "attempt", 5)
	b.poll().want(t, samples{`idemscope_contract_errors{source="main"}`: 0, `idem_attempts_total{biz_type="pay"}`: 5})
}

func TestCountersAreAbsentWhileRedisIsDown(t *testing.T) {
	b := newCountersBench(t, "", "pay")
	b.poll().want(t, samples{countersUp: 1, `idem_attempts_total{biz_type="pay"}`: 0}) // no consumer has counted yet
	b.loop.source.(*countersSource).read = func(ctx context.Context) (lockstore.Counters, error) {
		gone, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{"127.0.0.1:1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer gone.Close()
		return gone.Counters(ctx, "")
	}
	s := b.poll()
	s.want(t, samples{countersUp: 0})
	s.absent(t, "idem_attempts", "idem_lock_conflicts", "idem_runs", "idem_run_duration", "idem_retries", "idemscope_contract_errors")
}
