package flow

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzVariants: a variant and a version are other keys, each named once, within
// the bounds, and text when the id is.
func FuzzVariants(f *testing.F) {
	for _, id := range []string{"order:7:v2", " 7 ", "ÅBC", "e\u0301", "１２", "7:v18446744073709551615", "v", "", "\xff", "x:v-1", "7\r\n", "7:v007"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		for name, list := range map[string][]string{"variants": Variants(id), "versions": Versions(id)} {
			if most := map[string]int{"variants": 16, "versions": 22}[name]; len(list) > most {
				t.Errorf("%q has %d %s, the bound is %d", id, len(list), name, most)
			}
			for i, other := range list {
				if other == id || other == "" || slices.Contains(list[:i], other) {
					t.Errorf("%q has the %s %q", id, name, list)
				}
				if utf8.ValidString(id) && !utf8.ValidString(other) {
					t.Errorf("%q is text, and its %s are not: %q", id, name, other)
				}
			}
		}
	})
}
