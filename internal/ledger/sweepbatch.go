package ledger

import (
	"context"
	"database/sql"
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
	// ids are the rows of a batch that goes to a table or to files.
	ids []uint64
}

// Next looks at the next rows in within, at most limit of them, and changes
// nothing. The row with the highest id is never part of a batch. The batch
// reaches to within.To when no row is left. Error: ErrReadOnly, or what Explain words.
func (s *SweepSession) Next(ctx context.Context, within Range, limit int, cutoff time.Time) (b SweepBatch, err error) {
	if s.broken != nil {
		return b, s.broken
	}
	p, err := s.layout.nextPart(ctx, s, within, min(max(limit, 1), MaxBatch))
	switch {
	case err != nil:
		return b, fmt.Errorf("look at the next rows of %s: %w", s.table.Name(), err)
	case p.readOnly:
		return b, ErrReadOnly
	}
	b.Range = Range{After: within.After, To: min(p.to, max(p.top, 1)-1)}
	if b.To <= b.After {
		b.Range = Range{After: within.After, To: within.To}
		return b, nil
	}
	r := rule{s.layout, cutoff}
	if b.Due, err = r.due(ctx, s, b.Range); err == nil && !b.Due {
		b.Tally, err = r.tally(ctx, s, b.Range, p.now)
	}
	if err != nil {
		return b, fmt.Errorf("count the next rows of %s: %w", s.table.Name(), err)
	}
	b.now = p.now
	return b, nil
}

// Tell counts the rows of a batch that is not swept.
func (s *SweepSession) Tell(ctx context.Context, b SweepBatch, cutoff time.Time) (SweepBatch, error) {
	tally, err := (rule{s.layout, cutoff}).tally(ctx, s, b.Range, b.now)
	if err != nil {
		return b, fmt.Errorf("count the rows of %s: %w", s.table.Name(), err)
	}
	b.Tally = tally
	return b, nil
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
	b.Tally = tally
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

// move locks the candidates, copies them, and deletes exactly those.
func (s *SweepSession) move(ctx context.Context, b *SweepBatch, r rule) error {
	var args []any
	var id sql.NullString
	b.ids = nil
	q := statement{text: r.lockSQL(b.Range, bind(&args))}
	q.args = args
	if err := s.scan(ctx, q, []any{&id}, func() { b.ids = append(b.ids, parseID(id.String)) }); err != nil || len(b.ids) == 0 {
		return err
	}
	ids := idList(b.ids)
	copied, err := s.exec(ctx, moveSQL(s.layout, *s.table.archive, s.columns, ids))
	if err != nil {
		return fmt.Errorf("copy into %s: %w", s.table.archive, err)
	}
	// Until the transaction ends nobody can alter a table that it has used.
	if err := s.CheckShape(ctx); err != nil {
		return err
	}
	args = nil
	deleteSQL := r.deleteIDsSQL(b.Range, ids, bind(&args))
	if b.Gone, err = s.exec(ctx, deleteSQL, args...); err != nil {
		return err
	}
	if copied != int64(len(b.ids)) || b.Gone != copied {
		return fmt.Errorf("%w (%d, %d, %d)", errMismatch, len(b.ids), copied, b.Gone)
	}
	return nil
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
	if s.table.Archive() == "" {
		tally, err := (rule{s.layout, cutoff}).tally(ctx, s, u.Batch.Range, cutoff)
		return err == nil && tally[Candidate] == 0, err
	}
	here, err := s.countIDs(ctx, s.table.shard.table, u.Batch.ids)
	if err != nil {
		return false, err
	}
	if s.table.files != "" {
		return s.away(u.Batch.ids, here)
	}
	there, err := s.countIDs(ctx, *s.table.archive, u.Batch.ids)
	if err != nil {
		return false, err
	}
	n := int64(len(u.Batch.ids))
	switch {
	case here == n && there == 0:
		return false, nil
	case here == 0 && there == n:
		return true, nil
	}
	return false, fmt.Errorf("of %d rows in ids %d to %d, %d stand in %s and %d in %s: %w", n, u.Batch.After+1, u.Batch.To, here, s.table.Name(), there, s.table.archive, errMismatch)
}

func (s *SweepSession) countIDs(ctx context.Context, t table, ids []uint64) (n int64, err error) {
	q := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s IN (%s)", t.quoted(), quote(s.layout.key.name), idList(ids))
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
