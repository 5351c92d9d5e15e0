package janitor

import (
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Ended is why a run came to its end.
type Ended string

// The ends.
const (
	// Done: every table was walked to its end.
	Done Ended = "done"
	// Refused: the plan, or the server, spoke against it.
	Refused Ended = "refused"
	// Taken: another janitor holds the lease.
	Taken Ended = "lease_taken"
	// OutOfTime, OutOfRows, WindowClosed: the run reached its limit.
	OutOfTime    Ended = "run_time"
	OutOfRows    Ended = "rows"
	WindowClosed Ended = "window"
	// StopFile and Stopped: somebody wanted it to end.
	StopFile Ended = "stop_file"
	Stopped  Ended = "stopped"
	// Throttled: it was held up for too long.
	Throttled Ended = "throttled"
	// IsCritical: a critical limit was passed.
	IsCritical Ended = "critical"
	// Failed: a store did not do what was asked.
	Failed Ended = "failed"
	// Unread: the plan could not be made.
	Unread Ended = "unreadable"
)

// ending is an end with its reason.
type ending struct {
	ended Ended
	why   flow.Text
}

// TableReport is what a run did with one table.
type TableReport struct {
	Table, Archive string
	// Gone is how many rows were deleted, or archived and deleted.
	Gone int64
	// Stayed has the rows that were looked at and left, by the names of ledger.Kind
	// and the reason locked.
	Stayed map[string]int64
	// Reached is up to which id the table was walked.
	Reached uint64
	// Batches counts transactions, Retries those that were tried again.
	Batches, Retries int
	// Unconfirmed is how many rows a batch meant to remove of which nobody knows
	// whether its commit succeeded; mostly 0.
	Unconfirmed int64
	Throttled   map[Reason]time.Duration
	// Began and Took are by this process's clock.
	Began time.Time
	Took  time.Duration
}

// Report is what a run did.
type Report struct {
	Task   string
	Plan   Plan
	Tables []*TableReport
	Ended  Ended
	// Why says more about the end, and what to do; empty when it is Done.
	Why flow.Text
	// Began and Took are by this process's clock.
	Began time.Time
	Took  time.Duration
}

// Gone is how many rows the run removed from all tables.
func (r Report) Gone() (n int64) {
	for _, t := range r.Tables {
		n += t.Gone
	}
	return n
}

func newTableReport(t *ledger.SweepTable) *TableReport {
	return &TableReport{Table: t.Name(), Archive: t.Archive(), Stayed: map[string]int64{}, Throttled: map[Reason]time.Duration{}}
}
