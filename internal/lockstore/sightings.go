package lockstore

import (
	"container/list"
	"sync"
	"time"

	"idemscope/internal/flow"
)

const (
	// maxSightings and maxSightingBytes bound what a store remembers of the keys
	// that it has looked at: the latest ones, keys and values together.
	maxSightings     = 10_000
	maxSightingBytes = 16 << 20
	// renewalStep is by how much an expiry must move on to count: less than that
	// is the time that two answers travelled.
	renewalStep = time.Second
)

// Extended reports that the lock was renewed while this process watched: with
// the same value it expires more than a second later than an earlier look saw. A
// value that every holder shares cannot tell a renewal from a lock taken anew.
func (e Entry) Extended() bool {
	if !e.sameHolder() {
		return false
	}
	return e.Before.Renewed || movedOn(e.Before.Expires, e.expires())
}

// TakenAnew reports that this process has seen another holder before: the key
// with another value, or before it was gone for a while. Before a conclusion is
// drawn, compare EarlierHolder with the times of the record: a retry takes the
// lock anew, and rightly so.
func (e Entry) TakenAnew() bool {
	_, anew := e.EarlierHolder()
	return anew
}

// EarlierHolder is when this process last saw another holder of the key that is
// there now; ok is false when it never did, and when there is no key now.
func (e Entry) EarlierHolder() (at time.Time, ok bool) {
	if e.State != flow.Found || e.Foreign || e.Before == nil {
		return time.Time{}, false
	}
	at = e.earlier()
	return at, !at.IsZero()
}

// sameHolder: the key is there, and was there with the same value before.
func (e Entry) sameHolder() bool {
	return e.State == flow.Found && !e.Foreign && e.Before != nil && e.Before.Found && e.Before.Value == e.Value
}

// earlier carries on what Before knows of an earlier holder.
func (e Entry) earlier() time.Time {
	if e.Before != nil && e.Before.Found && !e.sameHolder() {
		return e.Before.At
	}
	if e.Before != nil {
		return e.Before.Earlier
	}
	return time.Time{}
}

// expires is when the key will be gone; zero when it has no TTL.
func (e Entry) expires() time.Time {
	if e.State != flow.Found || e.NoTTL {
		return time.Time{}
	}
	return e.ReadAt.Add(e.TTL)
}

func movedOn(before, now time.Time) bool {
	return !before.IsZero() && !now.IsZero() && now.Sub(before) > renewalStep
}

// sightings remember the last look at each of the latest keys.
type sightings struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	// recent holds remembered looks, the oldest last.
	recent          *list.List
	most, mostBytes int
	bytes           int
}

type remembered struct {
	key string
	Sighting
}

func (r remembered) size() int { return len(r.key) + len(r.Value) }

func newSightings(most, mostBytes int) *sightings {
	return &sightings{byKey: map[string]*list.Element{}, recent: list.New(), most: most, mostBytes: mostBytes}
}

// note tells the entry what the look before saw, and remembers this one if it
// came to something.
func (s *sightings) note(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byKey[e.Key]
	if at != nil {
		before := at.Value.(remembered).Sighting
		e.Before = &before
	}
	if !e.Seen() {
		return
	}
	seen := remembered{key: e.Key, Sighting: Sighting{
		At: e.ReadAt, Found: e.State == flow.Found, Value: e.Value, Expires: e.expires(), Renewed: e.Extended(), Earlier: e.earlier(),
	}}
	if e.Server != nil {
		seen.RunID, seen.Role = e.Server.RunID, e.Server.Role
	}
	if at != nil {
		s.bytes -= at.Value.(remembered).size()
		at.Value = seen
		s.recent.MoveToFront(at)
	} else {
		s.byKey[e.Key] = s.recent.PushFront(seen)
	}
	s.bytes += seen.size()
	for s.recent.Len() > s.most || s.bytes > s.mostBytes {
		old := s.recent.Remove(s.recent.Back()).(remembered)
		delete(s.byKey, old.key)
		s.bytes -= old.size()
	}
}
