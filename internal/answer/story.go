package answer

import (
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/timeline"
	"idemscope/internal/verdict"
)

// Story is the timeline of the key.
func (a Answer) Story() []timeline.Entry { return timeline.Of(a.Dossier) }

// NeighbourJSON is a record of another key.
type NeighbourJSON struct {
	Kind ledger.NeighbourKind `json:"kind"`
	RowJSON
}

// ArchiveJSON is what the table of archived records shows.
type ArchiveJSON struct {
	ObservationJSON
	Rows []RowJSON `json:"rows"`
}

// AccountJSON is what one source of events tells; the events themselves stand in
// the timeline.
type AccountJSON struct {
	ObservationJSON
	// Since is from when on everything about the key is covered; missing when nothing is.
	Since  string `json:"since,omitempty"`
	Events int    `json:"events"`
	Cut    bool   `json:"cut,omitempty"`
}

// EntryJSON is one line of the timeline, the earliest first.
type EntryJSON struct {
	At          string         `json:"at"`
	Kind        flow.EventKind `json:"kind"`
	Layer       flow.Layer     `json:"layer"`
	Source      string         `json:"source"`
	Certainty   flow.Certainty `json:"certainty"`
	Text        string         `json:"text"`
	Place       string         `json:"place,omitempty"`
	Outcome     string         `json:"outcome,omitempty"`
	Worker      string         `json:"worker,omitempty"`
	MessageID   string         `json:"message_id,omitempty"`
	Redelivered bool           `json:"redelivered,omitempty"`
	// Arrived: the time is when the news reached us.
	Arrived bool `json:"arrived,omitempty"`
	// Future: it has not happened yet.
	Future bool `json:"future,omitempty"`
	// Odd says why it cannot have happened in this order.
	Odd string `json:"odd,omitempty"`
}

func accountJSON(a *flow.Account, lang flow.Language) *AccountJSON {
	if a == nil {
		return nil
	}
	j := &AccountJSON{ObservationJSON: observationJSON(a.Observation, lang), Events: len(a.Events), Cut: a.Cut}
	if !a.Since.IsZero() {
		j.Since = a.Since.Format(time.RFC3339Nano)
	}
	return j
}

func storyJSON(entries []timeline.Entry, lang flow.Language) []EntryJSON {
	story := make([]EntryJSON, 0, len(entries))
	for _, e := range entries {
		story = append(story, EntryJSON{
			At: e.At.Format(time.RFC3339Nano), Kind: e.Kind, Layer: e.Layer, Source: e.Source, Certainty: e.Certainty, Text: e.Text.In(lang),
			Place: e.Place, Outcome: e.Outcome, Worker: e.Worker, MessageID: e.MessageID, Redelivered: e.Redelivered,
			Arrived: e.Arrived, Future: e.Future, Odd: e.Odd.In(lang),
		})
	}
	return story
}

// Source is one source of events that was asked about a key.
type Source struct {
	Name    flow.Text
	Piece   verdict.Piece
	Account *flow.Account
}

// Sources lists the sources of events that are set up.
func Sources(d dossier.Dossier) []Source {
	var all []Source
	for _, s := range []Source{
		{flow.T("Tap of the broker", "旁路采集"), verdict.PieceTap, d.Tap},
		{flow.T("Trace of the broker", "投递跟踪"), verdict.PieceTrace, d.Trace},
		{flow.T("Trail of the consumers", "消费轨迹"), verdict.PieceTrail, d.Trail},
		{flow.T("Actions of people", "人工操作"), verdict.PieceAudit, d.Audit},
	} {
		if s.Account != nil {
			all = append(all, s)
		}
	}
	return all
}

// sources prints what the sources of events cover.
func (p *printer) sources(a Answer) {
	for _, s := range Sources(a.Dossier) {
		p.header(s.Name.In(p.lang), s.Account.Observation, flow.T("events of this key: %d", "该键的事件：%d 个", len(s.Account.Events)).In(p.lang))
	}
}

// story prints the timeline.
func (p *printer) story(entries []timeline.Entry) {
	if len(entries) == 0 {
		return
	}
	p.line("%s", p.say("Timeline", "时间线"))
	for _, e := range entries {
		mark := flow.T("%v (%s)", "%v（%s）", e.Text, e.How())
		if !e.Odd.Empty() {
			mark = flow.T("%v  !! impossible order: %v", "%v  !! 顺序不可能：%v", mark, e.Odd)
		}
		who := flow.Visible(e.Source)
		if e.Worker != "" {
			who += ", " + cut(flow.Visible(e.Worker))
		}
		p.line("  %s  %-6s %s  [%s]", p.time(e.At), e.Layer, mark.In(p.lang), who)
	}
	p.line("")
}
