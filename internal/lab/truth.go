package lab

import (
	"maps"
	"sync"
	"time"

	"idemscope/internal/flow"
)

// Truth is what the consumers of the lab really did, per biz_type. It is kept in memory beside the stores, so that what
// was counted and written can be compared with it. Prepared samples and older rows are not in it.
type Truth map[string]Tally

// Tally is the truth about one biz_type.
type Tally struct {
	// Deliveries is how many entered the guard. Each of them came to one of the next six.
	Deliveries                                                        uint64
	LockConflict, DedupStatus, DedupRecord, Completed, Failed, Killed uint64
	// Acquired, Retry, LockLost and Degraded are as in the counters of the instrumentation contract.
	Acquired, Retry, LockLost, Degraded uint64
	// FailedAgain is how many of the retries failed as well.
	FailedAgain uint64
	// Runs counts completed and failed runs by the bucket field of their run time, such as "ms_le_50".
	Runs map[string]uint64
	// MsSum is the run time of those runs together, in milliseconds.
	MsSum uint64
	// Effects is how often the business effect happened.
	Effects uint64
	// Records is how many records traffic has left in each phase.
	Records map[flow.Phase]int
}

// Ends is how many deliveries have ended by themselves.
func (t Tally) Ends() uint64 {
	return t.LockConflict + t.DedupStatus + t.DedupRecord + t.Completed + t.Failed
}

// witness keeps the truth while consumers run.
type witness struct {
	mu      sync.Mutex
	tallies map[string]*Tally
}

func newWitness() *witness { return &witness{tallies: map[string]*Tally{}} }

// note changes the tally of a biz_type.
func (w *witness) note(bizType string, change func(*Tally)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tallies[bizType]
	if t == nil {
		t = &Tally{Runs: map[string]uint64{}, Records: map[flow.Phase]int{}}
		w.tallies[bizType] = t
	}
	change(t)
}

// moved notes that a record went from one phase to another; an empty phase means that there was, or is, no record.
func (w *witness) moved(bizType string, from, to flow.Phase) {
	w.note(bizType, func(t *Tally) {
		if from != "" {
			t.Records[from]--
		}
		if to != "" {
			t.Records[to]++
		}
	})
}

// ended notes how a delivery ended.
func (w *witness) ended(e ending) {
	w.note(e.bizType, func(t *Tally) {
		*t.outcome(e.outcome)++
		countIf(&t.Acquired, e.acquired)
		countIf(&t.Retry, e.retry)
		countIf(&t.FailedAgain, e.retry && e.outcome == runFailed)
		countIf(&t.LockLost, e.lockLost)
		countIf(&t.Degraded, e.degraded)
		if e.ran() {
			t.Runs[bucketOf(e.took)]++
			t.MsSum += milliseconds(e.took)
		}
	})
}

func (t *Tally) outcome(o outcome) *uint64 {
	switch o {
	case lockConflict:
		return &t.LockConflict
	case dedupStatus:
		return &t.DedupStatus
	case dedupRecord:
		return &t.DedupRecord
	case runCompleted:
		return &t.Completed
	}
	return &t.Failed
}

// copy returns the truth so far.
func (w *witness) copy() Truth {
	w.mu.Lock()
	defer w.mu.Unlock()
	truth := Truth{}
	for bizType, t := range w.tallies {
		tally := *t
		tally.Runs, tally.Records = maps.Clone(t.Runs), maps.Clone(t.Records)
		truth[bizType] = tally
	}
	return truth
}

func countIf(n *uint64, yes bool) {
	if yes {
		*n++
	}
}

func milliseconds(d time.Duration) uint64 { return uint64(d.Milliseconds()) }
