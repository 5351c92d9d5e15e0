package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// lastWrite is what the storage engine says of the last write to a table.
type lastWrite struct{ text sql.NullString }

// The session speaks UTC, and so does this column in it.
const lastWriteSQL = `SELECT UPDATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`

func (w *lastWrite) ask(ctx context.Context, s *Shard) error {
	return s.server.scan(ctx, statement{text: lastWriteSQL, args: []any{s.table.database, s.table.name}}, []any{&w.text}, func() {})
}

func (w *lastWrite) time() time.Time {
	if !w.text.Valid {
		return time.Time{}
	}
	return parseLocal(w.text.String, time.UTC).Time
}

// byteWise names, for each family, the collation that compares byte by byte and
// takes blanks at the end for what they are.
var byteWise = map[Dialect]string{MariaDB: "utf8mb4_nopad_bin", MySQL: "utf8mb4_0900_bin"}

// remedy writes the statements that mend a problem; empty when there are none,
// or when they depend on what only people know.
func (l *layout) remedy(p problem, d Dialect) string {
	name := l.schema.table.quoted()
	switch p.code {
	case "no_unique_key":
		if p.wider {
			return ""
		}
		return l.findDoubles() + fmt.Sprintf("ALTER TABLE %s ADD UNIQUE KEY uk_biz (%s);", name, l.keyList())
	case "no_lookup_index":
		return fmt.Sprintf("ALTER TABLE %s ADD UNIQUE KEY uk_biz (%s);", name, l.keyList())
	case "prefix_unique_key":
		return fmt.Sprintf("ALTER TABLE %s DROP INDEX %s, ADD UNIQUE KEY %[2]s (%[3]s);", name, quote(p.index), l.keyList())
	case "nullable_unique_key":
		return fmt.Sprintf("ALTER TABLE %s MODIFY %s NOT NULL;", name, l.definition(p.column, ""))
	case "folds_case", "ignores_padding", "utf8mb3":
		if byteWise[d] == "" {
			return ""
		}
		return fmt.Sprintf("ALTER TABLE %s MODIFY %s%s;", name, l.definition(p.column, byteWise[d]), l.nullability(p.column))
	case "not_transactional":
		return fmt.Sprintf("ALTER TABLE %s ENGINE = InnoDB;", name)
	}
	return ""
}

// findDoubles lists what would refuse the new unique key.
func (l *layout) findDoubles() string {
	return fmt.Sprintf("-- reads the whole table, best on a replica; the list has to be empty first:\nSELECT %[1]s, COUNT(*) FROM %[2]s GROUP BY %[1]s HAVING COUNT(*) > 1 LIMIT 20;\n",
		l.keyList(), l.schema.table.quoted())
}

func (l *layout) keyList() string {
	var names []string
	for _, c := range l.keyColumns() {
		names = append(names, quote(c.name))
	}
	return strings.Join(names, ", ")
}

// definition writes a column with its type and, for text, the collation: the
// given one, or its own.
func (l *layout) definition(name, collation string) string {
	c := l.schema.column(name)
	if c == nil {
		return quote(name)
	}
	kind := c.whole
	if strings.EqualFold(c.kind, "char") && collation != "" {
		// CHAR loses blanks at the end whatever the collation.
		kind = "var" + kind
	}
	if !c.text() {
		return quote(c.name) + " " + kind
	}
	charset := "utf8mb4"
	if collation == "" {
		charset, collation = c.charset, c.collation
	}
	return fmt.Sprintf("%s %s CHARACTER SET %s COLLATE %s", quote(c.name), kind, charset, collation)
}

func (l *layout) nullability(name string) string {
	if c := l.schema.column(name); c != nil && !c.nullable {
		return " NOT NULL"
	}
	return ""
}
