package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// Types lists the biz_types that stand in the ledger, in the order of their
// bytes, at most limit of them; complete is false when there are more. It jumps
// from type to type through an index that begins with biz_type, so that its cost
// depends on the number of types, not of rows. Types that the column's collation
// takes for equal appear once, in one of their spellings.
// Error: ErrNoIndex when no index begins with biz_type, or what Explain words.
func (l *Ledger) Types(ctx context.Context, limit int) (types []string, complete bool, err error) {
	if constant, ok := l.mapping.BizType(); ok {
		return []string{constant}, true, nil
	}
	complete = true
	for _, s := range l.shards {
		some, all, err := s.types(ctx, limit)
		if err != nil {
			return nil, false, fmt.Errorf("list the types of %s: %w", s.table, err)
		}
		types, complete = append(types, some...), complete && all
	}
	slices.Sort(types)
	types = slices.Compact(types)
	if len(types) > limit {
		return types[:limit], false, nil
	}
	return types, complete, nil
}

func (s *Shard) types(ctx context.Context, limit int) (types []string, complete bool, err error) {
	err = s.use(ctx, func(l *layout) error {
		index := l.typeIndex()
		if index == "" {
			return l.lacks(ErrNoIndex, flow.T("no index begins with the biz_type column, so its values cannot be listed without reading the table",
				"没有以 biz_type 列开头的索引，不扫描整张表就无法列出其取值"))
		}
		types, complete, err = s.walk(ctx, l, index, limit)
		return err
	})
	return types, complete, err
}

// typeIndex returns an index in which the types stand in the order in which
// MySQL compares them: ENUM columns, which are ordered by number and compared by
// word, have none.
func (l *layout) typeIndex() string {
	if !l.bizType.text() && !l.bizType.binary() && !l.bizType.integer() || l.bizType.kind == "enum" || l.bizType.kind == "set" {
		return ""
	}
	for _, x := range l.schema.indexes {
		if x.usable && !x.parts[0].prefix && strings.EqualFold(x.parts[0].column, l.bizType.name) {
			return x.name
		}
	}
	return ""
}

func (s *Shard) walk(ctx context.Context, l *layout, index string, limit int) (types []string, complete bool, err error) {
	column := quote(l.bizType.name)
	condition := "IS NOT NULL"
	var args []any
	for {
		var next sql.NullString
		q := fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (%s) WHERE %s %s ORDER BY %s LIMIT 1", column, l.schema.table.quoted(), quote(index), column, condition, column)
		if err := s.server.scan(ctx, statement{text: q, args: args}, []any{&next}, func() {}); err != nil {
			return nil, false, err
		}
		if !next.Valid {
			return types, true, nil
		}
		if len(types) >= limit {
			return types, false, nil
		}
		types = append(types, next.String)
		args = nil
		condition = "> " + bind(&args)(operand{next.String, l.bizType.binary()})
	}
}
