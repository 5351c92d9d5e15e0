package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/flow"
)

// broom is a janitor that does as told and keeps what it was asked for.
type broom struct {
	tasks     []CleanupTask
	runs      []CleanupRun
	replanned []string
	stopped   [][2]string
	fails     error
}

func (b *broom) Tasks() []CleanupTask { return b.tasks }
func (b *broom) Runs(limit int) []CleanupRun {
	return b.runs[:min(limit, len(b.runs))]
}
func (b *broom) Replan(_ context.Context, task string) error {
	b.replanned = append(b.replanned, task)
	return b.fails
}
func (b *broom) Stop(task, who string) error {
	b.stopped = append(b.stopped, [2]string{task, who})
	return b.fails
}

// busyBroom has a task in every state, and a past.
func busyBroom() *broom {
	now := time.Now()
	b := &broom{}
	plan := func() *CleanupPlan {
		return &CleanupPlan{
			Made: now.Add(-20 * time.Minute), Cutoff: now.Add(-7 * 24 * time.Hour), Rows: 2_100_000, Candidates: 2_000_000, Processing: 12, Batches: 1050,
			Kept: []CleanupKept{{"too_young", flow.T("changed too recently", "变更时间未超过保留期"), 90_000}, {"processing", flow.T("in processing: a person decides", "处理中：需人工判断"), 12}},
			Tables: []CleanupTable{
				{Name: "shop.idempotent_record_00", Archive: "shop.old_00", Candidates: 2_000_000, Sized: true, Data: 123_456_789_012, Index: 4_500_000, Free: 999, SQL: []string{"DELETE FROM `shop`.`idempotent_record_00` WHERE `id` > 0 AND `id` <= 9 AND `status` IN (2)"}},
				{Name: "shop.we`ird<b>\u202e", Candidates: 0},
			},
			Forecast: CleanupForecast{PerDay: new(300_000.0), PerSecond: new(10.0), Takes: new(48 * time.Hour), PerWindow: new(int64(108_000)), BinlogBytes: new(int64(4e8)), Behind: true,
				Notes: []flow.Text{flow.T("about 300000 rows a day reach the cutoff in the next days (estimated)", "未来几天每天约有 300000 行到达截止时间（估算）"),
					flow.T("FALLS BEHIND: one window takes about 108000 rows, and about 300000 become old each day", "落后：一个窗口约能移除 108000 行，而每天约有 300000 行到期")}},
		}
	}
	add := func(name, state string, why flow.Text, change func(*CleanupTask)) {
		t := CleanupTask{Name: name, Ledger: "orders", Action: "archive", Server: "main", Tables: []string{"shop.idempotent_record"}, Retain: 168 * time.Hour, State: state, Why: why,
			Enabled: true, Opens: now.Add(4*time.Hour + 30*time.Second), Closes: now.Add(7*time.Hour + 30*time.Second)}
		if change != nil {
			change(&t)
		}
		b.tasks = append(b.tasks, t)
	}
	add("orders", "running", flow.Text{}, func(t *CleanupTask) {
		t.Opens, t.Closes, t.Plan = now.Add(-time.Hour), now.Add(2*time.Hour), plan()
		t.Run = &CleanupProgress{Began: now.Add(-time.Hour), By: "schedule", Table: "shop.idempotent_record_00", Number: 1, Tables: 2, Rows: 500_000, Planned: 2_000_000, Share: 0.2512, PerSecond: 138.8, Left: 3 * time.Hour}
	})
	add("points", "throttled", flow.T("the replica r1 is 1 min 30 s behind; the limit is 10 s", "从库 r1 落后 1 分 30 秒，上限为 10 秒"), func(t *CleanupTask) {
		t.StopFile = "/var/lib/stop"
		t.Run = &CleanupProgress{Began: now, By: "command", Table: "shop.points", Number: 1, Tables: 1, Hold: "replica_lag"}
	})
	add("signs", "waiting_for_window", flow.Text{}, nil)
	add("done", "idle", flow.Text{}, func(t *CleanupTask) {
		t.Opens, t.Closes = now.Add(-time.Hour), now.Add(2*time.Hour) // in its window, and done with it
		t.Plan = &CleanupPlan{Made: now, Cutoff: now, Exact: true}
	})
	add("byhand", "not_enabled", flow.Text{}, func(t *CleanupTask) {
		t.Enabled, t.Opens, t.Closes, t.Action = false, time.Time{}, time.Time{}, "delete"
	})
	add("halted", "stopped", flow.T("<i>wang</i> stopped it for this window", "<i>wang</i> 已停止本次窗口的运行"), nil)
	add("refused", "refused", flow.T("the server mysql.main is read-only", "服务器 mysql.main 为只读"), func(t *CleanupTask) {
		t.Plan = &CleanupPlan{Made: now, Checks: []CleanupCheck{
			{"read_only", "refused", flow.T("REFUSED", "拒绝执行"), flow.T("the server mysql.main is read-only", "服务器 mysql.main 为只读")},
			{"dead_letters", "allowed", flow.T("allowed", "已放行"), flow.T("the queue <script> holds 3 dead letters", "队列 <script> 中有 3 条死信")},
		}, Refusals: []CleanupRefusal{{"read_only", flow.T("the server mysql.main is read-only", "服务器 mysql.main 为只读")}}, Unread: flow.T("connection refused", "连接被拒绝")}
	})
	add("broken", "failed", flow.T("disk full", "磁盘已满"), nil)
	for i, end := range []string{"done", "window", "stopped", "refused", "failed", "throttled", "rows", "run_time", "lease_taken", "unreadable", "stop_file", "new_end", "critical"} {
		run := CleanupRun{Task: "orders", Table: "shop.idempotent_record_00", Began: now.Add(-time.Duration(i+1) * 26 * time.Hour), Rows: int64(i) * 12345, Batches: i, End: end, By: []string{"schedule", "command"}[i%2], Cutoff: now}
		run.Ended = run.Began.Add(time.Duration(i+1) * 20 * time.Minute)
		if end != "done" {
			run.Why = flow.T("because of <b>this</b>", "原因<b>如此</b>")
		}
		if end == "refused" {
			run.Table, run.Cutoff = "", time.Time{}
		}
		b.runs = append(b.runs, run)
	}
	return b
}

