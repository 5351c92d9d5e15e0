package exporter

import (
	"context"
	"math"
	"sync"
	"time"

	"idemscope/internal/flow"
)

const (
	// figureStep is the time between two points, and figureSpan how long they are kept.
	figureStep = time.Minute
	figureSpan = 6 * time.Hour
	// slowPoll: with a longer pause between polls a step is two of them, so that
	// each step has seen one.
	slowPoll = figureStep / 2
	// maxFigureTypes bounds the biz_types of one flow whose own figures are kept.
	// All others are in those of the flow.
	maxFigureTypes = 1000
)

// figures remembers the operating figures of the last hours, from what the loops
// have read anyway. It asks no store.
type figures struct {
	sources figureSources
	flows   []flow.Flow
	step    time.Duration
	began   time.Time
	now     func() time.Time

	mu sync.Mutex
	// taken is the number of the step that was noted last; 0 is that in which the
	// process started, of which nothing is known.
	taken  int
	last   reading
	lastAt time.Time
	all    map[seriesKey]*figureSeries
	// types has the labels of each flow that have a series, in no order.
	types map[string]map[string]bool
	cut   map[string]bool
}

// seriesKey names a series: a flow with one label, or with none for the whole flow.
type seriesKey struct {
	flow, label string
	whole       bool
}

// newFigures remembers nothing yet.
func newFigures(sources figureSources, flows []flow.Flow, interval time.Duration) *figures {
	step := figureStep
	if interval > slowPoll {
		step = 2 * interval
	}
	return &figures{sources: sources, flows: flows, step: step, now: time.Now, began: time.Now(),
		all: map[seriesKey]*figureSeries{}, types: map[string]map[string]bool{}, cut: map[string]bool{}}
}

// run notes one point at the end of each step until ctx ends.
func (f *figures) run(ctx context.Context) {
	for {
		now := f.now()
		timer := time.NewTimer(f.began.Add(time.Duration(f.stepAt(now)+1) * f.step).Sub(now))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			f.note()
		}
	}
}

// stepAt is the number of the step in which t lies, by the monotonic clock.
func (f *figures) stepAt(t time.Time) int { return int(t.Sub(f.began) / f.step) }

// note takes one point of every series.
func (f *figures) note() {
	now := f.now()
	r := f.sources.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	step := f.stepAt(now)
	if step <= f.taken {
		return // the same step again
	}
	// A process that stood still has missed steps: what was counted in them belongs to none.
	next := f.taken > 0 && step == f.taken+1
	for _, s := range f.all {
		s.skip(f.taken+1, step)
	}
	d := differ{before: f.last, now: r, usable: next}
	for _, one := range f.flows {
		f.noteFlow(one, step, d)
	}
	f.taken, f.last, f.lastAt = step, r, now
}

// noteFlow takes one point of a flow and of each of its types.
func (f *figures) noteFlow(one flow.Flow, step int, d differ) {
	var all total
	for _, label := range f.sources.labelsOf(one) {
		p := d.point(one, label)
		all.add(p)
		if s := f.seriesOf(one.Name, label); s != nil {
			s.set(step, p.seen)
		}
	}
	sum := all.seen()
	sum.values[lineBacklog] = d.now.backlog(one)
	f.series(seriesKey{flow: one.Name, whole: true}).set(step, sum)
}

// seriesOf returns the series of a type of a flow; nil for one beyond the bound.
func (f *figures) seriesOf(name, label string) *figureSeries {
	types := f.types[name]
	if types == nil {
		types = map[string]bool{}
		f.types[name] = types
	}
	if !types[label] && len(types) >= maxFigureTypes {
		f.cut[name] = true
		return nil
	}
	types[label] = true
	return f.series(seriesKey{flow: name, label: label})
}

func (f *figures) series(key seriesKey) *figureSeries {
	s := f.all[key]
	if s == nil {
		s = newFigureSeries(int(figureSpan/f.step), f.step)
		f.all[key] = s
	}
	return s
}

// line numbers the lines of a series.
type line int

const (
	lineConflicts line = iota
	lineDedupStatus
	lineDedupRecord
	lineRetries       // by consumers
	lineLedgerRetries // by the ledger
	lineRunP99        // of runs, by consumers
	lineRecordP99     // from created to completed, by the ledger
	lineStale
	lineBacklog
	lines // how many there are
)

// seen is what one step shows of one series: values are NaN where they are not
// known. runs and records are the durations of what ended within it.
type seen struct {
	values        [lines]float64
	runs, records spread
}

func unseen() (s seen) {
	for i := range s.values {
		s.values[i] = math.NaN()
	}
	return s
}

// figureSeries holds the points of the last hours. Lines that were never known take no room.
type figureSeries struct {
	points int
	lines  [lines][]float32
	runs   recent
	record recent
}

func newFigureSeries(points int, step time.Duration) *figureSeries {
	return &figureSeries{points: points, runs: newRecent(step), record: newRecent(step)}
}

// skip makes the points from one step to the one before another unknown.
func (s *figureSeries) skip(from, before int) {
	for at := max(from, before-s.points); at < before; at++ {
		for _, l := range s.lines {
			if l != nil {
				l[at%s.points] = float32(math.NaN())
			}
		}
	}
	s.runs.skip(before - 1)
	s.record.skip(before - 1)
}

// set notes a step.
func (s *figureSeries) set(step int, v seen) {
	v.values[lineRunP99], v.values[lineRecordP99] = v.runs.p99(), v.records.p99()
	for i, value := range v.values {
		if s.lines[i] == nil {
			if math.IsNaN(value) {
				continue
			}
			s.lines[i] = make([]float32, s.points)
			for j := range s.lines[i] {
				s.lines[i][j] = float32(math.NaN())
			}
		}
		s.lines[i][step%s.points] = float32(value)
	}
	s.runs.add(step, v.runs)
	s.record.add(step, v.records)
}

// copyOf returns the points of a line, the oldest first.
func (s *figureSeries) copyOf(l line, taken int) []float64 {
	points := make([]float64, s.points)
	for i := range points {
		at := taken - s.points + 1 + i
		points[i] = math.NaN()
		if at > 0 && s.lines[l] != nil {
			points[i] = float64(s.lines[l][at%s.points])
		}
	}
	return points
}

// bytes is about how much memory the series takes.
func (s *figureSeries) bytes() (n int) {
	for _, l := range s.lines {
		n += 4 * len(l)
	}
	return n + s.runs.bytes() + s.record.bytes()
}
