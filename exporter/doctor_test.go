package exporter

import (
	"context"
	"testing"
	"time"

	"idemscope/internal/doctor"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// TestTheDoctorsProblemsAreExported: each check has its series, 0 included,
// unless a store did not tell what it needs.
func TestTheDoctorsProblemsAreExported(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	checks := doctor.Checks()
	subject := doctor.Subject{Kind: doctor.KindLedger, Name: "orders"}
	report := doctor.Report{
		At:       time.UnixMilli(1_796_000_000_500),
		Problems: []doctor.Problem{{Check: checks[0], Subject: subject}, {Check: checks[0], Subject: subject}, {Check: checks[2], Subject: subject}},
		Unsure:   []doctor.Unsure{{Check: checks[1], Subject: subject}, {Check: checks[2], Subject: subject}},
	}
	e, err := New(Options{
		Ledgers: map[string]*ledger.Ledger{"orders": openLedger(t, db, benchOptions{table: "idempotent_record", preset: "idempotent_record"})},
		Doctor:  func(context.Context) doctor.Report { return report },
	})
	if err != nil {
		t.Fatal(err)
	}
	series := func(name string, c doctor.Check) string {
		return name + `{check="` + c.Code + `",severity="` + string(c.Severity) + `"}`
	}
	if before := gather(t, e.Gatherer()); before.has(samples{series("idemscope_doctor_problems", checks[0]): 0}) {
		t.Error("problems are exported before anybody looked")
	}
	e.examined.once(t.Context())
	want := samples{"idemscope_doctor_last_run_timestamp_seconds": 1_796_000_000.5}
	for i, c := range checks {
		want[series("idemscope_doctor_problems", c)] = []float64{2, 0, 1}[min(i, 2)]
		want[series("idemscope_doctor_unknown", c)] = []float64{0, 1, 1}[min(i, 2)]
		if i > 2 {
			want[series("idemscope_doctor_problems", c)], want[series("idemscope_doctor_unknown", c)] = 0, 0
		}
	}
	delete(want, series("idemscope_doctor_problems", checks[1])) // nobody knows
	got := gather(t, e.Gatherer())
	got.want(t, want)
	if got.has(samples{series("idemscope_doctor_problems", checks[1]): 0}) {
		t.Error("what nobody knows is exported as 0")
	}
	lint(t, e.Gatherer())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	report.Problems = nil
	e.examined.once(ended)
	if !gather(t, e.Gatherer()).has(samples{series("idemscope_doctor_problems", checks[0]): 2}) {
		t.Error("an examination that the end of the program cut off was kept")
	}
}
