package main

import (
	"os"

	"idemscope/internal/app"
)

type janitorCommand struct {
	Plan  janitorPlanCommand `cmd:"" help:"Show what would go, what stays and why, and the SQL. Changes nothing."`
	Sweep janitorRunCommand  `cmd:"" name:"run" help:"Delete or archive old completed records. Without --execute it only shows the plan."`

	Restore janitorRestoreCommand `cmd:"" help:"Put rows of archive files back into their table. Without --execute it only compares. Rows are never overwritten."`
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
	Task       string `help:"Only this task."`
	Execute    bool   `help:"Change the tables. It runs at once, whatever the window says."`
	Exact      bool   `help:"Count every row for the plan."`
	AcceptSize bool   `help:"Run although it is implausibly large against the last runs."`
	JSON       bool   `help:"Print the plan or the report as JSON."`
}

// Run leaves the exit code: 0 done, 1 only a part was done, 3 cannot tell, 4 refused.
func (c janitorRunCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Janitor(s.ctx, app.JanitorOptions{
		Config: s.config, Task: c.Task, Execute: c.Execute, Exact: c.Exact, AcceptSize: c.AcceptSize, JSON: c.JSON, Language: s.lang, Logger: s.logger, Out: s.out,
		Terminal: s.out == os.Stdout && terminal(os.Stdout),
	})
	return err
}

type janitorRestoreCommand struct {
	Files   []string `arg:"" name:"file" help:"Files of the archive (*.ndjson.zst or *.ndjson.gz)." type:"path"`
	Task    string   `help:"The task that wrote the files; needed when there are several."`
	Execute bool     `help:"Change the table."`
}

// Run leaves the exit code: 0 done, 1 only a part was done, 4 refused.
func (c janitorRestoreCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Restore(s.ctx, app.RestoreOptions{Config: s.config, Task: c.Task, Files: c.Files, Execute: c.Execute, Language: s.lang, Out: s.out})
	return err
}
