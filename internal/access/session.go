package access

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"
)

// sessionCookie is the name of the cookie of a sign-in.
const sessionCookie = "idemscope_session"

// session is a sign-in, as its cookie carries it. No store holds it, so there is
// no id that somebody could be made to use.
type session struct {
	// ID joins the forms of the sign-in to it.
	ID     string
	Name   string
	Groups []string `json:",omitempty"`
	Source Source
	// Mark changes with the password, so that a new one ends the sign-ins of the old.
	Mark []byte `json:",omitempty"`
	// Ends in seconds since 1970.
	Ends int64
}

// begin returns the cookie of a new sign-in.
func (g *Guard) begin(r *http.Request, source Source, name string, groups []string) (*http.Cookie, error) {
	s := session{
		ID: rand.Text(), Name: name, Groups: g.Rules.known(groups), Source: source,
		Mark: g.mark(name, source), Ends: g.Memory.now().Add(g.Session).Unix(),
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return g.cookie(r, sessionCookie, g.seal(forSession, "", data), g.Session), nil
}

// session returns the sign-in whose cookie came along, if it still holds.
func (g *Guard) session(r *http.Request) (s session, ok bool) {
	// Two cookies of this name have different paths, and one may come from elsewhere.
	for _, c := range r.CookiesNamed(sessionCookie) {
		data, sealed := g.open(forSession, "", c.Value)
		var read session
		if !sealed || json.Unmarshal(data, &read) != nil || !g.holds(read) {
			continue
		}
		return read, true
	}
	return session{}, false
}

func (g *Guard) holds(s session) bool {
	if !g.Memory.now().Before(time.Unix(s.Ends, 0)) || g.Memory.ended.has(s.ID) {
		return false
	}
	switch s.Source {
	case Password:
		_, there := g.users[s.Name]
		return there && hmac.Equal(s.Mark, g.mark(s.Name, s.Source))
	case Provider:
		return g.OIDC != nil
	}
	return false
}

// mark stands for the stored hash of a password.
func (g *Guard) mark(name string, source Source) []byte {
	if source != Password {
		return nil
	}
	// The first key alone would end all sign-ins when keys are exchanged.
	return sum([]byte("mark"), forUser, name, g.users[name].Hash)[:12]
}

// SignOut ends the sign-in whose cookie came along, also where the cookie was
// copied to, and returns the cookie that removes it.
func (g *Guard) SignOut(r *http.Request) *http.Cookie {
	if s, ok := g.session(r); ok {
		g.Memory.ended.add(s.ID, time.Unix(s.Ends, 0))
	}
	return g.cookie(r, sessionCookie, "", -1)
}

// cookie returns a cookie that only this console gets, and no script can read.
func (g *Guard) cookie(r *http.Request, name, value string, lasts time.Duration) *http.Cookie {
	age := int(lasts.Seconds())
	if lasts < 0 {
		age = -1
	}
	return &http.Cookie{
		Name: name, Value: value, Path: g.Prefix + "/", MaxAge: age,
		HttpOnly: true, Secure: g.secure(r), SameSite: http.SameSiteLaxMode,
	}
}
