package lockstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The ways in which a Redis can be set up.
const (
	ModeSingle   = "single"
	ModeSentinel = "sentinel"
	ModeCluster  = "cluster"
)

// defaultTimeout bounds one look when Options.Timeout is zero.
const defaultTimeout = time.Second

// poolSize is how many connections one server gets at most: a look is one
// round trip, so a few are enough and production hardly notices them.
const poolSize = 4

// Options describes one configured Redis.
type Options struct {
	// Name is the configured name. Mandatory.
	Name string
	// Addresses are host:port: the server (exactly one in mode single), the
	// sentinels, or some nodes of the cluster. Mandatory.
	Addresses []string
	// Mode is one of the modes above. Empty means single.
	Mode string
	// MasterName is the name that the sentinels watch. Mandatory in mode sentinel, else empty.
	MasterName string
	// DB is the database number. A cluster has 0 only.
	DB int
	// User and Password are those of the servers; empty means none.
	User, Password string
	// SentinelUser and SentinelPassword are those of the sentinels; empty means none.
	SentinelUser, SentinelPassword string
	// TLS is nil for plain connections.
	TLS *tls.Config
	// Timeout bounds one call to the store, connecting included. Zero means 1 s.
	Timeout time.Duration
	// Once: nothing is sent a second time after a failure, as a change must not be.
	Once bool
}

// Store reads one configured Redis. It is safe for concurrent use.
type Store struct {
	opts   Options
	client redis.UniversalClient
	// dials is how many connections were made, or tried.
	dials     *atomic.Uint64
	facts     *factSheets
	sightings *sightings
}

// New checks the options and makes a store. It does no I/O: a server that is
// down shows in each look, and heals by itself.
func New(opts Options) (*Store, error) {
	if opts.Mode == "" {
		opts.Mode = ModeSingle
	}
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("redis %s: %w", opts.Name, err)
	}
	// The library writes addresses to standard error on its own; every failure
	// also comes back as an error, which is where we explain it.
	logging.Disable()
	dials := new(atomic.Uint64)
	return &Store{
		opts: opts, client: redis.NewUniversalClient(opts.universal(dials)), dials: dials,
		facts: newFactSheets(), sightings: newSightings(maxSightings, maxSightingBytes),
	}, nil
}

func (o Options) check() error {
	if o.Name == "" {
		return errors.New("a name is needed")
	}
	if len(o.Addresses) == 0 {
		return errors.New("an address is needed, such as 127.0.0.1:6379")
	}
	for _, address := range o.Addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("address %q is not host:port", address)
		}
	}
	if o.DB < 0 {
		return fmt.Errorf("db %d: database numbers start at 0", o.DB)
	}
	if (o.MasterName != "") != (o.Mode == ModeSentinel) {
		return errors.New("a master name is needed in mode sentinel, and only there")
	}
	switch o.Mode {
	case ModeSingle:
		if len(o.Addresses) > 1 {
			return fmt.Errorf("mode single takes one address, not %d; several need mode sentinel or cluster", len(o.Addresses))
		}
	case ModeCluster:
		if o.DB != 0 {
			return fmt.Errorf("db %d: a cluster has database 0 only", o.DB)
		}
	case ModeSentinel:
	default:
		return fmt.Errorf("mode %q is not one of single, sentinel, cluster", o.Mode)
	}
	return nil
}

func (o Options) universal(dials *atomic.Uint64) *redis.UniversalOptions {
	retries, redirects := 1, 2
	if o.Once {
		// 0 would mean the library's default. A cluster's client counts lost connections as redirects.
		retries, redirects = -1, -1
	}
	return &redis.UniversalOptions{
		Addrs:            o.Addresses,
		IsClusterMode:    o.Mode == ModeCluster,
		MasterName:       o.MasterName,
		DB:               o.DB,
		Username:         o.User,
		Password:         o.Password,
		SentinelUsername: o.SentinelUser,
		SentinelPassword: o.SentinelPassword,
		Dialer:           o.dialer(dials),

		// RESP2 and no identity, so that connecting takes HELLO, AUTH and SELECT
		// only: nothing that a least-privilege user would have to be granted.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		// One retry covers an idle connection that the server has closed. A
		// redirect is the cluster's counterpart.
		MaxRetries:            retries,
		MaxRedirects:          redirects,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DialTimeout:           o.Timeout,
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
		PoolTimeout:           o.Timeout,
		PoolSize:              poolSize,
		PipelinePoolSize:      -1, // no second pool for pipelines
	}
}

// Close ends all connections. The store cannot be used afterwards.
func (s *Store) Close() error {
	s.facts.close()
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close redis %s: %w", s.opts.Name, err)
	}
	return nil
}

// Ping asks whether the server answers to our credential. The error is an
// *Error; it holds no secret.
func (s *Store) Ping(ctx context.Context) error {
	cmds, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) { pipe.Ping(ctx) })
	if failure := s.failure(cmds, took); failure != nil {
		return failure
	}
	return nil
}

// send runs commands in one plain pipeline within the store's timeout. Each
// command carries its own error. Single commands go through here as well: out
// of a pipeline, a cluster client asks the server for COMMAND first.
func (s *Store) send(ctx context.Context, queue func(context.Context, redis.Pipeliner)) ([]redis.Cmder, time.Duration) {
	return s.sendTo(ctx, s.client, queue)
}

// sendTo is send to one server of the store.
func (s *Store) sendTo(ctx context.Context, to redis.UniversalClient, queue func(context.Context, redis.Pipeliner)) ([]redis.Cmder, time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	start := time.Now()
	cmds, err := to.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		queue(ctx, pipe)
		return nil
	})
	if err != nil && !anyFailed(cmds) {
		// The library does not put every failure to connect (a refused password,
		// say) on the commands, which would then pass for answered with nothing.
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
	return cmds, time.Since(start)
}

func anyFailed(cmds []redis.Cmder) bool {
	return slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil })
}

// source names the store and the place in it.
func (s *Store) source() string {
	place := strings.Join(s.opts.Addresses, ", ")
	switch s.opts.Mode {
	case ModeCluster:
		return fmt.Sprintf("redis %s (cluster %s)", s.opts.Name, place)
	case ModeSentinel:
		return fmt.Sprintf("redis %s (master %s of sentinel %s db %d)", s.opts.Name, s.opts.MasterName, place, s.opts.DB)
	}
	return fmt.Sprintf("redis %s (%s db %d)", s.opts.Name, place, s.opts.DB)
}
