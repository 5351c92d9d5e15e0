// Package history keeps, in bounded memory, what sources of events tell of each
// key: the tap and the trace of a broker, the trail of instrumented consumers.
// Every answer says how far back it is complete.
//
// It is not a store of its own: what it forgets, its source may still hold. It
// reads nothing itself and judges nothing.
package history

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"idemscope/internal/flow"
)

// Options bound a Log.
type Options struct {
	// Source names the followed source in accounts, e.g. "tap of rabbit". Mandatory.
	Source string
	// MaxEvents bounds all keys together. Zero means 200,000, about 60 MB.
	MaxEvents int
	// MaxPerKey bounds the events of one key: of a key that loops, the latest
	// are kept. Zero means 200.
	MaxPerKey int
}

// Log is the events of all keys of one source. It is safe for concurrent use.
type Log struct {
	options Options

	mu   sync.Mutex
	keys map[flow.Key]*entry
	// recent holds entries, the one with the longest silence last.
	recent *list.List
	events int
	// since is from when on everything was followed; zero: nothing is.
	since time.Time
	// forgot: keys were dropped whose last event is not younger than this.
	forgot time.Time
	// fault says why the source is not followed at the moment.
	fault    flow.Text
	followed time.Time
}

type entry struct {
	key    flow.Key
	events []flow.Event
	cut    bool
	place  *list.Element
}

// New returns an empty log that covers nothing yet.
func New(o Options) *Log {
	if o.MaxEvents <= 0 {
		o.MaxEvents = 200_000
	}
	if o.MaxPerKey <= 0 {
		o.MaxPerKey = 200
	}
	return &Log{options: o, keys: map[flow.Key]*entry{}, recent: list.New()}
}

// Add notes an event of a key. Events may come in any order.
func (l *Log) Add(k flow.Key, e flow.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.keys[k]
	if of == nil {
		of = &entry{key: k}
		of.place = l.recent.PushFront(of)
		l.keys[k] = of
	}
	l.recent.MoveToFront(of.place)
	at := len(of.events)
	for at > 0 && of.events[at-1].At.After(e.At) {
		at--
	}
	of.events = slices.Insert(of.events, at, e)
	l.events++
	if len(of.events) > l.options.MaxPerKey {
		of.events = slices.Delete(of.events, 0, 1)
		of.cut = true
		l.events--
	}
	for l.events > l.options.MaxEvents {
		l.forgetOne()
	}
}

// forgetOne drops the key that has been silent for longest.
func (l *Log) forgetOne() {
	of := l.recent.Remove(l.recent.Back()).(*entry)
	delete(l.keys, of.key)
	l.events -= len(of.events)
	if last := of.events[len(of.events)-1].At; last.After(l.forgot) {
		l.forgot = last
	}
}

// Follow notes that the source was followed without a gap from since until now.
func (l *Log) Follow(since, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since, l.followed, l.fault = since, now, flow.Text{}
}

// Lose notes that the source is not followed for the reason given. What is known
// stays; what happens from now on is not covered.
func (l *Log) Lose(reason flow.Text) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = reason
}

// Size is how many events the log holds, and from when on it is complete (zero:
// it is not).
func (l *Log) Size() (events int, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events, l.covered()
}

// covered is from when on no event can be missing. A key that was forgotten
// could have had events until then.
func (l *Log) covered() time.Time {
	if l.since.IsZero() || l.forgot.Before(l.since) {
		return l.since
	}
	return l.forgot.Add(time.Nanosecond)
}

// Of is the account of one key.
func (l *Log) Of(k flow.Key) *flow.Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &flow.Account{Since: l.covered()}
	a.Source, a.ReadAt = l.options.Source, l.followed
	if of := l.keys[k]; of != nil {
		a.Events, a.Cut = slices.Clone(of.events), of.cut
	}
	if a.Cut && a.Events[0].At.After(a.Since) {
		a.Since = a.Events[0].At
	}
	switch {
	case !l.fault.Empty():
		a.State, a.Reason = flow.Error, l.fault
	case l.since.IsZero():
		a.State, a.Reason = flow.Unknown, flow.T("the source is still being read from its beginning", "仍在从头读取该来源")
	case len(a.Events) > 0:
		a.State = flow.Found
	default:
		a.State = flow.Absent
	}
	if !a.Since.IsZero() {
		a.Coverage = append(a.Coverage, flow.T("everything since %s", "自 %s 起完整", a.Since.UTC().Format(time.RFC3339)))
	}
	return a
}
