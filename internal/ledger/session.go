package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Dialect is the family that a server belongs to.
type Dialect string

// The two families.
const (
	MariaDB Dialect = "MariaDB"
	MySQL   Dialect = "MySQL"
)

// dialectOf reads what VERSION() answers. Every fork that is not MariaDB keeps
// MySQL's variables.
func dialectOf(version string) Dialect {
	if strings.Contains(version, "MariaDB") {
		return MariaDB
	}
	return MySQL
}

// difference is all that this package must do differently on one family.
type difference struct {
	// limit is the session variable that ends a statement that runs too long,
	// limitUnit what its number 1 means.
	limit     string
	limitUnit time.Duration
	// hidden is the column of information_schema.STATISTICS that tells of an
	// index that the optimizer must not use, hiddenIs the value that says so.
	// Servers older than the feature have no such column.
	hidden, hiddenIs string
}

var differences = map[Dialect]difference{
	MariaDB: {limit: "max_statement_time", limitUnit: time.Second, hidden: "IGNORED", hiddenIs: "YES"},
	MySQL:   {limit: "max_execution_time", limitUnit: time.Millisecond, hidden: "IS_VISIBLE", hiddenIs: "NO"},
}

// lockWait is how many seconds a statement waits for a lock, be it of a row or
// of the table's definition: an ALTER in progress must not hold a reader.
const lockWait = 2

// guardStatements make a session harmless: it cannot write, it speaks UTC and
// utf8mb4, and the server itself ends what runs too long, even when nobody
// waits for the answer any more.
func guardStatements(d Dialect, limit time.Duration) []string {
	diff := differences[d]
	number := float64(limit.Round(time.Millisecond)) / float64(diff.limitUnit)
	return []string{
		"SET SESSION TRANSACTION READ ONLY",
		"SET NAMES utf8mb4",
		fmt.Sprintf("SET SESSION time_zone = '+00:00', SESSION lock_wait_timeout = %d, SESSION innodb_lock_wait_timeout = %d, SESSION %s = %s",
			lockWait, lockWait, diff.limit, strconv.FormatFloat(number, 'f', -1, 64)),
	}
}

// guarded opens connections and guards each of them before anybody can use it.
// It is the only way to a connection in this package.
type guarded struct {
	driver.Connector
	limit time.Duration
}

// Connect opens and guards one connection.
func (g guarded) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := guard(ctx, conn, g.limit); err != nil {
		return nil, errors.Join(fmt.Errorf("make the session read-only: %w", err), conn.Close())
	}
	return conn, nil
}

func guard(ctx context.Context, conn driver.Conn, limit time.Duration) error {
	version, err := askVersion(ctx, conn.(driver.QueryerContext))
	if err != nil {
		return err
	}
	for _, statement := range guardStatements(dialectOf(version), limit) {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return err
		}
	}
	return nil
}

func askVersion(ctx context.Context, conn driver.QueryerContext) (string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT VERSION()", nil)
	if err != nil {
		return "", err
	}
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return "", errors.Join(err, rows.Close())
	}
	return fmt.Sprintf("%s", row[0]), rows.Close()
}
