package console

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/text/language"

	"idemscope/internal/access"
	"idemscope/internal/flow"
)

// visit is what one request asks for, before anything is looked up.
type visit struct {
	// values of the query; empty when it is malformed.
	values url.Values
	// broken: the query cannot be read.
	broken bool
	lang   flow.Language
	// chosen: the language stands in the address, so links keep it.
	chosen bool
	// root leads from this page to the console's root: "./" or "../"...
	root string
	api  bool
	// posted: no address holds the page that answers this.
	posted bool
	// who asks.
	who access.Visitor
}

// maxDepth bounds how many steps up a page below the root can lead.
const maxDepth = 32

// handler answers one visit, or returns why it cannot.
type handler func(*gin.Context, visit) error

// visit adapts a handler: it reads the request and words the error.
func (c *console) visit(h handler) gin.HandlerFunc {
	return func(g *gin.Context) {
		v := c.readVisit(g)
		err := error(malformedQuery())
		if !v.broken {
			err = h(g, v)
		}
		if err != nil {
			c.fail(g, v, err)
		}
	}
}

func (c *console) readVisit(g *gin.Context) visit {
	path := g.Request.URL.EscapedPath()
	v := visit{root: "./", posted: g.Request.Method == http.MethodPost, api: strings.HasPrefix(path, "/api/"), lang: c.language, who: access.VisitorOf(g.Request.Context())}
	if depth := strings.Count(path, "/") - 1; depth > 0 {
		v.root = strings.Repeat("../", min(depth, maxDepth))
	}
	// Parsed strictly: the library's own URL.Query drops what it cannot read,
	// and a dropped byte of an id is another id.
	values, err := url.ParseQuery(g.Request.URL.RawQuery)
	if err != nil {
		v.broken, values = true, url.Values{}
	}
	v.values = values
	if lang, ok := flow.ParseLanguage(values.Get("lang")); ok {
		v.lang, v.chosen = lang, true
	}
	if v.lang == "" {
		v.lang = accepted(g.GetHeader("Accept-Language"))
	}
	return v
}

// accepted returns the first language of an Accept-Language header that the
// interface speaks; English without one.
func accepted(header string) flow.Language {
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return flow.English
	}
	for _, tag := range tags {
		if lang, ok := flow.ParseLanguage(tag.String()); ok {
			return lang
		}
	}
	return flow.English
}

// text returns a parameter's bytes and whether it is given at all; given twice
// is an error, because either could be meant.
func (v visit) text(name string) (text string, given bool, err error) {
	switch all := v.values[name]; len(all) {
	case 0:
		return "", false, nil
	case 1:
		return all[0], true, nil
	}
	return "", false, repeatedParameter(name)
}

// link returns the address of a page of the console, relative to this one, in
// the language that this one was asked for.
func (v visit) link(page string, values url.Values) string {
	values = maps.Clone(values)
	if v.chosen {
		if values == nil {
			values = url.Values{}
		}
		values.Set("lang", string(v.lang))
	}
	if len(values) == 0 {
		return v.root + page
	}
	return v.root + page + "?" + values.Encode()
}

// here returns the address of this very page in another language.
func (v visit) here(lang flow.Language) string {
	values := maps.Clone(v.values)
	values.Set("lang", string(lang))
	return "?" + values.Encode()
}

// again returns the address of this very page.
func (v visit) again() string { return "?" + v.values.Encode() }

// keyValues are the parameters that name a key; flowName may be empty.
func keyValues(k flow.Key, flowName string) url.Values {
	values := url.Values{"type": {k.BizType}, "id": {k.BizID}}
	if flowName != "" {
		values.Set("flow", flowName)
	}
	return values
}

// switches lists every language with the address of this page in it; none where
// no address holds this page.
func (v visit) switches() []languageLink {
	if v.posted {
		return nil
	}
	var links []languageLink
	for _, lang := range flow.Languages {
		links = append(links, languageLink{Lang: lang, URL: v.here(lang), Current: lang == v.lang})
	}
	return links
}
