package doctor

import (
	"slices"

	"idemscope/internal/flow"
)

// told is what a store said, or why it did not.
type told[T any] struct {
	is  T
	why flow.Text
}

// outcome is what one check comes to for one subject.
type outcome struct {
	state     state
	seen, fix flow.Text
	command   string
}

// state is how a check ended. The zero value is that it does not apply.
type state int

const (
	notApplicable state = iota
	passed
	failed
	untold
)

// skip: the check says nothing about this subject.
func skip() []outcome { return nil }

// fine: the check found nothing.
func fine() []outcome { return []outcome{{state: passed}} }

// unsure: a store did not tell what the check needs.
func unsure(why flow.Text) []outcome { return []outcome{{state: untold, seen: why}} }

// bad: the check found something. command may be empty.
func bad(seen, fix flow.Text, command string) []outcome {
	return []outcome{{state: failed, seen: seen, fix: fix, command: command}}
}

// when is bad if the condition holds, else fine.
func when(condition bool, seen, fix flow.Text, command string) []outcome {
	if condition {
		return bad(seen, fix, command)
	}
	return fine()
}

// worst judges each of the list and keeps the first that fails, else one that
// cannot be told, else one that is fine.
func worst[T any](list []T, judge func(T) []outcome) (result []outcome) {
	for _, one := range list {
		found := judge(one)
		switch {
		case len(found) == 0:
		case found[0].state == failed:
			return found
		case len(result) == 0 || found[0].state == untold:
			result = found
		}
	}
	return result
}

// given judges what was told.
func given[T any](t told[T], judge func(T) []outcome) []outcome {
	if !t.why.Empty() {
		return unsure(t.why)
	}
	return judge(t.is)
}

// rule is one check over facts of one kind.
type rule[F any] struct {
	Check
	judge func(F) []outcome
}

// apply judges one subject by all rules.
func apply[F any](r *Report, subject Subject, rules []rule[F], facts F) {
	for _, one := range rules {
		for _, o := range one.judge(facts) {
			switch o.state {
			case passed:
				r.Fine = append(r.Fine, Passed{one.Check, subject})
			case untold:
				r.Unsure = append(r.Unsure, Unsure{one.Check, subject, o.seen})
			case failed:
				r.Problems = append(r.Problems, Problem{one.Check, subject, o.seen, o.fix, o.command})
			}
		}
	}
}

// judge makes the report. It does no I/O.
func judge(f facts) Report {
	var r Report
	for _, m := range f.mysql {
		apply(&r, Subject{KindMySQL, m.name}, mysqlRules, m)
	}
	for _, l := range f.ledgers {
		apply(&r, Subject{KindLedger, l.name}, ledgerRules, l)
	}
	for _, s := range f.redis {
		apply(&r, Subject{KindRedis, s.name}, redisRules, s)
	}
	for _, b := range f.brokers {
		apply(&r, Subject{KindBroker, b.name}, brokerRules, b)
		for _, q := range b.queues {
			apply(&r, Subject{KindQueue, b.name + "/" + q.Name}, queueRules, q)
		}
	}
	apply(&r, Subject{KindCounters, f.counters.source}, counterRules, f.counters)
	for _, one := range f.flows {
		apply(&r, Subject{KindFlow, one.Name}, flowRules, one)
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return slices.Index(Severities, a.Severity) - slices.Index(Severities, b.Severity)
	})
	return r
}

// Checks lists every check, each once.
func Checks() (all []Check) {
	all = appendChecks(all, mysqlRules)
	all = appendChecks(all, ledgerRules)
	all = appendChecks(all, redisRules)
	all = appendChecks(all, brokerRules)
	all = appendChecks(all, queueRules)
	all = appendChecks(all, counterRules)
	return appendChecks(all, flowRules)
}

func appendChecks[F any](all []Check, rules []rule[F]) []Check {
	for _, r := range rules {
		all = append(all, r.Check)
	}
	return all
}
