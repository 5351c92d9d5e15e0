package console

import (
	"fmt"
	"net/url"
	"time"

	"idemscope/internal/flow"
)

// cleanupView is one task on the page.
type cleanupView struct {
	CleanupTask
	Says cleanupWords
	// Tone is a severity, or empty; Word says the state.
	Tone string
	Word flow.Text
	// Does says what the task does.
	Does flow.Text
	// Window words the present or the next window; empty without one.
	Window flow.Text
	Begin  *moment
	// Progress is nil when there is no run.
	Progress *progressView
	// Planned is nil before the first plan.
	Planned *planView
	// MayStop: there is something to stop, and this person may. StopSays says what it does.
	MayStop bool
	// Token is for the form that stops it.
	Token    string
	StopSays flow.Text
	Stop     string
	Replan   string
	Findings string
}

// progressView is a run at work.
type progressView struct {
	// Percent is 0 to 100, Done the same for a bar.
	Percent string
	Done    string
	Rows    flow.Text
	Pace    flow.Text
	// Left is empty when it cannot be told.
	Left  flow.Text
	Table ident
	Where flow.Text
	Began flow.Text
	By    flow.Text
}

// planView is the last plan.
type planView struct {
	*CleanupPlan
	MadeAt  moment
	MadeAgo flow.Text
	// CutoffAt is nil when the server was not read.
	CutoffAt *moment
	Goes     flow.Text
	Kept     []keptView
	Rooms    []roomView
}

type keptView struct {
	Why  flow.Text
	Rows flow.Text
	// Link leads to the findings, for rows that need a person.
	Link string
}

// roomView is the room that one table takes.
type roomView struct {
	Name ident
	// Says is empty when the server did not tell.
	Says     flow.Text
	Optimize string
	SQL      []string
}

// runView is one run of the past.
type runView struct {
	CleanupRun
	BeganAt  moment
	BeganAgo flow.Text
	Took     flow.Text
	Shown    ident
	Count    flow.Text
	EndWord  flow.Text
	Tone     string
	ByWord   flow.Text
	// CutoffAt is nil when it is not known.
	CutoffAt *moment
}

func (c *console) newCleanupView(v visit, t CleanupTask, now time.Time, may bool) cleanupView {
	says := newCleanupWords()
	view := cleanupView{
		CleanupTask: t, Says: says, Does: doesText(t), Stop: v.link("cleanup/stop", nil), Replan: v.link("cleanup", url.Values{"plan": {t.Name}}),
	}
	view.Tone, view.Word = cleanupState(t.State)
	if !t.Opens.IsZero() {
		at := clock{c.Zone}.moment(t.Opens.Truncate(time.Second))
		view.Begin = &at
		view.Window = flow.T("open in %v, for %v", "%v后开始，持续 %v", flow.Span(t.Opens.Sub(now)), flow.Span(t.Closes.Sub(t.Opens)))
		if !t.Opens.After(now) {
			view.Window = flow.T("open now, for another %v", "正在窗口内，还剩 %v", flow.Span(t.Closes.Sub(now)))
		}
	}
	if t.Run != nil {
		view.Progress = newProgressView(t.Run, now)
	}
	if c.Options.Findings != nil {
		view.Findings = v.link("findings", url.Values{"verdict": {"stuck"}})
	}
	if t.Plan != nil {
		view.Planned = c.newPlanView(t.Plan, view.Findings, now)
	}
	// Out of its window or done with it, and without a stop file, there is nothing to stop.
	inWindow := !t.Opens.IsZero() && !t.Opens.After(now)
	view.MayStop = may && t.State != "stopped" && (t.Run != nil || t.StopFile != "" || t.Enabled && inWindow && t.State != "idle")
	view.StopSays = flow.T("It ends the run, and none begins before the next window.", "结束当前运行，下次窗口之前不再运行。")
	if t.StopFile != "" {
		view.StopSays = flow.T("It ends the run and writes the stop file %s: nothing is cleaned until somebody removes that.", "结束当前运行并写入停止文件 %s：在有人删除该文件之前不会清理。", t.StopFile)
	}
	return view
}

func doesText(t CleanupTask) flow.Text {
	if t.Action == "archive" {
		return flow.T("archives completed records unchanged for %v", "归档超过 %v 未变更的已完成记录", flow.Span(t.Retain))
	}
	return flow.T("deletes completed records unchanged for %v", "删除超过 %v 未变更的已完成记录", flow.Span(t.Retain))
}

func newProgressView(p *CleanupProgress, now time.Time) *progressView {
	view := &progressView{
		Percent: fmt.Sprintf("%.0f %%", p.Share*100), Done: coordinate(p.Share * 100),
		Rows: flow.T("%v of about %v rows", "%v 行，预计共 %v 行", countText(float64(p.Rows)), countText(float64(p.Planned))),
		Pace: flow.T("%v rows/s", "%v 行/秒", countText(p.PerSecond)), Table: newIdent(p.Table),
		Began: ago(p.Began, now), By: byText(p.By),
	}
	if p.Left > 0 {
		view.Left = flow.T("about %v left", "约剩 %v", flow.Span(p.Left))
	}
	if p.Tables > 1 {
		view.Where = flow.T("table %d of %d", "第 %d 张表，共 %d 张", p.Number, p.Tables)
	}
	return view
}

func (c *console) newPlanView(p *CleanupPlan, findings string, now time.Time) *planView {
	view := &planView{CleanupPlan: p, MadeAt: clock{c.Zone}.moment(p.Made.Truncate(time.Second)), MadeAgo: ago(p.Made, now)}
	if !p.Cutoff.IsZero() {
		view.CutoffAt = new(clock{c.Zone}.moment(p.Cutoff.Truncate(time.Second)))
	}
	view.Goes = flow.T("about %v rows go, of about %v that a run looks at (estimated from samples)", "约 %v 行将移除，运行会检查约 %v 行（抽样估算）", countText(float64(p.Candidates)), countText(float64(p.Rows)))
	if p.Exact {
		view.Goes = flow.T("%v rows go, of %v that a run looks at (counted)", "%v 行将移除，运行会检查 %v 行（精确统计）", countText(float64(p.Candidates)), countText(float64(p.Rows)))
	}
	for _, k := range p.Kept {
		one := keptView{Why: k.Why, Rows: countText(float64(k.Rows))}
		if k.Kind == "processing" {
			one.Link = findings
		}
		view.Kept = append(view.Kept, one)
	}
	for _, t := range p.Tables {
		view.Rooms = append(view.Rooms, newRoomView(t))
	}
	return view
}

func newRoomView(t CleanupTable) roomView {
	view := roomView{Name: newIdent(t.Name), SQL: t.SQL}
	if t.Sized {
		view.Says = flow.T("%v of data, %v of indexes, %v free inside the file", "数据 %v，索引 %v，文件内空闲 %v", bytesText(t.Data), bytesText(t.Index), bytesText(t.Free))
	}
	view.Optimize = "OPTIMIZE TABLE " + quotedTable(t.Name)
	return view
}

func (c *console) newRunView(r CleanupRun, now time.Time) runView {
	view := runView{
		CleanupRun: r, BeganAt: clock{c.Zone}.moment(r.Began.Truncate(time.Second)), BeganAgo: ago(r.Began, now),
		Took: flow.Span(r.Ended.Sub(r.Began)), Shown: newIdent(r.Table), Count: countText(float64(r.Rows)), ByWord: byText(r.By),
	}
	view.Tone, view.EndWord = endText(r.End)
	if !r.Cutoff.IsZero() {
		view.CutoffAt = new(clock{c.Zone}.moment(r.Cutoff))
	}
	return view
}
