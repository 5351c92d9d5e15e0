package answer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"idemscope/internal/flow"
)

// maxMarked is how many characters of one stored text stand in a report.
const maxMarked = 1024

// coded writes stored bytes as a code span that holds nothing but them: bytes that
// cannot be seen are spelled out, and the fence is longer than any inside.
func coded(s string) string {
	visible := flow.Visible(s)
	if visible == "" {
		return "*(empty)*"
	}
	cut := ""
	if utf8.RuneCountInString(visible) > maxMarked {
		visible, cut = string([]rune(visible)[:maxMarked]), fmt.Sprintf(" … (%d bytes)", len(s))
	}
	fence := strings.Repeat("`", longestRun(visible)+1)
	// A reader of Markdown takes one blank at both ends away again.
	if strings.HasPrefix(visible, "`") || strings.HasSuffix(visible, "`") {
		visible = " " + visible + " "
	}
	return fence + visible + fence + cut
}

// longestRun is the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// block writes lines as a fenced block that nothing in them can close.
func block(lines string) string {
	var visible []string
	for line := range strings.SplitSeq(lines, "\n") {
		visible = append(visible, flow.Visible(strings.TrimRight(line, " ")))
	}
	body := strings.Join(visible, "\n")
	fence := strings.Repeat("`", max(3, longestRun(body)+1))
	return fence + "text\n" + body + "\n" + fence
}

var (
	// marks are the characters that mean something inside a line of Markdown, and
	// those that begin a link that nobody wrote as one.
	marks = regexp.MustCompile("[\\\\`*_{}\\[\\]<>#|~&!$]|://|www\\.|@")
	// opening is what means something at the beginning of a line.
	opening = regexp.MustCompile(`^([-+=:]|\d+[.)])`)
)

// plain writes a sentence so that it is read as it stands: stores are quoted in
// sentences, and what they hold may be markup.
func plain(s string) string {
	s = strings.Join(strings.Fields(flow.Visible(s)), " ")
	s = marks.ReplaceAllStringFunc(s, func(mark string) string {
		switch mark {
		case "://":
			return `\://`
		case "www.":
			return `www\.`
		}
		return `\` + mark
	})
	return opening.ReplaceAllStringFunc(s, func(mark string) string {
		return mark[:len(mark)-1] + `\` + mark[len(mark)-1:]
	})
}
