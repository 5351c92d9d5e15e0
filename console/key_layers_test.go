package console

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
	"idemscope/internal/verdict"
)

// slowBroker is the story of a stuck key over a broker that answers once it is let.
func slowBroker(t *testing.T) (o Options, let func()) {
	t.Helper()
	c := stories()[0].canned
	answers, gate := c.queues, make(chan struct{})
	let = sync.OnceFunc(func() { close(gate) })
	c.queues = func(q flow.Queue) broker.Evidence {
		<-gate
		return answers(q)
	}
	t.Cleanup(let)
	o = Options{Desk: c.desk(t, shopFlows(t)), Flows: shopFlows(t), Patience: 400 * time.Millisecond}
	return o, let
}

// TestSlowLayer: the page comes without a layer that is slow, says so, judges
// without it, and leads to the whole answer; the JSON waits.
func TestSlowLayer(t *testing.T) {
	o, let := slowBroker(t)
	server := serve(t, o)
	got := get(t, server.URL+keyPath("order_paid", orderNo))
	page := got.document(t)
	const whole = "./key?id=" + orderNo + "&type=order_paid&wait=all"
	if text := layerText(t, page, "mysql"); !strings.Contains(text, "found processing") {
		t.Errorf("a slow broker hides the record: %s", text)
	}
	if text := layerText(t, page, "broker"); !strings.Contains(text, "unknown not read yet") {
		t.Error(text)
	}
	if fill, _ := attribute(page.one(t, "main", "").Node, "data-fill"); fill != whole {
		t.Errorf("data-fill %q", fill)
	}
	caution := page.one(t, "p", "pending")
	if link, _ := attribute(caution.all("a", "")[0].Node, "href"); link != whole || !strings.Contains(caution.words(), "may change") {
		t.Errorf("%q %s", link, caution.words())
	}
	if !strings.Contains(got.body, `<noscript><meta http-equiv="refresh" content="1;url=./key?id=`+orderNo+`&amp;type=order_paid&amp;wait=all"></noscript>`) {
		t.Error("no way to the whole answer without scripts")
	}
	if len(page.all("details", "report")) != 0 {
		t.Error("a report that is not complete is offered")
	}
	let()
	complete := get(t, server.URL+strings.TrimPrefix(whole, "."))
	page = complete.document(t)
	if strings.Contains(complete.body, "not read yet") || strings.Contains(complete.body, "http-equiv") || len(page.all("details", "report")) != 1 {
		t.Error("the whole answer is not complete")
	}
	checkTwin(t, page, twin(t, server.URL, page))
}

// offering counts how often it is asked for the actions of a key.
type offering struct {
	idleActor
	asked atomic.Int64
}

func (o *offering) Offers(context.Context, answer.Answer) []action.Precheck {
	o.asked.Add(1)
	return nil
}

// TestSlowLayerOffersNoActions: asking for them may take as long as the layer does.
func TestSlowLayerOffersNoActions(t *testing.T) {
	o, let := slowBroker(t)
	actor := &offering{}
	o.Actor, o.Audit = actor, openAudit(t)
	server := serve(t, o)
	if page := get(t, server.URL+keyPath("order_paid", orderNo)).document(t); len(page.all("section", "deeds")) != 0 || actor.asked.Load() != 0 {
		t.Errorf("actions beside an answer that is not complete; asked %d times", actor.asked.Load())
	}
	let()
	if page := get(t, server.URL+keyPath("order_paid", orderNo, "wait", "all")).document(t); len(page.all("section", "deeds")) != 1 || actor.asked.Load() != 1 {
		t.Errorf("no actions beside the whole answer; asked %d times", actor.asked.Load())
	}
}

// TestAPIWaits: a layer that the page would not wait for is in the JSON and in the report.
func TestAPIWaits(t *testing.T) {
	o, let := slowBroker(t)
	server := serve(t, o)
	time.AfterFunc(o.Patience*5/4, let)
	if body := get(t, server.URL+"/api/v1/lookup"+strings.TrimPrefix(keyPath("order_paid", orderNo), "/key")).body; strings.Contains(body, "not read yet") || !strings.Contains(body, `"name": "order.paid"`) {
		t.Error(body)
	}
	if body := get(t, server.URL+"/key.md"+strings.TrimPrefix(keyPath("order_paid", orderNo), "/key")).body; strings.Contains(body, "not complete") || !strings.Contains(body, "`order.paid`") {
		t.Error(body)
	}
}

