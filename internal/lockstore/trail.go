package lockstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/history"
)

const (
	// trailPoll is how often new entries are read, and trailPage how many at once.
	trailPoll = time.Second
	trailPage = 1000
	// maxTrailTypes bounds of how many biz_types it is known since when they report.
	maxTrailTypes = 1000
	// trailEvents bounds the events in memory, as MAXLEN of the contract does those
	// in the stream.
	trailEvents = 200_000
)

// TrailOptions describe a follower of the trail.
type TrailOptions struct {
	// Prefix stands before the name of the stream; it may be empty.
	Prefix string
	// MaxEvents bounds the events in memory; zero means 200,000, about 60 MB.
	MaxEvents int
	// Report is called with each kind of fault once: what consumers write that
	// breaks the contract. May be nil.
	Report func(fault string)
	// Poll is the pause between two readings; zero means one second.
	Poll time.Duration
}

// Trail follows the steps that instrumented consumers report in the stream
// idem_trail, and keeps the latest of them by key. It reads without a consumer
// group, so that nothing in the stream changes. It is safe for concurrent use.
type Trail struct {
	store   *Store
	options TrailOptions
	stream  string
	log     *history.Log

	// Only Run uses these.
	last  string    // id of the last entry that was read
	since time.Time // from when on nothing was missed
	run   string    // run id of the server, while it tells

	mu sync.Mutex
	// begun: the stream was read to its end once. there: it has entries.
	begun, there bool
	types        map[string]span
	faults       map[string]bool
	broken       int // entries that broke the contract
}

// span is from the first to the last entry of a biz_type.
type span struct{ first, last time.Time }

// NewTrail returns a follower that knows nothing before Run.
func (s *Store) NewTrail(o TrailOptions) *Trail {
	if o.Poll <= 0 {
		o.Poll = trailPoll
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = trailEvents
	}
	return &Trail{
		store: s, options: o, stream: trailStream(o.Prefix), types: map[string]span{}, faults: map[string]bool{},
		log: history.New(history.Options{Source: s.trailSource(o.Prefix), MaxEvents: o.MaxEvents}),
	}
}

func trailStream(prefix string) string { return prefix + "idem_trail" }

func (s *Store) trailSource(prefix string) string {
	return fmt.Sprintf("%s, stream %s", s.source(), flow.Visible(trailStream(prefix)))
}

// Run follows the stream until ctx ends: first all that it holds, as far back as
// memory goes, then what is added. A Redis that is down is asked again at the
// next turn.
func (t *Trail) Run(ctx context.Context) {
	tick := time.NewTicker(t.options.Poll)
	defer tick.Stop()
	for ctx.Err() == nil {
		start := time.Now()
		more, err := t.poll(ctx)
		if err != nil && ctx.Err() == nil {
			t.log.Lose(err.Text)
		}
		pause := tick.C
		if more && err == nil {
			// As long again as it took: the server has others to serve.
			pause = time.After(time.Since(start))
		}
		select {
		case <-pause:
		case <-ctx.Done():
		}
	}
}

// poll reads one page; more: there are further entries already.
func (t *Trail) poll(ctx context.Context) (more bool, err *Error) {
	if t.last == "" {
		if err := t.begin(ctx); err != nil {
			return false, err
		}
	}
	var page *redis.XStreamSliceCmd
	var head *redis.XMessageSliceCmd
	cmds, took := t.store.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		page = pipe.XRead(ctx, &redis.XReadArgs{Streams: []string{t.stream, t.last}, Count: trailPage, Block: -1})
		// Read afterwards, so that what was trimmed before the page was read shows.
		head = pipe.XRangeN(ctx, t.stream, "-", "+", 1)
	})
	if page.Err() == redis.Nil {
		cmds = []redis.Cmder{head} // no entries: that is no failure
	}
	if failure := t.failure(cmds, took); failure != nil {
		return false, failure
	}
	var entries []redis.XMessage
	if streams := page.Val(); len(streams) > 0 {
		entries = streams[0].Messages
	}
	t.take(entries, head.Val(), t.runNow(ctx))
	return len(entries) == trailPage, nil
}

