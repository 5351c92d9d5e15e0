package app

import (
	"context"
	"log/slog"

	"idemscope/internal/config"
	"idemscope/internal/lockstore"
)

// followTrail makes look-ups answer from a follower of the trail, instead of
// reading the end of the stream each time, and returns what follows it until its
// context ends. It comes before the desk is set up.
func (s *stores) followTrail(c *config.Config, logger *slog.Logger) func(context.Context) {
	if s.trail == nil {
		return func(context.Context) {}
	}
	follower := s.redis[c.Counters.Redis].NewTrail(lockstore.TrailOptions{
		Prefix: c.Counters.Prefix,
		Report: func(fault string) { logger.Warn("the trail breaks the contract", "problem", fault) },
	})
	s.trail = follower
	return follower.Run
}
