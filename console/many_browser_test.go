package console

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"idemscope/internal/flow"
)

// TestManyWords: no text around many keys is missing in one of the languages.
func TestManyWords(t *testing.T) {
	table := reflect.ValueOf(newManyWords())
	for i := range table.NumField() {
		name, text := table.Type().Field(i).Name, table.Field(i).Interface().(flow.Text)
		if text.EN == "" || strings.IndexFunc(text.EN, han) >= 0 || strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
}

// TestManyWithoutScripts: from the preview to the result without scripts, with one key
// unticked; and pictures of both pages.
func TestManyWithoutScripts(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	ids := []string{"SO202501150099", "", `<script>alert(1)</script>`, strings.Repeat("订单", 60), "young"}
	for _, id := range ids[:4] {
		r.record(t, "record", "pay", id, 1, time.Hour)
	}
	r.record(t, "record", "pay", "young", 1, time.Minute)
	dir, b := pictures(t), openBrowser(t)
	address := r.URL + "/findings/preview?" + selectionOf("payments", "pay", append(ids, "nowhere")...).Encode() + "&"
	b.pictures(t, dir, "many", address, looks())
	b.scripts(t, false)
	b.do(t, chromedp.Navigate(address+"lang=zh"), chromedp.Click(chromedp.CSS("tr:nth-of-type(2) input[name=ticket]")),
		chromedp.SendKeys(chromedp.CSS("#reason"), "消费者崩溃"), chromedp.SendKeys(chromedp.CSS("#typed"), "3"),
		chromedp.Click(chromedp.CSS(".deed-form button")), chromedp.WaitVisible(chromedp.CSS(".counts")))
	b.picture(t, dir, "many-made")
	if a, skipped := r.statusOf(t, ids[0]), r.statusOf(t, ids[1]); a != 3 || skipped != 1 {
		t.Errorf("%d %d", a, skipped)
	}
	b.quiet(t, "many")
}
