package ledger

import (
	"context"
	"database/sql"
	"time"
)

// freshLag is how old a lag may be that is told again: look-ups of one second
// share one question.
const freshLag = time.Second

// lagSample is what a replica said last of how far it is behind.
type lagSample struct {
	// turn holds the one permit to read or replace the sample. A mutex would make
	// a caller wait beyond its own deadline.
	turn  chan struct{}
	at    time.Time
	lag   time.Duration
	known bool
}

func newLagSample() *lagSample { return &lagSample{turn: make(chan struct{}, 1)} }

// lagNow is how far the server is behind its source. It is not known when the
// server or the deadline does not let it be.
func (s *Server) lagNow(ctx context.Context) (lag time.Duration, known bool) {
	sample := s.lagged
	select {
	case sample.turn <- struct{}{}:
		defer func() { <-sample.turn }()
	case <-ctx.Done():
		return 0, false
	}
	if time.Since(sample.at) < freshLag {
		return sample.lag, sample.known
	}
	var version sql.NullString
	if err := s.scan(ctx, statement{text: "SELECT VERSION()"}, []any{&version}, func() {}); err != nil {
		return 0, false
	}
	sample.lag, sample.known = s.lag(ctx, dialectOf(version.String))
	sample.at = time.Now()
	return sample.lag, sample.known
}
