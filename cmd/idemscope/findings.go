package main

import "idemscope/internal/app"

type findingsCommand struct {
	Flow    string `help:"Only this flow."`
	Verdict string `help:"Only this verdict, such as stuck."`
	JSON    bool   `help:"Print the list as JSON."`
}

// Run prints the list and leaves the exit code: 0 none, 1 some, 3 cannot tell.
func (c findingsCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Findings(s.ctx, app.FindingsOptions{
		Config: s.config, Flow: c.Flow, Verdict: c.Verdict, JSON: c.JSON, Language: s.lang, Logger: s.logger, Out: s.out,
	})
	return err
}
