package console

import "idemscope/internal/flow"

// searchWords are the texts around the search box and its answers.
type searchWords struct {
	Recent, Remove, Clear flow.Text
}

func newSearchWords() searchWords {
	return searchWords{
		Recent: flow.T("Searched of late, kept in this browser only", "最近的搜索，仅保存在此浏览器中"),
		Remove: flow.T("Forget", "移除"),
		Clear:  flow.T("Forget all", "全部移除"),
	}
}
