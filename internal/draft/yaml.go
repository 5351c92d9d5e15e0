package draft

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"idemscope/internal/flow"
)

// quoted writes a text as a YAML scalar that a configuration reads as exactly
// this text: in double quotes, with what cannot be seen spelled out, and with
// dollar signs doubled, because a single one may begin a variable. The text has to be UTF-8.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '$':
			b.WriteString("$$")
		case r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quotedList(list []string) string {
	var all []string
	for _, s := range list {
		all = append(all, quoted(s))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// page is a YAML file that is being written, in the language of its comments.
type page struct {
	strings.Builder
	lang flow.Language
	// off: what follows is written as a comment.
	off bool
	// offered: the queues that a flow could take are listed already.
	offered bool
	// ttlTold: what a missing TTL costs is told already.
	ttlTold bool
}

// line writes one line; depth is how often it is indented.
func (p *page) line(depth int, format string, args ...any) {
	text := strings.Repeat("  ", depth) + fmt.Sprintf(format, args...)
	if p.off {
		text = "# " + text
	}
	p.WriteString(text + "\n")
}

// note writes a comment.
func (p *page) note(depth int, t flow.Text) {
	p.line(depth, "# %s", comment(t.In(p.lang)))
}

func (p *page) notes(depth int, list []flow.Text) {
	for _, t := range list {
		p.note(depth, t)
	}
}

// comment makes a text fit for the rest of a line. Names inside are spelled out
// already where that is needed; this is for the messages of servers.
func comment(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return flow.Visible(s)
	}
	return s
}

// suggest writes a line that is not in force.
func (p *page) suggest(depth int, format string, args ...any) {
	p.line(depth, "# "+format, args...)
}
