package action

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/audit"
	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// Replayer moves dead-lettered messages of one broker back.
type Replayer interface {
	// Look says whether a queue is fit for it, and touches no message.
	Look(ctx context.Context, q flow.Queue) broker.DeadLetterQueue
	// Replay moves one message. An error means that nothing was published.
	Replay(ctx context.Context, o broker.ReplayOrder) (broker.ReplayReport, error)
}

// Earlier is an attempt to replay whose end the journal does not have: a copy of
// its message may be in the queue.
type Earlier struct {
	Attempt, ReplayID, Who string
	At                     time.Time
}

// checkReplay says what replaying a message would do.
func (a *Actor) checkReplay(ctx context.Context, p *Precheck) {
	seen := p.Answer
	q := seen.Flow.Queue
	if q == nil || q.DeadLetter == "" {
		p.effect(flow.LayerBroker, untouched())
		p.effect(flow.LayerRedis, untouched())
		p.effect(flow.LayerMySQL, untouched())
		p.refuse(true, "no_dead_letter_queue", flow.T("the flow names no dead-letter queue (flows.%s.queue.dead_letter)", "该流程没有配置死信队列（flows.%s.queue.dead_letter）", seen.Flow.Name))
		return
	}
	p.effect(flow.LayerBroker, flow.T("one message of this key is looked for in %s, published with the same id to the queue that it came from (%s), and removed from %s once the broker has confirmed the copy; a crash in between leaves it in both",
		"在 %[1]s 中查找该键的一条消息，以相同 ID 发布到其来源队列（%[2]s），在 Broker 确认副本之后才从 %[3]s 移除；若中途崩溃，两处都会保留", flow.Visible(q.DeadLetter), flow.Visible(q.Name), flow.Visible(q.DeadLetter)))
	p.effect(flow.LayerRedis, flow.T("nothing is changed; the consumer takes the lock as for any message", "不做更改；消费者照常获取锁"))
	p.effect(flow.LayerMySQL, flow.T("nothing is changed; the consumer runs it by its record, as any message", "不做更改；消费者照常根据记录执行"))
	p.refuse(seen.Flow.Rerun == flow.RerunNever, "rerun_never", rerunNever(seen.Flow))
	p.refuse(!q.NamesID(), "no_message_id", flow.T("the flow does not say where its messages hold the biz_id (flows.%s.queue.id)", "该流程没有声明消息中业务 ID 的位置（flows.%s.queue.id）", seen.Flow.Name))
	p.refuseCompleted()
	p.refuseRunning()
	p.unreadRedis(lockName(), seen.Lock)
	p.unreadRedis(markerName(), seen.Marker)
	p.unreadQueues()
	p.cannotTell()
	a.checkDeadLetters(ctx, p, *q)
	a.checkEarlier(ctx, p)
}

// refuseRunning refuses what a run or a marker would have dropped: the message
// would be gone from the dead letters, and lost.
func (p *Precheck) refuseRunning() {
	seen := p.Answer
	if r := p.inPhase(flow.Processing); r != nil {
		p.refuse(true, "processing", flow.T("the record says processing (%s): the consumer would refuse the message; if the run is dead, set the record back first", "记录状态为处理中（%s）：消费者会拒绝该消息；如果执行已中断，请先重置记录", whereIs(*r)))
	}
	p.refuse(p.inPhase(flow.Unmapped) != nil, "unreadable", flow.T("the record's status is none that the configuration names", "记录的状态未在配置中声明"))
	p.refuse(seen.Lock != nil && seen.Lock.State == flow.Found, "lock_held", flow.T("the lock is held: a run may go on, and the message would be refused", "锁被持有：可能仍在执行，消息会被拒绝"))
	p.refuse(seen.Marker != nil && seen.Marker.State == flow.Found, "marker_blocks", flow.T("a marker is there: the consumer would drop the message as a duplicate; clear it first", "存在标记：消费者会把该消息当作重复丢弃；请先清除标记"))
}

// checkDeadLetters asks how the queue is set up.
func (a *Actor) checkDeadLetters(ctx context.Context, p *Precheck, q flow.Queue) {
	replayer := a.options.Brokers[q.Broker]
	if replayer == nil {
		p.refuse(true, "no_credential", flow.T("no user that may replay is configured: set brokers.%s.act.amqp", "没有配置可以重放的用户：请设置 brokers.%s.act.amqp", q.Broker))
		return
	}
	if len(p.Refusals) > 0 {
		return // the broker need not be asked
	}
	dead := replayer.Look(ctx, q)
	p.unread(flow.T("queue %s", "队列 %s", flow.Visible(q.DeadLetter)), dead.Observation)
	p.refuse(dead.Refused.Code != "", dead.Refused.Code, dead.Refused.Text)
	p.Warnings = append(p.Warnings, dead.Warnings...)
	p.warn(dead.Counted && dead.Messages == 0, flow.T("by the broker's figures, which may be some seconds old, the dead-letter queue is empty", "据 Broker 统计（可能滞后几秒），死信队列为空"))
}

