package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// SweepBatch is a few rows in a row. The candidates among its rows go in one transaction.
type SweepBatch struct {
	Range
	// Due: a row of the range may go. Found by a look that stops at the first one.
	Due bool
	// Tally has the rows of the range by kind: those that went as candidates, the
	// others as they are behind the transaction. It is there when nothing was due,
	// and after Sweep or Tell.
	Tally Tally
	// Gone is how many rows were deleted, or archived and deleted.
	Gone int64
	// now is when the batch was looked at, by the database's clock.
	now time.Time
	// ids are the rows of a batch that goes to files.
	ids []uint64
}

// Next looks at the next rows in within, at most limit of them (or more when none
// of them may go), and changes nothing. The row with the highest id is never part
// of a batch. The batch reaches to within.To when no row is left. Error:
// ErrReadOnly, or what Explain words.
func (s *SweepSession) Next(ctx context.Context, within Range, limit int, cutoff time.Time) (b SweepBatch, err error) {
	if s.broken != nil {
		return b, s.broken
	}
	next := s.nextDue
	if s.idle {
		next = s.nextIdle
	}
	b, err = next(ctx, rule{s.layout, cutoff}, within, min(max(limit, 1), MaxBatch))
	if err != nil {
		return b, fmt.Errorf("look at the next rows of %s: %w", s.table.Name(), err)
	}
	return b, nil
}

// nextDue expects that some of the next rows may go.
func (s *SweepSession) nextDue(ctx context.Context, r rule, within Range, limit int) (b SweepBatch, err error) {
	if b.Range = within.first(limit); !s.dense {
		if b.Range, err = s.layout.next(ctx, s, within, limit); err != nil {
			return b, err
		}
	}
	seen, err := r.look(ctx, s, b.Range)
	if err != nil {
		return b, err
	}
	if b.Range = b.below(seen.top); b.To <= b.After {
		return SweepBatch{Range: within}, nil
	}
	b.Due, b.now, s.idle = seen.due, seen.now, !seen.due
	if b.Due {
		return b, nil
	}
	return s.Tell(ctx, b, r.cutoff)
}

// nextIdle expects that none of the next rows may go: their kinds are read at once,
// of more rows than would be changed at once, as far as the first that may go.
func (s *SweepSession) nextIdle(ctx context.Context, r rule, within Range, limit int) (b SweepBatch, err error) {
	seen, err := r.look(ctx, s, Range{})
	if err != nil {
		return b, err
	}
	rest := within.below(seen.top)
	if rest.To <= rest.After {
		return SweepBatch{Range: within}, nil
	}
	rows, err := r.read(ctx, s, rest, MaxBatch, seen.now)
	if err != nil {
		return b, err
	}
	b = SweepBatch{Range: rows.Range, now: seen.now}
	if s.idle = rows.first == 0; s.idle {
		s.told(&b, rows.tally)
		return b, nil
	}
	if b.To = rows.first - 1; b.To <= b.After {
		return s.nextDue(ctx, r, within, limit)
	}
	return s.Tell(ctx, b, r.cutoff)
}

// below is the part of the range that leaves the row with the highest id alone.
func (r Range) below(top uint64) Range {
	r.To = min(r.To, max(top, 1)-1)
	return r
}

// first is a part of the range that has no more than n rows, whichever ids are taken.
func (r Range) first(n int) Range {
	if r.To-r.After > uint64(n) {
		r.To = r.After + uint64(n)
	}
	return r
}

// Tell counts the rows of a batch that is not swept.
func (s *SweepSession) Tell(ctx context.Context, b SweepBatch, cutoff time.Time) (SweepBatch, error) {
	tally, err := (rule{s.layout, cutoff}).tally(ctx, s, b.Range, b.now)
	if err != nil {
		return b, fmt.Errorf("count the rows of %s: %w", s.table.Name(), err)
	}
	s.told(&b, tally)
	return b, nil
}

