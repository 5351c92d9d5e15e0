package access

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"slices"
	"testing"

	"idemscope/internal/audit"
)

func TestRolesComeFromNamesAndGroups(t *testing.T) {
	rules := Rules{Viewer: {"*"}, Payload: {"alice", "group:oncall"}, Operator: {"group:admins"}}
	for _, c := range []struct {
		name   string
		groups []string
		want   []Role
	}{
		{"alice", nil, []Role{Viewer, Payload}},
		{"Alice", nil, []Role{Viewer}},
		{"bob", []string{"oncall", "admins"}, []Role{Viewer, Payload, Operator}},
		{"group:admins", nil, []Role{Viewer}},
		{"oncall", nil, []Role{Viewer}},
		{"*", []string{"*"}, []Role{Viewer}},
		{"", nil, []Role{Viewer}},
	} {
		if got := rules.of(c.name, c.groups); !slices.Equal(got, c.want) {
			t.Errorf("%q in %q: %v, want %v", c.name, c.groups, got, c.want)
		}
	}
	if got := rules.known([]string{"a", "oncall", "admins", "oncall"}); !slices.Equal(got, []string{"admins", "oncall"}) {
		t.Errorf("groups that are kept: %q", got)
	}
}

// Every source, and what it makes of the visitor.
func TestWhoAsks(t *testing.T) {
	local := func() *http.Request { r := request("GET", "/", nil); r.Host = "127.0.0.1:9877"; return r }
	certificate := request("GET", "/", nil)
	certificate.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "robot"}}}}}
	everything := []Role{Viewer, Payload}
	for name, c := range map[string]struct {
		options Options
		request *http.Request
		source  Source
		who     string
		roles   []Role
	}{
		"nobody is asked":               {Options{}, local(), Open, "", everything},
		"nobody is asked, actions":      {Options{Actions: true}, local(), Open, "", append(slices.Clone(everything), Operator)},
		"listener's password":           {Options{Listener: true, ListenerPasswords: true}, basic(request("GET", "/", nil), "ops", "x"), Listener, "ops", everything},
		"listener's password, actions":  {Options{Listener: true, ListenerPasswords: true, Actions: true}, basic(request("GET", "/", nil), "ops", "x"), Listener, "ops", append(slices.Clone(everything), Operator)},
		"listener's password, rules":    {Options{Listener: true, ListenerPasswords: true, Actions: true, Rules: Rules{Viewer: {"*"}}}, basic(request("GET", "/", nil), "ops", "x"), Listener, "ops", []Role{Viewer}},
		"listener's certificate":        {Options{Listener: true}, certificate, Listener, "robot", everything},
		"a name that nobody checked":    {Options{Listener: true}, basic(certificate.Clone(t.Context()), "alice", "x"), Listener, "robot", everything},
		"basic behind certificates":     {with(staff(t), func(o *Options) { o.Listener = true }), basic(certificate.Clone(t.Context()), "bob", "b-secret"), Basic, "bob", []Role{Viewer}},
		"basic":                         {staff(t), basic(request("GET", "/", nil), "alice", "a-secret"), Basic, "alice", []Role{Viewer, Payload, Operator}},
		"not signed in":                 {staff(t), request("GET", "/", nil), "", "", nil},
		"basic is the listener's":       {with(staff(t), func(o *Options) { o.Listener, o.ListenerPasswords = true, true }), basic(request("GET", "/", nil), "alice", "a-secret"), "", "", nil},
		"an open header means nothing":  {staff(t), request("GET", "/", nil, "X-Forwarded-User", "alice"), "", "", nil},
		"a header without a proxy conf": {Options{}, func() *http.Request { r := local(); r.Header.Set("X-Forwarded-User", "eve"); return r }(), Open, "", everything},
	} {
		d := newDesk(t, c.options)
		v, _ := d.Admit(c.request, ToEnter)
		if v.Source != c.source || v.Name != c.who || !slices.Equal(v.Roles, c.roles) || v.From == "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func with(o Options, change func(*Options)) Options { change(&o); return o }

// What each kind of person may, by address and method.
func TestAdmit(t *testing.T) {
	d := newDesk(t, staff(t))
	people := map[string]func(*http.Request) *http.Request{
		"nobody":   func(r *http.Request) *http.Request { return r },
		"no role":  func(r *http.Request) *http.Request { return basic(r, "carol", "c-secret") },
		"viewer":   func(r *http.Request) *http.Request { return basic(r, "bob", "b-secret") },
		"operator": func(r *http.Request) *http.Request { return basic(r, "alice", "a-secret") },
	}
	for who, want := range map[string]map[string]error{
		"nobody":   {"GET": ErrSignIn, "HEAD": ErrSignIn, "OPTIONS": ErrSignIn, "POST": ErrSignIn, "PUT": ErrSignIn, "DELETE": ErrSignIn, "X": ErrSignIn},
		"no role":  {"GET": ErrNoRole, "HEAD": ErrNoRole, "OPTIONS": ErrNoRole, "POST": ErrNoRole, "PUT": ErrNoRole, "DELETE": ErrNoRole, "X": ErrNoRole},
		"viewer":   {"GET": nil, "HEAD": nil, "OPTIONS": nil, "POST": ErrNotOperator, "PUT": ErrNotOperator, "DELETE": ErrNotOperator, "X": ErrNotOperator},
		"operator": {"GET": nil, "HEAD": nil, "OPTIONS": nil, "POST": nil, "PUT": nil, "DELETE": nil, "X": nil},
	} {
		for method, wantErr := range want {
			_, err := d.Admit(people[who](request(method, "/trace", nil)), ToEnter)
			if err != wantErr {
				t.Errorf("%s %s: %v, want %v", who, method, err, wantErr)
			}
			recorded := d.kept.take()
			changing := method != "GET" && method != "HEAD" && method != "OPTIONS"
			if changing && wantErr != nil {
				if len(recorded) != 1 || recorded[0].Outcome != audit.Refused || recorded[0].Action != method+" /trace" || recorded[0].From != "192.0.2.7" || recorded[0].Why != reasons[wantErr] {
					t.Errorf("%s %s: recorded %+v", who, method, recorded)
				}
			} else if len(recorded) > 0 {
				t.Errorf("%s %s: recorded %+v", who, method, recorded)
			}
			if _, err := d.Admit(people[who](request(method, "/", nil)), Nothing); err != nil {
				t.Errorf("%s %s where everybody may: %v", who, method, err)
			}
		}
	}
	if _, err := d.Admit(people["viewer"](request("POST", "/nowhere", nil)), ToLook); err != nil {
		t.Errorf("where nothing can change: %v", err)
	}
	if _, err := d.Admit(request("GET", "/metrics", nil), ToScrape); err != ErrSignIn {
		t.Errorf("metrics: %v", err)
	}
	if _, err := newDesk(t, with(staff(t), func(o *Options) { o.Listener = true })).Admit(request("GET", "/metrics", nil), ToScrape); err != nil {
		t.Errorf("metrics behind a listener that asks: %v", err)
	}
}

func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	d := newDesk(t, with(staff(t), func(o *Options) { o.Proxy = &Proxy{From: networks(t, "10.0.0.0/8")} }))
	for name, c := range map[string]struct {
		from    string
		headers []string
		refused bool
	}{
		"a program":                     {"", nil, false},
		"our page":                      {"", []string{"Sec-Fetch-Site", "same-origin"}, false},
		"typed":                         {"", []string{"Sec-Fetch-Site", "none"}, false},
		"another site":                  {"", []string{"Sec-Fetch-Site", "cross-site"}, true},
		"a sibling":                     {"", []string{"Sec-Fetch-Site", "same-site"}, true},
		"our origin":                    {"", []string{"Origin", "http://console.example:9877"}, false},
		"another origin":                {"", []string{"Origin", "http://evil.example"}, true},
		"another port":                  {"", []string{"Origin", "http://console.example"}, true},
		"no origin":                     {"", []string{"Origin", "null"}, true},
		"broken origin":                 {"", []string{"Origin", "http://%zz"}, true},
		"our origin through a proxy":    {"10.1.1.1:1", []string{"Origin", "https://idem.corp", "X-Forwarded-Host", "idem.corp"}, false},
		"another origin through it":     {"10.1.1.1:1", []string{"Origin", "https://evil.example", "X-Forwarded-Host", "idem.corp"}, true},
		"a host that anybody can claim": {"", []string{"Origin", "https://evil.example", "X-Forwarded-Host", "evil.example"}, true},
	} {
		r := basic(request("POST", "/trace", nil, c.headers...), "alice", "a-secret")
		if c.from != "" {
			r.RemoteAddr = c.from
		}
		for _, need := range []Need{ToEnter, Nothing} {
			_, err := d.Admit(r.Clone(t.Context()), need)
			if (err == ErrOtherSite) != c.refused || !c.refused && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := d.kept.take(); c.refused != (len(got) == 1) {
				t.Errorf("%s: recorded %+v", name, got)
			}
		}
	}
}

