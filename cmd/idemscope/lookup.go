package main

import (
	"errors"

	"idemscope/internal/app"
)

var errTooManyWords = errors.New("give BIZ_TYPE BIZ_ID or one text to search for; quote an id that holds blanks")

type lookupCommand struct {
	Words    []string `arg:"" name:"key" help:"BIZ_TYPE BIZ_ID, or one text to search for: biz_type:biz_id, a biz_id, a Redis key, a JSON message, a line of a log. Put -- before an id that begins with a dash."`
	Flow     string   `help:"The flow, where several carry the biz_type."`
	JSON     bool     `help:"Print the answer as JSON." xor:"format"`
	Markdown bool     `help:"Print a report in Markdown, for a ticket or a chat." xor:"format"`
}

// Validate refuses more words than a key has.
func (c lookupCommand) Validate() error {
	if len(c.Words) > 2 {
		return errTooManyWords
	}
	return nil
}

// Run answers and leaves the exit code: 0 fine, 1 a problem, 3 cannot tell.
func (c lookupCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Lookup(s.ctx, app.LookupOptions{
		Config: s.config, Words: c.Words, Flow: c.Flow, JSON: c.JSON, Markdown: c.Markdown, Language: s.lang, Out: s.out,
	})
	return err
}
