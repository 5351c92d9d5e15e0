package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// maxSize bounds the configuration and every file that it names, in bytes.
const maxSize = 1 << 20

// firstSteps is the remedy where there is no configuration yet.
const firstSteps = "copy examples/idemscope.yaml there and adapt it"

// Load reads and validates the configuration file at path, with the variables of
// this process's environment. The error, if any, is a Problems.
func Load(path string) (*Config, error) {
	data, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Problems{{File: path, Text: "there is no such file; " + firstSteps + ", or name another file with --config"}}
	case err != nil:
		return nil, Problems{{File: path, Text: "cannot be read: " + cause(err)}}
	}
	return Parse(path, data, os.LookupEnv, readFile)
}

// Parse validates the configuration in data, which is called name in errors.
// Relative paths in it start at the folder of name. env looks a variable up, as
// os.LookupEnv does, and readFile reads a named file whole; Parse reads nothing else. The error, if
// any, is a Problems.
func Parse(name string, data []byte, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*Config, error) {
	r := &reader{file: name, env: env, readFile: readFile, places: map[string]place{}, defined: map[string][]string{}}
	root := r.syntax(data)
	if root == nil {
		return nil, r.problems.sorted()
	}
	c := r.config(root)
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return c, nil
}

// readFile reads a file of at most maxSize bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, errTooLarge
	}
	return data, nil
}

var errTooLarge = fmt.Errorf("it is larger than %d MiB", maxSize>>20)

// cause returns why a file cannot be read, without the path, which the caller names.
func cause(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// notUTF8 returns the place of the first byte that is not UTF-8.
func notUTF8(data []byte) (at place, found bool) {
	if utf8.Valid(data) {
		return place{}, false
	}
	good := 0
	for {
		r, size := utf8.DecodeRune(data[good:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		good += size
	}
	line := data[bytes.LastIndexByte(data[:good], '\n')+1 : good]
	return place{line: bytes.Count(data[:good], []byte("\n")) + 1, column: utf8.RuneCount(line) + 1}, true
}
