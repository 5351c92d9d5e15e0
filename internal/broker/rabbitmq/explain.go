package rabbitmq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"idemscope/internal/flow"
)

// Error says why RabbitMQ could not be read. Neither its text nor its message
// holds a secret.
type Error struct {
	// Text is the explanation for people.
	Text flow.Text
	// Source names the broker, as in flow.Observation.
	Source string
	cause  error
}

// Error is for logs.
func (e *Error) Error() string { return e.Source + ": " + e.Text.EN }

// Unwrap gives the HTTP client's error.
func (e *Error) Unwrap() error { return e.cause }

var (
	// errNotRabbitMQ: the answer is none that the management API would give.
	errNotRabbitMQ = errors.New("not the RabbitMQ management API")
	// errNoVhost: RabbitMQ does not know the vhost.
	errNoVhost = errors.New("no such vhost")
	// errNoQueue: RabbitMQ has the vhost, and not the queue.
	errNoQueue = errors.New("no such queue")
	// errUnnameable: the name cannot be a part of a URL.
	errUnnameable = errors.New("a queue that cannot be named in a URL")
)

// httpError is an answer other than 200.
type httpError struct {
	status int
	// reason is RabbitMQ's own, empty when the answer is somebody else's.
	reason string
	// location is where a redirect leads: scheme and host only.
	location string
}

func (e *httpError) Error() string { return fmt.Sprintf("HTTP status %d %s", e.status, e.reason) }

// refusal reads an answer other than 200.
func refusal(resp *http.Response, body []byte) error {
	var said struct{ Reason string }
	e := &httpError{status: resp.StatusCode}
	if json.Unmarshal(body, &said) == nil {
		e.reason = said.Reason
	}
	if to, err := resp.Location(); err == nil {
		e.location = (&url.URL{Scheme: to.Scheme, Host: to.Host}).String()
	}
	return e
}

// isMissing: RabbitMQ itself says that there is no such object.
func isMissing(err error) bool {
	var refused *httpError
	return errors.As(err, &refused) && refused.status == http.StatusNotFound && refused.reason != ""
}

// explain puts one error into words: what it means and, where it is known, what
// to change.
func (b *Broker) explain(err error, took time.Duration) flow.Text {
	var refused *httpError
	if errors.As(err, &refused) {
		return b.explainStatus(refused)
	}
	var dnsErr *net.DNSError
	var unknownCA x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	var opErr *net.OpError
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // which spares the URL
	}
	switch {
	case errors.Is(err, errNoVhost):
		return flow.T("there is no vhost %s: check vhost", "没有名为 %s 的 vhost：请检查 vhost", flow.Visible(b.opts.Vhost))
	case errors.Is(err, errUnnameable):
		return flow.T("the management API cannot be asked for a queue with this name", "管理接口无法查询该名称的队列")
	case errors.Is(err, errNotRabbitMQ):
		return flow.T("%s answers, but not as the RabbitMQ management API: check management", "%s 有应答，但不是 RabbitMQ 管理接口：请检查 management", b.base.Host)
	case errors.Is(err, context.Canceled):
		return flow.T("the question was called off before RabbitMQ answered", "在 RabbitMQ 应答之前查询已被取消")
	case errors.As(err, &timeout) && timeout.Timeout():
		return flow.T("the management API gave no answer within %s", "管理接口在 %s内没有应答", flow.Span(took.Round(10*time.Millisecond)))
	case errors.As(err, &dnsErr):
		return flow.T("the host name %s is not known", "主机名 %s 无法解析", dnsErr.Name)
	case errors.As(err, &unknownCA), errors.As(err, &certificate):
		return flow.T("the TLS certificate of the management API is not trusted: check tls.ca_file and tls.server_name", "管理接口的 TLS 证书不受信任：请检查 tls.ca_file 和 tls.server_name")
	case errors.Is(err, syscall.ECONNREFUSED):
		return flow.T("connection refused: nothing listens on %s; is the management plugin enabled?", "连接被拒绝：%s 上没有服务在监听；是否启用了 management 插件？", b.base.Host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return flow.T("%s closed the connection: it stops, or it does not speak %s", "%s 关闭了连接：可能正在停止，或者不使用 %s", b.base.Host, b.base.Scheme)
	case errors.As(err, &opErr):
		return flow.T("no connection to %s: %s", "无法连接 %s：%s", b.base.Host, opErr.Err)
	}
	return flow.T("the management API could not be read: %s", "无法读取管理接口：%s", b.harmless(err.Error()))
}

func (b *Broker) explainStatus(e *httpError) flow.Text {
	switch {
	case e.location != "":
		return flow.T("the address redirects to %s: configure the final address", "该地址重定向到 %s：请配置最终地址", b.harmless(e.location))
	case e.status == http.StatusUnauthorized && strings.Contains(e.reason, "virtual host"):
		return flow.T("the user %s may not see vhost %s: give it permissions there (^$ ^$ ^$ is enough)", "用户 %s 无权查看 vhost %s：请为其授权（^$ ^$ ^$ 即可）",
			flow.Visible(b.opts.User), flow.Visible(b.opts.Vhost))
	case e.status == http.StatusUnauthorized && strings.Contains(e.reason, "management user"):
		return flow.T("the user %s may not use the management API: give it the tag monitoring", "用户 %s 无权使用管理接口：请授予 monitoring 标签", flow.Visible(b.opts.User))
	case e.status == http.StatusUnauthorized:
		return flow.T("wrong RabbitMQ user or password", "RabbitMQ 用户或密码错误")
	case e.reason == "" && e.status < http.StatusInternalServerError:
		return b.explain(errNotRabbitMQ, 0)
	}
	return flow.T("the management API answers with status %d %s", "管理接口返回状态 %d %s", e.status, b.harmless(e.reason))
}

// maxMessage bounds a foreign message inside one of ours, in bytes.
const maxMessage = 200

// harmless makes a foreign message fit to be shown.
func (b *Broker) harmless(message string) string {
	if b.opts.Password != "" {
		message = strings.ReplaceAll(message, b.opts.Password, "<secret>")
	}
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return flow.Visible(message)
}
