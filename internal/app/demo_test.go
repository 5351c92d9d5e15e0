package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// screen is a terminal that can be read while it is written.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestTheDemoLeavesNothing runs the demo as a user does, stops it, and looks
// for processes, ports and files.
func TestTheDemoLeavesNothing(t *testing.T) {
	before := children(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out screen
	ended := make(chan error, 1)
	go func() {
		ended <- Demo(ctx, DemoOptions{
			Listen: "127.0.0.1:0", Program: "./bin/idemscope", Language: flow.English,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Out: &out,
		})
	}()
	testkit.Eventually(t, time.Minute, func() bool { return strings.Contains(out.String(), "until Ctrl-C") }, "the demo does not say that it is ready")
	command := regexp.MustCompile(`\./bin/idemscope lookup --config (\S+) (\S+) (\S+)`).FindStringSubmatch(out.String())
	if command == nil {
		t.Fatalf("no lookup command to try:\n%s", &out)
	}
	var answer bytes.Buffer
	if _, err := Lookup(t.Context(), LookupOptions{Config: command[1], Words: command[2:], Language: flow.Chinese, Out: &answer}); err != nil {
		t.Error(err)
	}
	replayInTheDemo(t, command[1])
	text, err := os.ReadFile(command[1])
	if err != nil {
		t.Fatal(err)
	}
	addresses := regexp.MustCompile(`127\.0\.0\.1:[1-9]\d*`).FindAllString(string(text)+out.String(), -1)

	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(command[1])); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	for _, address := range addresses {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			t.Errorf("somebody still listens on %s", address)
		}
	}
	if after := children(t); after != before {
		t.Errorf("child processes before: %s, after: %s", before, after)
	}
}

// replayInTheDemo replays the one dead letter among the samples, as its user may, and
// waits until a consumer has run it.
func replayInTheDemo(t *testing.T, config string) {
	t.Helper()
	const bizType, bizID = "order_paid", "SO202501150500"
	var said bytes.Buffer
	order := ActionOptions{
		Config: config, Kind: "replay", BizType: bizType, BizID: bizID, Reason: "the cause is mended", Execute: true,
		Language: flow.English, Logger: slog.New(slog.DiscardHandler), Out: &said,
	}
	if exit, err := Action(t.Context(), order); err != nil || exit != 0 || !strings.Contains(said.String(), "published to order.paid and removed from order.paid.dlq") {
		t.Fatalf("exit %d, %v\n%s", exit, err, &said)
	}
	var seen bytes.Buffer
	testkit.Eventually(t, time.Minute, func() bool {
		seen.Reset()
		_, err := Lookup(t.Context(), LookupOptions{Config: config, Words: []string{bizType, bizID}, Language: flow.English, Out: &seen})
		return err == nil && strings.Contains(seen.String(), "COMPLETED") && strings.Contains(seen.String(), "action replay: done")
	}, "no consumer has run the message")
}

// TestTheDemoCanBeStoppedWhileItStarts cancels it at once.
func TestTheDemoCanBeStoppedWhileItStarts(t *testing.T) {
	before := children(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out screen
	_ = Demo(ctx, DemoOptions{Listen: "127.0.0.1:0", Program: "idemscope", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Out: &out})
	if after := children(t); after != before {
		t.Errorf("child processes before: %s, after: %s", before, after)
	}
}

// children lists the processes that this one has started and that still run.
func children(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot list child processes: %v", err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			all = append(all, strings.Fields(string(text))...)
		}
	}
	return strings.Join(all, " ")
}
