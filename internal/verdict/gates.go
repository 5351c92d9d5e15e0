package verdict

import (
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
)

// Passage says how far a message came at one gate.
type Passage string

const (
	// Passed: a message of the key went through.
	Passed Passage = "passed"
	// Blocked: this gate stops the message, or the next delivery of it.
	Blocked Passage = "blocked"
	// Unclear: what was read does not tell.
	Unclear Passage = "unknown"
	// NotReached: nothing shows that a message came this far.
	NotReached Passage = "not_reached"
)

// Word is the passage for people.
func (p Passage) Word() flow.Text {
	switch p {
	case Passed:
		return flow.T("passed", "已通过")
	case Blocked:
		return flow.T("blocked", "被挡住")
	case NotReached:
		return flow.T("not reached", "未到达")
	}
	return flow.T("unknown", "不确定")
}

// Gate is one layer as a message meets it: what should happen there, and what did.
type Gate struct {
	Layer    flow.Layer
	Passage  Passage
	Expected flow.Text
	Actual   flow.Text
}

// Gates is the way of a message through the three layers: the broker delivers it,
// Redis lets one consumer in, MySQL accepts one record. It follows from the
// evidence, and from the verdict, which tells what stops the message now. It
// claims nothing that the verdict does not.
func Gates(d dossier.Dossier, v Verdict) []Gate {
	e := newEvidence(d)
	return []Gate{
		e.brokerGate(v).at(flow.LayerBroker, flow.T("delivers the message", "投递消息")),
		e.redisGate(v).at(flow.LayerRedis, flow.T("lets one consumer in", "只放行一个消费者")),
		e.mysqlGate(v).at(flow.LayerMySQL, flow.T("accepts one record", "只接受一条记录")),
	}
}

func (g Gate) at(l flow.Layer, expected flow.Text) Gate {
	g.Layer, g.Expected = l, expected
	return g
}

func gate(p Passage, en, zh string, args ...any) Gate {
	return Gate{Passage: p, Actual: flow.T(en, zh, args...)}
}

// accepted: MySQL holds a record of this very key that a consumer wrote, or did
// until it was archived.
func (e evidence) accepted() bool { return e.row != nil && !e.is(flow.NotStarted) || e.archivedAway() }

// letIn: a consumer got past Redis: it wrote a record, or holds the lock.
func (e evidence) letIn() bool { return e.accepted() || ours(e.Lock) }

func (e evidence) brokerGate(v Verdict) Gate {
	switch {
	case v.Code == DeadLettered:
		return gate(Blocked, "gave the message up: it is a dead letter", "已放弃该消息：成为死信")
	case v.Code == LostSuspected && v.Layer == flow.LayerBroker:
		return gate(Blocked, "holds no message that could be delivered again", "没有可以再次投递的消息")
	case v.Code == RetryScheduled:
		return gate(Passed, "delivered it; a retry waits", "已投递；重试在等待")
	case v.Code == FailedUnplaced:
		return gate(Unclear, "delivered it; whether it comes again is not known", "已投递；是否会再次投递尚不清楚")
	case v.Code == Waiting:
		return gate(NotReached, "has not delivered it yet: it waits", "尚未投递：在等待")
	case e.letIn():
		return gate(Passed, "delivered it: a consumer has left its trace", "已投递：消费者留下了痕迹")
	case e.wasDelivered():
		return gate(Passed, "delivered it: the events say so", "已投递：事件如此表明")
	case ours(e.Marker):
		return gate(Passed, "delivered it once: a consumer set the marker", "曾经投递：消费者设置了标记")
	case v.Code == MaybeWaiting:
		return gate(Unclear, "holds messages that could be this one", "有消息可能是它")
	case e.Broker == nil:
		return gate(Unclear, "not watched: the flow names no queue", "未观察：流程没有配置队列")
	case e.brokerEmpty() && e.noTrace():
		return gate(NotReached, "holds no message of this flow", "没有该流程的消息")
	}
	return gate(Unclear, "does not tell", "无法得知")
}

