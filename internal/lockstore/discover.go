package lockstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// sampleRate is how many keys of the whole store a sample walks in a second.
	sampleRate = 10000
	// MaxSampleName is how long, in bytes, a name may be to be in a sample:
	// locks and markers are short.
	MaxSampleName = 512
	// maxDetails bounds how many keys a sample reads more of than the name.
	maxDetails = 2000
	// sampleValue is how many bytes of a value are read.
	sampleValue = 64
)

// SampleOptions say how much of the key space is looked at.
type SampleOptions struct {
	// Keys is how many keys are walked at most, those that are walked again
	// included. Mandatory.
	Keys int
	// For is how long the sample takes at most. A key space that is smaller than
	// the budget is walked again until then, because a lock lives for seconds
	// only. Mandatory.
	For time.Duration
	// Closer tells by its name whether type, value and remaining time of a key
	// are read as well. Mandatory.
	Closer func(key string) bool
}

// SampledKey is what a sample saw of one key.
type SampledKey struct {
	Key string
	// Type is what Redis calls the value's type; empty when it was not read:
	// the name was not looked at closer, the key was gone, or this user may not.
	Type string
	// Value holds the first bytes of a string.
	Value string
	// NoTTL: the key never expires.
	NoTTL bool
	// TTL is the longest remaining time that was seen.
	TTL time.Duration
	// Extended: with the same value, more time was left than a moment before.
	Extended bool

	closer bool
	last   time.Duration
}

// KeySample is a part of a key space.
type KeySample struct {
	// Keys are in the order of their bytes, each once.
	Keys []SampledKey
	// Walked is how many keys were walked, repeated ones included.
	Walked int
	// Complete: every key that was there all the time was walked.
	Complete bool
	// Refused is why keys could not be looked at closer; nil when they could.
	Refused *Error
}

// Sample walks a part of the key space with SCAN, at most o.Keys keys and for
// o.For, and looks closer at some of them with TYPE, PTTL and GETRANGE. The
// error, an *Error, comes with what was seen before it.
func (s *Store) Sample(ctx context.Context, o SampleOptions) (KeySample, error) {
	servers, err := s.primaries(ctx)
	if err != nil {
		return KeySample{}, err
	}
	w := &sampler{store: s, o: o, pace: newPace(sampleRate), until: time.Now().Add(o.For), seen: map[string]*SampledKey{}}
	for !w.spent() {
		whole := true
		for _, at := range servers {
			ended, err := w.walk(ctx, at)
			if err != nil {
				return w.sample(), err
			}
			whole = whole && ended
		}
		w.complete = w.complete || whole
	}
	return w.sample(), nil
}

// sampler is a sample that is being taken.
type sampler struct {
	store    *Store
	o        SampleOptions
	pace     pace
	usual    time.Duration
	until    time.Time
	walked   int
	complete bool
	refused  *Error
	seen     map[string]*SampledKey
	// closer counts the keys of which more than the name is read.
	closer int
}

func (w *sampler) spent() bool { return w.walked >= w.o.Keys || !time.Now().Before(w.until) }

// walk goes through one server from its start, as far as the budget goes.
// ended: to its end.
func (w *sampler) walk(ctx context.Context, at server) (ended bool, err error) {
	var cursor uint64
	for !w.spent() {
		if err := w.pace.wait(ctx); err != nil {
			return false, w.store.broken(err, 0)
		}
		var scan *redis.ScanCmd
		cmds, took := w.store.sendTo(ctx, at.client, func(ctx context.Context, pipe redis.Pipeliner) {
			scan = pipe.Scan(ctx, cursor, "", w.pace.count)
		})
		if failure := w.store.failure(cmds, took); failure != nil {
			return false, failure
		}
		names, next := scan.Val()
		// An empty page of a sparse database costs the server its count, too.
		w.walked += max(len(names), 1)
		looked, err := w.note(ctx, names)
		if err != nil {
			return false, err
		}
		w.pace.spent(w.pace.count+int64(looked), took, &w.usual)
		if cursor = next; cursor == 0 {
			return true, nil
		}
	}
	return false, nil
}

