package console

import (
	"net/http"
	"strconv"

	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// auditWords are the texts of the list of attempts.
type auditWords struct {
	Title, Lead, Filter, AnyAction, AnyOutcome, Who, Apply, Everything, Only        flow.Text
	When, Action, Key, Outcome, Reason, Before, After, NoKey, Nobody                flow.Text
	Nothing, NothingNarrowed, Bad, Cut, Next, First, JSON, Again, Attempt, NoReason flow.Text
}

func newAuditWords() auditWords {
	return auditWords{
		Title:           flow.T("Audit", "操作审计"),
		Lead:            flow.T("every attempt to change something from here, the latest first; refused ones too", "在此更改的每次尝试，最近的在前；包括被拒绝的"),
		Filter:          flow.T("Narrow the list", "筛选"),
		AnyAction:       flow.T("every action", "所有操作"),
		AnyOutcome:      flow.T("every outcome", "所有结果"),
		Who:             flow.T("who", "操作人"),
		Apply:           flow.T("Show", "显示"),
		Everything:      flow.T("Show everything", "显示全部"),
		Only:            flow.T("Only the key", "仅限键"),
		When:            flow.T("When", "时间"),
		Action:          flow.T("Action", "操作"),
		Key:             flow.T("Key", "键"),
		Outcome:         flow.T("Outcome", "结果"),
		Reason:          flow.T("Reason", "理由"),
		NoReason:        flow.T("no reason given", "未填写理由"),
		Before:          flow.T("before", "之前"),
		After:           flow.T("after", "之后"),
		Attempt:         flow.T("attempt", "操作编号"),
		NoKey:           flow.T("no key", "不涉及键"),
		Nobody:          flow.T("not signed in", "未登录"),
		Nothing:         flow.T("Nothing was tried yet.", "还没有任何操作。"),
		NothingNarrowed: flow.T("No attempt matches.", "没有符合条件的操作。"),
		Bad:             flow.T("%v lines of the file are no entries, and were passed over.", "文件中有 %v 行不是审计条目，已跳过。"),
		Cut:             flow.T("Not the whole file was read; older entries follow on the next page.", "并未读完整个文件；更早的条目在下一页。"),
		Next:            flow.T("Older", "更早"),
		First:           flow.T("Latest", "最近"),
		JSON:            flow.T("This page as JSON", "以 JSON 查看"),
		Again:           flow.T("Look again", "刷新"),
	}
}

func auditUnreadable() *fault {
	return &fault{
		Status: http.StatusServiceUnavailable, Code: "audit_unreadable",
		Title:  flow.T("The audit file cannot be read.", "无法读取审计文件。"),
		Remedy: flow.T("The log of idemscope says why.", "原因见 idemscope 的日志。"),
	}
}

func badAuditLimit() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_limit",
		Title:  flow.T("limit is no number of entries.", "limit 不是有效的条目数。"),
		Remedy: flow.T("Give 1 to %s.", "请给出 1 到 %s。", strconv.Itoa(audit.MaxEntries)),
	}
}
