package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/net/html"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
	"idemscope/internal/testkit/idp"
)

// htpasswd returns the lines of a password file; names and passwords come in pairs.
func htpasswd(t *testing.T, pairs ...string) string {
	t.Helper()
	var lines strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		hash, err := bcrypt.GenerateFromPassword([]byte(pairs[i+1]), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s:%s\n", pairs[i], hash)
	}
	return lines.String()
}

// browser keeps cookies, and shows redirects instead of following them.
type browser struct {
	*http.Client
	t *testing.T
}

func newBrowser(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	return browser{&http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, t}
}

// ask returns the response and its body; form nil is a GET, headers come in pairs.
func (b browser) ask(address string, form url.Values, headers ...string) (*http.Response, string) {
	b.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response, string(text)
}

// as is ask with a name and a password of HTTP Basic.
func (b browser) as(name, password, address string, form url.Values) (*http.Response, string) {
	b.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	return b.ask(u.String(), form)
}

func credentials(name, password string) url.Values {
	return url.Values{"name": {name}, "password": {password}}
}

const passwordAuth = "console: {auth: {passwords_file: users, roles: {viewer: [alice, bob], payload: [alice], operator: [alice]}}}"

func TestSignInThroughTheWholeProgram(t *testing.T) {
	dir := t.TempDir()
	file, users := filepath.Join(dir, "idemscope.yaml"), filepath.Join(dir, "users")
	writeFile(t, users, htpasswd(t, "alice", "a-secret", "bob", "b-secret"))
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", passwordAuth, "pay"))
	address := serveConfig(t, file, nil)
	alice, bob := newBrowser(t), newBrowser(t)

	if r, _ := alice.ask(address+"/findings?flow=x", nil); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "./signin?return=findings%3Fflow%3Dx" {
		t.Fatalf("not signed in: %d to %q", r.StatusCode, r.Header.Get("Location"))
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/signin": 200, "/favicon.ico": 200, "/metrics": 401, "/api/v1/findings": 401, "/api/v1/lookup?type=pay&id=1": 401, "/": 303, "/nowhere": 303,
	} {
		if r, _ := newBrowser(t).ask(address+path, nil); r.StatusCode != want {
			t.Errorf("%s for nobody: %d, want %d", path, r.StatusCode, want)
		}
	}
	if r, body := alice.ask(address+"/signin", credentials("alice", "wrong")); r.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "name or the password is wrong") || len(r.Cookies()) > 0 {
		t.Errorf("a wrong password: %d\n%s", r.StatusCode, body)
	}
	form := credentials("alice", "a-secret")
	form.Set("return", "findings?flow=x")
	if r, _ := alice.ask(address+"/signin", form); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "./findings?flow=x" {
		t.Fatalf("sign-in: %d to %q", r.StatusCode, r.Header.Get("Location"))
	}
	if r, body := alice.ask(address+"/", nil); r.StatusCode != 200 || !strings.Contains(body, ">alice<") || !strings.Contains(body, `action="./signout"`) {
		t.Errorf("signed in: %d\n%s", r.StatusCode, body)
	}
	if r, _ := bob.ask(address+"/signin", credentials("bob", "b-secret")); r.StatusCode != http.StatusSeeOther {
		t.Errorf("bob: %d", r.StatusCode)
	}

	// Prometheus and programs send the same password along.
	for path, want := range map[string]int{"/metrics": 200, "/api/v1/findings": 200} {
		if r, _ := newBrowser(t).as("bob", "b-secret", address+path, nil); r.StatusCode != want {
			t.Errorf("%s for a program: %d", path, r.StatusCode)
		}
		if r, _ := newBrowser(t).as("bob", "wrong", address+path, nil); r.StatusCode != 401 || !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Basic") {
			t.Errorf("%s with a wrong password: %d", path, r.StatusCode)
		}
	}

	// Reading the configuration anew is for operators, signs nobody out, and takes
	// out whoever is gone from the file.
	for name, want := range map[string]int{"bob": 403, "nobody": 401} {
		if r, _ := newBrowser(t).as(name, "b-secret", address+"/-/reload", url.Values{}); r.StatusCode != want {
			t.Errorf("%s reloads: %d, want %d", name, r.StatusCode, want)
		}
	}
	reload := func() {
		if r, body := newBrowser(t).as("alice", "a-secret", address+"/-/reload", url.Values{}); r.StatusCode != 200 {
			t.Fatalf("reload: %d %s", r.StatusCode, body)
		}
	}
	reload()
	if r, _ := bob.ask(address+"/", nil); r.StatusCode != 200 {
		t.Errorf("a reload signed bob out: %d", r.StatusCode)
	}
	left, _, _ := strings.Cut(mustRead(t, users), "\n")
	writeFile(t, users, left+"\n")
	reload()
	if r, _ := bob.ask(address+"/", nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("bob is gone, and still signed in: %d", r.StatusCode)
	}
	if r, _ := alice.ask(address+"/signout", url.Values{}); r.StatusCode != http.StatusSeeOther {
		t.Errorf("sign-out: %d", r.StatusCode)
	}
	if r, _ := alice.ask(address+"/", nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("after it: %d", r.StatusCode)
	}
}