// told notes the rows of a batch, and whether the next limit rows may be taken
// for the next limit ids without being counted first.
func (s *SweepSession) told(b *SweepBatch, tally Tally) {
	b.Tally = tally
	s.dense = 2*tally.Total() >= int64(b.To-b.After)
}

// Unsettled says that the connection was lost while a batch was committed: it may
// have happened or not. Settle finds out.
type Unsettled struct {
	Batch SweepBatch
	err   error
}

func (e *Unsettled) Error() string {
	return fmt.Sprintf("the answer to a commit was lost: %v", e.err)
}

// Unwrap returns what happened to the connection.
func (e *Unsettled) Unwrap() error { return e.err }

// Sweep lets the candidates of the batch go, in one transaction, and returns the
// batch with Gone filled in. Every row is judged anew by the statement that
// deletes or locks it. On an error nothing has changed, unless it is an Unsettled.
func (s *SweepSession) Sweep(ctx context.Context, b SweepBatch, cutoff time.Time) (SweepBatch, error) {
	if _, err := s.exec(ctx, "START TRANSACTION"); err != nil {
		return b, fmt.Errorf("begin a batch: %w", err)
	}
	err := s.change(ctx, &b, rule{s.layout, cutoff})
	if err != nil {
		// With the connection gone, the server rolls back by itself.
		_, _ = s.exec(context.WithoutCancel(ctx), "ROLLBACK")
		b.Gone = 0
		err = errors.Join(err, s.settled(false))
		return b, fmt.Errorf("clean ids %d to %d of %s: %w", b.After+1, b.To, s.table.Name(), err)
	}
	if _, err = s.exec(context.WithoutCancel(ctx), "COMMIT"); err == nil {
		s.broken = s.settled(true)
		return b, nil
	}
	if fault := FaultOf(err); fault != FaultLock && fault != FaultReadOnly {
		return b, &Unsettled{Batch: b, err: err}
	}
	// The server has refused, and rolled back or does so now.
	_, _ = s.exec(context.WithoutCancel(ctx), "ROLLBACK")
	b.Gone = 0
	err = errors.Join(err, s.settled(false))
	return b, fmt.Errorf("commit ids %d to %d of %s: %w", b.After+1, b.To, s.table.Name(), err)
}

func (s *SweepSession) change(ctx context.Context, b *SweepBatch, r rule) error {
	if err := s.remove(ctx, b, r); err != nil {
		return err
	}
	// What is left is counted here, where most rows are gone: that is quick.
	tally, err := r.tally(ctx, s, b.Range, b.now)
	if err != nil {
		return err
	}
	tally[Candidate] += b.Gone
	s.told(b, tally)
	return nil
}

func (s *SweepSession) remove(ctx context.Context, b *SweepBatch, r rule) (err error) {
	switch {
	case s.table.archive != nil:
		return s.move(ctx, b, r)
	case s.table.files != "":
		return s.keep(ctx, b, r)
	}
	var args []any
	b.Gone, err = s.exec(ctx, r.deleteSQL(b.Range, s.ordered, bind(&args)), args...)
	return err
}

// move copies the candidates, which locks them, and deletes exactly those.
func (s *SweepSession) move(ctx context.Context, b *SweepBatch, r rule) error {
	var args []any
	copySQL := r.copySQL(b.Range, *s.table.archive, s.columns, bind(&args))
	copied, err := s.exec(ctx, copySQL, args...)
	if err != nil {
		return fmt.Errorf("copy into %s: %w", s.table.archive, err)
	}
	if copied == 0 {
		return nil
	}
	// Until the transaction ends nobody can alter a table that it has used.
	if err := s.CheckShape(ctx); err != nil {
		return err
	}
	return s.deleteKept(ctx, b, r, copied)
}

