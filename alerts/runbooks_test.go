package alerts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const runbooks = "../docs/runbooks"

// parts are the headings of a runbook page, in their order.
var parts = map[string][]string{
	".md":       {"## What it means", "## See it", "## Usual causes", "## What to do", "## When it is noise"},
	".zh-CN.md": {"## 含义", "## 如何查看", "## 常见原因", "## 处理步骤", "## 何时可忽略"},
}

func TestEveryAlertHasItsRunbookInBothLanguages(t *testing.T) {
	pages := map[string]bool{"README.md": true, "README.zh-CN.md": true}
	for ending, headings := range parts {
		index := page(t, "README"+ending)
		for _, r := range rules(t, alertFile) {
			name := r.Alert + ending
			pages[name] = true
			text := page(t, name)
			if !strings.HasPrefix(text, "# "+r.Alert+"\n") {
				t.Errorf("%s does not begin with its name", name)
			}
			at := 0
			for _, h := range headings {
				i := strings.Index(text[at:], "\n"+h+"\n")
				if i < 0 {
					t.Errorf("%s: %q is missing, or not in its place", name, h)
					break
				}
				at += i
			}
			if !strings.Contains(index, "]("+name+")") {
				t.Errorf("the index does not lead to %s", name)
			}
			if !strings.Contains(text, "severity: "+r.Labels["severity"]) {
				t.Errorf("%s does not say that its severity is %s", name, r.Labels["severity"])
			}
		}
	}
	files, err := filepath.Glob(runbooks + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !pages[filepath.Base(file)] {
			t.Errorf("%s belongs to no alert", file)
		}
	}
}

// TestRunbooksNameWhatExists looks up the thresholds and the links of all pages.
func TestRunbooksNameWhatExists(t *testing.T) {
	recorded := map[string]bool{}
	for _, r := range rules(t, recordingFile) {
		recorded[r.Record] = true
	}
	files, err := filepath.Glob(runbooks + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := page(t, filepath.Base(file))
		for _, name := range regexp.MustCompile(`idem:\w+:\w+`).FindAllString(text, -1) {
			if !recorded[name] {
				t.Errorf("%s names %s, which no rule records", file, name)
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(runbooks, link[1])); err != nil {
				t.Errorf("%s leads to %s: %v", file, link[1], err)
			}
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(runbooks, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
