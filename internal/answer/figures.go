package answer

import (
	"math"
	"time"

	"idemscope/internal/flow"
)

// Figures are the operating figures of every flow, as the exporter remembers
// them. They come from memory: making them asks no store.
type Figures struct {
	// At is when they were put together, Last when the newest point was taken;
	// zero before the first one.
	At, Last time.Time
	// Step is the time between two points of a line.
	Step time.Duration
	// Flows are in the order of the configuration.
	Flows []FlowFigures
	// Undeclared are the biz_types that were seen and that no flow takes.
	Undeclared []UndeclaredType
}

// Of returns the figures of one flow.
func (f Figures) Of(name string) (FlowFigures, bool) {
	for _, one := range f.Flows {
		if one.Flow == name {
			return one, true
		}
	}
	return FlowFigures{}, false
}

// FlowFigures are those of one flow, all its biz_types together and each alone.
type FlowFigures struct {
	Flow string
	FigureSet
	// Backlog is how many messages wait in the work and retry queues.
	Backlog Line
	Queues  []QueueFigures
	// Types are in the order of their names. TypesCut: there are more than are remembered.
	Types    []TypeFigures
	TypesCut bool
	// Shared: another flow has one of the biz_types, too. Consumers count by
	// biz_type, so what they count is then shown in both flows.
	Shared bool
	// Unswept: records older than the lookback have not all been seen yet, so the
	// number of stale ones may be too low.
	Unswept bool
}

// FigureSet are the five figures.
type FigureSet struct {
	// Conflicts, DedupStatus, DedupRecord and Retries count within each step:
	// locks found taken, duplicates stopped by the status check and by the unique
	// key, runs after a failed run.
	Conflicts, DedupStatus, DedupRecord, Retries Line
	// P99 is that of the runs that ended within each step, in seconds. A step
	// without such a run has none.
	P99 Line
	// P99Hour is that of the runs of the last hour.
	P99Hour Quantile
	// Stale is how many records were stale at the end of each step; its Now is of this moment.
	Stale Line
	// RetriesBy and P99By say who measured.
	RetriesBy, P99By FigureSource
}

// FigureSource says who measured a figure.
type FigureSource string

// The sources. Consumers measure every run; the ledger's columns show the time
// from creation to completion, with the resolution of the columns.
const (
	ByConsumers FigureSource = "consumers"
	ByLedger    FigureSource = "ledger"
)

// Quantile is one of a number of runs.
type Quantile struct {
	// Runs is how many there were; 0 means that there is no value.
	Runs uint64
	// Seconds is the value. Beyond: it lies above that, outside of what is measured.
	Seconds float64
	Beyond  bool
}

// Line is one figure over time: one point for each step, the oldest first.
type Line struct {
	// Points are NaN where the figure is not known.
	Points []float64
	// Now is the value of this moment, of figures that have one; else NaN.
	Now float64
	// Why says why the figure is not known at present; empty when it is.
	Why flow.Text
}

// Tail returns the newest points, at most n.
func (l Line) Tail(n int) Line {
	l.Points = l.Points[max(0, len(l.Points)-n):]
	return l
}

// Sum adds up the points that are known, and tells how many those are.
func (l Line) Sum() (sum float64, known int) {
	for _, p := range l.Points {
		if !math.IsNaN(p) {
			sum += p
			known++
		}
	}
	return sum, known
}

// Plus adds two lines point by point; a point is known when both are.
func (l Line) Plus(m Line) Line {
	sum := Line{Points: make([]float64, len(l.Points)), Now: l.Now + m.Now, Why: l.Why}
	for i := range l.Points {
		sum.Points[i] = math.NaN()
		if i < len(m.Points) {
			sum.Points[i] = l.Points[i] + m.Points[i]
		}
	}
	return sum
}

// Dedup are the duplicates that both layers stopped.
func (s FigureSet) Dedup() Line { return s.DedupStatus.Plus(s.DedupRecord) }

// QueueFigures are the totals of one queue.
type QueueFigures struct {
	Broker, Name string
	// Role is work, retry or dead_letter.
	Role string
	// Known: the broker told. Else Why says why it did not.
	Known                                   bool
	Ready, Unacked, Delayed, Dead, Consumer int64
	Why                                     flow.Text
}

// TypeFigures are those of one biz_type. Its name is a label: bytes that are not
// UTF-8 are spelled out.
type TypeFigures struct {
	BizType string
	FigureSet
}

// UndeclaredType is a biz_type that no flow takes.
type UndeclaredType struct {
	BizType string
	// Ledger holds its records; empty for one that only consumers count.
	Ledger string
	// Open is how many of its records are in processing; nobody says when they are stale.
	Open int64
	// OpenKnown: the ledger can be read.
	OpenKnown bool
}