// note keeps the names, and reads more of those that matter, at once: a lock may be
// gone a moment later.
func (w *sampler) note(ctx context.Context, names []string) (looked int, err error) {
	var closer []string
	for _, name := range names {
		if len(name) > MaxSampleName {
			continue
		}
		k := w.seen[name]
		if k == nil {
			k = &SampledKey{Key: name}
			w.seen[name] = k
			if w.closer < maxDetails && w.o.Closer(name) {
				k.closer = true
				w.closer++
			}
		}
		if k.closer && w.refused == nil {
			closer = append(closer, name)
		}
	}
	for chunk := range slices.Chunk(closer, scanPage) {
		details, err := w.store.details(ctx, chunk)
		var failure *Error
		switch {
		case errors.As(err, &failure) && failure.Refused():
			w.refused = failure
		case err != nil:
			return 0, err
		}
		for _, d := range details {
			w.seen[d.Key].merge(d)
		}
	}
	return len(closer), nil
}

// merge adds a later sight of the same key.
func (k *SampledKey) merge(later SampledKey) {
	if later.Type == "" {
		return
	}
	k.Extended = k.Extended || k.Type != "" && k.Value == later.Value && !k.NoTTL && !later.NoTTL && later.TTL > k.last
	k.Type, k.Value, k.NoTTL = later.Type, later.Value, later.NoTTL
	k.TTL, k.last = max(k.TTL, later.TTL), later.TTL
}

func (w *sampler) sample() KeySample {
	s := KeySample{Walked: w.walked, Complete: w.complete, Refused: w.refused}
	for _, k := range w.seen {
		s.Keys = append(s.Keys, *k)
	}
	slices.SortFunc(s.Keys, func(a, b SampledKey) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return s
}

// Probe looks closer at the keys with exactly these names, at most MaxProbe of
// them, and returns those that exist, in their order. The error is an *Error.
func (s *Store) Probe(ctx context.Context, keys []string) ([]SampledKey, error) {
	var found []SampledKey
	for chunk := range slices.Chunk(keys[:min(len(keys), MaxProbe)], scanPage) {
		details, err := s.details(ctx, chunk)
		if err != nil {
			return found, err
		}
		for _, d := range details {
			if d.Type != "" {
				found = append(found, d)
			}
		}
	}
	return found, nil
}

// MaxProbe bounds how many keys Probe looks at.
const MaxProbe = 5000

// details reads type, beginning of the value and remaining time of some keys.
// What this user may not read of a single key is left out; an error means that
// none could be read.
func (s *Store) details(ctx context.Context, keys []string) ([]SampledKey, error) {
	sights := make([]sight, len(keys))
	cmds, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, key := range keys {
			sights[i].kind = pipe.Type(ctx, key)
			sights[i].value = pipe.GetRange(ctx, key, 0, sampleValue-1)
			sights[i].remaining = pipe.PTTL(ctx, key)
		}
	})
	var found []SampledKey
	answered := false
	for i, saw := range sights {
		if saw.kind.Err() != nil || saw.remaining.Err() != nil {
			continue
		}
		answered = true
		k := SampledKey{Key: keys[i], Type: saw.kind.Val()}
		switch ttl := saw.remaining.Val(); {
		case k.Type == typeNoKey || ttl == ttlNoKey:
			continue
		case ttl == ttlNever:
			k.NoTTL = true
		default:
			k.TTL, k.last = ttl, ttl
		}
		if saw.value.Err() == nil {
			k.Value = saw.value.Val()
		}
		found = append(found, k)
	}
	if answered || len(keys) == 0 {
		return found, nil
	}
	if failure := s.failure(slices.DeleteFunc(cmds, wrongType), took); failure != nil {
		return nil, failure
	}
	return nil, nil
}

// Kind is how a server says that it runs: "standalone", "cluster" or
// "sentinel"; empty when INFO is refused. The error is an *Error.
func (s *Store) Kind(ctx context.Context) (string, error) {
	info, err := s.info(ctx, s.client, "server")
	var failure *Error
	if errors.As(err, &failure) && failure.Refused() {
		return "", s.Ping(ctx)
	}
	return infoField(info, "redis_mode"), err
}
