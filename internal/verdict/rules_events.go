package verdict

import (
	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// deadLettered: not completed, and its message was given up and not sent again.
func deadLettered(e evidence) *Verdict {
	given, ok := e.givenUp()
	if !ok || e.is(flow.Completed) || e.is(flow.Processing) || there(e.Lock) {
		return nil
	}
	v := &Verdict{
		Code: DeadLettered, Severity: Critical, Layer: flow.LayerBroker,
		Sentence: flow.T("Given up: its message went to the dead letters %v ago%v and was not published again since.",
			"已放弃：它的消息在 %v前进入死信%v，此后没有再次发布。", flow.Span(e.sinceEvent(given)), because(given)),
		Facts: e.facts(),
		Next:  []flow.Text{flow.T("Nothing: the dead-letter queue %s waits for somebody.", "不会自行恢复：死信队列 %s 在等人处理。", e.Flow.Queue.DeadLetter)},
		Advice: []flow.Text{
			flow.T("Find out why every attempt failed, and mend that first.", "先查明每次尝试失败的原因并修复。"),
			flow.T("Then send the message again with the same id.", "然后用相同的 ID 重新发送消息。"),
		},
	}
	if ours(e.Marker) {
		v.Advice = append(v.Advice, flow.T("The marker would drop it: clear it first.", "标记会丢弃该消息：请先清除标记。"))
	}
	return v
}

// because words the broker's reason for a dead letter, if it gave one.
func because(given flow.Event) flow.Text {
	if given.Outcome == "" {
		return flow.Text{}
	}
	return flow.T(" (%s)", "（%s）", flow.Visible(given.Outcome))
}

// retryScheduled: failed, given back, and not received again since.
func retryScheduled(e evidence) *Verdict {
	step, ok := last(e.Trail, flow.GivenBack, flow.Acked, flow.Received)
	if !e.is(flow.Failed) || !ok || step.Kind != flow.GivenBack || !e.Trail.Covers(step.At) || !e.couldHold() {
		return nil
	}
	return &Verdict{
		Code: RetryScheduled, Severity: Info, Layer: flow.LayerNone,
		Sentence: flow.T("The run failed; its message was given back %v ago and waits for its next attempt.",
			"执行失败；它的消息在 %v前被退回，正在等待下一次尝试。", flow.Span(e.sinceEvent(step))),
		Facts: e.facts(),
		Next:  []flow.Text{flow.T("It is delivered again and may run: a failed record lets it.", "它会再次投递并可以执行：失败的记录允许重试。")},
	}
}

// lostUnrecorded: messages of the key are known to have been there, no record
// shows a run, and no queue holds one.
func lostUnrecorded(e evidence) *Verdict {
	ev, ok := e.told()
	if !ok || !e.noTrace() || !e.brokerEmpty() || !e.olderThanTotals(e.sinceEvent(ev), true) {
		return nil
	}
	v := &Verdict{
		Code: LostSuspected, Severity: Critical, Layer: flow.LayerBroker, Facts: e.facts(),
		Next: []flow.Text{flow.T("Nothing, unless the sender publishes it again.", "不会自行恢复，除非发送方重新发布。")},
		Advice: []flow.Text{
			flow.T("Find out in the business data whether the effect happened: a consumer that acks before it writes leaves this picture, and so does a record that was deleted.",
				"在业务数据中确认操作是否生效：先确认（ack）后写入的消费者会留下这样的状态，被删除的记录也会。"),
			flow.T("Check that the queue is bound to the exchange and drops nothing (message TTL, length limit, no dead-letter target).",
				"检查队列是否绑定到该交换机，且没有丢弃消息（消息 TTL、长度上限、无死信目标）。"),
			flow.T("If the effect did not happen, publish it again with the same id.", "若未生效，用相同的 ID 重新发布。"),
		},
	}
	ago := flow.Span(e.sinceEvent(ev))
	sent, published := e.published()
	switch {
	case e.runs().done > 0:
		v.Layer = flow.LayerMySQL
		v.Sentence = flow.T("Possibly lost: consumers report a completed run, but there is no record of it: it was rolled back, or deleted. The last step was %v ago.",
			"疑似丢失：消费者报告执行已完成，但没有对应的记录：可能已回滚或被删除。最近一步在 %v前。", ago)
	case published && e.untouchedSince(sent.At):
		v.Sentence = flow.T("Possibly lost: it was published %v ago, no consumer has received it since, and no queue of the flow holds a message.",
			"疑似丢失：它在 %v前已发布，此后没有消费者收到它，流程的队列中也没有消息。", ago)
	default:
		v.Sentence = flow.T("Possibly lost: a message of this key was there %v ago, but no record shows a run and no queue of the flow holds a message.",
			"疑似丢失：该键的消息在 %v前还在，但没有记录表明执行过，流程的队列中也没有消息。", ago)
	}
	return v
}

// waiting: it was published, no consumer has received it, and its queue holds
// messages.
func waiting(e evidence) *Verdict {
	sent, ok := e.published()
	if !ok || !e.noTrace() || !e.untouchedSince(sent.At) || e.Broker == nil || e.Broker.Total(broker.RoleWork) == 0 {
		return nil
	}
	v := &Verdict{
		Code: Waiting, Severity: OK, Layer: flow.LayerNone,
		Sentence: flow.T("Waiting: it was published %v ago and no consumer has received it yet.", "等待中：它在 %v前发布，还没有消费者收到它。", flow.Span(e.sinceEvent(sent))),
		Facts:    e.facts(),
		Next:     []flow.Text{flow.T("It is delivered in its turn.", "会按顺序投递。")},
	}
	return e.withoutConsumers(v)
}

// withoutConsumers turns a verdict about a waiting message into a warning when
// nobody reads its queue.
func (e evidence) withoutConsumers(v *Verdict) *Verdict {
	for _, q := range e.Broker.Queues {
		if q.Role == broker.RoleWork && q.State == flow.Found && q.Consumers == 0 {
			v.Severity, v.Layer = Warning, flow.LayerBroker
			v.Next = []flow.Text{flow.T("Nothing: queue %s has no consumer.", "不会自行恢复：队列 %s 没有消费者。", q.Name)}
			v.Advice = []flow.Text{flow.T("Start the consumers of queue %s.", "启动队列 %s 的消费者。", q.Name)}
		}
	}
	return v
}

// archived: its completed record was moved by the cleanup.
func archived(e evidence) *Verdict {
	if !e.archivedAway() {
		return nil
	}
	return &Verdict{
		Code: Archived, Severity: OK, Layer: flow.LayerNone,
		Sentence: flow.T("It ran once, completed, and its record was archived.", "已执行一次并完成，记录已被归档。"),
		Facts:    e.facts(),
		Next: []flow.Text{flow.T("Nothing stops a further delivery but a marker: the ledger no longer knows this key.",
			"除标记外没有什么能拦下再次投递：账本中已没有这个键。")},
	}
}

// archivedAway: the ledger was read and does not hold the key; its archive does.
func (e evidence) archivedAway() bool {
	return e.notBegun() && len(e.exact) == 0 && e.Record.Archive != nil && e.Record.Archive.State == flow.Found
}

// ranAgain: a record was archived as completed, and the key was run once more.
func (e evidence) ranAgain() bool {
	if e.Record.Archive == nil || e.Record.Archive.State != flow.Found || !e.is(flow.Completed) {
		return false
	}
	for _, old := range e.Record.Archive.Rows {
		// A copy of the very row that is still there was made by a cleanup that
		// has not deleted it yet.
		if old.Phase == flow.Completed && (old.ID == "" || old.ID != e.row.ID) {
			return true
		}
	}
	return false
}
