package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every testdata/bad/NAME.yaml is refused with exactly the lines of NAME.want.
func TestBadFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	t.Setenv("MYSQL_USER", "idemscope")
	t.Setenv("MYSQL_PASSWORD", "hunter2")
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(name, ".yaml") + ".want")
			if err != nil {
				t.Error(err)
			}
			_, err = Load(name)
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v (%T), want Problems", err, err)
			}
			if got := problems.Error() + "\n"; got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is in the error:\n%v", err)
			}
		})
	}
}
