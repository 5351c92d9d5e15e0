package draft

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// nasty are texts that YAML, a shell or a terminal could trip over.
var nasty = []string{
	`a"b`, `a'b`, "a`b", "a\nb: c", "a\r\n# x", "# no comment", "a # b", "- x", "? y", "a: b", "{x}", "[y]", "*alias", "&anchor", "!tag", "%dir", "@at",
	"${HOME}", "$HOME", "$$", "null", "true", "123", "1e3", "~", "", " lead", "trail ", "tab\there", "\x00nul", "\x1besc", "<script>", "订单", "🎁",
	"\u2028sep", "\u202eright", "\ufeffbom", `\`, `\n`, "|", ">", "...", "---", strings.Repeat("x", 300), "\xff\xfe",
}

// load reads a file with every variable set.
func load(t *testing.T, text []byte) *config.Config {
	t.Helper()
	c, err := config.Parse("idemscope.yaml", text, func(string) (string, bool) { return "set", true }, func(string) ([]byte, error) { return []byte("set"), nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func TestEveryTextComesBackFromTheFile(t *testing.T) {
	for _, s := range nasty {
		if !valid(s) || s == "" {
			continue
		}
		text := fmt.Sprintf("mysql:\n  main: {address: \"h:1\", database: %s, user: u}\nledgers:\n  l: {mysql: main, table: t, preset: idempotent_record}\nflows:\n  f: {biz_types: [x], ledger: l}\n", quoted(s))
		if got := load(t, []byte(text)).MySQL[0].Database; got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	}
}

func FuzzEveryTextComesBackFromTheFile(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !writableType(s) {
			return
		}
		text := fmt.Sprintf("mysql:\n  main: {address: \"h:1\", database: d, user: u}\nledgers:\n  l: {mysql: main, table: t, preset: idempotent_record}\nflows:\n  f:\n    # %s\n    biz_types: [%s]\n    ledger: l\n", comment(s), quoted(s))
		if got := load(t, []byte(text)).Flows[0].BizTypes; len(got) != 1 || got[0] != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

// hostile are facts in which every name is nasty.
func hostile() Facts {
	m := &MySQL{Address: "127.0.0.1:3306", Database: nasty[3], User: nasty[0], Password: Password{Variable: "MYSQL_PASSWORD"}, Problem: flow.T("refused: "+nasty[3], "被拒绝："+nasty[3])}
	b := &Broker{Management: "http://127.0.0.1:15672", Vhost: nasty[7], User: nasty[8], Password: Password{File: "/tmp/a \"b\"\n"}, Found: rabbitmq.Discovery{Complete: true}}
	r := &Redis{Address: "127.0.0.1:6379", User: nasty[0]}
	var keys []flow.Key
	for _, s := range nasty {
		keys = append(keys, flow.Key{BizType: s, BizID: "ID-" + s})
		b.Found.Queues = append(b.Found.Queues, queue(s, s+".dlq"), queue(s+".dlq"))
		r.Sample.Keys = append(r.Sample.Keys, lockstore.SampledKey{Key: "lock:" + s + ":ID-" + s, Type: "string", TTL: time.Second},
			lockstore.SampledKey{Key: s + ":done:" + "ID-" + s, Type: "string", NoTTL: true})
		facts := table(s, recordColumns(commented(s, "tinyint", s+" 1 processing 2 completed")), []string{"biz_type", "biz_id"})
		facts.Columns[3].Name = "status"
		facts.Columns = append(facts.Columns, column(s, "varchar"))
		if l, reason := Recognise(alone(s), facts); l != nil {
			m.Ledgers = append(m.Ledgers, Sampled{Ledger: l, Keys: keys, Types: nasty, Problem: flow.T(s, s)})
		} else {
			m.Ignored = append(m.Ignored, Ignored{s, reason})
		}
		b.Management = "http://127.0.0.1:15672"
	}
	return Facts{MySQL: m, Redis: r, Broker: b}
}

func TestHostileNamesNeverBreakTheFile(t *testing.T) {
	for _, lang := range flow.Languages {
		plan := Draw(hostile())
		text := plan.File(lang)
		c := load(t, text)
		if len(c.Ledgers) < 20 || len(c.Flows) < len(c.Ledgers) {
			t.Errorf("%d ledgers, %d flows", len(c.Ledgers), len(c.Flows))
		}
		for _, f := range c.Flows {
			for _, bizType := range f.BizTypes {
				if !slices.Contains(nasty, bizType) {
					t.Errorf("flow %s has a biz_type that nobody wrote: %q", f.Name, bizType)
				}
			}
			if f.Queue != nil && !slices.Contains(nasty, f.Queue.Name) {
				t.Errorf("flow %s has the queue %q", f.Name, f.Queue.Name)
			}
		}
		var report bytes.Buffer
		plan.Report(&report, lang)
		for _, out := range []string{string(text), report.String()} {
			if strings.ContainsAny(out, "\x00\x1b\r\u202e\u2028\ufeff") || !valid(out) {
				t.Error("an invisible byte is shown as it is")
			}
		}
	}
}

func TestAnUnsureLedgerIsACommentOnly(t *testing.T) {
	facts := table("orders", []ledger.ColumnFacts{column("order_no", "varchar"), column("status", "varchar"), column("created_at", "datetime")}, []string{"order_no"})
	l, reason := Recognise(alone("orders"), facts)
	if l == nil {
		t.Fatal(reason.EN)
	}
	sure, _ := Recognise(alone("idempotent_record"), table("idempotent_record", recordColumns(commented("status", "tinyint", "1 processing 2 completed")), []string{"biz_type", "biz_id"}))
	f := Facts{MySQL: &MySQL{Address: "127.0.0.1:3306", Database: "shop", User: "u", Ledgers: []Sampled{{Ledger: l}, {Ledger: sure}}}}
	text := Draw(f).File(flow.English)
	if c := load(t, text); len(c.Ledgers) != 1 || c.Ledgers[0].Table != "idempotent_record" || !c.Flows[0].Rest {
		t.Errorf("%+v", c.Ledgers)
	}
	if !strings.Contains(string(text), "#     preset: state_machine") {
		t.Errorf("the unsure ledger is not shown:\n%s", text)
	}
	// Without its marks the comment is configuration.
	uncommented := strings.Replace(string(text), "\n#   orders:", "\n  orders:", 1)
	for _, line := range []string{"mysql: main", `table: "orders"`, "preset: state_machine", `biz_type: "orders"`, "columns:"} {
		uncommented = strings.Replace(uncommented, "\n#     "+line, "\n    "+line, 1)
	}
	if c := load(t, []byte(uncommented)); len(c.Ledgers) != 2 {
		t.Errorf("%d ledgers", len(c.Ledgers))
	}
}

func TestStoresThatNobodyNamedStandInTheFileAsComments(t *testing.T) {
	for name, f := range map[string]Facts{
		"none":      {},
		"redis":     {Redis: &Redis{Address: "127.0.0.1:6379"}},
		"a problem": {MySQL: &MySQL{Address: "127.0.0.1:3306", Database: "shop", User: "u", Problem: flow.T("connection refused", "连接被拒绝")}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Draw(f)
			text := string(plan.File(flow.English))
			if plan.Complete() || plan.Usable() || !strings.Contains(text, "Not complete") || !strings.Contains(text, "not looked at") {
				t.Errorf("complete %v\n%s", plan.Complete(), text)
			}
			if !f.problem().Empty() && !strings.Contains(text, f.problem().EN) {
				t.Error("the problem is not told")
			}
		})
	}
}

func (f Facts) problem() flow.Text {
	if f.MySQL == nil {
		return flow.Text{}
	}
	return f.MySQL.Problem
}

func TestTheZoneIsTheServersUnlessRowsWouldLieInTheFuture(t *testing.T) {
	const hour, minute = time.Hour, time.Minute
	for name, c := range map[string]struct {
		minutes int
		known   bool
		ahead   []time.Duration
		want    string
	}{
		"utc":                        {0, true, []time.Duration{-minute, -2 * minute}, "+00:00"},
		"the server's":               {480, true, []time.Duration{8*hour - minute}, "+08:00"},
		"west":                       {-210, true, nil, "-03:30"},
		"an application in Shanghai": {0, true, []time.Duration{8*hour - 3*minute, 8*hour - 2*minute, 8*hour - minute}, "+08:00"},
		"clocks that differ":         {0, true, []time.Duration{2 * minute}, "+00:00"},
		"one clock ahead":            {0, true, []time.Duration{-hour, -hour, 8 * hour}, "+00:00"},
		"years ahead":                {0, true, []time.Duration{5 * 365 * 24 * hour}, "+00:00"},
		"quiet for hours":            {0, true, []time.Duration{-5 * hour}, "+00:00"},
		"not told":                   {0, false, nil, "+00:00"},
		"not told, and ahead":        {0, false, []time.Duration{345 * minute}, "+05:45"},
	} {
		m := &MySQL{ZoneMinutes: c.minutes, ZoneKnown: c.known, Ahead: c.ahead}
		if got := m.zone(); got.text != c.want || got.why.Empty() && got.doubts.Empty() {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
