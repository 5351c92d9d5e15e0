package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
)

// errRefused says that the unique key refused the record when the run was to be written down.
var errRefused = errors.New("refused by the unique key")

// claim is the right to run, or what stood against it.
type claim struct {
	// granted: the caller runs.
	granted bool
	// met is the phase of the record that was already there; empty when there was none.
	met flow.Phase
	// phase is what the record says during the run; empty in a book that writes it only at the end.
	phase flow.Phase
	id    int64
	key   flow.Key
}

// effect is the business change of one run.
type effect func(ctx context.Context, db sqlx.ExecerContext) error

// book is how a flow keeps its records: layer 1 (the status check) and layer 3 (the unique key).
type book interface {
	// completed is the status check.
	completed(ctx context.Context, db *sqlx.DB, k flow.Key) (bool, error)
	// begin writes down that a run begins, or says why it must not.
	begin(ctx context.Context, db *sqlx.DB, k flow.Key, policy flow.OnProcessing) (claim, error)
	// complete does the work's effect and marks the record. marked is false when somebody else has marked it meanwhile.
	complete(ctx context.Context, db *sqlx.DB, c claim, do effect) (marked bool, err error)
	// fail lets a later delivery run. marked is as for complete, and false when there is no record to mark.
	fail(ctx context.Context, db *sqlx.DB, c claim) (marked bool, err error)
	// place writes a record as it would stand had it been made some seconds ago. status is the table's own word.
	place(ctx context.Context, db sqlx.ExecerContext, k flow.Key, status string, createdAgo, updatedAgo int) error
}

// statusTable is a book whose records have a status. Conditional updates count matched rows (clientFoundRows).
type statusTable struct {
	// phases gives the meaning of the table's status words.
	phases map[string]flow.Phase
	// findSQL: biz_type, biz_id -> id, status. insertSQL: biz_type, biz_id. The four changes: id.
	findSQL, insertSQL                           string
	takeBackSQL, resumeSQL, completeSQL, failSQL string
	// placeSQL: biz_type, biz_id, status, created ago, updated ago.
	placeSQL string
}

// recordTable is a table of the preset idempotent_record.
func recordTable(table string) statusTable {
	change := "UPDATE " + table + " SET status = %d, update_time = NOW() WHERE id = ? AND status = %d"
	return statusTable{
		phases:      map[string]flow.Phase{"1": flow.Processing, "2": flow.Completed, "3": flow.Failed},
		findSQL:     "SELECT id, status FROM " + table + " WHERE biz_type = ? AND biz_id = ?",
		insertSQL:   "INSERT INTO " + table + " (biz_type, biz_id, status, create_time, update_time) VALUES (?, ?, 1, NOW(), NOW())",
		takeBackSQL: fmt.Sprintf(change, 1, 3),
		resumeSQL:   fmt.Sprintf(change, 1, 1),
		completeSQL: fmt.Sprintf(change, 2, 1),
		failSQL:     fmt.Sprintf(change, 3, 1),
		placeSQL: "INSERT INTO " + table + ` (biz_type, biz_id, status, create_time, update_time)
			VALUES (?, ?, ?, NOW() - INTERVAL ? SECOND, NOW() - INTERVAL ? SECOND)`,
	}
}

// messageTable is the table of the preset message_deduplication. It has no update column.
func messageTable() statusTable {
	return statusTable{
		phases:      map[string]flow.Phase{"processing": flow.Processing, "completed": flow.Completed, "failed": flow.Failed},
		findSQL:     `SELECT id, status FROM message_deduplication WHERE message_type = ? AND message_id = ?`,
		insertSQL:   `INSERT INTO message_deduplication (message_type, message_id, status) VALUES (?, ?, 'processing')`,
		takeBackSQL: `UPDATE message_deduplication SET status = 'processing' WHERE id = ? AND status = 'failed'`,
		resumeSQL:   `UPDATE message_deduplication SET status = 'processing' WHERE id = ? AND status = 'processing'`,
		completeSQL: `UPDATE message_deduplication SET status = 'completed', completed_at = NOW() WHERE id = ? AND status = 'processing'`,
		failSQL:     `UPDATE message_deduplication SET status = 'failed' WHERE id = ? AND status = 'processing'`,
		placeSQL: `INSERT INTO message_deduplication (message_type, message_id, status, created_at, completed_at)
			VALUES (?, ?, ?, NOW() - INTERVAL ? SECOND, NOW() - INTERVAL ? SECOND)`,
	}
}

