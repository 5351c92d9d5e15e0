package flow

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzTemplate: what a template renders is taken apart again, and every way to
// take a text apart renders that text.
func FuzzTemplate(f *testing.F) {
	for _, seed := range [][4]string{
		{"idem_lock:{biz_type}:{biz_id}", "order", "refund:7", "idem_lock:a:b:c"},
		{"lock:{{biz_id}}", "", "7", "lock:{7}"},
		{"{biz_id}:{biz_type}:lock", "a:lock", ":", "::::lock"},
		{"{user_id}:{sign_date}", "7", "2025-01-15", "7:8:9"},
		{"plain", "x", "y", "plain"},
		{"{a}{b}", "", "", ""},
		{"}{a}{", "1", "2", "}1{"},
		{"", "", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, text, first, second, other string) {
		if len(text)+len(first)+len(second)+len(other) > 400 {
			return // longer ones only take longer
		}
		tpl, err := ParseTemplate(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("a refusal without a reason")
			}
			return
		}
		if tpl.String() != text || tpl.IsZero() != (text == "") {
			t.Errorf("%q is kept as %q", text, tpl)
		}
		names := tpl.Names()
		values := map[string]string{}
		for i, name := range names {
			if !tpl.Has(name) {
				t.Errorf("%q lists %s and does not have it", text, name)
			}
			values[name] = []string{first, second}[i%2]
		}
		const bound = 2000
		rendered := tpl.Render(values)
		found := tpl.Matches(rendered, bound)
		empty := slices.Contains(slices.Collect(maps.Values(values)), "")
		if !empty && len(found) < bound && !slices.ContainsFunc(found, func(m map[string]string) bool { return maps.Equal(m, values) }) {
			t.Errorf("%q with %q is %q, which is not taken apart into them: %q", text, values, rendered, found)
		}
		for _, source := range []string{rendered, other} {
			checkMatches(t, tpl, source, tpl.Matches(source, bound), bound)
		}
	})
}

func checkMatches(t *testing.T, tpl Template, source string, found []map[string]string, bound int) {
	t.Helper()
	if len(found) > bound {
		t.Errorf("%d readings, the bound is %d", len(found), bound)
	}
	seen := map[string]bool{}
	for _, m := range found {
		if got := tpl.Render(m); got != source || len(m) != len(tpl.Names()) {
			t.Errorf("%q takes %q apart into %q, which renders %q", tpl, source, m, got)
		}
		var id strings.Builder
		for _, name := range tpl.Names() {
			if m[name] == "" {
				t.Errorf("%q takes %q apart with an empty %s", tpl, source, name)
			}
			id.WriteString(m[name] + "\xff\x00")
		}
		if seen[id.String()] && !strings.Contains(source, "\xff\x00") {
			t.Errorf("%q takes %q apart twice as %q", tpl, source, m)
		}
		seen[id.String()] = true
	}
}
