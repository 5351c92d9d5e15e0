package exporter

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// Figures returns copies of the operating figures of all flows, from memory.
func (e *Exporter) Figures() answer.Figures { return e.figures.list() }

func (f *figures) list() answer.Figures {
	r := f.sources.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	out := answer.Figures{At: f.now(), Last: f.lastAt, Step: f.step}
	for _, one := range f.flows {
		out.Flows = append(out.Flows, f.flowOf(one, r))
	}
	out.Undeclared = f.undeclared(r)
	return out
}

func (f *figures) flowOf(one flow.Flow, r reading) answer.FlowFigures {
	labels := f.sources.labelsOf(one)
	out := answer.FlowFigures{Flow: one.Name, TypesCut: f.cut[one.Name], Shared: f.shared(one)}
	whole := f.series(seriesKey{flow: one.Name, whole: true})
	out.FigureSet = f.setOf(one, whole, labels, r)
	out.Backlog = answer.Line{Points: whole.copyOf(lineBacklog, f.taken), Now: r.backlog(one)}
	switch l := r.ledgers[one.Ledger]; {
	case l.outbox || l.swept:
	default:
		out.Unswept = l.up
	}
	if one.Queue != nil {
		out.Queues = queuesOf(one, r)
		out.Backlog.Why = whyBacklog(out.Queues)
	} else {
		out.Backlog.Why = flow.T("the flow names no queue", "该流程没有配置队列")
	}
	for _, label := range labels {
		if s := f.all[seriesKey{flow: one.Name, label: label}]; s != nil {
			out.Types = append(out.Types, answer.TypeFigures{BizType: label, FigureSet: f.setOf(one, s, []string{label}, r)})
		}
	}
	return out
}

// setOf makes the figures of one series. Where consumers count, they are asked;
// else the ledger, which knows of retries and durations only.
func (f *figures) setOf(one flow.Flow, s *figureSeries, labels []string, r reading) answer.FigureSet {
	why := f.whyUncounted(labels, r)
	count := func(l line) answer.Line {
		return answer.Line{Points: s.copyOf(l, f.taken), Now: math.NaN(), Why: why}
	}
	set := answer.FigureSet{
		Conflicts: count(lineConflicts), DedupStatus: count(lineDedupStatus), DedupRecord: count(lineDedupRecord),
		Retries: count(lineRetries), P99: count(lineRunP99), P99Hour: s.runs.all().quantile(),
		RetriesBy: answer.ByConsumers, P99By: answer.ByConsumers,
	}
	unread := whyUnread(one, r)
	if !why.Empty() && s.lines[lineRetries] == nil {
		set.Retries = answer.Line{Points: s.copyOf(lineLedgerRetries, f.taken), Now: math.NaN(), Why: unread}
		set.RetriesBy = answer.ByLedger
	}
	if s.lines[lineRunP99] == nil && s.lines[lineRecordP99] != nil || !why.Empty() && s.lines[lineRunP99] == nil {
		set.P99 = answer.Line{Points: s.copyOf(lineRecordP99, f.taken), Now: math.NaN(), Why: unread}
		set.P99Hour, set.P99By = s.record.all().quantile(), answer.ByLedger
	}
	set.Stale = answer.Line{Points: s.copyOf(lineStale, f.taken), Now: staleNow(r.ledgers[one.Ledger], labels), Why: unread}
	return set
}

// staleNow adds up the stale records; NaN while the ledger does not tell.
func staleNow(l ledgerRead, labels []string) float64 {
	if !l.up || !l.caughtUp || l.outbox {
		return math.NaN()
	}
	sum := 0.0
	for _, label := range labels {
		sum += l.stale[label]
	}
	return sum
}

// whyUncounted says why consumers' counts are not known; empty when they are.
func (f *figures) whyUncounted(labels []string, r reading) flow.Text {
	switch {
	case f.sources.counting == "":
		return flow.T("consumers do not count: the configuration has no counters", "消费者未计数：配置中没有 counters")
	case r.counters.polls == 0:
		return flow.T("the counters were not read yet", "尚未读取计数器")
	case !r.counters.up:
		return flow.T("the counters in redis %s cannot be read", "无法读取 redis %s 中的计数器", f.sources.counting)
	}
	for _, label := range labels {
		if r.counters.types[label].any {
			return flow.Text{}
		}
	}
	return flow.T("no consumer has counted anything of it yet", "尚无消费者为其计数")
}

