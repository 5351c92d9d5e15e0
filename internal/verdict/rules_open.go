package verdict

import (
	"slices"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// stuckOnRedis: a key in Redis turns away every run, and no run is in progress.
func stuckOnRedis(e evidence) *Verdict {
	v := &Verdict{Code: Stuck, Severity: Critical, Layer: flow.LayerRedis, Facts: e.facts()}
	switch {
	case e.lockForEver() && !e.is(flow.Completed) && !e.fresh():
		v.Sentence = flow.T("Stuck: the lock has no TTL, so it never expires, and no run is in progress.", "卡住：锁没有 TTL，永不过期，而且没有正在进行的执行。")
		v.Next = []flow.Text{flow.T("Nothing: every delivery is refused by the lock until somebody removes it.", "不会自行恢复：在有人删除该锁之前，每次投递都会被锁拒绝。")}
		v.Advice = []flow.Text{
			flow.T("Make sure that no consumer works on it, then delete the lock only if its value is still the one shown here.", "先确认没有消费者在处理它，然后仅当锁的值仍与此处所示一致时才删除。"),
			flow.T("Set the lock and its TTL in one command: SET key token NX EX seconds.", "用一条命令同时设置锁和 TTL：SET key token NX EX seconds。"),
		}
	case e.lockOutlivedRun() && !ours(e.Marker):
		v.Sentence = flow.T("Stuck: the run failed, but its lock was not given back and refuses every retry.", "卡住：执行失败了，但锁没有释放，会拒绝每次重试。")
		v.Next = []flow.Text{e.lockExpires()}
		v.Advice = []flow.Text{
			flow.T("Delete the lock only if its value is still the one shown here, then let the message come again.", "仅当锁的值仍与此处所示一致时才删除，再让消息重新投递。"),
			flow.T("The consumer should give back its lock when a run fails.", "消费者在执行失败时应释放锁。"),
		}
	case ours(e.Marker) && e.is(flow.Failed):
		v.Sentence = flow.T("Stuck: the run failed, but %v and turns away every retry.", "卡住：执行失败了，但%v，会挡掉每次重试。", e.markerSays())
		v.Next = []flow.Text{e.markerExpires()}
		v.Advice = []flow.Text{
			flow.T("Clear the marker, then let the message come again.", "清除标记，再让消息重新投递。"),
			flow.T("The consumer should delete its marker when a run fails.", "消费者在执行失败时应删除标记。"),
		}
		if !e.markerInProgress() {
			v.Advice = slices.Insert(v.Advice, 0, flow.T("Record and marker contradict each other: find out in the business data whether the effect happened; if it did, do not let it run again.",
				"记录与标记互相矛盾：请在业务数据中确认操作是否已生效；若已生效，不要再次执行。"))
		}
	case ours(e.Marker) && e.notBegun() && !there(e.Lock) && !e.brokerEmpty() && !e.markerYoung():
		v.Sentence = flow.T("Stuck: %v, but no record shows a run; every delivery is dropped while the marker lives.",
			"卡住：%v，但没有任何记录表明执行过；标记存在期间每次投递都会被丢弃。", e.markerSays())
		v.Next = []flow.Text{e.markerExpires()}
		v.Advice = []flow.Text{
			flow.T("Find out in the business data whether the effect happened.", "在业务数据中确认该操作是否真的生效。"),
			flow.T("If it did not: clear the marker and publish the message again.", "若未生效：清除标记并重新发布消息。"),
		}
	default:
		return nil
	}
	return v
}

// markerYoung: the marker may belong to a run that has only just begun.
func (e evidence) markerYoung() bool {
	age, known := e.markerAge()
	return known && age <= acquireTime
}

// stuckOnRecord: in processing, silent for too long, and nobody holds the lock.
func stuckOnRecord(e evidence) *Verdict {
	if !e.silent() || there(e.Lock) {
		return nil
	}
	v := &Verdict{
		Code: Stuck, Severity: Critical, Layer: flow.LayerMySQL,
		Sentence: flow.T("Stuck: processing without a sign of life for %v (allowed: %v), and nobody holds the lock.",
			"卡住：处理中已 %v 没有动静（允许 %v），且没有人持有锁。", flow.Span(e.row.Age), flow.Span(e.Flow.StaleAfter)),
		Facts: e.facts(),
		Next:  []flow.Text{e.nextDelivery()},
		Advice: []flow.Text{
			flow.T("Check that no consumer still works on it: its lock may have expired under it.", "确认没有消费者仍在处理它：它的锁可能已在执行中过期。"),
			flow.T("Find out whether the effect happened; the run may have died before or after it.", "查明操作是否已生效；执行可能在生效之前或之后中断。"),
			e.rerunAdvice(),
		},
	}
	if ours(e.Marker) && e.Flow.Rerun != flow.RerunNever {
		v.Advice = append(v.Advice, flow.T("Clear the marker as well, or it drops that message too.", "同时清除标记，否则那条消息也会被丢弃。"))
	}
	return v
}

func (e evidence) rerunAdvice() flow.Text {
	if e.Flow.Rerun == flow.RerunNever {
		return flow.T("This flow must not run twice (rerun: never): settle it by hand in the business data.", "该流程禁止重跑（rerun: never）：请在业务数据中人工处理。")
	}
	return flow.T("If it did not happen: set the record back to failed, only if status and time are still those shown here, and send the message again.",
		"若未生效：仅当状态和时间仍与此处所示一致时，将记录改回失败，再重新发送消息。")
}

// nextDelivery says what turns the next delivery away: the marker stands before
// the record.
func (e evidence) nextDelivery() flow.Text {
	if ours(e.Marker) {
		return e.markerExpires()
	}
	return e.secondDelivery()
}

// secondDelivery says what the next delivery will do with an open record.
func (e evidence) secondDelivery() flow.Text {
	switch e.Flow.OnProcessing {
	case flow.Retry:
		return flow.T("The next delivery meets the open record, gives the message back, and it comes again and again.", "下一次投递会遇到未完成的记录并退回消息，反复投递。")
	case flow.Resume:
		return flow.T("The next delivery takes the record over and runs.", "下一次投递会接管该记录并执行。")
	}
	return flow.T("The next delivery is refused by the unique key, acked, and lost.", "下一次投递会被唯一键拒绝、确认（ack）并丢失。")
}

// lostBehindMarker: a marker, no record, and nothing left to deliver.
func lostBehindMarker(e evidence) *Verdict {
	age, known := e.markerAge()
	if !ours(e.Marker) || !e.notBegun() || there(e.Lock) || !e.brokerEmpty() || known && !e.olderThanTotals(age, known) {
		return nil
	}
	return &Verdict{
		Code: LostSuspected, Severity: Critical, Layer: flow.LayerRedis,
		Sentence: flow.T("Possibly lost: %v, but there is no record and no message left, so nothing proves the effect.",
			"疑似丢失：%v，但没有记录，也没有剩余消息，无法证明操作已生效。", e.markerSays()),
		Facts: e.facts(),
		Next:  []flow.Text{e.markerExpires()},
		Advice: []flow.Text{
			flow.T("Find out in the business data whether the effect happened.", "在业务数据中确认该操作是否真的生效。"),
			flow.T("If it did not: clear the marker first, then publish again; while the marker lives a new message is dropped.",
				"若未生效：先清除标记再重新发布；标记存在期间新消息会被丢弃。"),
		},
	}
}

// lostByBroker: failed, and the broker is known to hold nothing to retry with.
func lostByBroker(e evidence) *Verdict {
	if !e.is(flow.Failed) || there(e.Lock) || !e.brokerEmpty() || !e.olderThanTotals(e.row.Age, e.row.AgeKnown) {
		return nil
	}
	return &Verdict{
		Code: LostSuspected, Severity: Critical, Layer: flow.LayerBroker,
		Sentence: flow.T("Possibly lost: the run failed and no queue of the flow holds a message, so nothing will retry it.",
			"疑似丢失：执行失败，而流程的所有队列都没有消息，不会再有重试。"),
		Facts: e.facts(),
		Next:  []flow.Text{flow.T("Nothing, unless the sender publishes it again.", "不会自行恢复，除非发送方重新发布。")},
		Advice: []flow.Text{
			flow.T("If retries wait somewhere that is no queue (a delayed-message exchange, a timer of the consumer's own), look there first.",
				"如果重试等待在队列之外（延迟消息交换机、消费者自己的定时器），先到那里查看。"),
			flow.T("Publish the message again with the same id: a failed record lets it run.", "用相同 ID 重新发布消息：失败的记录允许再次执行。"),
			flow.T("Check whether the consumer acks failed messages, or the queue drops them (no dead-letter target, delivery limit, message TTL).",
				"检查消费者是否确认（ack）了失败的消息，或队列丢弃了它们（无死信目标、投递次数上限、消息 TTL）。"),
		},
	}
}

// failedUnplaced: failed, and where its message is cannot be told from totals.
func failedUnplaced(e evidence) *Verdict {
	if !e.is(flow.Failed) {
		return nil
	}
	v := &Verdict{
		Code: FailedUnplaced, Severity: Warning, Layer: flow.LayerBroker, Facts: e.facts(),
		Next: []flow.Text{flow.T("If its message is among those that wait, it runs again when it is delivered.", "若它的消息就在等待的消息中，再次投递时会重新执行。")},
		Advice: []flow.Text{
			flow.T("If it stays failed after the queues have been worked off, look for it in the dead-letter queue.", "若队列消化完后仍为失败，请到死信队列中查找。"),
		},
	}
	if e.Broker == nil {
		v.Sentence = flow.T("The run failed; the flow names no queue, so where its message is cannot be said.", "执行失败；该流程没有配置队列，无法得知消息在哪里。")
		v.Advice = []flow.Text{flow.T("Name the queue in flows.%s.queue to see whether a retry waits.", "在 flows.%s.queue 中配置队列，以便查看是否有重试在等待。", e.Flow.Name)}
		return v
	}
	if e.waitingMessages() == 0 {
		v.Sentence = flow.T("The run failed and no queue holds a message, but a lock is held: a retry may have just begun.", "执行失败，队列中没有消息，但锁被持有：可能刚开始重试。")
		v.Next = []flow.Text{e.lockExpires()}
		v.Advice = []flow.Text{flow.T("Look again when the lock has expired.", "待锁过期后再查。")}
		return v
	}
	if !e.couldHold() {
		v.Next = []flow.Text{nobodyDelivers()}
		v.Advice = []flow.Text{flow.T("Look for it in the dead-letter queue; mend the cause, then send it again with the same id.", "到死信队列中查找；修复原因后用相同的 ID 重新发送。")}
	}
	v.Sentence = flow.T("The run failed; its message may be one of those in the queues (work %d, retry %d, dead letter %d), but which is unknown.",
		"执行失败；它的消息可能在队列中（工作 %d，重试 %d，死信 %d），但无法得知是哪一条。",
		e.Broker.Total(broker.RoleWork), e.Broker.Total(broker.RoleRetry), e.Broker.Total(broker.RoleDeadLetter))
	return v
}

// running: in processing, with a lock or fresh enough to need none.
func running(e evidence) *Verdict {
	v := &Verdict{Code: Running, Severity: OK, Layer: flow.LayerNone, Facts: e.facts(), Next: []flow.Text{e.lockExpires()}}
	switch {
	case e.is(flow.Processing) && e.lockHeld():
		v.Sentence = flow.T("Running: the record is processing and the lock is held.", "正在执行：记录处于处理中，且锁被持有。")
	case e.fresh():
		v.Sentence = flow.T("Running: the record began processing %v ago, less than the %v that this flow allows.",
			"正在执行：记录于 %v前进入处理中，未超过该流程允许的 %v。", flow.Span(e.row.Age), flow.Span(e.Flow.StaleAfter))
	case e.notBegun() && e.Record.ByPresence && e.lockHeld():
		v.Sentence = flow.T("Running: the lock is held; this table gets its row only when the run ends.", "正在执行：锁被持有；该表在执行结束时才会写入行。")
	default:
		return nil
	}
	return v
}

// acquiring: the lock or marker was set a moment ago and the record does not show yet.
func acquiring(e evidence) *Verdict {
	lockAge, lockKnown := e.lockAge()
	young := e.lockHeld() && lockKnown && lockAge <= acquireTime || ours(e.Marker) && e.markerYoung()
	if !e.notBegun() || !young {
		return nil
	}
	return &Verdict{
		Code: Acquiring, Severity: OK, Layer: flow.LayerNone,
		Sentence: flow.T("A run is just beginning: Redis is set, and the record does not show yet.", "执行刚刚开始：Redis 已设置，记录尚未出现。"),
		Facts:    e.facts(),
		Next:     []flow.Text{flow.T("The record appears within seconds; look again.", "记录会在数秒内出现；请稍后再看。")},
	}
}

// maybeWaiting: no trace, but messages wait that could be this one.
func maybeWaiting(e evidence) *Verdict {
	if !e.noTrace() || e.waitingMessages() == 0 {
		return nil
	}
	v := &Verdict{
		Code: MaybeWaiting, Severity: Info, Layer: flow.LayerBroker,
		Sentence: flow.T("No trace of a run; this could be among the messages that wait in the flow's queues (%d).",
			"没有执行的痕迹；流程队列中有 %d 条消息在等待，它可能是其中之一。", e.waitingMessages()),
		Facts: e.facts(),
		Next:  []flow.Text{flow.T("If it waits, it is delivered in its turn.", "若在等待，会按顺序投递。")},
	}
	if !e.couldHold() {
		v.Next = []flow.Text{nobodyDelivers()}
		v.Advice = []flow.Text{flow.T("Look for it in the dead-letter queue.", "到死信队列中查找。")}
		return v
	}
	return e.withoutConsumers(v)
}

// nobodyDelivers: only dead letters are there.
func nobodyDelivers() flow.Text {
	return flow.T("Nothing: a dead letter waits until somebody sends it again.", "不会自行恢复：死信会一直等到有人重新发送。")
}

// noTrace: the ledger and Redis were read, and neither shows the key.
func (e evidence) noTrace() bool {
	return e.notBegun() && (e.Lock == nil || e.Lock.State == flow.Absent) && (e.Marker == nil || e.Marker.State == flow.Absent)
}

// neverSeen: no trace, and nothing waits.
func neverSeen(e evidence) *Verdict {
	_, told := e.told()
	if !e.noTrace() || told || e.Broker != nil && !e.brokerEmpty() {
		return nil
	}
	v := &Verdict{
		Code: NeverSeen, Severity: Info, Layer: flow.LayerNone,
		Sentence: flow.T("Never seen: no record, no lock, no marker, and the flow's queues are empty.", "从未出现：没有记录、没有锁、没有标记，流程的队列也是空的。"),
		Facts:    e.facts(),
		Advice: []flow.Text{
			flow.T("Check the spelling of the id and the biz_type, byte by byte.", "逐字节核对 ID 和业务类型的写法。"),
			flow.T("This does not prove that it was never published: a record that was cleaned up and a message that was acked leave the same picture.",
				"这并不能证明从未发布：已被清理的记录和已确认的消息看起来是一样的。"),
		},
	}
	if e.Broker == nil {
		v.Sentence = flow.T("Never seen: no record, no lock, no marker; the flow names no queue, so the broker was not asked.", "从未出现：没有记录、没有锁、没有标记；该流程没有配置队列，未查询消息代理。")
	}
	if e.is(flow.NotStarted) {
		v.Sentence = flow.T("Not started: the record says so, and nothing waits in the flow's queues.", "尚未开始：记录如此表明，流程队列中也没有等待的消息。")
		v.Advice = []flow.Text{flow.T("If it should have started by now, find out who was to send its message.", "若此时本应已开始，请查明应由谁发送它的消息。")}
	}
	return v
}

// claimedNotStarted: somebody took the record up long ago, and it never began.
func claimedNotStarted(e evidence) *Verdict {
	if !e.claimed() || !e.row.AgeKnown || e.row.Age <= e.Flow.StaleAfter || e.waitingMessages() > 0 || there(e.Lock) || ours(e.Marker) {
		return nil
	}
	return &Verdict{
		Code: Stuck, Severity: Critical, Layer: flow.LayerMySQL,
		Sentence: flow.T("Stuck: the record was taken up but says not started, and nothing has happened to it for %v.",
			"卡住：记录已被领取但状态为尚未开始，且已 %v 没有任何变化。", flow.Span(e.row.Age)),
		Facts: e.facts(),
		Next:  []flow.Text{flow.T("Nothing: no queue of the flow holds a message, and a record that is owned is not picked up again.", "不会自行恢复：流程的队列中没有消息，已被领取的记录不会再次被领取。")},
		Advice: []flow.Text{
			flow.T("Find out whether the effect happened.", "查明操作是否已生效。"),
			flow.T("If it did not: free the record the way the application does, only if it is still as shown here.", "若未生效：仅当记录仍与此处所示一致时，按应用自身的方式释放该记录。"),
		},
	}
}
