package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// foundIn judges the story for each id and returns what is a finding.
func foundIn(t testing.TB, flows []flow.Flow, s story, ids ...string) (list []answer.Finding) {
	t.Helper()
	desk := s.desk(t, flows)
	for i, id := range ids {
		p := flow.Place{Flow: flows[0].Name, Key: flow.Key{BizType: s.bizType, BizID: id}}
		a, err := desk.Answer(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		found, ok := a.Finding()
		if !ok {
			t.Fatalf("%s is no finding: %s", s.name, a.Verdict.Code)
		}
		found.Since = readAt.Add(-time.Duration(i) * time.Minute)
		found.JudgedAt = readAt.Add(-time.Duration(7*i%300) * time.Second)
		if found.AgeKnown {
			found.Began = found.Began.Add(-time.Duration(i) * time.Hour)
		} else {
			found.Began = found.Since
		}
		list = append(list, found)
	}
	return list
}

// shopFindings has one finding for every story that is one, and the given ids
// as stuck on Redis.
func shopFindings(t testing.TB, ids ...string) answer.Findings {
	t.Helper()
	all := answer.Findings{At: readAt.Add(20 * time.Second), Pending: 3, Coverage: []flow.Text{
		flow.T("Records of the last %v.", "最近 %v内的记录。", flow.Span(24*time.Hour)),
	}}
	for i, s := range stories() {
		if _, ok := map[verdict.Code]bool{verdict.Stuck: true, verdict.RanTwice: true, verdict.KeyAmbiguous: true, verdict.ClockSkew: true, verdict.Unreadable: true,
			verdict.MayHaveRunTwice: true, verdict.LostSuspected: true, verdict.FailedUnplaced: true, verdict.Unknown: true}[s.code]; ok && s.name != "all-down" {
			found := foundIn(t, shopFlows(t), s, s.bizID)[0]
			found.Key.BizID = fmt.Sprintf("%s%02d", s.bizID[:12], i)
			all.List = append(all.List, found)
		}
	}
	for _, s := range stories() {
		if s.name == "mysql-down" && len(ids) > 0 {
			all.List = append(all.List, foundIn(t, shopFlows(t), s, ids...)...)
		}
	}
	answer.SortFindings(all.List)
	return all
}

func findingsShop(t testing.TB, found answer.Findings) Options {
	t.Helper()
	o := shop(t)
	o.Findings = func() answer.Findings { return found }
	o.Zone = time.FixedZone("+08:00", 8*3600)
	return o
}

func findingsJSON(t testing.TB, address string) answer.FindingsJSON {
	t.Helper()
	got := get(t, address)
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", address, got.StatusCode, got.body)
	}
	var list answer.FindingsJSON
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFindingsRoutes(t *testing.T) {
	server := serve(t, findingsShop(t, shopFindings(t)))
	off := serve(t, shop(t))
	const page, api = "text/html; charset=utf-8", "application/json; charset=utf-8"
	for _, c := range []struct {
		server       *httptest.Server
		method, path string
		status       int
	}{
		{server, "GET", "", 200}, {server, "HEAD", "", 200}, {server, "POST", "", 405},
		{server, "GET", "?flow=payments", 200}, {server, "GET", "?flow=", 200}, {server, "GET", "?flow=nobody", 404}, {server, "GET", "?flow=a&flow=b", 400},
		{server, "GET", "?verdict=stuck", 200}, {server, "GET", "?verdict=never_seen", 200}, {server, "GET", "?verdict=stukc", 404},
		{server, "GET", "?biz_type=", 200}, {server, "GET", "?biz_type=%FF", 200}, {server, "GET", "?biz_type=%zz", 400},
		{server, "GET", "?limit=1", 200}, {server, "GET", "?limit=1000", 200}, {server, "GET", "?limit=1001", 400}, {server, "GET", "?limit=0", 400}, {server, "GET", "?limit=x", 400},
		{server, "GET", "?layer=redis", 200}, {server, "GET", "?layer=kafka", 404}, {server, "GET", "?severity=critical", 200}, {server, "GET", "?severity=ok", 404},
		{server, "GET", "?older=5m", 200}, {server, "GET", "?older=7d", 200}, {server, "GET", "?older=-5m", 400}, {server, "GET", "?older=0d", 400}, {server, "GET", "?older=soon", 400},
		{server, "GET", "?sort=age", 200}, {server, "GET", "?sort=name", 404}, {server, "GET", "?sort=age&after=0.0.0", 200},
		{server, "GET", "?after=0.0.0", 200}, {server, "GET", "?after=x", 400}, {server, "GET", "?after=0.0.00", 400}, {server, "GET", "?after=0.1e3.0", 400},
		{off, "GET", "", 404},
	} {
		for prefix, kind := range map[string]string{"/findings": page, "/api/v1/findings": api} {
			got := ask(t, c.method, c.server.URL+prefix+c.path)
			if got.StatusCode != c.status || got.Header.Get("Content-Type") != kind {
				t.Errorf("%s %s%s: %d %q, want %d", c.method, prefix, c.path, got.StatusCode, got.Header.Get("Content-Type"), c.status)
			}
			checkHeaders(t, got, "no-store")
			switch {
			case c.method == "HEAD":
			case kind == page:
				got.document(t)
			case c.status != 200:
				checkAPIError(t, got)
			}
		}
	}
}

// TestFindingsLink: every page leads to the list, unless nobody collects it.
func TestFindingsLink(t *testing.T) {
	for want, o := range map[int]Options{1: findingsShop(t, shopFindings(t)), 0: shop(t)} {
		server := serve(t, o)
		for _, path := range []string{"/", keyPath("order_paid", orderNo), "/search?q=" + orderNo, "/no/such/page"} {
			if links := get(t, server.URL+path).document(t).all("a", "place-link"); len(links) != want {
				t.Errorf("%s: %d links, want %d", path, len(links), want)
			}
		}
	}
}

// TestFindingsSay: the page and the JSON say the same, in the same order, with
// links that lead to the key.
func TestFindingsSay(t *testing.T) {
	found := shopFindings(t)
	server := serve(t, findingsShop(t, found))
	for _, lang := range []string{"en", "zh"} {
		list := findingsJSON(t, server.URL+"/api/v1/findings?lang="+lang)
		doc := get(t, server.URL+"/findings?sort=worst&lang="+lang).document(t)
		rows := doc.all("tr", "")
		rows = slices.DeleteFunc(rows, func(r document) bool { return len(r.all("td", "")) == 0 })
		if len(rows) != len(found.List) || len(list.Findings) != len(found.List) || list.Total != len(found.List) || list.Pending != 3 || list.Next != "" {
			t.Fatalf("%d rows, %d of %d in JSON", len(rows), len(list.Findings), list.Total)
		}
		for i, row := range rows {
			f, j := found.List[i], list.Findings[i]
			if j.Flow != f.Flow || j.Key.BizType != f.Key.BizType || j.Key.BizID != f.Key.BizID || j.Verdict.Code != f.Code ||
				j.Verdict.Severity != f.Severity || j.Verdict.Layer != f.Layer || j.Verdict.Sentence != f.Sentence.In(flow.Language(lang)) {
				t.Errorf("%+v became %+v", f, j)
			}
			if (j.Age != nil) != f.AgeKnown || j.Age != nil && *j.Age != found.At.Sub(f.Began).Seconds() {
				t.Errorf("age of %s: %v", f.Code, j.Age)
			}
			text := strings.ReplaceAll(row.words(), "\u00a0", " ")
			for _, want := range []string{codeWord(f.Code).In(flow.Language(lang)), f.Key.BizID, f.Flow, strings.ReplaceAll(j.Verdict.Sentence, "\u00a0", " ")} {
				if !strings.Contains(text, want) {
					t.Errorf("row %d has no %q: %s", i, want, text)
				}
			}
			address, _ := attribute(row.all("a", "")[0].Node, "href")
			if lookup := get(t, server.URL+"/"+strings.TrimPrefix(address, "./")); lookup.StatusCode != 200 || !strings.Contains(lookup.body, f.Key.BizID) {
				t.Errorf("%s: %d", address, lookup.StatusCode)
			}
			if want := "../.." + strings.TrimPrefix(address, "."); j.Link != want {
				t.Errorf("link %s, want %s", j.Link, want)
			}
		}
		if undecided := doc.all("section", "undecided"); len(undecided) > 1 {
			t.Errorf("%d", len(undecided))
		}
	}
	ranks := []verdict.Severity{verdict.Critical, verdict.Warning, verdict.Unsure}
	for i := 1; i < len(found.List); i++ {
		a, b := found.List[i-1], found.List[i]
		if ra, rb := slices.Index(ranks, a.Severity), slices.Index(ranks, b.Severity); ra > rb || ra == rb && a.Began.After(b.Began) {
			t.Errorf("%s of %s stands before %s of %s", a.Severity, a.Began, b.Severity, b.Began)
		}
	}
}

func TestFindingsFilters(t *testing.T) {
	found := shopFindings(t)
	found.List[0].Flow = "points"
	found.List[1].Key.BizType = "\xfftype"
	server := serve(t, findingsShop(t, found))
	for query, passes := range map[string]func(answer.Finding) bool{
		"":                        func(answer.Finding) bool { return true },
		"flow=points":             func(f answer.Finding) bool { return f.Flow == "points" },
		"verdict=stuck":           func(f answer.Finding) bool { return f.Code == "stuck" },
		"verdict=unknown":         func(f answer.Finding) bool { return f.Severity == "unknown" },
		"verdict=completed":       func(answer.Finding) bool { return false },
		"biz_type=%FFtype":        func(f answer.Finding) bool { return f.Key.BizType == "\xfftype" },
		"biz_type=":               func(answer.Finding) bool { return false },
		"layer=redis":             func(f answer.Finding) bool { return f.Layer == "redis" },
		"severity=warning":        func(f answer.Finding) bool { return f.Severity == "warning" },
		"older=1h":                func(f answer.Finding) bool { return f.AgeKnown && found.At.Sub(f.Began) >= time.Hour },
		"older=30d":               func(answer.Finding) bool { return false },
		"flow=points&layer=mysql": func(f answer.Finding) bool { return f.Flow == "points" && f.Layer == "mysql" },
		"flow=&verdict=ran_twice": func(f answer.Finding) bool { return f.Code == "ran_twice" },
	} {
		want := slices.DeleteFunc(slices.Clone(found.List), func(f answer.Finding) bool { return !passes(f) })
		list := findingsJSON(t, server.URL+"/api/v1/findings?"+query)
		if len(list.Findings) != len(want) || list.Total != len(want) {
			t.Errorf("%s: %d findings, total %d, want %d", query, len(list.Findings), list.Total, len(want))
		}
		doc := get(t, server.URL+"/findings?"+query).document(t)
		if n := len(doc.all("td", "finding-key")); n != len(want) {
			t.Errorf("%s: %d rows, want %d", query, n, len(want))
		}
		if nothing := len(doc.all("p", "nothing")); (nothing == 1) != (len(want) == 0) {
			t.Errorf("%s: %d times nothing found", query, nothing)
		}
	}
}

// TestFindingsPages: the pages together have every finding once, also when
// some leave in between.
func TestFindingsPages(t *testing.T) {
	var ids []string
	for i := range 230 {
		ids = append(ids, fmt.Sprint(i))
	}
	found := shopFindings(t, ids...)
	o := findingsShop(t, found)
	o.Findings = func() answer.Findings { return found }
	server := serve(t, o)
	everything := slices.Clone(found.List)
	var seen []string
	address := server.URL + "/findings?verdict=unknown&lang=zh"
	for pages := 1; ; pages++ {
		doc := get(t, address).document(t)
		for _, cell := range doc.all("td", "finding-key") {
			href, _ := attribute(cell.all("a", "")[0].Node, "href")
			u, err := url.Parse(href)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, u.Query().Get("id"))
		}
		// The first of the list and the last that was shown are mended.
		found.List = slices.DeleteFunc(slices.Clone(found.List), func(f answer.Finding) bool {
			return f.Key.BizID == seen[0] || f.Key.BizID == seen[len(seen)-1]
		})
		next := ""
		for _, link := range doc.all("a", "") {
			if rel, _ := attribute(link.Node, "rel"); rel == "next" {
				next, _ = attribute(link.Node, "href")
			}
		}
		if next == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		if u, err := url.Parse(next); err != nil || u.Query().Get("lang") != "zh" || u.Query().Get("verdict") != "unknown" {
			t.Errorf("the next page is %s", next)
		}
		address = server.URL + strings.TrimPrefix(next, ".")
	}
	var want []string
	for _, f := range everything {
		if f.Code == verdict.Unknown {
			want = append(want, f.Key.BizID)
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the pages have %d ids, want %d", len(seen), len(want))
	}
}

// TestFindingsHostile: ids are bytes; the link asks for the same ones.
func TestFindingsHostile(t *testing.T) {
	ids := hostileIDs()
	server := serve(t, findingsShop(t, shopFindings(t, ids...)))
	got := get(t, server.URL+"/findings?verdict=unknown")
	doc := got.document(t)
	checkLinks(t, ids, doc)
	for _, script := range []string{"<script>alert", "<img src=x", "\u202e", "\u200f", "\x00"} {
		if strings.Contains(got.body, script) {
			t.Errorf("%q stands in the page", script)
		}
	}
	list := findingsJSON(t, server.URL+"/api/v1/findings?verdict=unknown")
	for _, id := range ids {
		i := slices.IndexFunc(list.Findings, func(j answer.FindingJSON) bool {
			u, err := url.Parse(j.Link)
			return err == nil && u.Query().Get("id") == id
		})
		if i < 0 {
			t.Errorf("%q is not in the JSON", shown(id))
			continue
		}
		if key := list.Findings[i].Key; key.BizIDHex == "" && key.BizID != id || key.BizIDHex != "" && key.BizIDHex != fmt.Sprintf("%x", id) {
			t.Errorf("%q became %+v", shown(id), key)
		}
	}
}

func checkLinks(t *testing.T, ids []string, doc document) {
	t.Helper()
	linked := map[string]bool{}
	for _, cell := range doc.all("td", "finding-key") {
		href, _ := attribute(cell.all("a", "")[0].Node, "href")
		u, err := url.Parse(href)
		if err != nil {
			t.Fatal(err)
		}
		linked[u.Query().Get("id")] = true
	}
	for _, id := range ids {
		if !linked[id] {
			t.Errorf("%q is not linked", shown(id))
		}
	}
}

// TestFindingsEmpty: nothing found is said, and so is what was not looked through.
func TestFindingsEmpty(t *testing.T) {
	server := serve(t, findingsShop(t, answer.Findings{At: readAt, Coverage: []flow.Text{flow.T("Ledger orders was not read yet.", "幂等表 orders 尚未读取。")}}))
	doc := get(t, server.URL+"/findings").document(t)
	if text := doc.words(); !strings.Contains(text, "Nothing found.") || !strings.Contains(text, "Ledger orders was not read yet.") || strings.Contains(text, "not judged yet") {
		t.Error(text)
	}
	if body := get(t, server.URL+"/api/v1/findings").body; !strings.Contains(body, `"findings": []`) {
		t.Error(body)
	}
}

// TestFindingsSpeakOneLanguage: beside data, the page has no words of the other language.
func TestFindingsSpeakOneLanguage(t *testing.T) {
	for _, found := range []answer.Findings{shopFindings(t, "1"), {At: readAt}} {
		o := findingsShop(t, found)
		server := serve(t, o)
		for _, query := range []string{"", "?biz_type=order_paid&limit=1", "?sort=age&older=90s", "?sort=x", "?layer=x", "?severity=x", "?older=x", "?flow=nobody", "?verdict=nobody", "?limit=x", "?after=x"} {
			for _, text := range chrome(get(t, server.URL+"/findings"+query, "Accept-Language", "zh-CN").document(t), "zh-CN") {
				for _, word := range latin.FindAllString(text, -1) {
					if !slices.Contains(append([]string{"limit", "after", "hash", "older", "sort", "layer", "severity", "CSV"}, names...), word) {
						t.Errorf("%s: %q in the Chinese page: %q", query, word, text)
					}
				}
			}
			for _, text := range chrome(get(t, server.URL+"/findings"+query, "Accept-Language", "en").document(t), "en") {
				if strings.IndexFunc(text, han) >= 0 {
					t.Errorf("%s: %q in the English page", query, text)
				}
			}
		}
	}
}