// whyUnread says why the ledger's figures are not known; empty when they are.
func whyUnread(f flow.Flow, r reading) flow.Text {
	l := r.ledgers[f.Ledger]
	switch {
	case l.polls == 0:
		return flow.T("the ledger %s was not read yet", "尚未读取记录表 %s", f.Ledger)
	case !l.up:
		return flow.T("the ledger %s cannot be read", "无法读取记录表 %s", f.Ledger)
	case l.outbox:
		return flow.T("the ledger %s is a local message table, which has no such figure", "记录表 %s 是本地消息表，没有该指标", f.Ledger)
	case !l.caughtUp:
		return flow.T("older records of the ledger %s are still being read", "仍在读取记录表 %s 的较早记录", f.Ledger)
	}
	return flow.Text{}
}

// shared reports whether another flow has a biz_type of this one.
func (f *figures) shared(one flow.Flow) bool {
	for _, other := range f.flows {
		if other.Name == one.Name {
			continue
		}
		for _, bizType := range one.BizTypes {
			if slices.Contains(other.BizTypes, bizType) {
				return true
			}
		}
	}
	return false
}

func queuesOf(f flow.Flow, r reading) (all []answer.QueueFigures) {
	add := func(role string, names ...string) {
		for _, name := range names {
			if name == "" {
				continue
			}
			q := answer.QueueFigures{Broker: f.Queue.Broker, Name: name, Role: role}
			read, ok := r.queues[queueName{f.Queue.Broker, validLabel(name)}]
			switch {
			case ok:
				q.Known, q.Consumer = true, read.consumers
				q.Ready, q.Unacked, q.Delayed, q.Dead = read.states["ready"], read.states["unacked"], read.states["delayed"], read.states["dead"]
			case r.brokers[f.Queue.Broker]:
				q.Why = flow.T("the broker does not know this queue, or not its totals yet", "消息代理没有该队列，或尚无其统计")
			default:
				q.Why = flow.T("the broker %s cannot be read", "无法读取消息代理 %s", f.Queue.Broker)
			}
			all = append(all, q)
		}
	}
	add("work", f.Queue.Name)
	add("retry", f.Queue.Retry...)
	add("dead_letter", f.Queue.DeadLetter)
	return all
}

// whyBacklog is why a queue that makes the backlog is not known.
func whyBacklog(queues []answer.QueueFigures) flow.Text {
	for _, q := range queues {
		if q.Role != "dead_letter" && !q.Known {
			return q.Why
		}
	}
	return flow.Text{}
}

// undeclared lists the types that ledgers or consumers show and no flow takes.
func (f *figures) undeclared(r reading) (all []answer.UndeclaredType) {
	taken, rest := map[string]bool{}, false
	for _, one := range f.flows {
		rest = rest || one.Rest
		for _, label := range f.sources.labelsOf(one) {
			taken[label] = true
		}
	}
	for _, ledger := range slices.Sorted(maps.Keys(r.ledgers)) {
		for label, to := range f.sources.seenIn(ledger) {
			if to != "" || label == otherType {
				continue
			}
			open, ok := r.ledgers[ledger].open[label]
			all = append(all, answer.UndeclaredType{BizType: label, Ledger: ledger, Open: int64(open), OpenKnown: ok})
			taken[label] = true
		}
	}
	if !rest { // else it may be one of those that a flow takes and that has no record yet
		for label, c := range r.counters.types {
			if !taken[label] && label != otherType && c.any {
				all = append(all, answer.UndeclaredType{BizType: label})
			}
		}
	}
	slices.SortFunc(all, func(a, b answer.UndeclaredType) int {
		return cmp.Or(cmp.Compare(a.Ledger, b.Ledger), cmp.Compare(a.BizType, b.BizType))
	})
	return all
}
