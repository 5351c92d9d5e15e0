package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds how deep brackets and dashes nest. The file needs five
// levels; the YAML parser takes memory that grows with the square of the depth.
const maxDepth = 32

// The remedies for most broken YAML.
const (
	quotesHelp = "a text with special characters stands in quotes"
	syntaxHelp = "check the indentation; " + quotesHelp
)

// syntax reads the YAML and returns the outermost section; nil when the
// problems say why there is none.
func (r *reader) syntax(data []byte) *section {
	whole := func(text string) *section {
		r.problems = append(r.problems, Problem{File: r.file, Text: text})
		return nil
	}
	if len(data) > maxSize {
		return whole("cannot be read: " + errTooLarge.Error())
	}
	if at, found := notUTF8(data); found {
		r.problemf(at, "", "this byte is not UTF-8; save the file as UTF-8")
		return nil
	}
	text := string(bytes.TrimPrefix(data, []byte("\uFEFF")))
	tokens := lexer.Tokenize(text)
	if at, found := tooDeep(tokens); found {
		r.problemf(at, "", "nested deeper than %d levels; no key needs that", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntaxProblem(err, strings.Split(text, "\n"))
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.DirectiveNode:
			continue
		}
		if body != nil {
			r.problemf(placeOf(doc.Body), "", "a second YAML document starts here; one file holds one configuration, without ---")
			return nil
		}
		body = doc.Body
	}
	if body == nil || body.Type() == ast.NullType {
		return whole("the file is empty; " + firstSteps)
	}
	r.targets = map[*ast.AliasNode]ast.Node{}
	r.link(body, map[string]ast.Node{})
	if len(r.problems) > 0 {
		return nil
	}
	return r.open(r.resolve("", place{line: 1, column: 1}, body))
}

// syntaxProblem reports broken YAML. Words that the parser quotes from the file
// are left out: they may be part of a secret.
func (r *reader) syntaxProblem(err error, lines []string) {
	var broken yaml.Error
	if !errors.As(err, &broken) || broken.GetToken() == nil {
		r.problems = append(r.problems, Problem{File: r.file, Text: "not valid YAML; " + syntaxHelp})
		return
	}
	position := broken.GetToken().Position
	at := place{line: position.Line, column: position.Column}
	message, _, _ := strings.Cut(broken.GetMessage(), `"`)
	message = strings.TrimRight(message, ": ")
	switch {
	case strings.Contains(message, `'\t'`), strings.Contains(message, "'\t'"):
		r.problemf(at, "", "a tab stands where YAML allows spaces only; indent with spaces")
	case at.line <= len(lines) && strings.Contains(lines[at.line-1], "${"):
		r.problemf(at, "", `not valid YAML (%s); between { and } a variable stands in quotes: "${NAME}"`, message)
	default:
		r.problemf(at, "", "not valid YAML (%s); %s", message, syntaxHelp)
	}
}

// tooDeep returns where brackets, or dashes on one line, nest deeper than maxDepth.
func tooDeep(tokens token.Tokens) (at place, found bool) {
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		}
		if brackets > maxDepth || dashes > maxDepth {
			return place{line: t.Position.Line, column: t.Position.Column}, true
		}
	}
	return place{}, false
}

// link finds the value that each alias stands for. An anchor counts from its
// end on, so no value can contain itself. It reports tags, after which the
// parser may have put the following lines in the wrong place.
func (r *reader) link(node ast.Node, anchors map[string]ast.Node) {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, entry := range n.Values {
			r.link(entry.Value, anchors)
		}
	case *ast.SequenceNode:
		for _, item := range n.Values {
			r.link(item, anchors)
		}
	case *ast.AnchorNode:
		r.link(n.Value, anchors)
		anchors[n.Name.GetToken().Value] = n.Value
	case *ast.TagNode:
		r.problemf(placeOf(n), "", "a YAML tag (!name) has no meaning here; a text that starts with ! stands in quotes")
	case *ast.AliasNode:
		if target, ok := anchors[n.Value.GetToken().Value]; ok {
			r.targets[n] = target
		}
	}
}

// placeOf returns where a node starts.
func placeOf(node ast.Node) place {
	// The token of a mapping without braces is its first colon.
	if mapping, ok := node.(*ast.MappingNode); ok && !mapping.IsFlowStyle && len(mapping.Values) > 0 {
		node = mapping.Values[0].Key
	}
	position := node.GetToken().Position
	return place{line: position.Line, column: position.Column}
}
