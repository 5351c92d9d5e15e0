package console

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// reply is a response that was read to its end.
type reply struct {
	*http.Response
	body string
}

// ask sends one request and follows no redirect.
func ask(t testing.TB, method, address string, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	checkDescribed(t, request, response, body)
	return reply{response, string(body)}
}

func get(t testing.TB, address string, headers ...string) reply {
	t.Helper()
	return ask(t, http.MethodGet, address, headers...)
}

// document is a parsed page.
type document struct{ *html.Node }

// document parses a page and checks what holds for all of them.
func (r reply) document(t testing.TB) document {
	t.Helper()
	root, err := html.Parse(strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	d := document{root}
	checkHygiene(t, d)
	return d
}

// elements lists every element in the order of the page.
func (d document) elements() (all []*html.Node) {
	for n := range d.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func hasClass(n *html.Node, class string) bool {
	value, _ := attribute(n, "class")
	return slices.Contains(strings.Fields(value), class)
}

// all returns the elements with the tag (any when empty) and the class (any when empty).
func (d document) all(tag, class string) (found []document) {
	for _, n := range d.elements() {
		if (tag == "" || n.Data == tag) && (class == "" || hasClass(n, class)) {
			found = append(found, document{n})
		}
	}
	return found
}

// one returns the only such element.
func (d document) one(t testing.TB, tag, class string) document {
	t.Helper()
	found := d.all(tag, class)
	if len(found) != 1 {
		t.Fatalf("%d elements <%s class=%q>, want one", len(found), tag, class)
	}
	return found[0]
}

// text joins all text below the element.
func (d document) text() string {
	var b strings.Builder
	for n := range d.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// words is the text as it is read: a blank between elements, blanks folded.
func (d document) words() string {
	var all []string
	for n := range d.Descendants() {
		if n.Type == html.TextNode {
			all = append(all, strings.Fields(n.Data)...)
		}
	}
	return strings.Join(all, " ")
}

// checkHygiene holds for every page: nothing that the content policy would
// refuse, nothing that leads outside or breaks under a path prefix, and the
// landmarks that keyboards and screen readers need.
func checkHygiene(t testing.TB, d document) {
	t.Helper()
	ids, labelled := map[string]bool{}, map[string]bool{}
	for _, n := range d.elements() {
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
			// Manuals of vendors are elsewhere; they do not learn where their reader was.
			rel, _ := attribute(n, "rel")
			manual := n.Data == "a" && rel == "noreferrer" && strings.HasPrefix(a.Val, "https://")
			if slices.Contains([]string{"href", "src", "action"}, a.Key) && !manual {
				checkRelative(t, n.Data, a.Val)
			}
			if a.Key == "id" {
				if ids[a.Val] {
					t.Errorf("id %q stands twice", a.Val)
				}
				ids[a.Val] = true
			}
			if a.Key == "for" || a.Key == "aria-labelledby" {
				labelled[a.Val] = true
			}
		}
		if n.Data == "script" && n.FirstChild != nil || n.Data == "style" || n.Data == "base" || n.Data == "iframe" {
			t.Errorf("<%s> in the page", n.Data)
		}
	}
	for id := range labelled {
		if !ids[id] {
			t.Errorf("a label refers to %q, which is not there", id)
		}
	}
	for _, tag := range []string{"h1", "main", "footer", "title"} {
		if found := d.all(tag, ""); len(found) != 1 {
			t.Errorf("%d <%s>, want one", len(found), tag)
		}
	}
	if len(d.all("form", "search")) != 1 {
		t.Errorf("no search box")
	}
}

func checkRelative(t testing.TB, tag, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/") {
		t.Errorf("<%s> leads to %q, which is not relative", tag, address)
	}
}
