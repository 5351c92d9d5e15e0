package exporter

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// Broker tells the totals of named queues. *rabbitmq.Broker implements it.
type Broker interface {
	Queues(ctx context.Context, queues []broker.NamedQueue) []broker.Queue
}

// queuesSource reads the totals of the queues that flows name on one broker.
type queuesSource struct {
	shared
	name   string
	broker Broker
	queues []broker.NamedQueue
	// missing are the queues that the broker does not know, as already logged.
	missing map[string]bool
}

// namedQueues lists the queues of one broker, each once. A queue that flows use
// in several roles is exported in the one that stands first: work, retry, dead
// letter.
func namedQueues(brokerName string, flows []flow.Flow) []broker.NamedQueue {
	var queues []broker.NamedQueue
	add := func(role broker.Role, names ...string) {
		for _, name := range names {
			known := func(q broker.NamedQueue) bool { return q.Name == name }
			if name != "" && !slices.ContainsFunc(queues, known) {
				queues = append(queues, broker.NamedQueue{Name: name, Role: role})
			}
		}
	}
	for _, role := range []broker.Role{broker.RoleWork, broker.RoleRetry, broker.RoleDeadLetter} {
		for _, f := range flows {
			if f.Queue == nil || f.Queue.Broker != brokerName {
				continue
			}
			switch role {
			case broker.RoleWork:
				add(role, f.Queue.Name)
			case broker.RoleRetry:
				add(role, f.Queue.Retry...)
			case broker.RoleDeadLetter:
				add(role, f.Queue.DeadLetter)
			}
		}
	}
	return queues
}

// runOnce is an error when a queue could not be read. The queues that answered
// are exported all the same; a queue that does not exist, or whose totals the
// broker does not know yet, has no series.
func (s *queuesSource) runOnce(ctx context.Context) (result, error) {
	var r result
	var failures []error
	for _, q := range s.broker.Queues(ctx, s.queues) {
		label := validLabel(q.Name)
		switch q.State {
		case flow.Found:
			r.metrics = append(r.metrics, s.metrics(q, label)...)
		case flow.Error:
			failures = append(failures, fmt.Errorf("queue %q: %s", label, q.Reason.EN))
		}
		s.report(q, label)
	}
	return r, firstOf(failures)
}

func (s *queuesSource) metrics(q broker.Queue, label string) []prometheus.Metric {
	messages := func(n int64, state string) prometheus.Metric {
		return gauge(s.descs.queueMessages, float64(n), s.name, label, state)
	}
	metrics := []prometheus.Metric{gauge(s.descs.queueConsumers, float64(q.Consumers), s.name, label)}
	switch q.Role {
	case broker.RoleRetry:
		metrics = append(metrics, messages(q.Messages(), "delayed"))
	case broker.RoleDeadLetter:
		metrics = append(metrics, messages(q.Messages(), "dead"))
	default:
		metrics = append(metrics, messages(q.Ready, "ready"), messages(q.Unacked, "unacked"), messages(q.Other, "delayed"))
	}
	if q.RedeliveredKnown {
		metrics = append(metrics, counter(s.descs.queueRedeliveries, float64(q.Redelivered), s.name, label))
	}
	return metrics
}

// report logs a queue that does not exist once, until it exists again.
func (s *queuesSource) report(q broker.Queue, label string) {
	switch {
	case q.State == flow.Found:
		delete(s.missing, q.Name)
	case q.State == flow.Absent && !s.missing[q.Name]:
		s.missing[q.Name] = true
		s.log.Warn("the broker does not know this queue", "broker", s.name, "queue", label)
	}
}
