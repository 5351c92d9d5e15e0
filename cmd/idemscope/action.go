package main

import "idemscope/internal/app"

type actionCommand struct {
	Kind    string `arg:"" name:"action" help:"release-lock, clear-marker, reset-record or replay." enum:"release-lock,clear-marker,reset-record,replay"`
	Type    string `help:"The biz_type." required:"" placeholder:"BIZ_TYPE"`
	ID      string `name:"id" help:"The biz_id; --id= for an empty one." required:"" placeholder:"BIZ_ID"`
	Flow    string `help:"The flow, where several carry the biz_type."`
	Reason  string `help:"Why; it is kept in the audit file. Needed with --execute."`
	Execute bool   `help:"Do it. Without this, only what it would do is shown."`
	JSON    bool   `help:"Print the precheck or the result as JSON."`
}

// Run leaves the exit code: 0 done or allowed, 1 nothing to do, 3 a store did not
// answer, 4 refused.
func (c actionCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Action(s.ctx, app.ActionOptions{
		Config: s.config, Kind: c.Kind, BizType: c.Type, BizID: c.ID, Flow: c.Flow, Reason: c.Reason, Execute: c.Execute,
		JSON: c.JSON, Language: s.lang, Logger: s.logger, Out: s.out,
	})
	return err
}
