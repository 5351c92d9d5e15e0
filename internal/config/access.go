package config

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"
)

// Auth says how the console finds out who asks, and what each person may do. Its
// zero value asks nobody.
type Auth struct {
	// PasswordsFile is the path of the file that Users come from; empty when there is none.
	PasswordsFile string
	Users         []AuthUser
	// OIDC has no Issuer when there is no provider.
	OIDC AuthOIDC
	// Proxy has no From when no proxy is trusted.
	Proxy AuthProxy
	// Session is how long a sign-in lasts: 5m to 720h.
	Session time.Duration
	// SessionKeyFile is the path of the file that SessionKeys come from; without one
	// a key is made up at every start.
	SessionKeyFile string
	// SessionKeys sign cookies: the first one signs, all are accepted.
	SessionKeys []Secret
	// Viewer, Payload and Operator list who has the role: names, group:NAME, or *.
	Viewer, Payload, Operator []string
	// Roles: they were given, by the file or because there is somebody to ask.
	Roles bool
}

// AuthUser is a line of the password file.
type AuthUser struct {
	Name string
	// Hash is of bcrypt.
	Hash Secret
}

// AuthOIDC is an OpenID provider.
type AuthOIDC struct {
	// Issuer is an http or https URL.
	Issuer, ClientID string
	ClientSecret     Secret
	// RedirectURL ends in /signin/callback.
	RedirectURL            string
	NameClaim, GroupsClaim string
	// Scopes beside openid.
	Scopes []string
}

// AuthProxy is a trusted proxy.
type AuthProxy struct {
	// Header may be empty: then the proxy tells only where a request came from.
	Header, GroupsHeader string
	// From are the proxy's addresses.
	From []netip.Prefix
}

// Asks reports that the console itself asks who somebody is.
func (a Auth) Asks() bool {
	return a.PasswordsFile != "" || a.OIDC.Issuer != "" || a.Proxy.Header != ""
}

// Mask says what of messages and results is hidden from everybody. What a path
// may look like is judged by the mask package.
type Mask struct {
	JSON     []string
	Patterns []string
}

const (
	minSession, maxSession = 5 * time.Minute, 720 * time.Hour
	// slowestHash is the highest cost of bcrypt: each step takes twice as long, and
	// 14 takes about a second.
	slowestHash = 14
	// minKey is how many characters a session key has at least.
	minKey = 32
)

// environment is free text for the bar.
func (s *section) environment() string {
	text := s.text("environment")
	if len([]rune(text)) > 40 || strings.IndexFunc(text, unicode.IsControl) >= 0 {
		v := s.value("environment")
		s.problemf(v.at, v.path, "must be one line of at most 40 characters, such as production")
	}
	return text
}

var prefixShape = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

func (s *section) pathPrefix() string {
	prefix := s.text("path_prefix")
	parts := strings.Split(prefix, "/")
	if prefix != "" && (!prefixShape.MatchString(prefix) || slices.Contains(parts, ".") || slices.Contains(parts, "..")) {
		v := s.value("path_prefix")
		s.problemf(v.at, v.path, "must be a path with a slash before and none after it, such as /tools/idemscope, of the characters A-Z a-z 0-9 . _ ~ -")
	}
	return prefix
}

func (s *section) mask() (m Mask) {
	part := s.optional("mask")
	defer part.close()
	for _, i := range part.list("json") {
		m.JSON = append(m.JSON, i.text)
	}
	allowed := []string{"phone", "card", "email"}
	for _, i := range part.list("patterns") {
		if !slices.Contains(allowed, i.text) {
			s.problemf(i.at, i.path, "must be %s", strings.Join(allowed, " or "))
		}
		m.Patterns = append(m.Patterns, i.text)
	}
	return m
}

func (s *section) auth() (a Auth) {
	part := s.section("auth")
	if part == nil {
		return Auth{}
	}
	defer part.close()
	a.PasswordsFile, a.Users = part.passwords()
	a.OIDC = part.oidc()
	a.Proxy = part.proxy()
	a.Session = part.duration("session", 12*time.Hour, minSession, maxSession)
	a.SessionKeyFile, a.SessionKeys = part.sessionKeys()
	part.roles(&a)
	return a
}

