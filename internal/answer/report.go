package answer

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// Markdown is the answer as a report for a ticket or a chat: the verdict, what it
// rests on, the way of the message, each layer with its command, and the timeline.
// Whatever a store holds stays text in it.
func (a Answer) Markdown(lang flow.Language, zone *time.Location) string {
	p := reporter{printer{lang: lang, zone: zone}}
	p.line("# %s: %s / %s", strings.ToUpper(string(a.Verdict.Code)), coded(a.Key.BizType), coded(a.Key.BizID))
	p.line("")
	p.line("**%s**", plain(a.Verdict.Sentence.In(lang)))
	p.line("")
	if a.Pending() {
		p.line("*%s*\n", p.say("Not every layer was read: this report is not complete.", "并非每一层都已读取：本报告不完整。"))
	}
	p.head(a)
	p.gates(verdict.Gates(a.Dossier, a.Verdict))
	p.texts(p.say("What happens next by itself", "接下来会自行发生什么"), a.Verdict.Next)
	p.texts(p.say("What to do, in this order", "建议（按顺序）"), a.Verdict.Advice)
	var facts, notes []flow.Text
	for _, f := range a.Verdict.Facts {
		facts = append(facts, f.Text)
	}
	for _, n := range a.Verdict.Notes {
		notes = append(notes, flow.T("%v (%s)", "%v（%s）", n.Text, n.Code))
	}
	p.texts(p.say("Facts that decided it", "判定依据"), facts)
	p.texts(p.say("Also true", "其他情况"), notes)
	p.timeline(a)
	p.section(p.say("What each layer shows", "各层所见"))
	p.queues(a.Broker)
	p.key(p.say("Redis lock", "Redis 锁"), a.Lock)
	p.key(p.say("Redis marker", "Redis 标记"), a.Marker)
	p.rows(a.Record)
	for _, s := range Sources(a.Dossier) {
		p.layer(s.Name.In(lang), s.Account.Observation)
	}
	return p.out.String()
}

// reporter collects the lines of a report.
type reporter struct{ printer }

func (p *reporter) section(title string) { p.line("## %s\n", title) }

// texts is a section with one item for each text; nothing without any.
func (p *reporter) texts(title string, texts []flow.Text) {
	if len(texts) == 0 {
		return
	}
	p.section(title)
	for _, t := range texts {
		p.line("- %s", plain(t.In(p.lang)))
	}
	p.line("")
}

func (p *reporter) head(a Answer) {
	p.line("- `biz_type`: %s%s", coded(a.Key.BizType), hexOf(a.Key.BizType))
	p.line("- `biz_id`: %s%s", coded(a.Key.BizID), hexOf(a.Key.BizID))
	p.line("- %s: %s", p.say("flow", "流程"), coded(a.Flow.Name))
	p.line("- %s: `%s`, %s", p.say("verdict", "判定"), a.Verdict.Code, a.Verdict.Severity)
	if a.Verdict.Layer != flow.LayerNone && a.Verdict.Layer != "" {
		p.line("- %s: %s", p.say("points to", "指向"), a.Verdict.Layer)
	}
	p.line("- %s: %s\n", p.say("looked at", "查看于"), p.time(a.At))
}

// maxHexed is how many bytes of a key a report spells out.
const maxHexed = 64

// hexOf spells out the bytes of what is more than plain text; empty for plain text.
func hexOf(s string) string {
	if flow.Visible(s) == s && strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0 {
		return ""
	}
	more := ""
	if len(s) > maxHexed {
		s, more = s[:maxHexed], " …"
	}
	return fmt.Sprintf(" (hex `% x`%s)", s, more)
}

func (p *reporter) gates(gates []verdict.Gate) {
	p.section(p.say("The way of the message", "消息经过的路径"))
	for i, g := range gates {
		p.line("%d. %s — **%s**: %s", i+1, g.Layer, g.Passage.Word().In(p.lang), plain(g.Actual.In(p.lang)))
	}
	p.line("")
}

func (p *reporter) timeline(a Answer) {
	entries := a.Story()
	if len(entries) == 0 {
		return
	}
	p.section(p.say("Timeline", "时间线"))
	for _, e := range entries {
		text := flow.T("%v (%v)", "%v（%v）", e.Text, e.How())
		if !e.Odd.Empty() {
			text = flow.T("%v; impossible order: %v", "%v；顺序不可能：%v", text, e.Odd)
		}
		p.line("- `%s` %s: %s", p.time(e.At), e.Layer, plain(text.In(p.lang)))
	}
	p.line("")
}

