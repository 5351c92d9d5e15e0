package janitor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// tickBefore moves the clock ahead of every change.
func tickBefore(c *clock, d time.Duration) func(ledger.SweepBatch) error {
	return func(ledger.SweepBatch) error { c.add(d); return nil }
}

func TestTheStatusFollowsARun(t *testing.T) {
	_, p := ready(t, false, 1000)
	task := nightly(p.task(t))
	task.Batch = 400
	j, c := atNight(t, task, at(t, time.UTC, "2025-03-01 01:00"))
	if s := j.Status()[0]; s.State != Waiting || s.Run != nil || s.Plan != nil || !s.Opens.Equal(at(t, time.UTC, "2025-03-01 02:00")) || !s.Closes.Equal(at(t, time.UTC, "2025-03-01 05:00")) || len(s.Tables) != 1 {
		t.Errorf("before the window: %+v", s)
	}
	c.add(time.Hour)
	var seen []Status
	meddle(&j.tasks[0], func(ledger.SweepBatch) error {
		c.add(2 * time.Second)
		seen = append(seen, j.Status()[0])
		return nil
	})
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	if len(seen) < 3 {
		t.Fatalf("only %d batches", len(seen))
	}
	first, last := seen[0], seen[len(seen)-1]
	if first.State != Running || first.Run.By != BySchedule || first.Run.Planned != 1000 || first.Run.Rows != 0 || first.Run.Number != 1 || !strings.HasSuffix(first.Run.Table, ".idempotent_record") {
		t.Errorf("at first: %+v %+v", first, first.Run)
	}
	if r := last.Run; r.Rows == 0 || r.Share <= 0.5 || r.Share >= 1 || r.PerSecond < 1 || r.PerSecond > 500 || r.Left <= 0 || r.Left > time.Minute {
		t.Errorf("at last: %+v", r)
	}
	if s := j.Status()[0]; s.State != Resting || s.Run != nil || s.Plan == nil || s.Plan.Made.IsZero() || s.Plan.Candidates() != 0 {
		t.Errorf("after the run: %+v", s)
	}
	c.add(12 * time.Hour)
	if s := j.Status()[0]; s.State != Waiting {
		t.Errorf("the day after: %s", s.State)
	}
}

func TestTheStatusSaysWhyARunWaits(t *testing.T) {
	_, p := ready(t, false, 100)
	task := p.task(t)
	lags := 0
	task.Limits = Limits{MaxReplicaLag: time.Second, Replicas: []Replica{follower(func() (time.Duration, error) {
		if lags++; lags < 3 {
			return 90 * time.Second, nil
		}
		return 0, nil
	})}}
	j, c := atNight(t, task, time.Now())
	var held []Status
	j.pause = func(_ context.Context, d time.Duration) {
		c.add(d)
		if s := j.Status()[0]; s.State == HeldUp {
			held = append(held, s)
		}
	}
	var after []Status
	meddle(&j.tasks[0], func(ledger.SweepBatch) error { after = append(after, j.Status()[0]); return nil })
	sweepNow(t, j, Done)
	if len(held) != 2 || held[0].Run.Hold != ByLag || held[0].Why.EN != "the replica r1 is 1 min 30 s behind; the limit is 1 s" || held[0].Why.ZH == "" {
		t.Errorf("%+v", held)
	}
	if len(after) == 0 || after[0].State != Running || after[0].Run.Hold != "" {
		t.Errorf("the run goes on: %+v", after)
	}
}

