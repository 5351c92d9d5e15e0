package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

const wantPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func shop(t testing.TB) Options {
	t.Helper()
	return Options{Desk: stories()[0].desk(t, shopFlows(t)), Flows: shopFlows(t), Version: "0.1.0"}
}

// TestRoutes: every address with its status, type and headers.
func TestRoutes(t *testing.T) {
	o := shop(t)
	o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "idem_up 1\n") })
	server := serve(t, o)
	const page, api, plain = "text/html; charset=utf-8", "application/json; charset=utf-8", "text/plain; charset=utf-8"
	for _, c := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"GET", "/", 200, page},
		{"HEAD", "/", 200, page},
		{"GET", "/key?type=order_paid&id=" + orderNo, 200, page},
		{"HEAD", "/key?type=order_paid&id=" + orderNo, 200, page},
		{"GET", "/key?type=order_paid&id=", 200, page},
		{"GET", "/key?type=order_paid", 400, page},
		{"GET", "/key?id=1", 400, page},
		{"GET", "/key", 400, page},
		{"GET", "/key?type=order_paid&id=1&id=2", 400, page},
		{"GET", "/key?type=order_paid&id=%zz", 400, page},
		{"GET", "/key?type=order_paid&id=1;2", 400, page},
		{"GET", "/key?type=nobody&id=1", 404, page},
		{"GET", "/key?type=order_paid&id=1&flow=nobody", 404, page},
		{"GET", "/key?type=refund&id=1", 300, page},
		{"GET", "/key?type=refund&id=1&flow=mirror", 200, page},
		{"GET", "/search?q=" + orderNo, 200, page},
		{"GET", "/search?q=order_paid:1", 303, ""},
		{"GET", "/search?q=", 400, page},
		{"GET", "/search", 400, page},
		{"GET", "/search?q=%7B%22x%22:1%7D", 400, page},
		{"GET", "/search?q=1&q=2", 400, page},
		{"GET", "/api/v1/lookup?type=order_paid&id=" + orderNo, 200, api},
		{"HEAD", "/api/v1/lookup?type=order_paid&id=" + orderNo, 200, api},
		{"GET", "/api/v1/lookup?type=order_paid", 400, api},
		{"GET", "/api/v1/lookup?type=nobody&id=1", 404, api},
		{"GET", "/api/v1/lookup?type=refund&id=1", 300, api},
		{"GET", "/api/v1/lookup?%", 400, api},
		{"GET", "/api/v1/search?q=" + orderNo, 200, api},
		{"GET", "/api/v1/search?q=", 400, api},
		{"GET", "/api/v1/nothing", 404, api},
		{"POST", "/api/v1/lookup?type=order_paid&id=1", 405, api},
		{"GET", "/nowhere", 404, page},
		{"GET", "/no/such/page", 404, page},
		{"GET", "/key/", 404, page},
		{"GET", "//example.com", 404, page},
		{"GET", "/static/console.css", 404, page},
		{"GET", "/static/../console.go", 404, page},
		{"POST", "/", 405, page},
		{"POST", "/key?type=order_paid&id=1", 405, page},
		{"DELETE", "/key?type=order_paid&id=1", 405, page},
		{"OPTIONS", "/", 405, page},
		{"GET", "/metrics", 200, plain},
		{"GET", "/healthz", 200, plain},
		{"HEAD", "/healthz", 200, plain},
		{"GET", "/readyz", 200, plain},
		{"GET", "/favicon.ico", 200, "image/svg+xml"},
		{"GET", "/favicon.svg", 200, "image/svg+xml"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			got := ask(t, c.method, server.URL+c.path)
			if got.StatusCode != c.status || got.Header.Get("Content-Type") != c.kind {
				t.Errorf("%d %q, want %d %q", got.StatusCode, got.Header.Get("Content-Type"), c.status, c.kind)
			}
			checkHeaders(t, got, "no-store")
			if c.kind == page && c.method != "HEAD" {
				got.document(t)
			}
			if c.kind == api && c.method != "HEAD" && c.status != 200 {
				checkAPIError(t, got)
			}
			if c.method == "HEAD" && got.body != "" {
				t.Errorf("a HEAD has a body")
			}
		})
	}
}

func checkHeaders(t *testing.T, r reply, caching string) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": wantPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": caching,
	} {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if cookies := r.Header.Values("Set-Cookie"); len(cookies) > 0 {
		t.Errorf("cookies %q", cookies)
	}
}

func checkAPIError(t *testing.T, r reply) {
	t.Helper()
	var got struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || got.Error.Code == "" || got.Error.Message == "" {
		t.Errorf("%v in %s", err, r.body)
	}
}

