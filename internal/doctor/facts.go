package doctor

import (
	"slices"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// facts are all that was found out.
type facts struct {
	mysql    []mysqlFacts
	ledgers  []ledgerFacts
	redis    []redisFacts
	brokers  []brokerFacts
	counters counterFacts
	flows    []flowFacts
}

// mysqlFacts are those of one server.
type mysqlFacts struct {
	name            string
	database        string
	declaredReplica bool
	settings        told[ledger.Settings]
	replication     told[ledger.Replication]
	grants          told[ledger.Grants]
	// act are the grants of the second user; nil without one.
	act *told[ledger.Grants]
}

// ledgerFacts are those of one ledger.
type ledgerFacts struct {
	name   string
	server mysqlFacts
	// zone is the one in which its DATETIME columns are read.
	zone *time.Location
	// flows are those that keep their records there.
	flows  []flow.Flow
	survey ledger.Survey
	types  told[typeList]
	// resettable: records can be set back at all.
	resettable bool
}

// typeList are the biz_types that stand in a ledger.
type typeList struct {
	list     []string
	complete bool
}

// redisFacts are those of one server of a store.
type redisFacts struct {
	name   string
	survey told[lockstore.ServerSurvey]
	// db is the configured number; remote and password tell of the configuration.
	db               int
	remote, password bool
	// lasting: markers or counters are kept there, so that it always has keys.
	lasting bool
	// act are the rights of the second user; nil without one.
	act *told[lockstore.Rights]
}

// brokerFacts are those of one broker.
type brokerFacts struct {
	name   string
	setUp  told[broker.SetUp]
	queues []queueFacts
}

// queueFacts are those of one queue.
type queueFacts struct {
	broker.NamedQueue
	version string
	// asked is when the broker was asked.
	asked time.Time
	is    told[broker.QueueSetUp]
	// unnamed: dead letters of this work queue may rest where no flow that reads it looks.
	unnamed bool
}

// counterFacts are those of the consumers' counters.
type counterFacts struct {
	// source is the name of their Redis; empty when none are configured.
	source string
	read   told[lockstore.Counters]
	// named are the biz_types that flows name; rest: one takes all others.
	named []string
	rest  bool
}

// flowFacts are those of one flow.
type flowFacts struct {
	flow.Flow
	catalog *flow.Catalog
	// counted: consumers count their runs. runs has those of the flow's types
	// that have run.
	counted bool
	runs    told[[]runs]
	types   told[typeList]
	// queue is the flow's work queue, deadLetter that of its dead letters; nil without one.
	queue, deadLetter *queueFacts
	retry             []queueFacts
	// keeps is how long the cleanup keeps its records; 0 when it does not.
	keeps time.Duration
}

// span is a duration that lies between two bounds; high is 0 when it has none.
type span struct{ low, high time.Duration }

// runs are the runs of one biz_type, as its consumers have counted them.
type runs struct {
	bizType      string
	number       uint64
	mean         time.Duration
	p99, longest span
}

// runsOf reads the buckets of a type; ok is false when it has never run.
func runsOf(c lockstore.TypeCounters) (r runs, ok bool) {
	for i, n := range c.Buckets {
		if n > 0 {
			r.longest = bucket(i)
		}
		r.number += n
	}
	if r.number == 0 {
		return runs{}, false
	}
	r.bizType = c.BizType
	r.mean = time.Duration(float64(c.MsSum) / float64(r.number) * float64(time.Millisecond))
	// Of fewer than a hundred runs, and beyond every bound, the P99 lies where the longest run does.
	r.p99 = r.longest
	if bound := c.P99(); bound > 0 {
		r.p99 = bucket(slices.Index(lockstore.RunBounds[:], uint64(bound.Milliseconds())))
	}
	return r, true
}

// bucket is what the i-th bucket holds.
func bucket(i int) (s span) {
	if i > 0 {
		s.low = time.Duration(lockstore.RunBounds[i-1]) * time.Millisecond
	}
	if i < len(lockstore.RunBounds) {
		s.high = time.Duration(lockstore.RunBounds[i]) * time.Millisecond
	}
	return s
}

// word is the span for people.
func (s span) word() flow.Text {
	if s.high == 0 {
		return flow.T("more than %v", "超过 %v", flow.Span(s.low))
	}
	return flow.T("between %v and %v", "%v 到 %v 之间", flow.Span(s.low), flow.Span(s.high))
}
