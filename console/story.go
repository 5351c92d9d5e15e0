package console

import (
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/timeline"
)

// storyView is the timeline of the key and what its sources cover.
type storyView struct {
	Entries []entryView
	Sources []sourceView
}

// Empty: there is nothing to tell, and nobody to tell it.
func (s storyView) Empty() bool { return len(s.Entries) == 0 && len(s.Sources) == 0 }

// entryView is one line of the timeline.
type entryView struct {
	timeline.Entry
	When moment
	// Since is how long after the entry before it; empty for the first one and
	// for what happened at the same time.
	Since flow.Text
	// How says how the time is known.
	How flow.Text
}

// sourceView is one source of events.
type sourceView struct {
	Name flow.Text
	flow.Account
}

func (c clock) newStoryView(a answer.Answer) storyView {
	var view storyView
	var before time.Time
	for _, e := range a.Story() {
		entry := entryView{Entry: e, When: c.moment(e.At), How: e.How()}
		if gap := e.At.Sub(before); !before.IsZero() && gap > 0 {
			entry.Since = flow.T("+ %v", "+ %v", flow.Span(gap))
		}
		view.Entries, before = append(view.Entries, entry), e.At
	}
	for _, s := range answer.Sources(a.Dossier) {
		view.Sources = append(view.Sources, sourceView{Name: s.Name, Account: *s.Account})
	}
	return view
}
