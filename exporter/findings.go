package exporter

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Judge looks one key up and judges it, as a look-up by hand does.
type Judge func(context.Context, flow.Place) (answer.Answer, error)

const (
	// judgesAtOnce bounds the look-ups in progress.
	judgesAtOnce = 4
	// maxFindings bounds the list; further findings are counted only.
	maxFindings = 5000
	// A suspect is judged again after firstPause, and then at pauses that
	// double up to longestPause; what could not be decided, up to unsurePause.
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	unsurePause  = 30 * time.Second
	// planEvery is how often the suspects are gathered anew.
	planEvery = time.Second
)

// subject is what a suspect is known by: a row of a ledger, whose key is not
// kept, or a key.
type subject struct {
	ledger string // empty for a key
	row    place
	key    flow.Place
}

// inquiry is what is known of one suspect.
type inquiry struct {
	// listed: its source still names it. busy: it is being judged.
	listed, busy bool
	// judged: at least once.
	judged bool
	next   time.Time
	pause  time.Duration
	code   verdict.Code
	// leads is the key that a row turned out to be a finding of; nil otherwise.
	leads *flow.Place
	// finding is nil unless the key is one now; series is where it counts.
	finding *answer.Finding
	series  findingSeries
}

// findings judges the suspects of all sources within a budget, and keeps those
// that are findings until they are no more.
type findings struct {
	judge     Judge
	perSecond int
	ledgers   []ledgerSuspects
	// keys lists suspects by their key; nil when no source does.
	keys     func() []flow.Place
	labels   *labels
	lookback time.Duration
	// max is maxFindings; first is firstPause.
	max   int
	first time.Duration
	now   func() time.Time

	descs                 findingsDescs
	judgedTotal, overflow prometheus.Counter

	mu        sync.Mutex
	inquiries map[subject]*inquiry
	count     int // of those that are findings
	full      bool
	queue     []subject
	planned   time.Time
	series    map[findingSeries]bool // every one that was ever exported
}

// ledgerSuspects is one ledger as a source of suspects.
type ledgerSuspects struct {
	loop   *loop
	source *ledgerSource
}

// newFindings returns nil when nobody judges or the budget is 0.
func newFindings(o Options, loops []*loop, labels *labels) *findings {
	if o.Judge == nil || o.FindingsPerSecond == 0 {
		return nil
	}
	f := &findings{
		judge: o.Judge, perSecond: o.FindingsPerSecond, labels: labels, lookback: o.Lookback,
		max: maxFindings, first: firstPause, now: time.Now,
		descs: newFindingsDescs(), judgedTotal: newFindingsJudged(), overflow: newFindingsOverflow(),
		inquiries: map[subject]*inquiry{}, series: map[findingSeries]bool{},
	}
	for _, l := range loops {
		if s, ok := l.source.(*ledgerSource); ok {
			f.ledgers = append(f.ledgers, ledgerSuspects{l, s})
		}
	}
	return f
}

// run judges what is due until ctx ends, and returns when the last look-up has ended.
func (f *findings) run(ctx context.Context) {
	f.dispatch(ctx, func() (subject, bool, bool) {
		f.refresh()
		o, ok := f.take()
		return o, ok, false
	})
}

// drain judges every suspect that is known now once.
func (f *findings) drain(ctx context.Context) {
	f.mu.Lock()
	f.plan(f.now())
	f.mu.Unlock()
	f.dispatch(ctx, func() (subject, bool, bool) {
		o, ok := f.take()
		return o, ok, !ok
	})
}

// dispatch starts a look-up at each tick of the budget, as long as next gives
// one and until it says that it is over.
func (f *findings) dispatch(ctx context.Context, next func() (o subject, ok, over bool)) {
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, judgesAtOnce)
	pace := time.NewTicker(time.Second / time.Duration(f.perSecond))
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		o, ok, over := next()
		if over {
			return
		}
		if !ok {
			<-slots
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			f.inquire(ctx, o)
		})
	}
}

// take returns the suspect that has been due longest.
func (f *findings) take() (subject, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) > 0 {
		o := f.queue[0]
		f.queue = f.queue[1:]
		if q := f.inquiries[o]; q != nil && !q.busy {
			q.busy = true
			return o, true
		}
	}
	return subject{}, false
}

// refresh plans anew when the last plan is old.
func (f *findings) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.planned) >= planEvery {
		f.plan(now)
	}
}

