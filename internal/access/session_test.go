package access

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func contains(s string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// who returns whose cookie it is; empty for nobody's.
func (d desk) who(c *http.Cookie) string {
	v, _ := d.Admit(withCookie(request("GET", "/", nil), c), ToEnter)
	return v.Name
}

func TestASignInLastsAsLongAsItSays(t *testing.T) {
	o := staff(t)
	o.Session = time.Hour
	d := newDesk(t, o)
	c := d.signIn(t, "alice", "a-secret")
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 3600 || c.Secure || strings.Contains(c.Value, "secret") {
		t.Errorf("cookie %+v", c)
	}
	if d.who(c) != "alice" {
		t.Fatal("the cookie is not taken")
	}
	if other := d.signIn(t, "alice", "a-secret"); other.Value == c.Value {
		t.Error("two sign-ins have one cookie")
	}
	d.clock.pass(time.Hour - time.Second)
	if d.who(c) != "alice" {
		t.Error("it ends early")
	}
	d.clock.pass(time.Second)
	if d.who(c) != "" {
		t.Error("it does not end")
	}
}

func TestACookieIsForOnePathAndTravelsEncrypted(t *testing.T) {
	o := staff(t)
	o.Prefix, o.Proxy = "/tools/idem", &Proxy{From: networks(t, "10.0.0.0/8")}
	d := newDesk(t, o)
	for _, c := range []struct {
		from, proto string
		secure      bool
	}{{"10.0.0.1:1", "https", true}, {"10.0.0.1:1", "http", false}, {"192.0.2.1:1", "https", false}} {
		r := request("POST", "/signin", nil, "X-Forwarded-Proto", c.proto)
		r.RemoteAddr = c.from
		cookie, err := d.SignIn(r, "alice", "a-secret")
		if err != nil || cookie.Secure != c.secure || cookie.Path != "/tools/idem/" {
			t.Errorf("%+v: %+v, %v", c, cookie, err)
		}
	}
}

// Whatever is changed in a cookie makes it nobody's.
func TestCookiesCannotBeMadeOrChanged(t *testing.T) {
	d := newDesk(t, staff(t))
	c := d.signIn(t, "bob", "b-secret")
	good := c.Value
	for i := range good {
		for _, other := range []byte{'A', 'b', '.', '-'} {
			changed := []byte(good)
			if changed[i] == other {
				continue
			}
			changed[i] = other
			c.Value = string(changed)
			if who := d.who(c); who != "" {
				t.Fatalf("byte %d as %q makes it %q's", i, other, who)
			}
		}
	}
	head, tail, _ := strings.Cut(good, ".")
	stranger := newDesk(t, staff(t)).signIn(t, "alice", "a-secret").Value
	strangerHead, strangerTail, _ := strings.Cut(stranger, ".")
	for _, value := range []string{"", ".", head, head + ".", "." + tail, tail + "." + head, stranger, strangerHead + "." + tail, head + "." + strangerTail, good + ".", good + "A", strings.Repeat("A", 100_000)} {
		c.Value = value
		if d.who(c) != "" {
			t.Errorf("%.40q is taken", value)
		}
	}
	c.Value = good
	if d.who(c) != "bob" {
		t.Error("the cookie itself is not taken")
	}
	// What was sealed for a form is no sign-in.
	c.Value = d.seal(forForm, "", []byte(`{"ID":"x","Name":"alice","Source":"password","Ends":99999999999}`))
	if d.who(c) != "" {
		t.Error("a form's token is taken for a sign-in")
	}
}

// Beside a cookie of somebody else's making, ours is still found.
func TestAPlantedCookieDoesNotHideTheRealOne(t *testing.T) {
	d := newDesk(t, staff(t))
	c := d.signIn(t, "alice", "a-secret")
	r := request("GET", "/", nil)
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: "planted"})
	v, err := d.Admit(withCookie(r, c), ToEnter)
	if err != nil || v.Name != "alice" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestWhatEndsASignIn(t *testing.T) {
	o := staff(t)
	d := newDesk(t, o)
	c := d.signIn(t, "alice", "a-secret")
	next := func(change func(*Options)) desk {
		changed := o
		changed.Memory = d.Memory
		change(&changed)
		return newDesk(t, changed)
	}
	if who := next(func(*Options) {}).who(c); who != "alice" {
		t.Errorf("reading the same configuration anew makes it %q's", who)
	}
	if who := next(func(o *Options) { o.Users = o.Users[1:] }).who(c); who != "" {
		t.Error("a name that is gone stays signed in")
	}
	if who := next(func(o *Options) { o.Users = append([]User{user(t, "alice", "new")}, o.Users[1:]...) }).who(c); who != "" {
		t.Error("a new password keeps the old sign-in")
	}
	fewer := next(func(o *Options) { o.Rules = Rules{Viewer: {"alice"}} })
	if v, _ := fewer.Admit(withCookie(request("GET", "/", nil), c), ToEnter); v.May(Operator) || !v.May(Viewer) {
		t.Errorf("roles that are gone stay: %+v", v)
	}
	gone := d.SignOut(withCookie(request("POST", "/signout", nil), c))
	if gone.MaxAge >= 0 || gone.Value != "" || gone.Path != "/" {
		t.Errorf("cookie %+v", gone)
	}
	if d.who(c) != "" {
		t.Error("a copy of the cookie outlives the sign-out")
	}
	if other := d.signIn(t, "alice", "a-secret"); d.who(other) != "alice" {
		t.Error("signing out ends other sign-ins, or those to come")
	}
}

func TestKeysCanBeExchanged(t *testing.T) {
	o := staff(t)
	o.Keys = [][]byte{[]byte(strings.Repeat("1", 32))}
	c := newDesk(t, o).signIn(t, "alice", "a-secret")
	o.Keys = [][]byte{[]byte(strings.Repeat("2", 32)), o.Keys[0]}
	if d := newDesk(t, o); d.who(c) != "alice" {
		t.Error("the key of before is not taken")
	}
	o.Keys = o.Keys[:1]
	if d := newDesk(t, o); d.who(c) != "" {
		t.Error("a key that is gone is taken")
	}
}
