package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
)

// Sweeper is a server on which tables may be cleaned, with a user of its own that
// may delete. Nothing else in this package can write.
type Sweeper struct {
	name string
	db   *sqlx.DB
}

const (
	// sweepConns: one sweeps, one ends the statement of the other, and so again
	// for a sweep that was asked for while another one runs.
	sweepConns = 4
	// sweepIdle is after how many seconds the server gives up a session that says
	// nothing: its locks and its lease go with it.
	sweepIdle = 60
	// leaseWait is how many seconds a sweep waits for the lease, long enough for
	// a session that is just being ended.
	leaseWait = 3
	// sweepLimit ends a statement that waits for one lock after the other.
	sweepLimit = 10 * time.Second
	// killTimeout bounds the attempt to end a statement.
	killTimeout = 3 * time.Second
)

// NewSweeper checks the options, of which MaxConns, Replica and StatementLimit
// mean nothing here. It opens nothing: Open does.
func NewSweeper(o ServerOptions) (*Sweeper, error) {
	if o.Name == "" || o.Database == "" || o.User == "" || (o.Address == "") == (o.Socket == "") {
		return nil, fmt.Errorf("mysql %q: name, database, user and one of address and socket are mandatory", o.Name)
	}
	o.StatementLimit = sweepLimit
	cfg := driverConfig(o)
	// One way to the server instead of three for each statement.
	cfg.InterpolateParams = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql %q: %w", o.Name, err)
	}
	db := sqlx.NewDb(sql.OpenDB(sweeping{connector}), "mysql")
	db.SetMaxOpenConns(sweepConns)
	// A session that swept is never used again: its lease ends with it.
	db.SetMaxIdleConns(-1)
	return &Sweeper{name: o.Name, db: db}, nil
}

// Close ends all connections. It may be called more than once.
func (s *Sweeper) Close() error { return s.db.Close() }

// sweeping opens connections and prepares each of them before anybody can use it.
type sweeping struct{ driver.Connector }

// Connect opens and prepares one connection.
func (c sweeping) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the session: %w", err), conn.Close())
	}
	return conn, nil
}

// prepare makes copies exact (no value is cut, ids of 0 and dates of any kind
// stay what they are) and bounds every wait.
func prepare(ctx context.Context, conn driver.Conn) error {
	version, err := askVersion(ctx, conn.(driver.QueryerContext))
	if err != nil {
		return err
	}
	diff := differences[dialectOf(version)]
	for _, statement := range []string{
		"SET NAMES utf8mb4",
		"SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
		fmt.Sprintf("SET SESSION time_zone = '+00:00', SESSION autocommit = 1, SESSION foreign_key_checks = 1, SESSION wait_timeout = %d, "+
			"SESSION lock_wait_timeout = %d, SESSION innodb_lock_wait_timeout = %d, SESSION %s = %d",
			sweepIdle, lockWait, lockWait, diff.limit, sweepLimit/diff.limitUnit),
	} {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return err
		}
	}
	return nil
}

// LeaseTaken says that somebody else is cleaning the table.
type LeaseTaken struct {
	Table string
	// Holder is the server's number of the other connection; 0 when it has just ended.
	Holder uint64
}

func (e *LeaseTaken) Error() string { return e.Text().EN }

// Text says who holds the lease and what to do.
func (e *LeaseTaken) Text() flow.Text {
	return flow.T("another janitor is cleaning %[1]s (connection %[2]d of the server); wait until it has ended, or stop it with KILL %[2]d",
		"另一个清理任务正在清理 %[1]s（服务器连接 %[2]d）；请等待其结束，或用 KILL %[2]d 终止它", e.Table, e.Holder)
}

// SweepSession is one connection that holds the lease of one table. It is used by
// one goroutine at a time.
type SweepSession struct {
	sweeper *Sweeper
	table   *SweepTable
	conn    *sqlx.Conn
	id      uint64
	layout  *layout
	// columns are those that an archive gets, source all of the table's.
	columns []string
	source  []described
	// keeper takes the rows of a table whose rows go to files.
	keeper Keeper
	// broken is why no further batch may begin, though the last one is settled.
	broken error
	// shape is how both tables looked when the session began.
	shape string
	// ordered: the binary log keeps statements.
	ordered bool
	// dense: most ids of the last batch were taken. idle: none of its rows could go.
	dense, idle bool
}

// Open connects, takes the lease of the table, and reads how the table looks. A
// session that is no longer needed must be closed. Error: a LeaseTaken, or what
// Explain words.
func (s *Sweeper) Open(ctx context.Context, t *SweepTable) (_ *SweepSession, err error) {
	conn, err := s.db.Connx(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to mysql %s as the user that may delete: %w", s.name, err)
	}
	session := &SweepSession{sweeper: s, table: t, conn: conn}
	defer func() {
		if err != nil {
			session.Close()
		}
	}()
	for _, step := range []func(context.Context) error{session.takeLease, session.isolate, session.learn} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return session, nil
}

