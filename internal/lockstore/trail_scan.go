package lockstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

const (
	// maxScanned and maxScanTime bound what one look-up reads of the trail, from
	// its end backwards, when nobody follows it.
	maxScanned  = 50_000
	maxScanTime = time.Second
	// maxScanEvents is how many steps of one key are kept.
	maxScanEvents = 200
)

// TrailScan tells what the trail holds of a key without following it: each
// question reads the latest entries anew, within a budget, and says how far back
// that was. It is for a look-up that is the only one of its process.
type TrailScan struct {
	store  *Store
	prefix string
}

// NewTrailScan returns a scan of the stream whose name follows prefix.
func (s *Store) NewTrailScan(prefix string) *TrailScan { return &TrailScan{store: s, prefix: prefix} }

// scanned is what a scan has read so far.
type scanned struct {
	entries, broken int
	// oldest is the id of the last entry that was read; complete: it is the first
	// of the stream.
	oldest   string
	complete bool
	events   []flow.Event // the latest first
	cut      bool
	reports  bool
	types    span
}

// Tell is what the latest entries of the trail tell of the key.
func (t *TrailScan) Tell(ctx context.Context, _ flow.Flow, k flow.Key) *flow.Account {
	start := time.Now()
	budget := maxScanTime
	if deadline, ok := ctx.Deadline(); ok {
		budget = min(budget, time.Until(deadline)*3/4)
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var saw scanned
	failure := t.read(ctx, k, &saw)
	a := saw.account()
	a.Source, a.Command = t.store.trailSource(t.prefix), t.store.trailCommand(t.prefix)
	if failure != nil && saw.entries == 0 {
		a.State, a.Reason = flow.Error, failure.Text
	}
	trailCoverage(a, k, trailKnown{begun: true, there: saw.entries > 0, reports: saw.reports, types: saw.types, broken: saw.broken})
	if saw.entries > 0 && !saw.complete {
		a.Coverage = append(a.Coverage, flow.T("only the latest %d entries of the trail were read", "只读取了轨迹中最近的 %d 条记录", saw.entries))
	}
	a.ReadAt = time.Now()
	a.Took = a.ReadAt.Sub(start)
	return a
}

// read pages backwards through the stream until its beginning, or until the
// budget is used up. A page that fails ends it as well: what was read counts.
func (t *TrailScan) read(ctx context.Context, k flow.Key, saw *scanned) *Error {
	for end := "+"; saw.entries < maxScanned; end = idBefore(saw.oldest) {
		var page *redis.XMessageSliceCmd
		cmds, took := t.store.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
			page = pipe.XRevRangeN(ctx, trailStream(t.prefix), end, "-", trailPage)
		})
		if failure := t.store.trailFailure(trailStream(t.prefix), cmds, took); failure != nil {
			return failure
		}
		for _, m := range page.Val() {
			saw.take(readTrailEntry(t.store.trailSource(t.prefix), m), k)
			saw.entries++
			saw.oldest = m.ID
		}
		if len(page.Val()) < trailPage {
			saw.complete = true
			return nil
		}
	}
	return nil
}

func (s *scanned) take(e trailEntry, k flow.Key) {
	if e.fault != "" {
		s.broken++
	}
	if e.event.Kind == "" || e.key.BizType != k.BizType {
		return
	}
	if !s.reports {
		s.reports, s.types.last = true, e.event.At
	}
	s.types.first = e.event.At
	switch {
	case e.key != k:
	case len(s.events) == maxScanEvents:
		s.cut = true
	default:
		s.events = append(s.events, e.event)
	}
}

func (s *scanned) account() *flow.Account {
	a := &flow.Account{Events: s.events, Cut: s.cut}
	slices.Reverse(a.Events)
	a.State = flow.Absent
	if len(a.Events) > 0 {
		a.State = flow.Found
	}
	a.Since, _ = streamTime(s.oldest)
	if s.entries == 0 {
		a.Since = time.Time{}
	}
	if s.cut {
		a.Since = a.Events[0].At
	}
	return a
}
