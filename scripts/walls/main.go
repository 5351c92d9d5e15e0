// Command walls checks who imports whom. It prints each import, and each read of the environment, that the table in
// rooms.go does not allow, and exits 1 when there is one. Run it from the root of the repository. Tests may import
// what they like and are not looked at. It is no style checker: gofmt, vet and staticcheck stand beside it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	problems, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "walls:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// listed is what `go list -json` tells of a package.
type listed struct {
	Dir            string
	ImportPath     string
	GoFiles        []string
	CgoFiles       []string
	IgnoredGoFiles []string // of other platforms
	Module         struct{ Path, Dir string }
}

// check returns the problems of the module in dir, one line each.
func check(dir string) ([]string, error) {
	packages, err := list(dir)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, p := range packages {
		found, err := checkPackage(p)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

func list(dir string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-find", "-json=Dir,ImportPath,GoFiles,CgoFiles,IgnoredGoFiles,Module", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var packages []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

func checkPackage(p listed) ([]string, error) {
	files := slices.DeleteFunc(slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles), func(name string) bool {
		return strings.HasSuffix(name, "_test.go")
	})
	if len(files) == 0 {
		return nil, nil // tests only
	}
	room := strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
	entry, ok := entryOf(room)
	if !ok {
		return []string{fmt.Sprintf("%s: unknown room: add it to scripts/walls/rooms.go with what it may import", room)}, nil
	}
	var problems []string
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		at := func(pos token.Pos) string {
			return fmt.Sprintf("%s:%d", path.Join(room, name), set.Position(pos).Line)
		}
		problems = append(problems, checkImports(file, entry, p.Module.Path, at)...)
		problems = append(problems, checkEnv(file, entry, at)...)
	}
	return problems, nil
}

// entryOf returns the name under which a room stands in the table: its own, or the wildcard of its parent.
func entryOf(room string) (string, bool) {
	for _, name := range []string{room, path.Dir(room) + "/*"} {
		if _, ok := rooms[name]; ok {
			return name, true
		}
	}
	return "", false
}

func checkImports(file *ast.File, entry, module string, at func(token.Pos) string) []string {
	var problems []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // does not compile either
		}
		why := ""
		if room, ours := strings.CutPrefix(imported, module+"/"); ours {
			why = whyNotOurs(entry, room)
		} else {
			why = whyNotTheirs(entry, imported)
		}
		if why != "" {
			problems = append(problems, fmt.Sprintf("%s: import %q: %s", at(spec.Pos()), imported, why))
		}
	}
	return problems
}

func whyNotOurs(entry, room string) string {
	if slices.Contains(rooms[entry], room) {
		return ""
	}
	if len(rooms[entry]) == 0 {
		return entry + " imports nothing of this module"
	}
	return entry + " imports only " + strings.Join(rooms[entry], ", ")
}

func whyNotTheirs(entry, imported string) string {
	for _, g := range guards {
		for _, guarded := range g.imports {
			if (imported == guarded || strings.HasPrefix(imported, guarded+"/")) && !slices.Contains(g.rooms, entry) {
				return g.why
			}
		}
	}
	return ""
}

// checkEnv reports the uses of os.Getenv and its like, under whatever name the file imports os.
func checkEnv(file *ast.File, entry string, at func(token.Pos) string) []string {
	if slices.Contains(envRooms, entry) {
		return nil
	}
	name := importName(file, "os")
	var problems []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == name && slices.Contains(envFuncs, selector.Sel.Name) {
			problems = append(problems, fmt.Sprintf("%s: os.%s: internal/config alone reads the environment", at(n.Pos()), selector.Sel.Name))
		}
		return true
	})
	return problems
}

// importName is the name of an imported package of the standard library in a file, or "" when it is not imported.
func importName(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}
