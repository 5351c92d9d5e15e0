package console

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// wave makes a line of n points with two gaps; scale 0 is a line of zeros.
func wave(n int, scale float64) answer.Line {
	l := answer.Line{Points: make([]float64, n), Now: scale}
	for i := range l.Points {
		l.Points[i] = math.Round(scale * (1 + math.Sin(float64(i)/9)))
		if i < n/5 || i > n/2 && i < n/2+12 {
			l.Points[i] = math.NaN()
		}
	}
	return l
}

func unknownLine(why flow.Text) answer.Line {
	l := answer.Line{Points: make([]float64, 360), Now: math.NaN(), Why: why}
	for i := range l.Points {
		l.Points[i] = math.NaN()
	}
	return l
}

// shopFigures has a flow with everything, one whose lock is too short, one that nobody counts, and one without a word.
func shopFigures() answer.Figures {
	durations := wave(360, 400)
	for i := range durations.Points {
		durations.Points[i] /= 100
	}
	busy := answer.FigureSet{
		Conflicts: wave(360, 1200), DedupStatus: wave(360, 40), DedupRecord: wave(360, 3), Retries: wave(360, 0), P99: durations, Stale: wave(360, 2),
		P99Hour: answer.Quantile{Runs: 12345, Seconds: 7.9}, RetriesBy: answer.ByConsumers, P99By: answer.ByConsumers,
	}
	nobody := unknownLine(flow.T("consumers do not count: the configuration has no counters", "消费者未计数：配置中没有 counters"))
	quiet := answer.FigureSet{
		Conflicts: nobody, DedupStatus: nobody, DedupRecord: nobody, Retries: wave(360, 1), P99: unknownLine(flow.Text{}), Stale: wave(360, 0),
		P99Hour: answer.Quantile{Runs: 17, Seconds: 300, Beyond: true}, RetriesBy: answer.ByLedger, P99By: answer.ByLedger,
	}
	dark := unknownLine(flow.T("the ledger signs cannot be read", "无法读取记录表 signs"))
	return answer.Figures{
		At: readAt, Last: readAt.Add(-20 * time.Second), Step: time.Minute,
		Flows: []answer.FlowFigures{
			{Flow: "payments", FigureSet: busy, Backlog: wave(360, 3_000_000), Shared: true,
				Queues: []answer.QueueFigures{
					{Broker: "rabbit", Name: "order.paid", Role: "work", Known: true, Ready: 5_999_999, Unacked: 1, Consumer: 4},
					{Broker: "rabbit", Name: "order.paid.retry", Role: "retry", Why: flow.T("the broker rabbit cannot be read", "无法读取消息代理 rabbit")},
				},
				Types: []answer.TypeFigures{{BizType: "order_paid", FigureSet: busy}, {BizType: "<b>refund</b>\u202e", FigureSet: quiet}}},
			{Flow: "points", FigureSet: quiet, Backlog: unknownLine(flow.T("the flow names no queue", "该流程没有配置队列")), Unswept: true},
			{Flow: "signs", FigureSet: answer.FigureSet{Conflicts: nobody, DedupStatus: nobody, DedupRecord: nobody, Retries: dark, P99: dark, Stale: dark, RetriesBy: answer.ByLedger, P99By: answer.ByLedger},
				Backlog: unknownLine(flow.T("the flow names no queue", "该流程没有配置队列"))},
		},
		Undeclared: []answer.UndeclaredType{
			{BizType: "gift<script>alert(1)</script>", Ledger: "orders", Open: 12, OpenKnown: true}, {BizType: "card\u202e", Ledger: "orders"}, {BizType: "coupon"},
		},
	}
}

func flowsShop(t testing.TB, figures answer.Figures) Options {
	t.Helper()
	o := doctorShop(t, shopReport())
	o.Flows = slices.Clone(o.Flows)
	o.Flows[0].KeyRule = "biz_type: the event's name <script>alert(1)</script>\nbiz_id: the order number, the same in every retry"
	o.Figures, o.Grafana = func() answer.Figures { return figures }, "https://grafana.example.com"
	return o
}

