package lockstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

const (
	// eventSilence is how long a subscription may be silent before it is asked
	// whether it still lives.
	eventSilence = 10 * time.Second
	// eventNodes is how often the primaries of a cluster are listed anew.
	eventNodes = time.Minute
)

// Listener hears of expirations. Its functions are called one at a time.
type Listener struct {
	// Ready is called when every server has confirmed the subscription.
	Ready func()
	// Expired is called with the name of each key of the database that expires.
	// Redis says so when it removes the key, which may be later than its time.
	Expired func(key string)
}

// errMoved ends a subscription whose servers are no longer the right ones.
var errMoved = errors.New("the primaries of the cluster have changed")

// Expirations subscribes to the expirations of keys, on every primary, and
// listens until ctx ends or a connection breaks; it always returns an error. What
// expires while nobody listens is not heard of later. A server that does not
// publish expirations stays silent: see PublishesExpirations.
func (s *Store) Expirations(ctx context.Context, l Listener) error {
	servers, err := s.primaries(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	missing := len(servers)
	one := Listener{
		Ready: func() {
			mu.Lock()
			defer mu.Unlock()
			if missing--; missing == 0 {
				l.Ready()
			}
		},
		Expired: func(key string) {
			mu.Lock()
			defer mu.Unlock()
			l.Expired(key)
		},
	}
	for _, at := range servers {
		wg.Go(func() { cancel(s.listen(ctx, at.client, one)) })
	}
	if s.opts.Mode == ModeCluster {
		wg.Go(func() { cancel(s.untilMoved(ctx, servers)) })
	}
	wg.Wait()
	return context.Cause(ctx)
}

// listen hears one server.
func (s *Store) listen(ctx context.Context, client redis.UniversalClient, l Listener) error {
	channel := fmt.Sprintf("__keyevent@%d__:expired", s.opts.DB)
	sub := client.Subscribe(ctx, channel)
	// The library waits for a message without regard to ctx.
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer func() {
		if stop() {
			_ = sub.Close()
		}
	}()
	silent, wait := false, s.opts.Timeout // for the confirmation
	for {
		start := time.Now()
		message, err := sub.ReceiveTimeout(ctx, wait)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isTimeout(err) && wait == eventSilence && !silent:
			silent = true
			if err := sub.Ping(ctx); err != nil {
				return s.broken(err, time.Since(start))
			}
			continue
		case err != nil:
			return s.notHeard(err, time.Since(start), channel)
		}
		silent, wait = false, eventSilence
		switch m := message.(type) {
		case *redis.Subscription:
			l.Ready()
		case *redis.Message:
			l.Expired(m.Payload)
		}
	}
}

func (s *Store) notHeard(err error, took time.Duration, channel string) error {
	if redis.IsPermissionError(err) && strings.Contains(err.Error(), "channel") {
		return &Error{Source: s.source(), cause: err,
			Text: flow.T("the Redis user may not hear the channel %s: grant &%[1]s", "Redis 用户没有订阅频道 %s 的权限：请授权 &%[1]s", channel)}
	}
	return s.broken(err, took)
}

// untilMoved watches the primaries of a cluster.
func (s *Store) untilMoved(ctx context.Context, servers []server) error {
	same := func(a, b server) bool { return a.name == b.name }
	tick := time.NewTicker(eventNodes)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		now, err := s.primaries(ctx)
		if err == nil && !slices.EqualFunc(now, servers, same) {
			return errMoved
		}
	}
}

// PublishesExpirations asks every primary whether it publishes the expirations
// of keys (notify-keyspace-events). known is false when one does not say, which
// is so when CONFIG GET is not granted.
func (s *Store) PublishesExpirations(ctx context.Context) (publishes, known bool) {
	servers, err := s.primaries(ctx)
	if err != nil {
		return false, false
	}
	for _, at := range servers {
		var setting *redis.MapStringStringCmd
		cmds, _ := s.sendTo(ctx, at.client, func(ctx context.Context, pipe redis.Pipeliner) {
			setting = pipe.ConfigGet(ctx, "notify-keyspace-events")
		})
		flags, told := setting.Val()["notify-keyspace-events"]
		if anyFailed(cmds) || !told {
			return false, false
		}
		if !strings.Contains(flags, "E") || !strings.ContainsAny(flags, "xA") {
			return false, true
		}
	}
	return true, true
}
