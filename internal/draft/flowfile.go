package draft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// sortedPairs writes "key: value" in the order of the keys.
func sortedPairs(m map[string]string, write func(string) string) []string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, key+": "+write(m[key]))
	}
	return pairs
}

func (p *Plan) writeFlows(w *page) {
	w.line(0, "")
	if !p.Usable() {
		w.suggest(0, "flows:")
		w.suggest(1, `payments: {biz_types: ["*"], ledger: orders}`)
		return
	}
	w.line(0, "flows:")
	if p.cut {
		w.note(1, cutFlows)
	}
	for i, f := range p.flows {
		p.writeFlow(w, f, i == 0)
	}
}

var cutFlows = flow.T("CHECK: there would be more than %d flows; write the others yourself", "请核对：流程超过 %d 个；请自行编写其余流程", maxFlows)

// writeFlow writes one flow; the first one explains what all have in common.
func (p *Plan) writeFlow(w *page, f plannedFlow, first bool) {
	l := p.ledgers[f.ledger]
	w.line(1, "%s:", nameText(f.name))
	w.notes(2, checks(f.doubts))
	p.writeTypes(w, f, l)
	w.line(2, "ledger: %s", nameText(l.Name))
	p.writeKey(w, "lock", f, f.lock)
	p.writeKey(w, "marker", f, f.marker)
	p.writeUnclear(w, f)
	p.writeQueue(w, f)
	explain := func(t flow.Text) {
		if first {
			w.note(2, t)
		}
	}
	explain(flow.T("the stores do not show the next three: these are the defaults, here and in the other flows", "以下三项从存储中看不出来：这里和其他流程均为默认值"))
	explain(flow.T("how long a processing record may be silent", "处理中的记录允许多久没有动静"))
	w.line(2, "stale_after: 5m")
	explain(flow.T("what a consumer does that meets a processing record: refuse (acks the message), retry (gives it back), resume (takes over)", "消费者遇到处理中的记录时的做法：refuse（确认消息）、retry（退回消息）、resume（接管）"))
	w.line(2, "on_processing: refuse")
	explain(flow.T("may a stale record run again: never or manual", "停滞的记录能否重跑：never 或 manual"))
	w.line(2, "rerun: manual")
}

func (p *Plan) writeTypes(w *page, f plannedFlow, l Sampled) {
	if f.rest {
		w.line(2, `biz_types: ["*"]`)
		return
	}
	if l.hasType && !l.AllTypes {
		w.note(2, flow.T(`found in the newest rows; other biz_types may exist: add them, or write ["*"] in one flow of the ledger`, `取自最新的行；可能还有其他业务类型：请补充，或在该幂等表的一个流程中写 ["*"]`))
	}
	for _, t := range l.Types {
		if l.hasType && !writableType(t) {
			w.note(2, flow.T("the biz_type %s cannot be listed in a configuration", "业务类型 %s 无法写入配置", `"`+shortened(t)+`"`))
		}
	}
	w.line(2, "biz_types: %s", quotedList(f.types))
}

// writeKey writes the lock or the marker of a flow.
func (p *Plan) writeKey(w *page, part string, f plannedFlow, u *use) {
	if u == nil {
		p.writeNoKey(w, part)
		return
	}
	seen := u.tally(f)
	w.note(2, u.why(f, seen))
	if seen.Endless > 0 {
		w.note(2, flow.T("CHECK: %d of these keys never expire", "请核对：其中 %d 个键永不过期", seen.Endless))
	}
	w.line(2, "%s:", part)
	w.line(3, "redis: %s", redisName)
	w.line(3, "key: %s", quoted(u.Template))
	if seen.TTL > 0 {
		w.note(3, flow.T("a guess, so not in force: the longest remaining time seen was %s; write what the consumer sets", "推测，因此未生效：看到的最长剩余时间为 %s；请填写消费者设置的值", flow.Span(seen.TTL)))
		if !w.ttlTold {
			w.ttlTold = true
			w.note(3, ttlMatters)
		}
		w.suggest(3, "ttl: %s", duration(roundedUp(seen.TTL)))
	}
	switch {
	case part != "lock":
	case seen.Extended && !u.assumed:
		w.note(3, flow.T("a key was given more time while its value stayed: somebody renews it", "有键在值不变的情况下被延长时间：有程序在续期"))
		w.line(3, "renewed: true")
	default:
		w.note(3, flow.T("true if the consumer renews its lock while it works; a short look does not show that", "若消费者在处理期间为锁续期则写 true；短时间的观察无法看出"))
		w.suggest(3, "renewed: true")
	}
}

// ttlMatters says what a configuration without a TTL costs.
var ttlMatters = flow.T("without it, since when a key is held and whether Redis has lost it cannot be told, and some answers stay \"cannot tell\"", "不填写则无法得知键从何时起被持有、是否被 Redis 丢失，一些结论只能是“无法判断”")

