package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"idemscope/internal/testkit"
)

const (
	chromium = "/usr/bin/chromium"
	// picturesFolder is the environment variable that names where screenshots are kept.
	picturesFolder = "IDEMSCOPE_SCREENSHOTS"
)

// browser is one Chromium with one tab. Complaints of the pages that it loads
// (exceptions, console errors, violations of the content policy) fail the test.
type browser struct {
	ctx        context.Context
	mu         sync.Mutex
	complaints []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	if _, err := os.Stat(chromium); err != nil {
		t.Fatalf("chromium is needed (Debian: apt-get install chromium): %v", err)
	}
	// Chromium leaves folders of its own behind, and writes there until it has ended.
	scratch, err := os.MkdirTemp("", "idemscope-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		testkit.Eventually(t, 10*time.Second, func() bool { return os.RemoveAll(scratch) == nil }, "the browser's folder cannot be removed")
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Env("TMPDIR="+scratch),
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		// A name that browsers do not trust as they trust this machine's own.
		chromedp.Flag("host-resolver-rules", "MAP console.example 127.0.0.1"))
	allocated, release := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(release)
	tab, closeTab := chromedp.NewContext(allocated)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(tab, 3*time.Minute)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) listen(event any) {
	var complaint string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = fmt.Sprintf("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprintf("console.%s", e.Type)
	case *cdplog.EventEntryAdded:
		complaint = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, complaint)
}

// quiet fails the test when a page has complained since the last call.
func (b *browser) quiet(t *testing.T, page string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		t.Errorf("%s: %s", page, complaint)
	}
	b.complaints = nil
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// value returns what an expression comes to in the page.
func value[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// as sets the window's width and the colour scheme.
func (b *browser) as(t *testing.T, width int64, scheme string) {
	t.Helper()
	b.do(t, chromedp.EmulateViewport(width, 900), func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return chromedp.Void{}, err
	})
}

// focus makes the tab the one that a person is looking at: no other may write to
// the clipboard.
func (b *browser) focus(t *testing.T) {
	t.Helper()
	b.do(t, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return chromedp.Void{}, err
	})
}

// scripts switches JavaScript in the page on or off.
func (b *browser) scripts(t *testing.T, on bool) {
	t.Helper()
	b.do(t, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return chromedp.Void{}, err
	})
}

// pictures is the folder for screenshots; without the variable they go to one that is removed.
func pictures(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(picturesFolder); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	return t.TempDir()
}

func (b *browser) picture(t *testing.T, dir, name string) {
	t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// looks are all the ways in which a page can look.
func looks() (all []look) {
	for _, lang := range []string{"en", "zh"} {
		for _, width := range []int64{1440, 768, 390} {
			for _, scheme := range []string{"light", "dark"} {
				all = append(all, look{lang, width, scheme})
			}
		}
	}
	return all
}

type look struct {
	lang   string
	width  int64
	scheme string
}

// TestPictures loads the pages in their looks: all looks of some, one look of
// the others in turn.
func TestPictures(t *testing.T) {
	dir, b := pictures(t), openBrowser(t)
	for i, s := range stories() {
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t), Zone: time.FixedZone("+08:00", 8*3600), Version: "0.1.0"})
		b.pictures(t, dir, s.name, server.URL+keyPath(s.bizType, s.bizID)+"&", looks()[i%8:i%8+1])
		if s.name == "stuck" {
			b.pictures(t, dir, "hits", server.URL+"/search?q="+orderNo+"&", looks())
			b.pictures(t, dir, "choose", server.URL+"/key?type=refund&id=1&", looks()[:3])
		}
		if s.name == "running" {
			long := keyPath("order_paid", strings.Repeat("订单😀 <b>x</b>\n", 500))
			b.pictures(t, dir, "long", server.URL+long+"&", looks())
		}
	}
}

// TestRealPictures loads pages of real stores in every look.
func TestRealPictures(t *testing.T) {
	dir, b, r := pictures(t), openBrowser(t), newRig(t, rigDeadline)
	r.record(t, "idempotent_record", "order_paid", orderNo, 1, 2*time.Hour+4*time.Minute+10*time.Second)
	r.setRedis(t, "idempotent:order_paid:"+orderNo, "processing", 21*time.Hour+55*time.Minute)
	r.record(t, "idempotent_record", "order_paid", "20260314000124", 2, 26*time.Minute)
	r.setRedis(t, "idempotent:order_paid:20260314000124", "1", 23*time.Hour+33*time.Minute)
	r.record(t, "points_record", "points_granted", "User-7", 2, 3*time.Hour)
	r.publish(t, "order.paid", 3)
	r.publish(t, "order.paid.dlq", 2)
	testkit.Eventually(t, 30*time.Second, func() bool {
		_, page := r.lookup(t, "order_paid", orderNo)
		text := layerText(t, page, "broker")
		return strings.Contains(text, "classic 3 0 0") && strings.Contains(text, "classic 2 0 0")
	}, "the queues' totals do not show")
	b.pictures(t, dir, "home", r.URL+"/?", looks())
	b.pictures(t, dir, "real-stuck", r.URL+keyPath("order_paid", orderNo)+"&", looks())
	for _, p := range []struct{ name, path, lang, scheme string }{
		{"console-home", "/?", "en", "light"},
		{"console-key", keyPath("order_paid", orderNo) + "&", "en", "light"},
		{"console-key", keyPath("order_paid", orderNo) + "&", "zh", "dark"},
	} {
		b.window(t, dir, p.name+"-"+p.lang+"-"+p.scheme, r.URL+p.path+"lang="+p.lang, p.scheme)
	}
	b.pictures(t, dir, "real-completed", r.URL+keyPath("order_paid", "20260314000124")+"&", looks())
	b.pictures(t, dir, "real-ambiguous", r.URL+keyPath("points_granted", "user-7")+"&", looks())
	r.proxies["redis"].Drop(true)
	b.pictures(t, dir, "real-redis-down", r.URL+keyPath("order_paid", orderNo)+"&", looks())
}

