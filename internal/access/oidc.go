package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// OIDC is an OpenID provider.
type OIDC struct {
	// Issuer is the address below which it describes itself.
	Issuer                 string
	ClientID, ClientSecret string
	// RedirectURL is the address of this console's /signin/callback, as browsers see it.
	RedirectURL string
	// NameClaim holds the name of the person, GroupsClaim the groups, a list or one text.
	NameClaim, GroupsClaim string
	// Scopes are asked for beside openid.
	Scopes []string
}

const (
	// providerCookie holds what a sign-in at the provider was begun with.
	providerCookie = "idemscope_signin"
	// providerLasts is how long a person may take at the provider.
	providerLasts = 10 * time.Minute
	// providerTimeout bounds one question to the provider.
	providerTimeout = 10 * time.Second
)

// Why a sign-in at the provider failed.
var (
	// ErrProvider: it cannot be reached, or what it says does not hold.
	ErrProvider = errors.New("the identity provider's answer was not accepted")
	// ErrState: the answer belongs to no sign-in that this browser began.
	ErrState = errors.New("the sign-in was not begun in this browser, or too long ago")
)

// provider is asked what it is when somebody first signs in, so that the console
// starts without it.
type provider struct {
	OIDC
	client *http.Client

	mu    sync.Mutex
	found *oidc.Provider
}

func newProvider(o OIDC) *provider {
	return &provider{OIDC: o, client: &http.Client{
		Timeout:   providerTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: providerTimeout},
	}}
}

func (p *provider) close() { p.client.CloseIdleConnections() }

// context makes the libraries use the provider's own client.
func (p *provider) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// discover asks the provider what it is, until it has once said so.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// The provider keeps the context for later questions about its keys.
	found, err := oidc.NewProvider(p.context(context.WithoutCancel(ctx)), p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: discover %s: %w", ErrProvider, p.Issuer, err)
	}
	p.found = found
	return found, nil
}

func (p *provider) oauth(found *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: p.RedirectURL, Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
}

// begun is what a sign-in at the provider was begun with.
type begun struct {
	// State joins the answer to the browser, Nonce to the token, Verifier to the code.
	State, Nonce, Verifier string
	// Return is where the person wanted to go.
	Return string
	// Ends in seconds since 1970.
	Ends int64
}

// Begin returns the provider's address to send the browser to, and the cookie to
// give it. The error is an ErrProvider.
func (g *Guard) Begin(r *http.Request, returnTo string) (address string, cookie *http.Cookie, err error) {
	found, err := g.provider.discover(r.Context())
	if err != nil {
		return "", nil, err
	}
	// A cookie has room for 4 kB: whoever came from a longer address starts anew.
	if returnTo = Return(returnTo); len(returnTo) > 2000 {
		returnTo = ""
	}
	b := begun{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Return: returnTo,
		Ends: g.Memory.now().Add(providerLasts).Unix(),
	}
	data, err := json.Marshal(b)
	if err != nil {
		return "", nil, err
	}
	cookie = g.cookie(r, providerCookie, g.seal(forProvider, "", data), providerLasts)
	cookie.Secure = cookie.Secure || g.providerSecure()
	address = g.provider.oauth(found).AuthCodeURL(b.State, oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier))
	return address, cookie, nil
}

// providerSecure reports that browsers reach the console by https.
func (g *Guard) providerSecure() bool { return strings.HasPrefix(g.OIDC.RedirectURL, "https:") }

// Finish takes the provider's answer. It returns the cookies to set, and where the
// person wanted to go. Errors: ErrState, ErrProvider; both are recorded.
func (g *Guard) Finish(r *http.Request) (cookies []*http.Cookie, returnTo string, err error) {
	clearing := g.cookie(r, providerCookie, "", -1)
	b, err := g.begunOf(r)
	var name string
	var groups []string
	if err == nil {
		name, groups, err = g.provider.person(r, b, g.Memory.now)
	}
	if err != nil {
		g.refused(r, Visitor{Person: Person{From: g.address(r)}}, "sign-in", err)
		return []*http.Cookie{clearing}, "", err
	}
	session, err := g.begin(r, Provider, name, groups)
	if err != nil {
		return nil, "", err
	}
	session.Secure = session.Secure || g.providerSecure()
	return []*http.Cookie{clearing, session}, b.Return, nil
}

// begunOf returns the sign-in that this browser began, and ends it: an answer
// counts once.
func (g *Guard) begunOf(r *http.Request) (begun, error) {
	c, err := r.Cookie(providerCookie)
	if err != nil {
		return begun{}, ErrState
	}
	data, ok := g.open(forProvider, "", c.Value)
	var b begun
	if !ok || json.Unmarshal(data, &b) != nil {
		return begun{}, ErrState
	}
	ends := time.Unix(b.Ends, 0)
	if !g.Memory.now().Before(ends) || !hmac.Equal([]byte(r.URL.Query().Get("state")), []byte(b.State)) {
		return begun{}, ErrState
	}
	if !g.Memory.burnt.add(b.State, ends) {
		return begun{}, ErrState
	}
	return b, nil
}

// person exchanges the code and checks the token: who signed it, for whom, for
// which sign-in, and until when.
func (p *provider) person(r *http.Request, b begun, now func() time.Time) (name string, groups []string, err error) {
	query := r.URL.Query()
	if denied := query.Get("error"); denied != "" {
		return "", nil, fmt.Errorf("%w: it says %q", ErrProvider, cut(denied))
	}
	found, err := p.discover(r.Context())
	if err != nil {
		return "", nil, err
	}
	ctx := p.context(r.Context())
	token, err := p.oauth(found).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return "", nil, fmt.Errorf("%w: exchange the code: %s", ErrProvider, exchangeFault(err))
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: now}).Verify(ctx, raw)
	if err != nil {
		return "", nil, fmt.Errorf("%w: check the token: %w", ErrProvider, err)
	}
	if !hmac.Equal([]byte(id.Nonce), []byte(b.Nonce)) {
		return "", nil, fmt.Errorf("%w: the token is for another sign-in (nonce)", ErrProvider)
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return "", nil, fmt.Errorf("%w: read the token: %w", ErrProvider, err)
	}
	return p.claimed(claims)
}

// claimed returns name and groups of a token that holds.
func (p *provider) claimed(claims map[string]any) (name string, groups []string, err error) {
	name, _ = claims[p.NameClaim].(string)
	if !isName(name) {
		return "", nil, fmt.Errorf("%w: the token has no claim %q that could be a name", ErrProvider, p.NameClaim)
	}
	// Anybody can claim an address that nobody checked.
	if verified, told := claims["email_verified"]; p.NameClaim == "email" && told && verified != true && verified != "true" {
		return "", nil, fmt.Errorf("%w: the address is not verified (email_verified)", ErrProvider)
	}
	switch all := claims[p.GroupsClaim].(type) {
	case string:
		groups = []string{all}
	case []any:
		for _, one := range all {
			if group, ok := one.(string); ok {
				groups = append(groups, group)
			}
		}
	}
	return name, groups, nil
}

// exchangeFault words why no token was given, without what was sent.
func exchangeFault(err error) string {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return fmt.Sprintf("it answers %q (%s)", cut(refused.ErrorCode), refused.Response.Status)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return "no usable answer"
}

// cut bounds what others say in a message.
func cut(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most]
	}
	return s
}
