package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"idemscope/internal/access"
	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// Desk answers look-ups.
type Desk interface {
	// Places returns every flow that carries the key, narrowed to flowName
	// unless that is empty. The error is an answer.NoFlow.
	Places(k flow.Key, flowName string) ([]flow.Place, error)
	// Answer looks one key up in one flow.
	Answer(ctx context.Context, p flow.Place) (answer.Answer, error)
	// AnswerWithin is Answer without the sources that are slower than patience.
	AnswerWithin(ctx context.Context, p flow.Place, patience time.Duration) (answer.Answer, error)
	// Search looks up everything that a text could mean.
	Search(ctx context.Context, query string) (answer.Result, error)
}

// Problem is one reason why the process is not ready to serve.
type Problem struct {
	// Part is what is not ready, e.g. "mysql main".
	Part string
	// Reason holds no secret.
	Reason flow.Text
}

// Options of the console.
type Options struct {
	// Desk answers, with parts of messages and results masked as configured. Mandatory.
	Desk Desk
	// Flows are those configured, in their order. Mandatory.
	Flows []flow.Flow
	// Findings lists the keys with a problem, from memory; nil means that
	// nobody looks for them.
	Findings func() answer.Findings
	// Figures are the operating figures of all flows, from memory; nil means that
	// nobody keeps them.
	Figures func() answer.Figures
	// Grafana is the URL of the Grafana that has the dashboards, without a trailing
	// slash; empty when there is none.
	Grafana string
	// Cleanup tells of the janitor's tasks; nil when there is none.
	Cleanup Cleanup
	// Traces arms and shows the traces of brokers; nil when no broker has one.
	Traces Traces
	// Actions: an operator may change something from the console.
	Actions bool
	// Guard says who asks and what that person may do; nil means that nobody is
	// asked, and everybody may see everything.
	Guard *access.Guard
	// Environment names what the stores belong to, such as production; it may be empty.
	Environment string
	// Actor changes single keys; nil means that nothing of a key can be changed.
	Actor Actor
	// Audit keeps and shows every attempt; nil means that there is no such page.
	// Mandatory with an Actor.
	Audit Journal
	// Doctor examines the set-up; nil means that there is no such page.
	Doctor Doctor
	// Metrics is served under /metrics; nil means that there is no such page.
	Metrics http.Handler
	// Ready lists what is not ready; nil means always ready.
	Ready func(context.Context) []Problem
	// Patience is how long the page of a key waits for the stores before it shows
	// what is there; the rest follows. Zero means 300 ms.
	Patience time.Duration
	// Language is auto, en or zh; empty means auto: what the browser asks for.
	Language string
	// Zone in which times are shown; nil means UTC.
	Zone *time.Location
	// Version of the program, shown in the footer; it may be empty.
	Version string
	// Logger takes failures of the console itself; nil means slog.Default.
	Logger *slog.Logger
}

// readyTimeout bounds one question to Options.Ready.
const readyTimeout = 5 * time.Second

// console serves all pages. It holds nothing that changes.
type console struct {
	Options
	// language is what Options.Language fixes; empty means auto.
	language flow.Language
	assets   assets
	pages    pages
	// hands bounds how many keys of orders about many are at work at once.
	hands *semaphore.Weighted
	// described is the description of the API in each language.
	described map[flow.Language][]byte
}

// New parses the templates and returns the handler of all pages.
func New(o Options) (http.Handler, error) {
	pages, err := router(o)
	if err != nil {
		return nil, err
	}
	return compressed(pages)
}

