package exporter

import (
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

func testLabels(max int, configured ...string) *labels {
	return newLabels(max, configured, prometheus.NewCounter(prometheus.CounterOpts{Name: "overflow_total", Help: "Overflow."}))
}

func TestLabelCapIsSticky(t *testing.T) {
	l := testLabels(3, "pay", "refund")
	for range 2 {
		for _, c := range []struct{ bizType, want string }{
			{"sign", "sign"}, {"late", "other"}, {"pay", "pay"}, {"refund", "refund"}, {"sign", "sign"}, {"later", "other"},
		} {
			if got := l.of(c.bizType); got != c.want {
				t.Errorf("label of %q is %q, want %q", c.bizType, got, c.want)
			}
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(l.overflow)
	gather(t, registry).want(t, samples{"overflow_total": 4})
	if len(l.named) != 3 {
		t.Errorf("%d types are remembered, want the cap", len(l.named))
	}
}

func TestConfiguredTypesAreNeverCut(t *testing.T) {
	l := testLabels(1, "a", "b", "c")
	for _, bizType := range []string{"c", "b", "a"} {
		if got := l.of(bizType); got != bizType {
			t.Errorf("label of configured %q is %q", bizType, got)
		}
	}
	if got := l.of("d"); got != otherType {
		t.Errorf("label beyond the cap is %q", got)
	}
}

func TestLabelsAreValidUTF8(t *testing.T) {
	for stored, want := range map[string]string{
		"":                  "",
		"订单":                "订单",
		"a\xffb":            `a\xFFb`,
		"\xe8\xae":          `\xE8\xAE`,
		"\xed\xa0\x80":      `\xED\xA0\x80`, // a surrogate is no character
		"\xff\u00e9\x00\n ": `\xFF` + "\u00e9\x00\n ",
		"\ufffd":            "\ufffd", // the replacement character itself is valid
	} {
		got := validLabel(stored)
		if got != want {
			t.Errorf("label of %q is %q, want %q", stored, got, want)
		}
		if !utf8.ValidString(got) {
			t.Errorf("label of %q is not valid", stored)
		}
	}
}

func TestDifferentBytesMayShareALabel(t *testing.T) {
	l := testLabels(10)
	if a, b := l.of("a\xff"), l.of(`a\xFF`); a != b {
		t.Fatalf("labels are %q and %q", a, b)
	}
}

func FuzzValidLabel(f *testing.F) {
	for _, s := range []string{"", "pay", "\xff\xfe", "a\x80b", "\xf0\x9f\x98"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := validLabel(s); !utf8.ValidString(got) || utf8.ValidString(s) && got != s {
			t.Errorf("label of %q is %q", s, got)
		}
	})
}
