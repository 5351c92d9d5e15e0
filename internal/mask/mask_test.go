package mask

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func newMask(t *testing.T, paths, patterns []string) *Mask {
	t.Helper()
	m, err := New(paths, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPatterns(t *testing.T) {
	m := newMask(t, nil, Patterns)
	for text, want := range map[string]string{
		"13812345678":                         "138****5678",
		"tel:13812345678,":                    "tel:138****5678,",
		"电话13812345678。":                      "电话138****5678。",
		"138 1234 5678":                       "138****5678",
		"138-1234-5678":                       "138****5678",
		"+8613812345678":                      "+86138****5678",
		"8613812345678":                       "86138****5678",
		"008613812345678":                     "0086138****5678",
		"+86 138 1234 5678":                   "+86****5678",
		"+44 20 7946 0958":                    "+44****0958",
		"+1 (555) 123-4567":                   "+1 ****4567",
		"13812345678 13912345678":             "138****5678 139****5678",
		"4111111111111111":                    "************1111",
		"4111 1111 1111 1111":                 "************1111",
		"4111-1111-1111-1111 x":               "************1111 x",
		"2026-03-14 4111111111111111":         "2026-03-14 ************1111",
		"378282246310005":                     "************0005",
		"6222021234567890128":                 shownIf(isCard("6222021234567890128"), "************0128", "6222021234567890128"),
		"alice@example.com":                   "a***@example.com",
		"Alice Smith <alice.s+x@sub.corp.cn>": "Alice Smith <a***@sub.corp.cn>",
		"用户张三@例子.公司":                          "用***@例子.公司",
		"to=alice%40example.com&x=1":          "to=a***%40example.com&x=1",
		"13812345678@qq.com":                  "1***@qq.com",
		`s:5:"phone";s:11:"13812345678";`:     `s:5:"phone";s:11:"138****5678";`,
		"\xff13812345678\xfe":                 "\xff138****5678\xfe",
		"a\x00alice@example.com\x00":          "a\x00a***@example.com\x00",
		"\xff@example.com":                    "***@example.com",
		"<script>alice@example.com</script>":  "<script>a***@example.com</script>",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func shownIf(hidden bool, yes, no string) string {
	if hidden {
		return yes
	}
	return no
}

// What only looks a little like it stays, among it ids of orders and times.
func TestPatternsLeaveTheRest(t *testing.T) {
	m := newMask(t, nil, Patterns)
	for _, text := range []string{
		"", "1", "processing", "20260314000123", "1234567890123456789", "138123456789", "23812345678", "1773500851412", "2026-03-14 18:07:31.412", "4111111111111112", "9111111111111111",
		"41111111111111111111111", "@", "a@b", "user@", "@example.com", "10.0.0.1:3306", "+86", "550e8400-e29b-41d4-a716-446655440000", "0.1381234567", "\xff\xfe\x00",
		strings.Repeat("1", 5000), strings.Repeat("1 ", 3000),
	} {
		if got := m.Text(text); got != text {
			t.Errorf("%.60q became %.60q", text, got)
		}
	}
	if got := (*Mask)(nil).Text("13812345678"); got != "13812345678" {
		t.Errorf("without a mask: %q", got)
	}
	if got := newMask(t, nil, []string{"card"}).Text("13812345678 alice@example.com"); got != "13812345678 alice@example.com" {
		t.Errorf("patterns that are off: %q", got)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"$.card.number", `{"card":{"number":"x9","other":"x9"},"number":"x9"}`, `{"card":{"number":"***","other":"x9"},"number":"x9"}`},
		{"card.number", `{"card":{"number":12345678901234567890123}}`, `{"card":{"number":"***"}}`},
		{"phone", `{"phone":"13812345678"}`, `{"phone":"138****5678"}`},
		{"phone", `{"phone":13812345678}`, `{"phone":"138****5678"}`},
		{"card", `{"card":"4111111111111111"}`, `{"card":"************1111"}`},
		{"mail", `{"mail":"alice@example.com"}`, `{"mail":"a***@example.com"}`},
		{"mail", `{"mail":"alice@example.com and more"}`, `{"mail":"***"}`},
		{"card", `{"card":{"number":"x9","list":[1,"}",{"a":"]"}]},"b":1}`, `{"card":"***","b":1}`},
		{"card", `{"card":[1,2,3],"b":[1]}`, `{"card":"***","b":[1]}`},
		{"items.phone", `{"items":[{"phone":"x9"},[{"phone":"y9"}]]}`, `{"items":[{"phone":"***"},[{"phone":"***"}]]}`},
		{"$.items[*].phone", `{"items":[{"phone":"x9"}],"phone":"x9"}`, `{"items":[{"phone":"***"}],"phone":"x9"}`},
		{"phone", `[{"phone":"x9"},{"phone":"y9"}]`, `[{"phone":"***"},{"phone":"***"}]`},
		{"$..phone", `{"phone":"x9","a":{"b":[{"phone":{"c":1}}]}}`, `{"phone":"***","a":{"b":[{"phone":"***"}]}}`},
		{"$..a..b", `{"b":1,"a":{"x":{"b":"x9"}},"c":{"a":{"b":"y9"}}}`, `{"b":1,"a":{"x":{"b":"***"}},"c":{"a":{"b":"***"}}}`},
		{"a.*.b", `{"a":{"x":{"b":"x9"},"y":{"b":"y9"},"b":1}}`, `{"a":{"x":{"b":"***"},"y":{"b":"***"},"b":1}}`},
		{`$["a.b"]['c d']`, `{"a.b":{"c d":"x9"}}`, `{"a.b":{"c d":"***"}}`},
		{"客户.电话", `{"客户":{"电话":"x9"}}`, `{"客户":{"电话":"***"}}`},
		{"phone", `{"ph\u006fne":"x9"}`, `{"ph\u006fne":"***"}`},
		{"a.b", `{"a":"{\"b\":\"x9\",\"c\":1}"}`, `{"a":"{\"b\":\"***\",\"c\":1}"}`},
		{"b", `"{\"b\":\"x9\"}"`, `"{\"b\":\"x9\"}"`},
		// Values of which nothing is to be seen stay as they are.
		{"a", `{"a":null}`, `{"a":null}`},
		{"a", `{"a":""}`, `{"a":""}`},
		{"a", `{"a":true}`, `{"a":"***"}`},
		// Blanks, the order of names, and names that stand twice.
		{"b", "{ \"c\" : 1.50 ,\n\t\"b\" : \"x9\" , \"a\":1e5,\"b\":\"y9\" }\n", "{ \"c\" : 1.50 ,\n\t\"b\" : \"***\" , \"a\":1e5,\"b\":\"***\" }\n"},
		{"x", ` {"big":123456789012345678901234567890,"f":0.1000,"e":-1E+5,"s":"\u00e9\/"}`, ` {"big":123456789012345678901234567890,"f":0.1000,"e":-1E+5,"s":"\u00e9\/"}`},
		{"A", `{"a":"x"}`, `{"a":"x"}`},
		// Cut off, or no JSON at all: the name is enough.
		{"card.number", `{"card":{"number":"411111`, `{"card":{"number":"***"`},
		{"card.number", `{"card":{"number":41111`, `{"card":{"number":"***"`},
		{"card", `{"card":{"number":"x9"`, `{"card":"***"`},
		{"card.number", `{"card":{"number"`, `{"card":{"number"`},
		{"card.number", `{"card":{"number":`, `{"card":{"number":`},
		{"card.number", `{"x":1]],"number":"x9"}`, `{"x":1]],"number":"***"}`},
		{"card.number", `{card:{"number":"x9"}}`, `{card:{"number":"***"}}`},
		{"card.number", `["number":"x9"]`, `["number":"***"]`},
		{"card.number", `{"a":1}{"card":{"number":"x9"}}`, `{"a":1}{"card":{"number":"***"}}`},
		{"card.number", `{"card":{"number":"x9` + "\xff" + `"}}`, `{"card":{"number":"***"}}`},
		{"a", `{"a":x9}`, `{"a":"***"}`},
		{"a", `{"a"::"x9"}`, `{"a"::"x9"}`},
	} {
		if got := newMask(t, []string{c.path}, nil).Text(c.text); got != c.want {
			t.Errorf("%s in %s\n gives %s\n want  %s", c.path, c.text, got, c.want)
		}
	}
}

func TestPatternsInsideJSON(t *testing.T) {
	m := newMask(t, nil, Patterns)
	for text, want := range map[string]string{
		`{"tel":"13812345678","id":12345678901234567890}`: `{"tel":"138****5678","id":12345678901234567890}`,
		`{"tel":13812345678}`:                             `{"tel":"138****5678"}`,
		`["alice\u0040example.com"]`:                      `["a***@example.com"]`,
		`{"13812345678":{"a":1}}`:                         `{"138****5678":{"a":1}}`,
		`{"m":"{\"t\":\"13812345678\"}"}`:                 `{"m":"{\"t\":\"138****5678\"}"}`,
		`{"m":"\"13812345678\" <b>"}`:                     `{"m":"\"138****5678\" <b>"}`,
		`{"tel":"13812345678`:                             `{"tel":"138****5678`,
		`{tel:13812345678,x`:                              `{tel:"138****5678",x`,
		"{\"tel\":\"\xff13812345678\\n\"}":                "{\"tel\":\"\xff138****5678\\n\"}",
		`{"amount":1.50}`:                                 `{"amount":1.50}`,
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%s\n gives %s\n want  %s", text, got, want)
		}
	}
}

// JSON that is made to hurt costs no more than its length, and hides what it should.
func TestHostileJSON(t *testing.T) {
	m := newMask(t, []string{"$..secret", "a.*.b", "$..*.x"}, Patterns)
	deep := strings.Repeat(`{"a":`, 200_000) + `{"secret":"x9x9x9"}` + strings.Repeat("}", 200_000)
	nested := `{"secret":"x9x9x9"}`
	for range 10 {
		quoted, _ := json.Marshal(nested)
		nested = `{"n":` + string(quoted) + `}`
		if len(nested) > 1<<20 {
			break
		}
	}
	for name, text := range map[string]string{
		"deep":       deep,
		"deep lists": strings.Repeat("[", 500_000) + `{"secret":"x9x9x9"`,
		"many names": `{` + strings.Repeat(`"a":"b",`, 100_000) + `"secret":"x9x9x9"}`,
		"quotes":     `{` + strings.Repeat(`"`, 100_000) + `"secret":"x9x9x9"}`,
		"backslash":  `{"a":"` + strings.Repeat(`\`, 100_000) + `","secret":"x9x9x9"}`,
		"closing":    `{}` + strings.Repeat("}", 100_000) + `"secret":"x9x9x9"`,
		"huge value": `{"secret":"` + strings.Repeat("x9x9x9", 100_000) + `"}`,
	} {
		if got := m.Text(text); strings.Contains(got, "x9x9x9") {
			t.Errorf("%s: the secret is shown", name)
		}
	}
	// Deeper than it is looked into, at least the outside is as it was.
	if got := m.Text(nested); !json.Valid([]byte(got)) {
		t.Errorf("JSON inside JSON is spoilt: %.100s", got)
	}
}

// Whatever JSON: what a path names is never shown, and without a rule that
// applies every byte stays.
func TestRandomJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := newMask(t, []string{"$..secret", "a.b"}, Patterns)
	for range 3000 {
		text := value9(random, 0)
		masked := m.Text(text)
		if strings.Contains(masked, "S9S9") {
			t.Fatalf("%s\nshows a secret: %s", text, masked)
		}
		var before, after any
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(masked), &after); err != nil {
			t.Fatalf("%s\nis no JSON any more: %s", text, masked)
		}
		if !strings.Contains(text, "S9S9") && masked != text {
			t.Fatalf("%s\nwas changed: %s", text, masked)
		}
		// Cut anywhere, it shows no more.
		if cut := m.Text(text[:random.IntN(len(text)+1)]); strings.Contains(cut, "S9S9") {
			t.Fatalf("%s\ncut, it shows a secret: %s", text, cut)
		}
	}
}

// value9 makes JSON in which every value under the name secret, and nothing else, is a secret.
func value9(random *rand.Rand, depth int) string {
	blank := strings.Repeat(" ", random.IntN(2))
	switch n := random.IntN(7); {
	case depth > 4 || n == 0:
		return []string{`1`, `-0.50`, `123456789012345678901234567890`, `true`, `null`, `"t"`, `"\u00e9\""`, `""`}[random.IntN(8)] + blank
	case n < 5:
		var parts []string
		for range random.IntN(4) {
			if random.IntN(3) == 0 {
				secret := []string{`"S9S9"`, `{"x":"S9S9"}`, `["S9S9",{"y":["S9S9"]}]`, `"\"S9S9"`}[random.IntN(4)]
				parts = append(parts, `"secret"`+blank+":"+blank+secret)
				continue
			}
			parts = append(parts, fmt.Sprintf("%q%s:%s%s", []string{"a", "c", "数", "secrets"}[random.IntN(4)], blank, blank, value9(random, depth+1)))
		}
		return "{" + blank + strings.Join(parts, blank+","+blank) + "}"
	}
	var parts []string
	for range random.IntN(4) {
		parts = append(parts, value9(random, depth+1))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func TestPathsThatAreNone(t *testing.T) {
	for _, path := range []string{"", "$", ".", "..", "a.", "a..", "$.", "$..", "a[0]", "a[1:2]", "[0]", `["a"`, `[""]`, "a[b]", "[*]", "$[*]", `$["a"]b`} {
		_, err := New([]string{"fine", path}, nil)
		var wrong PathError
		if !errors.As(err, &wrong) || wrong.Index != 1 || wrong.Path != path || wrong.Why == "" {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := New(nil, []string{"phones"}); err == nil {
		t.Error("an unknown pattern is taken")
	}
}
