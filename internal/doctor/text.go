package doctor

import (
	"fmt"
	"io"
	"strings"

	"idemscope/internal/flow"
)

// WriteText prints the report for a terminal: the problems by severity and
// subject, what could not be told, and how much is fine.
func (r Report) WriteText(w io.Writer, lang flow.Language) error {
	var b strings.Builder
	say := func(t flow.Text) string { return t.In(lang) }
	for _, severity := range Severities {
		r.writeSeverity(&b, severity, lang)
	}
	if gaps := r.Gaps(); len(gaps) > 0 {
		fmt.Fprintf(&b, "%s\n", say(flow.T("CANNOT TELL", "无法判断")))
		for _, g := range gaps {
			fmt.Fprintf(&b, "  %s\n    %s\n    %s\n", say(g.Subject.Word()), say(g.Reason), say(flow.T("not checked: %s", "未检查：%s", g.Codes())))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintln(&b, say(r.Summary()))
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) writeSeverity(b *strings.Builder, severity Severity, lang flow.Language) {
	n := r.Count(severity)
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "%s (%d)\n", strings.ToUpper(severity.Word().In(lang)), n)
	var last Subject
	for _, p := range r.Problems {
		if p.Severity != severity {
			continue
		}
		if p.Subject != last {
			last = p.Subject
			fmt.Fprintf(b, "  %s\n", p.Subject.Word().In(lang))
		}
		p.write(b, lang)
	}
	b.WriteByte('\n')
}

func (p Problem) write(b *strings.Builder, lang flow.Language) {
	line := func(label, text flow.Text) { fmt.Fprintf(b, "      %s%s\n", label.In(lang), text.In(lang)) }
	fmt.Fprintf(b, "    - %s [%s]\n", p.Title.In(lang), p.Code)
	line(flow.T("seen: ", "现象："), p.Seen)
	line(flow.T("why:  ", "影响："), p.Why)
	line(flow.T("fix:  ", "处理："), p.Fix)
	for command := range strings.Lines(p.Command) {
		fmt.Fprintf(b, "        %s\n", strings.TrimRight(command, "\n"))
	}
	if p.Manual != "" {
		line(flow.T("read: ", "文档："), flow.Text{EN: p.Manual, ZH: p.Manual})
	}
}

// Word names the subject for people.
func (s Subject) Word() flow.Text {
	if s.Name == "" {
		return s.Kind.Word()
	}
	return flow.T("%s %s", "%s %s", s.Kind.Word(), flow.Visible(s.Name))
}

// Codes lists the checks of a gap.
func (g Gap) Codes() string {
	var codes []string
	for _, c := range g.Checks {
		codes = append(codes, c.Code)
	}
	return strings.Join(codes, ", ")
}

// Summary counts everything in one sentence.
func (r Report) Summary() flow.Text {
	return flow.T("%d checks fine, %d critical, %d warnings, %d to know, %d could not be made (%v).", "%d 项检查正常，严重 %d 项，警告 %d 项，提示 %d 项，无法判断 %d 项（耗时 %v）。",
		len(r.Fine), r.Count(Critical), r.Count(Warning), r.Count(Info), len(r.Unsure), flow.Span(r.Took))
}
