package console

import (
	"slices"
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

// idleTime is how long nothing must have happened for the timeline to say so in a
// line of its own.
const idleTime = 5 * time.Minute

// lanes are the layers in the order in which a message meets them.
var lanes = []flow.Layer{flow.LayerBroker, flow.LayerRedis, flow.LayerMySQL}

// entryView is one line of the timeline.
type entryView struct {
	timeline.Entry
	When moment
	// Since is how long after the entry before it; empty for the first one and
	// for what happened at the same time.
	Since flow.Text
	// Idle stands in a line of its own before the entry: that nothing happened for
	// long, or that what follows is still to come.
	Idle flow.Text
	// Lane is the layer in whose lane it stands, from 1.
	Lane int
	// How says how the time is known.
	How flow.Text
}

// sourceView is one source of events.
type sourceView struct {
	Name flow.Text
	// Anchor is what facts lead to.
	Anchor string
	flow.Account
}

func (c clock) newStoryView(a answer.Answer) storyView {
	var view storyView
	var before time.Time
	told := false // that what follows has not happened yet
	for _, e := range a.Story() {
		entry := entryView{Entry: e, When: c.moment(e.At), How: e.How(), Lane: 1 + slices.Index(lanes, e.Layer)}
		if e.Future && !told {
			told, before = true, a.At
			entry.Idle = newKeyWords().Now
		}
		switch gap := e.At.Sub(before); {
		case before.IsZero() || gap <= 0:
		case gap >= idleTime && !e.Future:
			entry.Idle = flow.T(newKeyWords().Idle.EN, newKeyWords().Idle.ZH, flow.Span(gap))
		default:
			entry.Since = flow.T("+ %v", "+ %v", flow.Span(gap))
		}
		view.Entries, before = append(view.Entries, entry), e.At
	}
	for _, s := range answer.Sources(a.Dossier) {
		view.Sources = append(view.Sources, sourceView{Name: s.Name, Anchor: string(s.Piece), Account: *s.Account})
	}
	return view
}
