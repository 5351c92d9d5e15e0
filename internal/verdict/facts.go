package verdict

import (
	"strconv"
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// facts words every observation, in the order of the layers.
func (e evidence) facts() []Fact {
	var facts []Fact
	if e.Broker != nil {
		facts = append(facts, Fact{flow.LayerBroker, e.brokerFact(), PieceQueues})
	}
	facts = append(facts, e.eventFacts()...)
	if e.Lock != nil {
		facts = append(facts, Fact{flow.LayerRedis, redisFact(e.Lock, flow.T("lock", "锁")), PieceLock})
	}
	if e.Marker != nil {
		facts = append(facts, Fact{flow.LayerRedis, redisFact(e.Marker, flow.T("marker", "标记")), PieceMarker})
	}
	return append(facts, e.recordFacts()...)
}

func (e evidence) recordFacts() []Fact {
	if !e.Record.Seen() {
		return []Fact{{flow.LayerMySQL, flow.T("record: %v", "记录：%v", e.Record.Reason), PieceRecord}}
	}
	if len(e.Record.Rows) == 0 {
		return []Fact{{flow.LayerMySQL, flow.T("record: none", "记录：无"), PieceRecord}}
	}
	var facts []Fact
	for i, r := range e.Record.Rows {
		facts = append(facts, Fact{flow.LayerMySQL, rowFact(r), PieceRow + Piece(strconv.Itoa(i+1))})
	}
	return facts
}

// eventFacts count what tap, trace and trail tell, and say since when.
func (e evidence) eventFacts() []Fact {
	var facts []Fact
	add := func(a *flow.Account, from Piece, name, told flow.Text) {
		switch {
		case a == nil:
		case !a.Seen():
			facts = append(facts, Fact{flow.LayerBroker, flow.T("%v: %v", "%v：%v", name, a.Reason), from})
		case len(a.Events) == 0:
			facts = append(facts, Fact{flow.LayerBroker, flow.T("%v: nothing of this key since %s", "%v：自 %s 起没有该键的信息", name, a.Since.UTC().Format(time.RFC3339)), from})
		default:
			facts = append(facts, Fact{flow.LayerBroker, flow.T("%v: %v", "%v：%v", name, told), from})
		}
	}
	add(e.Tap, PieceTap, flow.T("tap", "旁路采集"), flow.T("published: %d, dead-lettered: %d", "发布 %d 次，进入死信 %d 次",
		len(e.Tap.Of(flow.Published)), len(e.Tap.Of(flow.DeadLettered))))
	add(e.Trace, PieceTrace, flow.T("trace", "投递跟踪"), flow.T("delivered: %d", "投递 %d 次", len(e.Trace.Of(flow.Delivered))))
	told := e.runs()
	add(e.Trail, PieceTrail, flow.T("trail", "消费轨迹"), flow.T("received: %d, runs begun: %d, done: %d, failed: %d", "收到 %d 次，开始执行 %d 次，完成 %d 次，失败 %d 次",
		len(e.Trail.Of(flow.Received)), told.begun, told.done, told.failed))
	return facts
}

func rowFact(r ledger.Row) flow.Text {
	text := flow.T("record: %v", "记录：%v", r.Phase.Word())
	if !r.Exact {
		text = flow.T("record of another id: %v", "另一个 ID 的记录：%v", r.Phase.Word())
	}
	if r.Status != "" && r.Status != string(r.Phase) {
		text = flow.T("%v (status %s)", "%v（状态 %s）", text, flow.Visible(r.Status))
	}
	if r.AgeKnown && r.Age >= 0 {
		text = flow.T("%v, last sign of life %v ago", "%v，最近一次动静在 %v前", text, flow.Span(r.Age))
	}
	return text
}

func redisFact(r *dossier.RedisEvidence, name flow.Text) flow.Text {
	switch {
	case r.State == flow.Absent:
		return flow.T("%v: none", "%v：无", name)
	case r.State != flow.Found:
		return flow.T("%v: %v", "%v：%v", name, r.Reason)
	case r.Foreign:
		return flow.T("%v: there, but it is a %s", "%v：存在，但类型为 %s", name, r.Type)
	case r.NoTTL:
		return flow.T("%v: there, without TTL", "%v：存在，没有 TTL", name)
	}
	return flow.T("%v: there, expires in %v", "%v：存在，%v后过期", name, flow.Span(r.TTL))
}

func (e evidence) brokerFact() flow.Text {
	if e.brokerFailed() && len(e.Broker.Queues) == 0 {
		return flow.T("queues: %v", "队列：%v", e.Broker.Reason)
	}
	var en, zh []string
	for _, q := range e.Broker.Queues {
		t := queueFact(q)
		en, zh = append(en, t.EN), append(zh, t.ZH)
	}
	return flow.Text{EN: strings.Join(en, "; "), ZH: strings.Join(zh, "；")}
}

func queueFact(q broker.Queue) flow.Text {
	switch q.State {
	case flow.Found:
		return flow.T("queue %s: %d ready, %d unacked, %d consumers", "队列 %s：就绪 %d，未确认 %d，消费者 %d", q.Name, q.Ready, q.Unacked, q.Consumers)
	case flow.Absent:
		return flow.T("queue %s: does not exist", "队列 %s：不存在", q.Name)
	}
	return flow.T("queue %s: %v", "队列 %s：%v", q.Name, q.Reason)
}

// lockExpires and markerExpires say what time alone will do; empty when there
// is no such key or it never expires.
func (e evidence) lockExpires() flow.Text {
	if !e.lockHeld() {
		return flow.Text{}
	}
	return flow.T("The lock expires in %v unless it is released or extended first.", "锁将在 %v后过期，除非提前释放或被续期。", flow.Span(e.Lock.TTL))
}

func (e evidence) markerExpires() flow.Text {
	if e.Marker.NoTTL {
		return flow.T("Nothing: the marker has no TTL and turns away every delivery for ever.", "不会自行恢复：标记没有 TTL，会一直挡掉每次投递。")
	}
	return flow.T("The marker expires in %v; until then it turns away every delivery.", "标记将在 %v后过期；在此之前会挡掉每次投递。", flow.Span(e.Marker.TTL))
}
