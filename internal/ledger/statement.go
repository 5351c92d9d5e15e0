package ledger

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// statement is SQL with its bound values.
type statement struct {
	text string
	args []any
}

// operand is a value that is compared with a column. How it is written depends
// on the column: the server would convert the bytes of a binary column's value.
type operand struct {
	value  string
	binary bool
}

// writer writes an operand into a statement.
type writer func(operand) string

// bind returns a writer of placeholders that collects the values in args.
// Binary values travel as hexadecimal text, because a placeholder is taken for
// text in the session's character set.
func bind(args *[]any) writer {
	return func(o operand) string {
		if o.binary {
			*args = append(*args, hex.EncodeToString([]byte(o.value)))
			return "UNHEX(?)"
		}
		*args = append(*args, o.value)
		return "?"
	}
}

// literal is the writer for people: SQL that can be pasted into a client,
// whatever its sql_mode. Text that cannot be seen or that needs a backslash is
// written in hexadecimal, still as text, so that the column's collation and
// index stay in force.
func literal(o operand) string {
	switch {
	case pastable(o.value) && (!o.binary || ascii(o.value)):
		return "'" + strings.ReplaceAll(o.value, "'", "''") + "'"
	case o.binary:
		return "0x" + hex.EncodeToString([]byte(o.value))
	}
	return "_utf8mb4 0x" + hex.EncodeToString([]byte(o.value))
}

// ascii reports whether s has the same bytes in every character set that a
// client may use.
func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

func pastable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r == '\\' || (r != ' ' && !unicode.IsGraphic(r)) || (r != ' ' && unicode.IsSpace(r)) {
			return false
		}
	}
	return true
}

// quote writes an identifier.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
