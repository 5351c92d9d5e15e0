package exporter

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

func TestNamedQueuesAreListedOnce(t *testing.T) {
	flows := []flow.Flow{
		{Queue: &flow.Queue{Broker: "a", Name: "one", Retry: []string{"one.retry", "two"}, DeadLetter: "dead"}},
		{Queue: &flow.Queue{Broker: "b", Name: "elsewhere"}},
		{},
		{Queue: &flow.Queue{Broker: "a", Name: "two", DeadLetter: "dead"}},
	}
	want := []broker.NamedQueue{
		{Name: "one", Role: broker.RoleWork}, {Name: "two", Role: broker.RoleWork},
		{Name: "one.retry", Role: broker.RoleRetry}, {Name: "dead", Role: broker.RoleDeadLetter},
	}
	if got := namedQueues("a", flows); !slices.Equal(got, want) {
		t.Errorf("queues of a: %v, want %v", got, want)
	}
	if got := namedQueues("c", flows); got != nil {
		t.Errorf("queues of c: %v", got)
	}
}

// answers is a broker that gives fixed answers: the states below cannot be held on a real one.
type answers []broker.Queue

func (a answers) Queues(context.Context, []broker.NamedQueue) []broker.Queue { return a }

func TestQueuesThatCannotBeRead(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	queue := func(name string, state flow.State) broker.Queue {
		return broker.Queue{Name: name, Role: broker.RoleWork, Observation: flow.Observation{State: state, Reason: flow.T("not allowed", "不允许")}, Ready: 5, RedeliveredKnown: true, Redelivered: 7}
	}
	descs := newDescs()
	source := &queuesSource{shared: shared{descs: descs, log: logger}, name: "rabbit", missing: map[string]bool{}}
	l := &loop{name: "rabbit", kind: kindBroker, source: source, timeout: time.Second, log: logger}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&snapshots{descs: descs, loops: []*loop{l}})
	for _, step := range []struct {
		answers answers
		up      float64
	}{
		{answers{queue("a", flow.Found), queue("b", flow.Absent), queue("c", flow.Unknown)}, 1},
		{answers{queue("a", flow.Found), queue("b", flow.Absent), queue("c", flow.Error)}, 0},
	} {
		source.broker = step.answers
		l.poll(t.Context())
		s := gather(t, registry)
		s.want(t, samples{brokerUp: step.up, `idem_queue_messages{broker="rabbit",queue="a",state="ready"}`: 5,
			`idem_queue_redeliveries_total{broker="rabbit",queue="a"}`: 7})
		if n := len(s.only("idem_queue_consumers")); n != 1 {
			t.Errorf("%d queues are exported, want the one that was read", n)
		}
	}
	if got := strings.Count(log.String(), "does not know"); got != 1 {
		t.Errorf("a missing queue is logged %d times: %s", got, log.String())
	}
	if !strings.Contains(log.String(), "not allowed") {
		t.Errorf("the reason is not logged: %s", log.String())
	}
}
