package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"idemscope/exporter"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

const (
	metricsPath = "/metrics"
	// emptyPath answers nothing: what that takes is the machine's doing.
	emptyPath = "/empty"
)

// settings are those of the exporter that is measured.
type settings struct {
	MySQL, Database string
	// Redis holds the counters of consumers; empty for none.
	Redis string
	// Management is the broker's URL with its user and password; empty for none.
	Management, BrokerUser, BrokerPassword string

	Interval, StaleAfter time.Duration
	Lookback             time.Duration
	BizTypes             []string
	// Yield lets everybody else go first to the processors, as if the exporter
	// ran on a machine of its own.
	Yield bool
}

// child is a running exporter in a process of its own.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
	web   *http.Client
}

// startChild runs this program as the exporter. It ends when its standard input
// does, so that it cannot be left behind.
func startChild(ctx context.Context, s settings) (*child, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := []string{program, "-follow", string(text)}
	if s.Yield {
		command = append([]string{"nice", "-n", "19"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the exporter says no address: %w", err)
	}
	return &child{cmd: cmd, stdin: stdin, url: "http://" + strings.TrimSpace(line), web: &http.Client{Timeout: 10 * time.Second}}, nil
}

func (c *child) stop() {
	c.resume()
	_ = c.stdin.Close()
	_ = c.cmd.Wait()
}

// pause holds the process where it is, resume lets it go on.
func (c *child) pause()  { _ = c.cmd.Process.Signal(syscall.SIGSTOP) }
func (c *child) resume() { _ = c.cmd.Process.Signal(syscall.SIGCONT) }

// samples maps the name of each metric to the sum over its series; a histogram
// counts its observations.
type samples map[string]float64

// fetch reads a path and tells how long that took.
func (c *child) fetch(ctx context.Context, path string) ([]byte, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	response, err := c.web.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return body, time.Since(began), err
}

// scrape reads what /metrics tells.
func (c *child) scrape(ctx context.Context) (samples, error) {
	body, _, err := c.fetch(ctx, metricsPath)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	found := samples{}
	for name, f := range families {
		for _, m := range f.Metric {
			found[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found, nil
}

// until scrapes until the samples are as wanted, and calls each with all of them.
func (c *child) until(ctx context.Context, every time.Duration, wanted func(samples) bool, each func(samples)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s, err := c.scrape(ctx)
		if err != nil {
			return err
		}
		if each != nil {
			each(s)
		}
		if wanted(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// polls waits for that many polls of the ledger and returns how many there were.
func (c *child) polls(ctx context.Context, n int, each func(samples)) (int, error) {
	count, last := -1, 0.0
	err := c.until(ctx, 3*time.Millisecond, func(s samples) bool {
		if now := s["idemscope_last_poll_timestamp_seconds"]; now != last {
			count, last = count+1, now
		}
		return count >= n
	}, each)
	return count, err
}

// runChild is the exporter's process.
func runChild(ctx context.Context, text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	e, stop, err := newExporter(s)
	if err != nil {
		return err
	}
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	paths := http.NewServeMux()
	paths.Handle(metricsPath, e.Handler())
	paths.HandleFunc(emptyPath, func(http.ResponseWriter, *http.Request) {})
	web := &http.Server{Handler: paths, ReadHeaderTimeout: time.Second}
	go func() { _ = web.Serve(listener) }()
	defer web.Close()
	fmt.Println(listener.Addr())
	return e.Run(ctx)
}

// newExporter sets up an exporter of one ledger, as the configuration would.
func newExporter(s settings) (*exporter.Exporter, func(), error) {
	server, err := ledger.NewServer(ledger.ServerOptions{Name: "main", Address: s.MySQL, Database: s.Database, User: exporterUser})
	if err != nil {
		return nil, nil, err
	}
	mapping, err := ledger.NewMapping("idempotent_record", ledger.MappingSpec{})
	if err != nil {
		return nil, nil, err
	}
	orders, err := ledger.New(ledger.Options{Name: "orders", Server: server, Table: table, Mapping: mapping})
	if err != nil {
		return nil, nil, err
	}
	o := exporter.Options{
		Flows: []flow.Flow{{Name: "payments", BizTypes: s.BizTypes, Ledger: "orders", StaleAfter: s.StaleAfter,
			Lock: &flow.RedisKey{Redis: "main", TTL: 15 * time.Second}}},
		Ledgers:  map[string]*ledger.Ledger{"orders": orders},
		Interval: s.Interval, Lookback: s.Lookback,
	}
	stop := func() { _ = server.Close() }
	if s.Redis != "" {
		redis, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{s.Redis}})
		if err != nil {
			return nil, nil, err
		}
		o.CountersSource = "main"
		o.Counters = func(ctx context.Context) (lockstore.Counters, error) { return redis.Counters(ctx, "") }
		stop = func() { _, _ = redis.Close(), server.Close() }
	}
	if s.Management != "" {
		rabbit, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: s.Management, User: s.BrokerUser, Password: s.BrokerPassword})
		if err != nil {
			return nil, nil, err
		}
		o.Brokers = map[string]exporter.Broker{"rabbit": rabbit}
		o.Flows[0].Queue = &flow.Queue{Broker: "rabbit", Name: "order.paid"}
		others := stop
		stop = func() { _ = rabbit.Close(); others() }
	}
	e, err := exporter.New(o)
	return e, stop, err
}
