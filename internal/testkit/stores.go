package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/lab/servers"
)

// rootUser may do everything on every private MariaDB, with an empty password.
const rootUser = "root"

// cleanupTimeout bounds what a helper does when its test ends.
const cleanupTimeout = 20 * time.Second

// Database is one empty database on a private MariaDB.
type Database struct {
	Addr     string // host:port
	Name     string // of the database
	User     string // may do everything
	Password string
	// DB is a read-write pool with the database selected, one statement at a time, times parsed, time zone UTC.
	DB  *sqlx.DB
	Pid int // of the server
}

// MySQL returns a fresh database, which is dropped when the test ends. Its server has no users, grants, events or
// procedures: anybody may do everything.
func MySQL(t testing.TB) *Database {
	t.Helper()
	server, err := shared.plain.get(func(ctx context.Context) (*mariaDB, error) {
		return startMariaDB(ctx, servers.MariaDBOptions{})
	})
	return freshDatabase(t, server, err)
}

// MySQLFull is MySQL on a server with users and grants.
func MySQLFull(t testing.TB) *Database {
	t.Helper()
	server, err := shared.full.get(func(ctx context.Context) (*mariaDB, error) {
		return startMariaDB(ctx, servers.MariaDBOptions{Grants: true})
	})
	return freshDatabase(t, server, err)
}

// Exec runs one statement and fails the test when it fails.
func (d *Database) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := d.DB.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func freshDatabase(t testing.TB, server *mariaDB, err error) *Database {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	name := uniqueName("test")
	if _, err := server.admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatalf("create database: %v", err)
	}
	db, err := openMySQL(server.Addr, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := db.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
		if _, err := server.admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Errorf("drop database (is a transaction still open?): %v", err)
		}
	})
	return &Database{Addr: server.Addr, Name: name, User: rootUser, DB: db, Pid: server.Pid}
}

// RedisDB is one empty db number of a private Redis.
type RedisDB struct {
	Addr   string // host:port
	DB     int    // its number, never 0
	Client *redis.Client
}

// Redis returns a db number that no other test uses. It is flushed when the test ends.
func Redis(t testing.TB) *RedisDB {
	t.Helper()
	server, err := shared.redis.get(startRedis)
	if err != nil {
		t.Fatal(err)
	}
	number, err := server.number()
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DB: number, DisableIdentity: true})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := client.FlushDB(ctx).Err(); err != nil {
			t.Errorf("flush redis: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("close redis: %v", err)
		}
	})
	return &RedisDB{Addr: server.Addr, DB: number, Client: client}
}

// Vhost is one empty vhost of a private RabbitMQ with two users.
type Vhost struct {
	Management string // URL without a path, for example http://127.0.0.1:25001
	AMQP       string // URL with user, password and vhost; full rights
	Name       string
	// Admin is an administrator with full rights on the vhost.
	Admin, AdminPassword string
	// Monitor has the tag monitoring and the permissions "^$" "^$" "^$" on the vhost: it sees, and touches nothing.
	Monitor, MonitorPassword string
}

// RabbitMQ returns a fresh vhost, which is deleted with its monitor user when the test ends. The broker is the one
// of the test run (see RabbitMQEnv), or else one of this package. It samples its statistics every 500 ms.
func RabbitMQ(t testing.TB) *Vhost {
	t.Helper()
	server, err := shared.rabbit.get(startRabbitMQ)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), cleanupTimeout)
	defer cancel()
	v := &Vhost{
		Management: server.Management, Name: uniqueName("test"),
		Admin: server.Admin, AdminPassword: server.Password,
		Monitor: uniqueName("monitor"), MonitorPassword: rand.Text(),
	}
	v.AMQP = fmt.Sprintf("amqp://%s:%s@%s/%s", v.Admin, v.AdminPassword, server.AMQP, v.Name)
	t.Cleanup(func() { removeVhost(t, server, v) })
	if err := server.CreateVhost(ctx, v.Name); err != nil {
		t.Fatal(err)
	}
	if err := server.CreateUser(ctx, servers.RabbitMQUser{
		Name: v.Monitor, Password: v.MonitorPassword, Tags: []string{"monitoring"},
		Permissions: map[string]servers.RabbitMQPermissions{v.Name: {Configure: "^$", Write: "^$", Read: "^$"}},
	}); err != nil {
		t.Fatal(err)
	}
	return v
}

func removeVhost(t testing.TB, server *servers.RabbitMQ, v *Vhost) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if err := server.DeleteVhost(ctx, v.Name); err != nil {
		t.Errorf("delete vhost: %v", err)
	}
	if err := server.DeleteUser(ctx, v.Monitor); err != nil {
		t.Errorf("delete user: %v", err)
	}
}

// uniqueName is not used by any other package that shares the broker either.
func uniqueName(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:12])
}

// StartRedis starts a Redis of the test's own, with args as in servers.RedisOptions, and stops it when the test ends.
func StartRedis(t testing.TB, args ...string) *servers.Redis {
	t.Helper()
	server, err := servers.StartRedis(t.Context(), servers.RedisOptions{Args: args})
	return started(t, server, err)
}

// StartMariaDB starts a MariaDB of the test's own and stops it when the test ends.
func StartMariaDB(t testing.TB, opts servers.MariaDBOptions) *servers.MariaDB {
	t.Helper()
	server, err := servers.StartMariaDB(t.Context(), opts)
	return started(t, server, err)
}

func started[T stopper](t testing.TB, server T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return server
}
