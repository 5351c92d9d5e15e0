package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"idemscope/internal/flow"
)

// copySQL copies the candidates of a range, and keeps everybody else from changing
// them until the transaction ends. Columns are named, because the archive may have
// them in another order, or more of them.
func (r rule) copySQL(in Range, archive table, columns []string, put writer) string {
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = quote(name)
	}
	list, key := strings.Join(names, ", "), quote(r.layout.key.name)
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM %[3]s WHERE %[4]s > %[5]d AND %[4]s <= %[6]d AND %[7]s ORDER BY %[4]s FOR UPDATE",
		archive.quoted(), list, r.layout.rows(), key, in.After, in.To, r.candidate(put))
}

// idList writes ids into a statement.
func idList(ids []uint64) string {
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = strconv.FormatUint(id, 10)
	}
	return strings.Join(text, ", ")
}

// described is a column as its table was created.
type described struct {
	name string
	// kind is the type with its size; charset is empty for a column without characters.
	kind, charset, collation string
	nullable                 bool
	// filled: a row may leave the column out.
	filled bool
	// generated: the server computes it.
	generated bool
}

const describeSQL = `SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, EXTRA
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`

// describe reads the columns of a table; none when it does not exist.
func describe(ctx context.Context, on scanner, t table) ([]described, error) {
	var columns []described
	var name, kind, nullable, extra string
	var charset, collation, fallback sql.NullString
	q := statement{text: describeSQL, args: []any{t.database, t.name}}
	err := on.scan(ctx, q, []any{&name, &kind, &charset, &collation, &nullable, &fallback, &extra}, func() {
		extra = strings.ToUpper(extra)
		columns = append(columns, described{
			name: name, kind: strings.ToLower(kind), charset: charset.String, collation: collation.String, nullable: nullable == "YES",
			filled:    nullable == "YES" || fallback.Valid || strings.Contains(extra, "AUTO_INCREMENT"),
			generated: strings.Contains(extra, "VIRTUAL") || strings.Contains(extra, "STORED") || strings.Contains(extra, "PERSISTENT"),
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the columns of %s: %w", t, err)
	}
	return columns, nil
}

// stored lists the columns that a copy has to name.
func stored(columns []described) []string {
	var names []string
	for _, c := range columns {
		if !c.generated {
			names = append(names, c.name)
		}
	}
	return names
}

// definition is the column as ALTER TABLE takes it.
func (c described) definition() string {
	text := quote(c.name) + " " + c.kind
	if c.charset != "" {
		text += fmt.Sprintf(" CHARACTER SET %s COLLATE %s", c.charset, c.collation)
	}
	if c.nullable {
		return text + " NULL"
	}
	return text + " NOT NULL"
}

// archiveObstacles compares the archive with the table. A copy must keep every
// byte, and a repeated copy must be refused.
func (t *SweepTable) archiveObstacles(ctx context.Context, l *layout) ([]Obstacle, error) {
	if t.archive == nil {
		return nil, nil
	}
	s := t.shard.server
	archive, err := s.readSchema(ctx, *t.archive)
	if err != nil {
		return nil, err
	}
	if len(archive.columns) == 0 {
		return []Obstacle{{"archive_missing", flow.T(
			"there is no archive table %[1]s, or this user may not see it; create it: %[2]s", "归档表 %[1]s 不存在，或该用户无权查看；请创建：%[2]s", t.archive, t.createArchive(l))}}, nil
	}
	found := archiveKeys(l, archive)
	source, err := describe(ctx, s, t.shard.table)
	if err != nil {
		return nil, err
	}
	target, err := describe(ctx, s, *t.archive)
	if err != nil {
		return nil, err
	}
	for _, d := range drift(source, target) {
		found = append(found, Obstacle{"archive_differs", flow.T(
			"the archive table %[1]s differs: %[2]s; ALTER TABLE %[3]s %[4]s", "归档表 %[1]s 与源表不一致：%[2]s；请执行 ALTER TABLE %[3]s %[4]s", t.archive, d.what, t.archive.quoted(), d.remedy)})
	}
	return found, nil
}

// createArchive writes the statements that make the archive. Only the primary
// key stays unique: a business key that comes again after its row was archived
// is archived a second time.
func (t *SweepTable) createArchive(l *layout) string {
	text := fmt.Sprintf("CREATE TABLE %s LIKE %s;", t.archive.quoted(), l.schema.table.quoted())
	for _, x := range l.schema.indexes {
		if x.unique && x.name != primaryKey {
			text += fmt.Sprintf(" ALTER TABLE %s %s;", t.archive.quoted(), x.plain())
		}
	}
	return text
}

// plain makes a unique index an ordinary one.
func (x index) plain() string {
	columns := make([]string, len(x.parts))
	for i, p := range x.parts {
		columns[i] = quote(p.column)
	}
	return fmt.Sprintf("DROP INDEX %[1]s, ADD INDEX %[1]s (%[2]s)", quote(x.name), strings.Join(columns, ", "))
}

// archiveKeys are the obstacles in the archive's engine and keys.
func archiveKeys(l *layout, archive *schema) (found []Obstacle) {
	if archive.engine != "innodb" {
		found = append(found, Obstacle{"archive_engine", flow.T(
			"the archive table's storage engine is %[1]s, and only InnoDB can take a batch back; ALTER TABLE %[2]s ENGINE = InnoDB", "归档表的存储引擎是 %[1]s，只有 InnoDB 能回滚一个批次；请执行 ALTER TABLE %[2]s ENGINE = InnoDB",
			archive.engine, archive.table.quoted())})
	}
	byID := false
	for _, x := range archive.indexes {
		switch {
		case !x.unique:
		case l.key != nil && len(x.parts) == 1 && strings.EqualFold(x.parts[0].column, l.key.name):
			byID = true
		default:
			found = append(found, Obstacle{"archive_unique", flow.T(
				"the unique key %[1]s of the archive table would refuse a business key that comes again after its row was archived; ALTER TABLE %[2]s %[3]s",
				"归档表的唯一键 %[1]s 会拒绝归档后再次出现的业务键；请执行 ALTER TABLE %[2]s %[3]s", x.name, archive.table.quoted(), x.plain())})
		}
	}
	if !byID && l.key != nil {
		found = append(found, Obstacle{"archive_unique", flow.T(
			"the archive table has no unique key on %[1]s, so a repeated copy would double rows; ALTER TABLE %[2]s ADD UNIQUE KEY (%[3]s)",
			"归档表在 %[1]s 上没有唯一键，重复归档会产生重复行；请执行 ALTER TABLE %[2]s ADD UNIQUE KEY (%[3]s)", l.key.name, archive.table.quoted(), quote(l.key.name))})
	}
	return found
}

// archiveDrift is one difference between a table and its archive.
type archiveDrift struct {
	what flow.Text
	// remedy follows ALTER TABLE.
	remedy string
}

// drift lists what would make a copy fail or lose something.
func drift(source, target []described) (found []archiveDrift) {
	byName := map[string]described{}
	for _, c := range target {
		byName[strings.ToLower(c.name)] = c
	}
	for _, c := range source {
		a, ok := byName[strings.ToLower(c.name)]
		delete(byName, strings.ToLower(c.name))
		switch {
		case !ok:
			found = append(found, archiveDrift{flow.T("column %s is missing", "缺少列 %s", c.name), "ADD COLUMN " + c.definition()})
		case a.generated != c.generated:
			found = append(found, archiveDrift{flow.T("only one of both tables computes column %s", "只有其中一张表将列 %s 定义为生成列", c.name), "MODIFY COLUMN " + c.definition()})
		case a.kind != c.kind || a.charset != c.charset || c.nullable && !a.nullable:
			found = append(found, archiveDrift{flow.T("column %[1]s is %[2]s there and %[3]s here", "列 %[1]s 在归档表中为 %[2]s，在源表中为 %[3]s", c.name, a.definition(), c.definition()), "MODIFY COLUMN " + c.definition()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if c := byName[name]; !c.filled && !c.generated {
			found = append(found, archiveDrift{flow.T("column %s has no counterpart and no default", "列 %s 在源表中没有对应列，也没有默认值", c.name), fmt.Sprintf("ALTER COLUMN %s SET DEFAULT ...", quote(c.name))})
		}
	}
	return found
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
