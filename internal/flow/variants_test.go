package flow

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVariantsReadLikeTheIDAndDifferInBytes(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{"ORD-9a", "ord-9a"}, {"ORD-9a", "ORD-9A"}, {"ORD-9a ", "ORD-9a"}, {" ORD-9a\t", "ORD-9a"}, {"ORD-9a\r\n", "ORD-9a"},
		{"ORD-9a ", "ord-9a"}, {"ORD-9a", "ORD-9a "}, {"ORD-9a", "ORD-9a\n"}, {"ORD-9a", " ORD-9a"}, {"\ufeffORD-9a", "ORD-9a"}, {"ORD-9a\u3000", "ORD-9a"},
		{"caf\u00e9", "cafe\u0301"}, {"cafe\u0301", "caf\u00e9"}, {"订单１２", "订单12"}, {"订单12", "订单１２"}, {"ＯＲＤ－１", "ORD-1"},
	} {
		if got := Variants(c.id); !slices.Contains(got, c.want) {
			t.Errorf("%q: %q is not among %q", c.id, c.want, got)
		}
	}
}

func TestVariantsAreFewAndNeverTheIDItself(t *testing.T) {
	ids := []string{"", " ", "\n\t", "0", "00123", "ORD-1", " Éé１ ", "bad\xff ", "\xe4\xb8", "nul\x00", "\u202eabc", strings.Repeat("x", maxVariedID), strings.Repeat("A", maxVariedID+1)}
	for _, id := range ids {
		seen := map[string]bool{id: true, "": true}
		got := Variants(id)
		for _, v := range got {
			if seen[v] {
				t.Errorf("%.20q: %q stands twice, is the id, or is empty", id, v)
			}
			seen[v] = true
			if !utf8.ValidString(v) && utf8.ValidString(id) {
				t.Errorf("%.20q: %q is not UTF-8", id, v)
			}
		}
		if len(got) > maxVariants || len(id) > maxVariedID && got != nil {
			t.Errorf("%.20q: %d variants", id, len(got))
		}
	}
}

func TestLeadingZerosAreNoSpelling(t *testing.T) {
	if slices.Contains(Variants("00123"), "123") {
		t.Error("00123 and 123 are two ids")
	}
}

func TestVersionsOfAnID(t *testing.T) {
	for _, c := range []struct {
		id         string
		with, none []string
	}{
		{"order:123:v2", []string{"order:123", "order:123:v0", "order:123:v1", "order:123:v3", "order:123:v20"}, []string{"order:123:v2", "order:123:v21"}},
		{"order-123-V2", []string{"order-123", "order-123-V1"}, []string{"order-123-v1"}},
		{"o_1_v3", []string{"o_1", "o_1_v2"}, nil},
		{"o.1.v04", []string{"o.1", "o.1.v03", "o.1.v10"}, []string{"o.1.v3"}},
		{"order:123:2", []string{"order:123", "order:123:1"}, nil},
		{"order:123:v500", []string{"order:123", "order:123:v499", "order:123:v501"}, []string{"order:123:v0"}},
		{"order:123", []string{"order:123:v0", "order:123:v1"}, []string{"order", "order:124"}},
		{"user:7", []string{"user:7:v1"}, []string{"user:8", "user"}},
		{"user:7:2025-01-15", []string{"user:7:2025-01-15:v1"}, []string{"user:7", "user:7:2025-01"}},
		{"a\nb:v1", []string{"a\nb", "a\nb:v2"}, nil},
	} {
		got := Versions(c.id)
		for _, want := range c.with {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q is not among %q", c.id, want, got)
			}
		}
		for _, not := range c.none {
			if slices.Contains(got, not) {
				t.Errorf("%q: %q is among %q", c.id, not, got)
			}
		}
		if len(got) > versions+1 || slices.Contains(got, c.id) {
			t.Errorf("%q: %d versions: %q", c.id, len(got), got)
		}
	}
	if got := Versions(strings.Repeat("x", maxVariedID+1)); got != nil {
		t.Errorf("%d versions of an id that is too long", len(got))
	}
}
