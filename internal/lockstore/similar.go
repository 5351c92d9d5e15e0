package lockstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// LookSimilar returns those of the keys that exist, in the order given: other
// spellings of a key that was not found. It asks for their types in one round
// trip and for nothing more. A key that cannot be asked about is left out, so an
// empty result proves nothing.
func (s *Store) LookSimilar(ctx context.Context, keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	types := make([]*redis.StatusCmd, len(keys))
	s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, key := range keys {
			types[i] = pipe.Type(ctx, key)
		}
	})
	var there []string
	for i, kind := range types {
		if kind.Err() == nil && kind.Val() != typeNoKey {
			there = append(there, keys[i])
		}
	}
	return there
}
