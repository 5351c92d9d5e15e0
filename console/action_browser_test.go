package console

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/testkit"
)

// TestEveryActionInABrowser goes the way of a person, over real stores: from the page
// of a key through the dialog to the result, and to what the key's page and the audit
// say afterwards. The last one does so without JavaScript, in Chinese and on a phone.
func TestEveryActionInABrowser(t *testing.T) {
	r := newDeedRig(t)
	r.set(t, "lock:log:1", "worker-7:22190", 0)
	r.record(t, "record", "pay", " 2 长", 1, time.Hour)
	r.set(t, "marker:pay:3", "1", time.Hour)
	if err := r.ch.PublishWithContext(t.Context(), "", "pay.dlq", false, false, amqp.Publishing{Body: []byte(`{"biz_id":"4"}`)}); err != nil {
		t.Fatal(err)
	}
	r.settled(t, "pay", "pay.dlq", 1, 0)
	dir, b := pictures(t), openBrowser(t)
	for _, c := range []struct {
		kind        action.Kind
		bizType, id string
		scripts     bool
		look        look
		done        func() bool
	}{
		{action.ReleaseLock, "log", "1", true, look{"en", 1440, "light"}, func() bool { return r.redis.Exists(t.Context(), "lock:log:1").Val() == 0 }},
		{action.ResetRecord, "pay", " 2 长", true, look{"zh", 1440, "dark"}, func() bool { return r.status(t, "pay", " 2 长") == 3 }},
		{action.ClearMarker, "pay", "3", true, look{"en", 390, "dark"}, func() bool { return r.redis.Exists(t.Context(), "marker:pay:3").Val() == 0 }},
		{action.Replay, "pay", "4", false, look{"zh", 390, "light"}, func() bool {
			m, ok, err := r.ch.Get("pay", true)
			return err == nil && ok && string(m.Body) == `{"biz_id":"4"}`
		}},
	} {
		name := string(c.kind)
		if c.done() {
			t.Fatalf("%s: it is done before it began", name)
		}
		b.scripts(t, c.scripts)
		b.as(t, c.look.width, c.look.scheme)
		b.act(t, r, dir, string(c.kind), c.bizType, c.id, c.look.lang, c.scripts)
		if !c.done() {
			t.Errorf("%s: the page says that it is done, and it is not", name)
		}
		b.quiet(t, name)
	}
}

// act goes through the dialog of an action, with the mouse and the keyboard.
func (b *browser) act(t *testing.T, r *deedRig, dir, kind, bizType, id, lang string, scripts bool) {
	t.Helper()
	see := func(page string) {
		t.Helper()
		if wide := value[float64](t, b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
			t.Errorf("%s: %s is %v px wider than the window", kind, page, wide)
		}
		b.picture(t, dir, "action-"+kind+"-"+page)
		if scripts { // the examination is one
			b.accessible(t, kind+" "+page)
		}
	}
	b.do(t, chromedp.Navigate(r.URL+keyPath(bizType, id, "lang", lang, "wait", "all")), chromedp.WaitVisible(chromedp.CSS(".deeds")))
	see("key")
	b.do(t, chromedp.Click(chromedp.CSS(`a.deed[href*="kind=`+kind+`"]`)), chromedp.WaitVisible(chromedp.CSS("#reason")))
	b.do(t, chromedp.SendKeys(chromedp.CSS("#reason"), "its host is gone 主机已下线"))
	if value[bool](t, b, `document.querySelector("#typed") !== null`) {
		b.do(t, chromedp.SendKeys(chromedp.CSS("#typed"), id))
	}
	see("dialog")
	b.do(t, chromedp.Click(chromedp.CSS(".deed-form button")), chromedp.WaitVisible(chromedp.CSS("#outcome")))
	if !value[bool](t, b, `document.querySelector(".verdict").classList.contains("tone-ok")`) {
		t.Fatalf("%s: %s", kind, value[string](t, b, `document.querySelector(".verdict").innerText`))
	}
	see("result")
	b.do(t, chromedp.Click(chromedp.CSS(`.actions a[href*="key?"]`)), chromedp.WaitVisible(chromedp.CSS(".story")))
	testkit.Eventually(t, 20*time.Second, func() bool {
		return strings.Contains(value[string](t, b, `document.querySelector(".story").textContent`), kind)
	}, "%s: it does not stand on the timeline", kind)
	b.do(t, chromedp.Navigate(r.URL+"/audit?lang="+lang), chromedp.WaitVisible(chromedp.CSS(".attempts")))
	first := value[string](t, b, `document.querySelector(".attempt").innerText`)
	if word := action.Kind(kind).Word(); !strings.Contains(first, word.EN) && !strings.Contains(first, word.ZH) || !strings.Contains(first, "its host is gone 主机已下线") || !strings.Contains(first, "alice") {
		t.Errorf("%s: the audit says %s", kind, first)
	}
	see("audit")
}

// status is what the ledger holds of a key.
func (r *deedRig) status(t *testing.T, bizType, id string) (status int) {
	t.Helper()
	if err := r.db.DB.QueryRowContext(t.Context(), "SELECT status FROM record WHERE biz_type = ? AND biz_id = ?", bizType, id).Scan(&status); err != nil {
		t.Fatal(err)
	}
	return status
}

// TestACleanupIsStoppedAndATraceDisarmedInABrowser, each with one click, and the trace without JavaScript.
func TestACleanupIsStoppedAndATraceDisarmedInABrowser(t *testing.T) {
	broom, traces := busyBroom(), idleTrace()
	traces.state.Armed, traces.state.Since, traces.state.Until = true, time.Now(), time.Now().Add(time.Hour)
	h, _ := guarded(t, func(_ *access.Options, o *Options) { o.Cleanup, o.Traces = broom, traces })
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	dir, b := pictures(t), openBrowser(t)
	b.as(t, 390, "dark")
	b.do(t,
		chromedp.Navigate(server.URL+"/cleanup?lang=zh"), chromedp.WaitVisible(chromedp.CSS("#signin-name")),
		chromedp.SendKeys(chromedp.CSS("#signin-name"), "alice"), chromedp.SendKeys(chromedp.CSS("#signin-password"), "alice"), chromedp.Submit(chromedp.CSS("#signin-password")),
		chromedp.WaitVisible(chromedp.CSS(".cleanup-task form button")))
	b.picture(t, dir, "cleanup-operator")
	b.follow(t, ".cleanup-task form button")
	if len(broom.stopped) != 1 || broom.stopped[0] != [2]string{"orders", "alice"} {
		t.Errorf("stopped %v", broom.stopped)
	}
	b.quiet(t, "cleanup")
	b.do(t, chromedp.Navigate(server.URL+"/trace?lang=zh"), chromedp.WaitVisible(chromedp.CSS(".trace form button")))
	b.accessible(t, "an armed trace")
	b.scripts(t, false)
	b.do(t, chromedp.Navigate(server.URL+"/trace?lang=zh"), chromedp.WaitVisible(chromedp.CSS(".trace form button")))
	b.follow(t, ".trace form button")
	if traces.off != 1 {
		t.Errorf("disarmed %d times", traces.off)
	}
	b.quiet(t, "trace")
}

// follow clicks on something and waits for the page that comes after this one, which may look the same.
func (b *browser) follow(t *testing.T, selector string) {
	t.Helper()
	b.do(t, chromedp.Evaluate[chromedp.Void]("window.before = true"), chromedp.Click(chromedp.CSS(selector)))
	testkit.Eventually(t, 10*time.Second, func() bool {
		return value[bool](t, b, `!window.before && document.readyState == "complete"`)
	}, "no page follows a click on %s", selector)
}
