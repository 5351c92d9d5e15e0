package access

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// send returns a form with the token, as sent by the visitor.
func send(v Visitor, token string, headers ...string) *http.Request {
	return Enter(request("POST", "/trace", url.Values{FormField: {token}}, headers...), v)
}

func (d desk) token(v Visitor) string {
	return d.Token(Enter(request("GET", "/trace", nil), v).Context())
}

var (
	alice = Visitor{Person: Person{Name: "alice", From: "192.0.2.7"}, Source: Password, Session: "one"}
	again = Visitor{Person: Person{Name: "alice"}, Source: Password, Session: "two"}
	robot = Visitor{Person: Person{Name: "alice"}, Source: Basic}
	proxy = Visitor{Person: Person{Name: "alice"}, Source: ProxyHeader}
)

func TestAFormIsAcceptedOnce(t *testing.T) {
	d := newDesk(t, staff(t))
	token, other := d.token(alice), d.token(alice)
	if token == other {
		t.Fatal("two forms have one token")
	}
	if err := d.Accept(send(alice, token)); err != nil {
		t.Errorf("the form itself: %v", err)
	}
	if err := d.Accept(send(alice, token)); err != ErrFormUsed {
		t.Errorf("the form once more: %v", err)
	}
	if err := d.Accept(Enter(request("POST", "/trace", nil, FormHeader, other), alice)); err != nil {
		t.Errorf("a token in the header: %v", err)
	}
	if got := d.kept.take(); len(got) != 1 || got[0].Who != "alice" || got[0].From != "192.0.2.7" || got[0].Why != reasons[ErrFormUsed] {
		t.Errorf("recorded %+v", got)
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	d := newDesk(t, staff(t))
	old := d.token(alice)
	d.clock.pass(formLasts)
	good := d.token(alice)
	// The byte before the last digit: the last one may hold unused bits.
	changed := good[:len(good)-2] + string(good[len(good)-2]^1) + good[len(good)-1:]
	session := d.seal(forSession, alice.bound(), make([]byte, nonceSize+8))
	short := d.seal(forForm, alice.bound(), []byte("x"))
	for name, c := range map[string]struct {
		v       Visitor
		token   string
		headers []string
		want    error
	}{
		"none":                {alice, "", nil, ErrFormMissing},
		"nonsense":            {alice, "nonsense", nil, ErrFormWrong},
		"changed":             {alice, changed, nil, ErrFormWrong},
		"made for a session":  {alice, session, nil, ErrFormWrong},
		"too short":           {alice, short, nil, ErrFormWrong},
		"another sign-in":     {again, good, nil, ErrFormWrong},
		"no sign-in":          {robot, good, nil, ErrFormWrong},
		"of nobody":           {Visitor{}, good, nil, ErrFormWrong},
		"old":                 {alice, old, nil, ErrFormExpired},
		"another site":        {alice, good, []string{"Sec-Fetch-Site", "cross-site"}, ErrOtherSite},
		"another origin":      {alice, good, []string{"Origin", "https://evil.example"}, ErrOtherSite},
		"huge":                {alice, strings.Repeat("A", 1<<20) + "." + strings.Repeat("A", 1<<20), nil, ErrFormWrong},
		"a proxy's for basic": {robot, d.token(proxy), nil, ErrFormWrong},
	} {
		if err := d.Accept(send(c.v, c.token, c.headers...)); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if got := d.kept.take(); len(got) != 1 || got[0].Why != reasons[c.want] || got[0].Action != "POST /trace" {
			t.Errorf("%s: recorded %+v", name, got)
		}
	}
	if err := d.Accept(send(alice, good)); err != nil {
		t.Errorf("what was refused to others is burnt: %v", err)
	}
}

// Programs send JSON, which no page of another site can.
func TestJSONWithoutACookieNeedsNoToken(t *testing.T) {
	d := newDesk(t, staff(t))
	for name, c := range map[string]struct {
		v       Visitor
		kind    string
		headers []string
		want    error
	}{
		"basic":                     {robot, "application/json", nil, nil},
		"basic, with a charset":     {robot, "application/json; charset=utf-8", nil, nil},
		"a proxy's person":          {proxy, "application/json", nil, nil},
		"basic, as a form":          {robot, "application/x-www-form-urlencoded", nil, ErrFormMissing},
		"basic, as text":            {robot, "text/plain", nil, ErrFormMissing},
		"basic, of no type":         {robot, "", nil, ErrFormMissing},
		"basic, almost JSON":        {robot, "text/plain; application/json", nil, ErrFormMissing},
		"basic, from another site":  {robot, "application/json", []string{"Sec-Fetch-Site", "cross-site"}, ErrOtherSite},
		"a cookie":                  {alice, "application/json", nil, ErrFormMissing},
		"a cookie, and a bad token": {alice, "application/json", []string{FormHeader, "x"}, ErrFormWrong},
	} {
		r := Enter(request("POST", "/api/v1/actions/x", nil, c.headers...), c.v)
		r.Header.Set("Content-Type", c.kind)
		if err := d.Accept(r); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestAFormEndsWithItsSignIn(t *testing.T) {
	d := newDesk(t, staff(t))
	cookie := d.signIn(t, "alice", "a-secret")
	admit := func(r *http.Request) (Visitor, error) { return d.Admit(withCookie(r, cookie), ToEnter) }
	v, err := admit(request("GET", "/trace", nil))
	if err != nil {
		t.Fatal(err)
	}
	token := d.token(v)
	d.SignOut(withCookie(request("POST", "/signout", nil), cookie))
	cookie = d.signIn(t, "alice", "a-secret")
	if v, err = admit(request("POST", "/trace", nil)); err != nil {
		t.Fatal(err)
	}
	if err := d.Accept(send(v, token)); err != ErrFormWrong {
		t.Errorf("a form of the sign-in before: %v", err)
	}
}

// What may not happen twice does not, also when there is more than is remembered.
func TestOnceForgetsNothingThatStillCounts(t *testing.T) {
	c := &clock{at: time.Unix(1_000_000, 0)}
	o := newOnce(10, c.now)
	id := func(i int) string { return "id" + strings.Repeat("x", i) }
	for i := range 25 {
		if !o.add(id(i), c.now().Add(time.Duration(i+1)*time.Minute)) {
			t.Fatalf("%d is not fresh", i)
		}
		for j := range i + 1 {
			if o.add(id(j), c.now().Add(time.Duration(j+1)*time.Minute)) {
				t.Fatalf("after %d, %d is fresh again", i, j)
			}
		}
		if len(o.ends) > 10 {
			t.Fatalf("%d are remembered", len(o.ends))
		}
	}
	c.pass(time.Hour)
	if !o.add("new", c.now().Add(time.Minute)) {
		t.Error("it stays full for ever")
	}
	for i := range 12 {
		o.add(id(100+i), c.now().Add(time.Minute))
	}
	if len(o.ends) > 10 {
		t.Errorf("%d are remembered", len(o.ends))
	}
}

func TestAPersonOfNoRequestIsNobody(t *testing.T) {
	if v := VisitorOf(context.Background()); v.Known() || v.May(Viewer) || Of(context.Background()).May(Viewer) {
		t.Errorf("%+v", v)
	}
	r := Enter(request("GET", "/", nil), alice)
	if Of(r.Context()).Name != "alice" || VisitorOf(r.Context()).Session != "one" {
		t.Error("the request forgets its visitor")
	}
}
