package exporter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

const (
	// defaultSweepPause is the time between two sweeps of a Redis.
	defaultSweepPause = time.Minute
	// secondLook is how long a suspicious key is left alone before it is looked
	// at again: a lock may get its TTL, and a marker its record, a moment later.
	secondLook = 5 * time.Second
	// lookPause keeps look-ups of records apart: 50 a second at most.
	lookPause = 20 * time.Millisecond
	// lookTimeout bounds one of them.
	lookTimeout = 2 * time.Second
	// maxLookFailures in a row end the look-ups of one flow in one pass.
	maxLookFailures = 3
)

// records finds the rows of one key. *ledger.Ledger implements it.
type records interface {
	Find(ctx context.Context, k flow.Key) ledger.Found
}

// keySweep walks the keys of one Redis, again and again, and keeps what the last
// complete pass found.
type keySweep struct {
	name    string
	store   *lockstore.Store
	keys    *keyMap
	sweep   *lockstore.Sweep
	records map[string]records // by flow
	odd     *suspectKeys
	descs   *descs
	log     *slog.Logger
	// pause is between two passes, retry after a failure; patience is secondLook.
	pause, retry, patience time.Duration
	inexact                bool

	mu sync.Mutex
	// last is nil before the first complete pass.
	last *keyPass
	// failure is why the pass does not go on at the moment.
	failure error
}

// keyPass is one complete pass.
type keyPass struct {
	lockstore.Pass
	ended  time.Time
	byFlow map[string]*keyCounts
	odd    []flow.Place
}

func newKeySweep(o Options, name string, keys *keyMap, odd *suspectKeys, sh shared) *keySweep {
	s := &keySweep{
		name: name, store: o.Redis[name], keys: keys, records: map[string]records{}, odd: odd, descs: sh.descs, log: o.Logger,
		pause: o.SweepPause, retry: o.Interval, patience: secondLook,
	}
	for _, f := range o.Flows {
		s.records[f.Name] = o.Ledgers[f.Ledger]
	}
	s.sweep = s.store.NewSweep(lockstore.SweepOptions{Prefixes: keys.prefixes(), Wanted: keys.wanted, KeysPerSecond: o.SweepKeysPerSecond})
	return s
}

// run sweeps until ctx ends.
func (s *keySweep) run(ctx context.Context) {
	for s.onePass(ctx) && sleep(ctx, jitter(s.pause)) {
	}
}

// onePass walks through all keys, however often it is interrupted. It reports
// false when ctx has ended.
func (s *keySweep) onePass(ctx context.Context) bool {
	tally := newKeyTally(s.keys)
	var pass lockstore.Pass
	if !s.persist(ctx, func() (err error) {
		pass, err = s.sweep.Run(ctx, tally.add)
		return err
	}) {
		return false
	}
	p := &keyPass{Pass: pass, ended: time.Now(), byFlow: tally.byFlow}
	if !tally.latest.IsZero() && !sleep(ctx, s.patience-time.Since(tally.latest)) {
		return false
	}
	for _, f := range s.keys.flows {
		if !s.lookAgain(ctx, f, p) {
			return false
		}
	}
	s.publish(p)
	return true
}

// persist tries until it succeeds, and reports false when ctx has ended.
func (s *keySweep) persist(ctx context.Context, try func() error) bool {
	for {
		err := try()
		if ctx.Err() != nil {
			return false
		}
		s.mu.Lock()
		s.failure = err
		s.mu.Unlock()
		if err == nil {
			return true
		}
		if !sleep(ctx, jitter(s.retry)) {
			return false
		}
	}
}

