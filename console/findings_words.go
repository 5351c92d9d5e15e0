package console

import (
	"net/http"
	"net/url"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// findingWords are the texts of the list of findings.
type findingWords struct {
	Title, Lead, AsOf, Verdict, Key, Wrong, Age, Found, Judged      flow.Text
	AnyFlow, AnyVerdict, AnyLayer, AnySeverity, AnyAge              flow.Text
	Layer, Severity, Older, Sort, Groups                            flow.Text
	CSVFile, JSONFile, Oldest, AllOfGroup                           flow.Text
	Select, Preview                                                 flow.Text
	Apply, Everything, Only                                         flow.Text
	Nothing, NothingNarrowed, Undecided, UndecidedLead              flow.Text
	Pending, Coverage, Next, First, JSON, Again, AgeUnknown, Filter flow.Text
}

func newFindingWords() findingWords {
	return findingWords{
		Title:           flow.T("Findings", "问题列表"),
		Lead:            flow.T("Keys whose verdict is a problem, the worst and oldest first.", "判定为有问题的键，最严重、最久的在前。"),
		AsOf:            flow.T("as of", "截至"),
		Verdict:         flow.T("Verdict", "判定"),
		Key:             flow.T("Key", "键"),
		Wrong:           flow.T("What is wrong", "问题"),
		Age:             flow.T("Age", "距今"),
		Found:           flow.T("Found", "发现于"),
		Judged:          flow.T("judged %v", "判定于 %v"),
		AnyFlow:         flow.T("all flows", "所有流程"),
		AnyVerdict:      flow.T("all verdicts", "所有判定"),
		AnyLayer:        flow.T("all layers", "所有层"),
		AnySeverity:     flow.T("all severities", "所有级别"),
		AnyAge:          flow.T("any age", "不限时长"),
		Layer:           flow.T("Layer", "层"),
		Severity:        flow.T("Severity", "级别"),
		Older:           flow.T("Known age", "已知时长"),
		Sort:            flow.T("As a list, first", "列表，先列出"),
		Groups:          flow.T("By flow and verdict", "按流程与判定分组"),
		CSVFile:         flow.T("All of these as CSV", "全部导出为表格（CSV）"),
		JSONFile:        flow.T("All of these as JSON", "全部导出为 JSON"),
		Oldest:          flow.T("oldest %v", "最久 %v"),
		AllOfGroup:      flow.T("All %d of them", "全部 %d 个"),
		Select:          flow.T("Select", "选择"),
		Preview:         flow.T("Preview actions on the selected keys", "预览对所选键的操作"),
		Apply:           flow.T("Show", "显示"),
		Everything:      flow.T("Show all", "显示全部"),
		Only:            flow.T("Only the biz_type", "仅业务类型"),
		Nothing:         flow.T("Nothing found.", "未发现问题。"),
		NothingNarrowed: flow.T("Nothing found that passes the filter.", "没有符合筛选条件的问题。"),
		Undecided:       flow.T("Could not be decided", "无法判断"),
		UndecidedLead:   flow.T("A layer that decides did not answer: it may be nothing, or the worst.", "起决定作用的一层没有应答：可能没事，也可能最严重。"),
		Pending:         flow.T("%d suspects are not judged yet.", "还有 %d 个可疑项尚未判断。"),
		Coverage:        flow.T("What was looked through, and what was not", "检查了什么，没有检查什么"),
		Next:            flow.T("Next page", "下一页"),
		First:           flow.T("First page", "第一页"),
		JSON:            flow.T("This list as JSON", "以 JSON 查看"),
		Again:           flow.T("Look again", "刷新"),
		AgeUnknown:      flow.T("not known", "未知"),
		Filter:          flow.T("Filter", "筛选"),
	}
}

func findingsOff() *fault {
	return &fault{
		Status: http.StatusNotFound, Code: "findings_off",
		Title:  flow.T("Nobody looks for findings.", "没有收集问题。"),
		Remedy: flow.T("Set exporter.findings.per_second of the configuration to more than 0.", "请将配置中的 exporter.findings.per_second 设为大于 0。"),
	}
}

func noSuchFlow(v visit, flows []flow.Flow, name string) *fault {
	f := &fault{
		Status: http.StatusNotFound, Code: "unknown_flow",
		Title:  flow.T("There is no flow named %s.", "没有名为 %s 的流程。", shown(name)),
		Remedy: flow.T("Check the spelling. Known flows:", "请核对写法。已知的流程："),
	}
	for _, known := range flows {
		f.Choices = append(f.Choices, choice{Label: known.Name, URL: v.link("findings", url.Values{"flow": {known.Name}})})
	}
	return f
}

func noSuchVerdict(v visit, code string) *fault {
	f := &fault{
		Status: http.StatusNotFound, Code: "unknown_verdict",
		Title:  flow.T("There is no verdict %s.", "没有判定 %s。", shown(code)),
		Remedy: flow.T("Check the spelling. Known verdicts:", "请核对写法。已知的判定："),
	}
	for _, known := range verdict.Codes() {
		f.Choices = append(f.Choices, choice{Label: string(known), URL: v.link("findings", url.Values{"verdict": {string(known)}})})
	}
	return f
}

// keysWord counts keys.
func keysWord(n int) flow.Text {
	if n == 1 {
		return flow.T("1 key", "1 个键")
	}
	return flow.T("%d keys", "%d 个键", n)
}

// orderWord names what stands first in an order.
func orderWord(o answer.Order) flow.Text {
	switch o {
	case answer.ByAge:
		return flow.T("the oldest", "最久的")
	case answer.ByFound:
		return flow.T("the latest found", "最近发现的")
	}
	return flow.T("the worst", "最严重的")
}

// noSuchChoice words a parameter whose value is none of a few.
func noSuchChoice[T ~string](v visit, parameter, value string, known []T) *fault {
	f := &fault{
		Status: http.StatusNotFound, Code: "unknown_" + parameter,
		Title:  flow.T("The parameter %s cannot be %s.", "参数 %s 不能是 %s。", parameter, shown(value)),
		Remedy: flow.T("Check the spelling. Known values:", "请核对写法。可用的值："),
	}
	for _, k := range known {
		f.Choices = append(f.Choices, choice{Label: string(k), URL: v.link("findings", url.Values{parameter: {string(k)}})})
	}
	return f
}

func badOlder() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_older",
		Title:  flow.T("The parameter older is not a length of time.", "参数 older 不是时间长度。"),
		Remedy: flow.T("Write it as 90s, 5m, 2h or 7d.", "请写成 90s、5m、2h 或 7d。"),
	}
}

func badLimit() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_limit",
		Title:  flow.T("The parameter limit is not a number that is allowed.", "参数 limit 不在允许范围内。"),
		Remedy: flow.T("Give a whole number from 1 to %d.", "请给出 1 到 %d 的整数。", maxFindings),
	}
}

func badMark() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_after",
		Title:  flow.T("The parameter after is not a mark of this list.", "参数 after 不是该列表给出的标记。"),
		Remedy: flow.T("Begin with the first page; each page names the mark for the next.", "请从第一页开始；每一页都会给出下一页的标记。"),
	}
}
