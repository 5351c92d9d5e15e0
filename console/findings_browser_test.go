package console

import (
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// TestFindingWords: no text of the list is missing in one of the languages.
func TestFindingWords(t *testing.T) {
	table := reflect.ValueOf(newFindingWords())
	for i := range table.NumField() {
		name, text := table.Type().Field(i).Name, table.Field(i).Interface().(flow.Text)
		if text.EN == "" || strings.IndexFunc(text.EN, han) >= 0 || strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
}

// TestFindingsPictures loads the list in all looks: full, with hostile ids, and empty.
func TestFindingsPictures(t *testing.T) {
	dir, b := pictures(t), openBrowser(t)
	ids := []string{"", "20260101 ", "<script>alert(1)</script>", "\u202egnp.exe", "订单😀", strings.Repeat("x", 600), strings.Repeat("\xf0\x9f\x98\x80", 150)}
	o := findingsShop(t, shopFindings(t, ids...))
	o.Actions = true
	full := serve(t, o)
	b.pictures(t, dir, "findings", full.URL+"/findings?", looks())
	b.pictures(t, dir, "findings-filter", full.URL+"/findings?flow=payments&verdict=stuck&biz_type=order_paid&", looks()[:3])
	b.pictures(t, dir, "findings-pages", full.URL+"/findings?limit=3&after=0.0.0&", looks()[:1])
	empty := serve(t, findingsShop(t, answer.Findings{At: readAt}))
	b.pictures(t, dir, "findings-empty", empty.URL+"/findings?", looks()[:3])
}

// TestFindingsFilterWithoutScripts: the filter is a form, and the key is one click away.
func TestFindingsFilterWithoutScripts(t *testing.T) {
	b := openBrowser(t)
	b.scripts(t, false)
	server := serve(t, findingsShop(t, shopFindings(t)))
	b.do(t, chromedp.Navigate(server.URL+"/?lang=zh"), chromedp.Click(chromedp.CSS(".place-link")), chromedp.WaitVisible(chromedp.CSS(".findings")))
	b.do(t, chromedp.SetValue(chromedp.CSS("#verdicts"), "ran_twice"), chromedp.Click(chromedp.CSS(".filter button")), chromedp.WaitVisible(chromedp.CSS(".filter a")))
	where, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil || where != server.URL+"/findings?flow=&verdict=ran_twice&severity=&layer=&older=&lang=zh" {
		t.Errorf("%v, arrived at %s", err, where)
	}
	b.do(t, chromedp.Click(chromedp.CSS(".finding-key a")), chromedp.WaitVisible(chromedp.CSS("#verdict")))
	b.quiet(t, "findings")
}
