package console

import (
	_ "embed"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"idemscope/internal/access"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// axe examines whether people can use a page who see little, or nothing, or use no mouse.
//
//go:embed testdata/axe/axe.min.js
var axe string

// complaint is one rule that a page breaks, with the elements that break it.
type axeComplaint struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible fails the test when the page that is shown breaks a rule that keeps somebody out.
func (b *browser) accessible(t *testing.T, page string) {
	t.Helper()
	for _, c := range b.axe(t) {
		if c.Impact != "serious" && c.Impact != "critical" {
			continue
		}
		for _, n := range c.Nodes {
			t.Errorf("%s: %s, %s: %s\n%s\n%s", page, c.Impact, c.ID, c.Help, n.HTML, n.FailureSummary)
		}
	}
}

// axe returns all rules that the page breaks. The content policy does not hold for what a debugger evaluates.
func (b *browser) axe(t *testing.T) []axeComplaint {
	t.Helper()
	if !value[bool](t, b, `"axe" in window`) {
		b.do(t, chromedp.Evaluate[chromedp.Void](axe))
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]axeComplaint](`axe.run({resultTypes: ["violations"]}).then(r => r.violations)`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPagesAreAccessible examines every page in looks that differ in everything.
func TestPagesAreAccessible(t *testing.T) {
	b := openBrowser(t)
	all := everything(t)
	shown := serve(t, all).URL
	pages := [][2]string{
		{"home", shown + "/?"}, {"hits", shown + "/search?q=" + orderNo + "&"}, {"choose", shown + "/key?type=refund&id=1&"},
		{"findings", shown + "/findings?"}, {"findings-filter", shown + "/findings?flow=payments&verdict=stuck&"},
		{"flows", shown + "/flows?"}, {"flow", shown + "/flows/payments?"}, {"cleanup", shown + "/cleanup?"}, {"doctor", shown + "/doctor?"},
		{"trace", shown + "/trace?"}, {"audit", shown + "/audit?"}, {"fault", shown + "/nowhere?"}, {"fault-key", shown + "/key?type=nobody&id=1&"},
	}
	for _, s := range stories() {
		switch s.name {
		case "stuck", "running", "completed", "ran-twice", "failed", "all-down", "ambiguous":
			o := all
			o.Desk = s.desk(t, o.Flows)
			pages = append(pages, [2]string{"key-" + s.name, serve(t, o).URL + keyPath(s.bizType, s.bizID) + "&"})
		}
	}
	long := keyPath("order_paid", strings.Repeat("订单😀 <b>x</b>\n", 500))
	pages = append(pages, [2]string{"long", shown + long + "&"}, [2]string{"long-hits", shown + "/search?q=" + strings.Repeat("x1", 400) + "&"})
	o := all
	o.Desk = busyDesk{quietDesk(t, o.Flows)}
	pages = append(pages, [2]string{"busy", serve(t, o).URL + keyPath("order_paid", "1") + "&"})
	guarded, _ := guarded(t, func(_ *access.Options, o *Options) { o.Environment = "production" })
	closed := httptest.NewServer(guarded)
	t.Cleanup(closed.Close)
	pages = append(pages, [2]string{"signin", closed.URL + "/signin?"})
	four := []look{{"en", 1440, "light"}, {"zh", 390, "dark"}, {"zh", 1440, "dark"}, {"en", 390, "light"}}
	for i, p := range pages {
		// Looks in pairs that differ in everything; one of them suffices where a page is much like another.
		some := four[i%2*2:][:2]
		if strings.Contains(p[0], "-") {
			some = some[i/2%2:][:1]
		}
		for _, l := range some {
			page := fmt.Sprintf("%s-%s-%d-%s", p[0], l.lang, l.width, l.scheme)
			b.as(t, l.width, l.scheme)
			b.do(t, chromedp.Navigate(p[1]+"lang="+l.lang))
			b.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => { d.open = true })`))
			b.accessible(t, page)
		}
	}
}

// everything is a console on which no page is missing.
func everything(t *testing.T) Options {
	t.Helper()
	o := flowsShop(t, shopFigures())
	found := shopFindings(t, "", "<script>alert(1)</script>", "\u202egnp.exe", strings.Repeat("x", 600))
	o.Findings, o.Cleanup, o.Traces = func() answer.Findings { return found }, busyBroom(), idleTrace()
	log := openAudit(t)
	for i, outcome := range []audit.Outcome{audit.Done, audit.Refused, audit.Failed} {
		if err := log.Append(t.Context(), audit.Entry{
			At: time.Now(), Attempt: fmt.Sprint("a", i), Who: "alice", From: "10.0.0.7", Action: "release-lock", Outcome: outcome, Reason: "its host is gone",
			Place: flow.Place{Flow: "payments", Key: flow.Key{BizType: "order_paid", BizID: orderNo}},
			Why:   flow.T("the key was deleted", "键已删除"), Before: "worker-7 holds it", After: "absent",
		}); err != nil {
			t.Fatal(err)
		}
	}
	o.Actor, o.Audit, o.Actions, o.Environment = idleActor{}, log, true, "staging"
	return o
}

// TestWhatKeepsPeopleOutIsSeen: the examination can fail.
func TestWhatKeepsPeopleOutIsSeen(t *testing.T) {
	b := openBrowser(t)
	b.do(t, chromedp.Navigate(serve(t, shop(t)).URL), chromedp.Evaluate[chromedp.Void](`document.querySelector("label").remove(); document.querySelector("#q").removeAttribute("placeholder")`))
	for _, c := range b.axe(t) {
		if c.ID == "label" && c.Impact == "critical" {
			return
		}
	}
	t.Error("a field without a name went unnoticed")
}
