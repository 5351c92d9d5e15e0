package console

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// manyFindings has 230 undecided keys beside one of each kind.
func manyFindings(t *testing.T) answer.Findings {
	t.Helper()
	var ids []string
	for i := range 230 {
		ids = append(ids, fmt.Sprint(i))
	}
	return shopFindings(t, ids...)
}

// TestFindingGroups: the list begins as groups, the worst first, with true counts;
// what does not stand in a group is a click away.
func TestFindingGroups(t *testing.T) {
	found := manyFindings(t)
	server := serve(t, findingsShop(t, found))
	page := get(t, server.URL+"/findings?lang=en").document(t)
	counts := map[string]int{}
	for _, f := range found.List {
		counts[codeWord(f.Code).EN+" "+f.Flow]++
	}
	groups := page.all("details", "finding-group")
	if len(groups) != len(counts) {
		t.Errorf("%d groups, want %d", len(groups), len(counts))
	}
	rank := 0
	for _, g := range groups {
		head := g.all("summary", "")[0].words()
		i := slices.IndexFunc(found.List, func(f answer.Finding) bool { return strings.HasPrefix(head, codeWord(f.Code).EN+" "+f.Flow) })
		if i < 0 {
			t.Errorf("no finding is %q", head)
			continue
		}
		f := found.List[i]
		n := counts[codeWord(f.Code).EN+" "+f.Flow]
		if !strings.Contains(head, fmt.Sprintf(" %d key", n)) || len(g.all("td", "finding-key")) != min(n, rowsPerGroup) {
			t.Errorf("%s has %d rows, want %d", head, len(g.all("td", "finding-key")), n)
		}
		if next := slices.Index(findingSeverities, f.Severity); next < rank {
			t.Errorf("%s comes late", head)
		} else {
			rank = next
		}
		if _, open := attribute(g.Node, "open"); open != (f.Severity == verdict.Critical) {
			t.Errorf("%s stands open: %v", head, open)
		}
		if n > rowsPerGroup {
			more, _ := attribute(g.all("p", "pages")[0].all("a", "")[0].Node, "href")
			list := findingsJSON(t, server.URL+strings.Replace(more, "./findings?", "/api/v1/findings?", 1))
			if list.Total != n || !strings.Contains(more, "lang=en") {
				t.Errorf("%s leads to %d findings, want %d", more, list.Total, n)
			}
		}
	}
	if boxes := page.all("input", "pick"); len(boxes) != 0 || len(page.all("form", "selection")) != 0 {
		t.Error("findings can be selected where nobody may act")
	}
}

// TestFindingOrders: in every order the pages together have every finding once.
func TestFindingOrders(t *testing.T) {
	found := manyFindings(t)
	server := serve(t, findingsShop(t, found))
	for order, less := range map[string]func(a, b answer.Finding) bool{
		"age": func(a, b answer.Finding) bool {
			return a.AgeKnown && !b.AgeKnown || a.AgeKnown == b.AgeKnown && !b.Began.Before(a.Began)
		},
		"found": func(a, b answer.Finding) bool { return !a.Since.Before(b.Since) },
	} {
		var seen []answer.Finding
		after := ""
		for {
			list := findingsJSON(t, server.URL+"/api/v1/findings?limit=50&sort="+order+"&after="+after)
			for _, j := range list.Findings {
				i := slices.IndexFunc(found.List, func(f answer.Finding) bool {
					return f.Key == flow.Key{BizType: j.Key.BizType, BizID: j.Key.BizID} && f.Code == j.Verdict.Code
				})
				seen = append(seen, found.List[i])
			}
			if after = list.Next; after == "" {
				break
			}
		}
		if len(seen) != len(found.List) {
			t.Errorf("%s: %d findings, want %d", order, len(seen), len(found.List))
		}
		for i := 1; i < len(seen); i++ {
			if !less(seen[i-1], seen[i]) {
				t.Errorf("%s: %+v stands before %+v", order, seen[i-1], seen[i])
			}
		}
	}
	page := get(t, server.URL+"/findings?sort=age&limit=50&severity=unknown").document(t)
	for _, link := range page.all("a", "") {
		if rel, _ := attribute(link.Node, "rel"); rel == "next" {
			address, _ := attribute(link.Node, "href")
			u, err := url.Parse(address)
			if err != nil || u.Query().Get("sort") != "age" || u.Query().Get("severity") != "unknown" || u.Query().Get("limit") != "50" {
				t.Errorf("the next page is %s", address)
			}
			return
		}
	}
	t.Error("no next page")
}

