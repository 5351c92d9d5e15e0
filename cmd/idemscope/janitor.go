package main

import "idemscope/internal/app"

type janitorCommand struct {
	Plan  janitorPlanCommand `cmd:"" help:"Show what would go, what stays and why, and the SQL. Changes nothing."`
	Sweep janitorRunCommand  `cmd:"" name:"run" help:"Delete or archive old completed records. Without --execute it only shows the plan."`
}

type janitorPlanCommand struct {
	Task  string `help:"Only this task."`
	Exact bool   `help:"Count every row, which reads the tables whole, instead of sampling."`
	JSON  bool   `help:"Print the plan as JSON."`
}

// Run prints the plan and leaves the exit code: 0 fine, 3 cannot tell, 4 refused.
func (c janitorPlanCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Janitor(s.ctx, app.JanitorOptions{
		Config: s.config, Task: c.Task, Exact: c.Exact, JSON: c.JSON, Language: s.lang, Logger: s.logger, Out: s.out,
	})
	return err
}

type janitorRunCommand struct {
	Task    string `help:"Only this task."`
	Execute bool   `help:"Change the tables. It runs at once, whatever the window says."`
	Exact   bool   `help:"Count every row for the plan."`
	JSON    bool   `help:"Print the plan or the report as JSON."`
}

// Run leaves the exit code: 0 done, 1 only a part was done, 3 cannot tell, 4 refused.
func (c janitorRunCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Janitor(s.ctx, app.JanitorOptions{
		Config: s.config, Task: c.Task, Execute: c.Execute, Exact: c.Exact, JSON: c.JSON, Language: s.lang, Logger: s.logger, Out: s.out,
	})
	return err
}
