package exporter

import (
	"context"
	"sync"
	"time"

	"idemscope/internal/ledger"
)

// vitalsEvery is how often a server is asked that is not known to lag.
const vitalsEvery = time.Minute

// server is what is known of the server of a ledger.
type server struct {
	ask func(context.Context) (ledger.Vitals, error)

	mu     sync.Mutex
	vitals ledger.Vitals
	known  bool
	asked  time.Time
}

// look asks the server, in every cycle while it tells a lag and now and then
// else. What it does not tell is not known; that is no failure of the ledger.
func (s *server) look(ctx context.Context, now time.Time) {
	s.mu.Lock()
	due := s.asked.IsZero() || s.vitals.LagKnown || now.Sub(s.asked) >= vitalsEvery
	s.mu.Unlock()
	if !due {
		return
	}
	v, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = now
	if err != nil {
		s.vitals.LagKnown = false
		return
	}
	s.vitals, s.known = v, true
}

// lag is how far the replica is behind.
func (s *server) lag() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vitals.Lag, s.vitals.LagKnown
}

// step is the distance between the ids that the server gives out. A replica
// gives out none.
func (s *server) step() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vitals.Step, s.known && !s.vitals.Replica
}
