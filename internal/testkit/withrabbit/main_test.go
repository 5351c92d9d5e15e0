package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"idemscope/internal/lab/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The command gets the broker and the signals, its exit code comes back, and the broker is gone.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broker.json")
	script := `trap 'exit 7' TERM; printf %s "$IDEMSCOPE_TEST_RABBITMQ" >"$1"; kill -TERM $PPID; while :; do sleep 0.05; done`
	if code := run([]string{"sh", "-c", script, "sh", file}); code != 7 {
		t.Errorf("exit code %d", code)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var broker servers.RabbitMQ
	if err := json.Unmarshal(text, &broker); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(broker.Pid, 0); broker.Pid == 0 || !errors.Is(err, syscall.ESRCH) {
		t.Errorf("broker %d is still there: %v", broker.Pid, err)
	}
	if conn, err := net.Dial("tcp", broker.AMQP); err == nil {
		conn.Close()
		t.Errorf("%s still answers", broker.AMQP)
	}
}

func TestExitCode(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -KILL $$": exitSignalled + 9} {
		if got := exitCode(exec.Command("sh", "-c", script).Run()); got != want {
			t.Errorf("%s: %d, want %d", script, got, want)
		}
	}
}