func (t statusTable) completed(ctx context.Context, db *sqlx.DB, k flow.Key) (bool, error) {
	_, phase, err := t.find(ctx, db, k)
	return phase == flow.Completed, err
}

// find returns the record of k; its phase is empty when there is none.
func (t statusTable) find(ctx context.Context, db *sqlx.DB, k flow.Key) (id int64, phase flow.Phase, err error) {
	var status string
	err = db.QueryRowxContext(ctx, t.findSQL, k.BizType, k.BizID).Scan(&id, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("find record: %w", err)
	}
	return id, t.phases[status], nil
}

func (t statusTable) begin(ctx context.Context, db *sqlx.DB, k flow.Key, policy flow.OnProcessing) (claim, error) {
	c := claim{key: k, phase: flow.Processing}
	result, err := db.ExecContext(ctx, t.insertSQL, k.BizType, k.BizID)
	if err == nil {
		c.granted = true
		c.id, err = result.LastInsertId()
		return c, err
	}
	if !duplicate(err) {
		return c, fmt.Errorf("insert record: %w", err)
	}
	if c.id, c.met, err = t.find(ctx, db, k); err != nil {
		return c, err
	}
	switch {
	case c.met == flow.Failed:
		c.granted, err = t.change(ctx, db, t.takeBackSQL, c.id)
	case c.met == flow.Processing && policy == flow.Resume:
		c.granted, err = t.change(ctx, db, t.resumeSQL, c.id)
	}
	return c, err
}

func (t statusTable) complete(ctx context.Context, db *sqlx.DB, c claim, do effect) (bool, error) {
	if err := do(ctx, db); err != nil {
		return false, err
	}
	return t.change(ctx, db, t.completeSQL, c.id)
}

func (t statusTable) fail(ctx context.Context, db *sqlx.DB, c claim) (bool, error) {
	return t.change(ctx, db, t.failSQL, c.id)
}

func (t statusTable) place(ctx context.Context, db sqlx.ExecerContext, k flow.Key, status string, createdAgo, updatedAgo int) error {
	_, err := db.ExecContext(ctx, t.placeSQL, k.BizType, k.BizID, status, createdAgo, updatedAgo)
	return err
}

// change runs a conditional update of one row and reports whether the condition still held.
func (t statusTable) change(ctx context.Context, db *sqlx.DB, query string, id int64) (bool, error) {
	result, err := db.ExecContext(ctx, query, id)
	if err != nil {
		return false, fmt.Errorf("change record: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// signTable is the book of the sign-in flow: a row means completed, and it is written in the business transaction.
// Its biz_id is user_id:sign_date.
type signTable struct{}

func (signTable) completed(ctx context.Context, db *sqlx.DB, k flow.Key) (bool, error) {
	user, date, _ := strings.Cut(k.BizID, ":")
	var n int
	err := db.GetContext(ctx, &n, `SELECT COUNT(*) FROM user_sign_record WHERE user_id = ? AND sign_date = ?`, user, date)
	return n > 0, err
}

func (signTable) begin(_ context.Context, _ *sqlx.DB, k flow.Key, _ flow.OnProcessing) (claim, error) {
	return claim{granted: true, key: k}, nil
}

func (t signTable) complete(ctx context.Context, db *sqlx.DB, c claim, do effect) (bool, error) {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // harmless after the commit
	if err := t.place(ctx, tx, c.key, "", 0, 0); err != nil {
		if duplicate(err) {
			return false, errRefused
		}
		return false, fmt.Errorf("insert record: %w", err)
	}
	if err := do(ctx, tx); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// fail has nothing to do: the transaction was rolled back and left no row.
func (signTable) fail(context.Context, *sqlx.DB, claim) (bool, error) { return false, nil }

func (signTable) place(ctx context.Context, db sqlx.ExecerContext, k flow.Key, _ string, createdAgo, _ int) error {
	user, date, _ := strings.Cut(k.BizID, ":")
	_, err := db.ExecContext(ctx, `INSERT INTO user_sign_record (user_id, sign_date, points, created_at)
		VALUES (?, ?, 5, NOW() - INTERVAL ? SECOND)`, user, date, createdAgo)
	return err
}

// duplicate recognises error 1062, the unique key's refusal.
func duplicate(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && answer.Number == 1062
}
