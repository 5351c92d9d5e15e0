package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"idemscope/internal/answer"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/lab"
	"idemscope/internal/testkit"
	"idemscope/internal/verdict"
)

// unfindable are verdicts of samples that no store shows unless somebody asks
// for the very id, with the reason.
var unfindable = map[string]string{
	"key_ambiguous": "the stores hold the other spelling only",
	"maybe_waiting": "the id stands in a message, and messages are not read",
}

// checkFindings compares the prepared samples with what the collector found by
// itself: in the API, on the page, in the metrics and on the command line.
func (s product) checkFindings(t *testing.T) {
	wanted, healthy := s.sortSamples(t)
	var list answer.FindingsJSON
	var missing []string
	testkit.Eventually(t, 2*time.Minute, func() bool {
		list = answer.FindingsJSON{}
		getJSON(t, s.url+"/api/v1/findings?limit=1000", &list)
		missing = lacking(list, wanted)
		return len(missing) == 0 && list.Pending == 0
	}, "not found: %q", &missing)
	for _, sample := range healthy {
		if i := indexOf(list, sample); i >= 0 {
			t.Errorf("%s %q is on the list as %s", sample.BizType, sample.BizID, list.Findings[i].Verdict.Code)
		}
	}
	page := get(t, s.url+"/findings?lang=zh&limit=1000")
	counts := map[string]int{}
	for _, sample := range wanted {
		link := url.Values{"type": {sample.BizType}, "id": {sample.BizID}, "lang": {"zh"}}.Encode()
		if !strings.Contains(page, strings.ReplaceAll(link, "&", "&amp;")) {
			t.Errorf("the page has no link to %s", link)
		}
		counts[fmt.Sprintf(`idem_findings{biz_type=%q,flow=%q,layer=%q,verdict=%q} `, sample.BizType, sample.Flow, sample.Layer, sample.Verdict)]++
	}
	metrics := get(t, s.url+"/metrics")
	for series, n := range counts {
		_, rest, _ := strings.Cut(metrics, "\n"+series)
		got := 0
		if _, err := fmt.Sscan(rest, &got); err != nil || got < n {
			t.Errorf("%s is %d, want %d or more: %v", series, got, n, err)
		}
	}
	s.checkFindingsCommand(t, wanted)
}

// sortSamples asks for each sample and tells those that are findings from the others.
func (s product) sortSamples(t *testing.T) (wanted, healthy []lab.Sample) {
	t.Helper()
	for _, sample := range s.lab.Samples() {
		var a answer.JSON
		getJSON(t, s.url+"/api/v1/lookup?"+url.Values{"type": {sample.BizType}, "id": {sample.BizID}, "flow": {sample.Flow}}.Encode(), &a)
		finding := slices.Contains([]verdict.Severity{verdict.Warning, verdict.Critical, verdict.Unsure}, a.Verdict.Severity)
		switch {
		case !finding:
			healthy = append(healthy, sample)
		case unfindable[sample.Verdict] == "":
			wanted = append(wanted, sample)
		}
	}
	if len(wanted) < 9 || len(healthy) < 9 {
		t.Fatalf("%d samples are findings, %d are healthy", len(wanted), len(healthy))
	}
	return wanted, healthy
}

// checkFindingsCommand: a single run reads the ledgers, not the keys of Redis.
func (s product) checkFindingsCommand(t *testing.T, wanted []lab.Sample) {
	inLedgers := slices.DeleteFunc(slices.Clone(wanted), func(p lab.Sample) bool {
		var a answer.JSON
		getJSON(t, s.url+"/api/v1/lookup?"+url.Values{"type": {p.BizType}, "id": {p.BizID}, "flow": {p.Flow}}.Encode(), &a)
		return a.Record.State != flow.Found
	})
	exit, out := findingsCommand(t, FindingsOptions{Config: s.config, JSON: true})
	var list answer.FindingsJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	if missing := lacking(list, inLedgers); len(missing) > 0 || exit != 1 {
		t.Errorf("the command line, exit %d, does not find %q", exit, missing)
	}
	if !slices.ContainsFunc(list.Coverage, func(c string) bool { return strings.Contains(c, "Redis is not swept") }) {
		t.Errorf("coverage %q", list.Coverage)
	}
	exit, out = findingsCommand(t, FindingsOptions{Config: s.config, Flow: "legacy", Verdict: "ran_twice"})
	if lines := strings.Split(out, "\n"); exit != 1 || !strings.Contains(lines[0], "RAN_TWICE") || !strings.Contains(lines[0], "CP-2025-0815") || lines[1] != "" {
		t.Errorf("exit %d:\n%s", exit, out)
	}
	if exit, out = findingsCommand(t, FindingsOptions{Config: s.config, Flow: "signs", Language: flow.Chinese}); exit != 0 || !strings.HasPrefix(out, "未发现问题。\n") {
		t.Errorf("exit %d:\n%s", exit, out)
	}
}

func indexOf(list answer.FindingsJSON, s lab.Sample) int {
	return slices.IndexFunc(list.Findings, func(f answer.FindingJSON) bool {
		return f.Flow == s.Flow && f.Key.BizType == s.BizType && f.Key.BizID == s.BizID
	})
}

