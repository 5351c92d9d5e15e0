package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxMerges bounds how often a mapping is merged into another (<<), because
// merges inside merges multiply.
const maxMerges = 1000

var nameShape = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// reader goes through one file and collects every problem.
type reader struct {
	file     string
	env      func(string) (string, bool)
	readFile func(string) ([]byte, error)
	targets  map[*ast.AliasNode]ast.Node
	merges   int
	problems Problems
	// places holds where each key stands, by dotted path.
	places map[string]place
	// defined holds the names in each section of named parts, valid or not.
	defined map[string][]string
}

func (r *reader) problemf(at place, path, format string, args ...any) {
	r.problems = append(r.problems, Problem{File: r.file, Line: at.line, Column: at.column, Key: path, Text: fmt.Sprintf(format, args...)})
}

// reported reports whether a problem names the path.
func (r *reader) reported(path string) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Key == path })
}

// value is one value of the file.
type value struct {
	path string
	// at is where the value starts, or its key where it starts on a later line.
	at place
	// node is nil when the key has no value, or one that was reported already.
	node ast.Node
}

// resolve looks through anchors and aliases. key is where the key stands.
func (r *reader) resolve(path string, key place, node ast.Node) value {
	v := value{path: path, at: placeOf(node)}
	for {
		switch n := node.(type) {
		case *ast.AnchorNode:
			node = n.Value
			continue
		case *ast.AliasNode:
			target, ok := r.targets[n]
			if !ok {
				r.problemf(v.at, path, "an alias (*name) without an anchor (&name) before it; a text that starts with * stands in quotes")
				return v
			}
			node = target
			continue
		case *ast.NullNode:
			v.at = key
			return v
		case *ast.MappingNode:
			if !n.IsFlowStyle {
				v.at = key
			}
		}
		v.node = node
		return v
	}
}

// section is one mapping of the file. Reading a key makes it known; close
// reports the keys that nobody read.
type section struct {
	*reader
	path string
	at   place
	// braces: written between { and }.
	braces bool
	keys   []string
	keyAt  map[string]place
	values map[string]value
	known  []string
}

// open reads v as a section; nil when it has no value or is none.
func (r *reader) open(v value) *section {
	if v.node == nil {
		return nil
	}
	mapping, ok := v.node.(*ast.MappingNode)
	if !ok {
		r.problemf(v.at, v.path, "must be a group of keys (key: value, with a space after the colon), but is %s", kind(v.node))
		return nil
	}
	s := &section{reader: r, path: v.path, at: v.at, braces: mapping.IsFlowStyle, keyAt: map[string]place{}, values: map[string]value{}}
	s.fill(mapping)
	return s
}

// fill adds the entries of a mapping that are not there yet, then those of the
// mappings that it merges.
func (s *section) fill(mapping *ast.MappingNode) {
	own := map[string]place{}
	var merged []*ast.MappingValueNode
	for _, entry := range mapping.Values {
		if entry.Key.IsMergeKey() {
			merged = append(merged, entry)
			continue
		}
		at := placeOf(entry.Key)
		key, ok := keyText(entry.Key)
		if !ok {
			s.problemf(at, s.path, "this key is not plain text; write it as name: value")
			continue
		}
		if first, twice := own[key]; twice {
			s.problemf(at, s.pathOf(key), "this key stands twice; it is already in line %d", first.line)
			continue
		}
		own[key] = at
		if _, overridden := s.keyAt[key]; overridden {
			continue
		}
		s.keys = append(s.keys, key)
		s.keyAt[key] = at
		s.places[s.pathOf(key)] = at
		s.values[key] = s.resolve(s.pathOf(key), at, entry.Value)
	}
	for _, entry := range merged {
		s.merge(s.resolve(s.path, placeOf(entry.Key), entry.Value))
	}
}

// merge adds what "<<" names: a mapping or a list of mappings.
func (s *section) merge(v value) {
	if s.merges++; s.merges > maxMerges {
		if s.merges == maxMerges+1 {
			s.problemf(v.at, s.path, "more than %d merges (<<); write the keys out", maxMerges)
		}
		return
	}
	switch n := v.node.(type) {
	case *ast.MappingNode:
		s.fill(n)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			s.merge(s.resolve(s.path, v.at, item))
		}
	default:
		if !s.reported(v.path) {
			s.problemf(v.at, s.path, "<< merges a group of keys, such as <<: *name")
		}
	}
}

// pathOf returns the dotted path of a key of the section. A key that is no
// proper name is left out: it may be a value gone astray.
func (s *section) pathOf(key string) string {
	switch {
	case !nameShape.MatchString(key):
		return s.path
	case s.path == "":
		return key
	}
	return s.path + "." + key
}

// take returns the value of a key and makes the key known. ok is false when
// the key is left out, empty, or reported already.
func (s *section) take(key string) (v value, ok bool) {
	s.known = append(s.known, key)
	v = s.value(key)
	return v, v.node != nil
}

// value returns the value of a key; of one that is left out, where it is missing.
func (s *section) value(key string) value {
	if v, ok := s.values[key]; ok {
		return v
	}
	return value{path: s.pathOf(key), at: s.at}
}

// section opens the section below a key; nil when it is left out or no section.
func (s *section) section(key string) *section {
	v, _ := s.take(key)
	return s.open(v)
}

// named opens each part of a section of named parts, in the order of the file.
func (s *section) named(key string, read func(name string, part *section)) {
	parts := s.section(key)
	if parts == nil {
		return
	}
	for _, name := range parts.keys {
		if !nameShape.MatchString(name) {
			s.problemf(parts.keyAt[name], parts.path, "a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -")
			continue
		}
		s.defined[key] = append(s.defined[key], name)
		v := parts.values[name]
		part := s.open(v)
		if v.node == nil && !s.reported(v.path) {
			part = &section{reader: s.reader, path: v.path, at: v.at}
		}
		if part != nil {
			read(name, part)
			part.close()
		}
	}
}

// close reports the keys that nobody read. Between braces, a password with a
// comma in it and without quotes falls apart, and its rest looks like keys: such
// words are not named.
func (s *section) close() {
	afterSecret := false
	for _, key := range s.keys {
		if slices.Contains(s.known, key) {
			afterSecret = afterSecret || strings.Contains(key, "password") || strings.Contains(key, "secret")
			continue
		}
		at := s.keyAt[key]
		near, isNear := nearest(key, s.known)
		help := fmt.Sprintf("did you mean %q?", near)
		if !isNear {
			help = "allowed here: " + strings.Join(s.known, ", ")
		}
		switch {
		case !nameShape.MatchString(key):
			s.problemf(at, s.path, "this is no key; a space follows the colon after a key, and %s; %s", quotesHelp, help)
		case s.braces && !isNear && (afterSecret || s.values[key].node == nil):
			s.problemf(at, s.path, "an unknown key starts here, or the rest of a text with a comma, which stands in quotes; %s", help)
		default:
			s.problemf(at, s.pathOf(key), "unknown key; %s", help)
		}
		// The unknown key itself may have been meant for a password.
		afterSecret = true
	}
}

// keyText returns a key as it is written.
func keyText(key ast.MapKeyNode) (text string, ok bool) {
	switch n := key.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// kind names what a value is, for people.
func kind(node ast.Node) string {
	switch node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a group of keys"
	}
	return "something else"
}
