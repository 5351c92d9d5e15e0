// Package idp is an OpenID provider for tests: it signs real tokens, and spoils
// them on demand. It is not for production: it lets everybody in.
package idp

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the provider knows of its one client.
const (
	ClientID, ClientSecret = "idemscope", "client-secret"
)

// Provider answers at its URL, which is its issuer.
type Provider struct {
	*httptest.Server
	// Now is the time of tokens. nil: the time of this machine.
	Now func() time.Time
	// Change spoils the claims of the next tokens; a nil value removes a claim. May be nil.
	Change func(claims map[string]any)
	// Signs is the key that signs; it is the provider's own unless a test changes it.
	Signs *rsa.PrivateKey

	key *rsa.PrivateKey
	mu  sync.Mutex
	// codes that were given out, with what the browser asked for.
	codes map[string]url.Values
}

// New starts a provider, which ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{Now: time.Now, key: Key(t), codes: map[string]url.Values{}}
	p.Signs = p.key
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k",
			"n": b64(p.key.N.Bytes()), "e": b64(big.NewInt(int64(p.key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// Key makes a key to sign with.
func Key(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// Authorize is what a person does at the address that the browser was sent to. It
// returns what the provider sends the browser back with.
func (p *Provider) Authorize(t testing.TB, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	asked := u.Query()
	if u.Path != "/auth" || asked.Get("code_challenge_method") != "S256" || asked.Get("nonce") == "" || asked.Get("client_id") != ClientID || !strings.Contains(asked.Get("scope"), "openid") {
		t.Fatalf("the browser asks %s", address)
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = asked
	return url.Values{"code": {code}, "state": {asked.Get("state")}}
}

// token gives a token for a code, once, to whoever began with it.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	p.mu.Lock()
	asked, there := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, _ := r.BasicAuth()
	if !there || b64(challenge[:]) != asked.Get("code_challenge") || id != ClientID || secret != ClientSecret || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	now := p.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "4711", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": asked.Get("nonce"),
		"email": "alice@example.com", "email_verified": true, "groups": []string{"dev", "oncall"},
	}
	if p.Change != nil {
		p.Change(claims)
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	writeJSON(w, http.StatusOK, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(claims)})
}

func (p *Provider) sign(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	text := b64([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + b64(body)
	digest := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, p.Signs, crypto.SHA256, digest[:])
	return text + "." + b64(signature)
}