// checkEarlier warns of replays that may have left a copy.
func (a *Actor) checkEarlier(ctx context.Context, p *Precheck) {
	if a.options.Unfinished == nil {
		return
	}
	earlier, err := a.options.Unfinished(ctx, p.Ticket.Place)
	if err != nil {
		p.refuse(true, "audit_unreadable", flow.T("the audit file cannot be read, so whether the message was replayed before is not known: %s", "无法读取审计文件，不能得知该消息是否已重放过：%s", flow.Visible(err.Error())))
		return
	}
	for _, e := range earlier {
		p.Ticket.Earlier = append(p.Ticket.Earlier, e.Attempt)
		p.warn(true, flow.T("%s began to replay a message of this key %v ago, and its end is not known (x-replay-id %s): a copy may be in the queue already, and another replay makes a second one",
			"%s 在 %v前开始重放该键的一条消息，结果未知（x-replay-id %s）：队列中可能已有副本，再次重放会产生第二份", flow.Visible(e.Who), flow.Span(p.Answer.At.Sub(e.At)), flow.Visible(e.ReplayID)))
	}
}

// errStop ends a replay before anything is published.
type errStop struct{ Refusal }

func (e errStop) Error() string    { return e.Code }
func (e errStop) Words() flow.Text { return e.Text }

// replay does what checkReplay says.
func (a *Actor) replay(ctx context.Context, p *Precheck, t Ticket, r Result, reason string) (done, *Refusal) {
	var stopped *Refusal
	order := broker.ReplayOrder{Flow: p.Answer.Flow, Key: t.Place.Key, MessageID: t.MessageID, By: access.Of(ctx).Name}
	order.Announce = func(ctx context.Context, m broker.DeadMessage) error {
		stopped = a.announce(ctx, t, r, reason, m)
		if stopped != nil {
			return errStop{*stopped}
		}
		return nil
	}
	report, err := a.options.Brokers[p.Answer.Flow.Queue.Broker].Replay(ctx, order)
	if err != nil {
		return done{outcome: failed, code: "store_failed", why: flow.T("nothing was published: %v", "没有发布任何消息：%v", wordsOf(err))}, nil
	}
	return ofReport(report, t.MessageID, stopped)
}

// announce is asked when the message is in hand and nothing is published yet: the
// record is looked at once more, and the journal gets the replay id.
func (a *Actor) announce(ctx context.Context, t Ticket, r Result, reason string, m broker.DeadMessage) *Refusal {
	if a.options.Unfinished != nil {
		earlier, err := a.options.Unfinished(ctx, t.Place)
		if err != nil {
			return &Refusal{"audit_unreadable", flow.T("the audit file cannot be read: %s", "无法读取审计文件：%s", flow.Visible(err.Error()))}
		}
		for _, e := range earlier {
			if e.ReplayID == m.ReplayID && !slices.Contains(t.Earlier, e.Attempt) {
				return &Refusal{"replayed_before", flow.T("%s began to replay this very message, and its end is not known (x-replay-id %s): look again", "%s 已开始重放这条消息，结果未知（x-replay-id %s）：请重新查看", flow.Visible(e.Who), m.ReplayID)}
			}
		}
	}
	seen, err := a.options.Desk.Answer(ctx, t.Place)
	if err != nil {
		return &Refusal{"layer_unread", flow.T("the key could not be looked up once more: %s", "无法再次查询该键：%s", flow.Visible(err.Error()))}
	}
	p := Precheck{Kind: Replay, Answer: seen}
	p.generalRules()
	p.refuseCompleted()
	p.refuseRunning()
	p.unreadRedis(lockName(), seen.Lock)
	p.unreadRedis(markerName(), seen.Marker)
	if len(p.Refusals) > 0 {
		return &p.Refusals[0]
	}
	e := a.entry(ctx, r, reason, audit.Begun)
	e.Before = wordMessage(m)
	if err := a.options.Journal.Append(ctx, e); err != nil {
		return &Refusal{"audit_unwritable", flow.T("the attempt cannot be kept in the audit file, so nothing was changed: %s", "无法写入审计文件，因此未做任何更改：%s", flow.Visible(err.Error()))}
	}
	return nil
}

// replayMark stands before the id in the journal.
const replayMark = "x-replay-id "

