package ledger

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// Restored is what became of rows that were to come back.
type Restored struct {
	// Inserted are in the table again; There were in it already, byte for byte.
	Inserted, There int64
}

// RestoreConflict says that a row cannot come back without overwriting another.
type RestoreConflict struct{ text flow.Text }

func (e *RestoreConflict) Error() string { return e.text.EN }

// Text names the row.
func (e *RestoreConflict) Text() flow.Text { return e.text }

// insertBytes bounds one INSERT, far below what servers take.
const insertBytes = 1 << 20

// Restore puts archived rows back in one transaction: all of them or none. A row
// that is in the table as it was counts as there; one that differs, or whose key
// another row has, is a RestoreConflict. Without execute nothing is changed, and
// keys of other rows are not looked for. Rows are those of a Keeper.
func (s *SweepSession) Restore(ctx context.Context, columns []string, rows [][][]byte, execute bool) (r Restored, err error) {
	targets, err := s.restorable(columns)
	if err != nil {
		return r, err
	}
	if _, err := s.exec(ctx, "SET SESSION character_set_results = NULL"); err != nil {
		return r, err
	}
	if _, err := s.exec(ctx, "START TRANSACTION"); err != nil {
		return r, err
	}
	defer func() {
		end := "COMMIT"
		if err != nil || !execute {
			end = "ROLLBACK"
		}
		if _, endErr := s.exec(context.WithoutCancel(ctx), end); err == nil {
			err = endErr
		}
		if err != nil {
			r = Restored{}
		}
	}()
	missing, err := s.missing(ctx, targets, rows)
	if err != nil {
		return r, err
	}
	r = Restored{Inserted: int64(len(missing)), There: int64(len(rows) - len(missing))}
	if !execute {
		return r, nil
	}
	return r, s.insert(ctx, targets, missing)
}

// restorable finds the archived columns in the table as it is today.
func (s *SweepSession) restorable(columns []string) ([]described, error) {
	var targets []described
	for _, name := range columns {
		i := slices.IndexFunc(s.source, func(c described) bool { return strings.EqualFold(c.name, name) })
		if i < 0 || s.source[i].generated {
			return nil, &RestoreConflict{flow.T("%s has no column %s (any more), which the archived rows have", "%s（已）没有归档行中的列 %s", s.table.Name(), flow.Visible(name))}
		}
		targets = append(targets, s.source[i])
	}
	for _, c := range s.source {
		known := slices.ContainsFunc(targets, func(t described) bool { return t.name == c.name })
		if !known && !c.filled && !c.generated {
			return nil, &RestoreConflict{flow.T("%s has the column %s, which must have a value, and the archived rows have none", "%s 的列 %s 必须有值，而归档行中没有", s.table.Name(), flow.Visible(c.name))}
		}
	}
	if !slices.ContainsFunc(targets, func(t described) bool { return strings.EqualFold(t.name, s.layout.key.name) }) {
		return nil, &RestoreConflict{flow.T("the archived rows have no %s", "归档行中没有 %s", s.layout.key.name)}
	}
	return targets, nil
}

// missing are the rows whose keys the table does not hold.
func (s *SweepSession) missing(ctx context.Context, columns []described, rows [][][]byte) ([][][]byte, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	key := slices.IndexFunc(columns, func(c described) bool { return strings.EqualFold(c.name, s.layout.key.name) })
	var ids []uint64
	for _, row := range rows {
		ids = append(ids, parseID(string(row[key])))
	}
	here := map[string][][]byte{}
	values := make([][]byte, len(columns))
	dest := make([]any, len(values))
	for i := range values {
		dest[i] = &values[i]
	}
	q := fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (%s) WHERE %s IN (%s) FOR UPDATE", exactColumns(columns), s.layout.schema.table.quoted(), quote(s.layout.keyIndex), quote(s.layout.key.name), idList(ids))
	err := s.scan(ctx, statement{text: q}, dest, func() { here[string(values[key])] = append([][]byte(nil), values...) })
	if err != nil {
		return nil, err
	}
	var missing [][][]byte
	for _, row := range rows {
		other, taken := here[string(row[key])]
		switch {
		case !taken:
			missing = append(missing, row)
		case !slices.EqualFunc(row, other, func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }):
			return nil, &RestoreConflict{flow.T("%s holds another row with the id %s; rows are never overwritten", "%s 中已有另一条 ID 为 %s 的行；绝不覆盖", s.table.Name(), row[key])}
		}
	}
	return missing, nil
}

// insert writes rows, a few at a time.
func (s *SweepSession) insert(ctx context.Context, columns []described, rows [][][]byte) error {
	var names []string
	for _, c := range columns {
		names = append(names, quote(c.name))
	}
	head := fmt.Sprintf("INSERT INTO %s (%s) VALUES ", s.layout.schema.table.quoted(), strings.Join(names, ", "))
	for len(rows) > 0 {
		var q strings.Builder
		n := 0
		for q.WriteString(head); n < len(rows) && (n == 0 || q.Len() < insertBytes); n++ {
			if n > 0 {
				q.WriteString(", ")
			}
			q.WriteString(rowLiteral(columns, rows[n]))
		}
		if _, err := s.exec(ctx, q.String()); err != nil {
			if FaultOf(err) == FaultArchive {
				return &RestoreConflict{flow.T("%s does not take the rows back: %s", "%s 不接受这些行：%s", s.table.Name(), Explain(err))}
			}
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// rowLiteral writes a row so that the server takes every byte as it is: with the
// character set of its column, nothing is converted.
func rowLiteral(columns []described, row [][]byte) string {
	var b strings.Builder
	for i, value := range row {
		b.WriteString(map[bool]string{true: "(", false: ", "}[i == 0])
		if value == nil {
			b.WriteString("NULL")
			continue
		}
		if charset := columns[i].introducer(); charset != "" {
			b.WriteString("_" + charset + " ")
		}
		b.WriteString("X'" + hex.EncodeToString(value) + "'")
	}
	return b.String() + ")"
}

// introducer is the character set of a value of the column, empty for bytes.
func (c described) introducer() string {
	if c.charset != "" {
		return c.charset
	}
	for _, kind := range []string{"bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"} {
		if c.kind == kind || strings.HasPrefix(c.kind, kind+"(") {
			return ""
		}
	}
	return "utf8mb4" // numbers and times, as text
}

// exactColumns lists columns so that every value is read as it is.
func exactColumns(columns []described) string {
	var names []string
	for _, c := range columns {
		switch {
		case c.generated:
		case strings.HasPrefix(c.kind, "float"):
			// As text a FLOAT is rounded; the DOUBLE of the same value is not.
			names = append(names, quote(c.name)+" + 0e0")
		default:
			names = append(names, quote(c.name))
		}
	}
	return strings.Join(names, ", ")
}
