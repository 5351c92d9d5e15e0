package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// alertFiles are the rules that this module checks with the parser of a current Prometheus; the tests beside them use
// Debian's promtool, which is older.
func alertFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../alerts/*.rules.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	return files
}

// ruleQueries are the expressions of all rules, and the names that they record.
func ruleQueries(t *testing.T) (queries []named, recorded map[string]bool) {
	t.Helper()
	recorded = map[string]bool{}
	for _, file := range alertFiles(t) {
		groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("%s: %v", file, errs)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				recorded[r.Record] = true
				queries = append(queries, named{r.Alert + r.Record, r.Expr})
			}
		}
	}
	return queries, recorded
}

// metrics parses a query and returns the names of the metrics in it.
func metrics(t *testing.T, q named) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(filled(q.expr))
	if err != nil {
		t.Errorf("%s: %v\n%s", q.name, err, q.expr)
		return nil
	}
	var names []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			if v.Name == "" {
				t.Errorf("%s selects series without naming a metric", q.name)
			}
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// notInTheDemo are the metrics that the demo does not export, each with the reason.
var notInTheDemo = map[string]string{
	"idem_outbox_pending":                    "the demo has no local message table",
	"idem_outbox_oldest_pending_age_seconds": "the demo has no local message table",
	"idem_lock_expirations_total":            "exporter.lock_expirations is off by default",
	"idemscope_replica_lag_seconds":          "the demo has no replica",
}

// TestMetricsAreExported looks up every metric of every dashboard, rule and runbook in what the demo really exports.
func TestMetricsAreExported(t *testing.T) {
	exported := demo.families(t)
	sources := exporterSources(t)
	queries, recorded := ruleQueries(t)
	for _, b := range boards(t) {
		queries = append(queries, queriesOf(b)...)
	}
	queries = append(queries, runbookQueries(t)...)
	for _, q := range queries {
		for _, name := range metrics(t, q) {
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			switch {
			case recorded[name], exported[name], exported[base], name == "up": // up is Prometheus' own
			case notInTheDemo[name] == "":
				t.Errorf("%s asks for %s, which the demo does not export", q.name, name)
			case !strings.Contains(sources, `"`+name+`"`):
				t.Errorf("%s asks for %s, which the exporter does not know", q.name, name)
			}
		}
	}
	for name := range notInTheDemo {
		if exported[name] {
			t.Errorf("%s is exported by the demo: take it off the list", name)
		}
	}
}

// exporterSources is the text of the packages that declare metrics.
func exporterSources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../exporter/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of the exporter: %v", err)
	}
	var text strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	return text.String()
}

// runbookQueries are the lines of the PromQL blocks in the runbooks.
func runbookQueries(t *testing.T) []named {
	t.Helper()
	files, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	var all []named
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				all = append(all, named{filepath.Base(file), strings.TrimSpace(line)})
			}
		}
	}
	return all
}
