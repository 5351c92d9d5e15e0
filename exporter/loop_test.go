package exporter

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// sourceFunc is a source made of a function.
type sourceFunc func(ctx context.Context) (result, error)

func (f sourceFunc) runOnce(ctx context.Context) (result, error) { return f(ctx) }

func testLoop(s source, log *bytes.Buffer) *loop {
	return &loop{name: "orders", kind: kindLedger, source: s, interval: time.Millisecond, timeout: time.Second,
		log: slog.New(slog.NewTextHandler(log, nil))}
}

// series gathers what the loop exports, without the series that tell time.
func series(t *testing.T, l *loop) samples {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&snapshots{descs: newDescs(), loops: []*loop{l}})
	return gather(t, registry).only("idemscope_source_up", "idemscope_watched_records")
}

func TestSourceGoesDownAndRecovers(t *testing.T) {
	var log bytes.Buffer
	var failure error
	descs := newDescs()
	l := testLoop(sourceFunc(func(context.Context) (result, error) {
		if failure != nil {
			return result{}, failure
		}
		return result{metrics: []prometheus.Metric{gauge(descs.watched, 7, "orders")}}, nil
	}), &log)
	const up = `idemscope_source_up{kind="ledger",source="orders"}`
	good, down := samples{up: 1, `idemscope_watched_records{source="orders"}`: 7}, samples{up: 0}

	if got := series(t, l); len(got) != 0 {
		t.Errorf("before the first poll: %v, want nothing", got)
	}
	for _, step := range []struct {
		failure error
		want    samples
	}{{nil, good}, {errors.New("refused"), down}, {errors.New("refused"), down}, {nil, good}} {
		failure = step.failure
		l.poll(t.Context())
		if got := series(t, l); !maps.Equal(got, step.want) {
			t.Errorf("after %v: %v, want %v", step.failure, got, step.want)
		}
	}
	if got := strings.Count(log.String(), "cannot be read"); got != 1 {
		t.Errorf("the failure was logged %d times: %s", got, log.String())
	}
	if got := strings.Count(log.String(), "can be read again"); got != 1 {
		t.Errorf("the recovery was logged %d times: %s", got, log.String())
	}
}

func TestLastPollIsTheLastGoodOne(t *testing.T) {
	var failure error
	l := testLoop(sourceFunc(func(context.Context) (result, error) { return result{}, failure }), &bytes.Buffer{})
	l.poll(t.Context())
	good := l.last().good
	failure = errors.New("refused")
	l.poll(t.Context())
	if st := l.last(); st.good != good || st.up {
		t.Errorf("after a failure the last good poll is %s, want %s", st.good, good)
	}
}

func TestPollEndsAtItsTimeout(t *testing.T) {
	l := testLoop(sourceFunc(func(ctx context.Context) (result, error) {
		<-ctx.Done()
		return result{}, ctx.Err()
	}), &bytes.Buffer{})
	l.timeout = 20 * time.Millisecond
	l.poll(t.Context())
	if st := l.last(); !st.polled() || st.up || st.took < l.timeout {
		t.Errorf("status is %+v", st)
	}
}

func TestEndOfTheProgramIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	l := testLoop(sourceFunc(func(ctx context.Context) (result, error) {
		cancel()
		<-ctx.Done()
		return result{}, ctx.Err()
	}), &log)
	l.run(ctx)
	if st := l.last(); st.polled() || log.Len() > 0 {
		t.Errorf("status is %+v, log %q", st, log.String())
	}
}

func TestLoopHurriesWhileThereIsMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var polls atomic.Int32
	l := testLoop(sourceFunc(func(context.Context) (result, error) {
		if polls.Add(1) == 3 {
			cancel()
		}
		return result{more: true}, nil
	}), &bytes.Buffer{})
	l.interval = 250 * time.Millisecond
	began := time.Now()
	l.run(ctx)
	if took := time.Since(began); took > 2*l.interval {
		t.Errorf("three polls with more to read took %s", took)
	}
}

func TestJitterStaysNear(t *testing.T) {
	for range 1000 {
		if d := jitter(time.Second); d < 950*time.Millisecond || d > 1050*time.Millisecond {
			t.Fatalf("jitter of 1s is %s", d)
		}
	}
	if d := jitter(0); d < 0 {
		t.Errorf("jitter of 0 is %s", d)
	}
}

func TestMetricsAreDescribed(t *testing.T) {
	sums := newSums()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range everything(sums, &snapshots{descs: newDescs()}) {
		if err := registry.Register(c); err != nil {
			t.Error(err)
		}
	}
	sums.startLedger("orders")
	sums.startType("orders", "pay", &route{flow: "payments", lockTTL: time.Second})
	lint(t, registry)
}