// pictures takes one of a page in each look. address ends so that a parameter
// can follow. When nobody asked for pictures, two looks that differ in
// everything are enough.
func (b *browser) pictures(t *testing.T, dir, name, address string, some []look) {
	t.Helper()
	if os.Getenv(picturesFolder) == "" && len(some) > 2 {
		some = []look{some[0], some[len(some)-1]}
	}
	for _, l := range some {
		page := fmt.Sprintf("%s-%s-%d-%s", name, l.lang, l.width, l.scheme)
		b.as(t, l.width, l.scheme)
		b.do(t, chromedp.Navigate(address+"lang="+l.lang))
		b.picture(t, dir, page)
		b.quiet(t, page)
		if wide := value[float64](t, b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
			t.Errorf("%s: %v px wider than the window", page, wide)
		}
	}
}

// window takes a picture for the documentation: as much as one window shows.
func (b *browser) window(t *testing.T, dir, name, address, scheme string) {
	t.Helper()
	b.as(t, 1180, scheme)
	b.do(t, chromedp.Navigate(address))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
	b.quiet(t, name)
}

// TestWithoutScripts: with JavaScript off everything is there, and the search
// box, which has the cursor from the start, leads to the key.
func TestWithoutScripts(t *testing.T) {
	b := openBrowser(t)
	b.scripts(t, false)
	for _, s := range stories() {
		if s.name != "never" {
			continue
		}
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
		b.do(t, chromedp.Navigate(server.URL+"/?lang=zh"))
		testkit.Eventually(t, 10*time.Second, func() bool { return value[bool](t, b, `document.activeElement.id == "q"`) }, "the search box has not the cursor")
		b.do(t, chromedp.KeyEvent("order_paid:4711 "+kb.Enter), chromedp.WaitVisible(chromedp.CSS("#verdict")))
		where, err := chromedp.Run(b.ctx, chromedp.Location())
		if err != nil || where != server.URL+"/key?id=4711+&lang=zh&type=order_paid" {
			t.Errorf("%v, arrived at %s", err, where)
		}
		title, err := chromedp.Run(b.ctx, chromedp.Title())
		if err != nil || title != "从未出现 · order_paid / 4711␣ · idemscope" {
			t.Errorf("%v, title %q", err, title)
		}
		b.quiet(t, s.name)
	}
}

// TestScripts: the remaining time counts down and ends in words, and a command
// can be copied.
func TestScripts(t *testing.T) {
	b := openBrowser(t)
	c := canned{record: records(), lock: redisKeys(held("token", 2500*time.Millisecond), held("1", 26*time.Hour+30*time.Minute)), queues: queues(0, 0, 0)}
	server := serve(t, Options{Desk: c.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	// In this order: the copied command below is told in the language of the last page.
	for _, words := range [][3]string{{"en", "expired since", "1 d 2 h"}, {"zh", "此后已过期", "1 天 2 小时"}} {
		lang, want := words[0], words[1:]
		b.do(t, chromedp.Navigate(server.URL+keyPath("order_paid", orderNo, "lang", lang)))
		const clocks = `[...document.querySelectorAll("[data-ttl]")].map(c => c.textContent).join()`
		if got := value[string](t, b, clocks); !strings.HasSuffix(got, ","+want[1]) || strings.HasPrefix(got, want[0]) {
			t.Errorf("%s: at first %q", lang, got)
		}
		testkit.Eventually(t, 10*time.Second, func() bool {
			return value[string](t, b, clocks) == strings.Join([]string{want[0], want[1], want[0], want[1]}, ",")
		}, "the lock's time does not run out: %s", lang)
		if left := value[float64](t, b, `document.querySelector("progress").value`); left != 0 {
			t.Errorf("%s: the bar stands at %v", lang, left)
		}
	}
	b.focus(t)
	copies := value[int](t, b, `document.querySelectorAll("button.copy").length`)
	commands := value[int](t, b, `document.querySelectorAll("pre").length`)
	if copies != commands || copies != 5 {
		t.Errorf("%d buttons for %d commands", copies, commands)
	}
	b.do(t, chromedp.Click(chromedp.CSS(".layer:last-child .copy")))
	testkit.Eventually(t, 20*time.Second, func() bool {
		return value[string](t, b, `document.querySelector(".layer:last-child .copy").textContent`) == "已复制"
	}, "the button does not say that it copied")
	b.quiet(t, "scripts")
}

// TestComplaintsAreSeen: the check for complaints can fail.
func TestComplaintsAreSeen(t *testing.T) {
	b := openBrowser(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", contentPolicy)
		_, _ = io.WriteString(w, `<!DOCTYPE html><title>x</title><link rel="icon" href="data:,"><p style="color:red">x</p><script>1</script>`)
	}))
	t.Cleanup(page.Close)
	b.do(t, chromedp.Navigate(page.URL))
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) < 2 {
		t.Errorf("the inline style and script went unnoticed: %q", b.complaints)
	}
}
