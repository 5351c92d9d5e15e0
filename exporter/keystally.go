package exporter

import (
	"math/rand/v2"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

const (
	// maxSampled is how many markers of one pass are looked up in their ledgers,
	// shared out evenly among the flows.
	maxSampled = 500
	// maxForever is how many locks without a TTL of one flow are looked at again.
	maxForever = 1000
)

// candidate is a key that is looked at again before anything is said of it.
type candidate struct {
	key   string
	owner owner
}

// keyCounts are what one pass found of one flow.
type keyCounts struct {
	locks, implausible, markers int
	// forever are locks without a TTL, beyond how many more there are.
	forever []candidate
	beyond  int
	// sample holds some of the markers whose owner is certain, each of them with
	// the same chance; sampledFrom is how many those are.
	sample      []candidate
	sampledFrom int
	// sampled is how many of the sample a ledger was read for, unrecorded how
	// many of them have no record.
	sampled, unrecorded int
}

// keyTally counts the keys of one pass by flow. Its memory is bounded.
type keyTally struct {
	keys     *keyMap
	perFlow  int // size of one sample
	declared map[string]time.Duration
	byFlow   map[string]*keyCounts
	latest   time.Time // when the last candidate was seen
}

func newKeyTally(keys *keyMap) *keyTally {
	t := &keyTally{keys: keys, declared: map[string]time.Duration{}, byFlow: map[string]*keyCounts{}}
	withMarkers := 0
	for _, f := range keys.flows {
		t.byFlow[f.name] = &keyCounts{}
		if f.lock != nil {
			t.declared[f.name] = f.lock.TTL
		}
		if f.marker != nil {
			withMarkers++
		}
	}
	t.perFlow = max(1, maxSampled/max(1, withMarkers))
	return t
}

// add counts one key. A key that may belong to several flows counts for each.
func (t *keyTally) add(k lockstore.TimedKey) {
	for _, o := range t.keys.lockOwners(k.Key) {
		c, declared := t.byFlow[o.flow], t.declared[o.flow]
		c.locks++
		switch {
		case !k.NoTTL && declared > 0 && k.TTL > declared:
			c.implausible++
		case k.NoTTL && len(c.forever) < maxForever:
			c.forever = append(c.forever, t.candidate(k.Key, o))
		case k.NoTTL:
			c.beyond++
		}
	}
	for _, o := range t.keys.markerOwners(k.Key) {
		c := t.byFlow[o.flow]
		c.markers++
		if _, certain := o.sole(); certain {
			t.draw(c, k.Key, o)
		}
	}
}

// draw puts a marker into the sample, or not (reservoir sampling).
func (t *keyTally) draw(c *keyCounts, key string, o owner) {
	c.sampledFrom++
	if len(c.sample) < t.perFlow {
		c.sample = append(c.sample, t.candidate(key, o))
	} else if i := rand.IntN(c.sampledFrom); i < t.perFlow {
		c.sample[i] = t.candidate(key, o)
	}
}

func (t *keyTally) candidate(key string, o owner) candidate {
	t.latest = time.Now()
	return candidate{key: key, owner: o}
}

// keysOf lists the names of candidates.
func keysOf(candidates []candidate) []string {
	keys := make([]string, len(candidates))
	for i, c := range candidates {
		keys[i] = c.key
	}
	return keys
}

// placesOf lists the places of those candidates whose owner is certain.
func placesOf(candidates []candidate) []flow.Place {
	var places []flow.Place
	for _, c := range candidates {
		if p, certain := c.owner.sole(); certain {
			places = append(places, p)
		}
	}
	return places
}
