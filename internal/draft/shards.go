package draft

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Group is one table, or all the shards of one.
type Group struct {
	// Pattern is how a configuration names it: "orders", or "orders_{00..63}".
	Pattern string
	// Tables has the names, in their order; never empty.
	Tables []string
}

// maxShards is how many tables one pattern may stand for.
const maxShards = 1024

// Fold makes one group of tables whose names differ in a number at the end,
// without a gap from 0 or 1 on. Tables that are numbered otherwise (by year or
// day, say) stay by themselves.
func Fold(names []string) []Group {
	stems := map[string][]string{}
	var order []string
	for _, name := range names {
		stem := strings.TrimRight(name, "0123456789")
		if stem == name || stem == "" {
			stem = name
		}
		if stems[stem] == nil {
			order = append(order, stem)
		}
		stems[stem] = append(stems[stem], name)
	}
	var groups []Group
	for _, stem := range order {
		if g, ok := shardsOf(stem, stems[stem]); ok {
			groups = append(groups, g)
			continue
		}
		for _, name := range stems[stem] {
			groups = append(groups, Group{Pattern: name, Tables: []string{name}})
		}
	}
	return groups
}

// shardsOf makes a group of the names with one stem, if they are its shards.
func shardsOf(stem string, names []string) (Group, bool) {
	if len(names) < 2 || len(names) > maxShards {
		return Group{}, false
	}
	byNumber := map[int]string{}
	padded := false
	low, high := maxShards+1, -1
	for _, name := range names {
		digits := name[len(stem):]
		n, err := strconv.Atoi(digits)
		if err != nil || n > maxShards {
			return Group{}, false
		}
		padded = padded || len(digits) > 1 && digits[0] == '0'
		byNumber[n] = digits
		low, high = min(low, n), max(high, n)
	}
	if low > 1 || len(byNumber) != len(names) || high-low+1 != len(names) {
		return Group{}, false
	}
	width := 0
	if padded {
		width = len(byNumber[low])
	}
	g := Group{Pattern: fmt.Sprintf("%s{%0*d..%0*d}", stem, width, low, width, high)}
	for n := low; n <= high; n++ {
		if byNumber[n] != fmt.Sprintf("%0*d", width, n) {
			return Group{}, false
		}
		g.Tables = append(g.Tables, stem+byNumber[n])
	}
	return g, true
}

// words takes a name apart: at everything that is no letter or digit, and where
// a small letter is followed by a capital one. They are in lower case.
func words(name string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
			word = nil
		}
	}
	small := false
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 127
		capital := r >= 'A' && r <= 'Z'
		if !letter || capital && small {
			end()
		}
		if letter {
			word = append(word, r)
		}
		small = letter && !capital
	}
	end()
	return all
}

// hasAny reports whether one of the words begins with one of the stems.
func hasAny(list []string, stems ...string) bool {
	return slices.ContainsFunc(list, func(word string) bool {
		return slices.ContainsFunc(stems, func(stem string) bool { return strings.HasPrefix(word, stem) })
	})
}
