package lab

import (
	"context"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// trailLength is about how many steps the stream keeps.
const trailLength = 200_000

// steps reports the steps of one delivery, as the instrumentation contract has
// them. A consumer never fails because reporting failed.
type steps struct {
	client   *redis.Client
	worker   string
	delivery delivery
	// noted are those not written yet.
	noted []step
}

// step is one step and how it ended.
type step struct {
	kind    flow.EventKind
	outcome string
}

func (s *steps) note(kind flow.EventKind, outcome string) {
	s.noted = append(s.noted, step{kind, outcome})
}

// into adds what was noted to a pipeline.
func (s *steps) into(ctx context.Context, pipe redis.Pipeliner) {
	redelivered := "0"
	if s.delivery.redelivered {
		redelivered = "1"
	}
	for _, n := range s.noted {
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: "idem_trail", MaxLen: trailLength, Approx: true, Values: []string{
			"t", s.delivery.BizType, "b", s.delivery.BizID, "s", string(n.kind), "o", n.outcome, "w", s.worker, "m", s.delivery.BizID, "r", redelivered,
		}})
	}
	s.noted = nil
}

// write writes what was noted at once.
func (s *steps) write(ctx context.Context) {
	_, _ = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		s.into(ctx, pipe)
		return nil
	})
}
