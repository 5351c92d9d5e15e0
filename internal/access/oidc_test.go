package access

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit/idp"
)

// withProvider returns a guard and the provider that it asks.
func withProvider(t *testing.T) (desk, *idp.Provider) {
	t.Helper()
	p := idp.New(t)
	d := newDesk(t, Options{
		OIDC: &OIDC{
			Issuer: p.URL, ClientID: idp.ClientID, ClientSecret: idp.ClientSecret, RedirectURL: "https://idem.example/signin/callback",
			NameClaim: "email", GroupsClaim: "groups", Scopes: []string{"email"},
		},
		Rules: Rules{Viewer: {"*"}, Operator: {"group:oncall"}},
	})
	p.Now = d.clock.now
	return d, p
}

// callback is the browser as it comes back with the provider's answer.
func callback(answer url.Values, cookies ...*http.Cookie) *http.Request {
	r := request("GET", "/signin/callback?"+answer.Encode(), nil, "Sec-Fetch-Site", "cross-site")
	for _, c := range cookies {
		withCookie(r, c)
	}
	return r
}

func (d desk) beginAt(t *testing.T, returnTo string) (address string, cookie *http.Cookie) {
	t.Helper()
	address, cookie, err := d.Begin(request("GET", "/signin/oidc", nil), returnTo)
	if err != nil {
		t.Fatal(err)
	}
	return address, cookie
}

func TestSignInAtTheProvider(t *testing.T) {
	d, p := withProvider(t)
	address, cookie := d.beginAt(t, "key?type=pay&id=1")
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 600 {
		t.Errorf("cookie %+v", cookie)
	}
	answer := p.Authorize(t, address)
	cookies, back, err := d.Finish(callback(answer, cookie))
	if err != nil || back != "key?type=pay&id=1" || len(cookies) != 2 || cookies[0].MaxAge >= 0 || !cookies[1].Secure {
		t.Fatalf("%v, back to %q, cookies %+v", err, back, cookies)
	}
	v, err := d.Admit(withCookie(request("GET", "/", nil), cookies[1]), ToEnter)
	if err != nil || v.Name != "alice@example.com" || v.Source != Provider || !slices.Equal(v.Roles, []Role{Viewer, Operator}) {
		t.Errorf("%+v, %v", v, err)
	}
	if len(cookies[1].Value) > 1000 || strings.Contains(cookies[1].Value, base64.RawURLEncoding.EncodeToString([]byte("dev"))) {
		t.Errorf("the cookie holds groups that matter to nobody: %d bytes", len(cookies[1].Value))
	}
	if _, _, err := d.Finish(callback(answer, cookie)); err != ErrState {
		t.Errorf("the same answer once more: %v", err)
	}
	without := newDesk(t, with(staff(t), func(o *Options) { o.Memory, o.Keys = d.Memory, d.Keys }))
	if _, err := without.Admit(withCookie(request("GET", "/", nil), cookies[1]), ToEnter); err != ErrSignIn {
		t.Errorf("a provider that is gone still counts: %v", err)
	}
}

// Each thing that is wrong with a token makes it nobody's.
func TestTokensThatDoNotHold(t *testing.T) {
	d, p := withProvider(t)
	own, stranger := p.Signs, idp.Key(t)
	for name, c := range map[string]struct {
		change func(map[string]any)
		signs  *rsa.PrivateKey
		says   string
	}{
		"another issuer":       {func(c map[string]any) { c["iss"] = "https://evil.example" }, nil, "issued by a different provider"},
		"another audience":     {func(c map[string]any) { c["aud"] = "other" }, nil, "audience"},
		"expired":              {func(c map[string]any) { c["exp"] = d.clock.now().Add(-time.Hour).Unix() }, nil, "expired"},
		"another sign-in":      {func(c map[string]any) { c["nonce"] = "x" }, nil, "nonce"},
		"no nonce":             {func(c map[string]any) { c["nonce"] = nil }, nil, "nonce"},
		"another key":          {nil, stranger, "signature"},
		"no name":              {func(c map[string]any) { c["email"] = nil }, nil, `claim "email"`},
		"an empty name":        {func(c map[string]any) { c["email"] = "" }, nil, `claim "email"`},
		"a name that is none":  {func(c map[string]any) { c["email"] = []string{"alice@example.com"} }, nil, `claim "email"`},
		"a control character":  {func(c map[string]any) { c["email"] = "alice\n@example.com" }, nil, `claim "email"`},
		"not verified":         {func(c map[string]any) { c["email_verified"] = false }, nil, "not verified"},
		"not verified, a word": {func(c map[string]any) { c["email_verified"] = "false" }, nil, "not verified"},
	} {
		p.Change, p.Signs = c.change, own
		if c.signs != nil {
			p.Signs = c.signs
		}
		address, cookie := d.beginAt(t, "")
		cookies, _, err := d.Finish(callback(p.Authorize(t, address), cookie))
		if !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), c.says) || len(cookies) != 1 || cookies[0].MaxAge >= 0 {
			t.Errorf("%s: %v, %+v", name, err, cookies)
		}
		if got := d.kept.take(); len(got) != 1 || got[0].Action != "sign-in" || got[0].Why != reasons[ErrProvider] {
			t.Errorf("%s: recorded %+v", name, got)
		}
	}
	// Groups of any shape are none or those that can be read.
	for _, groups := range []any{nil, 7, "oncall", []any{7, "oncall", nil}, map[string]any{"oncall": 1}} {
		p.Change, p.Signs = func(c map[string]any) { c["groups"] = groups }, own
		address, cookie := d.beginAt(t, "")
		if _, _, err := d.Finish(callback(p.Authorize(t, address), cookie)); err != nil {
			t.Errorf("groups %v: %v", groups, err)
		}
	}
}

