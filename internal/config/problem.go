package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	File string
	// Line and Column count from 1, in characters. 0 when the file as a whole is meant.
	Line, Column int
	// Key is the dotted path of the key. Empty when no single key is meant.
	Key string
	// Text says what is wrong and what is allowed or what to do. It holds no secret.
	Text string
}

// Error returns "file:line:column: key.path: text", without the parts that are not known.
func (p Problem) Error() string {
	where := p.File
	if p.Line > 0 {
		where = place{p.Line, p.Column}.in(p.File)
	}
	if p.Key == "" {
		return where + ": " + p.Text
	}
	return where + ": " + p.Key + ": " + p.Text
}

// Problems are all that is wrong with one configuration, in the order of the file.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single problems, for errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, problem := range p {
		errs[i] = problem
	}
	return errs
}

// sorted returns the problems in the order of the file.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p
}

// place is a position in the file, counted from 1, in characters.
type place struct{ line, column int }

func (p place) in(file string) string { return fmt.Sprintf("%s:%d:%d", file, p.line, p.column) }
