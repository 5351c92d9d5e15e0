package console

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"golang.org/x/crypto/bcrypt"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// kept is a record in memory.
type kept struct {
	mu      sync.Mutex
	entries []audit.Entry
}

func (k *kept) Append(_ context.Context, e audit.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries = append(k.entries, e)
	return nil
}

func (k *kept) take() []audit.Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.entries
	k.entries = nil
	return all
}

// people of the tests; each one's password is the name.
var people = []string{"carol", "bob", "alice"}

// idleActor has nothing to do.
type idleActor struct{}

func (idleActor) Precheck(context.Context, flow.Place, action.Kind) (action.Precheck, error) {
	return action.Precheck{}, nil
}
func (idleActor) Offers(context.Context, answer.Answer) []action.Precheck { return nil }
func (idleActor) Do(context.Context, action.Ticket, string) action.Result { return action.Result{} }

// guarded is a console with everything on it, and three people: carol without a
// role, bob who may see, alice who may do everything.
func guarded(t *testing.T, change func(*access.Options, *Options)) (http.Handler, *kept) {
	t.Helper()
	k := &kept{}
	logger := slog.New(slog.DiscardHandler)
	guard := access.Options{
		Rules:  access.Rules{access.Viewer: {"alice", "bob"}, access.Payload: {"alice"}, access.Operator: {"alice"}},
		Memory: access.NewMemory(nil), Audit: k, Logger: logger, Actions: true,
	}
	for _, name := range people {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		guard.Users = append(guard.Users, access.User{Name: name, Hash: hash})
	}
	o := shop(t)
	o.Traces, o.Actions, o.Logger = idleTrace(), true, logger
	o.Findings = func() answer.Findings { return answer.Findings{} }
	o.Doctor = cannedDoctor{}
	o.Cleanup = busyBroom()
	o.Actor, o.Audit = idleActor{}, openAudit(t)
	o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "idem_up 1\n") })
	if change != nil {
		change(&guard, &o)
	}
	var err error
	if o.Guard, err = access.New(guard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Guard.Close)
	h, err := router(o)
	if err != nil {
		t.Fatal(err)
	}
	return h, k
}

