package janitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func entry(n int) Entry {
	began := time.Date(2026, 3, 1, 2, 0, n, 0, time.UTC)
	return Entry{Task: "orders", Ledger: "orders", Table: fmt.Sprintf("shop.record_%d", n), Began: began, Ended: began.Add(time.Minute), Rows: int64(n), Batches: 1,
		End: Done, Cutoff: &began, By: BySchedule, Throttled: map[Reason]float64{ByLag: 1.5}}
}

func list(t *testing.T, h *History) []Entry {
	t.Helper()
	entries, err := h.List()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestTheHistoryIsEmptyThenHasTheNewestFirst(t *testing.T) {
	h := NewHistory(filepath.Join(t.TempDir(), "history.jsonl"))
	if got := list(t, h); len(got) != 0 {
		t.Errorf("before the first run: %+v", got)
	}
	if err := h.Append(entry(1), entry(2)); err != nil {
		t.Fatal(err)
	}
	got := list(t, NewHistory(h.File()))
	if len(got) != 2 || got[0].Table != "shop.record_2" || !got[1].Began.Equal(entry(1).Began) || got[0].Took() != time.Minute || got[0].Throttled[ByLag] != 1.5 || got[0].By != BySchedule {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(h.File()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
}

func TestTornAndForeignLinesOfTheHistoryAreLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	h := NewHistory(file)
	if err := h.Append(entry(1)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := "\n\x00\xff\n[1]\n{}\n" + strings.Repeat("x", 3*maxEntry) + "\n" + string(whole) + string(whole[:len(whole)/2]) // a crash in the middle of a write
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := list(t, h); len(got) != 1 {
		t.Errorf("%d entries beside a torn line: %+v", len(got), got)
	}
	if err := h.Append(entry(2)); err != nil {
		t.Fatal(err)
	}
	if got := list(t, h); len(got) != 2 || got[0].Rows != 2 {
		t.Errorf("the torn line swallows the next one: %+v", got)
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	h := NewHistory(filepath.Join(dir, "history.jsonl"))
	h.entries = 5
	for n := range 23 {
		if err := h.Append(entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	got := list(t, h)
	if len(got) < 5 || len(got) > 10 || got[0].Rows != 22 || got[len(got)-1].Rows != int64(22-len(got)+1) {
		t.Errorf("%d entries from %d to %d", len(got), got[len(got)-1].Rows, got[0].Rows)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
}

func TestSeveralProcessesWriteOneHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	var all sync.WaitGroup
	for p := range 4 {
		h := NewHistory(file) // its lock is its own, as in a process of its own
		all.Go(func() {
			for n := range 100 {
				if err := h.Append(entry(p*100 + n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	rows := map[int64]bool{}
	for _, e := range list(t, NewHistory(file)) {
		rows[e.Rows] = true
	}
	if len(rows) != 400 {
		t.Errorf("%d of 400 entries are there", len(rows))
	}
}

func TestRunsAreWrittenToTheHistory(t *testing.T) {
	_, p := ready(t, false, 300)
	task := nightly(p.task(t))
	j, c := atNight(t, task, at(t, time.UTC, "2025-03-01 03:00"))
	j.history = NewHistory(filepath.Join(t.TempDir(), "history.jsonl"))
	meddle(&j.tasks[0], tickBefore(c, time.Second))
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	sweepNow(t, j, Done)
	got := list(t, j.history)
	if len(got) != 2 || got[1].By != BySchedule || got[1].Rows != 300 || got[1].End != Done || got[1].Batches == 0 || got[1].Cutoff == nil || got[1].Took() <= 0 || got[0].By != ByCommand || got[0].Rows != 0 {
		t.Errorf("%+v", got)
	}
	if recent := j.Recent(1); len(recent) != 1 || recent[0].By != ByCommand {
		t.Errorf("%+v", recent)
	}
	// A task that is refused is tried again every ten minutes, and kept once.
	j.tasks[0].Open = nil
	for range 3 {
		c.add(24 * time.Hour)
		j.look(soon(t), &j.tasks[0], &d)
	}
	if got := list(t, j.history); len(got) != 3 || got[0].End != Refused || got[0].Table != "" || got[0].WhyZH == "" {
		t.Errorf("%+v", got)
	}
}

func TestAHistoryThatCannotBeWrittenStopsNoRun(t *testing.T) {
	_, p := ready(t, false, 10)
	j := hire(t, p.task(t))
	j.history = NewHistory(filepath.Join(t.TempDir(), "no", "such", "folder"))
	if r := sweepNow(t, j, Done); r.Gone() != 10 {
		t.Errorf("%d rows", r.Gone())
	}
	j.history = nil // without a file what this process did is known
	if got := j.Recent(10); len(got) != 1 || got[0].Rows != 10 {
		t.Errorf("%+v", got)
	}
}
