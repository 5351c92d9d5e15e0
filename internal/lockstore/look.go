package lockstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// Answers of PTTL that are no time, and of TYPE for a key that does not exist.
const (
	ttlNever  = -1
	ttlNoKey  = -2
	typeNoKey = "none"
)

// sight is what the commands of one look answered.
type sight struct {
	kind      *redis.StatusCmd
	length    *redis.IntCmd
	value     *redis.StringCmd
	remaining *redis.DurationCmd
}

// Look reads the key with exactly these bytes: its type, the first MaxValue
// bytes of its value, its full length and its remaining time. It sends read
// commands only. What goes wrong stands in the entry: Error when the server
// cannot be asked, Unknown when the key changes its type while it is read. What
// the server says about itself, and what an earlier look saw, comes with it.
func (s *Store) Look(ctx context.Context, key string) Entry {
	if s.opts.Mode != ModeCluster {
		s.askFacts(server{client: s.client}) // arrives while the key is read
	}
	e := s.look(ctx, key)
	if at, known := s.serverOf(ctx, key); known && e.State != flow.Error {
		s.tellFacts(ctx, at, &e)
	}
	s.sightings.note(&e)
	return e
}

func (s *Store) look(ctx context.Context, key string) Entry {
	var saw sight
	// No transaction: MULTI would cost one more permission and does not pass
	// every proxy. PTTL comes last, so that a key that vanishes in between is
	// told from one that holds an empty value.
	_, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		saw.kind = pipe.Type(ctx, key)
		saw.length = pipe.StrLen(ctx, key)
		saw.value = pipe.GetRange(ctx, key, 0, MaxValue-1)
		saw.remaining = pipe.PTTL(ctx, key)
	})
	e := Entry{Key: key, Observation: flow.Observation{
		Source:  s.source(),
		ReadAt:  time.Now(),
		Took:    took,
		Command: s.command(key),
	}}
	s.judge(saw, &e)
	return e
}

// judge says what the answers come to.
func (s *Store) judge(saw sight, e *Entry) {
	cmds := []redis.Cmder{saw.kind, saw.length, saw.value, saw.remaining}
	if saw.kind.Err() == nil && saw.kind.Val() != "string" {
		// STRLEN and GETRANGE refuse what is no string: that is no failure.
		cmds = []redis.Cmder{saw.remaining}
	}
	switch failure := s.failure(cmds, e.Took); {
	case failure == nil:
		saw.fill(e)
	case wrongType(saw.length) || wrongType(saw.value):
		e.State = flow.Unknown
		e.Reason = flow.T("the key was replaced by one of another type while it was read: look again",
			"读取期间该键被另一种类型的键替换：请重新查询")
	default:
		e.State = flow.Error
		e.Reason = failure.Text
	}
}

// fill puts the facts into the entry. All commands that matter succeeded.
func (saw sight) fill(e *Entry) {
	kind, remaining := saw.kind.Val(), saw.remaining.Val()
	if kind == typeNoKey || remaining == ttlNoKey {
		e.State = flow.Absent
		return
	}
	e.State = flow.Found
	e.Type = kind
	if remaining == ttlNever {
		e.NoTTL = true
	} else {
		e.TTL = remaining
	}
	if e.Foreign = kind != "string"; e.Foreign {
		e.Coverage = []flow.Text{flow.T("the key holds a %s, no string: its value was not read", "该键是 %s 类型而不是字符串：未读取其值", kind)}
		return
	}
	e.Value = saw.value.Val()
	// A value that grew in between must not look longer than its length.
	e.Length = max(saw.length.Val(), int64(len(e.Value)))
	if e.Length > MaxValue {
		e.Coverage = []flow.Text{flow.T("only the first %d of %d bytes of the value were read", "只读取了值的前 %d 个字节（共 %d 个字节）", MaxValue, e.Length)}
	}
}

func wrongType(cmd redis.Cmder) bool { return redis.HasErrorPrefix(cmd.Err(), "WRONGTYPE") }
