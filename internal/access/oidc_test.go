package access

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// idp is an identity provider that signs real tokens.
type idp struct {
	*httptest.Server
	key *rsa.PrivateKey
	// change spoils the claims of the next token, or the key that signs it.
	change func(claims map[string]any)
	signs  *rsa.PrivateKey
	// codes that were given out, with what the browser asked for.
	codes map[string]url.Values
	clock *clock
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	p := &idp{codes: map[string]url.Values{}}
	p.key = rsaKey(t)
	p.signs = p.key
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k",
			"n": b64(p.key.N.Bytes()), "e": b64(big.NewInt(int64(p.key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// authorize is what a person does at the provider: it returns the code.
func (p *idp) authorize(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	asked := u.Query()
	if u.Path != "/auth" || asked.Get("code_challenge_method") != "S256" || asked.Get("nonce") == "" || asked.Get("client_id") != "idemscope" || !strings.Contains(asked.Get("scope"), "openid") {
		t.Fatalf("the browser asks %s", address)
	}
	code := rand.Text()
	p.codes[code] = asked
	return url.Values{"code": {code}, "state": {asked.Get("state")}}
}

// token gives a token for a code, once, to whoever began with it.
func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	asked, there := p.codes[code]
	delete(p.codes, code)
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	if !there || b64(challenge[:]) != asked.Get("code_challenge") || id != "idemscope" || secret != "client-secret" || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{"error": "invalid_grant"})
		return
	}
	now := p.clock.now()
	claims := map[string]any{
		"iss": p.URL, "aud": "idemscope", "sub": "4711", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": asked.Get("nonce"),
		"email": "alice@example.com", "email_verified": true, "groups": []string{"dev", "oncall"},
	}
	if p.change != nil {
		p.change(claims)
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	writeJSON(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(claims)})
}

func (p *idp) sign(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	text := b64([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + b64(body)
	digest := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, p.signs, crypto.SHA256, digest[:])
	return text + "." + b64(signature)
}

func (p *idp) desk(t *testing.T) desk {
	t.Helper()
	d := newDesk(t, Options{
		OIDC: &OIDC{
			Issuer: p.URL, ClientID: "idemscope", ClientSecret: "client-secret", RedirectURL: "https://idem.example/signin/callback",
			NameClaim: "email", GroupsClaim: "groups", Scopes: []string{"email"},
		},
		Rules: Rules{Viewer: {"*"}, Operator: {"group:oncall"}},
	})
	p.clock = d.clock
	return d
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
	p := newIDP(t)
	d := p.desk(t)
	address, cookie := d.beginAt(t, "key?type=pay&id=1")
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 600 {
		t.Errorf("cookie %+v", cookie)
	}
	answer := p.authorize(t, address)
	cookies, back, err := d.Finish(callback(answer, cookie))
	if err != nil || back != "key?type=pay&id=1" || len(cookies) != 2 || cookies[0].MaxAge >= 0 || !cookies[1].Secure {
		t.Fatalf("%v, back to %q, cookies %+v", err, back, cookies)
	}
	v, err := d.Admit(withCookie(request("GET", "/", nil), cookies[1]), ToEnter)
	if err != nil || v.Name != "alice@example.com" || v.Source != Provider || !slices.Equal(v.Roles, []Role{Viewer, Operator}) {
		t.Errorf("%+v, %v", v, err)
	}
	if len(cookies[1].Value) > 1000 || strings.Contains(cookies[1].Value, b64([]byte("dev"))) {
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
	p := newIDP(t)
	d := p.desk(t)
	stranger := rsaKey(t)
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
		p.change, p.signs = c.change, p.key
		if c.signs != nil {
			p.signs = c.signs
		}
		address, cookie := d.beginAt(t, "")
		cookies, _, err := d.Finish(callback(p.authorize(t, address), cookie))
		if !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), c.says) || len(cookies) != 1 || cookies[0].MaxAge >= 0 {
			t.Errorf("%s: %v, %+v", name, err, cookies)
		}
		if got := d.kept.take(); len(got) != 1 || got[0].Action != "sign-in" || got[0].Why != reasons[ErrProvider] {
			t.Errorf("%s: recorded %+v", name, got)
		}
	}
	// Groups of any shape are none or those that can be read.
	for _, groups := range []any{nil, 7, "oncall", []any{7, "oncall", nil}, map[string]any{"oncall": 1}} {
		p.change, p.signs = func(c map[string]any) { c["groups"] = groups }, p.key
		address, cookie := d.beginAt(t, "")
		if _, _, err := d.Finish(callback(p.authorize(t, address), cookie)); err != nil {
			t.Errorf("groups %v: %v", groups, err)
		}
	}
}

func TestAnswersThatBelongToNobody(t *testing.T) {
	p := newIDP(t)
	d := p.desk(t)
	address, cookie := d.beginAt(t, "")
	otherAddress, other := d.beginAt(t, "")
	changed := *cookie
	changed.Value = cookie.Value[:10] + "AAAA" + cookie.Value[14:]
	answer := p.authorize(t, address)
	for name, r := range map[string]*http.Request{
		"no cookie":                 callback(answer),
		"the cookie of another":     callback(answer, other),
		"a changed cookie":          callback(answer, &changed),
		"no state":                  callback(url.Values{"code": answer["code"]}, cookie),
		"the state of another":      callback(url.Values{"code": answer["code"], "state": p.authorize(t, otherAddress)["state"]}, cookie),
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
	p := newIDP(t)
	d := p.desk(t)
	address, cookie := d.beginAt(t, "")
	state := p.authorize(t, address)["state"]
	if _, _, err := d.Finish(callback(url.Values{"error": {"access_denied"}, "state": state}, cookie)); !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("%v", err)
	}
	address, cookie = d.beginAt(t, "")
	state = p.authorize(t, address)["state"]
	_, _, err := d.Finish(callback(url.Values{"code": {"made-up"}, "state": state}, cookie))
	if !errors.Is(err, ErrProvider) || !strings.Contains(err.Error(), "invalid_grant") || strings.Contains(err.Error(), "made-up") || strings.Contains(err.Error(), "client-secret") {
		t.Errorf("%v", err)
	}
	// An address of a huge page, or of another site, is left out.
	for _, back := range []string{"//evil.example", "https://evil.example", "key?id=" + strings.Repeat("x", 3000)} {
		address, cookie = d.beginAt(t, back)
		if _, got, err := d.Finish(callback(p.authorize(t, address), cookie)); err != nil || got != "" {
			t.Errorf("%.40q leads to %.40q, %v", back, got, err)
		}
	}
}

// A provider that is down stops no start, and is asked again at the next sign-in.
func TestAProviderThatIsDown(t *testing.T) {
	p := newIDP(t)
	d := p.desk(t)
	d.provider.Issuer = "http://127.0.0.1:1"
	if _, _, err := d.Begin(request("GET", "/signin/oidc", nil), ""); !errors.Is(err, ErrProvider) {
		t.Errorf("%v", err)
	}
	d.provider.Issuer = p.URL
	if _, _, err := d.Begin(request("GET", "/signin/oidc", nil), ""); err != nil {
		t.Errorf("%v", err)
	}
}
