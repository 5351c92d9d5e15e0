package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// item is one text of a list.
type item struct {
	text string
	value
}

// text reads optional text; "" when it is left out.
func (s *section) text(key string) string {
	v, ok := s.take(key)
	if !ok {
		return ""
	}
	text, _ := s.textOf(v)
	return text
}

// required reads mandatory text. remedy says what belongs there.
func (s *section) required(key, remedy string) string {
	v, ok := s.take(key)
	if ok {
		if text, ok := s.textOf(v); !ok || text != "" {
			return text
		}
		s.problemf(v.at, v.path, "is empty; %s", remedy)
		return ""
	}
	s.missing(v, remedy)
	return ""
}

// missing reports a mandatory key that take did not find.
func (s *section) missing(v value, remedy string) {
	if !s.reported(v.path) {
		s.problemf(v.at, v.path, "is missing; %s", remedy)
	}
}

// word reads one of the allowed words; fallback when it is left out.
func (s *section) word(key, fallback string, allowed ...string) string {
	v, ok := s.take(key)
	if !ok {
		return fallback
	}
	text, ok := s.textOf(v)
	if !ok || text == "" {
		return fallback
	}
	if slices.Contains(allowed, text) {
		return text
	}
	help := ""
	if near, ok := nearest(text, allowed); ok {
		help = fmt.Sprintf("; did you mean %q?", near)
	}
	s.problemf(v.at, v.path, "must be %s%s", strings.Join(allowed, " or "), help)
	return fallback
}

// ref reads the mandatory name of a part that another section defines.
func (s *section) ref(key, in string) string {
	name := s.required(key, "name one of the parts of the section "+in)
	if name == "" || slices.Contains(s.defined[in], name) {
		return name
	}
	v, help := s.value(key), "add it there"
	if near, ok := nearest(name, s.defined[in]); ok {
		help = fmt.Sprintf("did you mean %q?", near)
	} else if len(s.defined[in]) > 0 {
		help = "defined there: " + strings.Join(s.defined[in], ", ")
	}
	s.problemf(v.at, v.path, "the section %s has no %q; %s", in, name, help)
	return name
}

// list reads a list of non-empty texts; nil when it is left out.
func (s *section) list(key string) []item {
	v, ok := s.take(key)
	if !ok {
		return nil
	}
	return s.items(v, s.textOf)
}

// requiredList is list, but the list must be there and hold something.
func (s *section) requiredList(key, remedy string) []item {
	v, ok := s.take(key)
	if !ok {
		s.missing(v, remedy)
		return nil
	}
	if sequence, ok := v.node.(*ast.SequenceNode); ok && len(sequence.Values) == 0 {
		s.problemf(v.at, v.path, "is empty; %s", remedy)
	}
	return s.items(v, s.textOf)
}

// items reads the texts of a list with read.
func (s *section) items(v value, read func(value) (string, bool)) []item {
	sequence, ok := v.node.(*ast.SequenceNode)
	if !ok {
		s.problemf(v.at, v.path, "must be a list, such as [one, two], but is %s", kind(v.node))
		return nil
	}
	var items []item
	for i, node := range sequence.Values {
		path := fmt.Sprintf("%s[%d]", v.path, i)
		s.places[path] = placeOf(node)
		element := s.resolve(path, placeOf(node), node)
		text, ok := "", !s.reported(path)
		if element.node != nil {
			text, ok = read(element)
		}
		if ok && text == "" {
			s.problemf(element.at, path, "is empty; remove it or write a text")
		} else if ok {
			items = append(items, item{text: text, value: element})
		}
	}
	return items
}

// whole reads a whole number from low to high; fallback when it is left out.
func (s *section) whole(key string, fallback, low, high int) int {
	v, ok := s.take(key)
	if !ok {
		return fallback
	}
	text, ok := s.literal(v, "a whole number")
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		s.problemf(v.at, v.path, "must be a whole number from %d to %d", low, high)
		return fallback
	}
	return n
}

// flag reads true or false; false when it is left out.
func (s *section) flag(key string) bool {
	v, ok := s.take(key)
	if !ok {
		return false
	}
	text, ok := s.literal(v, "true or false")
	if !ok {
		return false
	}
	switch strings.ToLower(text) {
	case "true":
		return true
	case "false":
		return false
	}
	s.problemf(v.at, v.path, "must be true or false")
	return false
}

// duration reads a time span from low to high; fallback when it is left out.
func (s *section) duration(key string, fallback, low, high time.Duration) time.Duration {
	v, ok := s.take(key)
	if !ok {
		return fallback
	}
	var text string
	switch n := v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		text = n.GetToken().Value
	case *ast.StringNode, *ast.LiteralNode:
		text, ok = s.textOf(v)
	default:
		s.problemf(v.at, v.path, "must be a time span, such as 5m, but is %s", kind(n))
		return fallback
	}
	if !ok || text == "" {
		return fallback
	}
	d, err := parseDuration(text)
	switch {
	case err != nil:
		s.problemf(v.at, v.path, "%v", err)
		return fallback
	case d < low || d > high:
		s.problemf(v.at, v.path, "must be from %s to %s", shortDuration(low), shortDuration(high))
		return fallback
	}
	return d
}

// textOf returns the text of v with its variables replaced. A number is
// refused, because YAML readers disagree on how 010 or 1e3 is spelled as text.
func (r *reader) textOf(v value) (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return r.expand(v, n.Value)
	case *ast.LiteralNode:
		return r.expand(v, n.Value.Value)
	}
	remedy := ""
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		remedy = "; put it in quotes"
	}
	r.problemf(v.at, v.path, "must be text, but is %s%s", kind(v.node), remedy)
	return "", false
}

// wordOf is textOf for stored status words, which may be numbers without quotes.
func (r *reader) wordOf(v value) (string, bool) {
	if n, ok := v.node.(*ast.IntegerNode); ok {
		return n.GetToken().Value, true
	}
	return r.textOf(v)
}

// literal returns a number or a truth value as it is written, or as a variable gives it.
func (r *reader) literal(v value, want string) (string, bool) {
	switch n := v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	case *ast.StringNode:
		if strings.Contains(n.Value, "${") {
			return r.expand(v, n.Value)
		}
		r.problemf(v.at, v.path, "must be %s, without quotes, but is text", want)
		return "", false
	}
	r.problemf(v.at, v.path, "must be %s, but is %s", want, kind(v.node))
	return "", false
}
