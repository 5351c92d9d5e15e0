package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/bench/figure"
	"idemscope/internal/lab/servers"
)

const (
	hangTypes   = 200
	scrapeEvery = 50 * time.Millisecond
	scrapeGroup = 100
)

// hang measures /metrics while no store answers.
func hang(ctx context.Context, size sizes) ([]figure.Figure, error) {
	s, err := startStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	r, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Stop() }()
	// Its queue is not there: what is measured is that nobody waits for the answer.
	b, err := servers.StartRabbitMQ(ctx, servers.RabbitMQOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Stop() }()
	types, err := manyTypes(ctx, s, r)
	if err != nil {
		return nil, err
	}
	e, err := startChild(ctx, settings{MySQL: s.Addr, Database: "bench", Redis: r.Addr,
		Management: b.Management, BrokerUser: b.Admin, BrokerPassword: b.Password, Interval: time.Second, Lookback: time.Hour,
		StaleAfter: 5 * time.Minute, BizTypes: types})
	if err != nil {
		return nil, err
	}
	defer e.stop()
	up := func(sources float64) func(samples) bool {
		return func(m samples) bool {
			return m["idemscope_source_up"] == sources && m["idemscope_poll_duration_seconds"] > 0 && m["idem_records_created_total"] >= hangTypes
		}
	}
	if err := e.until(ctx, 10*time.Millisecond, func(m samples) bool { return m["idemscope_tail_caught_up"] == 1 }, nil); err != nil {
		return nil, err
	}
	if _, err := s.root.ExecContext(ctx, "INSERT INTO idempotent_record (biz_type, biz_id, status) SELECT biz_type, 'new', 2 FROM idempotent_record"); err != nil {
		return nil, err
	}
	if err := e.until(ctx, 10*time.Millisecond, up(3), nil); err != nil {
		return nil, err
	}
	for _, pid := range []int{s.Pid, r.Pid, b.Pid} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return nil, err
		}
		defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	}
	if err := e.until(ctx, 10*time.Millisecond, up(0), nil); err != nil {
		return nil, err
	}
	before, err := e.scrape(ctx)
	if err != nil {
		return nil, err
	}
	var times, empty []time.Duration
	pace := time.NewTicker(scrapeEvery)
	defer pace.Stop()
	for range size.scrapes {
		<-pace.C
		_, took, err := e.fetch(ctx, metricsPath)
		if err != nil {
			return nil, err
		}
		_, nothing, err := e.fetch(ctx, emptyPath)
		if err != nil {
			return nil, err
		}
		times, empty = append(times, took), append(empty, nothing)
	}
	after, err := e.scrape(ctx)
	if err != nil {
		return nil, err
	}
	cpu := (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / float64(size.scrapes)
	return []figure.Figure{{Name: "scrape_p99_while_stores_hang", Value: milliseconds(usualP99(times)), Unit: "ms", Goal: figure.AtMost(20),
		Setting: fmt.Sprintf("%d biz_types, MariaDB, Redis and RabbitMQ stopped, %d scrapes, median of the P99 of each %d; median %.1f ms, of which %.1f ms of processor time, "+
			"polls included; an empty answer of the same process in turn with them: median %.1f ms, P99 %.1f ms",
			hangTypes, size.scrapes, scrapeGroup, milliseconds(figure.Quantile(times, 0.5)), 1000*cpu, milliseconds(figure.Quantile(empty, 0.5)), milliseconds(usualP99(empty)))}}, nil
}

// usualP99 is the median of the P99 of each group: the machine may be busy with
// other things for a moment.
func usualP99(times []time.Duration) time.Duration {
	var p99s []time.Duration
	for group := range slices.Chunk(times, scrapeGroup) {
		p99s = append(p99s, figure.Quantile(group, 0.99))
	}
	return figure.Quantile(p99s, 0.5)
}

// manyTypes gives each type a record and counters.
func manyTypes(ctx context.Context, s *store, r *servers.Redis) ([]string, error) {
	client := redis.NewClient(&redis.Options{Addr: r.Addr, DisableIdentity: true})
	defer client.Close()
	var types []string
	for i := range hangTypes {
		name := fmt.Sprintf("biz-type-%03d", i)
		types = append(types, name)
		if _, err := s.root.ExecContext(ctx, "INSERT INTO idempotent_record (biz_type, biz_id, status) VALUES (?, 'a', 1)", name); err != nil {
			return nil, err
		}
		if err := client.SAdd(ctx, "idem_stat:types", name).Err(); err != nil {
			return nil, err
		}
		if err := client.HIncrBy(ctx, "idem_stat:{"+name+"}", "attempt", 1).Err(); err != nil {
			return nil, err
		}
	}
	return types, nil
}