func TestAnswersThatBelongToNobody(t *testing.T) {
	d, p := withProvider(t)
	address, cookie := d.beginAt(t, "")
	otherAddress, other := d.beginAt(t, "")
	changed := *cookie
	changed.Value = cookie.Value[:10] + "AAAA" + cookie.Value[14:]
	answer := p.Authorize(t, address)
	for name, r := range map[string]*http.Request{
		"no cookie":                 callback(answer),
		"the cookie of another":     callback(answer, other),
		"a changed cookie":          callback(answer, &changed),
		"no state":                  callback(url.Values{"code": answer["code"]}, cookie),
		"the state of another":      callback(url.Values{"code": answer["code"], "state": p.Authorize(t, otherAddress)["state"]}, cookie),
		"a sign-in that is no such": callback(answer, &http.Cookie{Name: providerCookie, Value: d.seal(forSession, "", []byte("{}"))}),
	} {
		if cookies, back, err := d.Finish(r); err != ErrState || len(cookies) != 1 || back != "" {
			t.Errorf("%s: %v, %+v", name, err, cookies)
		}
	}
	if got := d.kept.take(); len(got) != 6 {
		t.Errorf("recorded %+v", got)
	}
	d.clock.pass(providerLasts)
	if _, _, err := d.Finish(callback(answer, cookie)); err != ErrState {
		t.Errorf("ten minutes later: %v", err)
	}
}

func TestWhatTheProviderRefuses(t *testing.T) {
	d, p := withProvider(t)
	address, cookie := d.beginAt(t, "")
	state := p.Authorize(t, address)["state"]
	if _, _, err := d.Finish(callback(url.Values{"error": {"access_denied"}, "state": state}, cookie)); !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("%v", err)
	}
	address, cookie = d.beginAt(t, "")
	state = p.Authorize(t, address)["state"]
	_, _, err := d.Finish(callback(url.Values{"code": {"made-up"}, "state": state}, cookie))
	if !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), "invalid_grant") || strings.Contains(err.Error(), "made-up") || strings.Contains(err.Error(), idp.ClientSecret) {
		t.Errorf("%v", err)
	}
	// An address of a huge page, or of another site, is left out.
	for _, back := range []string{"//evil.example", "https://evil.example", "key?id=" + strings.Repeat("x", 3000)} {
		address, cookie = d.beginAt(t, back)
		if _, got, err := d.Finish(callback(p.Authorize(t, address), cookie)); err != nil || got != "" {
			t.Errorf("%.40q leads to %.40q, %v", back, got, err)
		}
	}
}

// A provider that is down stops no start, and is asked again at the next sign-in.
func TestAProviderThatIsDown(t *testing.T) {
	d, p := withProvider(t)
	d.provider.Issuer = "http://127.0.0.1:1"
	if _, _, err := d.Begin(request("GET", "/signin/oidc", nil), ""); !errors.Is(err, ErrProvider) {
		t.Errorf("%v", err)
	}
	d.provider.Issuer = p.URL
	if _, _, err := d.Begin(request("GET", "/signin/oidc", nil), ""); err != nil {
		t.Errorf("%v", err)
	}
}