func TestFlowRoutes(t *testing.T) {
	server, off := serve(t, flowsShop(t, shopFigures())), serve(t, shop(t))
	const page, api = "text/html; charset=utf-8", "application/json; charset=utf-8"
	for _, prefix := range []string{"/flows", "/api/v1/flows"} {
		kind := map[bool]string{true: api, false: page}[strings.HasPrefix(prefix, "/api")]
		for _, c := range []struct {
			address, method, path string
			status                int
		}{
			{server.URL, "GET", "", 200}, {server.URL, "HEAD", "", 200}, {server.URL, "POST", "", 405}, {server.URL, "GET", "/payments", 200}, {server.URL, "HEAD", "/points", 200},
			{server.URL, "POST", "/payments", 405}, {server.URL, "GET", "/nobody", 404}, {server.URL, "GET", "/%3Cb%3E", 404}, {off.URL, "GET", "", 404}, {off.URL, "GET", "/payments", 404},
		} {
			got := ask(t, c.method, c.address+prefix+c.path)
			if got.StatusCode != c.status || got.Header.Get("Content-Type") != kind {
				t.Errorf("%s %s%s: %d %q, want %d", c.method, prefix, c.path, got.StatusCode, got.Header.Get("Content-Type"), c.status)
			}
			checkHeaders(t, got, "no-store")
		}
	}
	if home := get(t, server.URL+"/?lang=zh"); !strings.Contains(home.body, `href="./flows?lang=zh"`) {
		t.Error("no page leads to the flows")
	}
	if home := get(t, off.URL+"/"); strings.Contains(home.body, `"./flows"`) {
		t.Error("a page leads to figures that are not there")
	}
}

func flowsAsJSON(t *testing.T, address string) (j flowsJSON) {
	t.Helper()
	got := get(t, address)
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%d %v %s", got.StatusCode, err, got.body)
	}
	return j
}

// TestFlowsAreTheSameInJSON: what is not known is null there, and never 0.
func TestFlowsAreTheSameInJSON(t *testing.T) {
	server := serve(t, flowsShop(t, shopFigures()))
	j := flowsAsJSON(t, server.URL+"/api/v1/flows?lang=zh")
	if len(j.Flows) != 4 || len(j.Undeclared) != 3 || j.StepSeconds != 60 || j.LastPoint == nil {
		t.Fatalf("%+v", j)
	}
	busy, quiet, silent := j.Flows[0], j.Flows[1], j.Flows[3]
	if busy.Figures.Conflicts.Value == nil || len(busy.Figures.Conflicts.Points) != 60 || *busy.LockTTL != 15 || math.Abs(*busy.P99OfTTL-7.9/15) > 1e-9 || !strings.Contains(busy.KeyRule, "<script>") || !busy.Shared {
		t.Errorf("%+v", busy)
	}
	if f := quiet.Figures; f.Conflicts.Value != nil || f.Conflicts.Why != "消费者未计数：配置中没有 counters" || f.Conflicts.Points[0] != nil || f.P99By != answer.ByLedger || !f.P99Beyond || quiet.StaleIncludes == "" {
		t.Errorf("%+v", f)
	}
	if silent.Figures != nil || silent.Remarks == nil {
		t.Errorf("a flow of which nothing is known: %+v", silent)
	}
	if len(busy.Remarks) == 0 || busy.Remarks[0].Subject.Name == "main" {
		t.Errorf("remarks: %+v", busy.Remarks)
	}
	if q := busy.Queues; *q[0].Ready != 5_999_999 || q[1].Ready != nil || q[1].Why == "" {
		t.Errorf("%+v", q)
	}
	one := flowsAsJSON(t, server.URL+"/api/v1/flows/payments")
	if len(one.Flows) != 1 || len(one.Flows[0].Figures.P99.Points) != 360 || one.Flows[0].Figures.Conflicts.KnownPoints != 277 || *one.Flows[0].Figures.Conflicts.Value != *busy.Figures.Conflicts.Value {
		t.Errorf("%+v", one.Flows[0].Figures.Conflicts.KnownPoints)
	}
}

