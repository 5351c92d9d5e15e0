package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// Vitals are what somebody who follows tables must know of their server.
type Vitals struct {
	// Replica: the configuration calls it one, or it is read-only.
	Replica bool
	// Lag is how far a replica is behind its source, in whole seconds and by its
	// own account. Valid only when LagKnown: replication runs, and the user may
	// ask (REPLICATION CLIENT; SLAVE MONITOR from MariaDB 10.5 on).
	Lag      time.Duration
	LagKnown bool
	// Step is auto_increment_increment: the distance between the ids that one
	// server gives out. It says nothing of the primary of a replica.
	Step uint64
}

const vitalsSQL = "SELECT @@global.auto_increment_increment, @@global.read_only, VERSION()"

// Vitals asks the server of the ledger. A lag that cannot be told is no error.
func (l *Ledger) Vitals(ctx context.Context) (Vitals, error) {
	var step, readOnly, version sql.NullString
	if err := l.server.scan(ctx, statement{text: vitalsSQL}, []any{&step, &readOnly, &version}, func() {}); err != nil {
		return Vitals{}, fmt.Errorf("ask mysql %s for its vitals: %w", l.server.name, err)
	}
	v := Vitals{Step: max(parseID(step.String), 1)}
	h := head{readOnly: readOnly}
	if v.Replica = l.server.replica || h.isReadOnly(); v.Replica {
		v.Lag, v.LagKnown = l.server.lag(ctx, dialectOf(version.String))
	}
	return v, nil
}

// lagStatements ask for the state of replication. Old servers do not know the
// first one; one that is refused or unknown is no reason to give up the next.
var lagStatements = map[Dialect][]string{
	MariaDB: {"SHOW ALL SLAVES STATUS", "SHOW SLAVE STATUS"},
	MySQL:   {"SHOW REPLICA STATUS", "SHOW SLAVE STATUS"},
}

// lag is that of the channel that is furthest behind. It is not known while a
// channel stands still.
func (s *Server) lag(ctx context.Context, d Dialect) (lag time.Duration, known bool) {
	seconds, err := s.behind(ctx, d)
	if err != nil {
		return 0, false
	}
	return worst(seconds)
}

// behind asks each channel of replication how many seconds it is behind; empty
// for one that stands still. Without replication there is no channel. The error
// is that of the last statement: the server refuses it, or knows none.
func (s *Server) behind(ctx context.Context, d Dialect) (seconds []string, err error) {
	for _, text := range lagStatements[d] {
		seconds = nil
		err = s.query(ctx, statement{text: text}, func(rows *sqlx.Rows) error {
			values := map[string]any{}
			if err := rows.MapScan(values); err != nil {
				return err
			}
			channel := texts(values)
			behind, ok := channel["SECONDS_BEHIND_SOURCE"]
			if !ok {
				behind = channel["SECONDS_BEHIND_MASTER"]
			}
			seconds = append(seconds, behind)
			return nil
		})
		if err == nil {
			return seconds, nil
		}
	}
	return nil, err
}

// worst is the longest of the lags; it is not known when one of them is not.
func worst(seconds []string) (lag time.Duration, known bool) {
	for _, text := range seconds {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, false
		}
		lag = max(lag, time.Duration(n)*time.Second)
	}
	return lag, len(seconds) > 0
}
