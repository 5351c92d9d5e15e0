package main

import (
	"os"
	"os/signal"
	"syscall"

	"idemscope/internal/app"
)

type serveCommand struct{}

// Run serves until the process is told to stop; SIGHUP reloads the configuration.
func (serveCommand) Run(s *surroundings) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	return app.Serve(s.ctx, app.ServeOptions{Config: s.config, Logger: s.logger, Reload: hangup})
}
