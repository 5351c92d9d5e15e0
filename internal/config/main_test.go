package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment returns a look-up in the given variables.
func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		content, ok := variables[name]
		return content, ok
	}
}

// noFile is a disk without files.
func noFile(path string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// files is a disk with these files.
func files(content map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if data, ok := content[filepath.ToSlash(path)]; ok {
			return []byte(data), nil
		}
		return noFile(path)
	}
}

// parse parses a text that needs no files.
func parse(text string, variables map[string]string) (*Config, error) {
	return Parse("test.yaml", []byte(text), environment(variables), noFile)
}

func mustParse(t *testing.T, text string, variables map[string]string) *Config {
	t.Helper()
	c, err := parse(text, variables)
	if err != nil {
		t.Fatalf("valid configuration refused:\n%v\n%s", err, text)
	}
	return c
}

// wantProblems checks that err is exactly these lines.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got error %v (%T), want Problems", err, err)
	}
	if got := problems.Error(); got != strings.Join(want, "\n") {
		t.Fatalf("got problems\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// wantProblem checks that err holds one problem with this text, whatever its place.
func wantProblem(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("got problems\n%v\nwant one with\n%s", err, text)
	}
}

// minimal is a small valid configuration with more text at its end.
func minimal(more string) string {
	return fmt.Sprintf(`mysql:
  main: {address: "127.0.0.1:3306", database: shop, user: idemscope}
redis:
  main: {addresses: ["127.0.0.1:6379"]}
brokers:
  rabbit: {management: "http://127.0.0.1:15672", user: monitor}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
flows:
  payments: {biz_types: [order_paid], ledger: orders}
%s`, more)
}
