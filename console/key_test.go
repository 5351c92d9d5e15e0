package console

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/verdict"
)

// twin asks for the JSON of the page that it is given.
func twin(t testing.TB, base string, page document) answer.JSON {
	t.Helper()
	for _, link := range page.all("a", "") {
		address, _ := attribute(link.Node, "href")
		if !strings.HasPrefix(address, "./api/v1/lookup?") {
			continue
		}
		got := get(t, base+strings.TrimPrefix(address, "."))
		var a answer.JSON
		if err := json.Unmarshal([]byte(got.body), &a); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", address, got.StatusCode, err)
		}
		return a
	}
	t.Fatal("no link to the JSON")
	return answer.JSON{}
}

func listed(d document, class string) (texts []string) {
	for _, list := range d.all("", class) {
		for _, item := range list.all("li", "") {
			texts = append(texts, item.words())
		}
	}
	return texts
}

// checkTwin: the page says what the JSON says.
func checkTwin(t testing.TB, page document, a answer.JSON) {
	t.Helper()
	banner := page.one(t, "section", "verdict")
	if !hasClass(banner.Node, "tone-"+string(a.Verdict.Severity)) {
		t.Errorf("the banner has not the tone %s", a.Verdict.Severity)
	}
	if got := strings.ReplaceAll(page.one(t, "h1", "").text(), "\u00a0", " "); got != a.Verdict.Sentence {
		t.Errorf("sentence %q, JSON says %q", got, a.Verdict.Sentence)
	}
	if got := page.one(t, "p", "verdict-word").all("code", "")[0].text(); got != string(a.Verdict.Code) {
		t.Errorf("code %q, JSON says %q", got, a.Verdict.Code)
	}
	var facts []string
	layers := map[flow.Layer]string{flow.LayerBroker: "Broker", flow.LayerRedis: "Redis", flow.LayerMySQL: "MySQL"}
	for _, f := range a.Verdict.Facts {
		facts = append(facts, strings.Join(strings.Fields(layers[f.Layer]+" "+f.Text), " "))
	}
	if got := listed(page, "facts"); !slices.Equal(got, facts) {
		t.Errorf("facts %q\nJSON says %q", got, facts)
	}
	for _, sentence := range slices.Concat(a.Verdict.Next, a.Verdict.Advice) {
		if !strings.Contains(page.text(), sentence) {
			t.Errorf("the page lacks %q", sentence)
		}
	}
	for _, n := range a.Verdict.Notes {
		if !slices.Contains(listed(page, "notes"), strings.Join(strings.Fields(n.Text), " ")+" "+n.Code) {
			t.Errorf("notes %q lack %+v", listed(page, "notes"), n)
		}
	}
	if len(page.all("div", "row")) != len(a.Record.Rows) {
		t.Errorf("%d rows, JSON has %d", len(page.all("div", "row")), len(a.Record.Rows))
	}
	states := []string{}
	if a.Broker != nil {
		states = append(states, string(a.Broker.State))
		for _, q := range a.Broker.Queues {
			if q.State != flow.Found {
				states = append(states, string(q.State))
			}
		}
	}
	for _, r := range []*answer.RedisJSON{a.Lock, a.Marker} {
		if r != nil {
			states = append(states, string(r.State))
		}
	}
	states = append(states, string(a.Record.State))
	var shown []string
	for _, s := range page.one(t, "div", "layers").all("span", "state") {
		shown = append(shown, s.words())
	}
	if !slices.Equal(shown, states) {
		t.Errorf("states %q, JSON says %q", shown, states)
	}
}

// TestStories: every verdict has its page, and the page says what the JSON says.
func TestStories(t *testing.T) {
	covered := map[verdict.Code]bool{}
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
			page := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t)
			a := twin(t, server.URL, page)
			if a.Verdict.Code != s.code {
				t.Errorf("verdict %s, want %s", a.Verdict.Code, s.code)
			}
			checkTwin(t, page, a)
			if page.one(t, "section", "verdict").all("svg", "sign-"+string(a.Verdict.Severity)) == nil {
				t.Errorf("no sign beside the colour")
			}
			pointed := page.all("section", "pointed")
			if located := a.Verdict.Layer != flow.LayerNone; located != (len(pointed) == 1) {
				t.Errorf("%d layers are pointed to by a verdict on %s", len(pointed), a.Verdict.Layer)
			} else if located && !strings.Contains(pointed[0].words(), "the verdict points here") {
				t.Errorf("the mark has no words: %s", pointed[0].words())
			}
		})
		covered[s.code] = true
	}
	for _, code := range []verdict.Code{
		verdict.KeyAmbiguous, verdict.RanTwice, verdict.Unknown, verdict.ClockSkew, verdict.Unreadable, verdict.MayHaveRunTwice, verdict.Stuck,
		verdict.LostSuspected, verdict.FailedUnplaced, verdict.Running, verdict.Completed, verdict.Acquiring, verdict.MaybeWaiting, verdict.NeverSeen,
	} {
		if !covered[code] {
			t.Errorf("no story of %s", code)
		}
		if codeWord(code).EN == codeWord(code).ZH {
			t.Errorf("no words for %s", code)
		}
	}
}