// begin chooses where to start: at the first entry, or in a stream that holds
// much more than memory does, at about the time from which on it all fits.
func (t *Trail) begin(ctx context.Context) *Error {
	var length *redis.IntCmd
	var first, last *redis.XMessageSliceCmd
	cmds, took := t.store.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		length = pipe.XLen(ctx, t.stream)
		first = pipe.XRangeN(ctx, t.stream, "-", "+", 1)
		last = pipe.XRevRangeN(ctx, t.stream, "+", "-", 1)
	})
	if failure := t.failure(cmds, took); failure != nil {
		return failure
	}
	t.last = "0-0"
	room := int64(t.options.MaxEvents)
	if n := length.Val(); n > room && len(first.Val()) == 1 && len(last.Val()) == 1 {
		from, _ := streamTime(first.Val()[0].ID)
		to, _ := streamTime(last.Val()[0].ID)
		start := to.Add(-time.Duration(float64(to.Sub(from)) * float64(room) / float64(n)))
		t.last = fmt.Sprintf("%d-0", start.UnixMilli())
		t.since = start
	}
	return nil
}

// failure is that of the store, with a word about a key that is no stream.
func (t *Trail) failure(cmds []redis.Cmder, took time.Duration) *Error {
	return t.store.trailFailure(t.stream, cmds, took)
}

func (s *Store) trailFailure(stream string, cmds []redis.Cmder, took time.Duration) *Error {
	failure := s.failure(cmds, took)
	for _, cmd := range cmds {
		if failure != nil && wrongType(cmd) {
			failure.Text = flow.T("the key %s is no stream: something else uses its name", "键 %s 不是流（stream）：名称被其他数据占用", flow.Visible(stream))
		}
	}
	return failure
}

// runNow is the run id of the server, empty when it does not tell.
func (t *Trail) runNow(ctx context.Context) string {
	var e Entry
	if at, known := t.store.serverOf(ctx, t.stream); known {
		t.store.tellFacts(ctx, at, &e)
	}
	if e.Server == nil {
		return ""
	}
	return e.Server.RunID
}

// take notes a page of entries, and from when on nothing was missed. head is the
// first entry of the stream, run the server that was asked.
func (t *Trail) take(entries, head []redis.XMessage, run string) {
	now := time.Now()
	t.markGaps(entries, head, run, now)
	t.mu.Lock()
	for _, m := range entries {
		t.last = m.ID
		t.note(readTrailEntry(t.store.trailSource(t.options.Prefix), m))
	}
	t.begun = t.begun || len(entries) < trailPage
	t.there = len(head) > 0
	begun := t.begun
	t.mu.Unlock()
	if len(head) == 0 {
		t.last = "0-0" // whatever comes next is new, even if a clock went back
	}
	if begun && !t.since.IsZero() {
		t.log.Follow(t.since, now)
	}
}

// markGaps moves since forward past what may have been missed: entries that were
// trimmed before they were read, and those that a failover or a deletion took.
func (t *Trail) markGaps(entries, head []redis.XMessage, run string, now time.Time) {
	another := run != "" && t.run != "" && run != t.run
	if run != "" {
		t.run = run
	}
	if another {
		// What the old server had and the new one lacks was written before now;
		// entries of a clock that is behind may stay below the last id.
		t.since = now
		if read, _ := streamTime(t.last); read.After(now) {
			t.since = read
		}
		return
	}
	outrun := len(head) > 0 && t.last != "0-0" && after(head[0].ID, t.last)
	switch {
	case len(head) == 0:
		t.since = time.Time{}
	case (t.since.IsZero() || outrun) && len(entries) > 0:
		t.since, _ = streamTime(entries[0].ID)
	}
}

// note keeps one entry. The caller holds the lock.
func (t *Trail) note(e trailEntry) {
	if e.fault != "" {
		t.broken++
		if !t.faults[e.fault] {
			t.faults[e.fault] = true
			if t.options.Report != nil {
				t.options.Report(flow.Visible(t.stream) + ": entries with " + e.fault)
			}
		}
	}
	if e.event.Kind == "" {
		return
	}
	t.log.Add(e.key, e.event)
	of, known := t.types[e.key.BizType]
	switch {
	case known:
		of.last = e.event.At
	case len(t.types) < maxTrailTypes:
		of = span{first: e.event.At, last: e.event.At}
	default:
		return // as if it did not report: then nothing is concluded from its silence
	}
	t.types[e.key.BizType] = of
}

// Tell is what the trail tells of the key.
func (t *Trail) Tell(_ context.Context, _ flow.Flow, k flow.Key) *flow.Account {
	a := t.log.Of(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	of, reports := t.types[k.BizType]
	a.Command = t.store.trailCommand(t.options.Prefix)
	trailCoverage(a, k, trailKnown{begun: t.begun, there: t.there, reports: reports, types: of, broken: t.broken})
	return a
}