// TestAnchors: every fact, gate and cell of the strip leads to what it speaks of.
func TestAnchors(t *testing.T) {
	for _, s := range stories() {
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
		page := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t)
		ids, links := map[string]bool{}, 0
		for _, n := range page.elements() {
			if id, ok := attribute(n, "id"); ok {
				ids[id] = true
			}
		}
		for _, link := range page.all("a", "") {
			address, _ := attribute(link.Node, "href")
			if anchor, ok := strings.CutPrefix(address, "#"); ok {
				links++
				if !ids[anchor] {
					t.Errorf("%s: %s leads nowhere", s.name, address)
				}
			}
		}
		if facts := len(page.one(t, "ul", "facts").all("li", "")); links < facts+6 {
			t.Errorf("%s: %d links for %d facts", s.name, links, facts)
		}
	}
}

// TestStrip: each layer's state, figure, source and latency stand together.
func TestStrip(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t), Zone: time.FixedZone("+08:00", 8*3600)})
	cells := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t).all("li", "strip-cell")
	for i, want := range []string{
		"Broker queues unknown 3 waiting, 1 unacked, 2 dead broker rabbit (http://127.0.0.1:15672, vhost /) 02:07:31 3 ms 6 messages are there and this could be one of them",
		"Redis lock absent redis main (127.0.0.1:6379) 02:07:31 3 ms marker found 21 h left redis main (127.0.0.1:6379) 02:07:31 3 ms",
		"MySQL the verdict points here record found processing, silent for 2 h 4 min mysql main, shop.idempotent_record 02:07:31 3 ms",
	} {
		if got := cells[i].words(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	for _, s := range stories() {
		if s.name != "record-only" {
			continue
		}
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
		strip := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t).one(t, "ol", "strip").words()
		if strings.Count(strip, "none configured") != 3 || strings.Contains(strip, "absent") {
			t.Error(strip)
		}
	}
}

// TestGatesShown: the way of the message is on the page, each gate with a word and a sign.
func TestGatesShown(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	gates := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t).all("li", "gate")
	for i, want := range []string{"1 Broker delivers the message passed", "2 Redis lets one consumer in passed", "3 MySQL accepts one record blocked"} {
		if !strings.HasPrefix(gates[i].words(), want) || len(gates[i].all("svg", "passage")) != 1 {
			t.Errorf("%s, want %s", gates[i].words(), want)
		}
	}
}

// TestNear: other keys that could be meant are links to them.
func TestNear(t *testing.T) {
	c := canned{record: func(k flow.Key) ledger.Found {
		f := records()(k)
		version, other := row("2", flow.Completed, time.Hour), row("1", flow.Processing, time.Hour)
		version.BizID, other.BizType = orderNo+":v2 ", "refund"
		f.Neighbours = []ledger.Neighbour{{Kind: ledger.OtherVersion, Row: version}, {Kind: ledger.OtherType, Row: other}}
		return f
	}, lock: redisKeys(none(), none()), queues: queues(0, 0, 0), similar: []string{"idem_lock:order_paid:" + orderNo + "\n"}}
	server := serve(t, Options{Desk: c.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	page := get(t, server.URL+keyPath("order_paid", orderNo)).document(t)
	var got []string
	for _, item := range page.one(t, "ul", "near").all("li", "") {
		address, _ := attribute(item.all("a", "")[0].Node, "href")
		got = append(got, address+" "+item.words())
	}
	want := []string{
		"./key?id=" + orderNo + "%3Av2+&type=order_paid order_paid / " + orderNo + ":v2␣ raw bytes",
		"./key?flow=payments&id=" + orderNo + "&type=refund refund / " + orderNo + " same id, another biz_type processing",
		"./search?q=idem_lock%3Aorder_paid%3A" + orderNo + "%0A",
	}
	for i, w := range want {
		if len(got) < 3 || !strings.HasPrefix(got[i], w) {
			t.Errorf("%q lack %q", got, w)
		}
	}
}

// TestWaitAndRefresh: both stand in the address, and nothing else is taken for them.
func TestWaitAndRefresh(t *testing.T) {
	server := serve(t, shop(t))
	for query, status := range map[string]int{
		"&refresh=5": 200, "&refresh=300": 200, "&refresh=4": 400, "&refresh=301": 400, "&refresh=x": 400, "&refresh=": 400, "&refresh=5&refresh=6": 400,
		"&wait=all": 200, "&wait=": 400, "&wait=none": 400,
	} {
		if got := get(t, server.URL+keyPath("order_paid", orderNo)+query); got.StatusCode != status {
			t.Errorf("%s: %d, want %d", query, got.StatusCode, status)
		}
	}
	page := get(t, server.URL+keyPath("order_paid", orderNo)+"&refresh=7").document(t)
	if every, _ := attribute(page.one(t, "main", "").Node, "data-refresh"); every != "7" || !strings.Contains(page.one(t, "span", "refresh").words(), "Turn off") {
		t.Errorf("every %q", every)
	}
}

// TestPastedID: an id with something around it is answered as it is, and the key
// without it is looked up beside.
func TestPastedID(t *testing.T) {
	server := serve(t, shop(t))
	page := get(t, server.URL+keyPath("order_paid", orderNo+" ")).document(t)
	if code := page.one(t, "p", "verdict-word").all("code", "")[0].text(); code == string(verdict.Stuck) {
		t.Error("the blank was taken away")
	}
	offer := page.one(t, "section", "pasted")
	link, _ := attribute(offer.all("a", "")[0].Node, "href")
	if link != "./key?id="+orderNo+"&type=order_paid" || !strings.Contains(offer.words(), "a space at its end") || !strings.Contains(offer.words(), "STUCK") {
		t.Errorf("%q %s", link, offer.words())
	}
	if offers := get(t, server.URL+keyPath("order_paid", orderNo)).document(t).all("section", "pasted"); len(offers) != 0 {
		t.Error("an id as it should be has an offer")
	}
}

// TestSearchOffers: what else a text could mean is looked up, and never put in its place.
func TestSearchOffers(t *testing.T) {
	server := serve(t, shop(t))
	for query, want := range map[string][]string{
		orderNo + " ":                  {"No trace of it", "without a space at its end " + orderNo, "STUCK", "20260314000123␣"},
		"\ufeff" + orderNo:             {"without a byte order mark at its beginning"},
		`"order_paid:` + orderNo + `"`: {"without quotation marks around it", "order_paid / " + orderNo},
		"18:07 WARN idempotent:order_paid:" + orderNo + " is set": {"keys that stand in this text", "order_paid / " + orderNo, "STUCK"},
		`got {"data":{"order_no":"` + orderNo + `"}} at 18:07`:    {"keys that stand in this text", "refund / " + orderNo},
		"customer 20260314000123 complains":                       {"could be a biz_id in this text " + orderNo},
	} {
		got := get(t, server.URL+"/search?q="+strings.NewReplacer(" ", "%20", `"`, "%22", "{", "%7B", "}", "%7D").Replace(query))
		if got.StatusCode != http.StatusOK {
			t.Errorf("%s: %d to %s", query, got.StatusCode, got.Header.Get("Location"))
			continue
		}
		text := got.document(t).words()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q: %s", query, w, text)
			}
		}
	}
}

