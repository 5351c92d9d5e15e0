package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
)

// TableFacts is what information_schema says of one table, for whoever has to
// guess what the table is for.
type TableFacts struct {
	// Name has no database in it.
	Name string
	// Columns are in the order of the table.
	Columns []ColumnFacts
	// Keys are the indexes that look-ups can go through.
	Keys []KeyFacts
}

// ColumnFacts is one column.
type ColumnFacts struct {
	Name string
	// Kind is the data type without its size, lower case: varchar, bigint, datetime.
	Kind string
	// Words are those of an ENUM, in its order.
	Words []string
	// Comment is what the owner of the table wrote down about the column.
	Comment       string
	AutoIncrement bool
}

// Text reports whether the column holds words or bytes of any kind.
func (c ColumnFacts) Text() bool {
	return strings.HasSuffix(c.Kind, "char") || strings.HasSuffix(c.Kind, "text") || strings.HasSuffix(c.Kind, "binary") || c.Kind == "enum"
}

// Integer reports whether the column holds whole numbers.
func (c ColumnFacts) Integer() bool { return limits[c.Kind] > 0 }

// Moment reports whether the column is of a type for points in time.
func (c ColumnFacts) Moment() bool {
	return c.Kind == "datetime" || c.Kind == "timestamp"
}

// KeyFacts is one index.
type KeyFacts struct {
	Name   string
	Unique bool
	// Columns are in the order of the index.
	Columns []string
	// Prefix: of a column only the beginning is indexed.
	Prefix bool
}

// Column finds a column by its name, as MySQL compares names.
func (t TableFacts) Column(name string) (ColumnFacts, bool) {
	i := slices.IndexFunc(t.Columns, func(c ColumnFacts) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 {
		return ColumnFacts{}, false
	}
	return t.Columns[i], true
}

// TableName is one thing that a database lists among its tables.
type TableName struct {
	Name string
	// View: it is no base table.
	View bool
}

const (
	tableNamesSQL = `SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME LIMIT ?`
	factsSQL      = `SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, EXTRA, COLUMN_COMMENT
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`
)

// TableNames lists what the database holds, in the order of the server, at most
// limit of it: tables and views that this user may see. complete is false when
// there are more.
func (s *Server) TableNames(ctx context.Context, limit int) (names []TableName, complete bool, err error) {
	var name, kind string
	q := statement{text: tableNamesSQL, args: []any{s.database, limit + 1}}
	err = s.scan(ctx, q, []any{&name, &kind}, func() {
		names = append(names, TableName{Name: name, View: !strings.Contains(kind, "BASE TABLE")})
	})
	if err != nil {
		return nil, false, fmt.Errorf("list the tables of %s: %w", s.database, err)
	}
	if len(names) > limit {
		return names[:limit], false, nil
	}
	return names, true, nil
}

// Facts reads what information_schema says of one table of the server's
// database. It never reads the table.
func (s *Server) Facts(ctx context.Context, name string) (TableFacts, error) {
	t := TableFacts{Name: name}
	var column, kind, whole, extra, comment string
	q := statement{text: factsSQL, args: []any{s.database, name}}
	err := s.scan(ctx, q, []any{&column, &kind, &whole, &extra, &comment}, func() {
		c := ColumnFacts{Name: column, Kind: strings.ToLower(kind), Comment: comment, AutoIncrement: strings.Contains(strings.ToLower(extra), "auto_increment")}
		if c.Kind == "enum" {
			c.Words = enumWords(whole)
		}
		t.Columns = append(t.Columns, c)
	})
	if err != nil {
		return TableFacts{}, fmt.Errorf("read the columns of %s: %w", name, err)
	}
	sch := &schema{table: table{database: s.database, name: name}}
	if err := s.readIndexes(ctx, sch); err != nil {
		return TableFacts{}, fmt.Errorf("read the indexes of %s: %w", name, err)
	}
	for _, x := range sch.indexes {
		if x.usable {
			t.Keys = append(t.Keys, x.facts())
		}
	}
	return t, nil
}

func (x index) facts() KeyFacts {
	k := KeyFacts{Name: x.name, Unique: x.unique}
	for _, p := range x.parts {
		k.Columns = append(k.Columns, p.column)
		k.Prefix = k.Prefix || p.prefix
	}
	return k
}

// enumWords takes the type of an ENUM apart: enum('a','it”s').
func enumWords(whole string) []string {
	_, list, ok := strings.Cut(whole, "(")
	list = strings.TrimSuffix(list, ")")
	if !ok || len(list) < 2 {
		return nil
	}
	// A quote inside a word is doubled, so that "','" inside a word cannot be
	// told from the end of one by a plain split.
	var words []string
	var word strings.Builder
	inside := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\'' && inside && i+1 < len(list) && list[i+1] == '\'':
			word.WriteByte(c)
			i++
		case c == '\'' && inside:
			words = append(words, word.String())
			word.Reset()
			inside = false
		case c == '\'':
			inside = true
		case inside:
			word.WriteByte(c)
		}
	}
	return words
}

// Newest returns the rows with the highest ids, the highest first, at most
// limit of them (1 to MaxBatch). It reads no other rows. Error: ErrNoTail, or
// what Explain words.
func (s *Shard) Newest(ctx context.Context, limit int) (b Batch, err error) {
	limit = min(max(limit, 1), MaxBatch)
	err = s.tail(ctx, "read the newest rows of", func(l *layout) error {
		key := quote(l.key.name)
		b, err = s.batch(ctx, l, fmt.Sprintf("> ? ORDER BY %s DESC LIMIT %d", key, limit), 0)
		return err
	})
	return b, err
}

// Unmappable says why the table cannot be named in a configuration; it is
// empty when it can.
func Unmappable(name string) flow.Text {
	if tables, err := parseTables(name, "db"); err != nil || tables[0].name != name {
		return flow.T("its name holds a character that a configuration cannot name (one of . / \\ { })", "表名含有配置中无法书写的字符（. / \\ { } 之一）")
	}
	return flow.Text{}
}

// Shape returns what a preset expects: the column of each role, and the stored
// words of each phase. ok is false for an unknown preset.
func Shape(preset string) (columns map[string]string, words map[flow.Phase][]string, ok bool) {
	p, ok := presets[preset]
	if !ok || preset == "" {
		return nil, nil, false
	}
	return maps.Clone(p.columns), maps.Clone(p.words), true
}

// zoneSQL asks how far the zone in which sessions of this server start is ahead
// of UTC. It is NULL for a named zone that the server does not know.
const zoneSQL = "SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone))"

// ZoneMinutes returns by how many minutes the server's own zone is ahead of UTC
// now: the zone in which NOW() speaks to a session that has set no other. known
// is false when the server cannot tell.
func (s *Server) ZoneMinutes(ctx context.Context) (minutes int, known bool, err error) {
	var answer sql.NullInt64
	err = s.query(ctx, statement{text: zoneSQL}, func(rows *sqlx.Rows) error { return rows.Scan(&answer) })
	if err != nil {
		return 0, false, fmt.Errorf("ask mysql %s for its time zone: %w", s.name, err)
	}
	return int(answer.Int64), answer.Valid, nil
}
