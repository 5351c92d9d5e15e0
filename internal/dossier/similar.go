package dossier

import (
	"context"

	"idemscope/internal/flow"
)

// lookAround looks for other spellings of the key in Redis: when neither lock nor
// marker is there, the consumer may have written it another way.
func (g *Gatherer) lookAround(ctx context.Context, d *Dossier) {
	for _, r := range []*RedisEvidence{d.Lock, d.Marker} {
		if r != nil && r.State != flow.Absent {
			return
		}
	}
	locks, markers := g.askSimilar(ctx, d.Flow.Lock, d.Key), g.askSimilar(ctx, d.Flow.Marker, d.Key)
	if d.Lock != nil {
		d.Lock.Similar = <-locks
	}
	if d.Marker != nil {
		d.Marker.Similar = <-markers
	}
}

// askSimilar asks which spellings of the key exist in the shape of a lock or marker.
func (g *Gatherer) askSimilar(ctx context.Context, shape *flow.RedisKey, k flow.Key) <-chan []string {
	if shape == nil {
		return nothing[[]string]()
	}
	var keys []string
	for _, id := range flow.Variants(k.BizID) {
		keys = append(keys, shape.Render(flow.Key{BizType: k.BizType, BizID: id}))
	}
	ask := func(ctx context.Context) []string { return g.options.Redis[shape.Redis].LookSimilar(ctx, keys) }
	late := func(flow.Observation) []string { return nil }
	return bounded(ctx, g, ask, late)
}
