package config

import (
	"regexp"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${VAR} and ${VAR:-default} in one text of the file, and $$ by
// a single $. The default counts when the variable is unset or empty, as in a
// shell. What a variable holds is never read as YAML nor expanded again.
func (r *reader) expand(v value, text string) (string, bool) {
	var b strings.Builder
	ok := true
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), ok
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "{"):
			inside, rest, closed := strings.Cut(after[1:], "}")
			name, fallback, hasFallback := strings.Cut(inside, ":-")
			if !closed || !variableName.MatchString(name) {
				// Not quoted: it may be a piece of a password.
				r.problemf(v.at, v.path, "has a ${ that begins no variable; write ${NAME}, ${NAME:-default}, or $$ for a dollar sign")
				return "", false
			}
			content, set := r.env(name)
			switch {
			case hasFallback && content == "":
				content = fallback
			case !set:
				r.problemf(v.at, v.path, "the environment variable %s is not set; set it, or write ${%s:-default} ($$ is a plain dollar sign)", name, name)
				ok = false
			}
			b.WriteString(content)
			text = rest
		default:
			b.WriteByte('$')
			text = after
		}
	}
}
