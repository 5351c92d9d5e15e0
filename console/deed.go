package console

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// deed does something that concerns no key, with its beginning and its end in the
// journal. what and how are words for the journal.
func (c *console) deed(g *gin.Context, name, what, how string, do func() *fault) error {
	person := access.Of(g.Request.Context())
	entry := audit.Entry{Attempt: rand.Text(), Who: person.Name, From: person.From, Action: name, Before: what, After: how}
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

func auditUnwritable() *fault {
	return &fault{
		Status: http.StatusServiceUnavailable, Code: "audit_unwritable",
		Title:  flow.T("The attempt cannot be kept in the audit file, so nothing was changed.", "无法写入审计文件，因此未做任何更改。"),
		Remedy: flow.T("See to the file console.audit.file: its folder, its rights, the disk.", "请检查 console.audit.file：所在目录、权限与磁盘空间。"),
		cause:  errors.New("the audit file cannot be written"),
	}
}
