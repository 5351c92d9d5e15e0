package exporter

import (
	"sync"

	"idemscope/internal/flow"
)

// maxSuspectKeys bounds the suspects of all Redis together.
const maxSuspectKeys = 2000

// suspectKeys are the keys that the last sweeps of Redis found odd: locks
// without a TTL and markers without a record. Whether something is wrong with
// one is for the verdict to say. The zero value is empty; a nil list stays so.
type suspectKeys struct {
	mu     sync.Mutex
	places []flow.Place
}

// add puts a key on the list, once. A full list refuses it.
func (s *suspectKeys) add(p flow.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(p)
}

func (s *suspectKeys) put(p flow.Place) {
	for _, known := range s.places {
		if known == p {
			return
		}
	}
	if len(s.places) < maxSuspectKeys {
		s.places = append(s.places, p)
	}
}

// list returns all of them, those that have been odd longest first.
func (s *suspectKeys) list() []flow.Place {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]flow.Place(nil), s.places...)
}

// replace takes what a sweep found odd in place of what its last one did.
func (s *suspectKeys) replace(before, now []flow.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	still := make(map[flow.Place]bool, len(now))
	for _, p := range now {
		still[p] = true
	}
	gone := make(map[flow.Place]bool, len(before))
	for _, p := range before {
		gone[p] = !still[p]
	}
	kept := s.places[:0]
	for _, p := range s.places {
		if !gone[p] {
			kept = append(kept, p)
		}
	}
	clear(s.places[len(kept):])
	s.places = kept
	for _, p := range now {
		s.put(p)
	}
}
