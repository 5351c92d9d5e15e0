package janitor

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

func TestThePlanTellsArrivalsSizeAndWhatIsStuck(t *testing.T) {
	db, p := ready(t, false, 0)
	db.Exec(t, "DELETE FROM idempotent_record")
	fill(t, db, 500, 2, 30)
	fill(t, db, 7, 1, 20)
	for days := 6; days >= 1; days-- {
		fill(t, db, 70, 2, days)
		fill(t, db, 5, 3, days)
	}
	fill(t, db, 1, 2, 0)
	j := hire(t, p.task(t))
	for _, exact := range []bool{false, true} {
		plan, err := j.Plan(soon(t), "orders", exact)
		if err != nil {
			t.Fatal(err)
		}
		table := plan.Tables[0]
		if table.Processing() != 7 || !table.PerDayKnown || math.Abs(table.PerDay-60) > 1e-9 || !table.Sized || table.Footprint.Data == 0 {
			t.Errorf("exact %t: %+v", exact, table)
		}
		var out bytes.Buffer
		if err := plan.WriteText(&out, flow.English, time.UTC); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"about 60 rows a day reach the cutoff", "how long it takes is not known", map[bool]string{true: "7 rows stay: in processing", false: "about 7 rows beyond the retention are in processing"}[exact]} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("exact %t: no %q in\n%s", exact, want, out.String())
			}
		}
		text, err := json.Marshal(plan.JSON(flow.Chinese))
		if err != nil || !strings.Contains(string(text), `"rows_per_day_reaching_cutoff":60,"measured_rows_per_second":null`) || !strings.Contains(string(text), `"processing_beyond_retention":7`) {
			t.Errorf("%v %s", err, text)
		}
	}
}

func TestFallingBehindIsSaidWithFigures(t *testing.T) {
	db, p := ready(t, false, 600)
	for days := 6; days >= 1; days-- {
		fill(t, db, 7000, 2, days)
	}
	task := nightly(p.task(t))
	j, _ := atNight(t, task, at(t, time.UTC, "2025-03-01 12:00"))
	pace := func(rows int64, took time.Duration) Plan {
		t.Helper()
		j.kept = []Entry{
			{Task: "others", Rows: 1 << 40, Ended: time.Unix(1, 0), Began: time.Unix(0, 0)},
			{Task: "orders", Rows: 0, Began: time.Unix(0, 0), Ended: time.Unix(1000, 0)},
			{Task: "orders", Rows: rows, Began: time.Unix(0, 0), Ended: time.Unix(0, 0).Add(took)},
		}
		plan, err := j.Plan(soon(t), "orders", false)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	slow := pace(100, 1000*time.Second) // 0.1 rows a second, 1080 in three hours
	if f := slow.Forecast; !f.Behind() || f.PerWindow != 1080 || f.PerDay < 6000 || f.Takes < 6000*time.Second || f.Windows != 0 {
		t.Errorf("%+v", f)
	}
	if notes := slow.Note(); !strings.Contains(notes[len(notes)-1].EN, "FALLS BEHIND: one window takes about 1080 rows") || !strings.Contains(notes[len(notes)-1].ZH, "落后") {
		t.Errorf("%+v", notes)
	}
	fast := pace(10_000, 10*time.Second)
	if f := fast.Forecast; f.Behind() || f.PerWindow != 10_800_000 || f.Windows <= 0 || f.Windows > 1 {
		t.Errorf("%+v", f)
	}
	j.tasks[0].RunTime = time.Hour
	if f := pace(10_000, 10*time.Second).Forecast; f.PerWindow != 3_600_000 {
		t.Errorf("with run_time: %+v", f)
	}
	j.tasks[0].Rows = 700
	if f := pace(10_000, 10*time.Second).Forecast; f.PerWindow != 700 || !f.Behind() {
		t.Errorf("with rows: %+v", f)
	}
	j.tasks[0].Enabled = false
	if f := pace(10_000, 10*time.Second).Forecast; f.PerWindow != 0 || f.Behind() {
		t.Errorf("not enabled: %+v", f)
	}
}

func TestTheBinaryLogIsEstimatedFromTheRows(t *testing.T) {
	for _, c := range []struct {
		format, archive string
		row, want       int64
		known           bool
	}{
		{"", "", 100, 0, true}, {"ROW", "", 100, 1200, true}, {"MIXED", "shop.archive", 100, 2400, true}, {"ROW", "", 0, 0, false}, {"STATEMENT", "", 0, 900, true},
	} {
		p := TablePlan{Archive: c.archive, Candidates: 10, Batches: 3, Footprint: ledger.Footprint{Row: c.row}}
		if got, known := p.binlog(c.format); got != c.want || known != c.known {
			t.Errorf("%+v: %d %t", c, got, known)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1500: "1.5 kB", 123_456_789: "123 MB", 5e12: "5.0 TB", 5e15: "5000 TB"} {
		if got := BytesText(n).EN; got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestEnabledIsExported(t *testing.T) {
	_, p := ready(t, false, 1)
	for _, enabled := range []bool{true, false} {
		task := nightly(p.task(t))
		task.Enabled = enabled
		if got := value(t, hire(t, task), "idem_janitor_enabled", ""); (got == 1) != enabled {
			t.Errorf("enabled %t: %v", enabled, got)
		}
	}
}
