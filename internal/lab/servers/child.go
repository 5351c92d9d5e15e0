package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of the life of a child.
const (
	pollInterval = 20 * time.Millisecond
	probeTimeout = 2 * time.Second
	killTimeout  = 10 * time.Second
	logTailBytes = 2000
)

// child is one process that this process has started and alone waits for.
type child struct {
	name string
	pid  int
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and is reaped
}

// startChild starts cmd in dir, with its output in a log file there.
func startChild(name, dir string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: name, log: filepath.Join(dir, name+".log"), cmd: cmd, done: make(chan struct{})}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = dir, log, log, childAttr()
	started := make(chan error)
	go c.keep(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// keep starts the process and waits for it on one and the same thread: the parent-death signal of Linux fires when
// the starting thread ends, so the thread has to live as long as the child.
func (c *child) keep(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	if err := c.cmd.Start(); err != nil {
		started <- err
		return
	}
	c.pid = c.cmd.Process.Pid
	started <- nil
	_ = c.cmd.Wait()
}

func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// await polls ready until it succeeds while the child is alive. The error holds the tail of the child's log, and is
// errPortTaken when the log says so.
func (c *child) await(ctx context.Context, ready func(context.Context) error) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		err := ready(probe)
		cancel()
		if err == nil && c.alive() {
			return nil
		}
		ended := !c.alive() // before the log is read, so that the log is complete
		log := c.output()
		if saysPortTaken(log) {
			return fmt.Errorf("%s: %w; its log ends with:\n%s", c.name, errPortTaken, tail(log))
		}
		if ended {
			return fmt.Errorf("%s ended while starting (%s); its log ends with:\n%s", c.name, c.cmd.ProcessState, tail(log))
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %v); its log ends with:\n%s", c.name, ctx.Err(), err, tail(log))
		case <-poll.C:
		}
	}
}

// saysPortTaken knows the words of MariaDB, Redis (plain and cluster bus), Erlang and RabbitMQ. RabbitMQ says them
// many seconds before it ends.
func saysPortTaken(log string) bool {
	log = strings.ToLower(log)
	for _, words := range []string{"address already in use", "failed listening on port", "eaddrinuse", "could not bind to distribution port"} {
		if strings.Contains(log, words) {
			return true
		}
	}
	return false
}

// output is what the child has written so far.
func (c *child) output() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// tail is the part of a log that an error shows.
func tail(log string) string {
	return strings.TrimSpace(log[max(0, len(log)-logTailBytes):])
}

// kill ends the process with its process group, and waits for its end. There is nothing worth a clean shutdown: the
// data goes with it.
func (c *child) kill() error {
	if c.alive() { // so its id, which names the group, cannot belong to anybody else
		if err := syscall.Kill(-c.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s: %w", c.name, err)
		}
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(killTimeout):
		return fmt.Errorf("stop %s: process %d does not end", c.name, c.pid)
	}
}

// run is what a started server holds: its processes, in the order of their start, and its directory.
type run struct {
	dir      *workDir
	children []*child
	once     sync.Once
	err      error
}

// start adds a process.
func (r *run) start(name string, cmd *exec.Cmd) (*child, error) {
	c, err := startChild(name, r.dir.path, cmd)
	if err == nil {
		r.children = append(r.children, c)
	}
	return c, err
}

// stop ends the processes in reverse order and removes the directory, once. A nil run has nothing to stop.
func (r *run) stop() error {
	if r == nil {
		return nil
	}
	r.once.Do(func() {
		for i := len(r.children) - 1; i >= 0; i-- {
			r.err = errors.Join(r.err, r.children[i].kill())
		}
		r.err = errors.Join(r.err, r.dir.remove())
	})
	return r.err
}