// call sends a request as somebody; who may be empty, headers come in pairs.
func call(h http.Handler, who, method, target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:9877"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if who != "" {
		r.SetBasicAuth(who, who)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// decisions say of every address who may use it. An address that is not here fails
// the test: whoever adds one decides.
var decisions = map[string]string{
	"GET /":                      "viewer",
	"GET /search":                "viewer",
	"GET /key":                   "viewer",
	"GET /api/v1/search":         "viewer",
	"GET /api/v1/lookup":         "viewer",
	"GET /findings":              "viewer",
	"GET /findings.csv":          "viewer",
	"GET /findings.json":         "viewer",
	"GET /key.md":                "viewer",
	"GET /api/v1/findings":       "viewer",
	"GET /api/v1/openapi.json":   "viewer",
	"GET /trace":                 "viewer",
	"GET /api/v1/trace":          "viewer",
	"POST /trace":                "operator",
	"GET /doctor":                "viewer",
	"GET /api/v1/doctor":         "viewer",
	"GET /flows":                 "viewer",
	"GET /flows/:name":           "viewer",
	"GET /api/v1/flows":          "viewer",
	"GET /api/v1/flows/:name":    "viewer",
	"GET /cleanup":               "viewer",
	"GET /api/v1/cleanup":        "viewer",
	"POST /cleanup/stop":         "operator",
	"GET /action":                "viewer",
	"POST /action":               "operator",
	"POST /api/v1/actions/:kind": "operator",
	"POST /api/v1/actions":       "operator",
	"GET /findings/preview":      "viewer",
	"POST /findings/preview":     "operator",
	"POST /findings/act":         "operator",
	"GET /audit":                 "viewer",
	"GET /api/v1/audit":          "viewer",
	"GET /metrics":               "viewer",
	"GET /signin":                "everybody",
	"POST /signin":               "everybody",
	"GET /signin/oidc":           "everybody",
	"GET /signin/callback":       "everybody",
	"POST /signout":              "everybody",
	"GET /static/:name":          "everybody",
	"GET /favicon.ico":           "everybody",
	"GET /favicon.svg":           "everybody",
	"GET /healthz":               "everybody",
	"GET /readyz":                "everybody",
}

// asksWithoutToken are the addresses that take no form with a token: programs send no
// form, and a preview changes nothing.
var asksWithoutToken = map[string]bool{"POST /api/v1/actions/:kind": true, "POST /api/v1/actions": true, "POST /findings/preview": true}

// mayBy lists who may, for each decision.
var mayBy = map[string]map[string]bool{
	"everybody": {"": true, "carol": true, "bob": true, "alice": true},
	"viewer":    {"bob": true, "alice": true},
	"operator":  {"alice": true},
}

func TestWhoMayUseWhichAddress(t *testing.T) {
	h, k := guarded(t, nil)
	known := map[string]bool{}
	for _, route := range h.(*gin.Engine).Routes() {
		name := strings.Replace(route.Method, "HEAD", "GET", 1) + " " + route.Path
		known[name] = true
		decision, decided := decisions[name]
		if !decided {
			t.Errorf("nobody decided who may use %s", name)
			continue
		}
		for _, who := range append([]string{""}, people...) {
			k.take()
			w := call(h, who, route.Method, strings.NewReplacer(":name", "x", ":kind", "release-lock").Replace(route.Path), nil)
			away := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden ||
				w.Code == http.StatusSeeOther && (strings.Contains(w.Header().Get("Location"), "signin?return") || w.Header().Get("Location") == "./signin" && route.Path == "/")
			if name == "POST /signin" {
				away = w.Code != http.StatusUnauthorized // an empty password is not taken, but looked at
			}
			if asksWithoutToken[name] && who == "alice" {
				away = w.Code != http.StatusBadRequest // she may; she sent no order
				k.take()
				k.entries = append(k.entries, audit.Entry{})
			} else if decision == "operator" && who == "alice" {
				// She may; her form has no token.
				away = !strings.Contains(w.Body.String(), "has no token")
			}
			if away == mayBy[decision][who] {
				t.Errorf("%s %s as %q: %d to %q", route.Method, route.Path, who, w.Code, w.Header().Get("Location"))
			}
			recorded := k.take()
			if refusedChange := route.Method == "POST" && decision == "operator"; refusedChange != (len(recorded) == 1) && name != "POST /signin" {
				t.Errorf("%s as %q: recorded %+v", name, who, recorded)
			}
		}
	}
	for name := range decisions {
		if !known[name] {
			t.Errorf("%s is no address", name)
		}
	}
}

// Whatever is no address is closed as well, and changes nothing.
func TestWhereThereIsNothing(t *testing.T) {
	h, _ := guarded(t, nil)
	for _, c := range []struct {
		who, method, path string
		status            int
	}{
		{"", "GET", "/nowhere", 303}, {"", "POST", "/nowhere", 401}, {"", "GET", "/api/v1/nothing", 401}, {"", "POST", "/", 401}, {"", "DELETE", "/key", 401},
		{"carol", "GET", "/nowhere", 403}, {"bob", "GET", "/nowhere", 404}, {"bob", "POST", "/", 405}, {"bob", "DELETE", "/key", 405}, {"bob", "PATCH", "/trace", 405}, {"bob", "POST", "/nowhere", 404},
	} {
		if w := call(h, c.who, c.method, c.path, nil); w.Code != c.status {
			t.Errorf("%s %s as %q: %d, want %d", c.method, c.path, c.who, w.Code, c.status)
		}
	}
}

// Each way in which a form is not taken, what is said, and what is recorded.
func TestFormsThatAreNotTaken(t *testing.T) {
	traces := idleTrace()
	h, k := guarded(t, func(_ *access.Options, o *Options) { o.Traces = traces })
	tokenFor := func(who string) string {
		_, rest, _ := strings.Cut(call(h, who, "GET", "/trace", nil).Body.String(), `name="form_token" value="`)
		token, _, _ := strings.Cut(rest, `"`)
		return token
	}
	form := func(token string) url.Values {
		f := url.Values{"broker": {"rabbit"}, "do": {"arm"}, "minutes": {"3"}, "agreed": {"yes"}}
		if token != "" {
			f.Set("form_token", token)
		}
		return f
	}
	used := tokenFor("alice")
	if w := call(h, "alice", "POST", "/trace", form(used)); w.Code != http.StatusSeeOther || len(traces.armed) != 1 {
		t.Fatalf("the form itself: %d", w.Code)
	}
	for name, c := range map[string]struct {
		who, token string
		headers    []string
		status     int
		says, why  string
	}{
		"nobody":         {"", "x", nil, 401, "Sign in first", "not signed in"},
		"a viewer":       {"bob", tokenFor("alice"), nil, 403, "needs the role operator", "no role operator"},
		"no role":        {"carol", tokenFor("alice"), nil, 403, "needs the role viewer", "no role viewer"},
		"no token":       {"alice", "", nil, 403, "has no token", "no token"},
		"a wrong token":  {"alice", "x.y", nil, 403, "made for somebody else", "not made for this person"},
		"sent again":     {"alice", used, nil, 403, "sent before", "sent before"},
		"another site":   {"alice", tokenFor("alice"), []string{"Sec-Fetch-Site", "cross-site"}, 403, "another site", "another site"},
		"another origin": {"alice", tokenFor("alice"), []string{"Origin", "https://evil.example"}, 403, "another site", "another site"},
	} {
		k.take()
		w := call(h, c.who, "POST", "/trace", form(c.token), c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d\n%s", name, w.Code, w.Body)
		}
		got := k.take()
		if len(got) != 1 || got[0].Who != c.who || got[0].Action != "POST /trace" || got[0].Outcome != audit.Refused || !strings.Contains(got[0].Why.EN, c.why) || got[0].Why.ZH == "" || got[0].From == "" {
			t.Errorf("%s: recorded %+v", name, got)
		}
	}
	if len(traces.armed) != 1 {
		t.Errorf("armed %d times", len(traces.armed))
	}
	if w := call(h, "bob", "GET", "/trace", nil); strings.Contains(w.Body.String(), "form_token") || !strings.Contains(w.Body.String(), "needs the role operator") {
		t.Error("a viewer gets a form that would be refused")
	}
}

// With actions off, an operator changes nothing either.
func TestNothingChangesWithActionsOff(t *testing.T) {
	traces := idleTrace()
	h, _ := guarded(t, func(_ *access.Options, o *Options) { o.Traces, o.Actions = traces, false })
	for _, who := range []string{"alice", "bob"} {
		w := call(h, who, "POST", "/trace", armForm)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "console.actions: true") || len(traces.armed) > 0 {
			t.Errorf("%s: %d\n%s", who, w.Code, w.Body)
		}
	}
}