// TestStatic: files may be kept for ever, because their names change with them.
func TestStatic(t *testing.T) {
	server := serve(t, shop(t))
	page := get(t, server.URL+"/").document(t)
	var addresses []string
	for _, link := range append(page.all("link", ""), page.all("script", "")...) {
		for _, name := range []string{"href", "src"} {
			if address, ok := attribute(link.Node, name); ok {
				addresses = append(addresses, address)
			}
		}
	}
	if len(addresses) != 3 {
		t.Fatalf("%q, want the style sheet, the script and the icon", addresses)
	}
	for _, address := range addresses {
		address = server.URL + strings.TrimPrefix(address, ".")
		file := get(t, address)
		if file.StatusCode != 200 || len(file.body) == 0 {
			t.Errorf("%s: %d", address, file.StatusCode)
		}
		checkHeaders(t, file, "public, max-age=31536000, immutable")
		if again := get(t, address, "If-None-Match", file.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d with its ETag", address, again.StatusCode)
		}
		if strings.HasSuffix(address, ".js") && len(file.body) > 12000 {
			t.Errorf("the script has %d bytes", len(file.body))
		}
	}
}

// TestPrefix: the pages work below any path, also pages below the root.
func TestPrefix(t *testing.T) {
	h, err := New(shop(t))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/tools/idem/", http.StripPrefix("/tools/idem", h))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, path := range []string{"/", "/key?type=order_paid&id=" + orderNo, "/search?q=" + orderNo, "/no/such/page", "/nowhere"} {
		base, err := url.Parse(server.URL + "/tools/idem" + path)
		if err != nil {
			t.Fatal(err)
		}
		page := get(t, base.String()).document(t)
		for _, n := range page.elements() {
			for _, name := range []string{"href", "src", "action"} {
				address, ok := attribute(n, name)
				if !ok || strings.HasPrefix(address, "?") {
					continue
				}
				target, err := base.Parse(address)
				if err != nil {
					t.Fatal(err)
				}
				if got := get(t, target.String()); got.StatusCode >= 400 && name != "action" && !strings.HasPrefix(address, "#") {
					t.Errorf("%s: %s leads to %s: %d", path, address, target, got.StatusCode)
				}
			}
		}
	}
	redirect := get(t, server.URL+"/tools/idem/search?q=order_paid:1")
	if got := redirect.Header.Get("Location"); got != "./key?id=1&type=order_paid" {
		t.Errorf("Location %q", got)
	}
}

// TestReady: what is not ready is named.
func TestReady(t *testing.T) {
	o := shop(t)
	o.Ready = func(context.Context) []Problem {
		return []Problem{{Part: "mysql main", Reason: flow.T("access denied", "拒绝访问")}}
	}
	got := get(t, serve(t, o).URL+"/readyz")
	if got.StatusCode != 503 || got.body != "mysql main: access denied\n" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
}

// broken is a desk that fails in the ways in which one must not.
type broken struct {
	Desk
	err error
}

func (b broken) Search(context.Context, string) (answer.Result, error) { return answer.Result{}, b.err }
func (b broken) AnswerWithin(context.Context, flow.Place, time.Duration) (answer.Answer, error) {
	panic("no such thing: id 4711")
}
func (b broken) Answer(context.Context, flow.Place) (answer.Answer, error) {
	panic("no such thing: id 4711")
}

// TestFailures: a failure of the console is a plain 500, is logged, and tells
// nothing of its cause.
func TestFailures(t *testing.T) {
	var log bytes.Buffer
	o := shop(t)
	o.Desk = broken{Desk: o.Desk, err: errors.New("dial tcp 10.1.2.3: secret")}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	server := serve(t, o)
	for _, path := range []string{"/key?type=order_paid&id=1", "/search?q=1", "/api/v1/lookup?type=order_paid&id=1", "/api/v1/search?q=1"} {
		got := get(t, server.URL+path)
		if got.StatusCode != 500 {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
		checkHeaders(t, got, "no-store")
		for _, cause := range []string{"4711", "secret", "goroutine", ".go:"} {
			if strings.Contains(got.body, cause) {
				t.Errorf("%s tells its cause: %s", path, got.body)
			}
		}
	}
	for _, want := range []string{"no such thing", "secret", "console"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "id=1") {
		t.Errorf("the log holds ids")
	}
}

// TestOptions: what is missing or wrong stops the start.
func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no desk":  func(o *Options) { o.Desk = nil },
		"no flow":  func(o *Options) { o.Flows = nil },
		"language": func(o *Options) { o.Language = "fr" },
	} {
		o := shop(t)
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
