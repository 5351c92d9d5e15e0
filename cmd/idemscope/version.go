package main

import (
	"fmt"

	"idemscope/internal/app"
)

type versionCommand struct{}

// Run prints one line.
func (versionCommand) Run(s *surroundings) error {
	_, err := fmt.Fprintln(s.out, app.VersionLine())
	return err
}