func cleanupShop(t testing.TB, b Cleanup) Options {
	t.Helper()
	o := findingsShop(t, shopFindings(t))
	o.Cleanup = b
	return o
}

func TestCleanupRoutes(t *testing.T) {
	server, off := serve(t, cleanupShop(t, busyBroom())), serve(t, shop(t))
	const page, api = "text/html; charset=utf-8", "application/json; charset=utf-8"
	for path, kind := range map[string]string{"/cleanup": page, "/api/v1/cleanup": api} {
		for _, c := range []struct {
			address, method string
			status          int
		}{{server.URL, "GET", 200}, {server.URL, "HEAD", 200}, {server.URL, "POST", 405}, {off.URL, "GET", 404}} {
			got := ask(t, c.method, c.address+path)
			if got.StatusCode != c.status || got.Header.Get("Content-Type") != kind {
				t.Errorf("%s %s: %d %q, want %d", c.method, path, got.StatusCode, got.Header.Get("Content-Type"), c.status)
			}
			checkHeaders(t, got, "no-store")
		}
	}
	if got := get(t, server.URL+"/cleanup/stop"); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET /cleanup/stop: %d", got.StatusCode)
	}
	if home := get(t, server.URL+"/?lang=zh"); !strings.Contains(home.body, `href="./cleanup?lang=zh"`) {
		t.Error("no page leads to the cleanup")
	}
	if home := get(t, off.URL+"/"); strings.Contains(home.body, "cleanup") {
		t.Error("a page leads to a cleanup that is not there")
	}
}

