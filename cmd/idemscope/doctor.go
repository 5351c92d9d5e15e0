package main

import "idemscope/internal/app"

type doctorCommand struct {
	JSON bool `help:"Print the report as JSON."`
}

// Run leaves the exit code: 0 nothing critical, 1 something is, 3 something could not be told.
func (c doctorCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Doctor(s.ctx, app.DoctorOptions{Config: s.config, JSON: c.JSON, Language: s.lang, Out: s.out})
	return err
}
