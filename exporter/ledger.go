package exporter

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// holeGrace is how long a hole may be filled by a late commit before its ids
// count as burned.
const holeGrace = time.Minute

// shard is what the exporter asks of one table of a ledger. *ledger.Shard
// implements it.
type shard interface {
	Name() string
	// MaxID returns 0 for an empty table.
	MaxID(ctx context.Context) (uint64, error)
	// IDLimit is the highest id that the column keeps.
	IDLimit(ctx context.Context) (uint64, error)
	FirstIDSince(ctx context.Context, t time.Time) (uint64, error)
	After(ctx context.Context, id uint64, limit int) (ledger.Batch, error)
	ByID(ctx context.Context, ids []uint64) (ledger.Batch, error)
	// WithStatus fails with ledger.ErrNoIndex where only a scan could answer.
	WithStatus(ctx context.Context, status string, id uint64, limit int) (ledger.Batch, error)
}

// shared is what all sources use together.
type shared struct {
	labels *labels
	sums   *sums
	descs  *descs
	log    *slog.Logger
}

// table describes a ledger to its source.
type table struct {
	name   string
	shards []shard
	// outbox: rows wait to be sent, instead of being worked on.
	outbox bool
	// waiting are the stored words of the phases that wait for their end.
	waiting []string
	// atOnce is how many statements the server takes at a time.
	atOnce int
	vitals func(context.Context) (ledger.Vitals, error)
}

func tableOf(name string, l *ledger.Ledger) table {
	t := table{name: name, outbox: l.Mapping().Outbox(), atOnce: l.AtOnce(), vitals: l.Vitals}
	for _, s := range l.Shards() {
		t.shards = append(t.shards, s)
	}
	for _, phase := range waitingPhases(t.outbox) {
		t.waiting = append(t.waiting, l.Mapping().WordsOf(phase)...)
	}
	return t
}

// waitingPhases are those whose records are followed until they end, however
// long that takes.
func waitingPhases(outbox bool) []flow.Phase {
	if outbox {
		return []flow.Phase{flow.NotStarted, flow.Processing}
	}
	return []flow.Phase{flow.Processing}
}

// ledgerSource follows the new and the open rows of one ledger, several shards
// at a time, each with one statement at a time.
type ledgerSource struct {
	shared
	table
	tails    []*tail
	room     *room
	routes   routes
	lookback time.Duration
	grace    time.Duration
	now      func() time.Time
	seed     maphash.Seed
	server   server
	sweep    sweep
	lost     lost

	// known holds every label of this ledger, with its flow (nil: none takes
	// it), so that a series that was exported once stays, at zero.
	mu    sync.Mutex
	known map[string]*route

	wasFull, noTail bool
	suspects        suspectRows
}

func newLedgerSource(t table, flows []flow.Flow, lookback time.Duration, sh shared) *ledgerSource {
	s := &ledgerSource{
		shared: sh, table: t, room: &room{}, routes: newRoutes(t.name, flows), lookback: lookback,
		grace: holeGrace, now: time.Now, seed: maphash.MakeSeed(), known: map[string]*route{},
		server: server{ask: t.vitals}, lost: newLost(maxLost),
	}
	s.room.left.Store(maxWatched)
	waiting := waitingPhases(t.outbox)
	for i, sh := range t.shards {
		s.tails = append(s.tails, &tail{shard: sh, source: s, watch: newWatch(i, time.Now(), s.room, waiting)})
	}
	s.sweep.source = s
	return s
}

// runOnce reads what is new in every shard and the open records that are due,
// then a little of the table's past. A shard that fails does not keep the others
// from being read, but the gauges of the ledger are complete or absent.
func (s *ledgerSource) runOnce(ctx context.Context) (result, error) {
	b := newBudget(ctx)
	s.server.look(ctx, s.now())
	s.eachTail(func(t *tail) { t.err = t.cycle(ctx, b) })
	behind, full := false, false
	var failures []error
	for _, t := range s.tails {
		if errors.Is(t.err, ledger.ErrNoTail) {
			return s.withoutTail(t.err), nil
		}
		if t.err != nil {
			failures = append(failures, t.err)
		}
		behind, full = behind || t.behind, full || t.full
	}
	if len(failures) == 0 && !behind {
		s.sweep.cycle(ctx, b)
	}
	for _, t := range s.tails {
		t.watch.pass(s.now(), s.lookback)
	}
	s.publish(behind)
	s.warnWhenFull(full)
	if err := firstOf(failures); err != nil {
		return result{}, err
	}
	s.noTail = false
	s.startSeries()
	return result{metrics: s.gauges(behind), more: behind}, nil
}

// eachTail calls do for every shard, several at a time, and waits for all.
func (s *ledgerSource) eachTail(do func(*tail)) {
	if len(s.tails) == 1 {
		do(s.tails[0])
		return
	}
	var wg sync.WaitGroup
	// One connection is left to look-ups.
	slots := make(chan struct{}, max(s.atOnce-1, 1))
	for _, t := range s.tails {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(t)
		})
	}
	wg.Wait()
}

// withoutTail is how a table without an integer primary key is treated: it can
// be read, but not followed, so it is up and has no metrics.
func (s *ledgerSource) withoutTail(reason error) result {
	if !s.noTail {
		s.log.Warn("ledger cannot be followed, so it has no record metrics", "ledger", s.name, "reason", reason)
	}
	s.noTail = true
	return result{}
}

func (s *ledgerSource) warnWhenFull(full bool) {
	if full && !s.wasFull {
		s.log.Warn("too many open records; further ones are not followed", "ledger", s.name, "watched", s.watched())
	}
	s.wasFull = full
}

// startSeries exports the configured biz_types from the first good cycle on.
func (s *ledgerSource) startSeries() {
	s.sums.startLedger(s.name)
	for bizType := range s.routes.named {
		s.label(bizType)
	}
}

// label returns the label and the flow of a biz_type and makes its series.
func (s *ledgerSource) label(bizType string) groupKey {
	key := groupKey{s.labels.of(bizType), s.routes.of(bizType)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[key.label]; !ok || (known == nil && key.route != nil) {
		s.known[key.label] = key.route
		s.sums.vanished.start(s.name, key.label)
		if !s.outbox {
			s.sums.startType(s.name, key.label, key.route)
		}
	}
	return key
}

// watched is how many open records are followed.
func (s *ledgerSource) watched() (n int) {
	for _, t := range s.tails {
		n += t.watch.size
	}
	return n
}

func (s *ledgerSource) count(b ledger.Batch) {
	s.sums.rowsRead.WithLabelValues(s.name).Add(float64(len(b.Rows)))
}

func (s *ledgerSource) burned(ids uint64) {
	s.sums.burned.WithLabelValues(s.name).Add(float64(ids))
}
