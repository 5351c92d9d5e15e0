package console

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"idemscope/internal/flow"
)

// description is the one that the program serves, as a reader sees it.
var description = sync.OnceValue(func() map[string]any {
	all, err := describeAPI("0.1.0")
	if err != nil {
		panic(err)
	}
	var d map[string]any
	if err := json.Unmarshal(all[flow.English], &d); err != nil {
		panic(err)
	}
	return d
})

// at goes down into a description; nil where there is nothing.
func at(d any, path ...string) any {
	for _, name := range path {
		m, _ := d.(map[string]any)
		d = m[name]
	}
	return d
}

var colon = regexp.MustCompile(`:(\w+)`)

// braces writes the address as descriptions do.
func braces(path string) string { return colon.ReplaceAllString(path, "{$1}") }

// Every address of the API is described, and nothing else.
func TestTheDescriptionHasEveryAddress(t *testing.T) {
	h, err := router(shop(t))
	if err != nil {
		t.Fatal(err)
	}
	var served, described []string
	for _, route := range h.Routes() {
		if strings.HasPrefix(route.Path, "/api/") && route.Method != http.MethodHead {
			served = append(served, route.Method+" "+braces(route.Path))
		}
	}
	for path, methods := range at(description(), "paths").(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
			var inPath []string
			for _, p := range at(operation, "parameters").([]any) {
				if at(p, "in") == "path" {
					inPath = append(inPath, "{"+at(p, "name").(string)+"}")
				}
			}
			if want := regexp.MustCompile(`{\w+}`).FindAllString(path, -1); !slices.Equal(inPath, want) {
				t.Errorf("%s describes %q", path, inPath)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if !slices.Equal(served, described) {
		t.Errorf("served:\n%s\ndescribed:\n%s", strings.Join(served, "\n"), strings.Join(described, "\n"))
	}
}

// byGet are parameters of which one more does not matter: any word may be meant.
var byGet = []string{"lang", "download"}

// The parameters that are described are those that are read: given twice, each word
// that stands anywhere in the program as a name could, is refused by the addresses
// that read it, and by no other.
func TestTheDescriptionHasEveryParameter(t *testing.T) {
	h, _ := guarded(t, nil)
	usual := map[string]url.Values{"/api/v1/lookup": {"type": {"order_paid"}, "id": {"1"}}, "/api/v1/search": {"q": {"1"}}}
	words := wordsOfTheProgram(t)
	if len(words) < 100 || !slices.Contains(words, "older") {
		t.Fatalf("%d words", len(words))
	}
	for path, methods := range at(description(), "paths").(map[string]any) {
		operation := at(methods, "get")
		if operation == nil {
			continue
		}
		described := map[string]bool{}
		for _, p := range at(operation, "parameters").([]any) {
			if at(p, "in") == "query" {
				described[at(p, "name").(string)] = true
			}
		}
		for _, name := range byGet {
			delete(described, name)
		}
		for _, word := range words {
			if slices.Contains(byGet, word) {
				continue
			}
			values := url.Values{}
			for name, given := range usual[path] {
				values[name] = given
			}
			values[word] = []string{"1", "2"}
			w := call(h, "alice", "GET", strings.ReplaceAll(path, "{name}", "payments")+"?"+values.Encode(), nil)
			if read := strings.Contains(w.Body.String(), `"repeated_parameter"`); read != described[word] {
				t.Errorf("%s: %s is read: %v, described: %v\n%s", path, word, read, described[word], w.Body)
			}
			delete(described, word)
		}
		for name := range described {
			t.Errorf("%s describes %s, which stands nowhere in the program", path, name)
		}
	}
}

// wordsOfTheProgram are the strings of this package that could name a parameter.
func wordsOfTheProgram(t *testing.T) (words []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[a-z][a-z_]*$`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "openapi.go" {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && name.MatchString(text) {
					words = append(words, text)
				}
			}
			return true
		})
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// It is served in both languages, leads to the addresses from any path, and every
// reference in it leads somewhere.
func TestTheDescriptionIsServed(t *testing.T) {
	server := serve(t, shop(t))
	for lang, word := range map[string]string{"en": "byte for byte, percent-encoded", "zh": "百分号编码"} {
		got := get(t, server.URL+"/api/v1/openapi.json?lang="+lang)
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/json; charset=utf-8" || !strings.Contains(got.body, word) || strings.Contains(got.body, "%!") {
			t.Errorf("%s: %d %.300s", lang, got.StatusCode, got.body)
		}
		var d map[string]any
		if err := json.Unmarshal([]byte(got.body), &d); err != nil || at(d, "openapi") != "3.1.0" {
			t.Fatal(err)
		}
		base, _ := url.Parse("https://tools.example/idem/api/v1/openapi.json")
		root, err := base.Parse(at(d, "servers").([]any)[0].(map[string]any)["url"].(string))
		if err != nil || strings.TrimSuffix(root.Path, "/") != "/idem" {
			t.Errorf("%v %v", root, err)
		}
		references := regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(got.body, -1)
		if len(references) < 20 {
			t.Errorf("%d references", len(references))
		}
		for _, r := range references {
			if at(d, "components", "schemas", r[1]) == nil {
				t.Errorf("%s leads nowhere", r[1])
			}
		}
	}
}

// The shapes hold: a field too many, one too few, or of another type is seen.
func TestShapesAreChecked(t *testing.T) {
	good := `{"error":{"code":"x","message":"y"}}`
	for body, wrong := range map[string]bool{
		good: false, `{"error":{"code":"x"}}`: true, `{"error":{"code":1,"message":"y"}}`: true, `{"error":{"code":"x","message":"y","more":""}}`: true, `{"error":null}`: true, `[]`: true,
	} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if err := conforms(map[string]any{"$ref": "#/components/schemas/console.Error"}, v, "body"); (err != nil) != wrong {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// checkDescribed checks an answer of the API against its description. Every test of
// this package that asks the API does so.
func checkDescribed(t testing.TB, r *http.Request, w *http.Response, body []byte) {
	t.Helper()
	i := strings.Index(r.URL.Path, "/api/v1/")
	if i < 0 || r.Method == http.MethodHead || w.StatusCode == http.StatusNotModified {
		return
	}
	if w.StatusCode == http.StatusInternalServerError && strings.HasPrefix(w.Header.Get("Content-Type"), "text/plain") {
		return // a panic: nothing is encoded any more
	}
	operation := at(description(), "paths", describedPath(r.URL.Path[i:]), strings.ToLower(r.Method))
	if operation == nil {
		return // no address
	}
	responses := at(operation, "responses")
	response := at(responses, strconv.Itoa(w.StatusCode))
	if response == nil {
		if response = at(responses, "default"); w.StatusCode < 300 {
			t.Errorf("%s %s: status %d is not described", r.Method, r.URL.Path, w.StatusCode)
			return
		}
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("%s: %v", r.URL.Path, err)
		return
	}
	if err := conforms(at(response, "content", "application/json", "schema").(map[string]any), v, "body"); err != nil {
		t.Errorf("%s %s: %d is not as described: %v", r.Method, r.URL.Path, w.StatusCode, err)
	}
}

// describedPath is the address as the description has it.
func describedPath(path string) string {
	if at(description(), "paths", path) != nil {
		return path
	}
	head, _, _ := cutLast(path, "/")
	for described := range at(description(), "paths").(map[string]any) {
		if strings.HasPrefix(described, head+"/{") {
			return described
		}
	}
	return path
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// conforms reports where a value is not as its schema says. What is not described
// must not be there.
func conforms(schema map[string]any, v any, where string) error {
	if reference, ok := schema["$ref"].(string); ok {
		_, name, _ := cutLast(reference, "/")
		return conforms(at(description(), "components", "schemas", name).(map[string]any), v, where)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		var all []string
		for _, choice := range choices {
			err := conforms(choice.(map[string]any), v, where)
			if err == nil {
				return nil
			}
			all = append(all, err.Error())
		}
		return fmt.Errorf("none of: %s", strings.Join(all, "; "))
	}
	if values, ok := schema["enum"].([]any); ok && !slices.Contains(values, v) {
		return fmt.Errorf("%s is %v", where, v)
	}
	if got := jsonType(v); got != schema["type"] && (got != "integer" || schema["type"] != "number") {
		return fmt.Errorf("%s is %s, not %v", where, got, schema["type"])
	}
	switch v := v.(type) {
	case []any:
		for i, one := range v {
			if err := conforms(schema["items"].(map[string]any), one, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return conformsObject(schema, v, where)
	}
	return nil
}

func conformsObject(schema, v map[string]any, where string) error {
	properties, described := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	if !described && others == nil {
		return nil
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			return fmt.Errorf("%s has no %s", where, name)
		}
	}
	for name, one := range v {
		property, ok := properties[name].(map[string]any)
		if !ok {
			property = others
		}
		if property == nil {
			return fmt.Errorf("%s has %s", where, name)
		}
		if err := conforms(property, one, where+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func jsonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	}
	return "object"
}