// deleteKept deletes the candidates, of which that many are kept elsewhere. Those
// are locked and cannot have changed, so they are among the deleted ones: equal
// numbers mean that no other row is.
func (s *SweepSession) deleteKept(ctx context.Context, b *SweepBatch, r rule, kept int64) (err error) {
	var args []any
	deleteSQL := r.deleteSQL(b.Range, s.ordered, bind(&args))
	b.Gone, err = s.exec(ctx, deleteSQL, args...)
	switch {
	case err == nil && b.Gone > kept:
		return errMoreDue
	case err == nil && b.Gone < kept:
		return fmt.Errorf("%w (%d, %d)", errMismatch, kept, b.Gone)
	}
	return err
}

// CheckShape compares both tables with how they looked when the session began.
// Error: ErrAltered, or what Explain words.
func (s *SweepSession) CheckShape(ctx context.Context) error {
	shape, err := s.look(ctx)
	if err == nil && shape != s.shape {
		err = ErrAltered
	}
	return err
}

// Settle finds out, over a new session, whether an unsettled batch was committed.
func (s *SweepSession) Settle(ctx context.Context, u *Unsettled, cutoff time.Time) (committed bool, err error) {
	if s.table.files != "" {
		here, err := s.countIDs(ctx, u.Batch.ids)
		if err != nil {
			return false, err
		}
		return s.away(u.Batch.ids, here)
	}
	tally, err := (rule{s.layout, cutoff}).tally(ctx, s, u.Batch.Range, cutoff)
	if err != nil || tally[Candidate] > 0 || s.table.archive == nil {
		return err == nil && tally[Candidate] == 0, err
	}
	there, err := s.countArchived(ctx, u.Batch.Range)
	if err == nil && there < u.Batch.Gone {
		err = fmt.Errorf("of %d rows in ids %d to %d, none stands in %s and %d in %s: %w", u.Batch.Gone, u.Batch.After+1, u.Batch.To, s.table.Name(), there, s.table.archive, errMismatch)
	}
	return err == nil, err
}

// countArchived counts the rows of a range in the archive, earlier ones included.
func (s *SweepSession) countArchived(ctx context.Context, in Range) (n int64, err error) {
	q := statement{text: fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s > ? AND %[2]s <= ?", s.table.archive.quoted(), quote(s.layout.key.name)), args: []any{in.After, in.To}}
	err = s.scan(ctx, q, []any{&n}, func() {})
	return n, err
}

// countIDs counts the rows of the table with these ids.
func (s *SweepSession) countIDs(ctx context.Context, ids []uint64) (n int64, err error) {
	q := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s IN (%s)", s.layout.schema.table.quoted(), quote(s.layout.key.name), idList(ids))
	err = s.scan(ctx, statement{text: q}, []any{&n}, func() {})
	return n, err
}

// Load is how busy a server is.
type Load struct {
	// ThreadsRunning counts the statements that run at this moment, this one included.
	ThreadsRunning int
	// History is the length of InnoDB's history list: changes that no purge has
	// cleared away yet. Valid only when HistoryKnown.
	History      int
	HistoryKnown bool
}

const (
	loadSQL = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_running', 'Innodb_history_list_length')"
	// historySQL is for MySQL, which needs the privilege PROCESS for it.
	historySQL = "SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"
)

// Load asks the server how busy it is. Explain words its errors.
func (s *SweepSession) Load(ctx context.Context) (load Load, err error) {
	var name, value string
	err = s.scan(ctx, statement{text: loadSQL}, []any{&name, &value}, func() {
		n, err := strconv.Atoi(value)
		switch name {
		case "Threads_running":
			load.ThreadsRunning = n
		default:
			load.History, load.HistoryKnown = n, err == nil
		}
	})
	if err != nil {
		return load, fmt.Errorf("ask mysql %s for its load: %w", s.sweeper.name, err)
	}
	if !load.HistoryKnown {
		_ = s.scan(ctx, statement{text: historySQL}, []any{&load.History}, func() { load.HistoryKnown = true })
	}
	return load, nil
}
