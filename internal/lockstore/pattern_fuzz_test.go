package lockstore

import (
	"slices"
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

// FuzzScanPattern asks a real Redis: every key with one of the prefixes matches
// the pattern, and a key that does not begin like one of them does not.
func FuzzScanPattern(f *testing.F) {
	db := testkit.Redis(f)
	for _, s := range [][3]string{
		{"idem_lock:", "idempotent:", "pay:1"}, {"a*b", "a?b", "c"}, {`a\`, "a[", "]x"}, {"[^a-z]", "[", "-"}, {"", "x", "y"}, {"\x00\xff", "\x00", "\n"},
		{"订单:", "订", "单"}, {"-", "^", "]"}, {"lock:", "lock:pay:", "1"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, first, second, rest string) {
		prefixes := []string{first, second}
		pattern := patternOf(prefixes)
		keys := []string{first + rest, second + rest, first, second}
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "" })
		stranger := "~" + rest
		if pattern == "" || len(keys) == 0 {
			return
		}
		if err := db.Client.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		for _, k := range append(slices.Clone(keys), stranger) {
			if err := db.Client.Set(t.Context(), k, "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		found, cursor, err := db.Client.Scan(t.Context(), 0, pattern, 1000).Result()
		if err != nil || cursor != 0 {
			t.Fatalf("cursor %d: %v", cursor, err)
		}
		for _, k := range keys {
			if !slices.Contains(found, k) {
				t.Errorf("prefixes %q make the pattern %q, which %q does not match", prefixes, pattern, k)
			}
		}
		if !strings.HasPrefix(first, "~") && !strings.HasPrefix(second, "~") && slices.Contains(found, stranger) {
			t.Errorf("prefixes %q make the pattern %q, which %q matches", prefixes, pattern, stranger)
		}
	})
}
