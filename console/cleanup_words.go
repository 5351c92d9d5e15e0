package console

import (
	"fmt"
	"net/http"
	"strings"

	"idemscope/internal/flow"
)

// cleanupWords are the texts of the page of the cleanup.
type cleanupWords struct {
	Title, Lead, AsOf, JSON, Again, Nothing                       flow.Text
	Window, NoWindow, NotEnabled, Run, Began, Plan, NoPlan, Made  flow.Text
	Cutoff, Replan, ReplanSays, Stays, StaysLead, Sampled, Counts flow.Text
	Disk, DiskLead, Reclaim, ReclaimLead, NoSize, Statements      flow.Text
	Behind, Refused, Unread, StopNow, Findings, Checked           flow.Text
	History, HistoryLead, NoRuns, Task, Table, When, Took, Rows   flow.Text
	End, By, Batches                                              flow.Text
}

func newCleanupWords() cleanupWords {
	return cleanupWords{
		Title:       flow.T("Cleanup", "清理"),
		Lead:        flow.T("Old completed records go in small batches. Records that are open or failed always stay.", "旧的已完成记录分小批移除；未结束和失败的记录始终保留。"),
		AsOf:        flow.T("as of", "截至"),
		JSON:        flow.T("This page as JSON", "以 JSON 查看"),
		Again:       flow.T("Look again", "刷新"),
		Nothing:     flow.T("No cleanup task is configured.", "没有配置清理任务。"),
		Window:      flow.T("Window", "时间窗口"),
		NoWindow:    flow.T("none; it is run by hand: idemscope janitor run", "无；需手动运行：idemscope janitor run"),
		NotEnabled:  flow.T("The service does not run it (enabled: false).", "服务不会自动运行它（enabled: false）。"),
		Run:         flow.T("Run at work", "正在运行"),
		Began:       flow.T("began", "开始于"),
		Plan:        flow.T("Plan", "计划"),
		NoPlan:      flow.T("None yet. The service makes one every hour.", "尚无。服务每小时生成一次。"),
		Made:        flow.T("made", "生成于"),
		Cutoff:      flow.T("Cutoff", "截止时间"),
		Replan:      flow.T("Make the plan anew", "重新生成计划"),
		ReplanSays:  flow.T("A few bounded statements; changes nothing.", "只执行少量有界查询，不做任何更改。"),
		Stays:       flow.T("Why rows stay", "保留原因"),
		StaysLead:   flow.T("among the rows that a run looks at", "在运行会检查的行之中"),
		Sampled:     flow.T("Estimated from samples: a few rows of a kind may be missed. idemscope janitor plan --exact counts them.", "抽样估算，可能漏掉少量的行。idemscope janitor plan --exact 可精确统计。"),
		Counts:      flow.T("Every row was counted.", "已统计所有行。"),
		Disk:        flow.T("Disk", "磁盘"),
		DiskLead:    flow.T("The table's file does not shrink: the server uses the room of rows that are gone for new ones.", "表文件不会变小：服务器会把已移除行的空间留给新行。"),
		Reclaim:     flow.T("To give it back to the disk", "归还磁盘空间"),
		ReclaimLead: flow.T("Rebuilds the table: it takes as much room again while it runs, and slows the server down. Run it in a quiet hour.", "会重建整张表：运行期间占用同样大小的额外空间，并拖慢服务器。请在空闲时执行。"),
		NoSize:      flow.T("The server does not tell its size.", "服务器未提供其大小。"),
		Statements:  flow.T("What each batch runs", "每批执行的语句"),
		Behind:      flow.T("Falls behind", "落后"),
		Refused:     flow.T("Why it does not run", "不运行的原因"),
		Checked:     flow.T("What was checked", "检查项"),
		Unread:      flow.T("Could not be read", "无法读取"),
		StopNow:     flow.T("Stop", "停止"),
		Findings:    flow.T("See the findings", "查看问题列表"),
		History:     flow.T("Runs of the past", "历史运行"),
		HistoryLead: flow.T("by the service and by hand, the newest first", "包括服务自动运行和手动运行，最新的在前"),
		NoRuns:      flow.T("No run yet.", "尚未运行过。"),
		Task:        flow.T("Task", "任务"),
		Table:       flow.T("Table", "表"),
		When:        flow.T("Began", "开始"),
		Took:        flow.T("Took", "用时"),
		Rows:        flow.T("Rows gone", "移除行数"),
		End:         flow.T("Ended", "结束原因"),
		By:          flow.T("By", "发起"),
		Batches:     flow.T("Batches", "批次"),
	}
}

