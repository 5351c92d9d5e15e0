package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv turns the test binary into a process that starts one server of each kind.
const helperEnv = "SERVERS_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// trio is what the helper prints.
type trio struct {
	MariaDB  *MariaDB
	Redis    *Redis
	RabbitMQ *RabbitMQ
	Dirs     []string
}

// helper starts the servers, prints them, and stops them when its standard input ends.
func helper() error {
	ctx := context.Background()
	var s trio
	var err error
	if s.MariaDB, err = StartMariaDB(ctx, MariaDBOptions{Grants: true}); err != nil {
		return err
	}
	if s.Redis, err = StartRedis(ctx, RedisOptions{}); err != nil {
		return err
	}
	if s.RabbitMQ, err = StartRabbitMQ(ctx, RabbitMQOptions{}); err != nil {
		return err
	}
	s.Dirs = []string{s.MariaDB.run.dir.path, s.Redis.run.dir.path, s.RabbitMQ.run.dir.path}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(s.MariaDB.Stop(), s.Redis.Stop(), s.RabbitMQ.Stop())
}

// startHelper runs program, a copy of this test binary, as a helper and returns what it started.
func startHelper(t *testing.T, program string, attr *syscall.SysProcAttr) (trio, *exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Dir = filepath.Dir(program)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, attr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal("the helper did not start its servers:", err)
	}
	var s trio
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatal(err)
	}
	return s, cmd, stdin
}

// ownExecutable is the path of the running test binary.
func ownExecutable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually polls cond for at most 10 s.
func eventually(t *testing.T, cond func() bool, msg string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not within 10 s: ", msg)
		}
	}
}

// processesOf returns the ids of the processes that name dir in their command line or their environment.
func processesOf(t *testing.T, dir string) []int {
	t.Helper()
	out, err := exec.Command("ps", "axeww", "-o", "pid=", "-o", "args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		pid, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.Contains(line, dir) {
			pids = append(pids, n)
		}
	}
	return pids
}

// parentOf returns the id of the parent of a process.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// checkStopped stops a server twice and checks that nothing of it is left.
func checkStopped(t *testing.T, server interface{ Stop() error }, r *run, addrs ...string) {
	t.Helper()
	for range 2 {
		start := time.Now()
		if err := server.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("stop took %s", took)
		}
	}
	checkGone(t, r.dir.path)
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s still answers", addr)
		}
	}
}

func checkGone(t *testing.T, dir string) {
	t.Helper()
	eventually(t, func() bool { return len(processesOf(t, dir)) == 0 }, "the processes of "+dir+" end")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("directory %s is still there", dir)
	}
}

// takenFirst is a source of ports whose first ones are occupied until the test ends.
func takenFirst(t *testing.T, n int) portSource {
	t.Helper()
	var taken []int
	for range n {
		l, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		taken = append(taken, l.Addr().(*net.TCPAddr).Port)
	}
	return func() (int, error) {
		if len(taken) == 0 {
			return FreePort()
		}
		port := taken[0]
		taken = taken[1:]
		return port, nil
	}
}
