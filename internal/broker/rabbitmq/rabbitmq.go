// Package rabbitmq reads the totals of named queues from RabbitMQ's management
// API. A user with the tag monitoring (or management) and the permissions "^$"
// "^$" "^$" on the vhost is enough: it cannot touch a message.
//
// It is not an AMQP client. It never asks for the messages of a queue, because
// RabbitMQ's "get" takes them out and puts them back, and it never lists all
// queues with their statistics, which costs a large broker seconds.
package rabbitmq

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"idemscope/internal/flow"
)

const (
	// defaultTimeout bounds one request when Options.Timeout is zero.
	defaultTimeout = time.Second
	// maxConnections bounds how many requests run at the same time.
	maxConnections = 4
	// maxBody bounds an answer. One queue takes less than 1 kB.
	maxBody = 1 << 20
)

// Options describes one configured RabbitMQ.
type Options struct {
	// Name is the configured name. Mandatory.
	Name string
	// Management is the URL of the management API, e.g. http://127.0.0.1:15672.
	// It may have a path prefix, and no credentials. Mandatory.
	Management string
	// Vhost is where the queues are. Empty means "/".
	Vhost string
	// User and Password are those of the management API. User is mandatory.
	User, Password string
	// Timeout bounds one request. Zero means 1 s.
	Timeout time.Duration
	// TLS is used for an https URL; nil means the system's certificates.
	TLS *tls.Config
}

// Broker reads one configured RabbitMQ. It is safe for concurrent use.
type Broker struct {
	opts   Options
	base   *url.URL
	client *http.Client
}

// New checks the options and makes a broker. It does no I/O.
func New(opts Options) (*Broker, error) {
	if opts.Vhost == "" {
		opts.Vhost = "/"
	}
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	base, err := opts.check()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq %s: %w", opts.Name, err)
	}
	return &Broker{opts: opts, base: base, client: &http.Client{
		// The transport takes no proxy from the environment: only the
		// configuration decides who sees the credential.
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: opts.Timeout}).DialContext,
			TLSClientConfig:     opts.TLS,
			TLSHandshakeTimeout: opts.Timeout,
			MaxConnsPerHost:     maxConnections,
			MaxIdleConnsPerHost: maxConnections,
			IdleConnTimeout:     time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (o Options) check() (*url.URL, error) {
	switch {
	case o.Name == "":
		return nil, errors.New("a name is needed")
	case o.User == "":
		return nil, errors.New("a user is needed")
	case isDots(o.Vhost):
		return nil, fmt.Errorf("vhost %q cannot be named in a URL", o.Vhost)
	}
	base, err := url.Parse(o.Management)
	// The error of url.Parse repeats the URL, and with it a password.
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, errors.New("management has to be a URL such as http://127.0.0.1:15672")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("management is the bare URL: user and password are settings of their own")
	}
	return base, nil
}

// Close ends all idle connections. No call may be running.
func (b *Broker) Close() error {
	b.client.CloseIdleConnections()
	return nil
}

// Ping returns the version of the broker. The error is an *Error; it holds no secret.
func (b *Broker) Ping(ctx context.Context) (string, error) {
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	start := time.Now()
	err := b.get(ctx, b.url("rabbitmq_version", "overview"), &overview)
	if err == nil && overview.Version == "" {
		err = errNotRabbitMQ
	}
	if err != nil {
		return "", &Error{Text: b.explain(err, time.Since(start)), Source: b.source(), cause: err}
	}
	return overview.Version, nil
}

// url joins segments, each escaped as one, below /api. columns cuts the answer
// down to what is needed.
func (b *Broker) url(columns string, segments ...string) string {
	address := strings.TrimSuffix(b.base.String(), "/") + "/api"
	for _, segment := range segments {
		address += "/" + url.PathEscape(segment)
	}
	return address + "?columns=" + columns
}

// isDots: a server takes these segments for steps in the path, escaped or not,
// and would answer about something else.
func isDots(segment string) bool { return segment == "." || segment == ".." }

// get asks for one resource and decodes the answer into result.
func (b *Broker) get(ctx context.Context, address string, result any) error {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	return b.do(req, http.StatusOK, result)
}

// do sends one request, and decodes the answer into result unless that is nil.
func (b *Broker) do(req *http.Request, want int, result any) error {
	req.SetBasicAuth(b.opts.User, b.opts.Password)
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != want:
		return refusal(resp, body)
	case result != nil && (len(body) > maxBody || json.Unmarshal(body, result) != nil):
		return errNotRabbitMQ
	}
	return nil
}

// source names the broker and the vhost.
func (b *Broker) source() string {
	return fmt.Sprintf("rabbitmq %s (%s, vhost %s)", b.opts.Name, b.base.Host, flow.Visible(b.opts.Vhost))
}
