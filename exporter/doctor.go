package exporter

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/doctor"
)

const (
	// doctorEvery is the pause between two examinations: a set-up changes seldom.
	doctorEvery = 10 * time.Minute
	// doctorTimeout bounds one of them.
	doctorTimeout = 10 * time.Second
)

// examined exports what the doctor found the last time.
type examined struct {
	examine                   func(context.Context) doctor.Report
	problems, unsure, lastRun *prometheus.Desc

	mu     sync.Mutex
	report doctor.Report // zero before the first one
}

// addDoctor adds the loop that examines the set-up.
func (e *Exporter) addDoctor(o Options) {
	if o.Doctor == nil {
		return
	}
	e.examined = &examined{
		examine: o.Doctor,
		problems: prometheus.NewDesc("idemscope_doctor_problems",
			"Problems of the set-up that the doctor found, by check. Absent for a check that found none and that a store did not tell everything for: see idemscope_doctor_unknown.",
			[]string{"check", "severity"}, nil),
		unsure: prometheus.NewDesc("idemscope_doctor_unknown",
			"Tables, servers, queues and flows for which the check could not be made, because a store did not answer or refused to tell.",
			[]string{"check", "severity"}, nil),
		lastRun: prometheus.NewDesc("idemscope_doctor_last_run_timestamp_seconds",
			"Unix time at which the last examination of the set-up began; one is made every 10 minutes.", nil, nil),
	}
	e.background = append(e.background, e.examined.run)
}

// run examines until ctx ends.
func (x *examined) run(ctx context.Context) {
	for {
		x.once(ctx)
		timer := time.NewTimer(jitter(doctorEvery))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (x *examined) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	report := x.examine(limited)
	if ctx.Err() != nil {
		return // the program ends: that says nothing about the set-up
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.report = report
}

// Describe implements prometheus.Collector.
func (x *examined) Describe(ch chan<- *prometheus.Desc) {
	ch <- x.problems
	ch <- x.unsure
	ch <- x.lastRun
}

// Collect implements prometheus.Collector. It answers from memory.
func (x *examined) Collect(ch chan<- prometheus.Metric) {
	x.mu.Lock()
	report := x.report
	x.mu.Unlock()
	if report.At.IsZero() {
		return
	}
	problems, unsure := map[string]int{}, map[string]int{}
	for _, p := range report.Problems {
		problems[p.Code]++
	}
	for _, u := range report.Unsure {
		unsure[u.Code]++
	}
	for _, c := range doctor.Checks() {
		if problems[c.Code] > 0 || unsure[c.Code] == 0 {
			ch <- gauge(x.problems, float64(problems[c.Code]), c.Code, string(c.Severity))
		}
		ch <- gauge(x.unsure, float64(unsure[c.Code]), c.Code, string(c.Severity))
	}
	ch <- gauge(x.lastRun, float64(report.At.UnixMilli())/1000)
}
