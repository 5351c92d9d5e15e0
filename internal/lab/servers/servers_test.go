package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

func TestRedis(t *testing.T) {
	r, err := startRedis(t.Context(), RedisOptions{}, takenFirst(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: r.Addr, DisableIdentity: true})
	defer client.Close()
	info, err := client.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", r.Pid)) || parentOf(t, r.Pid) != os.Getpid() {
		t.Errorf("the server on %s is not our child %d:\n%s", r.Addr, r.Pid, info)
	}
	checkStopped(t, r, r.run, r.Addr)
}

func TestRedisOfAnotherProcessIsRefused(t *testing.T) {
	r, err := StartRedis(t.Context(), RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if err := redisIsOurs(t.Context(), r.run.dir.file("s"), r.Pid+1); err == nil {
		t.Error("a server with another process id is taken for ours")
	}
}

func TestRedisArgs(t *testing.T) {
	for name, args := range map[string][]string{
		"password": {"--requirepass", "secret"},
		"acl":      {"--user", "default", "off"},
		"cluster":  {"--cluster-enabled", "yes"},
		"sentinel": {sentinelConfig(t), "--sentinel"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := StartRedis(t.Context(), RedisOptions{Args: args})
			if err != nil {
				t.Fatal(err)
			}
			checkStopped(t, r, r.run, r.Addr)
		})
	}
}

func sentinelConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(path, []byte("sentinel monitor main 127.0.0.1 1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartErrorShowsTheLog(t *testing.T) {
	_, err := StartRedis(t.Context(), RedisOptions{Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("redis: %v", err)
	}
	_, err = StartMariaDB(t.Context(), MariaDBOptions{Args: []string{"--no-such-setting=1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("mariadb: %v", err)
	}
}

func TestMariaDB(t *testing.T) {
	for _, grants := range []bool{false, true} {
		t.Run(fmt.Sprint("grants ", grants), func(t *testing.T) {
			m, err := startMariaDB(t.Context(), MariaDBOptions{Grants: grants}, takenFirst(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			var pidFile string
			for net, addr := range map[string]string{"tcp": m.Addr, "unix": m.Socket} {
				db := openMariaDB(t, net, addr)
				if err := db.QueryRow("SELECT @@pid_file").Scan(&pidFile); err != nil {
					t.Fatal(err)
				}
				if filepath.Dir(pidFile) != m.run.dir.path || parentOf(t, m.Pid) != os.Getpid() {
					t.Errorf("the server on %s, with %s, is not our child %d", addr, pidFile, m.Pid)
				}
				_, err := db.Exec("CREATE USER IF NOT EXISTS someone IDENTIFIED BY 'x'")
				if (err == nil) != grants {
					t.Errorf("create user: %v", err)
				}
			}
			checkStopped(t, m, m.run, m.Addr)
		})
	}
}

func openMariaDB(t *testing.T, network, addr string) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Logger = network, addr, "root", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestRabbitMQ(t *testing.T) {
	ctx := t.Context()
	r, err := StartRabbitMQ(ctx, RabbitMQOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if parent := parentOf(t, r.Pid); parent != os.Getpid() {
		t.Errorf("the parent of the broker is %d", parent)
	}
	if err := r.CreateVhost(ctx, "a/b c"); err != nil {
		t.Error(err)
	}
	user := RabbitMQUser{Name: "mon/itor", Password: "secret", Tags: []string{"monitoring"},
		Permissions: map[string]RabbitMQPermissions{"a/b c": {"^$", "^$", "^$"}}}
	if err := r.CreateUser(ctx, user); err != nil {
		t.Error(err)
	}
	if body := get(t, r.Management+"/api/permissions/a%2Fb%20c/mon%2Fitor", r.Admin, r.Password); !strings.Contains(body, `"configure":"^$"`) {
		t.Errorf("permissions: %s", body)
	}
	if body := get(t, r.Management+"/api/whoami", user.Name, user.Password); !strings.Contains(body, "monitoring") {
		t.Errorf("whoami: %s", body)
	}
	if err := r.DeleteUser(ctx, user.Name); err != nil {
		t.Error(err)
	}
	if err := r.DeleteVhost(ctx, "a/b c"); err != nil {
		t.Error(err)
	}
	checkStopped(t, r, r.run, r.AMQP, r.Stream, strings.TrimPrefix(r.Management, "http://"))
}

func TestRabbitMQSeesThatAPortIsTaken(t *testing.T) {
	server, err := findRabbitMQ(searchPath())
	if err != nil {
		t.Fatal(err)
	}
	epmd, err := findEPMD(searchPath())
	if err != nil {
		t.Fatal(err)
	}
	for name, free := range map[string]int{"distribution": 3, "epmd": 4} {
		t.Run(name, func(t *testing.T) {
			taken, calls := takenFirst(t, 1), 0
			ports := func() (int, error) {
				if calls++; calls <= free {
					return FreePort()
				}
				return taken()
			}
			_, err := rabbitMQAttempt(t.Context(), rabbitPrograms{server, epmd}, RabbitMQOptions{}, ports)
			if !errors.Is(err, errPortTaken) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// RabbitMQ says that a port is taken and then dumps all that it knows.
func TestPortTakenIsFoundInALongLog(t *testing.T) {
	dump := "echo eaddrinuse; head -c 9000 /dev/zero | tr '\\0' x; exit 1"
	c, err := startChild("dump", t.TempDir(), exec.Command("sh", "-c", dump))
	if err != nil {
		t.Fatal(err)
	}
	err = c.await(t.Context(), func(context.Context) error { return errors.New("not ready") })
	if !errors.Is(err, errPortTaken) || len(err.Error()) > logTailBytes+200 {
		t.Errorf("got %.300v", err)
	}
}

func get(t *testing.T, url, user, password string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	for name, start := range map[string]func(context.Context) (any, error){
		"rabbitmq": func(ctx context.Context) (any, error) { return StartRabbitMQ(ctx, RabbitMQOptions{}) },
		"mariadb":  func(ctx context.Context) (any, error) { return StartMariaDB(ctx, MariaDBOptions{Grants: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			t.Setenv("TMPDIR", root)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if _, err := start(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), name[:5]) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			eventually(t, func() bool { return len(processesOf(t, filepath.Join(root, "idemscope-"))) == 0 }, "all processes end")
		})
	}
}

func TestServersEndWithUs(t *testing.T) {
	s, cmd, _ := startHelper(t, ownExecutable(t), nil)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, dir := range s.Dirs {
		eventually(t, func() bool { return len(processesOf(t, dir)) == 0 }, "the processes of "+dir+" end")
	}
	removeAbandoned(os.TempDir())
	for _, dir := range s.Dirs {
		checkGone(t, dir)
	}
}

func TestDirectoriesInUseAreKept(t *testing.T) {
	dir, err := newWorkDir("redis")
	if err != nil {
		t.Fatal(err)
	}
	removeAbandoned(os.TempDir())
	if _, err := os.Stat(dir.path); err != nil {
		t.Error(err)
	}
	if err := dir.remove(); err != nil {
		t.Error(err)
	}
}

// TestOrdinaryUser adds the case of an ordinary user to a run as root; in other runs every test here is that case.
func TestOrdinaryUser(t *testing.T) {
	program := ownExecutable(t)
	var attr *syscall.SysProcAttr
	if os.Getuid() == 0 {
		program = publicCopy(t, program)
		attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	s, cmd, stdin := startHelper(t, program, attr)
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("helper: %v", err)
	}
	for _, dir := range s.Dirs {
		checkGone(t, dir)
	}
}

// publicCopy copies the program to a place from which every user may run it.
func publicCopy(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "servers-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "helper")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNotInstalled(t *testing.T) {
	_, err := findMariaDB(nil)
	if missing, ok := err.(NotInstalled); !ok || missing.Program != "mariadbd" {
		t.Errorf("mariadb: %v", err)
	}
	_, err = find([]string{"", t.TempDir()}, "redis-server")
	if missing, ok := err.(NotInstalled); !ok || missing.Program != "redis-server" {
		t.Errorf("redis: %v", err)
	}
	nothing := func(string) bool { return false }
	only := func(path string) func(string) bool { return func(p string) bool { return p == path } }
	for _, c := range []struct {
		goos   string
		exists func(string) bool
		want   string
	}{
		{"linux", only("/usr/bin/apt-get"), "redis-server is not installed; install it with: sudo apt-get install redis-server"},
		{"linux", only("/usr/bin/dnf"), "redis-server is not installed; install it with: sudo dnf install redis"},
		{"darwin", nothing, "redis-server is not installed; install it with: brew install redis"},
		{"linux", nothing, "redis-server is not installed; install it with: apt-get install redis-server (Debian, Ubuntu), dnf install redis (Fedora), brew install redis (macOS)"},
	} {
		if got := notInstalled("redis-server", c.goos, c.exists).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestMySQLIsNotMariaDB(t *testing.T) {
	for version, ok := range map[string]bool{
		"mysqld  Ver 10.11.6-MariaDB for debian-linux-gnu": true,
		"/usr/sbin/mysqld  Ver 8.0.39 for Linux on x86_64": false,
	} {
		dir := t.TempDir()
		script := "#!/bin/sh\necho '" + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "mysqld"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := findMariaDB([]string{dir})
		if (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		}
		if err != nil && !strings.Contains(err.Error(), "is MySQL") {
			t.Errorf("the error does not say why: %v", err)
		}
	}
}
