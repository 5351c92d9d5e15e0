package main

import "idemscope/internal/app"

type serveCommand struct{}

// Run serves until the process is told to stop.
func (serveCommand) Run(s *surroundings) error {
	return app.Serve(s.ctx, app.ServeOptions{Config: s.config, Logger: s.logger})
}
