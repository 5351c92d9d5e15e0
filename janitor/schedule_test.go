package janitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"idemscope/internal/ledger"
)

func at(t *testing.T, zone *time.Location, text string) time.Time {
	t.Helper()
	when, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestAWindowOpensAndClosesByTheClocksOfItsZone(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	night := Window{From: 2 * 60, To: 5 * 60, Zone: shanghai}
	over := Window{From: 23 * 60, To: 4*60 + 30, Zone: shanghai}
	for _, c := range []struct {
		w             Window
		now           string
		open          bool
		opens, closes string
		night         string
	}{
		{night, "2025-03-01 01:59", false, "2025-03-01 02:00", "", ""},
		{night, "2025-03-01 02:00", true, "", "2025-03-01 05:00", "2025-03-01"},
		{night, "2025-03-01 04:59", true, "", "2025-03-01 05:00", "2025-03-01"},
		{night, "2025-03-01 05:00", false, "2025-03-02 02:00", "", ""},
		{over, "2025-03-01 22:59", false, "2025-03-01 23:00", "", ""},
		{over, "2025-03-01 23:00", true, "", "2025-03-02 04:30", "2025-03-01"},
		{over, "2025-03-02 00:00", true, "", "2025-03-02 04:30", "2025-03-01"},
		{over, "2025-03-02 04:29", true, "", "2025-03-02 04:30", "2025-03-01"},
		{over, "2025-03-02 04:30", false, "2025-03-02 23:00", "", ""},
	} {
		now := at(t, shanghai, c.now)
		if got := c.w.Open(now.UTC()); got != c.open {
			t.Errorf("%s: open %t", c.now, got)
		}
		if c.opens != "" && !c.w.Opens(now).Equal(at(t, shanghai, c.opens)) {
			t.Errorf("%s: opens %s", c.now, c.w.Opens(now))
		}
		if c.closes != "" && (!c.w.Closes(now).Equal(at(t, shanghai, c.closes)) || c.w.Night(now) != c.night) {
			t.Errorf("%s: closes %s, night %s", c.now, c.w.Closes(now), c.w.Night(now))
		}
	}
	none := Window{Zone: shanghai}
	if none.Open(time.Now()) || !none.Opens(time.Now()).IsZero() {
		t.Error("no window is open")
	}
}

func TestAWindowWorksWhereClocksAreChanged(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	utc := func(text string) time.Time { return at(t, time.UTC, text) }
	// On 9 March 2025 at 07:00 UTC 02:00 becomes 03:00; on 2 November at 06:00 UTC 02:00 becomes 01:00.
	skipped := Window{From: 2 * 60, To: 3*60 + 30, Zone: zone}
	if got := skipped.Opens(utc("2025-03-09 06:00")); !got.Equal(utc("2025-03-09 07:00")) {
		t.Errorf("the window whose begin is skipped opens at %s", got)
	}
	if got := skipped.Closes(utc("2025-03-09 07:00")); !got.Equal(utc("2025-03-09 07:30")) {
		t.Errorf("and closes at %s", got)
	}
	gone := Window{From: 2 * 60, To: 3 * 60, Zone: zone}
	if got := gone.Opens(utc("2025-03-09 06:00")); !got.Equal(utc("2025-03-10 06:00")) {
		t.Errorf("the window that is skipped as a whole opens at %s", got)
	}
	twice := Window{From: 60, To: 2 * 60, Zone: zone}
	if first, second := utc("2025-11-02 05:30"), utc("2025-11-02 06:30"); !twice.Open(first) || !twice.Open(second) || twice.Night(first) != twice.Night(second) {
		t.Error("the hour that comes twice is not one window")
	}
	if got := twice.Closes(utc("2025-11-02 05:00")); !got.Equal(utc("2025-11-02 07:00")) {
		t.Errorf("the hour that comes twice ends at %s", got)
	}
}

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// atNight makes a janitor whose clock only pauses move.
func atNight(t *testing.T, task Task, now time.Time) (*Janitor, *clock) {
	t.Helper()
	c := &clock{now: now}
	j := hire(t, task)
	j.now = c.read
	j.pause = func(_ context.Context, d time.Duration) { c.add(d) }
	return j, c
}

func nightly(task Task) Task {
	task.Enabled, task.Window = true, Window{From: 2 * 60, To: 5 * 60, Zone: time.UTC}
	return task
}

func TestTheScheduleRunsATaskOnceInEachWindow(t *testing.T) {
	db, p := ready(t, false, 100)
	j, c := atNight(t, nightly(p.task(t)), at(t, time.UTC, "2025-03-01 01:00"))
	var d diary
	look := func(want int64) {
		t.Helper()
		j.look(soon(t), &j.tasks[0], &d)
		if got := value(t, j, "idem_janitor_rows_total", "deleted"); int64(got) != want {
			t.Errorf("at %s: %v rows gone, want %d", c.read(), got, want)
		}
	}
	look(0)
	if got := value(t, j, "idem_janitor_backlog_rows", ""); got != 100 {
		t.Errorf("backlog %v before the window", got)
	}
	c.add(time.Hour)
	look(100)
	db.Exec(t, "UPDATE idempotent_record SET create_time = '2020-01-01', update_time = '2020-01-01'")
	c.add(time.Hour)
	look(100) // done for this night
	c.add(24 * time.Hour)
	look(109) // all but the newest
	if got := value(t, j, "idem_janitor_last_success_timestamp_seconds", ""); got < float64(at(t, time.UTC, "2025-03-02 02:00").Unix()) {
		t.Errorf("last success %v", got)
	}
	if running := value(t, j, "idem_janitor_running", ""); running != 0 {
		t.Errorf("running %v", running)
	}
}

func TestAWindowThatClosesEndsTheRunAndItsLackIsCounted(t *testing.T) {
	_, p := ready(t, false, 1000)
	task := nightly(p.task(t))
	task.Batch = 400
	j, c := atNight(t, task, at(t, time.UTC, "2025-03-01 04:59"))
	meddle(&j.tasks[0], func(ledger.SweepBatch) error { c.add(30 * time.Second); return nil })
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	gone := value(t, j, "idem_janitor_rows_total", "deleted")
	if gone == 0 || gone == 1000 {
		t.Errorf("%v rows gone", gone)
	}
	if left := value(t, j, "idem_janitor_backlog_rows", ""); left != 1000-gone {
		t.Errorf("backlog %v after %v rows", left, gone)
	}
	j.look(soon(t), &j.tasks[0], &d)
	if got := value(t, j, "idem_janitor_throttled_seconds_total", "window"); got != tick.Seconds() {
		t.Errorf("held up by the window for %v", got)
	}
}

func TestARunThatIsRefusedIsTriedAgainLaterInTheSameWindow(t *testing.T) {
	_, p := ready(t, false, 10)
	holder, err := p.task(t).Open(soon(t), p.task(t).Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	j, c := atNight(t, nightly(p.task(t)), at(t, time.UTC, "2025-03-01 02:00"))
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	holder.Close()
	j.look(soon(t), &j.tasks[0], &d)
	if got := value(t, j, "idem_janitor_rows_total", "deleted"); got != 0 {
		t.Errorf("%v rows gone at once", got)
	}
	c.add(again)
	j.look(soon(t), &j.tasks[0], &d)
	if got := value(t, j, "idem_janitor_rows_total", "deleted"); got != 10 {
		t.Errorf("%v rows gone", got)
	}
}

func TestATaskThatIsNotEnabledOnlyShowsItsBacklog(t *testing.T) {
	_, p := ready(t, false, 10)
	task := nightly(p.task(t))
	task.Enabled = false
	j, _ := atNight(t, task, at(t, time.UTC, "2025-03-01 03:00"))
	ctx, stop := context.WithCancel(soon(t))
	looked := 0
	j.pause = func(context.Context, time.Duration) {
		if looked++; looked == 2 {
			stop()
		}
	}
	j.Run(ctx)
	if gone, left := value(t, j, "idem_janitor_rows_total", "deleted"), value(t, j, "idem_janitor_backlog_rows", ""); gone != 0 || left != 10 {
		t.Errorf("%v rows gone, %v left", gone, left)
	}
}

func TestAStopFileHoldsTheScheduleUpAndEndsARun(t *testing.T) {
	_, p := ready(t, false, 1000)
	task := nightly(p.task(t))
	task.StopFile, task.Batch = filepath.Join(t.TempDir(), "stop"), 400
	write := func() error { return os.WriteFile(task.StopFile, nil, 0o600) }
	if err := write(); err != nil {
		t.Fatal(err)
	}
	j, _ := atNight(t, task, at(t, time.UTC, "2025-03-01 03:00"))
	var d diary
	j.look(soon(t), &j.tasks[0], &d)
	if held, gone := value(t, j, "idem_janitor_throttled_seconds_total", "stop_file"), value(t, j, "idem_janitor_rows_total", "deleted"); held != tick.Seconds() || gone != 0 {
		t.Errorf("held up for %v, %v rows gone", held, gone)
	}
	if r := sweepNow(t, j, StopFile); r.Gone() != 0 || !strings.Contains(r.Why.EN, task.StopFile) {
		t.Errorf("%d rows: %s", r.Gone(), r.Why.EN)
	}
	if err := os.Remove(task.StopFile); err != nil {
		t.Fatal(err)
	}
	meddle(&j.tasks[0], func(ledger.SweepBatch) error { return write() })
	if r := sweepNow(t, j, StopFile); r.Gone() != 100 || r.Exit() != 1 {
		t.Errorf("%d rows", r.Gone())
	}
}

// loaded is a session on a server with a load of the test's making.
type loaded struct {
	Session
	load func() ledger.Load
}

func (l loaded) Load(context.Context) (ledger.Load, error) { return l.load(), nil }

// follower is a replica with a lag of the test's making.
type follower func() (time.Duration, error)

func (follower) Name() string { return "r1" }

func (f follower) Lag(context.Context) (time.Duration, error) { return f() }

func TestEveryThrottleHoldsTheSweepUpUntilItIsOver(t *testing.T) {
	for reason, c := range map[Reason]struct {
		busy, quiet ledger.Load
		lag         time.Duration
		unknown     error
	}{
		ByThreads:     {busy: ledger.Load{ThreadsRunning: 51}, quiet: ledger.Load{ThreadsRunning: 50}},
		ByHistory:     {busy: ledger.Load{History: 1001, HistoryKnown: true}, quiet: ledger.Load{History: 1000, HistoryKnown: true}},
		ByLag:         {lag: 11 * time.Second},
		ByUnreachable: {unknown: errors.New("connection refused")},
	} {
		t.Run(string(reason), func(t *testing.T) {
			_, p := ready(t, false, 1000)
			task := p.task(t)
			looks := 0
			held := func() bool { looks++; return looks <= 3 }
			task.Limits = Limits{MaxThreadsRunning: 50, MaxHistoryLength: 1000, MaxReplicaLag: 10 * time.Second}
			task.Limits.Replicas = []Replica{follower(func() (time.Duration, error) {
				if (c.lag > 0 || c.unknown != nil) && held() {
					return c.lag, c.unknown
				}
				return 10 * time.Second, nil
			})}
			open := task.Open
			task.Open = func(ctx context.Context, table *ledger.SweepTable) (Session, error) {
				s, err := open(ctx, table)
				return loaded{s, func() ledger.Load {
					if c.busy != (ledger.Load{}) && held() {
						return c.busy
					}
					return c.quiet
				}}, err
			}
			j, _ := atNight(t, task, time.Now())
			r := sweepNow(t, j, Done)
			if r.Gone() != 1000 || r.Tables[0].Throttled[reason] != 3*probeEvery {
				t.Errorf("%d rows, held up %v", r.Gone(), r.Tables[0].Throttled)
			}
			if got := value(t, j, "idem_janitor_throttled_seconds_total", string(reason)); got != 3 {
				t.Errorf("metric %v", got)
			}
		})
	}
}

func TestPatienceWithAThrottleEnds(t *testing.T) {
	_, p := ready(t, false, 100)
	task := p.task(t)
	task.Limits.Replicas = []Replica{follower(func() (time.Duration, error) { return 0, errors.New("no route to host") })}
	j, _ := atNight(t, task, time.Now())
	r := sweepNow(t, j, Throttled)
	if r.Gone() != 0 || r.Exit() != 1 || r.Tables[0].Throttled[ByUnreachable] != patience || !strings.Contains(r.Why.EN, "no route to host") {
		t.Errorf("%+v %s", r.Tables[0], r.Why.EN)
	}
}

// value is that of the series of the task whose labels hold word, an action or a reason.
func value(t *testing.T, j *Janitor, name, word string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(j.metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			if word == "" || slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetValue() == word }) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no series %s %s", name, word)
	return 0
}

func TestSeriesOfATaskExistFromTheStartAndEndWithIt(t *testing.T) {
	_, p := ready(t, false, 1)
	metrics := NewMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	series := func() (n int, text string) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				n++
				text += f.GetName() + m.String() + "\n"
			}
		}
		return n, text
	}
	declare := func(names ...string) {
		var tasks []Task
		for _, name := range names {
			task := p.task(t)
			task.Name = name
			tasks = append(tasks, task)
		}
		metrics.declare(tasks)
	}
	declare("a", "b")
	two, text := series()
	for _, word := range []string{"deleted", "archived", "unmapped", reasonLocked, string(ByWindow), "idem_janitor_running", "idem_janitor_last_success", "idem_janitor_batch_duration"} {
		if !strings.Contains(text, word) {
			t.Errorf("no series of %s", word)
		}
	}
	if strings.Contains(text, "backlog") {
		t.Error("a backlog that nobody has estimated")
	}
	metrics.gone(&Task{Name: "a", Tables: p.task(t).Tables}, 5)
	declare("a")
	if one, text := series(); one*2 != two || strings.Contains(text, `"b"`) || !strings.Contains(text, "value:5") {
		t.Errorf("%d series of two tasks, %d of one\n%s", two, one, text)
	}
}
