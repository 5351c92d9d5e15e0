package ledger

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// Server is one configured MySQL or MariaDB. Every session on it is read-only.
type Server struct {
	name     string
	place    string
	database string
	zone     *time.Location
	replica  bool
	conns    int
	db       *sqlx.DB
	lagged   *lagSample
}

// ServerOptions describe a server.
type ServerOptions struct {
	// Name is what the configuration calls the server. Mandatory.
	Name string
	// Address is host:port (port 3306 when left out), Socket the path of a Unix
	// socket. Exactly one of them is mandatory.
	Address, Socket string
	// Database is where tables are looked for that name none. Mandatory.
	Database string
	// User is mandatory, Password may be empty.
	User, Password string
	// TLS is nil for a connection in the clear.
	TLS *tls.Config
	// Zone is the zone in which the application writes DATETIME columns; nil means UTC.
	Zone *time.Location
	// Replica: the server follows another one, so it may lag behind.
	Replica bool
	// MaxConns is how many connections may be open at once, 1 to 50; 0 means 4.
	MaxConns int
	// StatementLimit is how long the server lets one statement run, whether or
	// not anybody waits for it. It belongs a little above the longest deadline
	// of the callers. 0 means 2.5 s.
	StatementLimit time.Duration
}

const (
	defaultConns = 4
	maxConns     = 50
	defaultLimit = 2500 * time.Millisecond
	// dialTimeout and ioGrace end what a caller without a deadline waits for
	// when a server accepts connections and then says nothing.
	dialTimeout = 5 * time.Second
	ioGrace     = 2 * time.Second
	// Connections are renewed now and then, so that a failover behind a
	// virtual address is followed.
	connLifetime = 10 * time.Minute
	connIdle     = time.Minute
)

// NewServer checks the options. It opens nothing: the first statement does.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Name == "" || o.Database == "" || o.User == "" {
		return nil, fmt.Errorf("mysql %q: name, database and user are mandatory", o.Name)
	}
	if (o.Address == "") == (o.Socket == "") {
		return nil, fmt.Errorf("mysql %q: exactly one of address and socket is needed", o.Name)
	}
	if o.MaxConns < 0 || o.MaxConns > maxConns {
		return nil, fmt.Errorf("mysql %q: max connections is %d, allowed are 1 to %d", o.Name, o.MaxConns, maxConns)
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultConns
	}
	if o.StatementLimit <= 0 {
		o.StatementLimit = defaultLimit
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	cfg := driverConfig(o)
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql %q: %w", o.Name, err)
	}
	db := sqlx.NewDb(sql.OpenDB(guarded{Connector: connector, limit: o.StatementLimit}), "mysql")
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxLifetime(connLifetime)
	db.SetConnMaxIdleTime(connIdle)
	return &Server{
		name: o.Name, place: cfg.Addr, database: o.Database, zone: o.Zone,
		replica: o.Replica, conns: o.MaxConns, db: db, lagged: newLagSample(),
	}, nil
}

func driverConfig(o ServerOptions) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", o.Address
	if o.Socket != "" {
		cfg.Net, cfg.Addr = "unix", o.Socket
	} else if _, _, err := net.SplitHostPort(o.Address); err != nil {
		cfg.Addr = net.JoinHostPort(o.Address, "3306")
	}
	cfg.DBName, cfg.User, cfg.Passwd, cfg.TLS = o.Database, o.User, o.Password, o.TLS
	cfg.Timeout = dialTimeout
	cfg.ReadTimeout, cfg.WriteTimeout = o.StatementLimit+ioGrace, o.StatementLimit+ioGrace
	// Every error reaches the caller; the driver's own log would go to stderr.
	cfg.Logger = &mysql.NopLogger{}
	return cfg
}

// Name is what the configuration calls the server.
func (s *Server) Name() string { return s.name }

// Close ends all connections. It may be called more than once.
func (s *Server) Close() error { return s.db.Close() }

// Status is what a server says about itself.
type Status struct {
	Version string
	Dialect Dialect
	// DBNow is the server's clock.
	DBNow time.Time
	// ReadOnly: the server refuses writes of ordinary users, as replicas do.
	ReadOnly bool
}

const statusSQL = "SELECT UTC_TIMESTAMP(6), @@global.read_only, VERSION()"

// Ping asks the server who it is. Explain words its errors.
func (s *Server) Ping(ctx context.Context) (Status, error) {
	var h head
	var version sql.NullString
	err := s.scan(ctx, statement{text: statusSQL}, append(h.dest(), &version), func() {})
	if err != nil {
		return Status{}, fmt.Errorf("ask mysql %s for its status: %w", s.name, err)
	}
	return Status{Version: version.String, Dialect: dialectOf(version.String), DBNow: h.now(), ReadOnly: h.isReadOnly()}, nil
}

// head opens every row that this package selects: the server's clock and
// whether it takes writes, both as of that very statement.
type head struct {
	clock, readOnly sql.NullString
	// at is what parsed means: all rows of a statement have the same clock.
	parsed string
	at     time.Time
}

const headSQL = "UTC_TIMESTAMP(6), @@global.read_only"

func (h *head) dest() []any { return []any{&h.clock, &h.readOnly} }

func (h *head) now() time.Time {
	if h.clock.String != h.parsed {
		h.parsed, h.at = h.clock.String, parseLocal(h.clock.String, time.UTC).Time
	}
	return h.at
}

func (h *head) isReadOnly() bool {
	return h.readOnly.Valid && h.readOnly.String != "0" && h.readOnly.String != "OFF"
}

// ask reads the clock and the read-only flag alone, for answers without rows.
func (h *head) ask(ctx context.Context, s *Server) error {
	return s.scan(ctx, statement{text: "SELECT " + headSQL}, h.dest(), func() {})
}

// scan runs one statement and calls each after every row that it has read into dest.
func (s *Server) scan(ctx context.Context, q statement, dest []any, each func()) error {
	return s.query(ctx, q, func(rows *sqlx.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		each()
		return nil
	})
}

// query runs one statement and calls each for every row. A deadline that passes
// is reported with the time that was waited.
func (s *Server) query(ctx context.Context, q statement, each func(*sqlx.Rows) error) error {
	start := time.Now()
	err := s.queryRows(ctx, q, each)
	if errors.Is(err, context.DeadlineExceeded) {
		return &lateError{after: time.Since(start), err: err}
	}
	return err
}

func (s *Server) queryRows(ctx context.Context, q statement, each func(*sqlx.Rows) error) error {
	rows, err := s.db.QueryxContext(ctx, q.text, q.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// lateError is a deadline that passed, with the time that was waited.
type lateError struct {
	after time.Duration
	err   error
}

func (e *lateError) Error() string {
	return fmt.Sprintf("no answer within %s: %v", e.after.Round(time.Millisecond), e.err)
}

func (e *lateError) Unwrap() error { return e.err }
