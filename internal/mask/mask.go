// Package mask hides parts of what messages and results hold: values at JSON
// paths, and what looks like a phone number, a card number or an e-mail address.
//
// It is for reading only: what is stored stays as it is, and a biz_id is never
// masked, because it is the key. It would rather hide too much than too little.
package mask

import (
	"fmt"
)

// hidden stands for a value of which nothing is shown.
const hidden = "***"

// Mask hides parts of texts. Its zero value, and nil, hide nothing.
type Mask struct {
	rules    []rule
	patterns []pattern
}

// PathError is the error of a JSON path that cannot be read.
type PathError struct {
	// Index is its place in the list.
	Index int
	Path  string
	// Why says what is wrong and what is allowed.
	Why string
}

// Error names the path.
func (e PathError) Error() string { return fmt.Sprintf("%q: %s", e.Path, e.Why) }

// Patterns are the words that New takes.
var Patterns = []string{"phone", "card", "email"}

// New returns the mask of these JSON paths and patterns. The error is a PathError,
// or names a pattern that is none of Patterns.
func New(paths, patterns []string) (*Mask, error) {
	m := &Mask{}
	for i, path := range paths {
		r, why := parsePath(path)
		if why != "" {
			return nil, PathError{Index: i, Path: path, Why: why}
		}
		m.rules = append(m.rules, r)
	}
	for _, known := range known {
		for _, name := range patterns {
			if name == known.name {
				m.patterns = append(m.patterns, known)
				break
			}
		}
	}
	for _, name := range patterns {
		if !isPattern(name) {
			return nil, fmt.Errorf("unknown pattern %q", name)
		}
	}
	return m, nil
}

func isPattern(name string) bool {
	for _, p := range known {
		if p.name == name {
			return true
		}
	}
	return false
}

// Text returns the text with everything hidden that a rule names. Apart from that
// it keeps every byte, whatever it holds.
func (m *Mask) Text(s string) string {
	if m == nil || len(m.rules) == 0 && len(m.patterns) == 0 {
		return s
	}
	if looksLikeJSON(s) {
		return m.json(s, m.begin(), 0)
	}
	return m.plain(s)
}

// plain hides what the patterns find.
func (m *Mask) plain(s string) string {
	for _, p := range m.patterns {
		s = p.hide(s)
	}
	return s
}

// value returns what stands for a value that a path names: of what a pattern
// knows, the part that the pattern shows.
func value(s string) string {
	for _, p := range known {
		if p.whole(s) {
			return p.hide(s)
		}
	}
	return hidden
}
