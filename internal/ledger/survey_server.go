package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Settings are what a server is set to, as far as records depend on it.
type Settings struct {
	Version string
	Dialect Dialect
	// SQLMode is what new sessions start with; the application may set its own.
	SQLMode string
	// BinlogFormat is STATEMENT, MIXED or ROW; empty while nothing is logged.
	BinlogFormat string
	// ReadOnly: it refuses writes of ordinary users.
	ReadOnly bool
	// Step is auto_increment_increment, at least 1.
	Step uint64
	// Zone is how far the server's own time zone is ahead of UTC. Valid only when ZoneKnown.
	Zone      time.Duration
	ZoneKnown bool
	// ClockAhead is how far the server's clock is ahead of this process's,
	// behind when negative, give or take ClockMargin.
	ClockAhead, ClockMargin time.Duration
}

// Strict reports whether new sessions refuse values that do not fit, instead of cutting them.
func (s Settings) Strict() bool {
	modes := strings.Split(strings.ToUpper(s.SQLMode), ",")
	return slices.Contains(modes, "STRICT_TRANS_TABLES") || slices.Contains(modes, "STRICT_ALL_TABLES") || slices.Contains(modes, "TRADITIONAL")
}

// SHOW leaves out what a server does not have; SELECT @@name would fail on it.
const settingsSQL = `SHOW GLOBAL VARIABLES WHERE Variable_name IN
('sql_mode', 'log_bin', 'binlog_format', 'read_only', 'auto_increment_increment', 'version')`

// Server is where the tables of the ledger are.
func (l *Ledger) Server() *Server { return l.server }

// Place is where the server is: host and port, or a socket. Database is where
// tables are looked for that name none.
func (s *Server) Place() string { return s.place }

// Database is where tables are looked for that name none.
func (s *Server) Database() string { return s.database }

// DeclaredReplica reports whether the configuration calls the server a replica.
func (s *Server) DeclaredReplica() bool { return s.replica }

// Zone is the zone in which DATETIME columns are read.
func (s *Server) Zone() *time.Location { return s.zone }

// Remote reports whether the server is reached over a network.
func (s *Server) Remote() bool {
	host, _, err := net.SplitHostPort(s.place)
	if err != nil {
		return false // a socket
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Settings asks the server. Explain words its errors.
func (s *Server) Settings(ctx context.Context) (Settings, error) {
	var name string
	var value sql.NullString
	values := map[string]string{}
	err := s.scan(ctx, statement{text: settingsSQL}, []any{&name, &value}, func() { values[strings.ToLower(name)] = value.String })
	if err != nil {
		return Settings{}, fmt.Errorf("ask mysql %s for its settings: %w", s.name, err)
	}
	set := Settings{
		Version: values["version"], Dialect: dialectOf(values["version"]), SQLMode: values["sql_mode"],
		Step: max(parseID(values["auto_increment_increment"]), 1),
	}
	h := head{readOnly: sql.NullString{String: values["read_only"], Valid: true}}
	set.ReadOnly = h.isReadOnly()
	if log := values["log_bin"]; log == "ON" || log == "1" {
		set.BinlogFormat = values["binlog_format"]
	}
	minutes, known, err := s.ZoneMinutes(ctx)
	if err != nil {
		return Settings{}, err
	}
	set.Zone, set.ZoneKnown = time.Duration(minutes)*time.Minute, known
	return set, s.compareClocks(ctx, &set)
}

// compareClocks asks on a connection that is open by now, so that connecting
// does not count as distance.
func (s *Server) compareClocks(ctx context.Context, set *Settings) error {
	before := time.Now()
	var h head
	if err := h.ask(ctx, s); err != nil {
		return fmt.Errorf("ask mysql %s for its clock: %w", s.name, err)
	}
	took := time.Since(before)
	set.ClockAhead = h.now().Sub(before.Add(took / 2))
	set.ClockMargin = took / 2
	return nil
}

// Replication says whether a server follows another one.
type Replication struct {
	// Channels is how many sources it follows.
	Channels int
	// Lag is how far it is behind, in whole seconds and by its own account.
	// Valid only when LagKnown: not while a channel stands still.
	Lag      time.Duration
	LagKnown bool
}

// Replication asks the server, which takes REPLICATION CLIENT (MySQL) or SLAVE
// MONITOR (MariaDB). Explain words its errors.
func (s *Server) Replication(ctx context.Context, d Dialect) (Replication, error) {
	seconds, err := s.behind(ctx, d)
	if err != nil {
		return Replication{}, fmt.Errorf("ask mysql %s for its replication: %w", s.name, err)
	}
	r := Replication{Channels: len(seconds)}
	r.Lag, r.LagKnown = worst(seconds)
	return r, nil
}

// errNoGrants is the number with which a server without users answers.
const errNoGrants = 1290

// Grants asks what this user may do; every user may ask that. Explain words its errors.
func (s *Server) Grants(ctx context.Context) (Grants, error) {
	var line string
	var g Grants
	err := s.scan(ctx, statement{text: "SHOW GRANTS"}, []any{&line}, func() { g.add(line) })
	if isNumber(err, errNoGrants) {
		return Grants{Unchecked: true}, nil
	}
	if err == nil && len(g.List) == 0 && len(g.Roles) == 0 {
		err = errors.New("no grant is shown")
	}
	if err != nil {
		return Grants{}, fmt.Errorf("ask mysql %s for grants: %w", s.name, err)
	}
	return g, nil
}
