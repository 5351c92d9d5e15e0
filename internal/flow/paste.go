package flow

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pasted is a text without what often comes along when one is copied.
type Pasted struct {
	Bare string
	// Extra names what was taken away, each once.
	Extra []Text
}

// quotes open and close a text that was copied with its quotation marks.
var quotes = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '「': '」'}

// Unpaste takes away what stands around a text and is rarely part of it: blanks and
// line ends, byte order marks and other invisible characters, NUL bytes, a pair of
// quotation marks. ok is false when there is nothing of the kind, or nothing but
// that. What is left is another text: it never stands for the one that was typed.
func Unpaste(text string) (p Pasted, ok bool) {
	p.Bare = text
	for {
		shorter, what := unpasteOnce(p.Bare)
		if what.Empty() {
			break
		}
		p.Bare = shorter
		p.name(what)
	}
	return p, p.Bare != text && p.Bare != ""
}

func (p *Pasted) name(what Text) {
	for _, known := range p.Extra {
		if known == what {
			return
		}
	}
	p.Extra = append(p.Extra, what)
}

// unpasteOnce takes one character, or one pair of quotation marks, away.
func unpasteOnce(text string) (shorter string, what Text) {
	first, size := utf8.DecodeRuneInString(text)
	last, lastSize := utf8.DecodeLastRuneInString(text)
	switch {
	case blank(first):
		return text[size:], blankWord(first, T("at its beginning", "开头"))
	case blank(last):
		return text[:len(text)-lastSize], blankWord(last, T("at its end", "末尾"))
	case len(text) > size && quotes[first] != 0 && quotes[first] == last:
		return text[size : len(text)-lastSize], T("quotation marks around it", "两端的引号")
	}
	return text, Text{}
}

// blankWord names a character that cannot be seen, and where it stood.
func blankWord(r rune, where Text) Text {
	switch {
	case r == ' ':
		return T("a space %v", "%v的空格", where)
	case r == '\uFEFF':
		return T("a byte order mark %v", "%v的字节顺序标记（BOM）", where)
	case r == 0:
		return T("a NUL byte %v", "%v的 NUL 字节", where)
	case strings.ContainsRune("\r\n\u2028\u2029\u0085", r):
		return T("a line end %v", "%v的换行", where)
	case r == '\t':
		return T("a tab %v", "%v的制表符", where)
	case unicode.IsSpace(r):
		return T("a blank that is no plain space %v", "%v的特殊空白", where)
	}
	return T("an invisible character %v", "%v的不可见字符", where)
}
