package console

import "strings"

// hostileValues are texts that break what treats them as anything but bytes, by what
// they try.
func hostileValues() map[string]string {
	return map[string]string{
		"script":               "<script>alert(1)</script>",
		"image":                `"><img src=x onerror=alert(1)>`,
		"svg":                  "<svg/onload=alert(1)>",
		"comment":              "--><!-- ]]>",
		"end of the page":      "</code></main></body></html>",
		"attribute":            `x" autofocus onfocus="alert(1)`,
		"entity":               "&amp;&lt;&#60;script&#62;",
		"address":              "javascript:alert(1)",
		"template":             `{{.}}{{template "top" .}}{{end}}`,
		"right to left":        "\u202egnp.exe\u202c\u2066x",
		"zero width":           "4711\u200b\ufeff",
		"NUL":                  "a\x00b",
		"invalid UTF-8":        "\xff\xfe4711",
		"cut character":        "cut\xe4\xb8",
		"header":               "x\r\nSet-Cookie: a=b\r\n\r\n<html>",
		"half a line end":      "a\nb\rc",
		"terminal":             "\x1b[31mred\x1b[0m\x07",
		"beyond 2^53":          "9007199254740993",
		"beyond 2^64":          "18446744073709551616",
		"leading zeros":        "000123",
		"spaces":               "  two  spaces  ",
		"empty":                "",
		"formula":              `=HYPERLINK("http://evil","x")`,
		"plus":                 "+1+1",
		"minus":                "-2+3+cmd|' /C calc'!A0",
		"at":                   "@SUM(1+1)",
		"tab formula":          "\t=1+1",
		"full-width formula":   "＝1+1",
		"quotes and separator": `a","=1+1";b`,
		"fence":                "```\n# not a heading\n```",
		"long fence":           strings.Repeat("`", 9) + "x" + strings.Repeat("`", 4),
		"one backtick":         "`",
		"link":                 "[x](javascript:alert(1)) ![x](http://evil/x.png) <http://evil>",
		"bare link":            "see https://evil.example/x and www.evil.example",
		"table and emphasis":   "|a|b|\n|-|-|\n**x** __y__ ~~z~~",
		"heading":              "# x",
		"list":                 "1. x\n- y\n> z",
		"html in markdown":     "<details open ontoggle=alert(1)>",
		"SQL":                  "' OR '1'='1' -- ",
		"shell":                "$(id);`id`|id&&id",
		"percent":              "%00%zz%0d%0a",
		"path":                 "../../etc/passwd?x#y",
		"emoji":                "\U0001F469\u200d\U0001F4BB 订单",
		"composed":             "e\u0301é",
		"10 kB":                strings.Repeat("x<b>`|", 10_000/6),
	}
}

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
