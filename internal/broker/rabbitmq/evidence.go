package rabbitmq

import (
	"context"
	"slices"
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// statisticsAge bounds how old a total may be. A queue reports its numbers every
// 5 s (collect_statistics_interval, and the tick of quorum queues), and the
// management plugin collects what was reported every 5 s. Measured on 3.10.8
// with both at their defaults: up to 10.7 s, for classic and quorum queues
// alike. One more interval is for a busy broker. A longer interval in the
// broker's configuration cannot be seen from here.
const statisticsAge = 15 * time.Second

// Evidence says what the queues of a flow show about a key. Totals find no key:
// the state is Absent when the flow's queues are known to be empty and no other
// queue can hold a message of the flow, Error when no queue could be read, else
// Unknown, with the counts or the gap as the reason.
func (b *Broker) Evidence(ctx context.Context, q flow.Queue) broker.Evidence {
	start := time.Now()
	queues := b.Queues(ctx, named(q))
	e := broker.Evidence{Queues: queues, StatisticsAge: statisticsAge, Observation: flow.Observation{
		Source: b.source(),
		ReadAt: time.Now(),
		Took:   time.Since(start),
	}}
	var names []string
	for _, one := range queues {
		names = append(names, one.Name)
	}
	e.Command = b.command(names...)
	judge(&e, q)
	return e
}

// named lists the queues of a flow, each once, in the role that stands first.
func named(q flow.Queue) []broker.NamedQueue {
	var queues []broker.NamedQueue
	add := func(role broker.Role, names ...string) {
		for _, name := range names {
			if !slices.ContainsFunc(queues, func(known broker.NamedQueue) bool { return known.Name == name }) {
				queues = append(queues, broker.NamedQueue{Name: name, Role: role})
			}
		}
	}
	add(broker.RoleWork, q.Name)
	add(broker.RoleRetry, q.Retry...)
	if q.DeadLetter != "" {
		add(broker.RoleDeadLetter, q.DeadLetter)
	}
	return queues
}

// judge sets the state of e by what its queues show.
func judge(e *broker.Evidence, q flow.Queue) {
	if reasons, all := failures(e.Queues); all {
		e.State = flow.Error
		e.Reason = joined(reasons)
		return
	}
	e.Coverage = []flow.Text{flow.T("only the totals of the flow's queues were read; no message was looked at", "只读取了该流程各队列的总数，没有查看任何消息")}
	if reasons := openQuestions(e, q); len(reasons) > 0 {
		e.State = flow.Unknown
		e.Reason = joined(reasons)
		return
	}
	e.State = flow.Absent
	e.Coverage = append(e.Coverage, flow.T("not looked at: other queues, and messages on their way to a queue", "未查看：其他队列，以及正在前往队列途中的消息"))
}

// failures lists each distinct reason why queues could not be read. all: none
// could.
func failures(queues []broker.Queue) (reasons []flow.Text, all bool) {
	for _, q := range queues {
		if q.State != flow.Error {
			return nil, false
		}
		if !slices.Contains(reasons, q.Reason) {
			reasons = append(reasons, q.Reason)
		}
	}
	return reasons, true
}

// openQuestions lists all that keeps the queues from being known to be empty.
func openQuestions(e *broker.Evidence, flowQueue flow.Queue) []flow.Text {
	var open []flow.Text
	work, retry, dead := e.Total(broker.RoleWork), e.Total(broker.RoleRetry), e.Total(broker.RoleDeadLetter)
	if sum := work + retry + dead; sum > 0 {
		open = append(open, flow.T("%d messages are in the flow's queues (work %d, retry %d, dead letter %d); whose they are, totals do not tell",
			"该流程的队列中有 %d 条消息（工作 %d，重试 %d，死信 %d）；仅凭总数无法得知属于谁", sum, work, retry, dead))
	}
	for _, q := range e.Queues {
		name := flow.Visible(q.Name)
		switch {
		case q.State == flow.Absent:
			open = append(open, flow.T("there is no queue %s, so its messages may be in a queue with another name", "没有队列 %s，消息可能在其他名称的队列中", name))
		case q.State != flow.Found:
			open = append(open, flow.T("queue %s: %s", "队列 %s：%s", name, q.Reason))
		case !q.DeadLetterExchange:
		case q.Role == broker.RoleWork && flowQueue.DeadLetter == "":
			open = append(open, flow.T("queue %s passes rejected and expired messages on, and the flow names no dead_letter queue", "队列 %s 会转发被拒绝和过期的消息，而该流程没有配置 dead_letter 队列", name))
		case q.Role == broker.RoleDeadLetter:
			open = append(open, flow.T("the dead-letter queue %s passes messages on; if they come back, name it under retry", "死信队列 %s 会继续转发消息；如果消息会返回，请将其配置在 retry 中", name))
		}
	}
	return open
}

func joined(texts []flow.Text) flow.Text {
	var en, zh []string
	for _, t := range texts {
		en, zh = append(en, t.EN), append(zh, t.ZH)
	}
	return flow.Text{EN: strings.Join(en, "; "), ZH: strings.Join(zh, "；")}
}