func TestFlowPagesSayWhatIsKnown(t *testing.T) {
	server := serve(t, flowsShop(t, shopFigures()))
	list := get(t, server.URL+"/flows?lang=en")
	one := get(t, server.URL+"/flows/payments?lang=en")
	quiet := get(t, server.URL+"/flows/points?lang=en")
	for _, r := range []reply{list, one, quiet, get(t, server.URL+"/flows/mirror"), get(t, server.URL+"/flows/signs?lang=zh")} {
		r.document(t)
		for _, hostile := range []string{"<script>alert", "\u202e", "<b>refund"} {
			if strings.Contains(r.body, hostile) {
				t.Errorf("%q is in the page as it is", hostile)
			}
		}
	}
	for _, c := range []struct {
		page reply
		want []string
	}{
		{list, []string{"P99 is 53 % of the lock's TTL. That leaves little to spare.", "consumers do not count: the configuration has no counters", "no record; consumers count it",
			"the ledger signs cannot be read", "of 12,345 runs in the last hour", "7.9 s", "P99 is over 150 times the lock's TTL. The lock expires before such a run ends."}},
		{one, []string{"biz_id: the order number", "&lt;script&gt;", "5999999", "the broker rabbit cannot be read", "idem_lock:{biz_type}:{biz_id}", "Another flow has a biz_type"}},
		{quiet, []string{"Not declared. Write it under flows.points.key_rule.", "over 5 min", "records older than exporter.lookback", "of 17 records, from created to completed"}},
	} {
		text := strings.ReplaceAll(c.page.document(t).words(), "\u00a0", " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) && !strings.Contains(c.page.body, want) {
				t.Errorf("%q is missing", want)
			}
		}
	}
	for page, want := range map[*reply]string{&list: "https://grafana.example.com/d/idemscope-overview", &one: "https://grafana.example.com/d/idemscope-flow?var-flow=payments"} {
		if !strings.Contains(page.body, `href="`+want+`" rel="noreferrer"`) {
			t.Errorf("no link to %s", want)
		}
	}
	if choice := get(t, server.URL+"/flows/nobody").document(t).one(t, "ul", "choices"); !strings.Contains(choice.words(), "payments") {
		t.Error("the known flows are not named")
	}
}

