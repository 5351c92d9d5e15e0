package exporter

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// infoAgain is when INFO is tried again after the server has refused it: each
// refusal leaves an entry in the server's ACL LOG.
const infoAgain = 10 * time.Minute

// kindRedis is the kind of a Redis that holds locks or markers.
const kindRedis = "redis"

// addRedis makes a loop, a sweep and a listener for each Redis that holds locks
// or markers, as far as they are wanted.
func (e *Exporter) addRedis(o Options, sh shared) {
	for _, name := range slices.Sorted(maps.Keys(o.Redis)) {
		keys := newKeyMap(name, o.Flows)
		if len(keys.flows) == 0 {
			continue
		}
		source := &redisSource{name: name, store: o.Redis[name], descs: sh.descs.keys, log: o.Logger}
		if o.SweepKeysPerSecond > 0 {
			source.sweep = newKeySweep(o, name, keys, &e.suspectKeys, sh)
			e.background = append(e.background, source.sweep.run)
		}
		if o.LockExpirations {
			e.background = append(e.background, newKeyEvents(o, name, keys, sh.sums.lockExpirations).run)
		}
		e.loops = append(e.loops, newLoop(o, name, kindRedis, source))
	}
}

// redisSource is one Redis that holds locks or markers: what its servers tell of
// themselves, and what the last sweep found.
type redisSource struct {
	name  string
	store *lockstore.Store
	sweep *keySweep // nil when sweeps are off
	descs keyDescs
	log   *slog.Logger

	evictions evictions
	// refused is when INFO was refused last; zero when it was not.
	refused time.Time
}

// missingRedis is a Redis that the flow names and that is not there, when there
// are any.
func (o *Options) missingRedis(f flow.Flow) (name string, missing bool) {
	for _, k := range []*flow.RedisKey{f.Lock, f.Marker} {
		if k != nil && o.Redis != nil && o.Redis[k.Redis] == nil {
			return k.Redis, true
		}
	}
	return "", false
}

// sweeps reports whether some Redis is swept.
func (o *Options) sweeps() bool { return len(o.Redis) > 0 && o.SweepKeysPerSecond > 0 }

func (s *redisSource) runOnce(ctx context.Context) (result, error) {
	metrics, err := s.evicted(ctx)
	if err != nil || s.sweep == nil {
		return result{metrics: metrics}, err
	}
	swept, err := s.sweep.metrics()
	return result{metrics: append(metrics, swept...)}, err
}

// evicted reads the evictions where that is permitted, and asks whether the server
// is there where it is not.
func (s *redisSource) evicted(ctx context.Context) ([]prometheus.Metric, error) {
	if !s.refused.IsZero() && time.Since(s.refused) < infoAgain {
		err := s.store.Ping(ctx)
		if refused(err) {
			err = nil // it answers
		}
		return nil, err
	}
	byServer, err := s.store.Evictions(ctx)
	if refused(err) {
		if s.refused.IsZero() {
			s.log.Info("evictions are not known", "redis", s.name, "err", err)
		}
		s.refused = time.Now()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.refused = time.Time{}
	return []prometheus.Metric{counter(s.descs.evicted, s.evictions.add(byServer), s.name)}, nil
}

func refused(err error) bool {
	var failure *lockstore.Error
	return errors.As(err, &failure) && failure.Refused()
}

// evictions add up those of several servers, each of which begins at zero anew
// when it starts: the sum of a cluster must not fall because of one node.
type evictions struct {
	last map[string]uint64
	sum  float64
}

func (e *evictions) add(byServer map[string]uint64) float64 {
	if e.last == nil {
		e.last = map[string]uint64{}
	}
	for name, n := range byServer {
		if before := e.last[name]; n >= before {
			e.sum += float64(n - before)
		} else {
			e.sum += float64(n)
		}
		e.last[name] = n
	}
	return e.sum
}
