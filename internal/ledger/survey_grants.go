package ledger

import (
	"slices"
	"strings"
)

// Grants are what a user may do.
type Grants struct {
	List []Grant
	// Roles were granted; what they bring is shown only of those in force.
	Roles []string
	// Unchecked: the server runs without users, so that everybody may do everything.
	Unchecked bool
}

// Grant is one line of SHOW GRANTS. Nothing of its end is kept, where some
// servers put the password's hash.
type Grant struct {
	// Privileges are in capitals; one on some columns only ends in "(...)".
	Privileges []string
	// On is the object as the server spells it, such as `shop`.*
	On string
	// database is a pattern of LIKE, table a name; both "*" for everything.
	database, table string
}

// harmless are the privileges that change nothing.
var harmless = []string{"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "PROCESS", "REPLICATION CLIENT", "BINLOG MONITOR",
	"SLAVE MONITOR", "REPLICA MONITOR"}

// add reads one line. What it cannot read it leaves out.
func (g *Grants) add(line string) {
	text, ok := strings.CutPrefix(line, "GRANT ")
	if !ok {
		return // SET DEFAULT ROLE ...
	}
	list, rest, ok := cutOutside(text, " ON ")
	if !ok {
		role, _, _ := cutOutside(text, " TO ")
		g.Roles = append(g.Roles, role)
		return
	}
	on, _, _ := cutOutside(rest, " TO ")
	one := Grant{On: on, Privileges: privileges(list)}
	if strings.HasSuffix(line, "WITH GRANT OPTION") {
		one.Privileges = append(one.Privileges, "GRANT OPTION")
	}
	for _, word := range []string{"TABLE ", "FUNCTION ", "PROCEDURE "} {
		on = strings.TrimPrefix(on, word)
	}
	database, table, _ := cutOutside(on, ".")
	one.database, one.table = unquote(database), unquote(table)
	g.List = append(g.List, one)
}

// privileges splits at the commas that stand between them, not in their lists of columns.
func privileges(list string) (names []string) {
	depth, start := 0, 0
	add := func(name string) {
		if columns := strings.IndexByte(name, '('); columns >= 0 {
			name = strings.TrimSpace(name[:columns]) + " (...)"
		}
		names = append(names, strings.ToUpper(strings.TrimSpace(name)))
	}
	for i, r := range list {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				add(list[start:i])
				start = i + 1
			}
		}
	}
	add(list[start:])
	return names
}

// cutOutside is strings.Cut at the first separator outside of `quotes`.
func cutOutside(s, separator string) (before, after string, found bool) {
	quoted := false
	for i := range len(s) {
		if s[i] == '`' {
			quoted = !quoted
		}
		if !quoted && strings.HasPrefix(s[i:], separator) {
			return s[:i], s[i+len(separator):], true
		}
	}
	return s, "", false
}

func unquote(name string) string {
	if len(name) >= 2 && name[0] == '`' && name[len(name)-1] == '`' {
		return strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	return name
}

// Writes lists what the user may do beyond reading, such as "INSERT, UPDATE ON `shop`.*".
func (g Grants) Writes() []string { return g.Beyond() }

// Beyond is Writes without the privileges that the user is meant to have.
func (g Grants) Beyond(meant ...string) (beyond []string) {
	for _, one := range g.List {
		wide := slices.DeleteFunc(slices.Clone(one.Privileges), func(p string) bool {
			p = strings.TrimSuffix(p, " (...)")
			return slices.Contains(harmless, p) || slices.Contains(meant, p)
		})
		if len(wide) > 0 {
			beyond = append(beyond, strings.Join(wide, ", ")+" ON "+one.On)
		}
	}
	return beyond
}

// Reads reports whether the user may read the table, or some of its columns.
func (g Grants) Reads(database, table string) bool { return g.May("SELECT", database, table) }

// May reports whether the user has the privilege on the table, or on some of its columns.
func (g Grants) May(privilege, database, table string) bool {
	return g.Unchecked || slices.ContainsFunc(g.List, func(one Grant) bool {
		has := slices.ContainsFunc(one.Privileges, func(p string) bool {
			return p == privilege || p == privilege+" (...)" || p == "ALL PRIVILEGES" || p == "ALL"
		})
		return has && (one.database == "*" || like(one.database, database)) && (one.table == "*" || strings.EqualFold(one.table, table))
	})
}

// like matches a name with a pattern of LIKE, upper and lower case alike: some
// systems do not tell them apart, and a wrong yes only hides a hint.
func like(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	switch {
	case pattern[0] == '%':
		return like(pattern[1:], name) || name != "" && like(pattern, name[1:])
	case name == "":
		return false
	case pattern[0] == '\\' && len(pattern) > 1:
		return strings.EqualFold(pattern[1:2], name[:1]) && like(pattern[2:], name[1:])
	case pattern[0] == '_':
		return like(pattern[1:], name[1:])
	}
	return strings.EqualFold(pattern[:1], name[:1]) && like(pattern[1:], name[1:])
}
