package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/flow"
	"idemscope/web"
)

// page is what every page shows around its own content.
type page struct {
	Lang flow.Language
	// Name stands in the window's title before the product's name.
	Name string
	Root string
	// Home is the address of the start page, Find that of the search.
	Home, Find string
	// Findings is the address of the list of findings; empty when there is none.
	Findings string
	// Traces is the address of the traces; empty when no broker has one.
	Traces string
	// FlowsPage is the address of the flows' figures; empty when nobody keeps them.
	FlowsPage string
	// CleanupPage is the address of the cleanup; empty when there is no task.
	CleanupPage string
	// DoctorPage is the address of the report on the set-up; empty when there is none.
	DoctorPage string
	// AuditPage is the address of the list of attempts; empty when there is none.
	AuditPage string
	// Chosen: the form passes the language on.
	Chosen bool
	// Query is what the search box holds, Focus puts the cursor there.
	Query string
	Focus bool
	// Hero: the search box stands in the page itself, not in the bar.
	Hero bool
	// Fill is the address of the complete page, where this one is not; Refresh is
	// after how many seconds the page is read anew, 0 for never.
	Fill    string
	Refresh int
	// Alternatives are this page in every language.
	Alternatives []languageLink
	Version      string
	// Zone names the zone of all times.
	Zone string
	// Environment is what the stores belong to; empty when that is not said.
	Environment string
	// Person is the name of whoever is signed in, SignOut where that ends; both are
	// empty without sign-in.
	Person, SignOut string
}

// Production: the stores are those that count.
func (p page) Production() bool { return strings.EqualFold(p.Environment, "production") }

// languageLink is this page in one language.
type languageLink struct {
	Lang    flow.Language
	URL     string
	Current bool
}

// HTML returns the tag for the lang attribute.
func (p page) HTML() string { return htmlTag(p.Lang) }

// HTML returns the tag for the lang attribute.
func (l languageLink) HTML() string { return htmlTag(l.Lang) }

func htmlTag(lang flow.Language) string {
	if lang == flow.Chinese {
		return "zh-CN"
	}
	return "en"
}

// Label is the language's own name for itself.
func (l languageLink) Label() string {
	if l.Lang == flow.Chinese {
		return "中文"
	}
	return "English"
}

func (c *console) newPage(v visit, name string) page {
	findings := ""
	if c.Findings != nil {
		findings = v.link("findings", nil)
	}
	traces := ""
	if c.Traces != nil {
		traces = v.link("trace", nil)
	}
	figures := ""
	if c.Figures != nil {
		figures = v.link("flows", nil)
	}
	cleanup := ""
	if c.Cleanup != nil {
		cleanup = v.link("cleanup", nil)
	}
	examined := ""
	if c.Doctor != nil {
		examined = v.link("doctor", nil)
	}
	audited := ""
	if c.Audit != nil {
		audited = v.link("audit", nil)
	}
	person, signOut := signedIn(v)
	return page{
		FlowsPage:   figures,
		CleanupPage: cleanup,
		AuditPage:   audited,
		DoctorPage:  examined,
		Traces:      traces,
		Findings:    findings, Lang: v.lang, Name: name, Root: v.root, Home: v.link("", nil), Find: v.root + "search", Chosen: v.chosen,
		Environment: c.Environment, Person: person, SignOut: signOut,
		Alternatives: v.switches(), Version: c.Version, Zone: zoneLabel(c.Zone, time.Now()),
	}
}

// pages are the templates, parsed once per language: inside them, the function
// t words a flow.Text, and fill puts values into one.
type pages map[flow.Language]*template.Template

func parsePages(files assets, zone *time.Location) (pages, error) {
	all := pages{}
	clock, table := clock{zone}, newWords()
	for _, lang := range flow.Languages {
		set, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
			"t":           func(t flow.Text) string { return t.In(lang) },
			"glued":       glued,
			"fill":        func(t flow.Text, args ...any) flow.Text { return flow.T(t.EN, t.ZH, args...) },
			"words":       func() words { return table },
			"searchwords": newSearchWords,
			"asset":       files.url,
			"visible":     flow.Visible,
			"ident":       newIdent,
			"span":        flow.Span,
			"moment":      clock.moment,
			"layer":       layerWord,
			"state":       flow.State.Word,
		}).ParseFS(web.Templates, "templates/*.html")
		if err != nil {
			return nil, err
		}
		all[lang] = set
	}
	return all, nil
}

// beforeUnit is the blank between a figure and its unit.
var beforeUnit = regexp.MustCompile(`(\d) (ms|s|min|h|d|毫秒|秒|分|小时|天)`)

// betweenUnits is the blank between two units of one span.
var betweenUnits = regexp.MustCompile(`(\d\x{a0}(?:min|h|d|分|小时|天)) (\d)`)

// glued keeps figures and their units on one line.
func glued(s string) string {
	return betweenUnits.ReplaceAllString(beforeUnit.ReplaceAllString(s, "$1\u00a0$2"), "$1\u00a0$2")
}

// render writes the page only once all of it is there, so that a failure never
// leaves half a page with a good status.
func (c *console) render(g *gin.Context, status int, lang flow.Language, name string, view any) error {
	var b bytes.Buffer
	if err := c.pages[lang].ExecuteTemplate(&b, name, view); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	// Identifiers are made visible one by one; this is for what stores and
	// drivers say, which may quote bytes as they are.
	g.Data(status, "text/html; charset=utf-8", bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD")))
	return nil
}

// json writes v; it can hold nothing that JSON cannot.
func (c *console) json(g *gin.Context, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		c.Logger.Error("console: encode", "path", g.Request.URL.Path, "err", err)
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"idemscope failed to answer; its log says why"}}`)
	}
	g.Data(status, "application/json; charset=utf-8", append(body, '\n'))
}

// faultPage is the view of a fault.
type faultPage struct {
	page
	*fault
}

// fault shows why there is no answer, with the search box and what could have
// been meant.
func (c *console) fault(g *gin.Context, v visit, f *fault) {
	view := faultPage{page: c.newPage(v, f.Title.In(v.lang)), fault: f}
	view.Focus = true
	view.Query = typed(v.values.Get("q"))
	if view.Query == "" && f.Code == "missing_type" {
		view.Query = typed(v.values.Get("id"))
	}
	if err := c.render(g, f.Status, v.lang, "fault", view); err != nil {
		c.Logger.Error("console: render", "path", g.Request.URL.Path, "err", err)
		g.String(http.StatusInternalServerError, "500: idemscope failed to answer; its log says why\n")
	}
}