// cleanupState words a state, with its severity; empty where it has none.
func cleanupState(state string) (tone string, word flow.Text) {
	switch state {
	case "running":
		return "ok", flow.T("running", "运行中")
	case "throttled":
		return "warning", flow.T("waits", "等待中")
	case "waiting_for_window":
		return "info", flow.T("waits for its window", "等待时间窗口")
	case "idle":
		return "ok", flow.T("done for this window", "本次窗口已完成")
	case "not_enabled":
		return "info", flow.T("not enabled", "未启用")
	case "stopped":
		return "warning", flow.T("stopped", "已停止")
	case "refused":
		return "critical", flow.T("refuses to run", "拒绝运行")
	case "failed":
		return "critical", flow.T("the last run failed", "上次运行失败")
	}
	return "unknown", flow.T("not known", "未知")
}

// endText words why a run ended, with its severity.
func endText(end string) (tone string, word flow.Text) {
	switch end {
	case "done":
		return "ok", flow.T("done", "完成")
	case "refused":
		return "critical", flow.T("refused", "被拒绝")
	case "lease_taken":
		return "warning", flow.T("another janitor works on it", "另一个清理进程正在处理")
	case "run_time":
		return "info", flow.T("limit of time reached", "达到时长上限")
	case "rows":
		return "info", flow.T("limit of rows reached", "达到行数上限")
	case "window":
		return "warning", flow.T("the window closed", "窗口已关闭")
	case "stop_file", "stopped":
		return "warning", flow.T("stopped", "已停止")
	case "throttled":
		return "warning", flow.T("held up for too long", "等待过久")
	case "critical":
		return "critical", flow.T("ended at a critical limit", "达到临界值，已结束")
	case "failed":
		return "critical", flow.T("failed", "失败")
	case "unreadable":
		return "critical", flow.T("the server could not be read", "无法读取服务器")
	}
	return "unknown", flow.Text{EN: end, ZH: end}
}

func byText(by string) flow.Text {
	if by == "schedule" {
		return flow.T("service", "服务")
	}
	return flow.T("command line", "命令行")
}

// bytesText words a number of bytes.
func bytesText(n int64) flow.Text {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	text := fmt.Sprintf("%.1f", v)
	if i == 0 || v >= 100 {
		text = fmt.Sprintf("%.0f", v)
	}
	return flow.T("%s %s", "%s %s", text, units[i])
}

// quotedTable writes database.table for a statement that a person runs.
func quotedTable(name string) string {
	database, table, ok := strings.Cut(name, ".")
	quote := func(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }
	if !ok {
		return quote(name)
	}
	return quote(database) + "." + quote(table)
}

func cleanupOff() *fault {
	return &fault{
		Status: http.StatusNotFound, Code: "cleanup_off",
		Title:  flow.T("No cleanup task is configured.", "没有配置清理任务。"),
		Remedy: flow.T("Add one under cleanup.tasks of the configuration, as examples/idemscope.yaml shows.", "请在配置的 cleanup.tasks 中添加，写法见 examples/idemscope.yaml。"),
	}
}

func badCleanupForm() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_form",
		Title:  flow.T("The form cannot be read.", "无法读取表单。"),
		Remedy: flow.T("Give task: the name of a cleanup task.", "请给出 task：清理任务的名称。"),
	}
}

func notStopped(cause error) *fault {
	return &fault{
		Status: http.StatusInternalServerError, Code: "not_stopped",
		Title:  flow.T("The run was told to stop, but the stop file was not written.", "已要求停止运行，但未能写入停止文件。"),
		Remedy: flow.T("Make the stop file by hand; the log says why it failed.", "请手动创建停止文件；失败原因见日志。"),
		cause:  cause,
	}
}
