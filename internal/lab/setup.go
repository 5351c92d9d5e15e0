package lab

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/lab/servers"
)

// vhost is the broker's own first vhost.
const vhost = "/"

// statsInterval makes the broker's totals younger than they usually are, so that a look-up during the demo shows what
// has just happened.
const statsInterval = time.Second

// startServers starts all three at once. The first fault ends the others' start.
func (l *Lab) startServers(ctx context.Context, startRabbitMQ rabbitStarter) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for _, step := range []func(context.Context) error{
		l.openMySQL, l.openRedis,
		func(ctx context.Context) error { return l.openRabbitMQ(ctx, startRabbitMQ) },
	} {
		all.Go(func() {
			if err := step(ctx); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// openMySQL starts MariaDB and fills it with tables and history.
func (l *Lab) openMySQL(ctx context.Context) error {
	var err error
	if l.mariadb, err = servers.StartMariaDB(ctx, servers.MariaDBOptions{}); err != nil {
		return err
	}
	if err := createDatabase(ctx, l.mariadb.Addr); err != nil {
		return err
	}
	if l.db, err = openDB(l.mariadb.Addr, database); err != nil {
		return err
	}
	if err := createTables(ctx, l.db); err != nil {
		return err
	}
	var now string
	if err := l.db.GetContext(ctx, &now, "SELECT CAST(UTC_TIMESTAMP() AS CHAR)"); err != nil {
		return fmt.Errorf("the database's clock: %w", err)
	}
	at, err := time.Parse(time.DateTime, now)
	if err != nil {
		return fmt.Errorf("the database's clock: %w", err)
	}
	return insertHistory(ctx, l.db, at)
}

func createDatabase(ctx context.Context, addr string) error {
	db, err := openDB(addr, "")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// openDB opens a small pool. Updates report matched rows, so that a conditional update tells whether its condition held.
func openDB(addr, name string) (*sqlx.DB, error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName, cfg.ClientFoundRows = "tcp", addr, "root", name, true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	db.SetMaxOpenConns(12)
	db.SetMaxIdleConns(12)
	return db, nil
}

func (l *Lab) openRedis(ctx context.Context) error {
	var err error
	// It keeps snapshots, as a Redis does unless told otherwise: a restart then loses no lock for certain.
	if l.redisServer, err = servers.StartRedis(ctx, servers.RedisOptions{Args: []string{"--save", "3600 1"}}); err != nil {
		return err
	}
	l.redis = redis.NewClient(&redis.Options{Addr: l.redisServer.Addr, ContextTimeoutEnabled: true, DisableIdentity: true})
	return nil
}

// The users of idemscope's tap and trace, and of its replays.
const (
	tapUser    = "tap"
	traceUser  = "trace"
	replayUser = "replay"
)

// openRabbitMQ leaves the lab without a broker when there is none to start.
func (l *Lab) openRabbitMQ(ctx context.Context, startRabbitMQ rabbitStarter) error {
	var err error
	l.rabbitmq, err = startRabbitMQ(ctx, servers.RabbitMQOptions{StatsInterval: statsInterval})
	var absent servers.NotInstalled
	if errors.As(err, &absent) {
		l.Missing = append(l.Missing, err)
		return nil
	}
	if err != nil {
		return err
	}
	l.monitor = monitor{management: l.rabbitmq.Management, user: "monitor", password: rand.Text()}
	nothing := servers.RabbitMQPermissions{Configure: "^$", Write: "^$", Read: "^$"}
	if err := l.rabbitmq.CreateUser(ctx, servers.RabbitMQUser{
		Name: l.monitor.user, Password: l.monitor.password, Tags: []string{"monitoring"},
		Permissions: map[string]servers.RabbitMQPermissions{vhost: nothing},
	}); err != nil {
		return fmt.Errorf("rabbitmq user: %w", err)
	}
	l.tapPassword, l.tracePassword, l.replayPassword = rand.Text(), rand.Text(), rand.Text()
	for _, user := range []servers.RabbitMQUser{
		{Name: tapUser, Password: l.tapPassword, Permissions: map[string]servers.RabbitMQPermissions{vhost: {
			Configure: `^idemscope\.`, Write: `^idemscope\.`, Read: `^(idemscope\..*|shop|shop\.dlx)$`,
		}}},
		{Name: traceUser, Password: l.tracePassword, Tags: []string{"administrator"}, Permissions: map[string]servers.RabbitMQPermissions{vhost: {
			Configure: `^idemscope\.trace$`, Write: `^idemscope\.trace$`, Read: `^(idemscope\.trace|amq\.rabbitmq\.trace)$`,
		}}},
		{Name: replayUser, Password: l.replayPassword, Permissions: map[string]servers.RabbitMQPermissions{vhost: {
			Configure: `^$`, Write: `^amq\.default$`, Read: `\.dlq$`,
		}}},
	} {
		if err := l.rabbitmq.CreateUser(ctx, user); err != nil {
			return fmt.Errorf("rabbitmq user: %w", err)
		}
	}
	l.rabbit, err = connectRabbit(fmt.Sprintf("amqp://%s:%s@%s/", l.rabbitmq.Admin, l.rabbitmq.Password, l.rabbitmq.AMQP))
	return err
}

// openQueues makes the queues of all flows that have one.
func (l *Lab) openQueues() error {
	l.queues = map[string]queue{}
	for _, r := range l.routes {
		switch {
		case r.Queue != nil:
			if err := l.rabbit.declare(*r.Queue, retryDelay); err != nil {
				return err
			}
			l.queues[r.Name] = rabbitQueue{rabbit: l.rabbit, names: *r.Queue}
		case r.workers > 0:
			l.queues[r.Name] = newMemoryQueue()
		}
	}
	return nil
}

// awaitTotals waits until the broker's totals show the samples, so that they hold from the first look.
func (l *Lab) awaitTotals(ctx context.Context) error {
	if l.rabbit == nil {
		return nil
	}
	want := map[string]int{}
	for _, r := range l.routes {
		if r.Queue != nil {
			for _, name := range r.Queue.All() {
				want[name] = 0
			}
		}
	}
	for _, s := range samples(true) {
		q := routeOf(l.routes, s.Flow).Queue
		if s.waiting {
			want[q.Name] = waitingImports
		}
		if s.dead {
			want[q.DeadLetter]++
		}
	}
	return l.monitor.awaitTotals(ctx, want)
}

func (l *Lab) closeClients() error {
	var err error
	if l.rabbit != nil {
		err = l.rabbit.close()
	}
	if l.redis != nil {
		err = errors.Join(err, l.redis.Close())
	}
	if l.db != nil {
		err = errors.Join(err, l.db.Close())
	}
	return err
}

// stopServers stops those that were started, in reverse order.
func (l *Lab) stopServers() error {
	var err error
	if l.rabbitmq != nil {
		err = l.rabbitmq.Stop()
	}
	if l.redisServer != nil {
		err = errors.Join(err, l.redisServer.Stop())
	}
	if l.mariadb != nil {
		err = errors.Join(err, l.mariadb.Stop())
	}
	return err
}
