package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// identify gives a request that nobody has identified the rights of whoever
// reaches a console without sign-in: to look, and to act where actions are on.
func (c *console) identify(g *gin.Context) {
	if access.Known(g.Request.Context()) {
		return
	}
	p := access.Person{Roles: []access.Role{access.Viewer, access.Payload}, From: g.ClientIP()}
	if c.Actions {
		p.Roles = append(p.Roles, access.Operator)
	}
	g.Request = g.Request.WithContext(access.With(g.Request.Context(), p))
}

// formToken is what a form carries to prove that this console sent it.
func (c *console) formToken(*gin.Context) string { return "" }

// acceptForm refuses a form that this console did not send.
func (c *console) acceptForm(g *gin.Context) error {
	if fromElsewhere(g.Request) {
		return otherSite()
	}
	return nil
}

// fromElsewhere reports that a browser says it was sent by a page of another site.
func fromElsewhere(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || from.Host != r.Host
}

// postForm reads a form that this console sent, of at most so many bytes.
func (c *console) postForm(g *gin.Context, most int64) (url.Values, error) {
	g.Request.Body = http.MaxBytesReader(g.Writer, g.Request.Body, most)
	if err := c.acceptForm(g); err != nil {
		return nil, err
	}
	if err := g.Request.ParseForm(); err != nil {
		return nil, badForm()
	}
	return g.Request.PostForm, nil
}

// deed does something that concerns no key: only for an operator, and with its
// beginning and its end in the journal. what and how are words for the journal.
func (c *console) deed(g *gin.Context, name, what, how string, do func() *fault) error {
	person := access.Of(g.Request.Context())
	entry := audit.Entry{Attempt: rand.Text(), Who: person.Name, From: person.From, Action: name, Before: what, After: how}
	if !person.May(access.Operator) {
		refused := notOperator()
		entry.Outcome, entry.Why = audit.Refused, refused.Title
		_ = c.keep(g, entry)
		return refused
	}
	entry.Outcome = audit.Begun
	if err := c.keep(g, entry); err != nil {
		return auditUnwritable()
	}
	entry.Outcome = audit.Done
	failed := do()
	if failed != nil {
		entry.Outcome, entry.Why = audit.Failed, failed.Remedy
	}
	_ = c.keep(g, entry)
	if failed != nil {
		return failed
	}
	return nil
}

// keep writes to the journal, if there is one. What cannot be kept is logged.
func (c *console) keep(g *gin.Context, e audit.Entry) error {
	if c.Audit == nil {
		return nil
	}
	err := c.Audit.Append(g.Request.Context(), e)
	if err != nil {
		c.Logger.Error("console: the audit file cannot be written", "action", e.Action, "outcome", e.Outcome, "err", err)
	}
	return err
}

func notOperator() *fault {
	return &fault{
		Status: http.StatusForbidden, Code: "not_operator",
		Title:  flow.T("You may look, but not change anything.", "你可以查看，但不能更改。"),
		Remedy: flow.T("That takes the role operator.", "需要 operator 角色。"),
	}
}

func auditUnwritable() *fault {
	return &fault{
		Status: http.StatusServiceUnavailable, Code: "audit_unwritable",
		Title:  flow.T("The attempt cannot be kept in the audit file, so nothing was changed.", "无法写入审计文件，因此未做任何更改。"),
		Remedy: flow.T("See to the file console.audit.file: its folder, its rights, the disk.", "请检查 console.audit.file：所在目录、权限与磁盘空间。"),
		cause:  errors.New("the audit file cannot be written"),
	}
}