// TestFindingsExport: the files have all findings that pass the filter, not those of a page.
func TestFindingsExport(t *testing.T) {
	found := manyFindings(t)
	server := serve(t, findingsShop(t, found))
	page := get(t, server.URL+"/findings?severity=unknown&limit=10").document(t)
	files := map[string]string{}
	for _, link := range page.all("a", "") {
		if _, download := attribute(link.Node, "download"); download {
			address, _ := attribute(link.Node, "href")
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(u.Path, "./")] = get(t, server.URL+strings.TrimPrefix(address, ".")).body
		}
	}
	want := 0
	for _, f := range found.List {
		if f.Severity == verdict.Unsure {
			want++
		}
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(files["findings.csv"], "\uFEFF"))).ReadAll()
	if err != nil || len(rows) != want+1 {
		t.Errorf("%v, %d rows", err, len(rows))
	}
	if n := strings.Count(files["findings.json"], `"biz_id":`); n != want {
		t.Errorf("%d in JSON", n)
	}
	off := serve(t, shop(t))
	for _, path := range []string{"/findings.csv", "/findings.json"} {
		if got := get(t, off.URL+path); got.StatusCode != 404 {
			t.Errorf("%s: %d where nobody looks for findings", path, got.StatusCode)
		}
	}
}

// TestHarmless: what a spreadsheet would run becomes text; what it would round has its bytes beside it.
func TestHarmless(t *testing.T) {
	for cell, want := range map[string][2]string{
		"=1+1": {"'=1+1", "3d312b31"}, "+1": {"'+1", "2b31"}, "-1": {"'-1", "2d31"}, "@a": {"'@a", "4061"}, "＝1": {"'＝1", "efbc9d31"}, "\t=1": {"'\t=1", "093d31"},
		"4711": {"4711", ""}, "a=b": {"a=b", ""}, "": {"", ""}, "00123": {"00123", "3030313233"}, "0": {"0", ""},
		"1234567890123456": {"1234567890123456", "31323334353637383930313233343536"}, "订单": {"订单", "e8aea2e58d95"},
	} {
		if got := [2]string{harmless(cell), hexUnlessPlain(cell)}; got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
	var b strings.Builder
	writeRow(&b, `a"b`, "=x", "l\nl", "")
	if got, want := b.String(), "\"a\"\"b\",\"'=x\",\"l\nl\",\"\"\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOlder: lengths of time are read as they are written.
func TestOlder(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "90s": 90 * time.Second, "5m": 5 * time.Minute, "7d": 168 * time.Hour, "1h30m": 90 * time.Minute} {
		if got, err := parseOlder(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "0d", "-1d", "1.5d", "d", "99999999d", "soon", "0s", "5"} {
		if got, err := parseOlder(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestSelection: chosen findings go on as places, across groups, without scripts.
func TestSelection(t *testing.T) {
	b := openBrowser(t)
	b.scripts(t, false)
	o := findingsShop(t, shopFindings(t))
	o.Actions = true
	server := serve(t, o)
	b.do(t, chromedp.Navigate(server.URL+"/findings?lang=zh"), chromedp.WaitVisible(chromedp.CSS(".preview button")),
		chromedp.Click(chromedp.CSS(".finding-group:nth-of-type(1) input[name=place]")), chromedp.Click(chromedp.CSS(".finding-group:nth-of-type(2) input[name=place]")),
		chromedp.Click(chromedp.CSS(".preview button")), chromedp.WaitVisible(chromedp.CSS(".fault")))
	where, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(where)
	if err != nil || u.Path != "/findings/preview" || len(u.Query()["place"]) != 2 || u.Query().Get("lang") != "zh" {
		t.Fatalf("%v, arrived at %s", err, where)
	}
	for _, word := range u.Query()["place"] {
		if p, err := flow.DecodePlace(word); err != nil || p.Flow != "payments" {
			t.Errorf("%q: %+v, %v", word, p, err)
		}
	}
}