// router answers every address, uncompressed.
func router(o Options) (*gin.Engine, error) {
	c := &console{Options: o, hands: semaphore.NewWeighted(maxHands)}
	if o.Desk == nil || len(o.Flows) == 0 {
		return nil, errors.New("console: a desk and at least one flow are mandatory")
	}
	if o.Actor != nil && o.Audit == nil {
		return nil, errors.New("console: actions need a journal")
	}
	if o.Language != "" && o.Language != "auto" {
		language, ok := flow.ParseLanguage(o.Language)
		if !ok {
			return nil, fmt.Errorf("console: language %q is none of auto, en, zh", o.Language)
		}
		c.language = language
	}
	c.Desk = newOrderly(c.Desk)
	if c.Patience == 0 {
		c.Patience = patience
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var err error
	if c.Guard == nil {
		if c.Guard, err = openGuard(o.Actions, c.Logger); err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
	}
	if c.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if c.pages, err = parsePages(c.assets, c.Zone); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if c.described, err = describeAPI(o.Version); err != nil {
		return nil, fmt.Errorf("console: describe the API: %w", err)
	}
	return c.routes()
}

func (c *console) routes() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	// Redirects of the router would be absolute and lose a path prefix.
	engine.RedirectTrailingSlash = false
	engine.HandleMethodNotAllowed = true
	if err := engine.SetTrustedProxies(nil); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	engine.Use(secureHeaders, c.recovery, c.admit)
	engine.NoRoute(c.visit(func(*gin.Context, visit) error { return notFound() }))
	engine.NoMethod(c.visit(func(*gin.Context, visit) error { return methodNotAllowed() }))

	get := func(path string, h gin.HandlerFunc) { engine.Match([]string{http.MethodGet, http.MethodHead}, path, h) }
	get("/", c.visit(c.home))
	get("/search", c.visit(c.search))
	get("/key", c.visit(c.key))
	get("/key.md", c.visit(c.keyMarkdown))
	get("/api/v1/search", c.visit(c.searchJSON))
	get("/api/v1/lookup", c.visit(c.lookupJSON))
	get("/findings", c.visit(c.findings))
	get("/api/v1/findings", c.visit(c.findingsJSON))
	get("/flows", c.visit(c.flows))
	get("/flows/:name", c.visit(c.flow))
	get("/api/v1/flows", c.visit(c.flowsJSON))
	get("/api/v1/flows/:name", c.visit(c.flowJSON))
	get("/cleanup", c.visit(c.cleanup))
	get("/api/v1/cleanup", c.visit(c.cleanupJSON))
	engine.POST("/cleanup/stop", c.visit(c.stopCleanup))
	get("/findings.csv", c.visit(c.findingsCSV))
	get("/findings.json", c.visit(c.findingsFile))
	get("/trace", c.visit(c.trace))
	get("/api/v1/trace", c.visit(c.traceJSON))
	engine.POST("/trace", c.visit(c.changeTrace))
	get("/action", c.visit(c.action))
	engine.POST("/action", c.visit(c.changeKey))
	engine.POST("/api/v1/actions/:kind", c.visit(c.actionJSON))
	get("/findings/preview", c.visit(c.preview))
	engine.POST("/findings/preview", c.visit(c.preview))
	engine.POST("/findings/act", c.visit(c.changeKeys))
	engine.POST("/api/v1/actions", c.visit(c.manyJSON))
	get("/audit", c.visit(c.audit))
	get("/api/v1/audit", c.visit(c.auditJSON))
	get("/api/v1/openapi.json", c.visit(c.openAPI))
	get("/doctor", c.visit(c.doctor))
	get("/api/v1/doctor", c.visit(c.doctorJSON))
	get("/signin", c.visit(c.signIn))
	engine.POST("/signin", c.visit(c.checkSignIn))
	get("/signin/oidc", c.visit(c.askProvider))
	get("/signin/callback", c.visit(c.fromProvider))
	engine.POST("/signout", c.visit(c.signOut))
	get("/static/:name", c.visit(c.static))
	get("/favicon.ico", c.favicon)
	get("/favicon.svg", c.favicon)
	get("/healthz", func(g *gin.Context) { g.String(http.StatusOK, "ok\n") })
	get("/readyz", c.ready)
	if c.Metrics != nil {
		get("/metrics", gin.WrapH(c.Metrics))
	}
	return engine, nil
}

// ready answers 200, or 503 with one line per problem.
func (c *console) ready(g *gin.Context) {
	var problems []Problem
	if c.Ready != nil {
		ctx, cancel := context.WithTimeout(g.Request.Context(), readyTimeout)
		defer cancel()
		problems = c.Ready(ctx)
	}
	if len(problems) == 0 {
		g.String(http.StatusOK, "ready\n")
		return
	}
	text := ""
	for _, p := range problems {
		text += fmt.Sprintf("%s: %s\n", p.Part, p.Reason.EN)
	}
	g.String(http.StatusServiceUnavailable, "%s", text)
}