func TestTheSignInPage(t *testing.T) {
	h, _ := guarded(t, nil)
	for lang, words := range map[string][]string{"en": {"Sign in", "Name", "Password"}, "zh": {"登录", "用户名", "密码"}} {
		w := call(h, "", "GET", "/signin?lang="+lang+"&return=findings", nil)
		d := reply{w.Result(), w.Body.String()}.document(t)
		for _, word := range words {
			if !strings.Contains(d.text(), word) {
				t.Errorf("%s: no %q", lang, word)
			}
		}
		if strings.Contains(w.Body.String(), `href="./findings`) || strings.Contains(w.Body.String(), `href="./doctor`) {
			t.Errorf("%s: it leads to what nobody may see yet", lang)
		}
		if !strings.Contains(w.Body.String(), `name="return" value="findings"`) || !strings.Contains(w.Body.String(), `action="./signin?lang=`+lang) {
			t.Errorf("%s: it forgets where to go back to:\n%s", lang, w.Body)
		}
	}
	if w := call(h, "", "POST", "/signin", url.Values{"name": {"alice"}, "password": {"alice"}}, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("another site signs somebody in: %d", w.Code)
	}
	if w := call(h, "", "POST", "/signin", url.Values{"name": {strings.Repeat("x", maxForm)}}); w.Code != http.StatusBadRequest {
		t.Errorf("a huge form: %d", w.Code)
	}
	for range 6 {
		call(h, "", "POST", "/signin", url.Values{"name": {"alice"}, "password": {"wrong"}})
	}
	w := call(h, "", "POST", "/signin?lang=zh", url.Values{"name": {"alice"}, "password": {"alice"}})
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "登录失败次数过多") {
		t.Errorf("throttled: %d\n%s", w.Code, w.Body)
	}
	if w := call(h, "bob", "GET", "/api/v1/findings", nil); w.Code != http.StatusTooManyRequests {
		t.Errorf("the API is not slowed down with it: %d", w.Code)
	}
}

