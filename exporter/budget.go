package exporter

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// spareChunks is how many chunks of the tails one cycle reads beyond the
	// first one of each shard; the next cycle goes on from there.
	spareChunks = 10
	// rereadChunks is how many chunks of open records one cycle reads again
	// beyond the first one of each shard.
	rereadChunks = 40
	// sweepRows is how many rows of the past one cycle reads.
	sweepRows = 4000
)

// The parts of the time of a cycle after which each step takes no further
// chunk, so that a slow server makes the cycle late instead of failed.
const (
	tailPart   = 0.4
	rereadPart = 0.7
	sweepPart  = 0.8
	// rereadShare and sweepShare are what each of the two may take at most.
	rereadShare = 0.25
	sweepShare  = 0.1
)

// budget bounds one cycle of a ledger. Its shards share it.
type budget struct {
	spare, rereads atomic.Int64
	began          time.Time
	time           time.Duration
}

func newBudget(ctx context.Context) *budget {
	b := &budget{began: time.Now(), time: maxTimeout}
	if end, ok := ctx.Deadline(); ok {
		b.time = end.Sub(b.began)
	}
	b.spare.Store(spareChunks)
	b.rereads.Store(rereadChunks)
	return b
}

// within reports whether that part of the time is not over yet.
func (b *budget) within(part float64) bool {
	return time.Since(b.began) < time.Duration(part*float64(b.time))
}

// tail reports whether another chunk of new rows may be read.
func (b *budget) tail() bool { return b.within(tailPart) && take(&b.spare) }

// reread reports whether another chunk of open records may be read, by a shard
// that began with them at a time.
func (b *budget) reread(began time.Time) bool {
	return b.within(rereadPart) && time.Since(began) < time.Duration(rereadShare*float64(b.time)) && take(&b.rereads)
}

func take(n *atomic.Int64) bool { return n.Add(-1) >= 0 }
