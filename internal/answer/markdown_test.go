package answer

import (
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
)

// TestCoded: a code span holds its text and nothing else, whatever backticks are in it.
func TestCoded(t *testing.T) {
	for text, want := range map[string]string{
		"4711":                    "`4711`",
		"a`b":                     "``a`b``",
		"``a":                     "``` ``a ```",
		"`":                       "`` ` ``",
		"a\nb":                    "`a\\nb`",
		" a ":                     "`␣a␣`",
		"\xff\u202e":              "`\\xFF\\u202e`",
		"":                        "*(empty)*",
		strings.Repeat("x", 2000): "`" + strings.Repeat("x", maxMarked) + "` … (2000 bytes)",
	} {
		if got := coded(text); got != want {
			t.Errorf("%.40q: %.60s, want %.60s", text, got, want)
		}
	}
}

// TestPlain: a sentence means what it says, not what its characters mean in Markdown.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"2 h 4 min (allowed: 5 min), done.": "2 h 4 min (allowed: 5 min), done.",
		"a_b *c* <i> [x](y) `z` |":          `a\_b \*c\* \<i\> \[x\](y) \` + "`z\\`" + ` \|`,
		"1. x":                              `1\. x`,
		"- x":                               `\- x`,
		"+ x":                               `\+ x`,
		"=== x":                             `\=== x`,
		"12) x":                             `12\) x`,
		"see https://evil and www.evil":     `see https\://evil and www\.evil`,
		"a\n\n# b":                          `a\\n\\n\# b`, // the line ends are spelled out
		"x@y & z":                           `x\@y \& z`,
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestBlock: nothing in a block ends it.
func TestBlock(t *testing.T) {
	if got := block("a\n```\nb\x1b "); got != "````text\na\n```\nb\\x1b\n````" {
		t.Error(got)
	}
}

// TestReportTellsAll: the report has the verdict, the gates, every layer and the
// timeline, in both languages, and no byte that is not meant to be read.
func TestReportTellsAll(t *testing.T) {
	a := answerOf()
	for lang, wants := range map[flow.Language][]string{
		flow.English: {"# " + strings.ToUpper(string(a.Verdict.Code)), "**" + plain(a.Verdict.Sentence.EN) + "**", "## The way of the message", "1. broker — **",
			"## Timeline", "### Redis lock: found", "### MySQL record: found", "another spelling of the id", "(hex `61 1b", "### Tap of the broker: error", "+08:00"},
		flow.Chinese: {"## 消息经过的路径", "## 时间线", "### Redis 锁: 存在", "该 ID 的其他写法"},
	} {
		report := a.Markdown(lang, time.FixedZone("+08:00", 8*3600))
		for _, want := range wants {
			if !strings.Contains(report, want) {
				t.Errorf("%s lacks %q:\n%s", lang, want, report)
			}
		}
		if strings.ContainsAny(report, "\x1b\r\x00\u202e") || strings.Contains(report, "\xff") || strings.Contains(strings.ReplaceAll(report, "\\<", ""), "\n<script") {
			t.Errorf("%s holds raw bytes", lang)
		}
	}
}
