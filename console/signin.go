package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/flow"
)

// signInPage asks who somebody is.
type signInPage struct {
	page
	Says signInWords
	// Action takes the name and password; empty without a password file.
	Action string
	// Provider begins the sign-in at the provider; empty without one.
	Provider string
	// Return is where the sign-in leads back to.
	Return string
	// Fault is why the last attempt failed; nil at the first.
	Fault *fault
	// Out: the person has just signed out.
	Out bool
}

// back leads to where the person wanted to go, which is inside the console.
func (v visit) back(address string) string {
	if address = access.Return(address); address == "" {
		return v.link("", nil)
	}
	return v.root + address
}

func (c *console) signIn(g *gin.Context, v visit) error {
	if !c.Guard.SignsIn() {
		return notFound()
	}
	if v.who.Session != "" && v.who.May(access.Viewer) {
		return seeOther(g, v.back(v.values.Get("return")))
	}
	return c.showSignIn(g, v, http.StatusOK, v.values.Get("return"), nil)
}

func (c *console) showSignIn(g *gin.Context, v visit, status int, back string, f *fault) error {
	words := newSignInWords()
	view := signInPage{page: c.newPage(v, words.Title.In(v.lang)), Says: words, Fault: f, Return: access.Return(back), Out: v.values.Has("out")}
	values := url.Values{}
	if view.Return != "" {
		values.Set("return", view.Return)
	}
	if c.Guard.Passwords() {
		view.Action = v.link("signin", nil)
	}
	if c.Guard.OIDC != nil {
		view.Provider = v.link("signin/oidc", values)
	}
	// The rest of the console is for those who are in.
	view.Findings, view.Traces, view.DoctorPage = "", "", ""
	return c.render(g, status, v.lang, "signin", view)
}

// checkSignIn takes the form of the sign-in page. It changes nothing but the
// browser's own cookie, so it needs no token: a page of another site was refused already.
func (c *console) checkSignIn(g *gin.Context, v visit) error {
	if !c.Guard.Passwords() {
		return notFound()
	}
	g.Request.Body = http.MaxBytesReader(g.Writer, g.Request.Body, maxForm)
	if err := g.Request.ParseForm(); err != nil {
		return unreadableForm()
	}
	form := g.Request.PostForm
	cookie, err := c.Guard.SignIn(g.Request, form.Get("name"), form.Get("password"))
	if err != nil {
		f := c.accessFault(err)
		var wait access.ErrThrottled
		if errors.As(err, &wait) {
			g.Header("Retry-After", retryAfter(wait.After))
		}
		return c.showSignIn(g, v, f.Status, form.Get("return"), f)
	}
	http.SetCookie(g.Writer, cookie)
	return seeOther(g, v.back(form.Get("return")))
}

// askProvider sends the browser to the provider.
func (c *console) askProvider(g *gin.Context, v visit) error {
	if c.Guard.OIDC == nil {
		return notFound()
	}
	address, cookie, err := c.Guard.Begin(g.Request, v.values.Get("return"))
	if err != nil {
		c.Logger.Error("sign-in: the identity provider does not answer", "err", err)
		return c.accessFault(err)
	}
	http.SetCookie(g.Writer, cookie)
	return seeOther(g, address)
}

// fromProvider takes the answer that the provider sent the browser back with.
func (c *console) fromProvider(g *gin.Context, v visit) error {
	if c.Guard.OIDC == nil {
		return notFound()
	}
	cookies, back, err := c.Guard.Finish(g.Request)
	for _, cookie := range cookies {
		http.SetCookie(g.Writer, cookie)
	}
	if err != nil {
		c.Logger.Warn("sign-in at the identity provider failed", "err", err)
		return c.accessFault(err)
	}
	return seeOther(g, v.back(back))
}

func (c *console) signOut(g *gin.Context, v visit) error {
	http.SetCookie(g.Writer, c.Guard.SignOut(g.Request))
	if !c.Guard.SignsIn() {
		return seeOther(g, v.link("", nil))
	}
	return seeOther(g, v.link("signin", url.Values{"out": {"1"}}))
}

// seeOther leads on. Addresses inside the console are relative, so that they hold
// below a path prefix.
func seeOther(g *gin.Context, address string) error {
	g.Header("Location", address)
	g.Status(http.StatusSeeOther)
	return nil
}

func unreadableForm() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_form",
		Title:  flow.T("The form cannot be read.", "无法读取表单。"),
		Remedy: flow.T("Go back and send it again.", "请返回后重新提交。"),
	}
}
