package console

import (
	"encoding/json"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"idemscope/internal/flow"
)

// TestWordsInBothLanguages: no text of the table is missing in one of them.
func TestWordsInBothLanguages(t *testing.T) {
	for _, table := range []any{newWords(), newKeyWords(), newSearchWords()} {
		checkWords(t, reflect.ValueOf(table))
	}
}

func checkWords(t *testing.T, table reflect.Value) {
	t.Helper()
	for i := range table.NumField() {
		name, text := table.Type().Field(i).Name, table.Field(i).Interface().(flow.Text)
		if text.EN == "" || text.ZH == "" {
			t.Errorf("%s: %+v", name, text)
		}
		if strings.IndexFunc(text.EN, han) >= 0 {
			t.Errorf("%s: Chinese in the English text %q", name, text.EN)
		}
		if strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: no Chinese in %q", name, text.ZH)
		}
	}
}

func han(r rune) bool { return unicode.Is(unicode.Han, r) }

// latin finds words that a Chinese page should not have.
var latin = regexp.MustCompile(`[A-Za-z]{2,}`)

// names are spelled the same in both languages.
var names = []string{
	"Redis", "MySQL", "Markdown", "UTC", "TTL", "ID", "JSON", "NULL", "GET", "HEAD", "idemscope",
	// Keys of the configuration, parameters of the address, and what the test asks for.
	"flows", "queue", "json", "biz", "types", "type", "id", "flow", "XX", "nobody", "refund",
}

// TestPagesSpeakOneLanguage: beside data, a page has no words of the other language.
func TestPagesSpeakOneLanguage(t *testing.T) {
	for _, s := range stories() {
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t), Ready: nil})
		key := keyPath(s.bizType, s.bizID)
		paths := []string{key}
		if s.name == "stuck" {
			paths = append(paths, "/", "/search?q="+orderNo, "/search?q=", "/search?q=%7B%7D", "/search", "/nowhere", "/key?id=1", "/key?type=a",
				"/key?type=refund&id=1", "/key?type=nobody&id=1", "/key?type=refund&id=1&flow=x", "/key?id=%zz", "/key?id=1&id=2")
		}
		for _, path := range paths {
			evidence := sentences(t, get(t, server.URL+"/api/v1/lookup?"+strings.TrimPrefix(key, "/key?")+"&lang=zh").body)
			chinese := get(t, server.URL+path, "Accept-Language", "zh-CN").document(t)
			for _, text := range chrome(chinese, "zh-CN") {
				for _, sentence := range evidence {
					text = strings.ReplaceAll(text, sentence, "")
				}
				for _, word := range latin.FindAllString(text, -1) {
					if !slices.Contains(names, word) {
						t.Errorf("%s %s: %q in the Chinese page: %q", s.name, path, word, text)
					}
				}
			}
			english := get(t, server.URL+path, "Accept-Language", "en").document(t)
			for _, text := range chrome(english, "en") {
				if strings.IndexFunc(text, han) >= 0 {
					t.Errorf("%s %s: %q in the English page", s.name, path, text)
				}
			}
		}
	}
}

// sentences are all strings of a JSON answer: they come with the evidence.
func sentences(t *testing.T, body string) (all []string) {
	t.Helper()
	var answer any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) > 2 {
				all = append(all, v)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case map[string]any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(answer)
	// Longer ones first, so that none leaves a part of another behind.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// chrome lists every text of the page that a person reads and that is neither
// data nor the other language's own name.
func chrome(d document, lang string) (texts []string) {
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if _, data := attribute(n, "translate"); data {
			return
		}
		if own, ok := attribute(n, "lang"); ok && own != lang {
			return
		}
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			texts = append(texts, n.Data)
		}
		for _, name := range []string{"placeholder", "aria-label", "title", "alt", "data-copy", "data-copied", "data-expired"} {
			if value, ok := attribute(n, name); ok && value != "" {
				texts = append(texts, value)
			}
		}
		for c := range n.ChildNodes() {
			if c.Data != "title" {
				walk(c)
			}
		}
	}
	walk(d.Node)
	return texts
}

