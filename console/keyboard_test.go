package console

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"idemscope/internal/access"
	"idemscope/internal/answer"
)

// TestTheKeyboardReachesEverything: the tab key leads through everything on a page that
// can be used, in order, and the eye can follow; the first stop skips the bar.
func TestTheKeyboardReachesEverything(t *testing.T) {
	b := openBrowser(t)
	o := everything(t)
	server := serve(t, o)
	for i, path := range []string{keyPath("order_paid", orderNo) + "&", "/findings?", "/cleanup?", "/flows/payments?", "/audit?", "/trace?", "/doctor?"} {
		b.as(t, []int64{1440, 390}[i%2], []string{"light", "dark"}[i/2%2])
		b.do(t, chromedp.Navigate(server.URL+path+"lang=en"))
		// What can be used, marked: shown, and not switched off.
		all := value[int](t, b, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
			.filter(e => e.checkVisibility() && !e.disabled).map(e => e.dataset.reach = "not yet").length`)
		for range all + 2 {
			b.do(t, chromedp.KeyEvent(kb.Tab))
			const step = `(() => { const e = document.activeElement; if (!e || e === document.body) return "";
				const seen = e.getBoundingClientRect(), style = getComputedStyle(e), outer = e.closest("label, .skip") ?? e;
				const shown = seen.width > 0 && seen.right > 0 && (style.outlineStyle != "none" && parseFloat(style.outlineWidth) >= 1 || getComputedStyle(outer).outlineStyle != "none");
				delete e.dataset.reach; return shown ? "" : e.outerHTML.slice(0, 200) })()`
			if hidden := value[string](t, b, step); hidden != "" {
				t.Errorf("%s: nothing shows that the focus is on %s", path, hidden)
			}
		}
		missed := value[string](t, b, `[...document.querySelectorAll("[data-reach]")].map(e => e.outerHTML.slice(0, 160)).join("\n")`)
		if all < 8 || missed != "" {
			t.Errorf("%s: of %d, the keyboard does not reach\n%s", path, all, missed)
		}
	}
	b.do(t, chromedp.Navigate(server.URL+"/findings?lang=en"), chromedp.KeyEvent(kb.Tab))
	if on := value[string](t, b, "document.activeElement.className"); on != "skip" {
		t.Fatalf("the first stop is %q", on)
	}
	b.do(t, chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	if !value[bool](t, b, `location.hash == "#main" && document.getElementById("main").contains(document.activeElement)`) {
		t.Error("the skip link does not lead into the page")
	}
	b.quiet(t, "keyboard")
}

// TestAKeyOnPaper: printed from a dark screen, the page of a key is dark on white, whole,
// and without what only works on a screen.
func TestAKeyOnPaper(t *testing.T) {
	b := openBrowser(t)
	o := everything(t)
	server := serve(t, o)
	b.as(t, 700, "dark")
	b.do(t, chromedp.Navigate(server.URL+keyPath("order_paid", orderNo)+"&lang=en"), func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return chromedp.Void{}, err
	})
	b.picture(t, pictures(t), "key-print")
	text := value[string](t, b, "document.body.innerText")
	for _, want := range []string{orderNo, "Stuck", "What each layer shows", "SELECT * FROM"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q on paper", want)
		}
	}
	if shown := value[string](t, b, `[...document.querySelectorAll("button, form, .languages, .skip, .place-link, .actions")].filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 120)).join("\n")`); shown != "" {
		t.Errorf("on paper, these have no use:\n%s", shown)
	}
	if paper := value[string](t, b, "getComputedStyle(document.body).backgroundColor"); paper != "rgb(255, 255, 255)" {
		t.Errorf("the paper is %s", paper)
	}
	if cut := value[string](t, b, `[...document.querySelectorAll("pre, .id")].filter(e => e.checkVisibility() && (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)).map(e => e.outerHTML.slice(0, 120)).join("\n")`); cut != "" {
		t.Errorf("cut off on paper:\n%s", cut)
	}
	b.accessible(t, "on paper")
}

// TestTheBarFitsEveryWindow: with every link, a long name and a production mark, the bar
// breaks into lines and not into letters.
func TestTheBarFitsEveryWindow(t *testing.T) {
	b := openBrowser(t)
	h, _ := guarded(t, func(_ *access.Options, o *Options) {
		o.Environment, o.Figures = "production", func() answer.Figures { return shopFigures() }
	})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	b.do(t, chromedp.Navigate(server.URL+"/signin?lang=en"), chromedp.WaitVisible(chromedp.CSS("#signin-name")),
		chromedp.SendKeys(chromedp.CSS("#signin-name"), "alice"), chromedp.SendKeys(chromedp.CSS("#signin-password"), "alice"), chromedp.Submit(chromedp.CSS("#signin-password")),
		chromedp.WaitVisible(chromedp.CSS(".person")))
	for _, path := range []string{"/?lang=en", "/findings?lang=en", "/findings?lang=zh"} {
		b.do(t, chromedp.Navigate(server.URL+path))
		for _, width := range []int64{320, 390, 600, 768, 900, 1024, 1180, 1440} {
			b.as(t, width, "light")
			if wide := value[float64](t, b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("%s: %v px wider than a window of %d: %s", path, wide, width, value[string](t, b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120)).slice(0, 4).join("\n")`))
			}
			if high := value[float64](t, b, `Math.max(...[...document.querySelectorAll(".bar-row > *:not(form), .bar .search button")].map(e => e.getBoundingClientRect().height))`); high > 40 {
				t.Errorf("%s: something in the bar is %v px high in a window of %d", path, high, width)
			}
		}
	}
}