func TestAnOperatorStopsARunUntilTheNextWindow(t *testing.T) {
	_, p := ready(t, false, 1000)
	task := nightly(p.task(t))
	task.Batch = 400
	j, c := atNight(t, task, at(t, time.UTC, "2025-03-01 02:30"))
	stopped := false
	meddle(&j.tasks[0], func(ledger.SweepBatch) error {
		if !stopped {
			stopped = true
			return j.Stop("orders", "wang <b>")
		}
		return nil
	})
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	gone := value(t, j, "idem_janitor_rows_total", "deleted")
	s := j.Status()[0]
	if gone == 1000 || s.State != Halted || s.Why.EN != "wang <b> stopped it for this window" {
		t.Errorf("%v rows gone, %s: %s", gone, s.State, s.Why.EN)
	}
	if e := j.Recent(1)[0]; e.End != Stopped || e.WhyEN != "wang <b> stopped the run" {
		t.Errorf("%+v", e)
	}
	c.add(2 * again)
	j.look(soon(t), &j.tasks[0], &d)
	if now := value(t, j, "idem_janitor_rows_total", "deleted"); now != gone {
		t.Errorf("it goes on in the same window: %v rows", now)
	}
	c.add(24 * time.Hour)
	j.look(soon(t), &j.tasks[0], &d)
	if now := value(t, j, "idem_janitor_rows_total", "deleted"); now != 1000 {
		t.Errorf("in the next window %v rows", now)
	}
	if err := j.Stop("nobody", "wang"); err == nil {
		t.Error("a task that does not exist was stopped")
	}
}

func TestStoppingWritesTheStopFile(t *testing.T) {
	_, p := ready(t, false, 100)
	task := nightly(p.task(t))
	task.StopFile = filepath.Join(t.TempDir(), "stop")
	j, c := atNight(t, task, at(t, time.UTC, "2025-03-01 12:00"))
	if err := j.Stop("orders", "wang"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(task.StopFile)
	if err != nil || !strings.Contains(string(text), "for wang; remove this file") {
		t.Errorf("%v %s", err, text)
	}
	c.add(15 * time.Hour) // the next window
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	if s := j.Status()[0]; s.State != Halted || value(t, j, "idem_janitor_rows_total", "deleted") != 0 || !strings.Contains(s.Why.EN, task.StopFile) {
		t.Errorf("%s %s", s.State, s.Why.EN)
	}
	j.tasks[0].StopFile = filepath.Join(t.TempDir(), "no", "folder")
	if err := j.Stop("orders", "wang"); err == nil {
		t.Error("the file cannot have been written")
	}
}

func TestTheStateIsTheMostPressingOne(t *testing.T) {
	task := &Task{Name: "orders", Enabled: true, StopFile: "stop", Window: Window{From: 120, To: 300, Zone: time.UTC}}
	night := at(t, time.UTC, "2025-03-01 03:00")
	refused := &Plan{Refusals: []Refusal{{Code: "replica", Text: flow.T("a replica", "从库")}}}
	broken := ending{Failed, flow.T("it broke", "失败")}
	for _, c := range []struct {
		name    string
		pinned  pinned
		stopped bool
		enabled bool
		now     time.Time
		want    State
	}{
		{"held up", pinned{run: &run{Progress: Progress{Hold: ByLag}}, plan: refused}, true, true, night, HeldUp},
		{"running", pinned{run: &run{}, plan: refused, last: broken}, true, true, night, Running},
		{"stop file", pinned{plan: refused}, true, true, night, Halted},
		{"halted", pinned{plan: refused, halted: "2025-03-01"}, false, true, night, Halted},
		{"halted, the night before", pinned{halted: "2025-02-28"}, false, true, night, Waiting},
		{"refused", pinned{plan: refused, last: broken}, false, true, night, Barred},
		{"broken", pinned{plan: &Plan{}, last: broken}, false, true, night, Broken},
		{"by hand", pinned{plan: &Plan{}}, false, false, night, ByHand},
		{"done", pinned{rested: "2025-03-01"}, false, true, night, Resting},
		{"by day", pinned{rested: "2025-03-01"}, false, true, night.Add(6 * time.Hour), Waiting},
	} {
		task.Enabled = c.enabled
		if got, _ := c.pinned.state(task, c.now, c.stopped); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTheStatusCanBeAskedWhileRunsGoOn(t *testing.T) {
	_, p := ready(t, true, 2000)
	j := hire(t, p.task(t))
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					for _, s := range j.Status() {
						if s.Run != nil && (s.Run.Share < 0 || s.Run.Share > 1 || s.Run.Rows > 2000) {
							t.Errorf("%+v", s.Run)
						}
					}
				}
			}
		})
	}
	sweepNow(t, j, Done)
	close(ended)
	all.Wait()
}
