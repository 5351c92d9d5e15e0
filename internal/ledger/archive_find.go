package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"idemscope/internal/flow"
)

// archivedColumn is the column of an archive that says when a row was moved
// there. An archive need not have it.
const archivedColumn = "archived_at"

// newArchive makes the ledger of the archived rows: the same columns in other
// tables than its own.
func newArchive(o Options, own []table) (*Ledger, error) {
	tables, err := parseTables(o.Archive, o.Server.database)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if slices.Contains(own, t) {
			return nil, fmt.Errorf("%s is the ledger itself: name the table to which old rows are moved", t)
		}
	}
	o.Mapping.archive = true
	o.Table, o.Archive = o.Archive, ""
	return New(o)
}

// findArchived looks for rows of exactly the asked bytes in the archive; nil
// when the ledger has none. It is asked after the ledger itself: a row that is
// moved meanwhile is then seen in one of them at least.
func (l *Ledger) findArchived(ctx context.Context, key flow.Key) *Archive {
	if l.archive == nil {
		return nil
	}
	start := time.Now()
	ctx, cancel := share(ctx, 4, 5)
	defer cancel()
	found := Found{Observation: flow.Observation{Source: l.archive.source}, Replica: l.server.replica}
	answers := l.archive.ask(ctx, key)
	for i, a := range answers {
		if errors.Is(a.err, ErrNoIndex) {
			answers[i].err, answers[i].unknown = nil, Explain(a.err)
		}
	}
	l.archive.merge(&found, answers)
	a := &Archive{Observation: found.Observation, Rows: slices.DeleteFunc(found.Rows, func(r Row) bool { return !r.Exact })}
	switch {
	case len(a.Rows) > 0:
		// What a row in one shard proves, no shard that is down can take back.
		a.State, a.Reason = flow.Found, flow.Text{}
	case a.State == flow.Found && found.Replica:
		a.State, a.Reason = flow.Unknown, replicaMayLack
	case a.State == flow.Found:
		a.State = flow.Absent
	}
	a.ReadAt = time.Now()
	a.Took = a.ReadAt.Sub(start)
	return a
}

// share gives a side question its part of the time that is left, so that the
// main answer is never late because of it.
func share(ctx context.Context, part, of int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, time.Duration(part)*time.Second/time.Duration(of))
	}
	return context.WithTimeout(ctx, time.Until(deadline)*time.Duration(part)/time.Duration(of))
}
