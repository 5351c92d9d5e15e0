package console

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"idemscope/internal/access"
)

// TestSignInInABrowser signs in, changes something and signs out, without TLS and
// under another name than this machine's own: there, browsers say less about where
// a form comes from, and what they say has to be enough.
func TestSignInInABrowser(t *testing.T) {
	traces := idleTrace()
	h, k := guarded(t, func(_ *access.Options, o *Options) { o.Traces, o.Environment = traces, "production" })
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	root := "http://console.example:" + at.Port() + "/"
	dir, b := pictures(t), openBrowser(t)
	b.as(t, 1280, "light")
	b.do(t, chromedp.Navigate(root+"trace"), chromedp.WaitVisible(chromedp.CSS("#signin-name")))
	b.picture(t, dir, "signin")
	b.do(t,
		chromedp.SendKeys(chromedp.CSS("#signin-name"), "alice"), chromedp.SendKeys(chromedp.CSS("#signin-password"), "alice"), chromedp.Submit(chromedp.CSS("#signin-password")),
		chromedp.WaitVisible(chromedp.CSS("input[name=agreed]")))
	if where := value[string](t, b, "location.href"); where != root+"trace" {
		t.Errorf("signed in, it stands at %s", where)
	}
	b.picture(t, dir, "signed-in")
	b.as(t, 360, "dark")
	b.picture(t, dir, "signed-in-phone")
	if wide := value[bool](t, b, "document.documentElement.scrollWidth > innerWidth"); wide {
		t.Error("on a phone, the page is wider than the window")
	}
	b.do(t, chromedp.Click(chromedp.CSS("input[name=agreed]")), chromedp.Submit(chromedp.CSS("input[name=agreed]")), chromedp.WaitVisible(chromedp.CSS("input[name=agreed]:not(:checked)")))
	if len(traces.armed) != 1 {
		t.Errorf("armed %d times; recorded %+v\n%s", len(traces.armed), k.take(), value[string](t, b, "document.body.innerText"))
	}
	b.do(t, chromedp.Click(chromedp.CSS(".person button")), chromedp.WaitVisible(chromedp.CSS("#signin-name")))
	if where := value[string](t, b, "location.href"); !strings.HasPrefix(where, root+"signin") {
		t.Errorf("signed out, it stands at %s", where)
	}
}
