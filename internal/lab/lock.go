package lab

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// lockPoll is the pause between two tries of a patient consumer.
const lockPoll = 10 * time.Millisecond

// unlockScript releases a lock only for its owner.
// KEYS[1] the lock, ARGV[1] the owner's token. Returns 1 when released, 0 when it is gone or somebody else's.
const unlockScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// renewScript extends a lock only for its owner.
// KEYS[1] the lock, ARGV[1] the owner's token, ARGV[2] milliseconds. Returns 1 when extended, else 0.
const renewScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`

// lockState is what trying a lock came to.
type lockState int

const (
	lockHeld lockState = iota
	// lockRefused: somebody else holds it.
	lockRefused
	// lockDown: Redis did not answer, and the unique key has to do alone.
	lockDown
)

// String is the outcome in the trail.
func (s lockState) String() string {
	return [...]string{lockHeld: "held", lockRefused: "refused", lockDown: "down"}[s]
}

// lock is one try of one lock.
type lock struct {
	client *redis.Client
	key    string
	token  string
	state  lockState
}

func newLock(client *redis.Client, key string) lock {
	return lock{client: client, key: key, token: rand.Text()}
}

// acquire counts the attempt and tries the lock in one round trip, then tries again for as long as patience lasts.
func acquire(ctx context.Context, client *redis.Client, bizType, key string, ttl, patience time.Duration) lock {
	l := newLock(client, key)
	var try *redis.BoolCmd
	_, _ = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		countAttempt(ctx, pipe, bizType)
		try = pipe.SetNX(ctx, key, l.token, ttl)
		return nil
	})
	deadline := time.Now().Add(patience)
	for try.Err() == nil && !try.Val() && time.Now().Before(deadline) {
		pause(ctx, lockPoll)
		try = client.SetNX(ctx, key, l.token, ttl)
	}
	switch {
	case try.Err() != nil:
		l.state = lockDown
	case !try.Val():
		l.state = lockRefused
	}
	return l
}

// release gives the lock back. lost: it was gone, or somebody else's.
func (l lock) release(ctx context.Context) (lost bool) {
	if l.state != lockHeld {
		return false
	}
	n, err := l.client.Eval(ctx, unlockScript, []string{l.key}, l.token).Int()
	return err == nil && n == 0
}

// renew extends the lock, and takes it again when it has expired (the machine slept). held is false when somebody else
// has it.
func (l lock) renew(ctx context.Context, ttl time.Duration) (held bool, err error) {
	n, err := l.client.Eval(ctx, renewScript, []string{l.key}, l.token, ttl.Milliseconds()).Int()
	if err != nil || n == 1 {
		return n == 1, err
	}
	return l.client.SetNX(ctx, l.key, l.token, ttl).Result()
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