// Close ends the connection, and with it the lease and whatever is not committed.
func (s *SweepSession) Close() {
	_ = s.conn.Close()
	if s.keeper != nil {
		_ = s.keeper.Close()
	}
}

// Connection is the server's number of the session's connection.
func (s *SweepSession) Connection() uint64 { return s.id }

// maxLock is the server's limit for the name of a lease, in bytes.
const maxLock = 64

// leaseName is the same in every process that cleans the table.
func leaseName(t table) string {
	const prefix = "idemscope:janitor:"
	name := prefix + t.String()
	if len(name) <= maxLock {
		return name
	}
	sum := sha256.Sum256([]byte(t.String()))
	return prefix + hex.EncodeToString(sum[:16])
}

func (s *SweepSession) takeLease(ctx context.Context) error {
	name := leaseName(s.table.shard.table)
	var id, got, holder sql.NullString
	q := statement{text: fmt.Sprintf("SELECT CONNECTION_ID(), GET_LOCK(?, %d), IS_USED_LOCK(?)", leaseWait), args: []any{name, name}}
	if err := s.scan(ctx, q, []any{&id, &got, &holder}, func() {}); err != nil {
		return fmt.Errorf("take the lease of %s: %w", s.table.Name(), err)
	}
	s.id = parseID(id.String)
	if got.String != "1" {
		return &LeaseTaken{Table: s.table.Name(), Holder: parseID(holder.String)}
	}
	return nil
}

// isolate chooses the isolation that locks least among those that the binary log allows.
func (s *SweepSession) isolate(ctx context.Context) error {
	var logs, format sql.NullString
	if err := s.scan(ctx, statement{text: "SELECT @@global.log_bin, @@session.binlog_format"}, []any{&logs, &format}, func() {}); err != nil {
		return fmt.Errorf("ask for the binary log: %w", err)
	}
	s.ordered = logs.String != "0" && format.String == "STATEMENT"
	level := "READ COMMITTED"
	if s.ordered {
		level = "REPEATABLE READ"
	}
	_, err := s.exec(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
	return err
}

// learn reads how the tables look, and refuses what cannot be cleaned.
func (s *SweepSession) learn(ctx context.Context) error {
	server := s.table.shard.server
	sch, err := server.readSchema(ctx, s.table.shard.table)
	if err != nil {
		return err
	}
	s.layout = resolve(s.table.shard.mapping, sch, server.zone)
	if err := s.layout.unusable(); err != nil {
		return err
	}
	if found := s.layout.sweepObstacles(); len(found) > 0 {
		return s.layout.lacks(nil, found[0].Text)
	}
	if s.shape, err = s.look(ctx); err != nil {
		return err
	}
	s.source, err = describe(ctx, s, s.table.shard.table)
	s.columns = stored(s.source)
	return err
}

// look describes both tables as they are now.
func (s *SweepSession) look(ctx context.Context) (string, error) {
	source, err := describe(ctx, s, s.table.shard.table)
	if err != nil || s.table.archive == nil {
		return fmt.Sprint(source), err
	}
	target, err := describe(ctx, s, *s.table.archive)
	return fmt.Sprint(source, target), err
}

// scan implements scanner on the session's connection.
func (s *SweepSession) scan(ctx context.Context, q statement, dest []any, each func()) error {
	return s.call(ctx, func(ctx context.Context) error {
		rows, err := s.conn.QueryxContext(ctx, q.text, q.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			each()
		}
		return rows.Err()
	})
}

func (s *SweepSession) exec(ctx context.Context, text string, args ...any) (affected int64, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		result, err := s.conn.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		affected, err = result.RowsAffected()
		return err
	})
	return affected, err
}

// call runs one statement. When ctx ends, the server is told to end the
// statement: leaving the connection alone would let it go on, with its locks,
// for nobody.
func (s *SweepSession) call(ctx context.Context, run func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.kill("QUERY ")
	})
	err := run(context.WithoutCancel(ctx))
	if !stop() {
		// A kill that is still on its way would hit the next statement.
		<-ended
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return err
}

// kill ends the running statement (what: "QUERY ") or the whole connection ("").
// It is done when the server has no such connection any more.
func (s *SweepSession) kill(what string) {
	if s.id == 0 {
		return // nothing that holds a lock has run yet
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_, _ = s.sweeper.db.ExecContext(ctx, fmt.Sprintf("KILL %s%d", what, s.id))
}

// Abandon closes a session whose connection does not answer. The server is told
// to end it, so that neither its statement nor its lease stays behind.
func (s *SweepSession) Abandon() {
	s.kill("")
	s.Close()
}
