package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/console"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/broker/rabbitmq/tap"
	"idemscope/internal/broker/rabbitmq/trace"
	"idemscope/internal/config"
)

// events are the sources of events of one generation: taps are followed all the
// time, traces when they are armed.
type events struct {
	followers map[string]*tap.Follower
	traces    map[string]*trace.Trace
	// order is that of the configuration.
	order    []string
	registry *prometheus.Registry
	logger   *slog.Logger

	// life ends with the generation, and with it every trace that it armed.
	life context.Context
	end  context.CancelFunc
}

// newEvents sets all up; nothing is connected before run.
func newEvents(c *config.Config, s *stores, logger *slog.Logger) (*events, error) {
	e := &events{followers: map[string]*tap.Follower{}, traces: map[string]*trace.Trace{}, registry: prometheus.NewRegistry(), logger: logger}
	e.life, e.end = context.WithCancel(context.Background())
	for name, t := range s.taps {
		e.followers[name] = t.NewFollower(logger)
		s.tapped[name] = e.followers[name]
	}
	for _, b := range c.Brokers {
		if b.Trace.AMQP == "" {
			continue
		}
		t, manager, err := newTrace(c, b, s, logger)
		if err != nil {
			return nil, err
		}
		s.stops = append(s.stops, manager.Close)
		e.traces[b.Name], s.traced[b.Name] = t, t
		e.order = append(e.order, b.Name)
	}
	e.registry.MustRegister(e)
	return e, nil
}

// run follows the taps until ctx ends, and then ends an armed trace.
func (e *events) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, f := range e.followers {
		all.Go(func() { f.Run(ctx) })
	}
	for name, t := range e.traces {
		all.Go(func() {
			recoverCtx, cancel := context.WithTimeout(ctx, exporterTimeout)
			defer cancel()
			if _, err := t.Recover(recoverCtx); err != nil && ctx.Err() == nil {
				e.logger.Warn("it is not known whether an earlier trace was left on", "broker", name, "reason", link.Words(err).EN)
			}
		})
	}
	all.Wait()
	<-ctx.Done()
	e.end()
	for _, t := range e.traces {
		t.Disarm()
	}
}

// tracing is what the console shows of the traces; nil when no broker has one.
func (e *events) tracing() console.Traces {
	if len(e.traces) == 0 {
		return nil
	}
	return tracing{e}
}

var (
	tapMessages = prometheus.NewDesc("idemscope_tap_messages_total",
		"Messages read from a broker's tap since this process followed it from its beginning, by what came of them: indexed (events of keys), unreadable (no key), too_large (not looked at), elsewhere (of no flow).",
		[]string{"broker", "result"}, nil)
	tapFollowed = prometheus.NewDesc("idemscope_tap_followed_timestamp_seconds",
		"How far a broker's tap is known to be read to its end, by this process's clock. Absent before the first time.", []string{"broker"}, nil)
	traceArmed = prometheus.NewDesc("idemscope_trace_armed",
		"1 while this process has turned the tracing of the broker's vhost on, which costs every message there; else 0.", []string{"broker"}, nil)
)

// Describe is for prometheus.Collector.
func (e *events) Describe(ch chan<- *prometheus.Desc) {
	ch <- tapMessages
	ch <- tapFollowed
	ch <- traceArmed
}

// Collect is for prometheus.Collector.
func (e *events) Collect(ch chan<- prometheus.Metric) {
	for name, f := range e.followers {
		n := f.Tally()
		for result, count := range map[string]int64{"indexed": n.Events, "unreadable": n.Unreadable, "too_large": n.TooLarge, "elsewhere": n.Elsewhere} {
			ch <- prometheus.MustNewConstMetric(tapMessages, prometheus.CounterValue, float64(count), name, result)
		}
		if !n.FollowedAt.IsZero() {
			ch <- prometheus.MustNewConstMetric(tapFollowed, prometheus.GaugeValue, float64(n.FollowedAt.UnixNano())/float64(time.Second), name)
		}
	}
	for name, t := range e.traces {
		armed := 0.0
		if t.Status().Armed {
			armed = 1
		}
		ch <- prometheus.MustNewConstMetric(traceArmed, prometheus.GaugeValue, armed, name)
	}
}
