package flow

import "testing"

func TestUnpaste(t *testing.T) {
	for text, want := range map[string]struct {
		bare, extra string
	}{
		"4711 ":            {"4711", "a space at its end"},
		"  4711":           {"4711", "a space at its beginning"},
		"\ufeff4711":       {"4711", "a byte order mark at its beginning"},
		"47\u200b11\u200b": {"47\u200b11", "an invisible character at its end"},
		"4711\r\n":         {"4711", "a line end at its end"},
		"\"4711\"":         {"4711", "quotation marks around it"},
		"“4711” ":          {"4711", "a space at its end; quotation marks around it"},
		"'\t4711'":         {"4711", "quotation marks around it; a tab at its beginning"},
		"4711\x00":         {"4711", "a NUL byte at its end"},
		"\u00a04711":       {"4711", "a blank that is no plain space at its beginning"},
		"\xff ":            {"\xff", "a space at its end"},
		"4711":             {"4711", ""},
		"a b":              {"a b", ""},
		"\"4711":           {"\"4711", ""},
		"\"":               {"\"", ""},
		"\xff4711\xe4\xb8": {"\xff4711\xe4\xb8", ""},
		"{\"id\":\"x\"}":   {"{\"id\":\"x\"}", ""},
		"'it's'":           {"it's", "quotation marks around it"},
		"\u202e4711":       {"4711", "an invisible character at its beginning"},
	} {
		p, ok := Unpaste(text)
		extra := ""
		for i, e := range p.Extra {
			if i > 0 {
				extra += "; "
			}
			extra += e.EN
			if e.ZH == "" || e.ZH == e.EN {
				t.Errorf("%q: no Chinese for %q", text, e.EN)
			}
		}
		if p.Bare != want.bare || extra != want.extra || ok != (want.extra != "") {
			t.Errorf("%q: %q, %q, %v", text, p.Bare, extra, ok)
		}
	}
	for _, nothing := range []string{"", " ", "\ufeff\u200b", "\" \""} {
		if p, ok := Unpaste(nothing); ok {
			t.Errorf("%q: %+v", nothing, p)
		}
	}
}
