package timeline

import (
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
)

// markOdd flags what cannot have happened in the order in which the sources date
// it. The entries are in the order of their times.
func markOdd(entries []Entry, d dossier.Dossier) {
	created := map[string]time.Time{}
	for _, e := range entries {
		if e.Kind == flow.RecordCreated {
			created[e.Place] = e.At
		}
	}
	var sent time.Time
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case flow.Published:
			if sent.IsZero() {
				sent = e.At
			}
		case flow.RecordCompleted, flow.RecordFailed, flow.RecordUpdated:
			if at, known := created[e.Place]; known && at.Sub(e.At) > tolerance {
				e.Odd = flow.T("before the record was created", "早于记录创建")
			}
		case flow.Delivered, flow.Received:
			if unsent(e.At, sent, entries[i:], d.Tap) {
				e.Odd = flow.T("before the tap saw it published", "早于旁路看到的发布")
			}
		}
		if e.At.Sub(d.At) > tolerance && !expiry(e.Kind) {
			e.Odd = flow.T("in the future", "时间在未来")
		}
	}
	markOverlaps(entries)
}

// unsent reports that nothing had been published until at, though the tap covers
// that time.
func unsent(at, sent time.Time, rest []Entry, tap *flow.Account) bool {
	if !sent.IsZero() || !tap.Covers(at.Add(-tolerance)) {
		return false
	}
	for _, e := range rest {
		if e.Kind == flow.Published && e.At.Sub(at) <= tolerance {
			return false
		}
	}
	return true
}

// markOverlaps flags runs that began while another one went on.
func markOverlaps(entries []Entry) {
	open := map[string]int{} // worker -> index of the beginning of its run
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case flow.RunBegan:
			open[e.Worker] = i
		case flow.RunDone, flow.RunFailed:
			began, known := open[e.Worker]
			delete(open, e.Worker)
			if !known {
				continue
			}
			for _, start := range open {
				if start > began {
					entries[start].Odd = flow.T("while the run of %s went on", "此时 %s 的执行尚未结束", flow.Visible(e.Worker))
				}
			}
		}
	}
}
