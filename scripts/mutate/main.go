// Command mutate changes one operator or condition of a package at a time, runs
// the package's tests on each change, and lists the changes that no test
// notices. It is for packages of pure rules, whose tests take a moment; the
// source on disk is never touched (go test -overlay).
//
// Run it from the root of the repository: go run ./scripts/mutate internal/verdict
// With FILE, FILE:LINE: or FILE:LINE:COLUMN behind the package, it tries the changes at those places alone.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	file     string
	from, to int
	text     string
	where    string
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: mutate PACKAGE_FOLDER [FILE[:LINE[:COLUMN]]...]")
		os.Exit(2)
	}
	survivors, all, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	fmt.Printf("figure mutants_noticed = %d of %d (package %s)\n", all-survivors, all, os.Args[1])
	if survivors > 0 {
		os.Exit(1)
	}
}

// atOnce is how many changes are tried at the same time.
var atOnce = max(1, runtime.NumCPU())

func run(folder string, places []string) (survivors, all int, err error) {
	mutants, err := mutantsIn(folder)
	if err != nil {
		return 0, 0, err
	}
	if len(places) > 0 {
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool {
			return !slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(m.where, place) })
		})
	}
	type outcome struct {
		mutant
		noticed bool
		err     error
	}
	todo, outcomes := make(chan mutant, len(mutants)), make(chan outcome)
	for _, m := range mutants {
		todo <- m
	}
	close(todo)
	for range atOnce {
		go func() {
			for m := range todo {
				noticed, err := m.noticed(folder)
				outcomes <- outcome{m, noticed, err}
			}
		}()
	}
	for range mutants {
		o := <-outcomes
		if o.err != nil {
			return survivors, all, o.err
		}
		all++
		if !o.noticed {
			survivors++
			fmt.Printf("not noticed: %s\n", o.where)
		}
		if all%50 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d\n", all, len(mutants))
		}
	}
	return survivors, all, nil
}

// mutantsIn lists the changes of all files that are no tests.
func mutantsIn(folder string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		of, err := mutantsOf(file)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// swaps are the operators that are exchanged for one another.
var swaps = map[token.Token]string{
	token.LAND: "||", token.LOR: "&&", token.EQL: "!=", token.NEQ: "==",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.ADD: "-", token.SUB: "+",
}

func mutantsOf(file string) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	add := func(pos token.Pos, length int, text, what string) {
		at := set.Position(pos)
		mutants = append(mutants, mutant{file, at.Offset, at.Offset + length, text, fmt.Sprintf("%s:%d:%d %s", file, at.Line, at.Column, what)})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.BinaryExpr:
			if text, ok := swaps[e.Op]; ok {
				add(e.OpPos, len(e.Op.String()), text, fmt.Sprintf("%s becomes %s", e.Op, text))
			}
		case *ast.UnaryExpr:
			if e.Op == token.NOT {
				add(e.OpPos, 1, "", "! is dropped")
			}
		}
		return true
	})
	return mutants, nil
}

// noticed reports whether the tests fail with the mutant; one that does not
// compile, or that makes a test run for ever, counts as noticed.
func (m mutant) noticed(folder string) (bool, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	changed := filepath.Join(dir, "changed.go")
	text := string(source[:m.from]) + m.text + string(source[m.to:])
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return false, err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return false, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return false, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return false, err
	}
	return exec.Command("go", "test", "-count=1", "-vet=off", "-failfast", "-timeout=30s", "-overlay", list, "./"+folder).Run() != nil, nil
}
