package lockstore

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxSeen bounds how many keys of one pass are remembered: some 20 MB.
const maxSeen = 1 << 20

// SweepOptions say which keys a sweep looks for and how fast it goes.
type SweepOptions struct {
	// Prefixes are what the names of the keys begin with, byte by byte; at least
	// one. An empty one makes the server send the name of every key.
	Prefixes []string
	// Wanted tells by its name whether a key is looked for. Mandatory.
	Wanted func(key string) bool
	// KeysPerSecond bounds how many keys of the whole store are walked in a
	// second, wanted or not; at least 1. A server that answers slower than usual
	// is walked slower.
	KeysPerSecond int
}

// TimedKey is one key and how long it has left.
type TimedKey struct {
	Key string
	// NoTTL: the key never expires.
	NoTTL bool
	// TTL is what remained when it was read. Valid unless NoTTL.
	TTL time.Duration
}

// Pass sums up one walk through the whole key space.
type Pass struct {
	Began time.Time
	// Took is from its begin to its end, interruptions included.
	Took time.Duration
	// Found is how many wanted keys were there.
	Found int
	// Inexact: there are more than a million wanted keys. SCAN may name a key more than
	// once, and those beyond the first million are not told apart any more, so
	// that some may have been found twice.
	Inexact bool
}

// Sweep walks the key space of a store, again and again: every primary of a
// cluster one after the other, the master of a sentinel, or the server. It reads
// with SCAN and PTTL. A key that is there during the whole pass is found; one
// that comes, goes, or moves to another node of the cluster meanwhile may be missed.
//
// A sweep has one user at a time. Its memory is bounded.
type Sweep struct {
	store   *Store
	wanted  func(string) bool
	pattern string
	pace    pace
	seed    maphash.Seed

	began time.Time // zero between two passes
	nodes []*node
	// seen holds the hashes of the keys found in this pass. Two of a million
	// keys have the same one in one of 30 million passes.
	seen  map[uint64]struct{}
	found int
	full  bool
}

// NewSweep makes a sweep. It does no I/O.
func (s *Store) NewSweep(o SweepOptions) *Sweep {
	return &Sweep{store: s, wanted: o.Wanted, pattern: patternOf(o.Prefixes), pace: newPace(o.KeysPerSecond), seed: maphash.MakeSeed()}
}

// Run walks to the end of the pass and hands over each wanted key once, but for
// those that expire before they are looked at. An error, mostly an *Error,
// interrupts the pass: the next call of Run goes on where it stopped, and what was handed over
// stays valid. After an interruption in mode sentinel or cluster it walks the
// server in question again from its start, without handing its keys over twice,
// unless INFO tells that it is still the same one: the cursor of another server
// means nothing.
func (w *Sweep) Run(ctx context.Context, found func(TimedKey)) (Pass, error) {
	if w.began.IsZero() {
		w.began, w.seen, w.found, w.full, w.nodes = time.Now(), map[uint64]struct{}{}, 0, false, nil
	}
	if err := w.resume(ctx); err != nil {
		return Pass{}, err
	}
	for {
		n := w.next()
		if n == nil {
			// A server that joined the cluster meanwhile is walked as well.
			if err := w.list(ctx); err != nil {
				return Pass{}, err
			}
			if n = w.next(); n == nil {
				return w.end(), nil
			}
		}
		if err := w.step(ctx, n, found); err != nil {
			n.doubted = n.begun
			return Pass{}, err
		}
	}
}

func (w *Sweep) end() Pass {
	p := Pass{Began: w.began, Took: time.Since(w.began), Found: w.found, Inexact: w.full}
	w.began, w.seen, w.nodes = time.Time{}, nil, nil
	return p
}

// step walks one page of a server: the names of some keys, and the times of
// those that are wanted.
func (w *Sweep) step(ctx context.Context, n *node, found func(TimedKey)) error {
	if err := w.pace.wait(ctx); err != nil {
		return w.store.broken(err, 0)
	}
	if !n.begun {
		run, err := w.store.runID(ctx, n.client)
		if err != nil {
			return err
		}
		n.run, n.begun = run, true
	}
	var scan *redis.ScanCmd
	cmds, took := w.store.sendTo(ctx, n.client, func(ctx context.Context, pipe redis.Pipeliner) {
		scan = pipe.Scan(ctx, n.cursor, w.pattern, w.pace.count)
	})
	if failure := w.store.failure(cmds, took); failure != nil {
		return failure
	}
	names, cursor := scan.Val()
	names = w.unseen(names)
	for chunk := range slices.Chunk(names, scanPage) {
		timed, err := w.store.Times(ctx, chunk)
		if err != nil {
			return err
		}
		w.note(chunk)
		w.found += len(timed)
		for _, k := range timed {
			found(k)
		}
	}
	// The cursor moves on only now: a page that failed is walked again.
	n.cursor, n.done = cursor, cursor == 0
	w.pace.spent(w.pace.count+int64(len(names)), took, &n.usual)
	return nil
}

// unseen keeps the wanted keys that this pass has not found yet, each once.
func (w *Sweep) unseen(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool {
		if !w.wanted(name) {
			return true
		}
		_, seen := w.seen[maphash.String(w.seed, name)]
		return seen
	})
	slices.Sort(names)
	return slices.Compact(names)
}

func (w *Sweep) note(names []string) {
	for _, name := range names {
		if len(w.seen) >= maxSeen {
			w.full = true
			return
		}
		w.seen[maphash.String(w.seed, name)] = struct{}{}
	}
}

// Times reads how long each of the keys has left, with PTTL in one pipeline.
// Keys that do not exist are left out. The error is an *Error.
func (s *Store) Times(ctx context.Context, keys []string) ([]TimedKey, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	left := make([]*redis.DurationCmd, len(keys))
	cmds, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, key := range keys {
			left[i] = pipe.PTTL(ctx, key)
		}
	})
	if failure := s.failure(cmds, took); failure != nil {
		return nil, failure
	}
	timed := make([]TimedKey, 0, len(keys))
	for i, key := range keys {
		switch ttl := left[i].Val(); ttl {
		case ttlNoKey:
		case ttlNever:
			timed = append(timed, TimedKey{Key: key, NoTTL: true})
		default:
			timed = append(timed, TimedKey{Key: key, TTL: ttl})
		}
	}
	return timed, nil
}
