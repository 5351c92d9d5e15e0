package console

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"idemscope/internal/flow"
)

const (
	// maxHex is how many bytes of an identifier are shown as hexadecimal.
	maxHex = 64
	// maxShown is how many characters of one stand in a sentence or a title.
	maxShown = 60
)

// ident is an opaque identifier as a person reads it: what is invisible is
// spelled out, and where the eye can be misled the bytes stand beside it.
type ident struct {
	Text string
	// Hex holds the first bytes; empty when Text is plain.
	Hex string
	// Cut: there are more bytes than Hex shows.
	Cut    bool
	Length int
}

func newIdent(s string) ident {
	id := ident{Text: flow.Visible(s), Length: len(s)}
	if !plain(s) {
		id.Cut = len(s) > maxHex
		id.Hex = spaced(s[:min(len(s), maxHex)])
	}
	return id
}

// Long: the text may take more lines than its box shows.
func (i ident) Long() bool { return len(i.Text) > 120 }

// plain reports an identifier that can hold only what it seems to hold:
// printable ASCII without blanks at its ends or side by side.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return flow.Visible(s) == s && !strings.Contains(s, "  ")
}

// spaced writes bytes as pairs of digits with a blank between them.
func spaced(s string) string {
	pairs := make([]string, 0, len(s))
	for i := range len(s) {
		pairs = append(pairs, hex.EncodeToString([]byte{s[i]}))
	}
	return strings.Join(pairs, " ")
}

// shown returns an identifier for a sentence or a title: visible, and cut.
func shown(s string) string {
	visible := []rune(flow.Visible(s))
	if len(visible) > maxShown {
		return string(visible[:maxShown]) + "…"
	}
	return string(visible)
}

// typed returns what a search box can hold without changing it: text of one
// line. Anything else gives an empty box, because the box would send something else.
func typed(s string) string {
	if !utf8.ValidString(s) || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return ""
	}
	return s
}
