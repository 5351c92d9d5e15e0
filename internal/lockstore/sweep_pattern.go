package lockstore

import (
	"slices"
	"strings"
)

// patternOf makes the one pattern for SCAN that all keys with one of the
// prefixes match: what the prefixes have in common, and the bytes that may come
// next. One walk with a pattern that lets others through costs the server less than one
// walk for each prefix. It is empty when every key matches.
func patternOf(prefixes []string) string {
	common := prefixes[0]
	for _, p := range prefixes {
		n := 0
		for n < min(len(common), len(p)) && common[n] == p[n] {
			n++
		}
		common = common[:n]
	}
	var next []byte
	for _, p := range prefixes {
		if len(p) == len(common) {
			next = nil
			break
		}
		next = append(next, p[len(common)])
	}
	slices.Sort(next)
	if next = slices.Compact(next); len(next) > 0 {
		return escapeGlob(common) + "[" + escapeGlob(string(next)) + "]*"
	}
	if common == "" {
		return ""
	}
	return escapeGlob(common) + "*"
}

// escapeGlob makes every byte stand for itself in a pattern of Redis, inside
// and outside of brackets.
func escapeGlob(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[]\^-`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