// TestFill: in a browser the slow layer takes its place by itself; without scripts
// the page leads there.
func TestFill(t *testing.T) {
	b := openBrowser(t)
	for _, scripts := range []bool{true, false} {
		o, let := slowBroker(t)
		server := serve(t, o)
		b.scripts(t, scripts)
		b.do(t, chromedp.Navigate(server.URL+keyPath("order_paid", orderNo)), chromedp.WaitVisible(chromedp.CSS(".pending")))
		let()
		testkit.Eventually(t, 20*time.Second, func() bool {
			return value[bool](t, b, `!document.querySelector(".pending") && !!document.querySelector(".report") && document.querySelector(".strip").textContent.includes("3 waiting")`)
		}, "the broker does not fill in, scripts %v", scripts)
		if search := value[string](t, b, "location.search"); strings.Contains(search, "wait=all") == scripts {
			t.Errorf("scripts %v: the address is %s", scripts, search)
		}
		b.quiet(t, "fill")
	}
}

// TestRefreshByItself: the page is read anew while nobody is busy with it, and can be paused.
func TestRefreshByItself(t *testing.T) {
	b := openBrowser(t)
	c := stories()[0].canned
	var reads atomic.Int64
	record := c.record
	c.record = func(k flow.Key) ledger.Found { reads.Add(1); return record(k) }
	server := serve(t, Options{Desk: c.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	b.do(t, chromedp.Navigate(server.URL+keyPath("order_paid", orderNo, "refresh", "5")), chromedp.WaitVisible(chromedp.CSS(".refresh button")))
	first := reads.Load()
	b.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector(".report").open = true; document.querySelector("main").dataset.mark = "x"; void document.querySelector("h1").setAttribute("data-old", "")`))
	testkit.Eventually(t, 30*time.Second, func() bool {
		return reads.Load() > first && value[bool](t, b, `!document.querySelector("h1[data-old]")`)
	}, "the page is not read anew")
	if !value[bool](t, b, `document.querySelector(".report").open && document.querySelector("main").dataset.mark == "x"`) {
		t.Error("what was open is closed")
	}
	b.do(t, chromedp.Click(chromedp.CSS(".refresh button")))
	testkit.Eventually(t, 10*time.Second, func() bool {
		return value[string](t, b, `document.querySelector(".refresh").textContent.replace(/\s+/g, " ")`) == "Paused Go on Turn off"
	}, "it does not pause: %s", value[string](t, b, `document.querySelector(".refresh").textContent`))
	// Ten minutes later, as far as the page can tell, it goes on no longer.
	b.do(t, chromedp.Evaluate[chromedp.Void](`(() => { const late = Date.now() + 700000; document.querySelector(".refresh button").click(); Date.now = () => late; })()`))
	testkit.Eventually(t, 30*time.Second, func() bool {
		return value[bool](t, b, `document.querySelector(".refresh").textContent.startsWith("Stopped after 10 min")`)
	}, "it goes on for ever")
	b.quiet(t, "refresh")
}

// TestSearchBox: a slash leads to it, except where one is typed, and searches of
// late are kept in the browser, can be forgotten, and are bounded.
func TestSearchBox(t *testing.T) {
	b := openBrowser(t)
	server := serve(t, shop(t))
	b.do(t, chromedp.Navigate(server.URL+keyPath("order_paid", orderNo)), chromedp.WaitVisible(chromedp.CSS("#verdict")))
	// Sent as an event of its own: a key that is sent whole is typed even where the page has taken it.
	const slash = `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true, cancelable: true}))`
	if typed := value[bool](t, b, slash); typed || !value[bool](t, b, `document.activeElement.id == "q"`) {
		t.Error("the slash leads nowhere")
	}
	if typed := value[bool](t, b, slash); !typed {
		t.Error("no slash can be typed into the box")
	}
	b.do(t, chromedp.KeyEvent("a/b <i>"+kb.Enter), chromedp.WaitVisible(chromedp.CSS(".question")))
	if typed := value[string](t, b, `document.getElementById("q").value`); typed != "a/b <i>" {
		t.Errorf("typed %q", typed)
	}
	const items = `[...document.querySelectorAll("#recent li code")].map(c => c.textContent).join("|")`
	b.do(t, chromedp.Navigate(server.URL+"/?lang=zh"), chromedp.WaitVisible(chromedp.CSS("#recent li a")))
	if got := value[string](t, b, items); got != "a/b <i>" {
		t.Errorf("kept %q", got)
	}
	if address := value[string](t, b, `document.querySelector("#recent li a").href`); !strings.HasPrefix(address, server.URL+"/search?q=a%2Fb+%3Ci%3E&lang=zh") {
		t.Errorf("leads to %s", address)
	}
	for i := range 12 {
		b.do(t, chromedp.Navigate(server.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#q")),
			chromedp.KeyEvent(strings.Repeat("x", i+1)+kb.Enter), chromedp.WaitVisible(chromedp.CSS(".question")))
	}
	b.do(t, chromedp.Navigate(server.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#recent li button")))
	if got := strings.Split(value[string](t, b, items), "|"); len(got) != 10 || got[0] != strings.Repeat("x", 12) {
		t.Errorf("kept %q", got)
	}
	b.do(t, chromedp.Click(chromedp.CSS("#recent li button")))
	testkit.Eventually(t, 10*time.Second, func() bool { return value[int](t, b, `document.querySelectorAll("#recent li").length`) == 9 }, "none is forgotten")
	b.do(t, chromedp.Click(chromedp.CSS("#recent [data-clear] button")))
	testkit.Eventually(t, 10*time.Second, func() bool {
		return value[bool](t, b, `document.getElementById("recent").hidden && localStorage.getItem("idemscope.searches") == "[]"`)
	}, "not all are forgotten")
	b.quiet(t, "search box")
}

// TestKeyPictures loads what only some keys and searches show, in all looks.
func TestKeyPictures(t *testing.T) {
	dir, b := pictures(t), openBrowser(t)
	o := shop(t)
	o.Zone = time.FixedZone("+08:00", 8*3600)
	server := serve(t, o)
	b.pictures(t, dir, "key", server.URL+keyPath("order_paid", orderNo, "refresh", "300")+"&", looks())
	b.pictures(t, dir, "pasted", server.URL+keyPath("order_paid", orderNo+"\u200b")+"&", looks()[:1])
	b.pictures(t, dir, "offers", server.URL+"/search?q=18:07+WARN+idempotent:order_paid:"+orderNo+"+is+set&", looks())
	b.pictures(t, dir, "last-offer", server.URL+"/search?q=customer+"+orderNo+"+complains&", looks()[:1])
	slow, _ := slowBroker(t)
	b.pictures(t, dir, "pending", serve(t, slow).URL+keyPath("order_paid", orderNo)+"&", looks()[:2])
}