// passwords reads the password file: NAME:HASH on every line, as htpasswd -B writes.
func (s *section) passwords() (path string, users []AuthUser) {
	path, data, ok := s.namedFile("passwords_file")
	if !ok {
		return path, nil
	}
	v := s.value("passwords_file")
	for _, l := range lines(data) {
		name, hash, _ := strings.Cut(l.text, ":")
		switch why := wrongUser(name, hash); {
		case why != "":
			s.problemf(v.at, v.path, "the file %s, line %d: %s", path, l.number, why)
		case slices.ContainsFunc(users, func(u AuthUser) bool { return u.Name == name }):
			s.problemf(v.at, v.path, "the file %s, line %d: an earlier line has this name, too", path, l.number)
		default:
			users = append(users, AuthUser{Name: name, Hash: Secret(hash)})
		}
	}
	if len(users) == 0 && !s.reported(v.path) {
		s.problemf(v.at, v.path, "the file %s names nobody; add a user with htpasswd -B %s NAME", path, path)
	}
	return path, users
}

// fileLine is a line of a file, counted from 1.
type fileLine struct {
	number int
	text   string
}

// lines returns the lines of a file, without empty ones and those that begin with #.
func lines(data []byte) (all []fileLine) {
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimSuffix(string(line), "\r")
		if text != "" && text[0] != '#' {
			all = append(all, fileLine{i + 1, text})
		}
	}
	return all
}

// wrongUser says what is wrong with a line of the password file. It quotes nothing
// of it: somebody may have written a password there.
func wrongUser(name, hash string) string {
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case name == "" || len(name) > 256 || !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0:
		return "a name has 1 to 256 bytes of text; write NAME:HASH"
	case err != nil || len(hash) != 60:
		return "this is no hash of bcrypt, which others are not accepted for; make one with htpasswd -B"
	case cost > slowestHash:
		return fmt.Sprintf("a hash of cost %d takes too long to check; the highest is %d", cost, slowestHash)
	}
	return ""
}

func (s *section) sessionKeys() (path string, keys []Secret) {
	path, data, ok := s.namedFile("session_key_file")
	if !ok {
		return path, nil
	}
	v := s.value("session_key_file")
	for _, l := range lines(data) {
		if len(l.text) < minKey {
			s.problemf(v.at, v.path, "the file %s, line %d: a key has at least %d characters; make one with openssl rand -hex 32", path, l.number, minKey)
			continue
		}
		keys = append(keys, Secret(l.text))
	}
	if len(keys) == 0 && !s.reported(v.path) {
		s.problemf(v.at, v.path, "the file %s holds no key; write one a line, made with openssl rand -hex 32", path)
	}
	return path, keys
}

func (s *section) oidc() (o AuthOIDC) {
	part := s.section("oidc")
	if part == nil {
		return AuthOIDC{}
	}
	defer part.close()
	o.Issuer = part.required("issuer", "write the address of the provider, such as https://login.example.com")
	part.address("issuer", o.Issuer, func(u *url.URL) string {
		if u.RawQuery != "" || u.Fragment != "" {
			return "must have no query"
		}
		return ""
	})
	o.ClientID = part.required("client_id", "write the id that the provider gave to idemscope")
	o.ClientSecret = part.secret("client_secret", "client_secret_file")
	if v := part.value("client_secret"); o.ClientSecret == "" && !part.reported(v.path) && !part.reported(part.pathOf("client_secret_file")) {
		part.problemf(v.at, v.path, "is missing; write it, or client_secret_file")
	}
	o.RedirectURL = part.required("redirect_url", "write the address of the console as browsers see it, with /signin/callback at its end")
	part.address("redirect_url", o.RedirectURL, func(u *url.URL) string {
		if !strings.HasSuffix(u.Path, "/signin/callback") || u.RawQuery != "" || u.Fragment != "" {
			return "must end in /signin/callback"
		}
		if u.Scheme == "http" && !loopback(u.Hostname()) {
			return "must be https: the answer of the provider passes there"
		}
		return ""
	})
	o.NameClaim = part.orElse("name_claim", "email")
	o.GroupsClaim = part.orElse("groups_claim", "groups")
	for _, i := range part.list("scopes") {
		o.Scopes = append(o.Scopes, i.text)
	}
	return o
}

