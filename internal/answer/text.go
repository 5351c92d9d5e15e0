package answer

import (
	"fmt"
	"io"
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// WriteText writes the answer for a terminal in lang, times in zone. Bytes that
// could move the cursor or mislead the eye are spelled out.
func (a Answer) WriteText(w io.Writer, lang flow.Language, zone *time.Location) error {
	p := printer{lang: lang, zone: zone}
	p.line("%s  (%s %s)", a.Key, p.say("flow", "流程"), a.Flow.Name)
	p.line("")
	p.line("%s [%s]  %s", strings.ToUpper(string(a.Verdict.Code)), a.Verdict.Severity, a.Verdict.Sentence.In(lang))
	p.line("")
	p.broker(a.Broker)
	p.redis(p.say("Redis lock", "Redis 锁"), a.Lock)
	p.redis(p.say("Redis marker", "Redis 标记"), a.Marker)
	p.record(a.Record)
	p.sources(a)
	p.story(a.Story())
	p.list(p.say("Next, by itself", "接下来会自行发生"), a.Verdict.Next)
	p.list(p.say("Advice", "建议"), a.Verdict.Advice)
	var notes []flow.Text
	for _, n := range a.Verdict.Notes {
		notes = append(notes, flow.T("%v (%s)", "%v（%s）", n.Text, n.Code))
	}
	p.list(p.say("Notes", "备注"), notes)
	_, err := io.WriteString(w, p.out.String())
	return err
}

// printer collects lines in one language.
type printer struct {
	out  strings.Builder
	lang flow.Language
	zone *time.Location
}

func (p *printer) say(en, zh string) string { return flow.Text{EN: en, ZH: zh}.In(p.lang) }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *printer) list(title string, texts []flow.Text) {
	if len(texts) == 0 {
		return
	}
	p.line("%s", title)
	for _, t := range texts {
		p.line("  - %s", t.In(p.lang))
	}
}

// header prints the state of a layer, what was seen, and how to see the same.
func (p *printer) header(layer string, o flow.Observation, seen ...string) {
	p.line("%s: %s", layer, o.State.Word().In(p.lang))
	for _, s := range seen {
		p.line("  %s", s)
	}
	if !o.Reason.Empty() {
		p.line("  %s", o.Reason.In(p.lang))
	}
	for _, c := range o.Coverage {
		p.line("  %s", c.In(p.lang))
	}
	p.line("  %s", flow.T("%s, read %s in %v", "%s，读取于 %s，用时 %v", o.Source, p.time(o.ReadAt), flow.Span(o.Took)).In(p.lang))
	for _, command := range strings.Split(o.Command, "\n") {
		if command != "" {
			p.line("  $ %s", command)
		}
	}
	p.line("")
}

func (p *printer) time(t time.Time) string {
	return t.In(p.zone).Format("2006-01-02 15:04:05.000 -07:00")
}

func (p *printer) broker(e *broker.Evidence) {
	if e == nil {
		p.line("%s\n", p.say("Broker: the flow names no queue", "消息代理：该流程没有配置队列"))
		return
	}
	var seen []string
	for _, q := range e.Queues {
		if q.State == flow.Found {
			seen = append(seen, flow.T("%s (%s): %d ready, %d unacked, %d consumers", "%s（%s）：就绪 %d，未确认 %d，消费者 %d", q.Name, q.Role.Word(), q.Ready, q.Unacked, q.Consumers).In(p.lang))
		} else {
			seen = append(seen, flow.T("%s (%s): %v", "%s（%s）：%v", q.Name, q.Role.Word(), q.Reason).In(p.lang))
		}
	}
	p.header(p.say("Broker", "消息代理"), e.Observation, seen...)
}

func (p *printer) redis(layer string, r *dossier.RedisEvidence) {
	if r == nil {
		p.line("%s: %s\n", layer, p.say("the flow has none", "该流程没有"))
		return
	}
	seen := []string{flow.Visible(r.Key)}
	if r.State == flow.Found {
		ttl := flow.T("expires in %v", "%v后过期", flow.Span(r.TTL))
		if r.NoTTL {
			ttl = flow.T("no TTL, never expires", "没有 TTL，永不过期")
		}
		value := flow.T("value %s", "值 %s", cut(flow.Visible(r.Value)))
		if r.ValueHidden {
			value = flow.T("value %v", "值 %v", HiddenWords())
		}
		if r.Foreign {
			value = flow.T("a %s, its value is not read", "类型为 %s，不读取其值", r.Type)
		}
		seen = append(seen, flow.T("%v; %v", "%v；%v", ttl, value).In(p.lang))
	}
	p.header(layer, r.Observation, seen...)
}

// cut keeps a value on one terminal line.
func cut(s string) string {
	const limit = 120
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return s
}

func (p *printer) record(f ledger.Found) {
	var seen []string
	for _, r := range f.Rows {
		seen = append(seen, p.row(r)...)
	}
	p.header(p.say("MySQL record", "MySQL 记录"), f.Observation, seen...)
}

func (p *printer) row(r ledger.Row) []string {
	first := flow.T("%s id %s: status %s = %s", "%s id %s：状态 %s = %s", r.Table, r.ID, flow.Visible(r.Status), string(r.Phase)).In(p.lang)
	if !r.Exact {
		first += flow.T(" (another id: %s / %s)", "（另一个 ID：%s / %s）", flow.Visible(r.BizType), cut(flow.Visible(r.BizID))).In(p.lang)
	}
	lines := []string{first}
	for _, s := range []struct {
		name  flow.Text
		stamp ledger.Stamp
	}{{flow.T("created", "创建"), r.Created}, {flow.T("updated", "更新"), r.Updated}, {flow.T("completed", "完成"), r.Completed}} {
		if s.stamp.State != ledger.StampMissing {
			lines = append(lines, fmt.Sprintf("%s %s", s.name.In(p.lang), p.stamp(s.stamp)))
		}
	}
	if r.AgeKnown && r.Age >= 0 {
		lines = append(lines, flow.T("last sign of life %v ago", "最近一次动静在 %v前", flow.Span(r.Age)).In(p.lang))
	}
	return lines
}

func (p *printer) stamp(s ledger.Stamp) string {
	if s.State == ledger.StampOK {
		return p.time(s.Time)
	}
	return fmt.Sprintf("%s (%s)", s.Text, s.State)
}
