package console

import "strings"

// hostileIDs are biz_ids that break what treats them as anything but bytes.
func hostileIDs() []string {
	return []string{
		"", " ", "a b", "a  b", "20260101 ", " 20260101", "tab\tbed", "line\nbreak", "carriage\r\nreturn", "nul\x00byte",
		`double"quote`, "single'quote", "back`tick", `back\slash`, "' OR '1'='1", "100%", "%00", "%zz", "a_b", "a*b", "[a-z]", "a/b/../c", "?q=1&id=2#x", "a;b", "a+b",
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "{{.}}", "javascript:alert(1)", "$(id)", "&amp;&lt;",
		"\u202egnp.exe", "\u200fשלום", "zero\u200bwidth", "é", "e\u0301", "订单😀", "\U0001F469\u200d\U0001F4BB",
		"9007199254740993", "00123", "1e3", "18446744073709551616", "-0",
		"\xff\xfe", "cut\xe4\xb8", strings.Repeat("x", 10_000), strings.Repeat("\xf0\x9f\x98\x80", 2_500),
	}
}
