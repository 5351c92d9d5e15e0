package mask

import (
	"strings"
)

// rule is one JSON path: the names that lead to a value.
type rule []step

// step is one name of a path.
type step struct {
	name string
	// any: every name will do.
	any bool
	// deep: any number of other names may stand before it.
	deep bool
}

const pathHelp = `write the names with dots between them, such as $.card.number; * is any name, ..name is one at any depth, and lists are looked through by themselves`

// parsePath reads a path; why is not empty when it is none.
func parsePath(text string) (r rule, why string) {
	rest := text
	if rest == "$" || rest == "" {
		return nil, "names no value; " + pathHelp
	}
	if rest[0] == '$' {
		if rest = rest[1:]; rest[0] != '.' && rest[0] != '[' {
			rest = "$" + rest
		}
	}
	if rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	for rest != "" {
		var s step
		switch {
		case strings.HasPrefix(rest, "[*]"), strings.HasPrefix(rest, "[]"):
			// Lists are looked through anyway.
			_, rest, _ = strings.Cut(rest, "]")
			continue
		case strings.HasPrefix(rest, `["`), strings.HasPrefix(rest, "['"):
			end := strings.Index(rest[2:], rest[1:2]+"]")
			if end <= 0 {
				return nil, "a name in brackets has no end; " + pathHelp
			}
			s.name, rest = rest[2:2+end], rest[2+end+2:]
		case strings.HasPrefix(rest, "["):
			return nil, "a place in a list cannot be named: a rule holds for all of them; " + pathHelp
		case strings.HasPrefix(rest, "."):
			rest = rest[1:]
			if strings.HasPrefix(rest, ".") {
				s.deep, rest = true, rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, "a name is empty; " + pathHelp
			}
			s.name, rest = rest[:end], rest[end:]
			s.any = s.name == "*"
		default:
			return nil, "a dot is missing; " + pathHelp
		}
		r = append(r, s)
	}
	if len(r) == 0 {
		return nil, "names no value; " + pathHelp
	}
	return r, ""
}

// place is how far one rule has been followed.
type place struct{ rule, step int }

// begin is where all rules are followed from.
func (m *Mask) begin() []place {
	places := make([]place, len(m.rules))
	for i := range m.rules {
		places[i] = place{rule: i}
	}
	return places
}

// follow goes one name further; hit reports that a rule ends there.
func (m *Mask) follow(from []place, name string) (to []place, hit bool) {
	for _, p := range from {
		s := m.rules[p.rule][p.step]
		if s.deep {
			to = add(to, p)
		}
		if !s.any && s.name != name {
			continue
		}
		if p.step+1 == len(m.rules[p.rule]) {
			return nil, true
		}
		to = add(to, place{p.rule, p.step + 1})
	}
	return to, false
}

func add(places []place, p place) []place {
	for _, one := range places {
		if one == p {
			return places
		}
	}
	return append(places, p)
}

// named reports that some rule ends with the name.
func (m *Mask) named(name string) bool {
	for _, r := range m.rules {
		if last := r[len(r)-1]; last.any || last.name == name {
			return true
		}
	}
	return false
}