// why says on which keys a shape rests.
func (u *use) why(f plannedFlow, seen Tally) flow.Text {
	example := shortened(seen.Example)
	switch {
	case u.assumed:
		return flow.T("CHECK: seen for %s of this ledger only, not for each of these; %d keys, such as %s", "请核对：只在该幂等表的 %s 中见到，并非这里的每个类型；共 %d 个键，例如 %s", visibleList(u.seenFor(f.ledger)), seen.Keys, example)
	case !u.Proved:
		return flow.T("CHECK: by the biz_type in %d keys, such as %s; where the id ends is a guess", "请核对：依据 %d 个键中的业务类型，例如 %s；ID 的边界为推测", seen.Keys, example)
	}
	return flow.T("seen in %d keys, such as %s", "见于 %d 个键，例如 %s", seen.Keys, example)
}

func (p *Plan) writeNoKey(w *page, part string) {
	example := `{redis: main, key: "idem_lock:{biz_type}:{biz_id}", ttl: 15s}`
	if part == "marker" {
		example = `{redis: main, key: "idempotent:{biz_type}:{biz_id}", ttl: 24h}`
	}
	switch {
	case p.facts.Redis == nil || !p.facts.Redis.Problem.Empty():
		w.note(2, flow.T("Redis was not read", "没有读取 Redis"))
	case part == "lock":
		w.note(2, flow.T("no lock of these was seen, and locks live for seconds only; if there is one:", "没有看到对应的锁，而锁只存在数秒；若有锁："))
	default:
		w.note(2, flow.T("no marker of these was seen; if there is one:", "没有看到对应的标记；若有标记："))
	}
	w.suggest(2, "%s: %s", part, example)
}

// writeUnclear shows keys that hold ids of the flow's ledger and do not say what they are for.
func (p *Plan) writeUnclear(w *page, f plannedFlow) {
	shown := 0
	for _, s := range p.shapes {
		if s.Kind != Unclear || s.Owners[f.ledger] == nil || shown == maxUnclear {
			continue
		}
		shown++
		w.note(2, flow.T("neither lock nor marker by its name: %d keys like %s, longest remaining time %s", "从名称看既不是锁也不是标记：%d 个键形如 %s，最长剩余时间 %s", s.Keys, shortened(s.Template), flow.Span(s.TTL)))
	}
}

// maxUnclear bounds how many shapes of unclear use a flow shows.
const maxUnclear = 3

func (p *Plan) writeQueue(w *page, f plannedFlow) {
	if f.queue == nil {
		p.writeNoQueue(w)
		return
	}
	q := f.queue
	if !writableQueue(q.Queue) {
		w.note(2, flow.T("the queue %s cannot be named in a configuration", "队列 %s 无法写入配置", flow.Visible(q.Name)))
		return
	}
	w.note(2, q.whyFits())
	w.notes(2, q.Why)
	w.line(2, "queue:")
	w.line(3, "broker: %s", brokerName)
	w.line(3, "name: %s", quoted(q.Name))
	if len(q.Retry) > 0 {
		w.line(3, "retry: %s", quotedList(q.Retry))
	}
	if q.DeadLetter != "" {
		w.line(3, "dead_letter: %s", quoted(q.DeadLetter))
	}
	w.note(3, flow.T("the fields of the JSON body, for messages that are pasted into a search; no message was looked at", "JSON 消息体中的字段，用于搜索粘贴的消息；没有查看任何消息"))
	w.suggest(3, "id: {json: biz_id}")
	w.suggest(3, "type: {json: biz_type}")
}

func (a assigned) whyFits() flow.Text {
	switch a.fit {
	case same:
		return flow.T("the queue is named after the biz_type", "队列以业务类型命名")
	case inside:
		return flow.T("CHECK: the queue and the biz_type share a name in part", "请核对：队列与业务类型的名称部分相同")
	}
	return flow.T("CHECK: the queue and the biz_type share one word only", "请核对：队列与业务类型只有一个相同的词")
}

// writeNoQueue offers the queues, once in a file.
func (p *Plan) writeNoQueue(w *page) {
	var free []string
	for _, q := range p.work[:min(len(p.work), maxFree)] {
		free = append(free, shortened(q.Name))
	}
	switch {
	case p.facts.Broker == nil || !p.facts.Broker.Problem.Empty():
		w.note(2, flow.T("the broker was not read", "没有读取消息代理"))
	case len(free) == 0:
		w.note(2, flow.T("the vhost has no work queue", "该 vhost 中没有工作队列"))
	case w.offered:
		w.note(2, flow.T("no queue is named like these; some queues are listed above", "没有名称相近的队列；上文列出了一些队列"))
	default:
		w.offered = true
		w.note(2, flow.T("no queue is named like these; name the one that carries them: %s", "没有名称相近的队列；请填写对应的队列：%s", strings.Join(free, ", ")))
	}
	w.suggest(2, "queue: {broker: %s, name: %s, retry: [], dead_letter: %s}", brokerName, `""`, `""`)
}

// maxFree bounds how many queues are offered.
const maxFree = 20

// writableQueue reports whether a configuration can name the queues.
func writableQueue(q *Queue) bool {
	return !slices.ContainsFunc(append([]string{q.Name, q.DeadLetter}, q.Retry...), func(name string) bool { return !valid(name) })
}

func (q *Queue) String() string {
	text := flow.Visible(q.Name)
	for _, r := range q.Retry {
		text += fmt.Sprintf(" + %s", flow.Visible(r))
	}
	if q.DeadLetter != "" {
		text += " + " + flow.Visible(q.DeadLetter)
	}
	return text
}