// TestSignInAtAProvider goes the whole way: to the provider, back, and on to where
// the person wanted to go, below a path prefix.
func TestSignInAtAProvider(t *testing.T) {
	p := idp.New(t)
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	root := fmt.Sprintf("http://127.0.0.1:%d/tools/idem/", port)
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf(`console:
  path_prefix: /tools/idem
  auth:
    oidc: {issuer: %q, client_id: %s, client_secret: %s, redirect_url: "%ssignin/callback"}
    roles: {viewer: ["group:oncall"]}`, p.URL, idp.ClientID, idp.ClientSecret, root), "pay"))
	serveConfig(t, file, nil)
	b := newBrowser(t)
	r, _ := b.ask(root+"signin/oidc?return=findings", nil)
	back := p.Authorize(t, r.Header.Get("Location"))
	r, body := b.ask(root+"signin/callback?"+back.Encode(), nil, "Sec-Fetch-Site", "cross-site")
	if to, err := r.Location(); err != nil || to.String() != root+"findings" {
		t.Fatalf("%d to %v, %v\n%s", r.StatusCode, to, err, body)
	}
	if r, body := b.ask(root+"findings", nil); r.StatusCode != http.StatusOK || !strings.Contains(body, ">alice@example.com<") {
		t.Errorf("signed in: %d\n%s", r.StatusCode, body)
	}
	if r, _ := b.ask(root+"signin/callback?"+back.Encode(), nil); r.StatusCode != http.StatusBadRequest {
		t.Errorf("the same answer once more: %d", r.StatusCode)
	}
	p.Change = func(claims map[string]any) { claims["groups"] = []string{"dev"} }
	other := newBrowser(t)
	r, _ = other.ask(root+"signin/oidc", nil)
	if r, _ = other.ask(root+"signin/callback?"+p.Authorize(t, r.Header.Get("Location")).Encode(), nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("without a role: %d", r.StatusCode)
	}
	if r, body := other.ask(root, nil); r.StatusCode != http.StatusForbidden || !strings.Contains(body, "needs the role viewer") {
		t.Errorf("without a role: %d\n%s", r.StatusCode, body)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheProxysNameThroughTheWholeProgram(t *testing.T) {
	for from, want := range map[string]int{"127.0.0.0/8": http.StatusOK, "10.0.0.0/8": http.StatusUnauthorized} {
		file := filepath.Join(t.TempDir(), "idemscope.yaml")
		writeFile(t, file, smallConfig(t, "127.0.0.1:0", fmt.Sprintf("console: {auth: {proxy: {header: X-Forwarded-User, from: [%q]}}}", from), "pay"))
		address := serveConfig(t, file, nil)
		r, body := newBrowser(t).ask(address+"/", nil, "X-Forwarded-User", "alice")
		if r.StatusCode != want || strings.Contains(body, ">alice<") != (want == http.StatusOK) {
			t.Errorf("from %s: %d", from, r.StatusCode)
		}
		if r, _ := newBrowser(t).ask(address+"/", nil); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("from %s without a name: %d", from, r.StatusCode)
		}
	}
}