func layerText(t *testing.T, page document, layer string) string {
	t.Helper()
	for _, section := range page.all("section", "layer") {
		if label, _ := attribute(section.Node, "aria-labelledby"); label == layer {
			return section.words()
		}
	}
	t.Fatalf("no column of %s", layer)
	return ""
}

// TestFigures: what the columns must show of a stuck key.
func TestFigures(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t), Zone: time.FixedZone("+08:00", 8*3600)})
	page := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t)
	for layer, wants := range map[string][]string{
		"broker": {"unknown", "6 messages are there", "order.paid work quorum 3 1 4", "order.paid.dlq dead letter classic 2 0 0", "redelivered 311 times so far",
			"broker rabbit (http://127.0.0.1:15672, vhost /)", "2026-03-15 02:07:31.412 +08:00 took 3 ms", "totals only; no message was looked at", "rabbitmqctl list_queues"},
		"redis": {"Lock absent Key idem_lock:order_paid:" + orderNo, "not set", "Marker found", "21 h TTL left of the 1 d that the flow declares", "Value processing", "Type string", "Set 3 h ago", "redis-cli -h 127.0.0.1"},
		"mysql": {"found", "processing status 1 row 84291 shop.idempotent_record", "Age 2 h 4 min without a sign of life (allowed: 5 min)",
			"Created 2026-03-15 00:03:29.412 +08:00 2 h 4 min ago", "Database clock 2026-03-15 02:07:31.412 +08:00", "SELECT * FROM"},
	} {
		text := layerText(t, page, layer)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", layer, want, text)
			}
		}
	}
}

// TestMissingLayers: a layer that the flow does not have is said to be missing, not absent.
func TestMissingLayers(t *testing.T) {
	for _, s := range stories() {
		if s.name != "record-only" {
			continue
		}
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
		text := get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t).words()
		for _, want := range []string{"This flow names no queue, so the broker was not asked.", "This flow has no lock.", "This flow has no marker."} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if strings.Contains(text, "absent") {
			t.Errorf("a layer that was not asked is called absent")
		}
	}
}