// orElse reads optional text with a default.
func (s *section) orElse(key, fallback string) string {
	if text := s.text(key); text != "" {
		return text
	}
	return fallback
}

// address checks an http or https URL; wrong says what else is wrong with it.
func (s *section) address(key, text string, wrong func(*url.URL) string) {
	if text == "" {
		return
	}
	v := s.value(key)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		s.problemf(v.at, v.path, "must be an http or https address without credentials")
		return
	}
	if why := wrong(u); why != "" {
		s.problemf(v.at, v.path, "%s", why)
	}
}

var headerShape = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

func (s *section) proxy() (p AuthProxy) {
	part := s.section("proxy")
	if part == nil {
		return AuthProxy{}
	}
	defer part.close()
	p.Header, p.GroupsHeader = part.header("header"), part.header("groups_header")
	if v := part.value("groups_header"); p.GroupsHeader != "" && p.Header == "" {
		part.problemf(v.at, v.path, "groups are those of a person: set header, too")
	}
	for _, i := range part.requiredList("from", `name the proxy's addresses, such as ["10.0.0.0/8"]: from anywhere else its headers are dropped`) {
		network, err := netip.ParsePrefix(i.text)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(i.text); err == nil {
				network, err = a.Unmap().Prefix(a.Unmap().BitLen())
			}
		}
		switch {
		case err != nil:
			s.problemf(i.at, i.path, "must be an address or a network, such as 10.0.0.0/8")
		case network.Bits() == 0:
			s.problemf(i.at, i.path, "everybody is in this network, so everybody could claim to be anybody; name the proxy's own addresses")
		default:
			p.From = append(p.From, network.Masked())
		}
	}
	return p
}

func (s *section) header(key string) string {
	name := s.text(key)
	if name != "" && !headerShape.MatchString(name) {
		v := s.value(key)
		s.problemf(v.at, v.path, "must be the name of a header, such as X-Forwarded-User")
	}
	return name
}

// roles reads who has which role. Where people are asked who they are, everybody
// who is known is a viewer unless the file says otherwise.
func (s *section) roles(a *Auth) {
	part := s.section("roles")
	if a.Roles = part != nil || a.Asks(); !a.Roles {
		return
	}
	a.Viewer = []string{"*"}
	if part == nil {
		return
	}
	defer part.close()
	for _, role := range []struct {
		key string
		who *[]string
	}{{"viewer", &a.Viewer}, {"payload", &a.Payload}, {"operator", &a.Operator}} {
		v, given := part.take(role.key)
		if !given {
			continue
		}
		*role.who = nil
		for _, i := range part.items(v, part.textOf) {
			if i.text == "group:" {
				part.problemf(i.at, i.path, "must be a name, group:NAME, or *")
			}
			*role.who = append(*role.who, i.text)
		}
	}
}

// guarded checks what the listener and the console's own sign-in are together.
func (s *section) guarded(c *Config, web webFile) {
	a := c.Console.Auth
	if a.Roles && !a.Asks() && !c.WebAuth && !s.reported("web_config") && !s.reported("console.auth.proxy.header") {
		s.problemf(s.placeOf("console.auth.roles"), "console.auth.roles", "nobody is asked for a name, so nobody can have a role; set passwords_file, oidc, or proxy.header beside it, or a web_config with users")
	}
	v := s.value("listen")
	host, ok := s.hostOf("listen", c.Listen)
	switch {
	case !ok:
	case loopback(host) || a.Asks() || s.reported("web_config"):
	case c.WebConfig == "":
		s.problemf(v.at, v.path, "other machines may reach this address; set console.auth, or web_config to an exporter-toolkit file with users and TLS, or listen on 127.0.0.1")
	case !web.authenticates():
		s.problemf(v.at, v.path, "other machines may reach this address, and the file %s lets everybody in; add basic_auth_users to it, set console.auth, or listen on 127.0.0.1", c.WebConfig)
	}
}

// placeOf returns where a key stands.
func (r *reader) placeOf(path string) place { return r.places[path] }
