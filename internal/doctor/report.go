package doctor

import (
	"slices"
	"time"

	"idemscope/internal/flow"
)

// Severity says how much a problem matters.
type Severity string

const (
	// Critical: duplicates get through, messages are lost, or answers are wrong.
	Critical Severity = "critical"
	// Warning: it holds until something else goes wrong.
	Warning Severity = "warning"
	// Info: worth knowing.
	Info Severity = "info"
)

// Severities lists all of them, the worst first.
var Severities = []Severity{Critical, Warning, Info}

// Word is the severity for people.
func (s Severity) Word() flow.Text {
	switch s {
	case Critical:
		return flow.T("critical", "严重")
	case Warning:
		return flow.T("warning", "警告")
	}
	return flow.T("info", "提示")
}

// Kind is what a check is about.
type Kind string

// The kinds of subjects.
const (
	KindMySQL    Kind = "mysql"
	KindLedger   Kind = "ledger"
	KindRedis    Kind = "redis"
	KindBroker   Kind = "broker"
	KindQueue    Kind = "queue"
	KindFlow     Kind = "flow"
	KindCounters Kind = "counters"
)

// Word is the kind for people.
func (k Kind) Word() flow.Text {
	switch k {
	case KindMySQL:
		return flow.T("MySQL", "MySQL")
	case KindLedger:
		return flow.T("ledger", "记录表")
	case KindRedis:
		return flow.T("Redis", "Redis")
	case KindBroker:
		return flow.T("broker", "消息代理")
	case KindQueue:
		return flow.T("queue", "队列")
	case KindFlow:
		return flow.T("flow", "流程")
	}
	return flow.T("consumer counters", "消费者计数器")
}

// Subject is one thing that was examined.
type Subject struct {
	Kind Kind
	// Name is the configured name; of a queue, the broker and the queue with a
	// slash between them. It may hold any bytes.
	Name string
}

// Check is what one check looks for.
type Check struct {
	// Code is stable: it is a metric label and an API value.
	Code     string
	Severity Severity
	// Title names the problem, Why says what comes of it.
	Title, Why flow.Text
	// Manual is a page of the store's vendor; empty where the matter is our own.
	Manual string
}

// Problem is one check that failed for one subject.
type Problem struct {
	Check
	Subject Subject
	// Seen is what the store shows, Fix what to do.
	Seen, Fix flow.Text
	// Command mends it, or begins to; empty when no command does.
	Command string
}

// Unsure is one check that could not be made.
type Unsure struct {
	Check
	Subject Subject
	Reason  flow.Text
}

// Passed is one check that found nothing.
type Passed struct {
	Check
	Subject Subject
}

// Report is the result of one examination.
type Report struct {
	// At is when it began, Took how long it took.
	At   time.Time
	Took time.Duration
	// Problems are sorted by severity, then by subject.
	Problems []Problem
	Unsure   []Unsure
	Fine     []Passed
}

// Count is how many problems have the severity.
func (r Report) Count(s Severity) (n int) {
	for _, p := range r.Problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Gap is one reason why checks of one subject could not be made.
type Gap struct {
	Subject Subject
	Reason  flow.Text
	Checks  []Check
}

// Gaps puts the checks that could not be made together by what prevents them.
func (r Report) Gaps() (gaps []Gap) {
	for _, u := range r.Unsure {
		i := slices.IndexFunc(gaps, func(g Gap) bool { return g.Subject == u.Subject && g.Reason == u.Reason })
		if i < 0 {
			gaps = append(gaps, Gap{Subject: u.Subject, Reason: u.Reason})
			i = len(gaps) - 1
		}
		gaps[i].Checks = append(gaps[i].Checks, u.Check)
	}
	return gaps
}

// Exit is the exit code of the command line: 1 when a problem is critical, else
// 3 when a check could not be made, else 0.
func (r Report) Exit() int {
	switch {
	case r.Count(Critical) > 0:
		return 1
	case len(r.Unsure) > 0:
		return 3
	}
	return 0
}