// wordMessage is a dead letter for the journal.
func wordMessage(m broker.DeadMessage) string {
	text := fmt.Sprintf("%s%s: message %s of %d bytes in %s", replayMark, m.ReplayID, flow.Visible(m.MessageID), m.Bytes, flow.Visible(m.Queue))
	if m.Reason != "" {
		text += fmt.Sprintf(", dead-lettered %s (%s)", m.Died.UTC().Format(time.RFC3339), flow.Visible(m.Reason))
	}
	return text
}

// ofReport words what a replay came to.
func ofReport(report broker.ReplayReport, messageID string, stopped *Refusal) (done, *Refusal) {
	m := report.Message
	d := done{code: string(report.End)}
	if m.ReplayID != "" {
		d.before = wordMessage(m)
	}
	target := flow.Visible(m.Target)
	switch report.End {
	case broker.Moved:
		d.outcome, d.code = succeeded, "done"
		d.why = flow.T("the message was published to %s and removed from %s (x-replay-id %s)", "消息已发布到 %s，并已从 %s 移除（x-replay-id %s）", target, flow.Visible(m.Queue), m.ReplayID)
		d.after = fmt.Sprintf("%s%s: published to %s, confirmed, removed from %s", replayMark, m.ReplayID, target, flow.Visible(m.Queue))
		return d, nil
	case broker.InBoth:
		d.outcome = failed
		d.why = flow.T("the copy is in %s, but whether the dead letter was removed is not known: it may be in both (x-replay-id %s)", "副本已在 %s 中，但无法得知死信是否已移除：可能两处都有（x-replay-id %s）", target, m.ReplayID)
		return d, nil
	case broker.Unconfirmed:
		d.outcome = failed
		d.why = flow.T("the broker did not confirm the copy: it may be in %s, and the dead letter is still there (x-replay-id %s)", "Broker 没有确认副本：它可能已在 %s 中，死信仍保留（x-replay-id %s）", target, m.ReplayID)
		return d, nil
	case broker.Stopped:
		return d, stopped
	}
	return d, &Refusal{string(report.End), whyKept(report, messageID)}
}

// whyKept says why a message was left where it is.
func whyKept(report broker.ReplayReport, messageID string) flow.Text {
	target := flow.Visible(report.Message.Target)
	what := flow.T("no message of this key was found", "没有找到该键的消息")
	if messageID != "" {
		what = flow.T("the message of this key that was last dead-lettered (message id %s) was not found", "没有找到该键最近进入死信的消息（消息 ID %s）", flow.Visible(messageID))
	}
	switch report.End {
	case broker.Unroutable:
		return flow.T("there is no queue %s to take the message (%v); it stays where it is", "没有可接收该消息的队列 %s（%v）；消息保持原处", target, report.Why)
	case broker.Rejected:
		return flow.T("queue %s did not take the message, perhaps because it is full; it stays where it is", "队列 %s 没有接收该消息，可能已满；消息保持原处", target)
	case broker.Origin:
		return flow.T("the message was found, and %v; it stays where it is", "找到了消息，但%v；消息保持原处", report.Why)
	case broker.Ambiguous:
		return flow.T("a message was found that could as well be about another key, because it does not name its biz_type (flows.*.queue.type)", "找到的消息没有注明业务类型（flows.*.queue.type），也可能属于别的键")
	}
	if report.Looked < report.Total {
		return flow.T("%v: looked at the first %d of %d in the dead-letter queue; more are not looked through", "%v：已查看死信队列 %[3]d 条中的前 %[2]d 条；不再继续查找", what, report.Looked, report.Total)
	}
	return flow.T("%v: looked at all %d in the dead-letter queue", "%v：已查看死信队列中全部 %d 条", what, report.Looked)
}

// FromLog finds replays without an end in the audit file.
func FromLog(l *audit.Log) func(ctx context.Context, p flow.Place) ([]Earlier, error) {
	return func(ctx context.Context, p flow.Place) ([]Earlier, error) {
		entries, err := l.Of(ctx, p)
		if err != nil {
			return nil, err
		}
		return unfinished(slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Action != string(Replay) })), nil
	}
}

// unfinished takes entries, the latest first, and returns the attempts that named
// a message and may have left a copy of it.
func unfinished(entries []audit.Entry) (earlier []Earlier) {
	settled := map[string]bool{}
	for _, e := range entries {
		id, named := replayID(e.Before)
		switch {
		case settled[e.Attempt]:
		case e.Outcome != audit.Begun && e.Outcome != audit.Failed:
			settled[e.Attempt] = true
		case named:
			settled[e.Attempt] = true
			earlier = append(earlier, Earlier{Attempt: e.Attempt, ReplayID: id, Who: e.Who, At: e.At})
		}
	}
	return earlier
}

// replayID reads what wordMessage wrote.
func replayID(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, replayMark)
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(rest, ":")
	return id, ok
}
