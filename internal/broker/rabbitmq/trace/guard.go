package trace

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"idemscope/internal/broker/rabbitmq"
)

// Order is what the guard needs to turn tracing off. It goes to the guard through
// a pipe: neither the arguments nor the environment of a process are secret.
type Order struct {
	// Management, Vhost, User and Password are as in rabbitmq.Options.
	Management, Vhost, User, Password string
	// CA, Cert and Key are in PEM form; empty without a tls section.
	CA, Cert, Key string
	// ServerName and Insecure are as in the tls section.
	ServerName string
	Insecure   bool
	// Deadline is when tracing ends whatever the parent does.
	Deadline time.Time
}

const (
	wordReady = "ready\n"
	wordDone  = "done\n"
	// guardStart bounds the start of the guard.
	guardStart = 10 * time.Second
	// guardTries is how long the guard tries to turn tracing off.
	guardTries = 10 * time.Minute
	retryPause = time.Second
)

// Guard is the whole life of a guard process: it reads an order from in, says
// that it is ready, and turns tracing off at the deadline, at SIGTERM, or when in
// ends without the word that all is done, as it does when the parent was killed.
func Guard(in io.Reader, out io.Writer) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	defer signal.Stop(stop)
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)

	lines := bufio.NewReader(in)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("trace guard: no order: %w", err)
	}
	var order Order
	if err := json.Unmarshal(text, &order); err != nil {
		return errors.New("trace guard: an order that cannot be read")
	}
	manager, err := order.manager()
	if err != nil {
		return fmt.Errorf("trace guard: %w", err)
	}
	if _, err := io.WriteString(out, wordReady); err != nil {
		return fmt.Errorf("trace guard: %w", err)
	}
	parent := make(chan string, 1)
	go func() {
		word, _ := lines.ReadString('\n') // empty at the end of a pipe whose writer died
		parent <- word
	}()
	deadline := time.NewTimer(time.Until(order.Deadline))
	defer deadline.Stop()
	select {
	case word := <-parent:
		if word == wordDone {
			return nil
		}
	case <-stop:
	case <-deadline.C:
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardTries)
	defer cancel()
	return switchOff(ctx, manager)
}

func (o Order) manager() (*rabbitmq.Broker, error) {
	options := rabbitmq.Options{Name: "guard", Management: o.Management, Vhost: o.Vhost, User: o.User, Password: o.Password, Timeout: 5 * time.Second}
	if o.CA != "" || o.Cert != "" || o.ServerName != "" || o.Insecure {
		options.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName, InsecureSkipVerify: o.Insecure}
	}
	if o.CA != "" {
		options.TLS.RootCAs = x509.NewCertPool()
		if !options.TLS.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("no certificate in the CA file")
		}
	}
	if o.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(o.Cert), []byte(o.Key))
		if err != nil {
			return nil, errors.New("our own certificate cannot be used")
		}
		options.TLS.Certificates = []tls.Certificate{pair}
	}
	return rabbitmq.New(options)
}

// switchOff turns tracing off, again and again until it works or ctx ends.
func switchOff(ctx context.Context, m Manager) error {
	for {
		err := m.SetTracing(ctx, false)
		if err == nil {
			return nil
		}
		wait := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}

// guard is the parent's end of a guard process.
type guard struct {
	in   io.WriteCloser
	done chan struct{}
}

// startGuard returns when the guard is ready.
func startGuard(ctx context.Context, cmd *exec.Cmd, order Order) (*guard, error) {
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	g := &guard{in: in, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		word, err := bufio.NewReader(out).ReadString('\n')
		if word != wordReady {
			err = errors.Join(errors.New("the guard did not get ready"), err)
		}
		ready <- err
		_ = cmd.Wait()
	}()
	if _, err = in.Write(append(text, '\n')); err == nil {
		timer := time.NewTimer(guardStart)
		defer timer.Stop()
		select {
		case err = <-ready:
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			err = errors.New("the guard takes too long")
		}
	}
	if err != nil {
		_ = in.Close()
		_ = cmd.Process.Kill()
		<-g.done
		return nil, err
	}
	return g, nil
}

// release ends the guard: tracing is off.
func (g *guard) release() {
	_, _ = io.WriteString(g.in, wordDone)
	_ = g.in.Close()
	<-g.done
}

// abandon leaves it to the guard to turn tracing off.
func (g *guard) abandon() { _ = g.in.Close() }
