package config

import (
	"regexp"
	"slices"
)

// CleanupChecks are what a task checks before it deletes, beyond what every task checks.
type CleanupChecks struct {
	// AllowDeadLetters names queues of dead letters that may hold some, or be unreadable.
	AllowDeadLetters []string
	// ExpectSchema is the hash of the tables as the plan prints it; empty for any.
	ExpectSchema string
	// MaxGrowth is how many times the rows of the largest of the last runs a run may
	// let go; 0 means any.
	MaxGrowth int
}

var hashShape = regexp.MustCompile(`^[0-9a-f]{32}$`)

// checks reads them from the keys of a task.
func (s *section) checks() (c CleanupChecks) {
	for _, it := range s.list("allow_dead_letters") {
		c.AllowDeadLetters = append(c.AllowDeadLetters, it.text)
	}
	c.ExpectSchema = s.text("expect_schema")
	if v := s.value("expect_schema"); c.ExpectSchema != "" && !hashShape.MatchString(c.ExpectSchema) {
		s.problemf(v.at, v.path, "must be the 32 characters that idemscope janitor plan prints as the hash of the table")
	}
	c.MaxGrowth = s.whole("max_growth", 10, 0, 1_000_000)
	return c
}

// deadLetters checks the names of the queues: a wrong one would allow nothing.
func (s *section) deadLetters(t CleanupTask, c *Config) {
	known := []string{}
	for _, f := range c.Flows {
		if f.Ledger == t.Ledger && f.Queue != nil && f.Queue.DeadLetter != "" {
			known = append(known, f.Queue.DeadLetter)
		}
	}
	v := s.value("allow_dead_letters")
	for _, name := range t.Checks.AllowDeadLetters {
		if !slices.Contains(known, name) {
			s.problemf(v.at, v.path, "no flow of the ledger %q has the dead-letter queue %q; known: %q", t.Ledger, name, known)
		}
	}
}

func (c CleanupChecks) redacted(g *group) {
	g.list("allow_dead_letters", c.AllowDeadLetters)
	g.text("expect_schema", c.ExpectSchema)
	g.add("max_growth", c.MaxGrowth)
}
