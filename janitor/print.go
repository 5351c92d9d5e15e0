package janitor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// kindTexts say why rows stay.
var kindTexts = map[string]flow.Text{
	string(ledger.TooYoung):     flow.T("changed too recently", "变更时间未超过保留期"),
	string(ledger.InProcessing): flow.T("in processing: a person decides", "处理中：需人工判断"),
	string(ledger.NeverStarted): flow.T("not started", "未开始"),
	string(ledger.HasFailed):    flow.T("failed: a person decides", "失败：需人工判断"),
	string(ledger.NoMeaning):    flow.T("status without a meaning in the configuration", "状态在配置中没有含义"),
	string(ledger.InFuture):     flow.T("a time in the future", "时间在未来"),
	string(ledger.Unreadable):   flow.T("a time that is empty or no date", "时间为空或不是有效日期"),
	reasonLocked:                flow.T("locked by somebody else for too long", "被其他事务锁定过久"),
}

// KindText says why rows of a kind stay.
func KindText(kind ledger.Kind) flow.Text { return kindTexts[string(kind)] }

// stayOrder is the order in which reasons are told.
func stayOrder() []string {
	var order []string
	for _, kind := range ledger.Kinds {
		if kind != ledger.Candidate {
			order = append(order, string(kind))
		}
	}
	return append(order, reasonLocked)
}

// paper collects lines.
type paper struct {
	strings.Builder
	lang flow.Language
	zone *time.Location
}

func (p *paper) line(indent int, en, zh string, args ...any) {
	p.WriteString(strings.Repeat("  ", indent))
	p.WriteString(flow.T(en, zh, args...).In(p.lang))
	p.WriteByte('\n')
}

func (p *paper) time(t time.Time) string { return t.In(p.zone).Format("2006-01-02 15:04:05 -07:00") }

