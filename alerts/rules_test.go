// Package alerts holds the Prometheus rules of idemscope, their promtool tests and an example for Alertmanager. It is no
// program: this package has tests only, which run the programs that users run.
package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rule is one alert or one recorded series.
type rule struct {
	Alert, Record, Expr string
	For                 string
	Labels, Annotations map[string]string
}

func rules(t *testing.T, file string) []rule {
	t.Helper()
	var content struct{ Groups []struct{ Rules []rule } }
	read(t, file, &content)
	var all []rule
	for _, g := range content.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no rule", file)
	}
	return all
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// run runs a program of the Debian packages prometheus and prometheus-alertmanager.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

const (
	alertFile     = "idemscope.rules.yml"
	recordingFile = "idemscope.recording.rules.yml"
)

func TestPromtoolAcceptsTheRules(t *testing.T) {
	run(t, "promtool", "check", "rules", "--lint-fatal", alertFile, recordingFile)
}

func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	for _, file := range testFiles(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			run(t, "promtool", "test", "rules", file)
		})
	}
}

func testFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test of the rules: %v", err)
	}
	return files
}

func TestEveryAlertIsComplete(t *testing.T) {
	text, err := os.ReadFile(alertFile)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range rules(t, alertFile) {
		if names[r.Alert] {
			t.Errorf("%s exists twice", r.Alert)
		}
		names[r.Alert] = true
		if r.For == "" {
			t.Errorf("%s has no pending time", r.Alert)
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		for _, name := range []string{"summary", "description"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no %s", r.Alert, name)
			}
		}
		if got, want := r.Annotations["runbook"], "docs/runbooks/"+r.Alert+".md"; got != want {
			t.Errorf("%s: runbook %q, want %q", r.Alert, got, want)
		}
		comment := regexp.MustCompile(`# (Threshold|No threshold)[^\n]*(\n +# [^\n]*)*\n +- alert: ` + r.Alert + `\n`)
		if !comment.Match(text) {
			t.Errorf("%s: no comment above it says what its threshold is", r.Alert)
		}
	}
}

var thresholdName = regexp.MustCompile(`idem:(threshold|exempt):\w+`)

// TestThresholdsAreUsed catches a misspelled threshold, with which an alert would never fire.
func TestThresholdsAreUsed(t *testing.T) {
	recorded, used := map[string]bool{}, map[string]bool{}
	for _, r := range rules(t, recordingFile) {
		if thresholdName.MatchString(r.Record) {
			recorded[r.Record] = true
		}
		for _, name := range thresholdName.FindAllString(r.Expr, -1) {
			used[name] = true
		}
	}
	for _, r := range rules(t, alertFile) {
		for _, name := range thresholdName.FindAllString(r.Expr, -1) {
			used[name] = true
		}
	}
	for name := range used {
		if !recorded[name] {
			t.Errorf("%s is used and nowhere recorded", name)
		}
	}
	for name := range recorded {
		if !used[name] {
			t.Errorf("%s is recorded and nowhere used", name)
		}
	}
}

// TestRecordedSeriesAreUsed catches the same for ratios.
func TestRecordedSeriesAreUsed(t *testing.T) {
	var expressions strings.Builder
	for _, r := range slices.Concat(rules(t, alertFile), rules(t, recordingFile)) {
		fmt.Fprintln(&expressions, r.Expr)
	}
	recorded := map[string]bool{}
	for _, r := range rules(t, recordingFile) {
		recorded[r.Record] = true
		if !strings.Contains(expressions.String(), r.Record) {
			t.Errorf("%s is used by no rule", r.Record)
		}
	}
	for _, name := range regexp.MustCompile(`idem:\w+:\w+`).FindAllString(expressions.String(), -1) {
		if !recorded[name] {
			t.Errorf("%s is recorded by no rule", name)
		}
	}
}

// unit is one test of promtool.
type unit struct {
	Name            string
	PromqlExprTests []struct {
		Expr       string
		ExpSamples []struct{ Labels string } `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
	AlertRuleTests []struct {
		Alertname string
		ExpAlerts []struct {
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

func TestEveryAlertIsSeenSilentPendingAndFiring(t *testing.T) {
	units := map[string]unit{}
	for _, file := range testFiles(t) {
		var content struct{ Tests []unit }
		read(t, file, &content)
		for _, u := range content.Tests {
			if _, twice := units[u.Name]; twice {
				t.Errorf("two tests are named %q", u.Name)
			}
			units[u.Name] = u
		}
	}
	for _, r := range rules(t, alertFile) {
		var silent, pending, firing bool
		u := units[r.Alert]
		for _, e := range u.PromqlExprTests {
			if e.Expr != fmt.Sprintf(`count by (alertstate) (ALERTS{alertname="%s"})`, r.Alert) {
				t.Errorf("%s: unexpected expression %s", r.Alert, e.Expr)
			}
			silent = silent || len(e.ExpSamples) == 0
			pending = pending || len(e.ExpSamples) == 1 && e.ExpSamples[0].Labels == `{alertstate="pending"}`
		}
		for _, a := range u.AlertRuleTests {
			firing = firing || a.Alertname == r.Alert && len(a.ExpAlerts) > 0
		}
		if !silent || !pending || !firing {
			t.Errorf("%s is tested silent: %t, pending: %t, firing: %t", r.Alert, silent, pending, firing)
		}
	}
}

// TestFindingsHaveTheSeverityOfTheirVerdict compares the rules with the table of verdicts in the README.
func TestFindingsHaveTheSeverityOfTheirVerdict(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]bool{"critical": {}, "warning": {}, "unknown": {}}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`[^|]*\\| (critical|warning|unknown) \\|").FindAllStringSubmatch(string(readme), -1) {
		want[row[2]][row[1]] = true
	}
	delete(want["critical"], "dead_lettered") // it has an alert of its own
	alertOf := map[string]string{"IdemFindingsCritical": "critical", "IdemFindingsWarning": "warning", "IdemFindingsUndecided": "unknown"}
	for _, r := range rules(t, alertFile) {
		severity := alertOf[r.Alert]
		if severity == "" {
			continue
		}
		delete(alertOf, r.Alert)
		matcher := regexp.MustCompile(`verdict=~?"([^"]+)"`).FindStringSubmatch(r.Expr)
		if matcher == nil {
			t.Fatalf("%s matches no verdict", r.Alert)
		}
		got := map[string]bool{}
		for code := range strings.SplitSeq(matcher[1], "|") {
			got[code] = true
		}
		if fmt.Sprint(got) != fmt.Sprint(want[severity]) || len(got) == 0 {
			t.Errorf("%s watches %v; the README calls %v %s", r.Alert, got, want[severity], severity)
		}
	}
	if len(alertOf) > 0 {
		t.Errorf("not there: %v", alertOf)
	}
}
