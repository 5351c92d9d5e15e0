package console

import (
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"
)

// contentPolicy lets a page load its own files and nothing else, and run no
// script that stands in the page: whatever an id or a value contains stays text.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// secureHeaders go with every response, whatever its status.
func secureHeaders(g *gin.Context) {
	h := g.Writer.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	// Ids in addresses go to nobody else. To our own pages they may: with
	// no-referrer, browsers without TLS would not say that a form is ours.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Evidence is a moment's truth, and the answer depends on the language asked for.
	h.Set("Cache-Control", "no-store")
}

// recovery turns a panic into a plain page. It renders nothing that could fail again.
func (c *console) recovery(g *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause == http.ErrAbortHandler {
			panic(cause)
		}
		c.Logger.Error("console: panic", "path", g.Request.URL.Path, "panic", cause, "stack", string(debug.Stack()))
		if !g.Writer.Written() {
			g.String(http.StatusInternalServerError, "500: idemscope failed to answer; its log says why\n500：idemscope 处理失败，原因见其日志\n")
		}
		g.Abort()
	}()
	g.Next()
}