// plan gathers the suspects, forgets those that are none any more, and queues
// what is due. The caller holds the lock.
func (f *findings) plan(now time.Time) {
	f.planned = now
	before := map[subject]bool{}
	for o, q := range f.inquiries {
		before[o], q.listed = q.listed, false
	}
	for _, l := range f.ledgers {
		rows, _ := l.source.suspects.last()
		for _, at := range rows {
			f.list(subject{ledger: l.source.name, row: at}, now)
		}
	}
	if f.keys != nil {
		for _, p := range f.keys() {
			f.list(subject{key: p}, now)
		}
	}
	f.queue = f.queue[:0]
	for o, q := range f.inquiries {
		if before[o] && !q.listed {
			f.hurry(q, now)
		}
		if !q.busy && !q.listed && q.finding == nil {
			delete(f.inquiries, o)
		}
	}
	for o, q := range f.inquiries {
		if !q.busy && !q.next.After(now) && !f.led(q) {
			f.queue = append(f.queue, o)
		}
	}
	slices.SortFunc(f.queue, func(a, b subject) int { return f.inquiries[a].next.Compare(f.inquiries[b].next) })
}

func (f *findings) list(o subject, now time.Time) {
	q := f.inquiries[o]
	if q == nil {
		q = &inquiry{next: now}
		f.inquiries[o] = q
	}
	q.listed = true
}

// hurry judges at once what its source names no more: it is probably mended.
func (f *findings) hurry(q *inquiry, now time.Time) {
	if q.leads != nil {
		q = f.inquiries[subject{key: *q.leads}]
	}
	if q != nil && q.finding != nil && q.next.After(now) {
		q.next = now
	}
}

// led reports a row whose key is a finding and judged as such.
func (f *findings) led(q *inquiry) bool {
	if q.leads == nil {
		return false
	}
	of := f.inquiries[subject{key: *q.leads}]
	return of != nil && of.finding != nil
}

// inquire judges one suspect.
func (f *findings) inquire(ctx context.Context, o subject) {
	p, there := o.key, true
	if o.ledger != "" {
		i := slices.IndexFunc(f.ledgers, func(l ledgerSuspects) bool { return l.source.name == o.ledger })
		limited, cancel := context.WithTimeout(ctx, f.ledgers[i].loop.timeout)
		defer cancel()
		var err error
		if p, there, err = f.ledgers[i].source.key(limited, o.row); err != nil {
			f.settle(o, nil, ctx.Err() == nil)
			return
		}
	}
	if !there {
		f.settle(o, &answer.Answer{}, true)
		return
	}
	a, err := f.judge(ctx, p)
	// When the program ends, stores give no answer: that says nothing about the key.
	if err != nil || ctx.Err() != nil {
		f.settle(o, nil, ctx.Err() == nil)
		return
	}
	f.judgedTotal.Inc()
	f.settle(o, &a, true)
}

// settle takes the answer about a suspect; nil when there was none. schedule is
// false when the program ends.
func (f *findings) settle(o subject, a *answer.Answer, schedule bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.inquiries[o]
	q.busy = false
	if !schedule {
		return
	}
	now := f.now()
	if a == nil {
		f.postpone(q, now, q.code, unsurePause)
		return
	}
	q.judged = true
	found, is := a.Finding()
	f.postpone(q, now, a.Verdict.Code, pauseOf(a.Verdict))
	if o.ledger == "" {
		f.keep(q, found, is)
		return
	}
	q.leads = nil
	if a.Flow.Name == "" {
		return // the row is gone
	}
	p := flow.Place{Flow: a.Flow.Name, Key: a.Key}
	of := f.inquiries[subject{key: p}]
	if of == nil && is {
		of = &inquiry{judged: true}
		f.inquiries[subject{key: p}] = of
	}
	if is {
		q.leads = &p
	}
	if of != nil && !(of.finding != nil && of.finding.JudgedAt.After(a.At)) {
		f.keep(of, found, is)
		f.postpone(of, now, a.Verdict.Code, pauseOf(a.Verdict))
	}
}

// postpone sets when to judge again: the longer a verdict holds, the later.
func (f *findings) postpone(q *inquiry, now time.Time, code verdict.Code, longest time.Duration) {
	if q.code != code || q.pause == 0 {
		q.pause = f.first
	} else {
		q.pause = min(2*q.pause, longest)
	}
	q.code = code
	q.next = now.Add(jitter(q.pause))
}

func pauseOf(v verdict.Verdict) time.Duration {
	if v.Severity == verdict.Unsure {
		return unsurePause
	}
	return longestPause
}

// beganTolerance is by how much two readings of the same age may differ:
// columns resolve whole seconds.
const beganTolerance = 2 * time.Second

// keep puts the key on the list or takes it off.
func (f *findings) keep(q *inquiry, found answer.Finding, is bool) {
	before := q.finding
	switch {
	case !is && before != nil:
		f.count--
		f.full = false
		fallthrough
	case !is:
		q.finding = nil
		return
	case before == nil && f.count >= f.max:
		f.full = true
		f.overflow.Inc()
		return
	case before == nil:
		f.count++
	default:
		found.Since = before.Since
		if !found.AgeKnown {
			found.Began = found.Since
		}
		if d := found.Began.Sub(before.Began).Abs(); d < beganTolerance {
			found.Began = before.Began
		}
	}
	q.finding = &found
	q.series = findingSeries{found.Flow, f.labels.of(found.Key.BizType), found.Code, found.Layer}
	f.series[q.series] = true
}
