package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
)

// Resetter is a server on which single records may be set back, with a user of
// its own that may UPDATE. Beside Sweeper, nothing else in this package can write.
type Resetter struct {
	name string
	db   *sqlx.DB
}

// NewResetter checks the options, of which MaxConns, Replica and StatementLimit
// mean nothing here. It opens nothing: Reset does.
func NewResetter(o ServerOptions) (*Resetter, error) {
	if o.Name == "" || o.Database == "" || o.User == "" || (o.Address == "") == (o.Socket == "") {
		return nil, fmt.Errorf("mysql %q: name, database, user and one of address and socket are mandatory", o.Name)
	}
	o.StatementLimit = sweepLimit
	cfg := driverConfig(o)
	cfg.InterpolateParams = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql %q: %w", o.Name, err)
	}
	db := sqlx.NewDb(sql.OpenDB(sweeping{connector}), "mysql")
	db.SetMaxOpenConns(2)
	// Changes are rare, and a connection that was left alone for hours may be dead.
	db.SetMaxIdleConns(-1)
	return &Resetter{name: o.Name, db: db}, nil
}

// Close ends all connections. It may be called more than once.
func (r *Resetter) Close() error { return r.db.Close() }

// NoReset is why a record of a ledger can never be set back.
type NoReset struct {
	// Code is stable: state_machine, outbox, no_status, no_failed_status, no_row_id, elsewhere.
	Code string
	Text flow.Text
}

func (e *NoReset) Error() string { return e.Text.EN }

// ResetPlan is what setting a record back would write.
type ResetPlan struct {
	// From and To are stored status words.
	From, To string
	// Updated is the column that gets the time of the change; empty when none is mapped.
	Updated string
	// SQL is the statement for people, with its values.
	SQL string

	statement
}

// Resettable reports whether records of the ledger can be set back at all.
func (l *Ledger) Resettable() bool {
	m := l.mapping
	return m.preset != "state_machine" && !m.Outbox() && m.HasStatus() && len(m.WordsOf(flow.Failed)) > 0
}

// PlanReset says how the row, as it was read, would be set back to failed, so that
// the next delivery may run it again. The error is a NoReset, or what Explain words.
func (l *Ledger) PlanReset(ctx context.Context, key flow.Key, row Row) (plan ResetPlan, err error) {
	switch {
	case l.mapping.preset == "state_machine":
		return plan, &NoReset{"state_machine", flow.T("the table holds business rows (preset state_machine); their states are never changed from here", "该表是业务表（预设 state_machine），其状态绝不在此更改")}
	case l.mapping.Outbox():
		return plan, &NoReset{"outbox", flow.T("the table holds messages to be sent (preset outbox), no runs", "该表是待发送消息表（预设 outbox），不是执行记录")}
	case !l.mapping.HasStatus():
		return plan, &NoReset{"no_status", flow.T("the table has no status: a run may be repeated only once its row is gone, and rows are not deleted from here", "该表没有状态列：只有删除该行才能重新执行，而此处不删除行")}
	}
	words := l.mapping.WordsOf(flow.Failed)
	if len(words) == 0 {
		return plan, &NoReset{"no_failed_status", flow.T("no stored status means failed (status.failed of ledger %s), so there is nothing to set the record back to", "没有任何状态表示失败（账本 %s 的 status.failed），无法将记录重置为可重试", l.name)}
	}
	if row.ID == "" {
		return plan, &NoReset{"no_row_id", flow.T("the table has no primary key of one integer, so the row cannot be named exactly", "该表没有单列整数主键，无法精确指定该行")}
	}
	for _, s := range l.shards {
		if s.Name() == row.Table {
			err := s.use(ctx, func(layout *layout) error {
				plan = layout.reset(key, row, words[0])
				return nil
			})
			return plan, err
		}
	}
	return plan, &NoReset{"elsewhere", flow.T("table %s is none of this ledger", "表 %s 不属于该账本", row.Table)}
}

