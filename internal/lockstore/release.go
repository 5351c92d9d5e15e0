package lockstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// releaseScript deletes a key only if it still is the one that was seen.
//
//	KEYS[1] the key
//	ARGV[1] the value that was seen
//	ARGV[2] the most milliseconds that it may have left; -1: it had no expiry
//
// It returns {what, type, value, milliseconds left}; what is deleted, absent, or
// why it was left alone: type, value, or expiry (extended, or taken anew with the
// same value). Of a value it returns the first 4096 bytes.
const releaseScript = `
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then return {'absent', '', '', -2} end
local left = redis.call('PTTL', KEYS[1])
if kind ~= 'string' then return {'type', kind, '', left} end
local value = redis.call('GET', KEYS[1])
local shown = string.sub(value, 1, 4096)
if value ~= ARGV[1] then return {'value', kind, shown, left} end
local most = tonumber(ARGV[2])
if left > most or (left == -1 and most ~= -1) then return {'expiry', kind, shown, left} end
redis.call('DEL', KEYS[1])
return {'deleted', kind, shown, left}
`

// ReleaseOutcome is what a Release came to.
type ReleaseOutcome string

// The outcomes. The last three left the key alone.
const (
	Deleted      ReleaseOutcome = "deleted"
	AlreadyGone  ReleaseOutcome = "absent"
	OtherType    ReleaseOutcome = "type"
	OtherValue   ReleaseOutcome = "value"
	LongerExpiry ReleaseOutcome = "expiry"
)

// Released is what a Release found, and did.
type Released struct {
	Outcome ReleaseOutcome
	// Type, Value (the first MaxValue bytes) and TTL are those of the key at that
	// moment; empty when it was gone. NoTTL: it never expires.
	Type, Value string
	TTL         time.Duration
	NoTTL       bool
}

// Expected is the key as it was seen.
type Expected struct {
	Key, Value string
	// NoTTL: it never expires. Else MostTTL is the most that it may have left now:
	// more means that it was extended or set anew.
	NoTTL   bool
	MostTTL time.Duration
}

// Release deletes the key, in one call of the server, if it is still as
// expected. Open the store with Once, so that it is not sent twice. The error is
// an *Error: whether the key was deleted is then not known.
func (s *Store) Release(ctx context.Context, e Expected) (Released, error) {
	most := e.MostTTL.Milliseconds()
	if e.NoTTL {
		most = -1
	}
	var answer *redis.Cmd
	cmds, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		answer = pipe.Eval(ctx, releaseScript, []string{e.Key}, e.Value, most)
	})
	if failure := s.failure(cmds, took); failure != nil {
		return Released{}, failure
	}
	parts, err := answer.Slice()
	if err != nil || len(parts) != 4 {
		return Released{}, &Error{Text: flow.T("the server's answer cannot be read", "无法解读服务器的应答"), Source: s.source(), cause: fmt.Errorf("release: %v %v", err, parts)}
	}
	what, _ := parts[0].(string)
	r := Released{Outcome: ReleaseOutcome(what)}
	r.Type, _ = parts[1].(string)
	r.Value, _ = parts[2].(string)
	left, _ := parts[3].(int64)
	switch left {
	case ttlNever:
		r.NoTTL = true
	case ttlNoKey:
	default:
		r.TTL = time.Duration(left) * time.Millisecond
	}
	return r, nil
}