// layer is what every layer has: its state, why, what was covered, and how to see the same.
func (p *reporter) layer(name string, o flow.Observation, seen ...string) {
	p.line("### %s: %s\n", name, o.State.Word().In(p.lang))
	for _, s := range seen {
		p.line("- %s", s)
	}
	if !o.Reason.Empty() {
		p.line("- %s", plain(o.Reason.In(p.lang)))
	}
	for _, c := range o.Coverage {
		p.line("- %s", plain(c.In(p.lang)))
	}
	p.line("- %s", plain(flow.T("%s, read %s in %v", "%s，读取于 %s，用时 %v", o.Source, p.time(o.ReadAt), flow.Span(o.Took)).In(p.lang)))
	p.line("")
	if o.Command != "" {
		p.line("%s\n", block(o.Command))
	}
}

func (p *reporter) queues(e *broker.Evidence) {
	if e == nil {
		p.line("### %s\n", p.say("Broker: the flow names no queue", "消息代理：该流程没有配置队列"))
		return
	}
	var seen []string
	for _, q := range e.Queues {
		what := q.Reason.In(p.lang)
		if q.State == flow.Found {
			what = flow.T("%d ready, %d unacked, %d consumers", "就绪 %d，未确认 %d，消费者 %d", q.Ready, q.Unacked, q.Consumers).In(p.lang)
		}
		seen = append(seen, fmt.Sprintf("%s (%s): %s", coded(q.Name), q.Role.Word().In(p.lang), plain(what)))
	}
	p.layer(p.say("Broker", "消息代理"), e.Observation, seen...)
}

func (p *reporter) key(name string, r *dossier.RedisEvidence) {
	if r == nil {
		p.line("### %s: %s\n", name, p.say("the flow has none", "该流程没有"))
		return
	}
	seen := []string{coded(r.Key)}
	if r.State == flow.Found {
		ttl := flow.T("expires in %v", "%v后过期", flow.Span(r.TTL))
		if r.NoTTL {
			ttl = flow.T("no TTL, never expires", "没有 TTL，永不过期")
		}
		seen = append(seen, ttl.In(p.lang))
		switch {
		case r.ValueHidden:
			seen = append(seen, p.say("value", "值")+" "+plain(HiddenWords().In(p.lang)))
		case r.Foreign:
			seen = append(seen, plain(flow.T("a %s, its value is not read", "类型为 %s，不读取其值", r.Type).In(p.lang)))
		default:
			seen = append(seen, p.say("value", "值")+" "+coded(r.Value))
		}
	}
	p.layer(name, r.Observation, seen...)
}

func (p *reporter) rows(f ledger.Found) {
	var seen []string
	for _, r := range f.Rows {
		first := fmt.Sprintf("%s id %s: %s %s = %s", coded(r.Table), coded(cmp.Or(r.ID, "-")), p.say("status", "状态"), coded(r.Status), r.Phase.Word().In(p.lang))
		if !r.Exact {
			first += fmt.Sprintf(" (%s %s / %s%s)", p.say("another key:", "另一个键："), coded(r.BizType), coded(r.BizID), hexOf(r.BizID))
		}
		seen = append(seen, first)
		for _, s := range []struct {
			name  string
			stamp ledger.Stamp
		}{{p.say("created", "创建"), r.Created}, {p.say("updated", "更新"), r.Updated}, {p.say("completed", "完成"), r.Completed}} {
			if s.stamp.State != ledger.StampMissing {
				seen = append(seen, s.name+" "+plain(p.stamp(s.stamp)))
			}
		}
		for _, s := range []struct {
			name  string
			value *string
		}{{p.say("result", "结果"), r.Result}, {p.say("attempts", "尝试次数"), r.Attempts}, {p.say("worker", "执行者"), r.Worker}} {
			if s.value != nil {
				seen = append(seen, s.name+" "+coded(*s.value))
			}
		}
		if r.ResultHidden {
			seen = append(seen, p.say("result", "结果")+" "+plain(HiddenWords().In(p.lang)))
		}
	}
	for _, n := range f.Neighbours {
		seen = append(seen, fmt.Sprintf("%s: %s / %s, %s", n.Kind.Word().In(p.lang), coded(n.BizType), coded(n.BizID), n.Phase.Word().In(p.lang)))
	}
	p.layer(p.say("MySQL record", "MySQL 记录"), f.Observation, seen...)
}