func TestTheCleanupPageTellsWhereEachTaskStands(t *testing.T) {
	b := busyBroom()
	server := serve(t, cleanupShop(t, b))
	got := get(t, server.URL+"/cleanup?lang=en")
	text := strings.ReplaceAll(got.document(t).words(), "\u00a0", " ")
	for _, want := range []string{
		"25 % 500,000 of about 2,000,000 rows · 139 rows/s · about 3 h left", "the replica r1 is 1 min 30 s behind", "waits for its window", "open in 4 h", "for 3 h", "open now, for another 1 h 59 min",
		"done for this window", "not enabled", "stopped it for this window", "refuses to run", "the server mysql.main is read-only read_only", "connection refused",
		"the last run failed", "disk full", "about 2,000,000 rows go, of about 2,100,000", "Falls behind", "FALLS BEHIND", "12 in processing: a person decides · See the findings", "123 GB of data, 4.5 MB of indexes, 999 B free inside the file",
		"The server does not tell its size.", "The table's file does not shrink", "OPTIMIZE TABLE `shop`.`idempotent_record_00`;", "`shop`.`we``ird<b>", "the window closed", "because of <b>this</b>", "command line", "new_end",
		"ended at a critical limit", "What was checked", "allowed: the queue <script> holds 3 dead letters dead_letters",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, hostile := range []string{"<i>wang", "<b>this", "<script>", "ird<b>"} {
		if strings.Contains(got.body, hostile) {
			t.Errorf("%q is in the page as it is", hostile)
		}
	}
	if !strings.Contains(got.body, `href="./findings?lang=en&amp;verdict=stuck"`) || strings.Contains(got.body, "cleanup/stop") {
		t.Error("the findings are not linked, or a stranger gets the button")
	}
	if len(b.replanned)+len(b.stopped) > 0 {
		t.Errorf("a view asked for %v %v", b.replanned, b.stopped)
	}
	empty := get(t, serve(t, cleanupShop(t, &broom{})).URL+"/cleanup?lang=zh").document(t).words()
	if !strings.Contains(empty, "没有配置清理任务。") || !strings.Contains(empty, "尚未运行过。") {
		t.Error(empty)
	}
}

func TestTheCleanupIsTheSameInJSON(t *testing.T) {
	server := serve(t, cleanupShop(t, busyBroom()))
	got := get(t, server.URL+"/api/v1/cleanup?lang=zh")
	var all struct {
		Tasks   []CleanupTaskJSON
		History []CleanupRunJSON
	}
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	first, waiting := all.Tasks[0], all.Tasks[2]
	if len(all.Tasks) != 8 || len(all.History) != 13 || first.State != "running" || first.Run.Rows != 500_000 || *first.Run.SecondsLeft != 10800 || !first.Plan.Behind || first.Plan.Kept["processing"] != 12 ||
		first.Plan.Processing != 12 || *first.Plan.Tables[0].Free != 999 || first.Plan.Tables[1].Free != nil || *first.Plan.Binlog != 4e8 || waiting.Plan != nil || waiting.Run != nil || all.Tasks[4].Opens != nil {
		t.Errorf("%+v %+v", first, first.Plan)
	}
	if held := all.Tasks[1]; held.Run.HeldUpBy != "replica_lag" || held.Why != "从库 r1 落后 1 分 30 秒，上限为 10 秒" || held.Run.SecondsLeft != nil {
		t.Errorf("%+v", held)
	}
	if checks := all.Tasks[6].Plan.Checks; len(checks) != 2 || checks[1] != (CleanupCheckJSON{"dead_letters", "allowed", "队列 <script> 中有 3 条死信"}) || len(first.Plan.Checks) != 0 {
		t.Errorf("%+v", checks)
	}
	if refused := all.History[3]; refused.Cutoff != nil || refused.End != "refused" || refused.Why == "" {
		t.Errorf("%+v", refused)
	}
}

// sweeping is a guarded console with a janitor.
func sweeping(t *testing.T, b *broom, actions bool) (http.Handler, *kept) {
	t.Helper()
	return guarded(t, func(_ *access.Options, o *Options) { o.Cleanup, o.Actions = b, actions })
}

// tokenOn returns the token of the first form that changes something on a page, as somebody sees it.
func tokenOn(h http.Handler, who, path string) string {
	_, rest, _ := strings.Cut(call(h, who, "GET", path, nil).Body.String(), `name="form_token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

func TestOnlyOperatorsStopACleanup(t *testing.T) {
	for _, c := range []struct {
		name    string
		who     string
		actions bool
		task    string
		site    string
		fails   error
		status  int
	}{
		{"an operator", "alice", true, "orders", "same-origin", nil, http.StatusSeeOther},
		{"a viewer", "bob", true, "orders", "same-origin", nil, http.StatusForbidden},
		{"nobody", "", true, "orders", "", nil, http.StatusUnauthorized},
		{"without actions", "alice", false, "orders", "", nil, http.StatusForbidden},
		{"from another site", "alice", true, "orders", "cross-site", nil, http.StatusForbidden},
		{"an unknown task", "alice", true, "nothing", "", nil, http.StatusBadRequest},
		{"no stop file", "alice", true, "orders", "", errors.New("disk full"), http.StatusInternalServerError},
	} {
		b := busyBroom()
		b.fails = c.fails
		h, _ := sweeping(t, b, c.actions)
		var headers []string
		if c.site != "" {
			headers = []string{"Sec-Fetch-Site", c.site}
		}
		got := call(h, c.who, "POST", "/cleanup/stop?lang=zh", url.Values{"task": {c.task}, "form_token": {tokenOn(h, "alice", "/cleanup")}}, headers...)
		asked := c.status == http.StatusSeeOther || c.fails != nil
		if got.Code != c.status || asked != (len(b.stopped) == 1) || asked && b.stopped[0] != [2]string{"orders", "alice"} {
			t.Errorf("%s: %d, stopped %v", c.name, got.Code, b.stopped)
		}
		if c.status == http.StatusSeeOther && got.Header().Get("Location") != "../cleanup?lang=zh" {
			t.Errorf("leads to %q", got.Header().Get("Location"))
		}
	}
	h, _ := sweeping(t, busyBroom(), true)
	page := call(h, "alice", "GET", "/cleanup", nil).Body.String()
	if n := strings.Count(page, `action="./cleanup/stop"`); n != 2 {
		t.Errorf("%d buttons, want those of the two runs", n)
	}
	if !strings.Contains(page, "writes the stop file /var/lib/stop") {
		t.Error("what the button does is not said")
	}
	if page := call(h, "bob", "GET", "/cleanup", nil).Body.String(); strings.Contains(page, "cleanup/stop") {
		t.Error("a viewer gets the button")
	}
}

func TestAPlanIsMadeAnewOnDemandUnlessItIsYoung(t *testing.T) {
	b := busyBroom()
	server := serve(t, cleanupShop(t, b))
	for _, c := range []struct {
		task   string
		status int
		asked  bool
	}{{"orders", 200, true}, {"signs", 200, true}, {"done", 200, false}, {"nothing", 400, false}, {"", 400, false}} {
		b.replanned = nil
		got := get(t, server.URL+"/cleanup?"+url.Values{"plan": {c.task}}.Encode())
		if got.StatusCode != c.status || (len(b.replanned) == 1) != c.asked {
			t.Errorf("%q: %d, %v", c.task, got.StatusCode, b.replanned)
		}
	}
}

func TestTheCleanupPageSpeaksOneLanguage(t *testing.T) {
	server := serve(t, cleanupShop(t, busyBroom()))
	for _, text := range chrome(get(t, server.URL+"/cleanup", "Accept-Language", "en").document(t), "en") {
		if strings.IndexFunc(text, han) >= 0 {
			t.Errorf("%q in the English page", text)
		}
	}
	allowed := append([]string{"janitor", "run", "mysql", "main", "kB", "MB", "GB", "exact", "plan", "enabled", "false", "read", "only", "read_only", "wang", "r1", "new", "end", "new_end", "var", "lib", "stop", "orders", "points", "signs", "done", "byhand", "halted", "refused", "broken"}, names...)
	for _, text := range chrome(get(t, server.URL+"/cleanup", "Accept-Language", "zh").document(t), "zh-CN") {
		for _, word := range latin.FindAllString(text, -1) {
			if !slices.Contains(allowed, word) && strings.IndexFunc(text, han) < 0 {
				t.Errorf("%q in the Chinese page: %q", word, text)
			}
		}
	}
	table := reflect.ValueOf(newCleanupWords())
	for i := range table.NumField() {
		name, text := table.Type().Field(i).Name, table.Field(i).Interface().(flow.Text)
		if text.EN == "" || strings.IndexFunc(text.EN, han) >= 0 || strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
}

// TestCleanupPictures loads the page in all looks: full, and without anything.
func TestCleanupPictures(t *testing.T) {
	dir, b := pictures(t), openBrowser(t)
	o := cleanupShop(t, busyBroom())
	o.Actions = true
	full := serve(t, o)
	b.pictures(t, dir, "cleanup", full.URL+"/cleanup?", looks())
	if value := value[float64](t, b, `document.querySelector("progress").value`); value < 25 || value > 26 {
		t.Errorf("the bar stands at %v", value)
	}
	empty := serve(t, cleanupShop(t, &broom{}))
	b.pictures(t, dir, "cleanup-empty", empty.URL+"/cleanup?", looks()[:3])
}
