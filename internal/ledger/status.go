package ledger

import (
	"context"
	"fmt"
	"strings"

	"idemscope/internal/flow"
)

// WithStatus returns the rows with one stored status and an id above the given
// one, in the order of their ids, at most limit of them (1 to MaxBatch). It
// reads no other rows: it needs an index that begins with the status column and
// goes on with the id. InnoDB ends every secondary index with the primary key,
// so an index on the status alone will do there.
// Error: ErrNoIndex when there is none, ErrNoTail, or what Explain words.
func (s *Shard) WithStatus(ctx context.Context, status string, id uint64, limit int) (b Batch, err error) {
	limit = min(max(limit, 1), MaxBatch)
	err = s.tail(ctx, "read rows by status of", func(l *layout) error {
		index := l.statusIndex()
		if index == "" {
			return l.lacks(ErrNoIndex, flow.T("no index holds the status column and then the id, so rows of one status cannot be found without reading the others",
				"没有先后包含状态列与 ID 的索引，不读取其他行就无法找出某一状态的行"))
		}
		var args []any
		word := bind(&args)(operand{status, l.status.binary()})
		args = append(args, id)
		key := quote(l.key.name)
		b, err = s.read(ctx, l, index, fmt.Sprintf("%s = %s AND %s > ? ORDER BY %s LIMIT %d", quote(l.status.name), word, key, key, limit), args...)
		return err
	})
	return b, err
}

// statusIndex returns the name of an index in which the rows of one status
// stand in the order of their ids, or nothing.
func (l *layout) statusIndex() string {
	if l.status == nil {
		return ""
	}
	for _, x := range l.schema.indexes {
		if !x.usable || x.parts[0].prefix || !strings.EqualFold(x.parts[0].column, l.status.name) {
			continue
		}
		next := ""
		switch {
		case len(x.parts) > 1:
			next = x.parts[1].column
		case l.schema.engine == "innodb":
			if leading, _ := l.schema.primary(); leading != nil {
				next = leading.name
			}
		}
		if strings.EqualFold(next, l.key.name) {
			return x.name
		}
	}
	return ""
}