// Reset writes what was planned. changed is false when the row is no longer as it
// was read. Unchanged tells of an error whether the row was left alone for certain.
func (r *Resetter) Reset(ctx context.Context, plan ResetPlan) (changed bool, err error) {
	result, err := r.db.ExecContext(ctx, plan.text, plan.args...)
	if err != nil {
		return false, fmt.Errorf("set a record back on mysql %s: %w", r.name, err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// Unchanged reports that a Reset that failed with the error has changed nothing:
// the server refused, or was never reached.
func Unchanged(err error) bool {
	var refused *mysql.MySQLError
	var op *net.OpError
	if errors.As(err, &refused) {
		return FaultOf(err) != FaultLost
	}
	return errors.As(err, &op) && op.Op == "dial"
}

// reset writes the statement: it holds for the row with this id only as long as
// its key, its status and all its times are those that were read.
func (l *layout) reset(key flow.Key, row Row, to string) ResetPlan {
	plan := ResetPlan{From: row.Status, To: to}
	if l.updated != nil {
		plan.Updated = l.updated.name
	}
	plan.text = l.resetSQL(key, row, to, bind(&plan.args))
	plan.SQL = l.resetSQL(key, row, to, literal)
	return plan
}

func (l *layout) resetSQL(key flow.Key, row Row, to string, put writer) string {
	set := []string{quote(l.status.name) + " = " + l.statusValue(to, put)}
	if l.updated != nil {
		set = append(set, quote(l.updated.name)+" = "+l.now(l.updated, row.Updated, time.Now()))
	}
	where := []string{
		// Digits of our own reading, whatever the sign.
		quote(l.key.name) + " = " + row.ID,
		stillIs(l.status, row.Status, put),
	}
	for _, t := range []struct {
		column *column
		stamp  Stamp
	}{{l.created, row.Created}, {l.updated, row.Updated}, {l.completed, row.Completed}} {
		switch {
		case t.column == nil:
		case t.stamp.State == StampNull:
			where = append(where, quote(t.column.name)+" IS NULL")
		default:
			where = append(where, stillIs(t.column, strings.TrimSuffix(t.stamp.Text, "+00:00"), put))
		}
	}
	var ways []string
	for _, w := range l.question(key).ways {
		ways = append(ways, w.where(put))
	}
	where = append(where, "("+strings.Join(ways, " OR ")+")")
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", l.schema.table.quoted(), strings.Join(set, ", "), strings.Join(where, " AND "))
}

func (l *layout) statusValue(word string, put writer) string {
	value := put(operand{word, l.status.binary()})
	if l.status.kind == "bit" {
		return "CAST(" + value + " AS UNSIGNED)"
	}
	return value
}

// stillIs compares the bytes of a column, as it was read, with those of now: a
// collation would take other words for equal, and a time may have fractions.
func stillIs(c *column, text string, put writer) string {
	if c.binary() {
		return quote(c.name) + " = " + put(operand{text, true})
	}
	return fmt.Sprintf("CAST(CONVERT(%s USING utf8mb4) AS BINARY) = CAST(%s AS BINARY)", c.selected(), put(operand{text, false}))
}

// now is the database's clock in the terms of a time column. before is the stamp
// that stands there, by which the unit of a number is known.
func (l *layout) now(c *column, before Stamp, at time.Time) string {
	// The session speaks UTC; how far the column's zone is from it, we know.
	_, offset := at.In(l.zone).Zone()
	local := fmt.Sprintf("UTC_TIMESTAMP(%d) + INTERVAL %d SECOND", c.fraction(), offset)
	switch {
	case c.integer():
		return "CAST(FLOOR(UNIX_TIMESTAMP(NOW(6)) * " + unitOf(before) + ") AS SIGNED)"
	case c.kind == "timestamp":
		return fmt.Sprintf("UTC_TIMESTAMP(%d)", c.fraction())
	case c.kind == "date":
		return "DATE(" + local + ")"
	}
	return local
}

// unitOf is how many of a stamp's units are in a second; seconds when it tells none.
func unitOf(s Stamp) string {
	n, err := strconv.ParseInt(s.Text, 10, 64)
	switch {
	case err != nil || n < 1e11:
		return "1"
	case n < 1e14:
		return "1000"
	}
	return "1000000"
}

// fraction is how many digits of a second a time column keeps.
func (c *column) fraction() int {
	_, digits, ok := strings.Cut(c.whole, "(")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, ")"))
	if !ok || err != nil || c.integer() {
		return 0
	}
	return min(max(n, 0), 6)
}
