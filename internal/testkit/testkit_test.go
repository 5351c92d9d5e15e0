package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/lab/servers"
)

func TestMain(m *testing.M) { Main(m) }

func TestMySQLGivesAFreshDatabasePerCall(t *testing.T) {
	a := MySQL(t)
	a.Exec(t, "CREATE TABLE x (a INT)")
	a.Exec(t, "INSERT INTO x VALUES (?)", 1)

	var b *Database
	t.Run("inner", func(t *testing.T) {
		b = MySQL(t)
		if b.Addr != a.Addr || b.Pid != a.Pid || b.Name == a.Name {
			t.Errorf("want the same server and another database: %+v, %+v", a, b)
		}
		b.Exec(t, "CREATE TABLE x (a INT)")
		if n := count(t, b.DB, "SELECT count(*) FROM x"); n != 0 {
			t.Errorf("%d rows in the fresh database", n)
		}
	})
	if n := count(t, a.DB, "SELECT count(*) FROM information_schema.schemata WHERE schema_name=?", b.Name); n != 0 {
		t.Errorf("database %s is still there after its test", b.Name)
	}
	if _, err := a.DB.Exec("SELECT 1; SELECT 2"); err == nil {
		t.Error("two statements in one were accepted")
	}
}

func TestMySQLFullHasUsers(t *testing.T) {
	d := MySQLFull(t)
	d.Exec(t, "CREATE USER "+d.Name+" IDENTIFIED BY 'secret'")
	d.Exec(t, "DROP USER "+d.Name)
}

func TestRedisGivesAnEmptyDBPerCall(t *testing.T) {
	ctx := t.Context()
	a := Redis(t)
	var b *RedisDB
	t.Run("inner", func(t *testing.T) {
		b = Redis(t)
		if err := b.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if n := a.Client.DBSize(ctx).Val(); n != 0 || a.DB == b.DB || a.DB == 0 {
			t.Errorf("db %d has %d keys after a write to db %d", a.DB, n, b.DB)
		}
	})
	client := redis.NewClient(&redis.Options{Addr: b.Addr, DB: b.DB, DisableIdentity: true})
	defer client.Close()
	if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
		t.Errorf("db %d has %d keys after its test, %v", b.DB, n, err)
	}
}

func TestRabbitMQGivesAVhostPerCall(t *testing.T) {
	var v *Vhost
	t.Run("inner", func(t *testing.T) {
		v = RabbitMQ(t)
		conn, err := amqp.Dial(v.AMQP)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
			t.Error("the full user cannot declare a queue:", err)
		}
		monitor, err := amqp.Dial(strings.Replace(v.AMQP, v.Admin+":"+v.AdminPassword, v.Monitor+":"+v.MonitorPassword, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer monitor.Close()
		ch, err = monitor.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ch.Get("q", true); err == nil {
			t.Error("the monitor can read")
		}
	})
	if conn, err := amqp.Dial(v.AMQP); err == nil {
		conn.Close()
		t.Error("the vhost is still there after its test")
	}
}

func TestOwnServersStopWithTheirTest(t *testing.T) {
	var r *servers.Redis
	var m *servers.MariaDB
	t.Run("inner", func(t *testing.T) {
		r = StartRedis(t, "--requirepass", "secret")
		m = StartMariaDB(t, servers.MariaDBOptions{Args: []string{"--read-only"}})
	})
	for addr, pid := range map[string]int{r.Addr: r.Pid, m.Addr: m.Pid} {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s still answers", addr)
		}
	}
}

func TestMainLeavesNothing(t *testing.T) {
	var own kit
	var pid int
	var socketDir string
	code := own.run(func() int {
		server, err := own.plain.get(func(ctx context.Context) (*mariaDB, error) {
			return startMariaDB(ctx, servers.MariaDBOptions{})
		})
		if err != nil {
			t.Fatal(err)
		}
		pid, socketDir = server.Pid, server.Socket[:strings.LastIndex(server.Socket, "/")]
		return 3
	})
	if code != 3 {
		t.Errorf("exit code %d, want that of the tests", code)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	if _, err := os.Stat(socketDir); !os.IsNotExist(err) {
		t.Errorf("directory %s is still there", socketDir)
	}
}

func TestEventuallyFailsInTime(t *testing.T) {
	probe := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		Eventually(probe, 30*time.Millisecond, func() bool { return false }, "no %s", "luck")
	}()
	<-done
	if probe.failure != "not within 30ms: no luck" {
		t.Errorf("failure is %q", probe.failure)
	}
	calls := 0
	Eventually(t, time.Second, func() bool { calls++; return calls == 3 }, "three calls")
}

func TestProxy(t *testing.T) {
	p := NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr)

	if _, err := ask(conn, time.Second); err != nil {
		t.Fatal("plain forwarding:", err)
	}
	p.Delay(80 * time.Millisecond)
	if took, err := ask(conn, time.Second); err != nil || took < 80*time.Millisecond {
		t.Errorf("delayed answer took %s, %v", took, err)
	}
	p.Delay(0)
	p.Hang(true)
	if _, err := ask(conn, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an answer through a hanging proxy: %v", err)
	}
	dial(t, p.Addr)
	p.Hang(false)
	if _, err := read(conn, time.Second); err != nil {
		t.Error("the answer that hung does not arrive:", err)
	}
	p.Drop(true)
	if _, err := ask(conn, time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection is not dropped: %v", err)
	}
	if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection is not refused: %v", err)
	}
	p.Drop(false)
	if _, err := ask(dial(t, p.Addr), time.Second); err != nil {
		t.Error("after the drop:", err)
	}
}

// recorder notes a fatal failure instead of failing the test.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func count(t *testing.T, db *sqlx.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.Get(&n, query, args...); err != nil {
		t.Fatal(err)
	}
	return n
}

func echoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a byte and returns how long its echo took.
func ask(conn net.Conn, timeout time.Duration) (time.Duration, error) {
	start := time.Now()
	if _, err := conn.Write([]byte("x")); err != nil {
		return 0, err
	}
	_, err := read(conn, timeout)
	return time.Since(start), err
}

func read(conn net.Conn, timeout time.Duration) (int, error) {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	return conn.Read(make([]byte, 1))
}