// lookAgain looks at the suspicious keys of one flow once more.
func (s *keySweep) lookAgain(ctx context.Context, f keyFlow, p *keyPass) bool {
	c := p.byFlow[f.name]
	if !s.persist(ctx, func() error {
		there, err := s.there(ctx, c.forever, func(k lockstore.TimedKey) bool { return k.NoTTL })
		if err == nil {
			c.forever = there
		}
		return err
	}) {
		return false
	}
	var missing []candidate
	if missing, c.sampled = s.withoutRecord(ctx, f.name, c.sample); ctx.Err() != nil {
		return false
	}
	// A marker that went in the meantime was about to expire.
	if !s.persist(ctx, func() error {
		there, err := s.there(ctx, missing, func(lockstore.TimedKey) bool { return true })
		if err == nil {
			missing = there
		}
		return err
	}) {
		return false
	}
	c.unrecorded = len(missing)
	p.odd = append(p.odd, placesOf(c.forever)...)
	p.odd = append(p.odd, placesOf(missing)...)
	return true
}

// there keeps the candidates that exist and are still like that.
func (s *keySweep) there(ctx context.Context, candidates []candidate, like func(lockstore.TimedKey) bool) ([]candidate, error) {
	timed, err := s.store.Times(ctx, keysOf(candidates))
	if err != nil {
		return nil, err
	}
	still := map[string]bool{}
	for _, k := range timed {
		still[k.Key] = like(k)
	}
	var kept []candidate
	for _, c := range candidates {
		if still[c.key] {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// withoutRecord looks the record of each marker up, and returns those that have
// none. Only definite answers are counted as sampled.
func (s *keySweep) withoutRecord(ctx context.Context, flowName string, sample []candidate) (missing []candidate, sampled int) {
	failures := 0
	for _, c := range sample {
		if failures == maxLookFailures || !sleep(ctx, lookPause) {
			return missing, sampled
		}
		place, _ := c.owner.sole()
		state := s.find(ctx, flowName, place.Key)
		switch {
		case state == flow.Error:
			failures++
			continue
		case state == flow.Absent:
			missing = append(missing, c)
			sampled++
		case state == flow.Found:
			sampled++
		}
		failures = 0
	}
	return missing, sampled
}

func (s *keySweep) find(ctx context.Context, flowName string, k flow.Key) flow.State {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return s.records[flowName].Find(ctx, k).State
}

func (s *keySweep) publish(p *keyPass) {
	if p.Inexact && !s.inexact {
		s.log.Warn("more locks and markers than can be told apart; some may be counted twice", "redis", s.name, "found", p.Found)
	}
	s.inexact = p.Inexact
	for _, c := range p.byFlow {
		c.beyond += len(c.forever)
		c.forever, c.sample = nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var before []flow.Place
	if s.last != nil {
		before = s.last.odd
	}
	s.odd.replace(before, p.odd)
	s.last = p
}

// metrics are those of the last complete pass; none before the first one, and
// none with an error while the keys cannot be read.
func (s *keySweep) metrics() ([]prometheus.Metric, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil || s.last == nil {
		return nil, s.failure
	}
	d, p := s.descs.keys, s.last
	metrics := []prometheus.Metric{
		gauge(s.descs.sweepCompleted, float64(p.ended.UnixMilli())/1000, s.name, kindRedis),
		gauge(d.duration, p.Took.Seconds(), s.name, kindRedis),
		gauge(d.seen, float64(p.Found), s.name),
	}
	for _, f := range s.keys.flows {
		metrics = append(metrics, s.ofFlow(f, p.byFlow[f.name])...)
	}
	return metrics, nil
}

func (s *keySweep) ofFlow(f keyFlow, c *keyCounts) []prometheus.Metric {
	d := s.descs.keys
	var metrics []prometheus.Metric
	if f.lock != nil {
		metrics = append(metrics, gauge(d.locks, float64(c.locks), f.name), gauge(d.locksForever, float64(c.beyond), f.name))
		if f.lock.TTL > 0 {
			metrics = append(metrics, gauge(d.locksImplausible, float64(c.implausible), f.name))
		}
	}
	if f.marker != nil {
		metrics = append(metrics, gauge(d.markers, float64(c.markers), f.name), gauge(d.markersSampled, float64(c.sampled), f.name))
		// Of markers of which none could be looked up nothing is known.
		if c.sampled > 0 || c.markers == 0 {
			metrics = append(metrics, gauge(d.markersUnrecorded, float64(c.unrecorded), f.name))
		}
	}
	return metrics
}

// sleep waits for d, and reports false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
