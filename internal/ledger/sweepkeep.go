package ledger

import (
	"context"
	"fmt"
	"strings"

	"idemscope/internal/flow"
)

// Keeper takes rows that are about to be deleted, as package archive does.
type Keeper interface {
	// Pending lists the keys of a batch that an earlier run stored and never settled.
	Pending() []uint64
	// Keep stores the rows durably; nil is NULL.
	Keep(columns []string, rows [][][]byte) error
	// Settle says whether the rows of the last batch went from the table.
	Settle(gone bool) error
	Close() error
}

// KeeperFault says that the files of an archive could not be written. Rows that
// they do not hold were not deleted.
type KeeperFault struct{ cause error }

func (e *KeeperFault) Error() string { return e.Text().EN }

// Text names the file and what happened.
func (e *KeeperFault) Text() flow.Text {
	return flow.T("%v. Rows that the files do not hold were not deleted; make room or mend the directory, and start again",
		"%v。文件中没有的行不会被删除；请腾出空间或修复目录后重新执行", e.cause.Error())
}

// Unwrap returns what the operating system said.
func (e *KeeperFault) Unwrap() error { return e.cause }

// Key is the name of the primary key.
func (s *SweepSession) Key() string { return s.layout.key.name }

// KeepIn lets the rows of all further batches go to k, which is closed with the
// session. A batch that an earlier run left open is settled first: the table tells
// what became of it. On an error the caller still closes k.
func (s *SweepSession) KeepIn(ctx context.Context, k Keeper) error {
	if _, err := s.exec(ctx, "SET SESSION character_set_results = NULL"); err != nil {
		return fmt.Errorf("ask mysql %s for bytes as they are stored: %w", s.sweeper.name, err)
	}
	if ids := k.Pending(); len(ids) > 0 {
		here, err := s.countIDs(ctx, ids)
		if err != nil {
			return err
		}
		gone, err := s.away(ids, here)
		if err != nil {
			return err
		}
		if err := k.Settle(gone); err != nil {
			return &KeeperFault{err}
		}
	}
	s.keeper = k
	return nil
}

// away tells from how many rows of a batch are in the table whether it was committed.
func (s *SweepSession) away(ids []uint64, here int64) (bool, error) {
	switch here {
	case 0:
		return true, nil
	case int64(len(ids)):
		return false, nil
	}
	return false, fmt.Errorf("of %d rows in ids %d to %d, which are in the files of the archive, %d stand in %s: %w",
		len(ids), ids[0], ids[len(ids)-1], here, s.table.Name(), errMismatch)
}

// settled tells the keeper, if there is one.
func (s *SweepSession) settled(gone bool) error {
	if s.keeper == nil {
		return nil
	}
	if err := s.keeper.Settle(gone); err != nil {
		return &KeeperFault{err}
	}
	return nil
}

// keep locks the candidates, stores them, and deletes exactly those. The files are
// written while the server deletes: neither counts before the commit, which waits
// for both.
func (s *SweepSession) keep(ctx context.Context, b *SweepBatch, r rule) error {
	if s.keeper == nil {
		return &KeeperFault{fmt.Errorf("nobody takes the rows of %s", s.table.Name())}
	}
	rows, err := s.lockedRows(ctx, b.Range, r)
	b.ids = nil
	if err != nil || len(rows) == 0 {
		return err
	}
	key := s.keyColumn()
	for _, row := range rows {
		b.ids = append(b.ids, parseID(string(row[key])))
	}
	// Until the transaction ends nobody can alter a table that it has used.
	if err := s.CheckShape(ctx); err != nil {
		return err
	}
	kept := make(chan error, 1)
	go func() { kept <- s.keeper.Keep(s.columns, rows) }()
	err = s.deleteKept(ctx, b, r, int64(len(rows)))
	if fault := <-kept; fault != nil {
		return &KeeperFault{fault}
	}
	return err
}

// keyColumn is where the key stands among the columns.
func (s *SweepSession) keyColumn() int {
	for i, name := range s.columns {
		if strings.EqualFold(name, s.layout.key.name) {
			return i
		}
	}
	return 0 // not reached: a table without its key is refused
}

// lockedRows reads the candidates of a range whole, and keeps everybody else from
// changing them until the transaction ends.
func (s *SweepSession) lockedRows(ctx context.Context, in Range, r rule) (rows [][][]byte, err error) {
	var args []any
	q := statement{text: r.readSQL(in, s.source, bind(&args))}
	q.args = args
	values := make([][]byte, len(s.columns))
	dest := make([]any, len(values))
	for i := range values {
		dest[i] = &values[i]
	}
	err = s.scan(ctx, q, dest, func() {
		rows = append(rows, append([][]byte(nil), values...))
	})
	return rows, err
}

// readSQL reads and locks the candidates of a range, every column as it is.
func (r rule) readSQL(in Range, columns []described, put writer) string {
	key := quote(r.layout.key.name)
	return fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (%s) WHERE %s > %d AND %s <= %d AND %s ORDER BY %s FOR UPDATE",
		exactColumns(columns), r.layout.schema.table.quoted(), quote(r.layout.keyIndex), key, in.After, key, in.To, r.candidate(put), key)
}

// NewKeeperFault says that the files could not be opened.
func NewKeeperFault(cause error) *KeeperFault { return &KeeperFault{cause} }