// TestTitle: the verdict stands first, in the page's language.
func TestTitle(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	for lang, want := range map[string]string{
		"en": "STUCK · order_paid / " + orderNo + " · idemscope",
		"zh": "卡住 · order_paid / " + orderNo + " · idemscope",
	} {
		page := get(t, server.URL+keyPath(s.bizType, s.bizID, "lang", lang)).document(t)
		if got := page.one(t, "title", "").text(); got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
}

// TestLanguage: the address wins over the configuration, that over the browser.
func TestLanguage(t *testing.T) {
	s := stories()[0]
	for _, c := range []struct{ configured, query, header, want string }{
		{"auto", "", "", "en"},
		{"", "", "zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"},
		{"auto", "", "fr;q=1, zh-TW;q=0.5, en;q=0.4", "zh-CN"},
		{"auto", "", "en;q=0.4, zh;q=0.5", "zh-CN"},
		{"auto", "", ";;;=", "en"},
		{"auto", "", "de", "en"},
		{"zh", "", "en", "zh-CN"},
		{"en", "", "zh", "en"},
		{"en", "lang=zh", "en", "zh-CN"},
		{"zh", "lang=en", "zh", "en"},
		{"auto", "lang=tlh", "zh", "zh-CN"},
	} {
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t), Language: c.configured})
		page := get(t, server.URL+"/?"+c.query, "Accept-Language", c.header).document(t)
		if got, _ := attribute(page.one(t, "html", "").Node, "lang"); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestLanguageStaysChosen: a language that stands in the address is passed on
// by every link and by the form; one that does not is not.
func TestLanguageStaysChosen(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	for _, path := range []string{"/", "/search?q=" + orderNo, "/key?type=refund&id=7", keyPath(s.bizType, s.bizID)} {
		for _, lang := range []string{"", "zh"} {
			u, err := url.Parse(path)
			if err != nil {
				t.Fatal(err)
			}
			values := u.Query()
			if lang != "" {
				values.Set("lang", lang)
			}
			page := get(t, server.URL+u.Path+"?"+values.Encode()).document(t)
			for _, link := range page.all("a", "") {
				address, _ := attribute(link.Node, "href")
				if hasClass(link.Node, "language") || strings.HasPrefix(address, "#") {
					continue
				}
				linked, err := url.Parse(address)
				if err != nil {
					t.Fatal(err)
				}
				if got := linked.Query().Get("lang"); got != lang {
					t.Errorf("%s in %q: link %s", path, lang, address)
				}
			}
			hidden := 0
			for _, input := range page.all("input", "") {
				if name, _ := attribute(input.Node, "name"); name == "lang" {
					hidden++
				}
			}
			if want := len(lang) / 2; hidden != want {
				t.Errorf("%s in %q: the form passes on %d languages", path, lang, hidden)
			}
		}
	}
}

// TestSwitchKeepsQuestion: the other language's link asks the same question, byte for byte.
func TestSwitchKeepsQuestion(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	for _, id := range hostileIDs() {
		page := get(t, server.URL+keyPath("order_paid", id)).document(t)
		for _, link := range page.all("a", "language") {
			address, _ := attribute(link.Node, "href")
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if got := u.Query().Get("id"); got != id || u.Query().Get("lang") != "zh" {
				t.Errorf("%q became %q in %s", id, got, address)
			}
		}
	}
}

// TestAgo: a time that is still to come is worded as such.
func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", -1500 * time.Millisecond: "just now", -3 * time.Second: "3 s in the future", -26 * time.Hour: "1 d 2 h in the future",
		time.Second: "1 s ago", 90 * time.Minute: "1 h 30 min ago",
	} {
		if got := ago(readAt.Add(-d), readAt); got.EN != want {
			t.Errorf("%s: %q, want %q", d, got.EN, want)
		}
	}
}

// TestClock: times carry their offset, and the zone is named once.
func TestClock(t *testing.T) {
	shanghai := time.FixedZone("+08:00", 8*3600)
	if got := (clock{shanghai}).moment(readAt); got.Clock != "2026-03-15 02:07:31.412 +08:00" || got.Machine != "2026-03-15T02:07:31.412+08:00" {
		t.Errorf("%+v", got)
	}
	if got := (clock{time.UTC}).moment(readAt.Truncate(time.Second)).Clock; got != "2026-03-14 18:07:31 +00:00" {
		t.Error(got)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for zone, want := range map[*time.Location]string{shanghai: "+08:00", time.UTC: "UTC", berlin: "Europe/Berlin (+01:00)"} {
		if got := zoneLabel(zone, readAt); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
