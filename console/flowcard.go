package console

import (
	"math"
	"net/url"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/doctor"
	"idemscope/internal/flow"
)

// newFlowCard makes the figures of a flow; its charts show the newest points.
func (c *console) newFlowCard(v visit, f flow.Flow, figures answer.Figures, points int, report doctor.Report) flowCard {
	card := flowCard{Flow: f, Says: newFlowWords(), URL: v.link("flows/"+url.PathEscape(f.Name), nil), Grafana: c.grafana("idemscope-flow", f.Name)}
	problems := doctor.Report{Problems: remarksOn(report, f)}
	for _, severity := range doctor.Severities {
		if n := problems.Count(severity); n > 0 {
			card.Counts = append(card.Counts, doctorCount{severity, severity.Word(), n})
		}
	}
	found, ok := figures.Of(f.Name)
	if !ok {
		return card
	}
	d := drawer{figures: figures, points: points}
	card.LockBars = newLockView(f, found.FigureSet)
	card.Figures = []figureView{
		d.count(flow.T("Lock conflicts", "锁冲突"), found.Conflicts),
		d.dedup(found.FigureSet),
		d.count(flow.T("Retries", "重试"), found.Retries),
		d.p99(found.FigureSet, card.LockBars.Tone),
		d.level(flow.T("Stale records", "超时记录"), found.Stale, "warning"),
		d.level(flow.T("Backlog", "积压"), found.Backlog, ""),
	}
	if found.RetriesBy == answer.ByLedger {
		card.Figures[2].About = flow.T("%v, seen in the ledger", "%v，来自记录表", card.Figures[2].About)
	}
	card.Notes = notesOn(found)
	return card
}

func notesOn(found answer.FlowFigures) (notes []flow.Text) {
	if found.Shared {
		notes = append(notes, flow.T("Another flow has a biz_type of this one too. Consumers count by biz_type, so both flows show those counts.", "另一个流程也有相同的业务类型。消费者按业务类型计数，因此两个流程都显示这些计数。"))
	}
	if found.Unswept {
		notes = append(notes, flow.T("Stale records: %v.", "超时记录：%v。", answer.UnsweptNote()))
	}
	if found.TypesCut {
		notes = append(notes, flow.T("The flow has more biz_types than are remembered one by one; the sums have all of them.", "该流程的业务类型过多，未逐一记录；合计包含全部。"))
	}
	return notes
}

// drawer makes figures of one flow.
type drawer struct {
	figures answer.Figures
	points  int
}

func (d drawer) chart(label flow.Text, l answer.Line, word func(float64) flow.Text) chart {
	return newChart(label, l.Tail(d.points), d.figures.Step, word)
}

// lastHour is a line's last hour.
func (d drawer) lastHour(l answer.Line) answer.Line { return l.Tail(d.figures.PerHour()) }

// count is a figure that adds up over the last hour.
func (d drawer) count(label flow.Text, l answer.Line) figureView {
	view := figureView{Label: label, Why: l.Why, Chart: d.chart(label, l, shortCount)}
	sum, known := d.lastHour(l).Sum()
	if known > 0 {
		view.Value, view.About = countText(sum), d.about(known)
	} else if view.Why.Empty() {
		view.Why = gathering()
	}
	return view
}

// about says of how much of the last hour a sum is.
func (d drawer) about(known int) flow.Text {
	if known >= d.figures.PerHour() {
		return flow.T("in the last hour", "最近一小时")
	}
	return flow.T("known for %v of the last hour", "最近一小时中 %v 有数据", flow.Span(time.Duration(known)*d.figures.Step))
}

// gathering is why a figure that can be known is not yet.
func gathering() flow.Text {
	return flow.T("the first point comes within two minutes", "两分钟内会有第一个数据")
}

func (d drawer) dedup(s answer.FigureSet) figureView {
	view := d.count(flow.T("Dedup hits", "去重命中"), s.Dedup())
	if view.Value.Empty() {
		return view
	}
	status, _ := d.lastHour(s.DedupStatus).Sum()
	record, _ := d.lastHour(s.DedupRecord).Sum()
	view.Split = flow.T("status check %v, unique key %v", "状态检查 %v，唯一键 %v", countText(status), countText(record))
	return view
}

func (d drawer) p99(s answer.FigureSet, tone string) figureView {
	label := flow.T("P99 of processing", "处理耗时 P99")
	view := figureView{Label: label, Why: s.P99.Why, Chart: d.chart(label, s.P99, secondsText)}
	if s.P99Hour.Runs == 0 {
		if view.Why.Empty() {
			view.Why = flow.T("no run ended in the last hour", "最近一小时没有执行结束")
		}
		return view
	}
	view.Value = quantileText(s.P99Hour)
	view.About = flow.T("of %v runs in the last hour", "最近一小时 %v 次执行", countText(float64(s.P99Hour.Runs)))
	if s.P99By == answer.ByLedger {
		view.About = flow.T("of %v records, from created to completed", "%v 条记录，从创建到完成", countText(float64(s.P99Hour.Runs)))
	}
	if tone == "warning" || tone == "critical" {
		view.Tone = tone
	}
	return view
}

