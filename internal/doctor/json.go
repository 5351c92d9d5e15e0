package doctor

import (
	"time"

	"idemscope/internal/flow"
)

// JSON is a report as command line and API give it. Field names are stable.
type JSON struct {
	CheckedAt   time.Time     `json:"checked_at"`
	TookSeconds float64       `json:"took_seconds"`
	Critical    int           `json:"critical"`
	Warnings    int           `json:"warnings"`
	Infos       int           `json:"infos"`
	FineChecks  int           `json:"fine_checks"`
	Problems    []ProblemJSON `json:"problems"`
	CannotTell  []UnsureJSON  `json:"cannot_tell"`
	Fine        []CheckJSON   `json:"fine"`
}

// SubjectJSON is what a check is about.
type SubjectJSON struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// ProblemJSON is one problem.
type ProblemJSON struct {
	Check    string      `json:"check"`
	Severity Severity    `json:"severity"`
	Subject  SubjectJSON `json:"subject"`
	Title    string      `json:"title"`
	Seen     string      `json:"seen"`
	Why      string      `json:"why"`
	Fix      string      `json:"fix"`
	Command  string      `json:"command"`
	Manual   string      `json:"manual"`
}

// UnsureJSON is one check that could not be made.
type UnsureJSON struct {
	Check   string      `json:"check"`
	Subject SubjectJSON `json:"subject"`
	Title   string      `json:"title"`
	Reason  string      `json:"reason"`
}

// CheckJSON is one check that found nothing.
type CheckJSON struct {
	Check   string      `json:"check"`
	Subject SubjectJSON `json:"subject"`
}

// JSON words the report in one language. Names are made visible, because JSON
// cannot hold every byte.
func (r Report) JSON(lang flow.Language) JSON {
	j := JSON{
		CheckedAt: r.At, TookSeconds: r.Took.Seconds(), Critical: r.Count(Critical), Warnings: r.Count(Warning), Infos: r.Count(Info), FineChecks: len(r.Fine),
		Problems: []ProblemJSON{}, CannotTell: []UnsureJSON{}, Fine: []CheckJSON{},
	}
	for _, p := range r.Problems {
		j.Problems = append(j.Problems, ProblemJSON{
			Check: p.Code, Severity: p.Severity, Subject: p.Subject.json(), Title: p.Title.In(lang), Seen: p.Seen.In(lang),
			Why: p.Why.In(lang), Fix: p.Fix.In(lang), Command: p.Command, Manual: p.Manual,
		})
	}
	for _, u := range r.Unsure {
		j.CannotTell = append(j.CannotTell, UnsureJSON{Check: u.Code, Subject: u.Subject.json(), Title: u.Title.In(lang), Reason: u.Reason.In(lang)})
	}
	for _, f := range r.Fine {
		j.Fine = append(j.Fine, CheckJSON{Check: f.Code, Subject: f.Subject.json()})
	}
	return j
}

func (s Subject) json() SubjectJSON { return SubjectJSON{Kind: s.Kind, Name: flow.Visible(s.Name)} }