// A sign-in leads back into the console, whatever it is told.
func TestASignInLeadsNowhereElse(t *testing.T) {
	for _, back := range []string{
		"//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "../../evil", "key\r\nSet-Cookie: a=b", "%0d%0aLocation:x", "/", "http:evil.example", "\x00", "//evil.example\x00?",
	} {
		h, _ := guarded(t, nil)
		w := call(h, "", "POST", "/signin", url.Values{"name": {"alice"}, "password": {"alice"}, "return": {back}})
		to := w.Header().Get("Location")
		base, _ := url.Parse("http://127.0.0.1:9877/signin")
		target, err := base.Parse(to)
		if w.Code != http.StatusSeeOther || err != nil || target.Host != base.Host || target.Scheme != "http" || !strings.HasPrefix(to, "./") || strings.ContainsAny(to, "\r\n\\") {
			t.Errorf("%q leads to %q: %d, %v", back, to, w.Code, err)
		}
		if cookies := w.Result().Cookies(); len(cookies) != 1 || cookies[0].Name != "idemscope_session" {
			t.Errorf("%q sets %v", back, cookies)
		}
		page := call(h, "", "GET", "/signin?return="+url.QueryEscape(back), nil).Body.String()
		if strings.Contains(page, "evil.example") && strings.Contains(page, `name="return"`) {
			t.Errorf("%q stands in the form", back)
		}
	}
}

func TestSignedInTwice(t *testing.T) {
	h, _ := guarded(t, nil)
	cookie := call(h, "", "POST", "/signin", url.Values{"name": {"alice"}, "password": {"alice"}}).Header().Get("Set-Cookie")
	cookie, _, _ = strings.Cut(cookie, ";")
	if w := call(h, "", "GET", "/signin?return=findings", nil, "Cookie", cookie); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./findings" {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	w := call(h, "", "GET", "/", nil, "Cookie", cookie)
	d := reply{w.Result(), w.Body.String()}.document(t)
	if person := d.one(t, "form", "person"); !strings.Contains(person.words(), "alice Sign out") {
		t.Errorf("the bar says %q", person.words())
	}
	if w := call(h, "", "POST", "/signout", url.Values{}, "Cookie", cookie, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("another site signs somebody out: %d", w.Code)
	}
	if w := call(h, "", "POST", "/signout", url.Values{}, "Cookie", cookie); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./signin?out=1" {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := call(h, "", "GET", "/", nil, "Cookie", cookie); w.Code != http.StatusSeeOther {
		t.Errorf("the cookie still counts: %d", w.Code)
	}
}

// A person with a proxy's name and no role is told so, and is not sent in circles.
func TestKnownAndWithoutARole(t *testing.T) {
	h, _ := guarded(t, nil)
	cookie := call(h, "", "POST", "/signin", url.Values{"name": {"carol"}, "password": {"carol"}}).Header().Get("Set-Cookie")
	cookie, _, _ = strings.Cut(cookie, ";")
	if w := call(h, "", "GET", "/findings", nil, "Cookie", cookie); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "needs the role viewer") || !strings.Contains(w.Body.String(), `action="./signout"`) {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := call(h, "", "GET", "/signin", nil, "Cookie", cookie); w.Code != http.StatusOK {
		t.Errorf("the sign-in page leads on to what is closed: %d", w.Code)
	}
}