// WriteText writes the plan for people.
func (p Plan) WriteText(w io.Writer, lang flow.Language, zone *time.Location) error {
	out := &paper{lang: lang, zone: zone}
	p.head(out)
	for _, t := range p.Tables {
		t.write(out)
	}
	for _, note := range p.Note() {
		out.line(1, "%s", "%s", note)
	}
	for _, c := range p.Checks {
		c.write(out)
	}
	for _, r := range p.Refusals {
		out.line(1, "REFUSED [%[1]s] %[2]s", "拒绝执行 [%[1]s] %[2]s", r.Code, r.Text)
	}
	if !p.Unread.Empty() {
		out.line(1, "CANNOT TELL: %s", "无法判断：%s", p.Unread)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (p Plan) head(out *paper) {
	action := flow.T("delete", "删除")
	if p.Action == "archive" {
		action = flow.T("archive", "归档")
	}
	out.line(0, "Task %[1]s: %[2]s completed records of the ledger %[3]s (mysql %[4]s) unchanged for %[5]s", "任务 %[1]s：%[2]s账本 %[3]s（mysql %[4]s）中超过 %[5]s 未变更的已完成记录",
		p.Task, action, p.Ledger, p.Server, flow.Span(p.Retain))
	if !p.Cutoff.IsZero() {
		out.line(1, "cutoff %[1]s, by the database's clock (now %[2]s)", "截止时间 %[1]s，按数据库时钟（当前 %[2]s）", out.time(p.Cutoff), out.time(p.At))
	}
	switch {
	case !p.Enabled:
		out.line(1, "the service does not run it (enabled: false)", "服务不会自动执行（enabled: false）")
	case !p.Opens.IsZero():
		out.line(1, "the service runs it in its window, open from %s", "服务将在时间窗口内执行，窗口开始于 %s", out.time(p.Opens))
	}
}

func (t TablePlan) write(out *paper) {
	if t.Archive == "" {
		out.line(1, "%s", "%s", t.Table)
	} else {
		out.line(1, "%s -> %s", "%s -> %s", t.Table, t.Archive)
	}
	switch {
	case t.Bounds.Top == 0:
		out.line(2, "not counted, or empty", "未统计，或为空表")
		return
	case t.Bounds.First > t.Bounds.Last:
		out.line(2, "nothing to do: no row was created before the cutoff", "无需清理：没有早于截止时间创建的行")
		return
	case t.Exact:
		out.line(2, "%[1]d rows go; counted among %[2]d rows with ids %[3]d to %[4]d", "将移除 %[1]d 行；统计自 ID %[3]d 至 %[4]d 的 %[2]d 行", t.Candidates, t.Rows, t.Bounds.First, t.Bounds.Last)
	default:
		out.line(2, "about %[1]d rows go, of about %[2]d with ids %[3]d to %[4]d; --exact counts them", "约 %[1]d 行将移除，ID %[3]d 至 %[4]d 约有 %[2]d 行；--exact 可精确统计", t.Candidates, t.Rows, t.Bounds.First, t.Bounds.Last)
	}
	out.line(2, "at most %d batches of full size", "按最大批次最多 %d 批", t.Batches)
	for _, reason := range stayOrder() {
		if n := t.Stay[ledger.Kind(reason)]; n > 0 {
			out.line(2, "%[1]d rows stay: %[2]s", "%[1]d 行保留：%[2]s", n, kindTexts[reason])
		}
	}
	if !t.Exact && t.Processing() > 0 {
		out.line(2, "about %d rows beyond the retention are in processing and stay: a person decides", "约 %d 行超过保留期仍在处理中，予以保留：需人工判断", t.Processing())
	}
	if t.Later > 0 {
		out.line(2, "%d more rows could go and stand among younger ones: a later run takes them", "另有 %d 行可移除，但夹在较新的行之间：留待以后的运行", t.Later)
	}
	if t.Newest > 0 {
		out.line(2, "the row with the highest id stays: some servers would give its id out again", "ID 最大的行保留：部分服务器会再次分配该 ID")
	}
	for _, q := range t.SQL {
		out.line(2, "%s", "%s", q)
	}
}

// WriteText writes what a run did, for people.
func (r Report) WriteText(w io.Writer, lang flow.Language) error {
	out := &paper{lang: lang}
	for _, t := range r.Tables {
		t.write(out)
	}
	words := flow.T("ended early", "提前结束")
	switch r.Ended {
	case Done:
		words = flow.T("done", "完成")
	case Refused, Taken:
		words = flow.T("REFUSED", "拒绝执行")
	}
	out.line(0, "Task %[1]s: %[2]s, %[3]d rows in %[4]s", "任务 %[1]s：%[2]s，%[3]d 行，用时 %[4]s", r.Task, words, r.Gone(), flow.Span(r.Took))
	if !r.Why.Empty() {
		out.line(1, "%s", "%s", r.Why)
	}
	if r.Gone() > 0 {
		out.line(1, "The table's file does not shrink; the server uses the space again. To give it back, run OPTIMIZE TABLE in a quiet hour.", "表文件不会变小，空间由服务器重复利用。如需归还磁盘，请在空闲时执行 OPTIMIZE TABLE。")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (t *TableReport) write(out *paper) {
	out.line(0, "%[1]s: %[2]d rows in %[3]d batches, walked up to id %[4]d in %[5]s", "%[1]s：%[3]d 批共 %[2]d 行，已处理至 ID %[4]d，用时 %[5]s", t.Table, t.Gone, t.Batches, t.Reached, flow.Span(t.Took))
	for _, reason := range stayOrder() {
		if n := t.Stayed[reason]; n > 0 {
			out.line(1, "%[1]d rows stay: %[2]s", "%[1]d 行保留：%[2]s", n, kindTexts[reason])
		}
	}
	for _, reason := range reasons {
		if d := t.Throttled[reason]; d > 0 {
			out.line(1, "held up for %[1]s: %[2]s", "等待 %[1]s：%[2]s", flow.Span(d), reason)
		}
	}
	if t.Retries > 0 {
		out.line(1, "%d batches were tried again", "%d 个批次重试过", t.Retries)
	}
	if t.Unconfirmed > 0 {
		out.line(1, "whether %d more rows are gone is not known: the answer to their commit was lost; the plan tells", "另有 %d 行是否已移除尚不可知：提交的应答丢失；可用 plan 查看", t.Unconfirmed)
	}
}

// Exit is the exit code of a plan: 0, 4 refused, 3 cannot tell.
func (p Plan) Exit() int {
	switch {
	case len(p.Refusals) > 0:
		return 4
	case !p.Unread.Empty():
		return 3
	}
	return 0
}

// Exit is the exit code of a run: 0 done, 1 only a part was done, 3 cannot tell, 4 refused.
func (r Report) Exit() int {
	switch {
	case r.Ended == Done:
		return 0
	case r.Ended == Unread:
		return 3
	case slices.Contains([]Ended{Refused, Taken}, r.Ended) && r.Gone() == 0:
		return 4
	}
	return 1
}

// BytesText words a number of bytes.
func BytesText(n int64) flow.Text {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 || v >= 100 {
		return flow.T("%.0f %s", "%.0f %s", v, units[i])
	}
	return flow.T("%.1f %s", "%.1f %s", v, units[i])
}

// rateText words a number of rows a second.
func rateText(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}