// A foreign name that leads to this machine makes foreign pages look like ours.
func TestAnOpenConsoleIsChangedByItsOwnNamesOnly(t *testing.T) {
	d := newDesk(t, Options{Actions: true})
	for host, fine := range map[string]bool{
		"127.0.0.1:9877": true, "localhost:9877": true, "LOCALHOST": true, "[::1]:9877": true, "[::1]": true, "192.168.1.5:80": true,
		"evil.example": false, "evil.example:9877": false, "localhost.evil.example": false, "127.0.0.1.evil.example:9877": false, "": false,
	} {
		r := request("POST", "/trace", nil, "Sec-Fetch-Site", "same-origin")
		r.Host = host
		if _, err := d.Admit(r, ToEnter); (err == nil) != fine {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestReloadIsForOperatorsOnceSomebodyIsAsked(t *testing.T) {
	d := newDesk(t, staff(t))
	if err := d.AdmitReload(request("POST", "/-/reload", nil)); err != ErrSignIn {
		t.Errorf("nobody: %v", err)
	}
	if err := d.AdmitReload(basic(request("POST", "/-/reload", nil), "bob", "b-secret")); err != ErrNotOperator {
		t.Errorf("a viewer: %v", err)
	}
	if err := d.AdmitReload(basic(request("POST", "/-/reload", nil), "alice", "a-secret")); err != nil {
		t.Errorf("an operator: %v", err)
	}
	for _, o := range []Options{{}, {Listener: true}} {
		r := request("POST", "/-/reload", nil)
		r.Host = "localhost:9877"
		if err := newDesk(t, o).AdmitReload(r); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if err := newDesk(t, o).AdmitReload(r); err != ErrOtherSite {
			t.Errorf("%+v from another site: %v", o, err)
		}
	}
}

// A record that cannot be written changes no refusal, and is logged.
func TestARefusalStaysOneWithoutARecord(t *testing.T) {
	d := newDesk(t, staff(t))
	d.kept.err = errors.New("disk full")
	if _, err := d.Admit(request("POST", "/trace", nil), ToEnter); err != ErrSignIn {
		t.Errorf("%v", err)
	}
	if got := d.log.String(); !contains(got, "disk full", "POST /trace", "192.0.2.7") {
		t.Errorf("log: %s", got)
	}
}

// Everybody can cause refusals, so they are counted, and not all are kept.
func TestRefusalsAreRecordedUpToALimit(t *testing.T) {
	d := newDesk(t, staff(t))
	for range perMinute + 30 {
		_, _ = d.Admit(request("POST", "/trace", nil), ToEnter)
	}
	if got := d.kept.take(); len(got) != perMinute {
		t.Errorf("%d recorded", len(got))
	}
	d.clock.pass(61e9)
	_, _ = d.Admit(request("POST", "/trace", nil), ToEnter)
	got := d.kept.take()
	if len(got) != 1 || !contains(got[0].Why.EN, "30 refusals before it") || !contains(got[0].Why.ZH, "30 次") {
		t.Errorf("recorded %+v", got)
	}
}
