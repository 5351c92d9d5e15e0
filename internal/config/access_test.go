package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const someHash = "$2y$05$abcdefghijklmnopqrstuuO5v9tqzVhJ0wYf0mJ0hR3k6cX8u1Q2e"

// accessFiles is a disk with what console.auth can name.
var accessFiles = files(map[string]string{
	"etc/users":    "# people\r\nalice:" + someHash + "\r\n\r\n张三:" + someHash + "\n",
	"etc/keys":     strings.Repeat("n", 32) + "\n# the one before\n" + strings.Repeat("o", 40),
	"etc/secret":   "client-secret\n",
	"etc/web.yaml": "basic_auth_users: {ops: x}",
})

func parseAccess(console string) (*Config, error) {
	return Parse("etc/test.yaml", []byte(minimal("console:\n"+console)), environment(nil), accessFiles)
}

func mustAccess(t *testing.T, console string) *Config {
	t.Helper()
	c, err := parseAccess(console)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAuthIsReadWhole(t *testing.T) {
	c := mustAccess(t, `
  environment: production
  path_prefix: /tools/idemscope
  auth:
    passwords_file: users
    oidc: {issuer: "https://login.example.com/realm", client_id: idemscope, client_secret_file: secret, redirect_url: "https://idem.example.com/tools/idemscope/signin/callback", name_claim: upn, groups_claim: roles, scopes: [email, profile]}
    proxy: {header: X-Forwarded-User, groups_header: X-Forwarded-Groups, from: ["10.1.2.3/8", "192.0.2.1", "fd00::/8"]}
    session: 1h
    session_key_file: keys
    roles: {viewer: ["*"], payload: [alice, "group:oncall"], operator: []}
  mask: {json: ["$.card.number", customer.phone], patterns: [phone, card, email]}
`)
	a := c.Console.Auth
	if c.Console.Environment != "production" || c.Console.PathPrefix != "/tools/idemscope" || !a.Asks() || !a.Roles {
		t.Errorf("%+v", c.Console)
	}
	if len(a.Users) != 2 || a.Users[0].Name != "alice" || a.Users[1].Name != "张三" || a.Users[1].Hash.Reveal() != someHash || a.PasswordsFile != "etc/users" {
		t.Errorf("users %+v", a.Users)
	}
	if len(a.SessionKeys) != 2 || a.SessionKeys[0].Reveal() != strings.Repeat("n", 32) || a.SessionKeys[1].Reveal() != strings.Repeat("o", 40) || a.Session != time.Hour {
		t.Errorf("session %+v", a)
	}
	if o := a.OIDC; o.ClientSecret.Reveal() != "client-secret" || o.NameClaim != "upn" || o.GroupsClaim != "roles" || !slices.Equal(o.Scopes, []string{"email", "profile"}) {
		t.Errorf("oidc %+v", o)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("fd00::/8")}
	if !slices.Equal(a.Proxy.From, want) {
		t.Errorf("proxy %+v", a.Proxy)
	}
	if !slices.Equal(a.Viewer, []string{"*"}) || !slices.Equal(a.Payload, []string{"alice", "group:oncall"}) || len(a.Operator) != 0 {
		t.Errorf("roles %+v", a)
	}
	if !reflect.DeepEqual(c.Console.Mask, Mask{JSON: []string{"$.card.number", "customer.phone"}, Patterns: []string{"phone", "card", "email"}}) {
		t.Errorf("mask %+v", c.Console.Mask)
	}
	shown := fmt.Sprintf("%v %+v %#v", c.Console, c, a)
	redacted, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"client-secret", someHash, strings.Repeat("n", 32)} {
		if strings.Contains(shown, secret) || strings.Contains(string(redacted), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	// File names are those that were opened, so it reads back from the folder above.
	back, err := Parse("test.yaml", redacted, environment(nil), accessFiles)
	if err != nil {
		t.Fatalf("%v\n%s", err, redacted)
	}
	if again, err := back.Redacted(); err != nil || string(again) != string(redacted) {
		t.Errorf("%v: reads back as\n%s\nwant\n%s", err, again, redacted)
	}
}

func TestDefaultsOfAuth(t *testing.T) {
	for console, want := range map[string]Auth{
		"  actions: true\n": {},
		"  auth: {}\n":      {Session: 12 * time.Hour},
		"  auth: {proxy: {from: [\"10.0.0.1\"]}}\n":                                      {Session: 12 * time.Hour, Proxy: AuthProxy{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}},
		"  auth: {proxy: {header: X-User, from: [\"10.0.0.1\"]}}\n":                      {Session: 12 * time.Hour, Roles: true, Viewer: []string{"*"}, Proxy: AuthProxy{Header: "X-User", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}},
		"  auth: {passwords_file: users, roles: {operator: [alice]}}\n":                  {Session: 12 * time.Hour, Roles: true, Viewer: []string{"*"}, Operator: []string{"alice"}},
		"  auth: {passwords_file: users, roles: {viewer: [], payload: [\"group:x\"]}}\n": {Session: 12 * time.Hour, Roles: true, Payload: []string{"group:x"}},
	} {
		got := mustAccess(t, console).Console.Auth
		got.PasswordsFile, got.Users = "", nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n gives %+v\n want  %+v", console, got, want)
		}
	}
}

// Beyond this machine somebody has to ask: the listener or the console.
func TestWhatMayListenEverywhere(t *testing.T) {
	for more, fine := range map[string]bool{
		"":                           false,
		"console: {auth: {}}\n":      false,
		"console: {actions: true}\n": false,
		"console: {auth: {proxy: {from: [\"10.0.0.1\"]}}}\n":                                                                              false,
		"console: {auth: {passwords_file: users}}\n":                                                                                      true,
		"console: {auth: {proxy: {header: X-User, from: [\"10.0.0.1\"]}}}\n":                                                              true,
		"console: {auth: {oidc: {issuer: \"https://i\", client_id: a, client_secret: b, redirect_url: \"https://c/signin/callback\"}}}\n": true,
		"web_config: web.yaml\n": true,
		"web_config: web.yaml\nconsole: {auth: {roles: {viewer: [ops]}}}\n": true,
	} {
		_, err := Parse("etc/test.yaml", []byte(minimal("listen: 0.0.0.0:9877\n"+more)), environment(nil), accessFiles)
		if (err == nil) != fine {
			t.Errorf("%q: %v", more, err)
		}
	}
}

func TestOIDCMayBeOnThisMachineWithoutTLS(t *testing.T) {
	for host, fine := range map[string]bool{"localhost:9877": true, "127.0.0.1:9877": true, "[::1]:9877": true, "idem.example.com": false, "127.0.0.1.example.com": false} {
		_, err := parseAccess(fmt.Sprintf("  auth: {oidc: {issuer: \"https://i\", client_id: a, client_secret: b, redirect_url: \"http://%s/signin/callback\"}}\n", host))
		if (err == nil) != fine {
			t.Errorf("%s: %v", host, err)
		}
	}
}