// TestPathPrefix crawls the console behind a proxy that strips the path, and behind
// one that keeps it: nothing leads outside, also not the sign-in.
func TestPathPrefix(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "users"), htpasswd(t, "alice", "a-secret"))
	file := filepath.Join(dir, "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "console: {path_prefix: /tools/idem, actions: true, auth: {passwords_file: users, roles: {viewer: [alice], operator: [alice]}}}\n"+
		"cleanup: {tasks: {orders: {ledger: orders, retain: 168h, action: delete}}}", "pay"))
	backend, err := url.Parse(serveConfig(t, file, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, strips := range map[string]bool{"strips": true, "keeps": false} {
		t.Run(name, func(t *testing.T) {
			proxy := httptest.NewServer(prefixProxy(t, backend, strips))
			t.Cleanup(proxy.Close)
			b := newBrowser(t)
			root := proxy.URL + "/tools/idem/"
			r, _ := b.ask(root+"key?type=pay&id=1", nil)
			signIn, err := r.Location()
			if err != nil || !strings.HasPrefix(signIn.String(), root+"signin?return=") {
				t.Fatalf("sign-in at %v, %v", signIn, err)
			}
			form := credentials("alice", "a-secret")
			form.Set("return", signIn.Query().Get("return"))
			r, _ = b.ask(root+"signin", form)
			if back, err := r.Location(); err != nil || back.String() != root+"key?type=pay&id=1" {
				t.Fatalf("back to %v, %v", back, err)
			}
			if c := r.Cookies(); len(c) != 1 || c[0].Path != "/tools/idem/" {
				t.Fatalf("cookies %v", c)
			}
			c := &crawl{browser: b, root: root, seen: map[string]bool{}}
			for _, page := range []string{"", "key?type=pay&id=1", "key.md?type=pay&id=1", "findings", "findings.csv", "findings.json", "flows", "flows/payments", "cleanup", "audit", "action?kind=reset-record&type=pay&id=1", "doctor"} {
				if r, _ := b.ask(root+page, nil); r.StatusCode != http.StatusOK {
					t.Errorf("%s: %d", page, r.StatusCode)
				}
				c.visit(root + page)
			}
			for _, page := range []string{"key?type=pay", "search?q=1", "search?q=pay:1", "nowhere", "a/b/c", "api/v1/nothing"} {
				c.visit(root + page)
			}
			if len(c.seen) < 30 {
				t.Errorf("only %d addresses were found", len(c.seen))
			}
		})
	}
	// The path without its last slash leads to the start page.
	r, _ := newBrowser(t).ask(backend.String()+"/tools/idem?lang=zh", nil)
	if to, err := r.Location(); err != nil || to.Path != "/tools/idem/" || to.RawQuery != "lang=zh" {
		t.Errorf("leads to %v, %v", to, err)
	}
	// Health checks and Prometheus do not go through the proxy.
	for _, path := range []string{"/healthz", "/tools/idem/healthz"} {
		if r, _ := newBrowser(t).ask(backend.String()+path, nil); r.StatusCode != 200 {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	if r, _ := newBrowser(t).as("alice", "a-secret", backend.String()+"/metrics", nil); r.StatusCode != 200 {
		t.Errorf("metrics: %d", r.StatusCode)
	}
}

// prefixProxy serves the backend below /tools/idem, and nothing else.
func prefixProxy(t *testing.T, backend *url.URL, strips bool) http.Handler {
	reverse := &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }}
	var inner http.Handler = reverse
	if strips {
		inner = http.StripPrefix("/tools/idem", reverse)
	}
	mux := http.NewServeMux()
	mux.Handle("/tools/idem/", inner)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s is asked for, outside the prefix", r.URL)
		w.WriteHeader(http.StatusTeapot)
	})
	return mux
}

// crawl follows everything that pages name.
type crawl struct {
	browser
	root string
	seen map[string]bool
}

func (c *crawl) visit(address string) {
	if c.seen[address] || len(c.seen) > 500 {
		return
	}
	c.seen[address] = true
	r, body := c.ask(address, nil)
	if r.StatusCode == http.StatusTeapot || r.StatusCode >= 500 {
		c.t.Errorf("%s: %d", address, r.StatusCode)
		return
	}
	if to := r.Header.Get("Location"); to != "" {
		c.follow(r.Request.URL, "Location", to)
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return
	}
	document, err := html.Parse(strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for n := range document.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "href" || a.Key == "src" || a.Key == "action" {
				c.follow(r.Request.URL, "<"+n.Data+" "+a.Key+">", a.Val)
			}
		}
	}
}

// manuals are addresses elsewhere that pages may name: those of vendors.
var manuals = regexp.MustCompile(`^https://(www\.)?(rabbitmq\.com|redis\.io|dev\.mysql\.com|mariadb\.com)/`)