// wasDelivered: a trace or trail tells of a delivery, or of a run.
func (e evidence) wasDelivered() bool {
	return len(e.Trace.Of(flow.Delivered)) > 0 || len(e.Trail.Of(flow.Received, flow.RunBegan)) > 0
}

func (e evidence) redisGate(v Verdict) Gate {
	switch {
	case v.Layer == flow.LayerRedis && (v.Code == Stuck || v.Code == LostSuspected):
		return gate(Blocked, "turns every delivery away", "挡掉每次投递")
	case e.Lock == nil && e.Marker == nil && e.letIn():
		return gate(Passed, "no gate: the flow has neither lock nor marker", "没有关卡：流程既无锁也无标记")
	case v.Code == MayHaveRunTwice:
		return gate(Passed, "let a second delivery in: the lock had run out", "放行了第二次投递：锁已过期")
	case v.Code == RanTwice:
		return gate(Passed, "let more than one run in", "放行了不止一次执行")
	case e.is(flow.Completed) && ours(e.Marker):
		return gate(Passed, "let one consumer in; the marker drops duplicates", "放行了一个消费者；标记挡掉重复消息")
	case e.accepted():
		return gate(Passed, "let a consumer in: it wrote the record", "放行了消费者：它写入了记录")
	case ours(e.Lock):
		return gate(Passed, "let a consumer in: it holds the lock", "放行了消费者：它持有锁")
	case len(e.Trail.Of(flow.RunBegan)) > 0:
		return gate(Passed, "let a consumer in: it reported a run", "放行了消费者：它上报了一次执行")
	case ours(e.Marker):
		return gate(Unclear, "a marker is there, and no record", "有标记，但没有记录")
	case failedToRead(e.Lock) || failedToRead(e.Marker) || there(e.Lock) || there(e.Marker):
		return gate(Unclear, "does not tell", "无法得知")
	case !e.Record.Seen():
		return gate(Unclear, "holds no key now; the record could not be read", "目前没有键；记录无法读取")
	}
	return gate(NotReached, "holds no key of it", "没有它的键")
}

func (e evidence) mysqlGate(v Verdict) Gate {
	switch {
	case v.Code == KeyAmbiguous && e.Record.TooLong:
		return gate(Blocked, "the column cannot keep this id", "列无法保存该 ID")
	case v.Code == KeyAmbiguous:
		return gate(Blocked, "another id's record answers for it", "另一个 ID 的记录替它应答")
	case v.Code == Stuck && v.Layer == flow.LayerMySQL:
		return gate(Blocked, "the record is held open by a run that shows no sign of life", "记录被一次没有动静的执行占着")
	case v.Code == RanTwice:
		return gate(Passed, "did not stop the second run", "没有拦住第二次执行")
	case v.Code == Archived:
		return gate(Passed, "accepted it; the record is archived", "已接受；记录已归档")
	case v.Code == LostSuspected && v.Layer == flow.LayerMySQL:
		return gate(Unclear, "has no record of a run that was reported done", "没有一次上报已完成的执行的记录")
	case !e.Record.Seen():
		return gate(Unclear, "could not be read", "无法读取")
	case e.is(flow.Completed):
		return gate(Passed, "accepted it: completed", "已接受：已完成")
	case e.is(flow.Failed):
		return gate(Passed, "accepted it; the run failed, so a retry may pass", "已接受；执行失败，重试可以通过")
	case e.is(flow.Processing):
		return gate(Passed, "accepted it: processing", "已接受：处理中")
	case e.accepted():
		return gate(Passed, "accepted it", "已接受")
	case v.Code == Unknown && v.Layer == flow.LayerMySQL:
		return gate(Unclear, "does not tell", "无法得知")
	}
	return gate(NotReached, "has no record of it", "没有它的记录")
}
