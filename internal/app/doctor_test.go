package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"idemscope/internal/doctor"
	"idemscope/internal/flow"
	"idemscope/internal/lab"
)

// startLab starts the demo's servers without traffic and returns its configuration file.
func startLab(t *testing.T) string {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	if len(l.Missing) > 0 {
		t.Fatalf("servers are missing: %v", l.Missing)
	}
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	if err := os.WriteFile(file, l.Config(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// demoProblems are what the demo's set-up shows on purpose, or because its
// servers are private: written down, so that no check changes its mind unnoticed.
var demoProblems = []string{
	"ledger coupons: folds_case ignores_padding no_unique_key",
	"ledger orders: folds_case id_fills_column ignores_padding records_unreadable",
	"ledger points: folds_case ignores_padding",
	"ledger settlements: folds_case ignores_padding",
	"mysql main: mysql_rights_wide",
	"queue rabbit/order.paid.dlq: dead_letters_unattended",
	"redis main: redis_no_replica redis_rights_wide",
	"flow legacy: refuse_loses",
	"flow payments: refuse_loses",
	"flow reports: refuse_loses",
	"flow settlement: refuse_loses",
}

func TestTheDemosSetUpHasTheseProblemsAndNoOthers(t *testing.T) {
	file := startLab(t)
	var out bytes.Buffer
	exit, err := Doctor(t.Context(), DoctorOptions{Config: file, JSON: true, Language: flow.English, Out: &out})
	if err != nil || exit != 1 {
		t.Errorf("exit %d, %v", exit, err)
	}
	var report doctor.JSON
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	bySubject := map[string][]string{}
	for _, p := range report.Problems {
		// Whether its one dead letter came just now depends on when the broker sampled.
		if p.Check != "dead_letters_grow" {
			subject := fmt.Sprintf("%s %s", p.Subject.Kind, p.Subject.Name)
			bySubject[subject] = append(bySubject[subject], p.Check)
		}
	}
	var got []string
	for subject, checks := range bySubject {
		slices.Sort(checks)
		got = append(got, subject+": "+strings.Join(checks, " "))
	}
	want := slices.Sorted(slices.Values(demoProblems))
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(report.CannotTell) > 0 || report.FineChecks < 200 || report.TookSeconds > 4 {
		t.Errorf("%d fine in %.1f s, cannot tell: %+v", report.FineChecks, report.TookSeconds, report.CannotTell)
	}

	for lang, words := range map[flow.Language][]string{
		flow.English: {"CRITICAL (1)\n  ledger coupons\n    - No unique key stops a duplicate [no_unique_key]", "seen: shop.coupon_record: no unique key", "WARNING (", "checks fine, 1 critical"},
		flow.Chinese: {"严重 (1)\n  记录表 coupons\n    - 没有唯一键拦住重复 [no_unique_key]", "现象：shop.coupon_record：", "警告 (", "项检查正常，严重 1 项"},
	} {
		out.Reset()
		if exit, err := Doctor(t.Context(), DoctorOptions{Config: file, Language: lang, Out: &out}); err != nil || exit != 1 {
			t.Errorf("exit %d, %v", exit, err)
		}
		for _, w := range words {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: %q is missing in\n%s", lang, w, &out)
			}
		}
	}
}
