package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"idemscope/internal/audit"
)

// Source is what told us who somebody is.
type Source string

// The sources of identity.
const (
	// Open: nobody is asked, because only this machine can reach the console.
	Open Source = "open"
	// Listener: the listener asked, for a password or a client certificate.
	Listener Source = "listener"
	// Password: a name of the password file, typed into the sign-in page.
	Password Source = "password"
	// Basic: the same, sent along with the request itself.
	Basic Source = "basic"
	// Provider: an OpenID provider.
	Provider Source = "oidc"
	// ProxyHeader: a trusted proxy's header.
	ProxyHeader Source = "proxy"
)

// Rules name who has a role: names, "group:NAME", or "*" for everybody who is known.
type Rules map[Role][]string

// groupMark stands before the name of a group, so that nobody gets a group's
// roles by calling himself like it.
const groupMark = "group:"

// of lists the roles of a person in their usual order.
func (r Rules) of(name string, groups []string) []Role {
	var roles []Role
	for _, role := range []Role{Viewer, Payload, Operator} {
		if slices.ContainsFunc(r[role], func(entry string) bool {
			if group, ok := strings.CutPrefix(entry, groupMark); ok {
				return slices.Contains(groups, group)
			}
			return entry == "*" || entry == name
		}) {
			roles = append(roles, role)
		}
	}
	return roles
}

// known keeps the groups that some rule names: a cookie cannot hold them all.
func (r Rules) known(groups []string) []string {
	var kept []string
	for _, entries := range r {
		for _, entry := range entries {
			group, ok := strings.CutPrefix(entry, groupMark)
			if ok && slices.Contains(groups, group) && !slices.Contains(kept, group) {
				kept = append(kept, group)
			}
		}
	}
	slices.Sort(kept)
	return kept
}

// Recorder keeps what was refused.
type Recorder interface {
	Append(ctx context.Context, e audit.Entry) error
}

// Options of a Guard. Without Users, OIDC, Proxy.Header and Listener the console is open.
type Options struct {
	// Users of the password file.
	Users []User
	// OIDC is nil without a provider.
	OIDC *OIDC
	// Proxy is nil when no proxy is trusted.
	Proxy *Proxy
	// Listener: whoever gets here gave the listener a password or a certificate.
	Listener bool
	// ListenerPasswords: it was a password, so that the name in the header of HTTP
	// Basic is the listener's, and has been checked.
	ListenerPasswords bool
	// Rules say who has which role. Nil: everybody who is known is a viewer who may
	// see payloads, and an operator as far as Actions lets anybody be one.
	Rules Rules
	// Actions: operators may change something at all. It matters without Rules only.
	Actions bool
	// Session is how long a sign-in lasts; zero means twelve hours.
	Session time.Duration
	// Keys sign cookies and forms: the first one signs, all are accepted. Without
	// any, a key that ends with the process does.
	Keys [][]byte
	// Prefix is the path below which browsers see the console, such as /tools/idem; may be empty.
	Prefix string
	// Memory is what outlives a configuration. Mandatory.
	Memory *Memory
	// Audit keeps refusals; nil: they are only logged.
	Audit Recorder
	// Logger is mandatory.
	Logger *slog.Logger
}

// Guard says who asks, and whether that is allowed. It is safe for concurrent use.
type Guard struct {
	Options
	users    map[string]User
	decoy    []byte
	provider *provider
}

// New checks the options.
func New(o Options) (*Guard, error) {
	if o.Memory == nil || o.Logger == nil {
		return nil, errors.New("access: a memory and a logger are mandatory")
	}
	if o.Session == 0 {
		o.Session = 12 * time.Hour
	}
	if len(o.Keys) == 0 {
		o.Keys = [][]byte{o.Memory.key}
	}
	g := &Guard{Options: o, users: map[string]User{}}
	for _, u := range o.Users {
		g.users[u.Name] = u
	}
	var err error
	if g.decoy, err = decoyOf(o.Users); err != nil {
		return nil, err
	}
	if g.Rules == nil {
		everybody := []string{"*"}
		g.Rules = Rules{Viewer: everybody, Payload: everybody}
		if o.Actions {
			g.Rules[Operator] = everybody
		}
	}
	if o.OIDC != nil {
		g.provider = newProvider(*o.OIDC)
	}
	return g, nil
}

// Close ends connections to the provider.
func (g *Guard) Close() {
	if g.provider != nil {
		g.provider.close()
	}
}

// asks reports that the guard itself finds out who somebody is.
func (g *Guard) asks() bool {
	return len(g.Users) > 0 || g.OIDC != nil || g.Proxy != nil && g.Proxy.Header != ""
}

// isOpen reports that nobody is asked.
func (g *Guard) isOpen() bool { return !g.asks() && !g.Listener }

// Passwords reports that somebody can sign in with a password.
func (g *Guard) Passwords() bool { return len(g.Users) > 0 }

// Visitor is a person and how we know.
type Visitor struct {
	Person
	// Source is empty for somebody who is not known.
	Source Source
	// Session is the id of the sign-in; empty without one.
	Session string
}

// Known reports that some source told who it is.
func (v Visitor) Known() bool { return v.Source != "" }

// identify finds out who sent the request. An error says that a password was
// sent along and not taken: ErrPassword, ErrThrottled, ErrBusy. Without basic,
// such a password is not looked at.
func (g *Guard) identify(r *http.Request, basic bool) (Visitor, error) {
	nobody := Visitor{Person: Person{From: g.address(r)}}
	if g.isOpen() {
		return g.visitor(nobody, Open, "", nil), nil
	}
	if s, ok := g.session(r); ok {
		v := g.visitor(nobody, s.Source, s.Name, s.Groups)
		v.Session = s.ID
		return v, nil
	}
	if name, groups, ok := g.proxied(r); ok {
		return g.visitor(nobody, ProxyHeader, name, groups), nil
	}
	if g.Listener && !g.asks() {
		return g.visitor(nobody, Listener, g.listenerName(r), nil), nil
	}
	name, password, sent := r.BasicAuth()
	// With users of its own, the listener has read this header, and it is about them.
	if !basic || !sent || g.ListenerPasswords || !g.Passwords() {
		return nobody, nil
	}
	if err := g.checkPassword(r, name, password); err != nil {
		return nobody, err
	}
	return g.visitor(nobody, Basic, name, nil), nil
}

func (g *Guard) visitor(v Visitor, source Source, name string, groups []string) Visitor {
	v.Source, v.Name, v.Roles = source, name, g.Rules.of(name, groups)
	return v
}

// listenerName is the name that the listener has checked.
func (g *Guard) listenerName(r *http.Request) string {
	if name, _, ok := r.BasicAuth(); ok && g.ListenerPasswords {
		return name
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return r.TLS.VerifiedChains[0][0].Subject.CommonName
	}
	return ""
}

type visitorKey struct{}

// Enter returns the request as the visitor's: its context knows the person.
func Enter(r *http.Request, v Visitor) *http.Request {
	return r.WithContext(context.WithValue(With(r.Context(), v.Person), visitorKey{}, v))
}

// VisitorOf returns the visitor of the context.
func VisitorOf(ctx context.Context) Visitor {
	v, _ := ctx.Value(visitorKey{}).(Visitor)
	return v
}

// SignsIn reports that there is something to sign in with: a password or a provider.
func (g *Guard) SignsIn() bool { return g.Passwords() || g.OIDC != nil }
