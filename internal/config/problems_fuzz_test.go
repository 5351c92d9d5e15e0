package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzProblems starts from the bad fixtures: no text breaks the reader. It is refused with problems that say
// where and what, or its effective configuration reads back as itself; neither
// shows a secret.
func FuzzProblems(f *testing.F) {
	const secret = "s3cr3t-of-the-environment"
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no fixtures: %v", err)
	}
	for _, file := range append(files, "../../examples/idemscope.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{minimal(""), minimal("counters: {redis: main, prefix: \"${X}\"}"), "a: &a [*a, *a]", "<<: [<<: x]", "? {a: b}\n: c", "%YAML 1.2\n---\n", "- - - -", "\t", "a: |\n  x", "a: !!binary x", "\"\\uD800\": 1", "a:\n a:\n  a: *b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<13 {
			return // longer ones only take longer
		}
		c, err := parse(text, map[string]string{"PASSWORD": secret, "MYSQL_PASSWORD": secret, "RABBIT_PASSWORD": secret, "MYSQL_USER": "u", "X": "x"})
		if err == nil {
			wantSame(t, c)
			shown, err := c.Redacted()
			if err != nil {
				t.Fatal(err)
			}
			// A variable that stands elsewhere than in a password is no secret.
			if strings.Contains(string(shown), secret) && strings.Count(text, "PASSWORD") == strings.Count(text, "password: ${") {
				t.Errorf("the effective configuration shows a secret:\n%s", shown)
			}
			return
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("refused with %v (%T)", err, err)
		}
		for _, p := range problems {
			if strings.TrimSpace(p.Text) == "" || p.File == "" || p.Line < 0 || (p.Line == 0) != (p.Column == 0) {
				t.Errorf("a problem that does not say where or what: %+v", p)
			}
			// A file is called as the operator calls it.
			if !strings.Contains(p.Text, "the file ") && strings.IndexFunc(p.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) >= 0 {
				t.Errorf("shown as it is: %q", p.Error())
			}
		}
	})
}

// FuzzDuration: a time span that is taken is written so that it reads back as
// the same one; one that is refused names what to write.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"5m", "1h30m", "7d", "7 days", "30", "30 秒", "-1s", "1e9h", "9999999999999h", "", "\u0663s", "1.5h", "999999999 weeks"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err != nil {
			if !strings.Contains(err.Error(), "write") && !strings.Contains(err.Error(), "the units are") {
				t.Errorf("%q is refused without a remedy: %v", text, err)
			}
			return
		}
		if back, err := parseDuration(shortDuration(d)); err != nil || back != d {
			t.Errorf("%q is %s, written %q, which reads back as %s: %v", text, d, shortDuration(d), back, err)
		}
	})
}
