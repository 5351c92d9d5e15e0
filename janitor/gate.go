package janitor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// gateTimeout bounds one question to a query or a URL.
const gateTimeout = 2 * time.Second

// Query is a question of the operator to the server of a task.
type Query struct {
	// Number asks it. The error says why there is none; ledger.Explain words it.
	Number func(ctx context.Context) (float64, error)
	// Max is the highest number with which a sweep goes on.
	Max float64
}

// ask is why the query holds the sweep up, or nil.
func (q *Query) ask(ctx context.Context) *hold {
	if q == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	n, err := q.Number(ctx)
	switch {
	case err != nil:
		return &hold{ByQueryFailed, flow.T("the query of the throttle gives no number: %s; mend throttle.query", "限流查询没有给出数字：%s；请修正 throttle.query", ledger.Explain(err))}
	case n <= q.Max: // what is no number is not within any limit
		return nil
	}
	return &hold{ByQuery, flow.T("the query of the throttle gives %s; the limit is %s", "限流查询结果为 %s，上限为 %s", plain(n), plain(q.Max))}
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Gate is a URL that is asked whether a sweep may go on: an answer 2xx lets it.
type Gate struct {
	address string
	// place is scheme, host and port, all that is shown: the rest may hold a token.
	place  string
	client *http.Client
}

// NewGate checks the URL and asks nothing. The error does not repeat the URL.
func NewGate(address string) (*Gate, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("it has to be an http or https URL")
	}
	return &Gate{address: address, place: u.Scheme + "://" + u.Host, client: &http.Client{
		Timeout: gateTimeout,
		// The transport takes no proxy from the environment: only the
		// configuration decides who is asked.
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: gateTimeout}).DialContext, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends all idle connections. No question may be running.
func (g *Gate) Close() error {
	g.client.CloseIdleConnections()
	return nil
}

// ask is why the URL holds the sweep up, or nil. The answer's text is not read.
func (g *Gate) ask(ctx context.Context) *hold {
	if g == nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.address, nil)
	if err != nil {
		return g.silent(err)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return g.silent(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return nil
	}
	return &hold{ByHTTP, flow.T("%s says no: HTTP %d; 2xx lets the task go on", "%s 不允许继续：HTTP %d；返回 2xx 时任务继续", g.place, resp.StatusCode)}
}

// silent words that there was no answer. The error of package http repeats the
// URL, so that only its kind is told.
func (g *Gate) silent(err error) *hold {
	why := flow.T("the connection failed", "连接失败")
	var late interface{ Timeout() bool }
	var name *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = flow.T("connection refused", "连接被拒绝")
	case errors.As(err, &name):
		why = flow.T("the host is not known", "无法解析主机名")
	case errors.As(err, &late) && late.Timeout():
		why = flow.T("no answer within %s", "%s内没有应答", flow.Span(gateTimeout))
	}
	return &hold{ByHTTPFailed, flow.T("%s cannot be asked whether to go on: %s", "无法询问 %s 是否可以继续：%s", g.place, why)}
}