func TestAProviderThatDoesNotAnswer(t *testing.T) {
	h, k := guarded(t, func(a *access.Options, _ *Options) {
		a.OIDC = &access.OIDC{Issuer: "http://127.0.0.1:1", ClientID: "x", ClientSecret: "y", RedirectURL: "http://localhost/signin/callback", NameClaim: "email"}
	})
	if w := call(h, "", "GET", "/signin?return=findings", nil); !strings.Contains(w.Body.String(), `href="./signin/oidc?return=findings"`) {
		t.Errorf("no way to the provider:\n%s", w.Body)
	}
	if w := call(h, "", "GET", "/signin/oidc", nil); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "127.0.0.1:1") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := call(h, "", "GET", "/signin/callback?code=x&state=y", nil, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusBadRequest || len(k.take()) != 1 {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
}

func TestTheEnvironmentStandsOnEveryPage(t *testing.T) {
	for name, production := range map[string]bool{"production": true, "Production": true, "staging": false, "<b>预发</b>": false} {
		h, _ := guarded(t, func(_ *access.Options, o *Options) { o.Environment = name })
		for _, path := range []string{"/", "/key?type=order_paid&id=" + orderNo, "/nowhere", "/signin"} {
			w := call(h, "bob", "GET", path, nil)
			d := reply{w.Result(), w.Body.String()}.document(t)
			badge := d.one(t, "span", "environment")
			if badge.text() != name || hasClass(badge.Node, "production") != production || !strings.HasPrefix(d.one(t, "title", "").text(), "["+name+"] ") {
				t.Errorf("%s: badge %q, title %q", path, badge.text(), d.one(t, "title", "").text())
			}
		}
	}
}

// What needs the role payload is nowhere for those without, and said to be hidden.
func TestPayloadsNeedTheirRole(t *testing.T) {
	const secret = `{"card":"S9S9"}`
	record := row("completed", flow.Completed, 0)
	record.Result = new(secret)
	store := canned{record: records(record), lock: redisKeys(none(), held(secret, 1e12)), queues: queues(0, 0, 0)}
	h, _ := guarded(t, func(_ *access.Options, o *Options) { o.Desk = store.desk(t, shopFlows(t)) })
	for _, path := range []string{"/key?type=order_paid&id=" + orderNo, "/api/v1/lookup?type=order_paid&id=" + orderNo, "/key.md?type=order_paid&id=" + orderNo, "/api/v1/search?q=" + orderNo,
		"/search?q=" + orderNo, "/api/v1/search?q=" + orderNo + "%20", "/key?wait=all&type=order_paid&id=" + orderNo + "%20", "/api/v1/lookup?download=1&type=order_paid&id=" + orderNo} {
		if w := call(h, "bob", "GET", path, nil); w.Code >= 400 || strings.Contains(w.Body.String(), "S9S9") {
			t.Errorf("%s shows it: %d\n%s", path, w.Code, w.Body)
		}
	}
	page := call(h, "bob", "GET", "/key?type=order_paid&id="+orderNo, nil).Body.String()
	if n := strings.Count(page, "hidden: needs the role payload"); n != 4 { // two in the page, two in its report
		t.Errorf("%d places say that something is hidden", n)
	}
	if page := call(h, "alice", "GET", "/key?type=order_paid&id="+orderNo, nil).Body.String(); strings.Count(page, "S9S9") != 4 {
		t.Errorf("with the role it is not shown:\n%s", page)
	}
	var j struct {
		Record struct{ Rows []map[string]any }
		Marker map[string]any
	}
	if err := json.Unmarshal(call(h, "bob", "GET", "/api/v1/lookup?type=order_paid&id="+orderNo, nil).Body.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	if j.Record.Rows[0]["result"] != nil || j.Record.Rows[0]["result_hidden"] != true || j.Marker["value"] != nil || j.Marker["value_hidden"] != true {
		t.Errorf("%+v", j)
	}
}

// No text of sign-in and access is missing in one of the languages.
func TestAccessWords(t *testing.T) {
	texts := map[string]flow.Text{}
	table := reflect.ValueOf(newSignInWords())
	for i := range table.NumField() {
		texts[table.Type().Field(i).Name] = table.Field(i).Interface().(flow.Text)
	}
	c := &console{Options: Options{Actions: true}}
	for _, err := range []error{
		access.ErrSignIn, access.ErrNoRole, access.ErrNotOperator, access.ErrOtherSite, access.ErrPassword, access.ErrBusy, access.ErrThrottled{After: 1}, access.ErrState, access.ErrProvider,
		access.ErrFormMissing, access.ErrFormWrong, access.ErrFormExpired, access.ErrFormUsed,
	} {
		f := c.accessFault(err)
		if f.Code == "form_refused" || f.cause != nil {
			t.Errorf("%v is not worded", err)
		}
		texts[f.Code+" title"], texts[f.Code+" remedy"] = f.Title, f.Remedy
	}
	for name, text := range texts {
		if text.EN == "" || strings.IndexFunc(text.EN, han) >= 0 || strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
}
