package exporter

import (
	"context"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// stage is a whole exporter on three real stores, each behind a proxy.
type stage struct {
	*bench
	redis                     *testkit.RedisDB
	mysqlWay, redisWay, mqWay *testkit.Proxy
	exporter                  *Exporter
	log                       *syncBuffer
}

const workQueue, retryQueue, deadQueue = "order.paid", "order.paid.retry", "order/paid 死信"

func newStage(t *testing.T) *stage {
	t.Helper()
	db, store, vhost := testkit.MySQL(t), testkit.Redis(t), testkit.RabbitMQ(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	declareQueues(t, vhost)
	s := &stage{bench: &bench{Database: db, t: t}, redis: store, log: &syncBuffer{},
		mysqlWay: testkit.NewProxy(t, db.Addr), redisWay: testkit.NewProxy(t, store.Addr),
		mqWay: testkit.NewProxy(t, strings.TrimPrefix(vhost.Management, "http://"))}

	redis, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{s.redisWay.Addr}, DB: store.DB})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	mq, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: "http://" + s.mqWay.Addr, Vhost: vhost.Name,
		User: vhost.Monitor, Password: vhost.MonitorPassword})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mq.Close() })
	f := payments()
	f.Queue = &flow.Queue{Broker: "rabbit", Name: workQueue, Retry: []string{retryQueue}, DeadLetter: deadQueue}
	s.exporter, err = New(Options{
		Flows:   []flow.Flow{f},
		Ledgers: map[string]*ledger.Ledger{"orders": openLedger(t, db, benchOptions{address: s.mysqlWay.Addr, table: "idempotent_record", preset: "idempotent_record"})},
		Brokers: map[string]Broker{"rabbit": mq},
		Counters: func(ctx context.Context) (lockstore.Counters, error) {
			return redis.Counters(ctx, "")
		},
		CountersSource: "main", Interval: 50 * time.Millisecond, Version: "1.2.3", Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// declareQueues leaves three messages to work, two in retry and one dead.
func declareQueues(t *testing.T, vhost *testkit.Vhost) {
	t.Helper()
	conn, err := amqp.Dial(vhost.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for queue, messages := range map[string]int{workQueue: 3, retryQueue: 2, deadQueue: 1} {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		for range messages {
			if err := ch.PublishWithContext(t.Context(), "", queue, false, false, amqp.Publishing{Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// run polls until the test ends, and fails when that end takes long.
func (s *stage) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.exporter.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				s.t.Errorf("run: %v", err)
			}
		case <-time.After(5 * time.Second):
			s.t.Error("run does not end")
		}
	})
	s.reaches(samples{isUp: 1, countersUp: 1, brokerUp: 1})
}

// reaches waits until a scrape shows the samples.
func (s *stage) reaches(want samples) {
	s.t.Helper()
	var last samples
	got := func() bool { last = gather(s.t, s.exporter.Gatherer()); return last.has(want) }
	deadline := 10 * time.Second
	defer func() {
		if s.t.Failed() {
			last.want(s.t, want)
			s.t.Logf("log: %s", s.log)
		}
	}()
	testkit.Eventually(s.t, deadline, got, "metrics do not get there")
}

const (
	brokerUp = `idemscope_source_up{kind="broker",source="rabbit"}`
	ready    = `idem_queue_messages{broker="rabbit",queue="order.paid",state="ready"}`
)

func TestAllSourcesTogether(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run()
	s.insert("pay", processing, "a")
	s.redis.Client.SAdd(t.Context(), "idem_stat:types", "pay")
	s.redis.Client.HIncrBy(t.Context(), "idem_stat:{pay}", "lock_conflict", 4)
	s.reaches(samples{
		inProgress: 1, `idem_lock_conflicts_total{biz_type="pay"}`: 4,
		ready: 3, `idem_queue_messages{broker="rabbit",queue="order.paid",state="unacked"}`: 0,
		`idem_queue_messages{broker="rabbit",queue="order.paid.retry",state="delayed"}`: 2,
		`idem_queue_messages{broker="rabbit",queue="order/paid 死信",state="dead"}`:       1,
		`idem_queue_consumers{broker="rabbit",queue="order.paid"}`:                      0,
		`idem_lock_ttl_seconds{flow="payments"}`:                                        15,
	})
	lint(t, s.exporter.Gatherer())

	web := httptest.NewServer(s.exporter.Handler())
	defer web.Close()
	body, header, err := fetch(t, web.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("content type is %q", got)
	}
	got := parse(t, body)
	if names, inMemory := seriesNames(got), seriesNames(gather(t, s.exporter.Gatherer())); !slices.Equal(names, inMemory) {
		t.Errorf("over HTTP %v, in memory %v", names, inMemory)
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total", "idemscope_build_info", "idemscope_poll_duration_seconds",
		"idemscope_last_poll_timestamp_seconds"} {
		if len(got.only(name)) == 0 {
			t.Errorf("%s is absent", name)
		}
	}
	if s.log.String() != "" {
		t.Errorf("log: %s", s.log)
	}
}

func TestHangingStoreDelaysNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run()
	s.insert("pay", processing, "a")
	s.insert("pay", completed, "b")
	s.reaches(samples{inProgress: 1, ready: 3, `idem_records_created_total{biz_type="pay",ledger="orders"}`: 2})
	web := httptest.NewServer(s.exporter.Handler())
	defer web.Close()
	ups := map[string]*testkit.Proxy{isUp: s.mysqlWay, countersUp: s.redisWay, brokerUp: s.mqWay}
	gone := map[string]string{isUp: "idem_records_processing", countersUp: "idem_attempts_total", brokerUp: "idem_queue"}
	for _, hanging := range slices.Sorted(maps.Keys(ups)) {
		ups[hanging].Hang(true)
		var scrapes []time.Duration
		var seen samples
		began := time.Now()
		testkit.Eventually(t, 10*time.Second, func() bool {
			start := time.Now()
			body, _, err := fetch(t, web.URL)
			if err != nil {
				t.Fatal(err)
			}
			scrapes = append(scrapes, time.Since(start))
			seen = parse(t, body)
			return seen[hanging] == 0
		}, "%s becomes 0", hanging)
		// The median is what a scrape costs on a busy machine; one that waited
		// for the store would take its timeout.
		slices.Sort(scrapes)
		if median, slowest := scrapes[len(scrapes)/2], scrapes[len(scrapes)-1]; median > 100*time.Millisecond || slowest > minTimeout/2 {
			t.Errorf("while %s hangs, %d scrapes take %s, the slowest %s", hanging, len(scrapes), median, slowest)
		}
		seen.absent(t, gone[hanging])
		seen.want(t, samples{`idem_records_created_total{biz_type="pay",ledger="orders"}`: 2})
		for other := range ups {
			last := strings.Replace(other, "source_up", "last_poll_timestamp_seconds", 1)
			if other != hanging && (seen[other] != 1 || seen[last] < float64(began.UnixMilli())/1000) {
				t.Errorf("while %s hangs, %s is %v and was polled %v s after the start", hanging, other, seen[other], seen[last]-float64(began.Unix()))
			}
		}
		ups[hanging].Hang(false)
		s.reaches(samples{isUp: 1, countersUp: 1, brokerUp: 1, inProgress: 1, ready: 3, `idem_attempts_total{biz_type="pay"}`: 0})
	}
}

func TestRunEndsWhileAStoreHangs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run() // its clean-up bounds the end
	for _, p := range []*testkit.Proxy{s.mysqlWay, s.redisWay, s.mqWay} {
		p.Hang(true)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	queue := payments()
	queue.Queue = &flow.Queue{Broker: "rabbit"}
	for name, o := range map[string]Options{
		`"orders"`:      {Flows: []flow.Flow{payments()}},
		`"rabbit"`:      {Flows: []flow.Flow{queue}, Ledgers: map[string]*ledger.Ledger{"orders": {}}},
		"not be negati": {Interval: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %s, got %v", name, err)
		}
	}
	if _, err := New(Options{}); err != nil {
		t.Errorf("without sources: %v", err)
	}
}
