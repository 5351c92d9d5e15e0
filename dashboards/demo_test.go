package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// mayBeEmpty are the queries that can show nothing in the demo, with the reason.
var mayBeEmpty = map[string]string{
	"idemscope-overview / Local message tables (preset outbox) / Messages that wait to be sent / A": "the demo has no local message table",
	"idemscope-overview / Local message tables (preset outbox) / Longest wait / A":                  "the demo has no local message table",
	"idemscope-flow / Keys in Redis, and findings / Locks that lapsed / A":                          "exporter.lock_expirations is off by default",
	"idemscope-exporter / Judging, keys and replicas / Replica lag / A":                             "the demo has no replica",
}

// TestEveryPanelShowsTheDemo waits until each query of each panel has a value that is a number.
func TestEveryPanelShowsTheDemo(t *testing.T) {
	var open []named
	names := map[string]bool{}
	for _, b := range boards(t) {
		for _, q := range queriesOf(b) {
			names[q.name] = true
			if mayBeEmpty[q.name] == "" {
				open = append(open, q)
			}
		}
	}
	for name := range mayBeEmpty {
		if !names[name] {
			t.Errorf("there is no query %q", name)
		}
	}
	_ = wait(t.Context(), 150*time.Second, func() bool {
		var still []named
		for _, q := range open {
			if !shows(t, q) {
				still = append(still, q)
			}
		}
		open = still
		return len(open) == 0
	})
	for _, q := range open {
		t.Errorf("%s shows nothing:\n%s", q.name, filled(q.expr))
	}
}

func shows(t *testing.T, q named) bool {
	t.Helper()
	samples, err := demo.query(filled(q.expr))
	if err != nil {
		t.Fatalf("%s: %v\n%s", q.name, err, filled(q.expr))
	}
	for _, s := range samples {
		if len(s.Value) == 2 && s.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// TestRulesWorkOnTheDemo catches what no parser sees: vectors that do not match on real series.
func TestRulesWorkOnTheDemo(t *testing.T) {
	missing := []string{
		`idem:threshold:retry_ratio`, `idem:deliveries:rate5m > 0`, `idem:lock_conflicts:ratio5m >= 0`, `idem:retries:ratio10m{source="consumer"} >= 0`,
		`idem:run_duration_seconds:p99_10m >= 0`, `idem:run_p99_of_lock_ttl:ratio10m{flow="points"} > 0`, `idem:record_ids_burned:ratio30m >= 0`,
		`ALERTS{alertname="IdemFindingsCritical"}`, `ALERTS{alertname="IdemSetupUnsafe",check="no_unique_key"}`, `ALERTS{alertname="IdemRunP99AboveHalfLockTTL",flow="points"}`,
	}
	_ = wait(t.Context(), 2*time.Minute, func() bool {
		var still []string
		for _, expr := range missing {
			if samples, err := demo.query(expr); err != nil || len(samples) == 0 {
				still = append(still, expr)
			}
		}
		missing = still
		return len(missing) == 0
	})
	for _, expr := range missing {
		t.Errorf("the rules do not make %s", expr)
	}

	body, err := get(demo.prometheus + "/api/v1/rules")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			count++
			if r.Health != "ok" {
				t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if queries, _ := ruleQueries(t); count != len(queries) {
		t.Errorf("Prometheus runs %d rules of %d", count, len(queries))
	}
}

// TestQueriesWorkForOneFlow evaluates them as they are when somebody has chosen one flow, one biz_type and so on.
func TestQueriesWorkForOneFlow(t *testing.T) {
	chosen := map[string]string{"flow": "points", "biz_type": "points_grant", "queue": "points.changed", "source": "points", "task": "orders"}
	for _, b := range boards(t) {
		for _, q := range queriesOf(b) {
			for name, value := range chosen {
				q.expr = strings.ReplaceAll(q.expr, `"$`+name+`"`, `"`+value+`"`)
			}
			if _, err := demo.query(filled(q.expr)); err != nil {
				t.Errorf("%s: %v\n%s", q.name, err, q.expr)
			}
		}
	}
}
