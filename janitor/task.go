package janitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Session is one connection that holds the lease of one table; see ledger.SweepSession.
type Session interface {
	Next(ctx context.Context, within ledger.Range, limit int, cutoff time.Time) (ledger.SweepBatch, error)
	Sweep(ctx context.Context, b ledger.SweepBatch, cutoff time.Time) (ledger.SweepBatch, error)
	Tell(ctx context.Context, b ledger.SweepBatch, cutoff time.Time) (ledger.SweepBatch, error)
	Settle(ctx context.Context, u *ledger.Unsettled, cutoff time.Time) (committed bool, err error)
	CheckShape(ctx context.Context) error
	Load(ctx context.Context) (ledger.Load, error)
	Close()
	Abandon()
}

// Replica is a server that must keep up.
type Replica interface {
	Name() string
	// Lag is how far it is behind; not being told is an error.
	Lag(ctx context.Context) (time.Duration, error)
}

// Broker tells how queues are set up and what they hold.
type Broker interface {
	SetUp(ctx context.Context, named []broker.NamedQueue) (broker.SetUp, error)
}

// Task cleans the tables of one ledger.
type Task struct {
	// Name and Ledger are those of the configuration. Mandatory.
	Name, Ledger string
	// Tables are those of the ledger, cleaned one after the other. Mandatory.
	Tables []*ledger.SweepTable
	// Open takes the lease of a table. Nil when there is no user that may delete:
	// then the task can be planned only.
	Open func(ctx context.Context, t *ledger.SweepTable) (Session, error)
	// Retain is for how long after its last change a completed record stays. Mandatory.
	Retain time.Duration
	// Batch is how many rows a transaction looks at, at most. Mandatory.
	Batch int
	// Window is when the schedule may run, and Enabled whether it does.
	Window  Window
	Enabled bool
	// RunTime and Rows end a run; 0 means without such a limit.
	RunTime time.Duration
	Rows    int64
	// StopFile is a path; as long as the file exists, nothing is cleaned. May be empty.
	StopFile string
	// Flows are those of the ledger: their locks and markers must not outlive the records.
	Flows []flow.Flow
	// Brokers by the names that queues of the flows have for theirs.
	Brokers map[string]Broker
	// AllowDeadLetters names queues that may hold dead letters, or be unreadable.
	AllowDeadLetters []string
	// ExpectSchema is what SweepTable.Fingerprint has to be; empty for anything.
	ExpectSchema string
	// MaxGrowth is how many times the largest of the last runs a run may be; 0 means any.
	MaxGrowth int
	Limits    Limits
}

// Limits say when a sweep has to wait.
type Limits struct {
	Replicas      []Replica
	MaxReplicaLag time.Duration
	// MaxThreadsRunning and MaxHistoryLength: 0 means no limit.
	MaxThreadsRunning, MaxHistoryLength int
	// Query and HTTP are nil without such a check.
	Query *Query
	HTTP  *Gate
	// Critical ends a run instead of holding it up.
	Critical Critical
	// Duty is the part of the time in which a sweep works, 1 to 100 percent; 0 means
	// 50: as much pause as work.
	Duty int
}

// Critical are limits that end a run at once; 0 means no such limit.
type Critical struct {
	ThreadsRunning, HistoryLength int
	ReplicaLag                    time.Duration
}

// rest is how long a sweep pauses after a batch that took so long.
func (l Limits) rest(took time.Duration) time.Duration {
	duty := time.Duration(l.Duty)
	if duty == 0 {
		duty = 50
	}
	return took * (100 - duty) / duty
}

// server is what the configuration calls the server of the task.
func (t *Task) server() string { return t.Tables[0].Server() }

// archives reports whether rows are kept elsewhere.
func (t *Task) archives() bool { return t.Tables[0].Archive() != "" }

// action is the word for what happens to the rows.
func (t *Task) action() string {
	if t.archives() {
		return "archive"
	}
	return "delete"
}

// Janitor plans and runs tasks. Its methods are safe for concurrent use; the lease
// of a table sees to it that only one sweep works on it.
type Janitor struct {
	tasks   []Task
	metrics *Metrics
	log     *slog.Logger
	board   board
	history *History // nil without a file
	// acceptSize: a plan that is implausibly large is not refused.
	acceptSize bool
	// kept are the entries of this process, lastOf how the last run of each task ended.
	keptMu sync.Mutex
	kept   []Entry
	lastOf map[string]ending

	now   func() time.Time
	pause func(ctx context.Context, d time.Duration)
	// probe is the time between two looks at the server's load, patience how long
	// a sweep waits at a stretch before it gives up.
	probe, patience time.Duration
}

const (
	probeEvery = time.Second
	patience   = 5 * time.Minute
)

// Options describe a janitor.
type Options struct {
	// Tasks may be empty.
	Tasks []Task
	// Metrics and Logger are mandatory.
	Metrics *Metrics
	Logger  *slog.Logger
	// History keeps what runs did; nil keeps it in memory only.
	History *History
	// AcceptSize: somebody has seen how large the run is, and wants it.
	AcceptSize bool
}

// New checks the options and makes the series of every task.
func New(o Options) (*Janitor, error) {
	if o.Metrics == nil || o.Logger == nil {
		return nil, errors.New("a janitor needs metrics and a logger")
	}
	for _, t := range o.Tasks {
		if t.Name == "" || len(t.Tables) == 0 || t.Retain <= 0 || t.Batch <= 0 {
			return nil, fmt.Errorf("cleanup task %q needs a name, tables, a retention and a batch size", t.Name)
		}
	}
	o.Metrics.declare(o.Tasks)
	return &Janitor{
		tasks: o.Tasks, metrics: o.Metrics, log: o.Logger, history: o.History, acceptSize: o.AcceptSize, lastOf: map[string]ending{},
		now: time.Now, pause: sleep, probe: probeEvery, patience: patience,
	}, nil
}

// Tasks lists the names of the tasks, in the order of the configuration.
func (j *Janitor) Tasks() []string {
	names := make([]string, len(j.tasks))
	for i, t := range j.tasks {
		names[i] = t.Name
	}
	return names
}

// task finds a task by its name.
func (j *Janitor) task(name string) (*Task, error) {
	for i := range j.tasks {
		if j.tasks[i].Name == name {
			return &j.tasks[i], nil
		}
	}
	return nil, fmt.Errorf("there is no cleanup task %q", name)
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
