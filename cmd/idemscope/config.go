package main

import "idemscope/internal/app"

type configCommand struct {
	Check configCheckCommand `cmd:"" help:"Validate the configuration without asking any store."`
}

type configCheckCommand struct {
	Print bool `help:"Print the effective configuration, secrets masked."`
}

// Run validates; the error names file, line and column.
func (c configCheckCommand) Run(s *surroundings) error {
	return app.CheckConfig(s.config, c.Print, s.out)
}
