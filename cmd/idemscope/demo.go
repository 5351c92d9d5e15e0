package main

import (
	"os"

	"idemscope/internal/app"
)

type demoCommand struct {
	Listen string `help:"Address of the console; another port is taken when it is in use." default:"127.0.0.1:9877"`
}

// Run shows the product on private servers until the process is told to stop.
func (c demoCommand) Run(s *surroundings) error {
	return app.Demo(s.ctx, app.DemoOptions{Listen: c.Listen, Program: os.Args[0], Language: s.lang, Logger: s.logger, Out: s.out})
}