func (c *crawl) follow(page *url.URL, where, address string) {
	to, err := page.Parse(address)
	if err != nil {
		c.t.Errorf("%s: %s %q: %v", page, where, address, err)
		return
	}
	if manuals.MatchString(to.String()) {
		return
	}
	to.Fragment = ""
	if !strings.HasPrefix(to.String(), c.root) {
		c.t.Errorf("%s: %s %q leads outside, to %s", page, where, address, to)
		return
	}
	if !strings.HasSuffix(to.Path, "/signout") {
		c.visit(to.String())
	}
}

const secretResult = `{"order":12345678901234567890,"card":{"number":"x9x9x9"},"phone":"13812345678"}`

// TestPayloadsAreHiddenAndMasked looks at one stored result with every right and
// in every way.
func TestPayloadsAreHiddenAndMasked(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE message_deduplication (id BIGINT AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64) NOT NULL, message_type VARCHAR(64) NOT NULL,
		status ENUM('processing','completed','failed') NOT NULL, result TEXT, created_at TIMESTAMP NOT NULL, completed_at TIMESTAMP NULL, UNIQUE KEY uk (message_id, message_type))`)
	db.Exec(t, "INSERT INTO message_deduplication (message_id, message_type, status, result, created_at, completed_at) VALUES ('13812345678', 'pay', 'completed', ?, NOW(), NOW())", secretResult)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "users"), htpasswd(t, "alice", "a-secret", "bob", "b-secret"))
	file := filepath.Join(dir, "idemscope.yaml")
	writeFile(t, file, fmt.Sprintf(`
listen: 127.0.0.1:0
mysql: {main: {address: %q, database: %q, user: %q, password: %q}}
ledgers: {orders: {mysql: main, table: message_deduplication, preset: message_deduplication}}
flows: {payments: {biz_types: [pay], ledger: orders}}
console:
  auth: {passwords_file: users, roles: {viewer: ["*"], payload: [alice]}}
  mask: {json: ["$.card.number"], patterns: [phone]}
`, db.Addr, db.Name, db.User, db.Password))
	address := serveConfig(t, file, nil)
	const masked, id = `138****5678`, "13812345678"
	for _, path := range []string{"/key?type=pay&id=" + id, "/api/v1/lookup?type=pay&id=" + id, "/search?q=" + id, "/api/v1/search?q=" + id} {
		_, full := newBrowser(t).as("alice", "a-secret", address+path, nil)
		_, hidden := newBrowser(t).as("bob", "b-secret", address+path, nil)
		for who, body := range map[string]string{"alice": full, "bob": hidden} {
			if strings.Contains(body, "x9x9x9") || strings.Contains(body, "phone&#34;:&#34;"+id) || strings.Contains(body, `phone\":\"`+id) {
				t.Errorf("%s shows %s what is masked:\n%s", path, who, body)
			}
			if !strings.HasPrefix(path, "/search") && !strings.Contains(body, id) {
				t.Errorf("%s does not show %s the id", path, who)
			}
		}
		if strings.HasPrefix(path, "/search") {
			continue
		}
		if !strings.Contains(full, masked) || !strings.Contains(full, "12345678901234567890") {
			t.Errorf("%s hides too much from alice:\n%s", path, full)
		}
		if strings.Contains(hidden, masked) || strings.Contains(hidden, "12345678901234567890") {
			t.Errorf("%s shows bob the result:\n%s", path, hidden)
		}
		if !strings.Contains(hidden, "needs the role payload") && !strings.Contains(hidden, `"result_hidden": true`) {
			t.Errorf("%s does not say to bob that something is hidden:\n%s", path, hidden)
		}
	}
	var out bytes.Buffer
	if _, err := Lookup(t.Context(), LookupOptions{Config: file, Words: []string{"pay", id}, JSON: true, Language: flow.English, Out: &out}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "x9x9x9") || !strings.Contains(out.String(), masked) || !strings.Contains(out.String(), "12345678901234567890") {
		t.Errorf("the command line prints %s", out.String())
	}
}

func TestAPathOfAMaskThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "console: {mask: {json: [phone, \"items[0].phone\"]}}", "pay"))
	err := CheckConfig(file, false, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "console.mask.json[1]") || !strings.Contains(err.Error(), "idemscope.yaml:3:") {
		t.Errorf("%v", err)
	}
}