// level is a figure of this moment; above 0 it has the tone.
func (d drawer) level(label flow.Text, l answer.Line, tone string) figureView {
	view := figureView{Label: label, Why: l.Why, Chart: d.chart(label, l, shortCount)}
	if math.IsNaN(l.Now) {
		if view.Why.Empty() {
			view.Why = gathering()
		}
		return view
	}
	view.Value, view.About = countText(l.Now), flow.T("now", "当前")
	if l.Now > 0 {
		view.Tone = tone
	}
	return view
}

func quantileText(q answer.Quantile) flow.Text {
	if q.Beyond {
		return flow.T("over %v", "超过 %v", secondsText(q.Seconds))
	}
	return secondsText(q.Seconds)
}

// newLockView compares the lock's TTL with the P99, or says why that is not possible.
func newLockView(f flow.Flow, s answer.FigureSet) lockView {
	unknown := func(en, zh string, args ...any) lockView {
		return lockView{Tone: "unknown", Sentence: flow.T(en, zh, args...)}
	}
	switch {
	case f.Lock == nil:
		return lockView{Tone: "info", Sentence: flow.T("This flow has no lock.", "该流程没有锁。")}
	case f.Lock.Renewed:
		return lockView{Tone: "info", Sentence: flow.T("A watchdog renews the lock, so its TTL limits no run.", "锁由看门狗续期，TTL 不限制执行时长。")}
	case f.Lock.TTL <= 0:
		return unknown("The lock's TTL is not declared (flows.%s.lock.ttl), so it cannot be compared with the P99.", "未声明锁的 TTL（flows.%s.lock.ttl），无法与 P99 比较。", f.Name)
	}
	share, ok := answer.LockShare(f, s.P99Hour)
	if !ok {
		why := s.P99.Why
		if why.Empty() {
			why = flow.T("no run ended in the last hour", "最近一小时没有执行结束")
		}
		return unknown("The lock lives %[1]v; the P99 is not known: %[2]v.", "锁的 TTL 为 %[1]v；P99 未知：%[2]v。", flow.Span(f.Lock.TTL), why)
	}
	view := lockView{Tone: "ok", Sentence: flow.T("P99 is %[1]v the lock's TTL.", "P99 为锁 TTL 的 %[1]v。", shareText(share))}
	if s.P99Hour.Beyond {
		view.Sentence = flow.T("P99 is over %[1]v the lock's TTL.", "P99 超过锁 TTL 的 %[1]v。", shareText(share))
	}
	switch {
	case share >= 1:
		view.Tone = "critical"
		view.Sentence = flow.T("%v The lock expires before such a run ends.", "%v这样的执行结束之前锁就会过期。", view.Sentence)
	case share >= lockWarning:
		view.Tone = "warning"
		view.Sentence = flow.T("%v That leaves little to spare.", "%v余量不足。", view.Sentence)
	}
	if s.P99By == answer.ByLedger {
		view.Sentence = flow.T("%v It is measured by the ledger's columns, where a retried record spans all its runs.", "%v该值来自记录表的时间列，重试过的记录包含其所有执行。", view.Sentence)
	}
	ttl, p99 := bars(f.Lock.TTL.Seconds(), s.P99Hour.Seconds)
	view.Bars = []bar{{ttl, flow.T("Lock TTL", "锁 TTL"), flow.Span(f.Lock.TTL)}, {p99, flow.T("P99", "耗时 P99"), quantileText(s.P99Hour)}}
	return view
}

// shareText words a share of something.
func shareText(share float64) flow.Text {
	switch {
	case share > 0 && share < 0.01:
		return flow.T("less than 1 % of", "不到 1 %")
	case share >= 10:
		return flow.T("%.0f times", "%.0f 倍", share)
	}
	return flow.T("%.0f %% of", "%.0f %%", share*100)
}

func newTypeRow(t answer.TypeFigures, figures answer.Figures) typeRow {
	count := func(l answer.Line) flow.Text {
		if sum, known := l.Tail(figures.PerHour()).Sum(); known > 0 {
			return countText(sum)
		}
		return flow.Text{}
	}
	var p99, stale flow.Text
	if t.P99Hour.Runs > 0 {
		p99 = quantileText(t.P99Hour)
	}
	if !math.IsNaN(t.Stale.Now) {
		stale = countText(t.Stale.Now)
	}
	return typeRow{newIdent(t.BizType), []flow.Text{count(t.Conflicts), count(t.Dedup()), count(t.Retries), p99, stale}}
}
