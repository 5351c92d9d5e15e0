package flow

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key names one business operation: the kind of operation and the business id
// inside it. Both are opaque bytes: they are compared byte by byte and never
// trimmed, folded or read as numbers.
type Key struct {
	BizType string
	BizID   string
}

// String returns the key for people and logs, with invisible bytes made
// visible. It is not meant to be parsed.
func (k Key) String() string { return Visible(k.BizType) + " / " + Visible(k.BizID) }

// Visible spells out what cannot be seen or could mislead: control and format
// characters (newlines, NUL, right-to-left marks), blanks at either end, and
// bytes that are not UTF-8. Everything else stays as it is.
func Visible(s string) string {
	lead := len(s) - len(strings.TrimLeft(s, " "))
	trail := len(strings.TrimRight(s, " "))
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			b.WriteString(`\x`)
			b.WriteString(strings.ToUpper(strconv.FormatUint(uint64(s[i])|0x100, 16)[1:]))
		case r == ' ' && (i < lead || i >= trail):
			b.WriteRune('␣')
		case r != ' ' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r)):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}
