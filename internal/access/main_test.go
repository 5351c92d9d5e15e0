package access

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"idemscope/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// kept is a record in memory.
type kept struct {
	mu      sync.Mutex
	entries []audit.Entry
	err     error
}

func (k *kept) Append(_ context.Context, e audit.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries = append(k.entries, e)
	return k.err
}

// take returns what was recorded since it was last asked.
func (k *kept) take() []audit.Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.entries
	k.entries = nil
	return all
}

// desk is a guard with everything around it that a test looks at.
type desk struct {
	*Guard
	clock *clock
	kept  *kept
	log   *bytes.Buffer
}

// newDesk sets up a guard; options may leave out what every guard needs.
func newDesk(t *testing.T, o Options) desk {
	t.Helper()
	d := desk{clock: &clock{at: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)}, kept: &kept{}, log: &bytes.Buffer{}}
	if o.Memory == nil {
		o.Memory = NewMemory(d.clock.now)
	}
	o.Audit, o.Logger = d.kept, slog.New(slog.NewTextHandler(d.log, nil))
	var err error
	if d.Guard, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func user(t *testing.T, name, password string) User {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return User{Name: name, Hash: hash}
}

// staff are three people with different rights.
func staff(t *testing.T) Options {
	return Options{
		Users: []User{user(t, "alice", "a-secret"), user(t, "bob", "b-secret"), user(t, "carol", "c-secret")},
		Rules: Rules{Viewer: {"alice", "bob"}, Payload: {"alice"}, Operator: {"alice", "group:oncall"}},
	}
}

// request is one from a browser on the console's own page; headers come in pairs.
func request(method, target string, form url.Values, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	r.Host, r.RemoteAddr = "console.example:9877", "192.0.2.7:4711"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if err := r.ParseForm(); err != nil {
			panic(err)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func basic(r *http.Request, name, password string) *http.Request {
	r.SetBasicAuth(name, password)
	return r
}

// signIn returns the cookie of a sign-in.
func (d desk) signIn(t *testing.T, name, password string) *http.Cookie {
	t.Helper()
	cookie, err := d.SignIn(request("POST", "/signin", nil), name, password)
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

func withCookie(r *http.Request, c *http.Cookie) *http.Request {
	r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	return r
}

func networks(t *testing.T, texts ...string) (all []netip.Prefix) {
	t.Helper()
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}
