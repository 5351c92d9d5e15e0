package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"idemscope/internal/flow"
)

const (
	// MaxBatch is how many rows After reads at most.
	MaxBatch = 10000
	// MaxIDs is how many rows ByID reads at most.
	MaxIDs = 500
	// probeRows is how many rows FirstIDSince reads at one position when the first has no readable time.
	probeRows = 10
)

// Batch is a part of a table, read by primary key.
type Batch struct {
	// Rows are in the order of their ids. Their optional columns (result,
	// attempts, worker) are not read, and Exact is never set.
	Rows []Row
	// DBNow is the database's clock as of the statement.
	DBNow time.Time
}

// tail calls read with a layout that has a key to follow, else it fails with ErrNoTail.
func (s *Shard) tail(ctx context.Context, what string, read func(*layout) error) error {
	err := s.use(ctx, func(l *layout) error {
		if l.key == nil {
			return l.lacks(ErrNoTail, flow.T("no single integer primary key, so the table cannot be followed", "没有单列整数主键，无法跟踪该表"))
		}
		return read(l)
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, s.table, err)
	}
	return nil
}

// MaxID returns the highest id, 0 when the table is empty. Error: ErrNoTail, or
// what Explain words.
func (s *Shard) MaxID(ctx context.Context) (id uint64, err error) {
	err = s.tail(ctx, "read the highest id of", func(l *layout) error {
		id, err = s.edge(ctx, l, "DESC")
		return err
	})
	return id, err
}

// edge returns the first id in the given order, 0 when the table is empty.
func (s *Shard) edge(ctx context.Context, l *layout, order string) (uint64, error) {
	var text sql.NullString
	key := quote(l.key.name)
	q := fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (%s) ORDER BY %s %s LIMIT 1", key, l.schema.table.quoted(), quote(l.keyIndex), key, order)
	if err := s.server.scan(ctx, statement{text: q}, []any{&text}, func() {}); err != nil {
		return 0, err
	}
	return parseID(text.String), nil
}

// parseID reads an id; a negative one, which no AUTO_INCREMENT gives, counts as 0.
func parseID(text string) uint64 {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// After returns the rows with an id above the given one, at most limit of them
// (1 to MaxBatch). Error: ErrNoTail, or what Explain words.
func (s *Shard) After(ctx context.Context, id uint64, limit int) (b Batch, err error) {
	limit = min(max(limit, 1), MaxBatch)
	err = s.tail(ctx, "follow", func(l *layout) error {
		b, err = s.batch(ctx, l, fmt.Sprintf("> ? ORDER BY %s LIMIT %d", quote(l.key.name), limit), id)
		return err
	})
	return b, err
}

// ByID returns those of the rows that still exist, at most MaxIDs of them.
// Error: more ids than that, ErrNoTail, or what Explain words.
func (s *Shard) ByID(ctx context.Context, ids []uint64) (b Batch, err error) {
	if len(ids) > MaxIDs {
		return Batch{}, fmt.Errorf("read rows of %s by id: %d ids, at most %d are allowed", s.table, len(ids), MaxIDs)
	}
	err = s.tail(ctx, "read rows by id of", func(l *layout) error {
		if len(ids) == 0 {
			b, err = s.emptyBatch(ctx)
			return err
		}
		args := make([]any, len(ids))
		for i, id := range ids {
			args[i] = id
		}
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(ids)), ", ")
		b, err = s.batch(ctx, l, fmt.Sprintf("IN (%s) ORDER BY %s LIMIT %d", marks, quote(l.key.name), MaxIDs), args...)
		return err
	})
	return b, err
}

// batch reads the rows whose key satisfies the condition.
func (s *Shard) batch(ctx context.Context, l *layout, condition string, args ...any) (Batch, error) {
	return s.read(ctx, l, l.keyIndex, quote(l.key.name)+" "+condition, args...)
}

// read reads the rows that satisfy the condition, through an index.
func (s *Shard) read(ctx context.Context, l *layout, index, condition string, args ...any) (Batch, error) {
	var b Batch
	sel := l.selection(false)
	q := statement{text: fmt.Sprintf("%s WHERE %s", sel.from(index), condition), args: args}
	err := s.server.scan(ctx, q, sel.dest, func() {
		b.DBNow = sel.now()
		b.Rows = append(b.Rows, sel.row())
	})
	if err != nil || len(b.Rows) > 0 {
		return b, err
	}
	return s.emptyBatch(ctx)
}

func (s *Shard) emptyBatch(ctx context.Context) (Batch, error) {
	var h head
	err := h.ask(ctx, s.server)
	return Batch{DBNow: h.now()}, err
}

// IDLimit returns the highest id that the column of the ids keeps. Error:
// ErrNoTail, or what Explain words.
func (s *Shard) IDLimit(ctx context.Context) (limit uint64, err error) {
	err = s.tail(ctx, "read the type of the ids of", func(l *layout) error {
		limit = l.key.highest()
		return nil
	})
	return limit, err
}

// FirstIDSince returns the lowest id from which on rows were created at or
// after t, as far as ids rise with time; one above the highest id when no row is
// that young, and 1 for an empty table. It reads a few rows at some sixty
// positions at most. Rows without a readable time count as young, so that none
// is missed. Error: ErrNoTail (also without a created column), or what Explain words.
func (s *Shard) FirstIDSince(ctx context.Context, t time.Time) (id uint64, err error) {
	err = s.tail(ctx, "find the first row since a time in", func(l *layout) error {
		if l.created == nil {
			return l.lacks(ErrNoTail, flow.T("no created column is mapped, so a time cannot be found in it", "没有映射 created 列，无法按时间定位"))
		}
		id, err = s.bisect(ctx, l, t)
		return err
	})
	return id, err
}

func (s *Shard) bisect(ctx context.Context, l *layout, t time.Time) (uint64, error) {
	low, err := s.edge(ctx, l, "ASC")
	if err != nil {
		return 0, err
	}
	high, err := s.edge(ctx, l, "DESC")
	if err != nil {
		return 0, err
	}
	low = max(low, 1)
	if high < math.MaxUint64 {
		high++
	}
	// All rows below low are older than t; all at or above high are not.
	for low < high {
		middle := low + (high-low)/2
		old, err := s.probe(ctx, l, middle, t)
		if err != nil {
			return 0, err
		}
		if old > 0 {
			low = old + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// probe looks at the first row with a time at or above id. It returns that
// row's id when the row is older than t, else 0.
func (s *Shard) probe(ctx context.Context, l *layout, id uint64, t time.Time) (old uint64, err error) {
	for _, limit := range []int{1, probeRows} {
		b, err := s.batch(ctx, l, fmt.Sprintf(">= ? ORDER BY %s LIMIT %d", quote(l.key.name), limit), id)
		if err != nil {
			return 0, err
		}
		for _, r := range b.Rows {
			switch {
			case r.Created.Time.IsZero():
				continue
			case r.Created.Time.Before(t):
				return parseID(r.ID), nil
			}
			return 0, nil
		}
	}
	return 0, nil
}
