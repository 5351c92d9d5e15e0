package main

import "idemscope/internal/app"

type healthCommand struct{}

// Run leaves exit code 0 if the service answers, else 1.
func (healthCommand) Run(s *surroundings) error {
	if err := app.Health(s.ctx, s.config); err != nil {
		s.logger.Error("not healthy", "err", err)
		s.exit = exitProblem
	}
	return nil
}
