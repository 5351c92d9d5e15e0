package flow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Template is a text with {placeholders}, such as "idem_lock:{biz_type}:{biz_id}".
// Values are put in as they are: no escaping, no case folding.
type Template struct {
	text string
	// literals[i] stands before names[i]; the last literal closes the text.
	literals []string
	names    []string
}

var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// ParseTemplate reads a template. It fails on a brace that is no placeholder,
// on a name that stands twice and on two placeholders with nothing between
// them, because the text could then not be taken apart again.
// A doubled pair {{name}} is a Redis Cluster hash tag: literal braces round a placeholder.
func ParseTemplate(text string) (Template, error) {
	t := Template{text: text}
	rest := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		literal, name := text[rest:m[0]], text[m[2]:m[3]]
		if slices.Contains(t.names, name) {
			return Template{}, fmt.Errorf("template %q names {%s} twice", text, name)
		}
		if len(t.names) > 0 && literal == "" {
			return Template{}, fmt.Errorf("template %q has nothing between {%s} and {%s}: put a separator there", text, t.names[len(t.names)-1], name)
		}
		t.literals = append(t.literals, literal)
		t.names = append(t.names, name)
		rest = m[1]
	}
	t.literals = append(t.literals, text[rest:])
	if strings.Count(strings.Join(t.literals, ""), "{") != strings.Count(strings.Join(t.literals, ""), "}") {
		return Template{}, fmt.Errorf("template %q has a brace without its partner; placeholders look like {biz_id}", text)
	}
	return t, nil
}

// String returns the template as it was written.
func (t Template) String() string { return t.text }

// IsZero reports whether the template was never set.
func (t Template) IsZero() bool { return t.text == "" }

// Names lists the placeholders in the order in which they stand.
func (t Template) Names() []string { return slices.Clone(t.names) }

// Has reports whether the template uses the placeholder.
func (t Template) Has(name string) bool { return slices.Contains(t.names, name) }

// Render puts the values in. A placeholder without a value becomes empty.
func (t Template) Render(values map[string]string) string {
	var b strings.Builder
	for i, name := range t.names {
		b.WriteString(t.literals[i])
		b.WriteString(values[name])
	}
	b.WriteString(t.literals[len(t.literals)-1])
	return b.String()
}

// With returns the template with one placeholder filled in for good; t itself
// when it has no such placeholder.
func (t Template) With(name, value string) Template {
	i := slices.Index(t.names, name)
	if i < 0 {
		return t
	}
	filled := Template{text: t.text, literals: slices.Clone(t.literals), names: slices.Delete(slices.Clone(t.names), i, i+1)}
	filled.literals[i] += value + filled.literals[i+1]
	filled.literals = slices.Delete(filled.literals, i+1, i+2)
	return filled
}

// Matches returns every way to take text apart so that rendering the values
// gives text again, with no empty value. More than one result means that the
// text alone does not tell which values were meant. At most max results.
func (t Template) Matches(text string, max int) []map[string]string {
	if len(t.names) == 0 {
		if text == t.literals[0] {
			return []map[string]string{{}}
		}
		return nil
	}
	rest, ok := strings.CutPrefix(text, t.literals[0])
	if !ok {
		return nil
	}
	var found []map[string]string
	t.match(rest, 0, map[string]string{}, max, &found)
	return found
}

func (t Template) match(rest string, i int, values map[string]string, max int, found *[]map[string]string) {
	if len(*found) >= max {
		return
	}
	next := t.literals[i+1]
	if i == len(t.names)-1 {
		if value, ok := strings.CutSuffix(rest, next); ok && value != "" {
			match := map[string]string{t.names[i]: value}
			for name, earlier := range values {
				match[name] = earlier
			}
			*found = append(*found, match)
		}
		return
	}
	for at := 1; at <= len(rest)-len(next) && len(*found) < max; at++ {
		if strings.HasPrefix(rest[at:], next) {
			values[t.names[i]] = rest[:at]
			t.match(rest[at+len(next):], i+1, values, max, found)
			delete(values, t.names[i])
		}
	}
}