// TestOddEvidence: what is odd about a row or a key is on the page.
func TestOddEvidence(t *testing.T) {
	odd := row("1", flow.Processing, 90*time.Second)
	odd.Created = ledger.Stamp{State: ledger.StampZero, Text: "0000-00-00 00:00:00"}
	odd.Completed = ledger.Stamp{State: ledger.StampNull}
	odd.Updated.State = ledger.StampAmbiguous
	odd.RunTime, odd.RunTimeKnown = -time.Minute, true
	result, attempts := "", "3\n"
	odd.Result, odd.Attempts = &result, &attempts
	other := row("done", flow.Completed, time.Hour)
	other.Exact, other.BizID = false, orderNo+"\u200b"
	cut := held(strings.Repeat("v", 40), 20*time.Second)
	cut.Length = 9000
	ours := held("\x00token", time.Hour)
	c := canned{record: func(k flow.Key) ledger.Found {
		f := records(odd, other)(k)
		f.Replica, f.TooLong, f.Width = true, true, 64
		return f
	}, lock: redisKeys(cut, ours), queues: queues(0, 0, 0)}
	server := serve(t, Options{Desk: c.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	page := get(t, server.URL+keyPath("order_paid", orderNo)).document(t)
	text := page.words()
	for _, want := range []string{
		"0000-00-00 00:00:00 is no instant", "Completed NULL", "happened twice", "none: it ends 1 min before it begins", "Result (empty)", `Attempts 3\n`,
		"its bytes differ", orderNo + `\u200b`, "e2 80 8b", "the 64 characters that the column keeps", "it may lag behind", "only the beginning of 9000 bytes", `\x00token`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// More time is left than the flow declares, so nothing is said about since when.
	if bars := page.all("progress", ""); len(bars) != 1 {
		t.Errorf("%d bars, want one: only the marker compares to what is declared", len(bars))
	}
}

// TestFuture: a time ahead of the database's clock is worded as such.
func TestFuture(t *testing.T) {
	for _, s := range stories() {
		if s.name != "clock-skew" {
			continue
		}
		server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
		text := layerText(t, get(t, server.URL+keyPath(s.bizType, s.bizID)).document(t), "mysql")
		for _, want := range []string{"Age none: 1 d 2 h ahead of the database's clock", "1 d 2 h in the future"} {
			if !strings.Contains(text, want) {
				t.Errorf("lacks %q: %s", want, text)
			}
		}
		if strings.Contains(text, "-26") || strings.Contains(text, "-1 d") {
			t.Errorf("a negative age: %s", text)
		}
	}
}

// TestSharedRedisKey: a Redis key that two keys could own names the other owner.
func TestSharedRedisKey(t *testing.T) {
	flows := shopFlows(t)[:1]
	flows[0].BizTypes = []string{"order", "order:refund"}
	c := canned{record: records(), lock: func(string) lockstore.Entry {
		lock := held("x", time.Second)
		lock.ReadAt = readAt
		return lock
	}, queues: queues(0, 0, 0)}
	server := serve(t, Options{Desk: c.desk(t, flows), Flows: flows})
	text := layerText(t, get(t, server.URL+keyPath("order", "refund:7")).document(t), "redis")
	if !strings.Contains(text, "May also belong to order:refund / 7") {
		t.Error(text)
	}
}

// TestChoices: several flows are offered, an unknown biz_type lists the known
// ones, and every link repeats the id byte for byte.
func TestChoices(t *testing.T) {
	server := serve(t, shop(t))
	for _, c := range []struct {
		path  string
		param string
		want  []string
	}{
		{keyPath("refund", "a b%\x00"), "flow", []string{"payments", "mirror"}},
		{keyPath("nobody", "a b%\x00"), "type", []string{"order_paid", "refund", "points_granted", "sign"}},
		{keyPath("refund", "a b%\x00", "flow", "points"), "type", []string{"order_paid", "refund", "points_granted", "sign"}},
	} {
		page := get(t, server.URL+c.path).document(t)
		var got []string
		for _, link := range page.one(t, "ul", "choices").all("a", "") {
			address, _ := attribute(link.Node, "href")
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, u.Query().Get(c.param))
			if id := u.Query().Get("id"); id != "a b%\x00" {
				t.Errorf("%s asks for %q", address, id)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s offers %q, want %q", c.path, got, c.want)
		}
	}
	body := get(t, server.URL+"/api/v1/lookup?type=nobody&id=1").body
	for _, want := range []string{`"code": "unknown_biz_type"`, "nobody", "order_paid"} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
}

// TestSearchResults: one hit leads to its page, several are listed, none is said with what was looked at.
func TestSearchResults(t *testing.T) {
	o := shop(t)
	server := serve(t, o)
	hits := get(t, server.URL+"/search?q="+orderNo).document(t)
	if got := hits.one(t, "h1", "").text(); got != "Keys that match" || len(hits.all("li", "hit")) != 5 {
		t.Errorf("%q with %d hits", got, len(hits.all("li", "hit")))
	}
	for _, hit := range hits.all("li", "hit") {
		link, _ := attribute(hit.all("a", "")[0].Node, "href")
		if got := get(t, server.URL+strings.TrimPrefix(link, ".")); got.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", link, got.StatusCode)
		}
	}
	none := get(t, server.URL+"/search?q=4711").document(t)
	if got := none.one(t, "h1", "").text(); got != "No trace of it" || len(none.all("li", "hit")) != 5 {
		t.Errorf("%q with %d looked at", got, len(none.all("li", "hit")))
	}
	for query, want := range map[string]string{
		"order_paid:4711":                 "./key?id=4711&type=order_paid",
		"refund:4711":                     "", // two flows carry it
		"idem_lock:order_paid:47 11":      "./key?id=47+11&type=order_paid",
		`{"data":{"order_no":4711}}`:      "", // the queue carries two types
		"sign:7:2026-03-14":               "./key?id=7%3A2026-03-14&type=sign",
		"points_granted:9007199254740993": "./key?id=9007199254740993&type=points_granted",
	} {
		got := get(t, server.URL+"/search?"+url.Values{"q": {query}}.Encode())
		if got.Header.Get("Location") != want {
			t.Errorf("%s: %d to %q, want %q", query, got.StatusCode, got.Header.Get("Location"), want)
		}
	}
	var found struct {
		Answers []answer.JSON
		Cut     bool
	}
	if err := json.Unmarshal([]byte(get(t, server.URL+"/api/v1/search?q="+orderNo).body), &found); err != nil || len(found.Answers) != 5 || found.Cut {
		t.Errorf("%v, %d answers, cut %v", err, len(found.Answers), found.Cut)
	}
}

// TestCutSearch: a search that could not ask everything says so, and does not
// pass its one hit off as the only one.
func TestCutSearch(t *testing.T) {
	o := shop(t)
	a, err := o.Desk.Answer(t.Context(), flow.Place{Flow: "payments", Key: flow.Key{BizType: "order_paid", BizID: orderNo}})
	if err != nil {
		t.Fatal(err)
	}
	o.Desk = finds{Desk: o.Desk, result: answer.Result{Answers: []answer.Answer{a}, Cut: true}}
	server := serve(t, o)
	page := get(t, server.URL+"/search?q="+orderNo)
	if page.StatusCode != http.StatusOK || !strings.Contains(page.document(t).words(), "Not every biz_type was asked") {
		t.Errorf("%d %s", page.StatusCode, page.document(t).words())
	}
	if got := get(t, server.URL+"/search?q=order_paid:"+orderNo); got.StatusCode != http.StatusSeeOther {
		t.Errorf("a key that was named outright: %d", got.StatusCode)
	}
	o.Desk = finds{Desk: o.Desk, result: answer.Result{}}
	if text := get(t, serve(t, o).URL+"/search?q=1").document(t).words(); !strings.Contains(text, "No biz_type could be asked") {
		t.Error(text)
	}
}

// finds is a desk whose searches all come to one result.
type finds struct {
	Desk
	result answer.Result
}

func (f finds) Search(_ context.Context, _ string) (answer.Result, error) { return f.result, nil }

// TestHostileIDs: whatever bytes an id has, the page asks for them, shows them
// as text, and its links repeat them.
func TestHostileIDs(t *testing.T) {
	s := stories()[0]
	server := serve(t, Options{Desk: s.desk(t, shopFlows(t)), Flows: shopFlows(t)})
	for _, id := range hostileIDs() {
		checkHostile(t, server.URL, id)
	}
}

func checkHostile(t *testing.T, base, id string) {
	t.Helper()
	name := shown(id)
	got := get(t, base+keyPath("order_paid", id))
	if got.StatusCode != http.StatusOK {
		t.Errorf("%q: %d", name, got.StatusCode)
		return
	}
	if !utf8.ValidString(got.body) || strings.ContainsRune(got.body, 0) {
		t.Errorf("%q: the page is not UTF-8", name)
	}
	page := got.document(t)
	question := page.one(t, "section", "question")
	if id == "" && !strings.Contains(question.words(), "(empty)") {
		t.Errorf("an empty id is not shown: %s", question.words())
	}
	if codes := question.all("code", "id"); id != "" && (len(codes) != 2 || codes[1].text() != flow.Visible(id)) {
		t.Errorf("%q is not shown as %q", name, flow.Visible(id))
	}
	if hasHex := len(question.all("span", "hex")) == 1; hasHex == plain(id) {
		t.Errorf("%q: raw bytes shown: %v", name, hasHex)
	}
	key := twin(t, base, page).Key
	if asked := key.BizID; key.BizIDHex != "" {
		if key.BizIDHex != hex.EncodeToString([]byte(id)) {
			t.Errorf("%q: asked for %s", name, key.BizIDHex)
		}
	} else if asked != id {
		t.Errorf("%q: asked for %q", name, asked)
	}
	if id != "" {
		checkSearch(t, base, "order_paid:"+id, id)
		checkSearch(t, base, id, id)
	}
}

// checkSearch: a search leads to the id, alone or as one of a list.
func checkSearch(t *testing.T, base, query, id string) {
	t.Helper()
	got := get(t, base+"/search?"+url.Values{"q": {query}}.Encode())
	links := []string{got.Header.Get("Location")}
	if got.StatusCode == http.StatusOK {
		links = nil
		for _, link := range got.document(t).all("a", "") {
			address, _ := attribute(link.Node, "href")
			links = append(links, address)
		}
	}
	leads := func(link string) bool {
		u, err := url.Parse(link)
		return err == nil && u.Path == "./key" && u.Query().Get("type") == "order_paid" && u.Query().Get("id") == id
	}
	if !slices.ContainsFunc(links, leads) {
		t.Errorf("search for %q: %d, leads to %q", shown(query), got.StatusCode, links)
	}
}

// TestIdent: what the eye can be misled by has its bytes beside it.
func TestIdent(t *testing.T) {
	for s, want := range map[string]string{
		"20260314000123": "", "a b": "", "a  b": "61 20 20 62", "a ": "61 20", "é": "c3 a9", "\x00": "00", "~": "", "\x7f": "7f",
	} {
		if got := newIdent(s).Hex; got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	if id := newIdent(strings.Repeat("\n", 500)); !id.Cut || len(id.Hex) != 3*maxHex-1 || id.Length != 500 {
		t.Errorf("%+v", id)
	}
}
