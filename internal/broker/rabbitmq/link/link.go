// Package link connects to RabbitMQ by AMQP 0-9-1, or 1.0, and puts into words why
// that fails, without the credential.
//
// It is for what idemscope owns itself: the queues of its tap and its trace. It
// knows nothing of any queue.
package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
)

const (
	// dialTimeout bounds connecting and logging in.
	dialTimeout = 5 * time.Second
	// heartbeat is half of how long a dead line goes unnoticed.
	heartbeat = 10 * time.Second
)

// Address is where and as whom to connect.
type Address struct {
	uri  string
	user string
	host string
	tls  *tls.Config
}

// errAddress spares the text that is wrong: it holds a password.
var errAddress = errors.New(`must be a URL with user and vhost, such as "amqp://user:password@127.0.0.1:5672/%2F"; in user, password and vhost write / as %2F, @ as %40, : as %3A`)

// ParseAddress reads an amqp or amqps URL. tls is for amqps; nil means the
// system's certificates. The error does not quote the URL.
func ParseAddress(uri string, tls *tls.Config) (Address, error) {
	parsed, err := amqp.ParseURI(uri)
	if err != nil || !strings.Contains(uri, "@") || parsed.Username == "" {
		return Address{}, errAddress
	}
	return Address{uri: uri, user: parsed.Username, host: net.JoinHostPort(parsed.Host, strconv.Itoa(parsed.Port)), tls: tls}, nil
}

// User is the name of the user.
func (a Address) User() string { return a.user }

// Host is host:port.
func (a Address) Host() string { return a.host }

// Dial connects. name is what RabbitMQ shows for the connection. ctx bounds
// connecting only.
func (a Address) Dial(ctx context.Context, name string) (*amqp.Connection, error) {
	config := amqp.Config{Heartbeat: heartbeat, TLSClientConfig: a.tls, Properties: amqp.NewConnectionProperties()}
	config.Properties.SetClientConnectionName(name)
	stop := func() bool { return true }
	config.Dial = func(network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		// The library lifts this deadline once the login is done.
		if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	conn, err := amqp.DialConfig(a.uri, config)
	if err != nil {
		stop()
		return nil, err
	}
	if !stop() {
		_ = conn.CloseDeadline(time.Now())
		return nil, context.Cause(ctx)
	}
	return conn, nil
}

// Close ends a connection within a second, whether or not it still works.
func Close(conn *amqp.Connection) { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }

// Explain puts an error of connecting, declaring or consuming into words.
func (a Address) Explain(err error) flow.Text {
	var said worded
	var refused *amqp.Error
	var dns *net.DNSError
	var timeout net.Error
	var unknownCA x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	refused10 := a.explain10(err)
	switch {
	case errors.As(err, &said):
		return said.Words()
	case errors.As(err, &refused) && refused.Code != amqp.ChannelError:
		return a.explainRefusal(refused)
	case !refused10.Empty():
		return refused10
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return flow.T("%s did not answer in time", "%s 没有及时应答", a.host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return flow.T("%s did not answer within %s", "%s 在 %s内没有应答", a.host, flow.Span(dialTimeout))
	case errors.As(err, &dns):
		return flow.T("the host name %s is not known", "主机名 %s 无法解析", dns.Name)
	case errors.As(err, &unknownCA), errors.As(err, &certificate):
		return flow.T("the TLS certificate of %s is not trusted: check tls.ca_file and tls.server_name", "%s 的 TLS 证书不受信任：请检查 tls.ca_file 和 tls.server_name", a.host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return flow.T("connection refused: nothing listens on %s", "连接被拒绝：%s 上没有服务在监听", a.host)
	}
	return flow.T("the connection to %s was lost", "与 %s 的连接已断开", a.host)
}

func (a Address) explainRefusal(e *amqp.Error) flow.Text {
	user, reason := flow.Visible(a.user), flow.Visible(cut(e.Reason))
	switch {
	case !e.Server && e.Code == amqp.AccessRefused, e.Code == amqp.AccessRefused && strings.Contains(e.Reason, "Login was refused"):
		return flow.T("%s refused the login of user %s: wrong user or password, or no rights on the vhost", "%s 拒绝了用户 %s 的登录：用户或密码错误，或者没有该 vhost 的权限", a.host, user)
	case e.Code == amqp.AccessRefused:
		return flow.T("user %s lacks a permission: %s", "用户 %s 缺少权限：%s", user, reason)
	case e.Code == amqp.NotAllowed && strings.Contains(e.Reason, "vhost"):
		return flow.T("user %s may not use the vhost, or there is no such vhost: %s", "用户 %s 无权使用该 vhost，或该 vhost 不存在：%s", user, reason)
	}
	return flow.T("RabbitMQ refuses: %d %s", "RabbitMQ 拒绝：%d %s", e.Code, reason)
}

// cut bounds a foreign text inside one of ours.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Code is RabbitMQ's code of a refusal, 0 for any other error.
func Code(err error) int {
	var refused *amqp.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return 0
}

// Error is a failure in words for people, without a credential.
type Error struct {
	Text  flow.Text
	cause error
}

// Error is for logs.
func (e *Error) Error() string { return e.Text.EN }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// Fail words an error. doing says in which attempt it happened.
func (a Address) Fail(doing flow.Text, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Text: flow.T("%s: %s", "%s：%s", doing, a.Explain(err)), cause: err}
}

// Say makes an error of a text alone.
func Say(text flow.Text) error { return &Error{Text: text} }

// Words are the explanation for people.
func (e *Error) Words() flow.Text { return e.Text }

// worded is an error that has a text in both languages.
type worded interface {
	error
	Words() flow.Text
}

// Words are the text of err: its own in both languages, if it has one.
func Words(err error) flow.Text {
	var said worded
	if errors.As(err, &said) {
		return said.Words()
	}
	return flow.T("%s", "%s", fmt.Sprint(err))
}
