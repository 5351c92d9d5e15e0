package exporter

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/lockstore"
)

// longSilence is after which a server that does not say whether it publishes
// expirations is suspected not to.
const longSilence = 10 * time.Minute

const howToPublish = "set notify-keyspace-events to Ex in its configuration, beside what stands there, if the load of one more message per expired key is acceptable"

// keyEvents counts the locks of one Redis that lapse.
type keyEvents struct {
	name    string
	store   *lockstore.Store
	keys    *keyMap
	counted *prometheus.CounterVec
	log     *slog.Logger
	retry   time.Duration
	silence time.Duration

	// down: the last attempt to listen failed.
	down bool
	// told: that nothing may be published has been said. heard: expirations are
	// published.
	told, heard atomic.Bool
}

func newKeyEvents(o Options, name string, keys *keyMap, counted *prometheus.CounterVec) *keyEvents {
	return &keyEvents{name: name, store: o.Redis[name], keys: keys, counted: counted, log: o.Logger, retry: o.Interval, silence: longSilence}
}

// run listens until ctx ends.
func (e *keyEvents) run(ctx context.Context) {
	for {
		err := e.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if !e.down {
			e.log.Warn("lock expirations cannot be heard", "redis", e.name, "err", err)
		}
		e.down = true
		if !sleep(ctx, jitter(e.retry)) {
			return
		}
	}
}

func (e *keyEvents) listen(ctx context.Context) error {
	publishes, known := e.store.PublishesExpirations(ctx)
	if known && !publishes {
		e.tell("the server does not publish expirations, so lock expirations are not known")
	}
	var silence *time.Timer
	defer func() {
		if silence != nil {
			silence.Stop()
		}
	}()
	return e.store.Expirations(ctx, lockstore.Listener{
		Ready: func() {
			if e.down {
				e.log.Info("lock expirations can be heard again", "redis", e.name)
			}
			e.down = false
			switch {
			case publishes:
				e.start()
			case !known:
				silence = time.AfterFunc(e.silence, func() {
					e.tell("no key has expired for long: the server may not publish expirations")
				})
			}
		},
		Expired: e.expired,
	})
}

func (e *keyEvents) tell(problem string) {
	if !e.heard.Load() && !e.told.Swap(true) {
		e.log.Warn(problem, "redis", e.name, "remedy", howToPublish)
	}
}

// start makes the series, at zero.
func (e *keyEvents) start() {
	e.heard.Store(true)
	for _, f := range e.keys.flows {
		if f.lock != nil {
			e.counted.WithLabelValues(f.name)
		}
	}
}

func (e *keyEvents) expired(key string) {
	if !e.heard.Load() {
		e.start()
	}
	for _, o := range e.keys.lockOwners(key) {
		e.counted.WithLabelValues(o.flow).Inc()
	}
}
