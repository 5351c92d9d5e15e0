package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadReadsRelativeFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "idemscope.yaml")
	write(t, filepath.Join(dir, "secrets", "mysql"), "hunter2\n")
	write(t, path, strings.Replace(minimal(""), "user: idemscope}", "user: idemscope, password_file: secrets/mysql}", 1))
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.MySQL[0].Password.Reveal(); got != "hunter2" {
		t.Fatalf("password is %q", got)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	_, err := Load("nowhere/idemscope.yaml")
	wantProblems(t, err, "nowhere/idemscope.yaml: there is no such file; copy examples/idemscope.yaml there and adapt it, or name another file with --config")
}

func TestLoadFolder(t *testing.T) {
	_, err := Load("testdata")
	wantProblems(t, err, "testdata: cannot be read: is a directory")
}

func TestLoadTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "idemscope.yaml")
	write(t, path, minimal("#"+strings.Repeat("x", maxSize)))
	_, err := Load(path)
	wantProblems(t, err, path+": cannot be read: it is larger than 1 MiB")
	_, err = parse(minimal("#"+strings.Repeat("x", maxSize)), nil)
	wantProblems(t, err, "test.yaml: cannot be read: it is larger than 1 MiB")
}

func TestLargestFile(t *testing.T) {
	text := minimal("#")
	mustParse(t, text+strings.Repeat("x", maxSize-len(text)), nil)
}

func TestSecretFileTooLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "idemscope.yaml")
	write(t, filepath.Join(dir, "big"), strings.Repeat("x", maxSize+1))
	write(t, path, strings.Replace(minimal(""), "user: idemscope}", "user: idemscope, password_file: big}", 1))
	_, err := Load(path)
	wantProblem(t, err, "big cannot be read: it is larger than 1 MiB")
}

func TestEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n\n", "---\n", "# only a comment", "~", "\uFEFF"} {
		_, err := parse(text, nil)
		wantProblems(t, err, "test.yaml: the file is empty; copy examples/idemscope.yaml there and adapt it")
	}
}

func TestNotUTF8(t *testing.T) {
	_, err := parse("listen: x\n用: a\xffb\n", nil)
	wantProblems(t, err, "test.yaml:2:5: this byte is not UTF-8; save the file as UTF-8")
	_, err = parse("\xff\xfel\x00i\x00", nil)
	wantProblems(t, err, "test.yaml:1:1: this byte is not UTF-8; save the file as UTF-8")
}

// Editors on Windows begin a file with a byte order mark and end lines with CR LF.
func TestWindowsFile(t *testing.T) {
	c := mustParse(t, "\uFEFF"+strings.ReplaceAll(minimal("time_zone: Asia/Shanghai\n"), "\n", "\r\n"), nil)
	if got := c.TimeZone.String(); got != "Asia/Shanghai" {
		t.Fatalf("time zone is %q", got)
	}
	if got := c.At("mysql"); got != "test.yaml:1:1" {
		t.Fatalf("mysql stands at %s", got)
	}
}

func TestDeepNesting(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 500_000),
		"a: " + strings.Repeat("{a: ", 200_000),
		strings.Repeat("- ", 500_000),
		strings.Repeat("? ", 500_000),
	} {
		_, err := parse(text, nil)
		wantProblem(t, err, "nested deeper than 32 levels; no key needs that")
	}
}

// Merges inside merges would multiply to 10^9 without a bound.
func TestMergesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("mysql:\n  m0: &m0 {user: idemscope}\n")
	for i := range 9 {
		self, before := string(rune('1'+i)), string(rune('0'+i))
		b.WriteString("  m" + self + ": &m" + self + " {<<: [" + strings.TrimSuffix(strings.Repeat("*m"+before+", ", 10), ", ") + "]}\n")
	}
	_, err := parse(b.String(), nil)
	wantProblem(t, err, "more than 1000 merges (<<); write the keys out")
	if n := strings.Count(err.Error(), "more than 1000 merges"); n != 1 {
		t.Fatalf("reported %d times", n)
	}
}

func TestProblemsUnwrap(t *testing.T) {
	_, err := parse(minimal("listne: x\nexporter: {interval: 1d}\n"), nil)
	var problem Problem
	if !errors.As(err, &problem) {
		t.Fatalf("no single Problem in %v", err)
	}
	want := Problem{File: "test.yaml", Line: 11, Column: 1, Key: "listne", Text: `unknown key; did you mean "listen"?`}
	if problem != want {
		t.Fatalf("got %+v, want %+v", problem, want)
	}
	wantProblems(t, err,
		`test.yaml:11:1: listne: unknown key; did you mean "listen"?`,
		`test.yaml:12:22: exporter.interval: "1d" is not a time span; write 24h`)
}

// FuzzParse: no input makes the reader panic; what is refused names a reason,
// and what is accepted reads back from its own output.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal("")))
	f.Add([]byte("mysql: &a\n  main: {<<: [*a, {b: c}], tls: {ca_file: x}}\n? k\n: !t v\n--- |\n x\n"))
	f.Add([]byte("flows: {a: {biz_types: ['*', \"\\u4e2d${A:-b}$$\"], lock: {key: '{{biz_id}}', ttl: 1 day}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		env := environment(map[string]string{"A": "a"})
		c, err := Parse("fuzz.yaml", data, env, noFile)
		var problems Problems
		switch {
		case err == nil:
			wantSame(t, c)
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("got %v (%T), want Problems", err, err)
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantSame checks that the effective configuration reads back as itself.
func wantSame(t *testing.T, c *Config) {
	t.Helper()
	once, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parse(string(once), nil)
	if err != nil {
		t.Fatalf("the effective configuration is refused:\n%v\n%s", err, once)
	}
	twice, err := back.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once, twice) {
		t.Fatalf("the effective configuration reads back differently:\n%s\n%s", once, twice)
	}
}
