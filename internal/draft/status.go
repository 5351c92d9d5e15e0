package draft

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// phaseWords are the words for a phase that houses write into a status column
// or into its comment, in lower case.
var phaseWords = map[flow.Phase][]string{
	flow.NotStarted: {"pending", "init", "initial", "initialized", "new", "created", "waiting", "wait", "todo", "unprocessed", "not started", "not_started",
		"待处理", "未处理", "未开始", "初始", "初始化", "待发送", "待消费", "未消费", "等待"},
	flow.Processing: {"processing", "running", "in_progress", "in progress", "inprogress", "doing", "handling", "executing", "consuming", "started", "locked",
		"处理中", "执行中", "进行中", "消费中", "运行中"},
	flow.Completed: {"completed", "complete", "success", "succeeded", "succeed", "successful", "done", "finished", "finish", "processed", "consumed", "handled", "sent", "ok",
		"已完成", "完成", "成功", "处理成功", "已成功", "处理完成", "已处理", "已消费", "消费成功", "执行成功", "已发送"},
	flow.Failed: {"failed", "fail", "failure", "error", "exception", "dead", "失败", "已失败", "处理失败", "执行失败", "消费失败", "异常", "错误"},
}

// phases in the order in which a file lists them.
var phases = []flow.Phase{flow.NotStarted, flow.Processing, flow.Completed, flow.Failed}

// phaseOf tells what a word means.
func phaseOf(word string) (flow.Phase, bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	for _, p := range phases {
		if slices.Contains(phaseWords[p], word) {
			return p, true
		}
	}
	return "", false
}

// statusWords are the stored words of a status column.
type statusWords struct {
	words map[flow.Phase][]string
	// unknown are stored words whose meaning nobody told.
	unknown []string
	// early: the word for processing is one that elsewhere means not started.
	early bool
}

func (s *statusWords) add(stored string, p flow.Phase) {
	if s.words == nil {
		s.words = map[flow.Phase][]string{}
	}
	s.words[p] = append(s.words[p], stored)
}

// settle decides what a word such as "pending" means where there is no word for
// processing: a ledger writes its row when the work begins.
func (s *statusWords) settle() {
	if len(s.words[flow.Processing]) == 0 && len(s.words[flow.NotStarted]) > 0 {
		s.words[flow.Processing], s.early = s.words[flow.NotStarted], true
		delete(s.words, flow.NotStarted)
	}
}

// enough: the words tell a run that goes on from one that is done.
func (s statusWords) enough() bool {
	return len(s.words[flow.Completed]) > 0 && len(s.words[flow.Processing])+len(s.words[flow.Failed]) > 0
}

// byMeaning reads stored words that say themselves what they mean.
func byMeaning(stored []string) statusWords {
	var s statusWords
	for _, word := range stored {
		if p, ok := phaseOf(word); ok {
			s.add(word, p)
		} else {
			s.unknown = append(s.unknown, word)
		}
	}
	s.settle()
	return s
}

// A legend in the comment of a column has each number with its meaning, in
// either order: "1 processing, 2 completed", "0-处理中；1-成功", "processing=1".
var (
	numberFirst = regexp.MustCompile(`(-?\d+)[\s:：=＝\-–—.、>)）]*([\p{L}][\p{L}_ ]*)`)
	wordFirst   = regexp.MustCompile(`([\p{L}][\p{L}_ ]*?)[\s:：=＝\-–—(（]*(\d+)`)
)

// byLegend reads the comment of a status column, in the order that makes sense of
// more of it: "a(1) b(2)" also looks like "1 b".
func byLegend(comment string) statusWords {
	numbers := numberFirst.FindAllStringSubmatch(comment, -1)
	names := wordFirst.FindAllStringSubmatch(comment, -1)
	switch {
	case len(numbers) > len(names):
		return legend(numbers, 1, 2)
	case len(names) > len(numbers):
		return legend(names, 2, 1)
	}
	return statusWords{}
}

func legend(entries [][]string, number, word int) statusWords {
	var s statusWords
	seen := map[string]bool{}
	for _, entry := range entries {
		stored := entry[number]
		if seen[stored] {
			// A number with two meanings has none.
			return statusWords{}
		}
		seen[stored] = true
		if p, ok := phaseOf(entry[word]); ok {
			s.add(stored, p)
		} else {
			s.unknown = append(s.unknown, stored)
		}
	}
	s.settle()
	return s
}

// sameWords compares the words of two mappings, whatever their order.
func sameWords(a, b map[flow.Phase][]string) bool {
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	return maps.EqualFunc(a, b, func(x, y []string) bool { return slices.Equal(sorted(x), sorted(y)) })
}