func TestFlowPagesSpeakOneLanguage(t *testing.T) {
	server := serve(t, flowsShop(t, shopFigures()))
	own := append([]string{"P99", "Grafana", "counters", "lookback", "exporter", "rabbit", "signs", "points", "payments", "mirror", "biz", "types", "flows", "key", "rule", "lock", "ttl", "on", "processing", "rerun"}, names...)
	for _, path := range []string{"/flows", "/flows/payments", "/flows/points", "/flows/signs", "/flows/mirror"} {
		for _, text := range chrome(get(t, server.URL+path, "Accept-Language", "zh").document(t), "zh-CN") {
			for _, word := range latin.FindAllString(text, -1) {
				if !slices.Contains(own, word) && strings.IndexFunc(text, han) < 0 {
					t.Errorf("%s: %q in the Chinese page: %q", path, word, text)
				}
			}
		}
		for _, text := range chrome(get(t, server.URL+path, "Accept-Language", "en").document(t), "en") {
			if strings.IndexFunc(text, han) >= 0 {
				t.Errorf("%s: %q in the English page", path, text)
			}
		}
	}
	table := reflect.ValueOf(newFlowWords())
	for i := range table.NumField() {
		name, text := table.Type().Field(i).Name, table.Field(i).Interface().(flow.Text)
		if text.EN == "" || strings.IndexFunc(text.EN, han) >= 0 || strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
}

func TestTheLockIsComparedWithThePercentile(t *testing.T) {
	lock := func(ttl time.Duration, renewed bool) flow.Flow {
		return flow.Flow{Name: "payments", Lock: &flow.RedisKey{TTL: ttl, Renewed: renewed}}
	}
	runs := func(seconds float64) answer.FigureSet {
		return answer.FigureSet{P99Hour: answer.Quantile{Runs: 1, Seconds: seconds}, P99By: answer.ByConsumers}
	}
	for _, c := range []struct {
		flow flow.Flow
		set  answer.FigureSet
		tone string
		says string
		bars int
	}{
		{lock(10*time.Second, false), runs(0.05), "ok", "less than 1 % of the", 2},
		{lock(10*time.Second, false), runs(4.99), "ok", "50 %", 2},
		{lock(10*time.Second, false), runs(5), "warning", "50 %", 2},
		{lock(10*time.Second, false), runs(10), "critical", "100 %", 2},
		{lock(10*time.Second, true), runs(100), "info", "watchdog", 0},
		{lock(0, false), runs(1), "unknown", "flows.payments.lock.ttl", 0},
		{lock(10*time.Second, false), answer.FigureSet{}, "unknown", "no run ended", 0},
		{flow.Flow{}, runs(1), "info", "no lock", 0},
	} {
		got := newLockView(c.flow, c.set)
		if got.Tone != c.tone || len(got.Bars) != c.bars || !strings.Contains(got.Sentence.EN, c.says) || got.Sentence.ZH == "" {
			t.Errorf("%+v, want %s with %q", got, c.tone, c.says)
		}
	}
}

func TestChartsShowGapsAsGaps(t *testing.T) {
	nan := math.NaN()
	c := newChart(flow.T("Retries", "重试"), answer.Line{Points: []float64{nan, 2, nan, 4, 1, nan}}, time.Minute, countText)
	if c.Line != "M75 30h0.01M175 3L225 43.5" || len(c.Gaps) != 3 || c.Gaps[0] != (gap{"0", "50"}) || c.Max.EN != "4" || c.Last.EN != "1" {
		t.Errorf("%+v", c)
	}
	if strings.Count(c.Area, "Z") != 2 || !strings.Contains(c.Desc.EN, "Known for 3 of 6 points") || !strings.Contains(c.Desc.ZH, "6 个点中 3 个有数据") {
		t.Errorf("%q %+v", c.Area, c.Desc)
	}
	for _, points := range [][]float64{nil, {nan}, {nan, nan}} {
		if c := newChart(flow.Text{}, answer.Line{Points: points}, time.Minute, countText); c.Line != "" || len(c.Gaps) != 1 || !c.Max.Empty() {
			t.Errorf("of nothing: %+v", c)
		}
	}
	if c := newChart(flow.Text{}, answer.Line{Points: []float64{0, 0}}, time.Minute, countText); c.Line != "M75 57L225 57" {
		t.Errorf("zeros lie on the ground: %s", c.Line)
	}
	if got := shortCount(5_443_411); got != flow.T("5.44 M", "544 万") {
		t.Errorf("%+v", got)
	}
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := countText(v).EN; got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
}

// TestFlowLinksKeepThePathPrefix: a flow's page lies one level deeper.
func TestFlowLinksKeepThePathPrefix(t *testing.T) {
	server := serve(t, flowsShop(t, shopFigures()))
	page := get(t, server.URL+"/flows/payments?lang=zh").document(t)
	for _, link := range page.all("a", "") {
		address, _ := attribute(link.Node, "href")
		if hasClass(link.Node, "language") || strings.HasPrefix(address, "#") || strings.HasPrefix(address, "?") || strings.HasPrefix(address, "https://") {
			continue
		}
		if u, err := url.Parse(address); err != nil || !strings.HasPrefix(u.Path, "../") || u.Query().Get("lang") != "zh" {
			t.Errorf("link %s", address)
		}
	}
}

// TestFlowPictures loads the pages of flows in all looks: full, and with nothing known.
func TestFlowPictures(t *testing.T) {
	dir, b := pictures(t), openBrowser(t)
	full := serve(t, flowsShop(t, shopFigures()))
	b.pictures(t, dir, "flows", full.URL+"/flows?", looks())
	b.pictures(t, dir, "flow", full.URL+"/flows/payments?", looks())
	b.pictures(t, dir, "flow-quiet", full.URL+"/flows/points?", looks()[:3])
	empty := serve(t, flowsShop(t, answer.Figures{At: readAt, Step: time.Minute}))
	b.pictures(t, dir, "flows-empty", empty.URL+"/flows?", looks()[:3])
	b.pictures(t, dir, "flow-empty", empty.URL+"/flows/signs?", looks()[:3])
	if drawn := value[int](t, b, `document.querySelectorAll("svg path").length`); drawn == 0 {
		t.Error("no icon is drawn")
	}
}