// lacking names the samples that are not on the list with their verdict.
func lacking(list answer.FindingsJSON, wanted []lab.Sample) (missing []string) {
	for _, sample := range wanted {
		i := indexOf(list, sample)
		if i < 0 || string(list.Findings[i].Verdict.Code) != sample.Verdict || list.Findings[i].Verdict.Layer != sample.Layer {
			missing = append(missing, sample.BizID+" "+sample.Verdict)
		}
	}
	return missing
}

func findingsCommand(t *testing.T, o FindingsOptions) (exit int, out string) {
	t.Helper()
	var text bytes.Buffer
	o.Out, o.Logger = &text, slog.New(slog.NewTextHandler(io.Discard, nil))
	if o.Language == "" {
		o.Language = flow.English
	}
	exit, err := Findings(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return exit, text.String()
}

// patientHouse is a slow house with an old record in processing.
func patientHouse(t *testing.T) (slowHouse, *sqlx.DB) {
	t.Helper()
	h := newSlowHouse(t)
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "listen: 127.0.0.1:0\nexporter: {interval: 1s, findings: {per_second: 50}}\n"...)
	h.config = filepath.Join(t.TempDir(), "patient.yaml")
	if err := os.WriteFile(h.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(h.config)
	if err != nil {
		t.Fatal(err)
	}
	driver := mysql.NewConfig()
	driver.Net, driver.Addr, driver.User, driver.Passwd, driver.DBName = "tcp", c.MySQL[0].Address, c.MySQL[0].User, c.MySQL[0].Password.Reveal(), c.MySQL[0].Database
	db, err := sqlx.Open("mysql", driver.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time)
		VALUES ('<b>ORD-2</b>', 'pay', 1, UTC_TIMESTAMP() - INTERVAL 2 HOUR, UTC_TIMESTAMP() - INTERVAL 1 HOUR)`); err != nil {
		t.Fatal(err)
	}
	return h, db
}

// TestFindingsFollowTheStores serves the list while the stores change: a record
// is stuck, Redis hangs, and somebody mends it.
func TestFindingsFollowTheStores(t *testing.T) {
	h, db := patientHouse(t)
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	ctx, cancel := context.WithCancel(t.Context())
	served, started := make(chan error, 1), make(chan string, 1)
	go func() {
		served <- Serve(ctx, ServeOptions{Config: h.config, Logger: logger, Started: func(url string) { started <- url }})
	}()
	var address string
	select {
	case address = <-started:
	case err := <-served:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	var last []string
	shows := func(want ...string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() bool {
			var list answer.FindingsJSON
			getJSON(t, address+"/api/v1/findings", &list)
			last = nil
			for _, f := range list.Findings {
				last = append(last, fmt.Sprintf("%s %s %s", f.Key.BizID, f.Verdict.Code, f.Verdict.Layer))
				if code := f.Verdict.Code; code != verdict.Stuck && code != verdict.Unknown {
					t.Errorf("%s was shown", code)
				}
			}
			return slices.Equal(last, want)
		}, "want %q, have %q", want, &last)
	}
	shows("<b>ORD-2</b> stuck mysql")
	if exit, out := findingsCommand(t, FindingsOptions{Config: h.config}); exit != 1 || !strings.Contains(out, "<b>ORD-2</b>  1 h") {
		t.Errorf("exit %d:\n%s", exit, out)
	}
	h.redis.Hang(true)
	shows("<b>ORD-2</b> unknown redis")
	if exit, out := findingsCommand(t, FindingsOptions{Config: h.config}); exit != 3 || !strings.Contains(out, "UNKNOWN") {
		t.Errorf("exit %d while Redis hangs:\n%s", exit, out)
	}
	h.redis.Hang(false)
	shows("<b>ORD-2</b> stuck mysql")
	if _, err := db.Exec("UPDATE idempotent_record SET status = 2, update_time = UTC_TIMESTAMP()"); err != nil {
		t.Fatal(err)
	}
	shows()
	if exit, out := findingsCommand(t, FindingsOptions{Config: h.config}); exit != 0 || !strings.HasPrefix(out, "Nothing found.\n") {
		t.Errorf("exit %d:\n%s", exit, out)
	}
	h.mysql.Drop(true)
	if exit, out := findingsCommand(t, FindingsOptions{Config: h.config}); exit != 3 || !strings.Contains(out, "Ledger orders cannot be read at present") {
		t.Errorf("exit %d while MySQL refuses connections:\n%s", exit, out)
	}
}

// TestFindingsRefuseUnknownNames: an empty list for a misspelt name would be a wrong answer.
func TestFindingsRefuseUnknownNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	text := `
mysql: {main: {address: "127.0.0.1:1", database: shop, user: idemscope}}
ledgers: {orders: {mysql: main, table: idempotent_record, preset: idempotent_record}}
flows: {payments: {biz_types: [pay], ledger: orders}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]FindingsOptions{
		`there is no flow "paymnts"; known flows: payments`:       {Flow: "paymnts"},
		`there is no verdict "stukc"; known verdicts: key_ambigu`: {Verdict: "stukc"},
	} {
		o.Config, o.Out = file, io.Discard
		if _, err := Findings(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
