// Command withrabbit runs a command with one private RabbitMQ for all of it:
//
//	withrabbit go test ./...
//
// A RabbitMQ takes some ten seconds to start, too long for one per package. The command finds it through the
// environment variable that testkit.RabbitMQ reads. The exit code is the command's own. Withrabbit is for test runs
// only; it passes the broker's random password to the command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// Exit codes when there is none of the command; those of a shell.
const (
	exitUsage     = 2
	exitNoBroker  = 1
	exitNotFound  = 127
	exitSignalled = 128
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withrabbit COMMAND [ARGUMENT...]")
		os.Exit(exitUsage)
	}
	os.Exit(run(os.Args[1:]))
}

func run(command []string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	server, code := start(signals)
	if server == nil {
		return code
	}
	code = runCommand(command, server, signals)
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "withrabbit:", err)
		code = max(code, exitNoBroker)
	}
	return code
}

// start returns the broker, or nil and the exit code. A signal ends the start.
func start(signals <-chan os.Signal) (*servers.RabbitMQ, int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		server *servers.RabbitMQ
		err    error
	}
	results := make(chan result, 1)
	go func() {
		server, err := servers.StartRabbitMQ(ctx, testkit.RabbitMQOptions())
		results <- result{server, err}
	}()
	select {
	case r := <-results:
		if r.err != nil {
			fmt.Fprintln(os.Stderr, "withrabbit:", r.err)
			return nil, exitNoBroker
		}
		return r.server, 0
	case s := <-signals:
		cancel()
		if r := <-results; r.server != nil && r.err == nil {
			_ = r.server.Stop()
		}
		return nil, exitSignalled + int(s.(syscall.Signal))
	}
}

// runCommand passes signals on to the command and returns its exit code.
func runCommand(command []string, server *servers.RabbitMQ, signals <-chan os.Signal) int {
	text, err := json.Marshal(server)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withrabbit:", err)
		return exitNoBroker
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), testkit.RabbitMQEnv+"="+string(text))
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "withrabbit:", err)
		return exitNotFound
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			return exitCode(err)
		}
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return exitNoBroker
		}
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return exit.ExitCode()
}
