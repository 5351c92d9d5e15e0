package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
)

// schema is what a table is made of, as far as a ledger needs to know.
type schema struct {
	table table
	// engine is the storage engine, lower case; empty when it cannot be told.
	engine  string
	columns []column
	indexes []index
}

// column is one column of a table.
type column struct {
	name string
	// kind is the data type without its size: varchar, bigint, datetime.
	kind string
	// whole is the type as the server spells it, with size and sign: varchar(64).
	whole string
	// limit is how many characters (bytes of a binary column) it keeps; 0 when
	// there is no limit that an id could reach.
	limit         int
	charset       string
	collation     string
	nullable      bool
	autoIncrement bool
	// unsigned: an integer without negative values.
	unsigned bool
}

func (c *column) integer() bool {
	switch c.kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// limits has the highest signed value of each integer type.
var limits = map[string]uint64{
	"tinyint": math.MaxInt8, "smallint": math.MaxInt16, "mediumint": 1<<23 - 1, "int": math.MaxInt32, "bigint": math.MaxInt64,
}

// highest is the highest integer that the column keeps; 0 when it keeps none.
func (c *column) highest() uint64 {
	limit := limits[c.kind]
	if c.unsigned && limit > 0 {
		return 2*limit + 1
	}
	return limit
}

// filled reports whether value has as many characters as the column keeps, so
// that it may have been cut.
func (c *column) filled(value string) bool {
	if c.limit == 0 || len(value) < c.limit {
		return false
	}
	return c.binary() || len(value) == c.limit || utf8.RuneCountInString(value) >= c.limit
}

func (c *column) time() bool {
	switch c.kind {
	case "timestamp", "datetime", "date":
		return true
	}
	return c.integer()
}

// text reports whether the column holds characters and compares by collation.
func (c *column) text() bool { return c.charset != "" && c.charset != "binary" }

func (c *column) binary() bool {
	return c.kind == "binary" || c.kind == "varbinary" || strings.HasSuffix(c.kind, "blob")
}

// selected is how the column is read. BIT columns would arrive as raw bits.
func (c *column) selected() string {
	if c.kind == "bit" {
		return quote(c.name) + " + 0"
	}
	return quote(c.name)
}

// cut returns what the column keeps of value, and whether that is less.
func (c *column) cut(value string) (string, bool) {
	if c.limit == 0 || len(value) <= c.limit {
		return value, false
	}
	if c.binary() {
		return value[:c.limit], true
	}
	if utf8.RuneCountInString(value) <= c.limit {
		return value, false
	}
	return string([]rune(value)[:c.limit]), true
}

// index is one index of a table, with its columns in order.
type index struct {
	name   string
	unique bool
	// usable: look-ups can go through it. False for hash, full-text, spatial,
	// hidden and functional indexes.
	usable bool
	parts  []part
}

// part is one column of an index. prefix: only the beginning of the column is indexed.
type part struct {
	column string
	prefix bool
}

func (s *schema) column(name string) *column {
	for i := range s.columns {
		if strings.EqualFold(s.columns[i].name, name) {
			return &s.columns[i]
		}
	}
	return nil
}

// primary is the column that leads the primary key, or nil. sole: the key is that column alone.
func (s *schema) primary() (leading *column, sole bool) {
	for _, x := range s.indexes {
		if x.name == primaryKey {
			return s.column(x.parts[0].column), len(x.parts) == 1
		}
	}
	return nil, false
}

const primaryKey = "PRIMARY"

// Both statements name one table by equality: information_schema of MariaDB
// opens every table of the database for anything else.
const (
	columnsSQL = `SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, EXTRA
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`
	// All columns, because the one that tells of hidden indexes has another
	// name on each family and is missing from old servers.
	indexesSQL = `SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX`
	engineSQL  = `SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`
)

// readSchema asks information_schema for one table. A table that does not exist
// or that the user may not see has no columns.
func (s *Server) readSchema(ctx context.Context, t table) (*schema, error) {
	sch := &schema{table: t}
	if err := s.readColumns(ctx, sch); err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", t, err)
	}
	if len(sch.columns) == 0 {
		return sch, nil
	}
	if err := s.readIndexes(ctx, sch); err != nil {
		return nil, fmt.Errorf("read the indexes of %s: %w", t, err)
	}
	if err := s.readEngine(ctx, sch); err != nil {
		return nil, fmt.Errorf("read the engine of %s: %w", t, err)
	}
	return sch, nil
}

func (s *Server) readEngine(ctx context.Context, sch *schema) error {
	var engine sql.NullString
	q := statement{text: engineSQL, args: []any{sch.table.database, sch.table.name}}
	err := s.scan(ctx, q, []any{&engine}, func() {})
	sch.engine = strings.ToLower(engine.String)
	return err
}

func (s *Server) readColumns(ctx context.Context, sch *schema) error {
	var name, kind, whole, nullable, extra string
	var length sql.NullInt64
	var charset, collation sql.NullString
	q := statement{text: columnsSQL, args: []any{sch.table.database, sch.table.name}}
	return s.scan(ctx, q, []any{&name, &kind, &whole, &length, &charset, &collation, &nullable, &extra}, func() {
		c := column{
			name: name, kind: strings.ToLower(kind), whole: whole, charset: charset.String, collation: collation.String,
			nullable: nullable == "YES", autoIncrement: strings.Contains(strings.ToLower(extra), "auto_increment"),
			unsigned: strings.Contains(strings.ToLower(whole), "unsigned"),
		}
		switch c.kind {
		case "char", "varchar", "binary", "varbinary", "tinytext", "tinyblob":
			c.limit = int(length.Int64)
		}
		sch.columns = append(sch.columns, c)
	})
}

func (s *Server) readIndexes(ctx context.Context, sch *schema) error {
	q := statement{text: indexesSQL, args: []any{sch.table.database, sch.table.name}}
	return s.query(ctx, q, func(rows *sqlx.Rows) error {
		values := map[string]any{}
		if err := rows.MapScan(values); err != nil {
			return err
		}
		sch.addPart(texts(values))
		return nil
	})
}

// texts brings a row of any types to upper-case names and text values; NULL is left out.
func texts(values map[string]any) map[string]string {
	out := make(map[string]string, len(values))
	for name, value := range values {
		switch v := value.(type) {
		case nil:
		case []byte:
			out[strings.ToUpper(name)] = string(v)
		default:
			out[strings.ToUpper(name)] = fmt.Sprint(v)
		}
	}
	return out
}

// addPart takes one row of information_schema.STATISTICS; the rows of an index follow one another.
func (sch *schema) addPart(row map[string]string) {
	name := row["INDEX_NAME"]
	if n := len(sch.indexes); n == 0 || sch.indexes[n-1].name != name {
		sch.indexes = append(sch.indexes, index{name: name, unique: row["NON_UNIQUE"] == "0", usable: row["INDEX_TYPE"] == "BTREE"})
	}
	x := &sch.indexes[len(sch.indexes)-1]
	for _, diff := range differences {
		if row[diff.hidden] == diff.hiddenIs {
			x.usable = false
		}
	}
	// A part without a column is an expression.
	if row["COLUMN_NAME"] == "" {
		x.usable = false
	}
	_, prefix := row["SUB_PART"]
	x.parts = append(x.parts, part{column: row["COLUMN_NAME"], prefix: prefix})
}
