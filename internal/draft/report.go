package draft

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// maxListed bounds how many names of a kind the report lists.
const maxListed = 12

// Report tells on a terminal what was found, and why.
func (p *Plan) Report(w io.Writer, lang flow.Language) {
	r := report{w: w, lang: lang}
	p.reportStores(r)
	p.reportLedgers(r)
	p.reportIgnored(r)
	p.reportFlows(r)
}

type report struct {
	w    io.Writer
	lang flow.Language
}

// title opens a part of the report.
func (r report) title(t flow.Text) {
	fmt.Fprintln(r.w)
	r.say(0, t)
}

func (r report) say(indent int, t flow.Text) {
	fmt.Fprintf(r.w, "%s%s\n", strings.Repeat("  ", indent), comment(t.In(r.lang)))
}

func (p *Plan) reportStores(r report) {
	absent := func(name, flag string) {
		r.say(0, flow.T("%s: not looked at; name it with %s", "%s：没有查看；请用 %s 指定", name, flag))
	}
	down := func(name string, problem flow.Text) bool {
		if !problem.Empty() {
			r.say(0, flow.T("%s: could not be read: %s", "%s：无法读取：%s", name, problem))
		}
		return !problem.Empty()
	}
	switch m := p.facts.MySQL; {
	case m == nil:
		absent("MySQL", "--mysql")
	case down("MySQL", m.Problem):
	case m.Cut:
		r.say(0, flow.T("MySQL: %d tables looked at, and there are more: name theirs yourself", "MySQL：查看了 %d 个表，还有更多：请自行配置其余的表", m.Tables))
	default:
		r.say(0, flow.T("MySQL: %d tables looked at", "MySQL：查看了 %d 个表", m.Tables))
	}
	switch d := p.facts.Redis; {
	case d == nil:
		absent("Redis", "--redis")
	case down("Redis", d.Problem):
	case d.Sample.Complete:
		r.say(0, flow.T("Redis: all %d keys looked at by their names", "Redis：按名称查看了全部 %d 个键", len(d.Sample.Keys)))
	default:
		r.say(0, flow.T("Redis: a sample of %d keys looked at by their names, and there are more", "Redis：按名称抽样查看了 %d 个键，还有更多", len(d.Sample.Keys)))
	}
	if d := p.facts.Redis; d != nil && d.Sample.Refused != nil {
		r.say(1, flow.T("not looked at closer: %s", "没有进一步查看：%s", d.Sample.Refused.Text))
	}
	switch b := p.facts.Broker; {
	case b == nil:
		absent("RabbitMQ", "--rabbitmq")
	case down("RabbitMQ", b.Problem):
	case !b.Found.Complete:
		r.say(0, flow.T("RabbitMQ: %d queues looked at, and there are more: name theirs yourself", "RabbitMQ：查看了 %d 个队列，还有更多：请自行配置其余的队列", len(b.Found.Queues)))
	default:
		r.say(0, flow.T("RabbitMQ: %d queues looked at", "RabbitMQ：查看了 %d 个队列", len(b.Found.Queues)))
	}
}

func (p *Plan) reportLedgers(r report) {
	if len(p.ledgers) == 0 {
		r.title(flow.T("No ledger was found.", "没有找到幂等表。"))
		return
	}
	r.title(flow.T("Ledgers:", "幂等表："))
	for _, l := range p.ledgers {
		r.say(1, flow.T("%s (%s)", "%s（%s）", flow.Visible(l.Table), l.Confidence.Word()))
		for _, why := range l.Why {
			r.say(2, why)
		}
		for _, doubt := range checks(l.Doubts) {
			r.say(2, doubt)
		}
		if !l.Problem.Empty() {
			r.say(2, l.Problem)
		}
	}
}

// reportIgnored lists what was left out, by its reason.
func (p *Plan) reportIgnored(r report) {
	if p.facts.MySQL != nil {
		r.ignored(flow.T("Tables that are no ledgers:", "不是幂等表的表："), p.facts.MySQL.Ignored)
	}
	r.ignored(flow.T("Queues left out:", "未采用的队列："), p.ignored)
}

func (r report) ignored(title flow.Text, list []Ignored) {
	if len(list) == 0 {
		return
	}
	r.title(title)
	var reasons []flow.Text
	names := map[flow.Text][]string{}
	for _, i := range list {
		if names[i.Reason] == nil {
			reasons = append(reasons, i.Reason)
		}
		names[i.Reason] = append(names[i.Reason], flow.Visible(i.Name))
	}
	for _, reason := range reasons {
		all := names[reason]
		shown := strings.Join(all[:min(len(all), maxListed)], ", ")
		if len(all) > maxListed {
			r.say(1, flow.T("%s and %d more: %s", "%s 等，另有 %d 个：%s", shown, len(all)-maxListed, reason))
		} else {
			r.say(1, flow.T("%s: %s", "%s：%s", shown, reason))
		}
	}
}

func (p *Plan) reportFlows(r report) {
	if len(p.flows) == 0 {
		return
	}
	r.title(flow.T("Flows:", "流程："))
	for _, f := range p.flows {
		types := flow.T("whatever the ledger holds", "幂等表中的所有类型")
		if !f.rest {
			list := visibleList(f.types[:min(len(f.types), maxListed)])
			types = flow.T(list, list)
		}
		r.say(1, flow.T("%s: %s", "%s：%s", f.name, types))
		r.part(flow.T("lock", "锁"), f.lock)
		r.part(flow.T("marker", "标记"), f.marker)
		if f.queue != nil {
			r.say(2, flow.T("queue: %s", "队列：%s", f.queue.String()))
		} else {
			r.say(2, flow.T("queue: not known", "队列：未知"))
		}
	}
	if p.cut {
		r.say(1, cutFlows)
	}
	if free := p.freeQueues(); len(free) > 0 {
		r.title(flow.T("Queues without a flow: %s", "没有对应流程的队列：%s", strings.Join(free[:min(len(free), maxListed)], ", ")))
	}
}

func (r report) part(name flow.Text, u *use) {
	switch {
	case u == nil:
		r.say(2, flow.T("%s: none seen", "%s：未看到", name))
	case u.assumed || !u.Proved:
		r.say(2, flow.T("%s: %s (a guess)", "%s：%s（推测）", name, flow.Visible(u.Template)))
	default:
		r.say(2, flow.T("%s: %s", "%s：%s", name, flow.Visible(u.Template)))
	}
}

// freeQueues are the work queues that no flow has taken.
func (p *Plan) freeQueues() []string {
	var free []string
	for _, q := range p.work {
		if !slices.ContainsFunc(p.flows, func(f plannedFlow) bool { return f.queue != nil && f.queue.Queue == q }) {
			free = append(free, q.String())
		}
	}
	return free
}
