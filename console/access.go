package console

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// maxForm bounds what a form or an order may send, in bytes: an id of 10 kB is three
// times as long in a form, and may stand in it twice and in its ticket.
const maxForm = 256 << 10

// needs lists the addresses that ask for something else than a person who may see
// states. An address that is not listed is closed to everybody else.
var needs = map[string]access.Need{
	"/healthz":         access.Nothing,
	"/readyz":          access.Nothing,
	"/metrics":         access.ToScrape,
	"/signin":          access.Nothing,
	"/signin/oidc":     access.Nothing,
	"/signin/callback": access.Nothing,
	"/signout":         access.Nothing,
	"/static/:name":    access.Nothing,
	"/favicon.ico":     access.Nothing,
	"/favicon.svg":     access.Nothing,
}

// openGuard is the guard of a console that asks nobody.
func openGuard(actions bool, logger *slog.Logger) (*access.Guard, error) {
	return access.New(access.Options{Actions: actions, Memory: access.NewMemory(nil), Logger: logger})
}

// admit lets through who may, and makes the person known to all that follows. It
// stands before every address.
func (c *console) admit(g *gin.Context) {
	need := needs[g.FullPath()]
	if g.FullPath() == "" {
		// Nothing is there, so nothing can change.
		need = access.ToLook
	}
	who, err := c.Guard.Admit(g.Request, need)
	g.Request = access.Enter(g.Request, who)
	if err == nil {
		return
	}
	g.Abort()
	c.turnAway(g, c.readVisit(g), who, err)
}

// turnAway answers whoever was not admitted: with the sign-in page where that helps.
func (c *console) turnAway(g *gin.Context, v visit, who access.Visitor, err error) {
	machine := v.api || g.FullPath() == "/metrics"
	if errors.Is(err, access.ErrSignIn) && !machine && c.Guard.SignsIn() && (g.Request.Method == http.MethodGet || g.Request.Method == http.MethodHead) {
		g.Header("Location", v.link("signin", returnValues(g.Request)))
		g.Status(http.StatusSeeOther)
		return
	}
	f := c.accessFault(err)
	if f.Status == http.StatusUnauthorized && machine && c.Guard.Passwords() && g.GetHeader("Sec-Fetch-Mode") == "" {
		// Browsers would ask for a password in a window of their own.
		g.Header("WWW-Authenticate", `Basic realm="idemscope", charset="UTF-8"`)
	}
	if g.FullPath() == "/metrics" {
		g.String(f.Status, "%s\n", f.message(flow.English))
		return
	}
	var wait access.ErrThrottled
	if errors.As(err, &wait) {
		g.Header("Retry-After", retryAfter(wait.After))
	}
	c.fail(g, v, f)
}

func retryAfter(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// returnValues say where a sign-in leads back to.
func returnValues(r *http.Request) url.Values {
	back := access.Return(strings.TrimPrefix(r.URL.RequestURI(), "/"))
	if back == "" {
		return nil
	}
	return url.Values{"return": {back}}
}

// mayChange reports that this person can change something from here.
func (c *console) mayChange(v visit) bool { return c.Actions && v.who.May(access.Operator) }

// shownTo takes out what this person may not see. Every answer passes it before
// anything is made of it.
func shownTo(v visit, a answer.Answer) answer.Answer {
	if v.who.May(access.Payload) {
		return a
	}
	return a.Hidden()
}

// formToken returns the token of one form; it stands in the hidden field form_token.
func (c *console) formToken(g *gin.Context) string { return c.Guard.Token(g.Request.Context()) }

// acceptForm parses the form and checks that this person saw it, and sends it for
// the first time. Every handler that changes something calls it first. The error
// is a fault.
func (c *console) acceptForm(g *gin.Context) error { return c.acceptLongForm(g, maxForm) }

// acceptLongForm is acceptForm for a form of up to so many bytes.
func (c *console) acceptLongForm(g *gin.Context, most int64) error {
	g.Request.Body = http.MaxBytesReader(g.Writer, g.Request.Body, most)
	if err := g.Request.ParseForm(); err != nil {
		return badForm()
	}
	if err := c.Guard.Accept(g.Request); err != nil {
		return c.accessFault(err)
	}
	return nil
}

// signedIn returns the name to show in the bar, and the address that ends the
// sign-in; empty where there is nothing to end.
func signedIn(v visit) (person, signOut string) {
	if v.who.Session != "" {
		signOut = v.link("signout", nil)
	}
	return flow.Visible(v.who.Name), signOut
}
