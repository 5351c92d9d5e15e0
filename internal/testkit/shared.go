package testkit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"idemscope/internal/lab/servers"
)

// RabbitMQEnv names the environment variable that passes the RabbitMQ of a whole test run, as JSON of
// servers.RabbitMQ, to the packages under test.
const RabbitMQEnv = "IDEMSCOPE_TEST_RABBITMQ"

// shared holds the servers of this test binary.
var shared kit

// kit starts each server at its first use.
type kit struct {
	plain, full lazy[*mariaDB]
	redis       lazy[*redisServer]
	rabbit      lazy[*servers.RabbitMQ]
}

func (k *kit) stop() error {
	return errors.Join(k.plain.stop(), k.full.stop(), k.redis.stop(), k.rabbit.stop())
}

// stopper is a server that can be stopped.
type stopper interface{ Stop() error }

// lazy starts a server at most once. A failed start is not tried again: the next test would only wait for it anew.
type lazy[T stopper] struct {
	mu      sync.Mutex
	started bool
	server  T
	err     error
}

func (l *lazy[T]) get(start func(context.Context) (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		l.started = true
		l.server, l.err = start(context.Background())
	}
	return l.server, l.err
}

// stop ends the server, if it was started; the next get starts a new one.
func (l *lazy[T]) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		return nil
	}
	l.started = false
	if l.err != nil {
		return nil // reported to the test that asked for the server
	}
	return l.server.Stop()
}

// mariaDB is a server with a connection for creating and dropping databases.
type mariaDB struct {
	*servers.MariaDB
	admin *sqlx.DB
}

func startMariaDB(ctx context.Context, opts servers.MariaDBOptions) (*mariaDB, error) {
	server, err := servers.StartMariaDB(ctx, opts)
	if err != nil {
		return nil, err
	}
	admin, err := openMySQL(server.Addr, "")
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &mariaDB{MariaDB: server, admin: admin}, nil
}

// Stop closes the connection and ends the server.
func (m *mariaDB) Stop() error {
	return errors.Join(m.admin.Close(), m.MariaDB.Stop())
}

// openMySQL opens a pool as root. A lock that a test has left behind stops a statement for some seconds only.
func openMySQL(addr, database string) (*sqlx.DB, error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "tcp", addr, rootUser, database
	cfg.ParseTime, cfg.Loc = true, time.UTC
	cfg.Params = map[string]string{"lock_wait_timeout": "10"}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return sqlx.NewDb(sql.OpenDB(connector), "mysql"), nil
}

// redisServer hands out db numbers.
type redisServer struct {
	*servers.Redis
	mu   sync.Mutex
	next int
}

// redisDatabases is how many db numbers one test binary may use.
const redisDatabases = 4096

func startRedis(ctx context.Context) (*redisServer, error) {
	server, err := servers.StartRedis(ctx, servers.RedisOptions{Args: []string{"--databases", fmt.Sprint(redisDatabases)}})
	if err != nil {
		return nil, err
	}
	return &redisServer{Redis: server}, nil
}

// number returns an unused db number. Number 0 stays empty: a client that forgets its db is seen.
func (r *redisServer) number() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	if r.next >= redisDatabases {
		return 0, fmt.Errorf("more than %d calls of testkit.Redis", redisDatabases-1)
	}
	return r.next, nil
}

// startRabbitMQ uses the broker of the test run, if there is one. Stopping that is then up to the run.
func startRabbitMQ(ctx context.Context) (*servers.RabbitMQ, error) {
	text, ok := os.LookupEnv(RabbitMQEnv)
	if !ok {
		return servers.StartRabbitMQ(ctx, RabbitMQOptions())
	}
	server := new(servers.RabbitMQ)
	if err := json.Unmarshal([]byte(text), server); err != nil {
		return nil, fmt.Errorf("%s: %w", RabbitMQEnv, err)
	}
	return server, nil
}

// RabbitMQOptions are those of every broker for tests: it samples its statistics ten times as often as usual, so
// that tests do not wait for them.
func RabbitMQOptions() servers.RabbitMQOptions {
	return servers.RabbitMQOptions{StatsInterval: 500 * time.Millisecond}
}
