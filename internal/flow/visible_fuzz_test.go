package flow

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzVisible: nothing that can hide or mislead is left, what was plain is as it
// was, and a text without a backslash or a ␣ of its own can be read back.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"plain", " a b ", "a\nb\x00", "a\xffb", "a\u202eb", "订单\u00a07", "💳\u200d", "\x7f\u0085", "  ", `\n`, "␣", "\u3000x\u3000", "\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown := Visible(s)
		for _, r := range shown {
			if hidden(r) {
				t.Fatalf("%q shows %U as it is: %q", s, r, shown)
			}
		}
		if !utf8.ValidString(shown) || strings.Trim(shown, " ") != shown {
			t.Fatalf("%q is shown as %q", s, shown)
		}
		if again := Visible(shown); again != shown {
			t.Errorf("%q: shown once %q, shown twice %q", s, shown, again)
		}
		if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 && strings.Trim(s, " ") == s && shown != s {
			t.Errorf("%q is plain and shown as %q", s, shown)
		}
		if strings.ContainsAny(s, `\␣`) {
			return
		}
		if back := unescaped(t, shown); back != s {
			t.Errorf("%q is shown as %q, which reads back as %q", s, shown, back)
		}
	})
}

func hidden(r rune) bool {
	return r != ' ' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r))
}

// unescaped takes a shown text back to its bytes.
func unescaped(t *testing.T, shown string) string {
	t.Helper()
	rest := strings.ReplaceAll(shown, "␣", " ")
	var b strings.Builder
	for rest != "" {
		r, wide, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			t.Fatalf("%q cannot be read back: %v", shown, err)
		}
		if wide {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		rest = tail
	}
	return b.String()
}
