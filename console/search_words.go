package console

import "idemscope/internal/flow"

// searchWords are the texts around the search box and its answers.
type searchWords struct {
	Recent, Remove, Clear flow.Text
	Offers, OffersLead    flow.Text
	NoTrace, AcceptsLine  flow.Text
}

func newSearchWords() searchWords {
	return searchWords{
		Recent:      flow.T("Searched of late, kept in this browser only", "最近的搜索，仅保存在此浏览器中"),
		Remove:      flow.T("Forget", "移除"),
		Offers:      flow.T("Other readings of this text", "这段文本的其他读法"),
		OffersLead:  flow.T("None of them stands for what was typed.", "它们都不能代替所输入的内容。"),
		NoTrace:     flow.T("no trace of it either", "同样没有任何痕迹"),
		AcceptsLine: flow.T("a line of a log that holds one of these", "包含以上任意一种的一行日志"),
		Clear:       flow.T("Forget all", "全部移除"),
	}
}
