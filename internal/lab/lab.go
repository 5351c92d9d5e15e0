package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/lab/servers"
)

// Bounds of the life of a lab.
const (
	startTimeout = 3 * time.Minute
	// runEndTimeout is how long Stop waits for a delivery to come to its end.
	runEndTimeout = 10 * time.Second
)

// errStopped says that the lab is gone.
var errStopped = errors.New("the lab is stopped")

// Options of a lab.
type Options struct {
	// Listen is where idemscope is to listen, for the configuration. Mandatory.
	Listen string
	// Logger takes what the lab does and what fails in it. Nil means silence.
	Logger *slog.Logger
	// Prepare is called with the configuration when servers and queues are there, before the first message: it makes
	// the tap. Nil means that there is none, and that the configuration has none.
	Prepare func(ctx context.Context, config []byte) error
}

// Lab is the running servers with all that is in them.
type Lab struct {
	// Missing says which servers the lab runs without, and why. Only RabbitMQ can be missing.
	Missing []error

	listen string
	log    *slog.Logger
	truth  *witness
	routes []route

	mariadb     *servers.MariaDB
	redisServer *servers.Redis
	rabbitmq    *servers.RabbitMQ

	db      *sqlx.DB
	redis   *redis.Client
	rabbit  *rabbit // nil without a broker
	monitor monitor
	prepare func(ctx context.Context, config []byte) error
	// The passwords of the users with which idemscope makes its tap, arms its trace, and replays dead letters.
	tapPassword, tracePassword, replayPassword string
	// queues are the work queues by flow; without a broker they are in memory.
	queues map[string]queue

	// life ends with Stop; busy counts what must end before the servers do.
	life context.Context
	end  context.CancelFunc
	mu   sync.Mutex // guards busy.Add against Stop
	busy sync.WaitGroup
	once sync.Once
	// stopped is what Stop came to.
	stopped error
}

// rabbitStarter starts the broker of a lab.
type rabbitStarter func(context.Context, servers.RabbitMQOptions) (*servers.RabbitMQ, error)

// Start starts the servers, makes tables and queues, and fills them with history and samples. ctx bounds the start
// only. A missing MariaDB or Redis is a servers.NotInstalled; without RabbitMQ the lab runs, and Missing says so.
func Start(ctx context.Context, o Options) (*Lab, error) {
	return start(ctx, o, servers.StartRabbitMQ)
}

func start(ctx context.Context, o Options, startRabbitMQ rabbitStarter) (*Lab, error) {
	if o.Listen == "" {
		return nil, errors.New("lab without a listen address")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Lab{listen: o.Listen, log: o.Logger, prepare: o.Prepare, truth: newWitness()}
	l.life, l.end = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := l.open(ctx, startRabbitMQ); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context, startRabbitMQ rabbitStarter) error {
	if err := l.startServers(ctx, startRabbitMQ); err != nil {
		return err
	}
	l.routes = routes(l.rabbit != nil)
	if err := l.openQueues(); err != nil {
		return err
	}
	if l.tapped() {
		if err := l.prepare(ctx, l.Config()); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	if err := l.placeSamples(ctx); err != nil {
		return err
	}
	run, err := beginLongRun(ctx, l.consumer(routeOf(l.routes, runningSample().Flow)))
	if err != nil {
		return err
	}
	l.busy.Go(func() { run.work(l.life) })
	return l.awaitTotals(ctx)
}

// tapped: the broker gets a tap.
func (l *Lab) tapped() bool { return l.prepare != nil && l.rabbit != nil }

// Samples lists the prepared keys.
func (l *Lab) Samples() []Sample {
	list := []Sample{runningSample()}
	for _, s := range samples(l.rabbit != nil) {
		list = append(list, s.Sample)
	}
	return list
}

// Truth is what the consumers have really done so far. Deliveries in progress are counted but have no end yet.
func (l *Lab) Truth() Truth { return l.truth.copy() }

// Stop ends the traffic, the servers and everything in them. It takes some seconds at most and may be called again; the
// error is that of the first call.
func (l *Lab) Stop() error {
	l.once.Do(func() {
		l.mu.Lock()
		l.end()
		l.mu.Unlock()
		if !l.awaitIdle() {
			l.log.Warn("traffic does not end; the servers are stopped under it")
		}
		l.stopped = errors.Join(l.closeClients(), l.stopServers())
	})
	return l.stopped
}

// awaitIdle waits until nothing uses the servers any more.
func (l *Lab) awaitIdle() bool {
	idle := make(chan struct{})
	go func() {
		l.busy.Wait()
		close(idle)
	}()
	timer := time.NewTimer(runEndTimeout)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// Run makes traffic until ctx ends, and returns nil then. Deliveries in progress are brought to their end first. Other
// errors mean that a server is gone.
func (l *Lab) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.life.Err() != nil {
		l.mu.Unlock()
		return errStopped
	}
	l.busy.Add(1)
	l.mu.Unlock()
	defer l.busy.Done()

	traffic, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer context.AfterFunc(l.life, func() { fail(nil) })()

	var all sync.WaitGroup
	spawn := func(what string, task func(context.Context) error) {
		all.Go(func() {
			if err := task(traffic); err != nil {
				fail(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for _, r := range l.routes {
		for range r.workers {
			spawn("consumer of "+r.Name, func(ctx context.Context) error { return l.keepConsuming(ctx, r) })
		}
	}
	now := time.Now()
	spawn("sender", newSender(l.queues, firstID(now), now).run)
	all.Wait()
	if ctx.Err() != nil || l.life.Err() != nil {
		return nil
	}
	return context.Cause(traffic)
}

// firstID keeps the ids of one run apart from those of an earlier one: fewer than a hundred messages a second are sent.
func firstID(now time.Time) int64 { return now.Unix() * 100 % 10_000_000_000 }

// keepConsuming replaces a consumer that was killed by a new one.
func (l *Lab) keepConsuming(ctx context.Context, r route) error {
	for ctx.Err() == nil {
		s, err := l.queues[r.Name].subscribe()
		if err != nil {
			return err
		}
		err = l.consumer(r).consume(ctx, s)
		if err := errors.Join(ignoreKill(err), s.leave()); err != nil {
			return err
		}
		if errors.Is(err, errKilled) {
			l.log.Info("a consumer was killed in the middle of its work", "flow", r.Name)
		}
	}
	return nil
}

func ignoreKill(err error) error {
	if errors.Is(err, errKilled) {
		return nil
	}
	return err
}

func (l *Lab) consumer(r route) consumer {
	return consumer{route: r, db: l.db, redis: l.redis, truth: l.truth, log: l.log.With("flow", r.Name)}
}
