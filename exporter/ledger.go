package exporter

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// spareChunks is how many chunks of the tail one cycle reads beyond the
	// first one of each shard; the next cycle goes on from there.
	spareChunks = 10
	// rereadChunks is how many chunks of open records one cycle reads again.
	rereadChunks = 40
	// holeGrace is how long a hole may be filled by a late commit before its
	// ids count as burned.
	holeGrace = time.Minute
)

// shard is what the exporter asks of one table of a ledger. *ledger.Shard
// implements it.
type shard interface {
	Name() string
	// MaxID returns 0 for an empty table.
	MaxID(ctx context.Context) (uint64, error)
	FirstIDSince(ctx context.Context, t time.Time) (uint64, error)
	After(ctx context.Context, id uint64, limit int) (ledger.Batch, error)
	ByID(ctx context.Context, ids []uint64) (ledger.Batch, error)
}

// shared is what all sources use together.
type shared struct {
	labels *labels
	sums   *sums
	descs  *descs
	log    *slog.Logger
}

// ledgerSource follows the new and the open rows of one ledger, shard by shard,
// with one statement at a time.
type ledgerSource struct {
	shared
	name     string
	tails    []*tail
	watch    *watch
	routes   routes
	lookback time.Duration
	grace    time.Duration
	now      func() time.Time
	seed     maphash.Seed

	// known holds every label of this ledger, with its flow (nil: none takes
	// it), so that a series that was exported once stays, at zero.
	known map[string]*route
	// full: the watch set refused a record in the last cycle.
	full, wasFull bool
	noTail        bool
}

func newLedgerSource(name string, shards []shard, flows []flow.Flow, lookback time.Duration, sh shared) *ledgerSource {
	s := &ledgerSource{
		shared: sh, name: name, watch: newWatch(maxWatched), routes: newRoutes(name, flows), lookback: lookback,
		grace: holeGrace, now: time.Now, seed: maphash.MakeSeed(), known: map[string]*route{},
	}
	for i, sh := range shards {
		s.tails = append(s.tails, &tail{shard: sh, index: i, source: s})
	}
	return s
}

// runOnce reads what is new in every shard, then the open records that are due.
// A shard that fails does not keep the others from being read, but the gauges
// of the ledger are complete or absent.
func (s *ledgerSource) runOnce(ctx context.Context) (result, error) {
	s.full = false
	spare := spareChunks
	var failures []error
	behind := false
	for _, t := range s.tails {
		err := t.cycle(ctx, &spare)
		if errors.Is(err, ledger.ErrNoTail) {
			return s.withoutTail(err), nil
		}
		if t.failed = err != nil; t.failed {
			failures = append(failures, err)
		}
		behind = behind || t.behind
	}
	if err := s.reread(ctx); err != nil {
		failures = append(failures, err)
	}
	s.watch.leave(s.now(), s.lookback)
	s.warnWhenFull()
	if err := firstOf(failures); err != nil {
		return result{}, err
	}
	s.noTail = false
	s.startSeries()
	return result{metrics: s.gauges(behind), more: behind}, nil
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

func (s *ledgerSource) warnWhenFull() {
	if s.full && !s.wasFull {
		s.log.Warn("too many open records; further ones are not followed", "ledger", s.name, "watched", len(s.watch.open))
	}
	s.wasFull = s.full
}

// startSeries exports the configured biz_types from the first good cycle on.
func (s *ledgerSource) startSeries() {
	s.sums.startLedger(s.name)
	for bizType := range s.routes.named {
		s.label(bizType)
	}
}

// label returns the label and the flow of a biz_type and makes its series.
func (s *ledgerSource) label(bizType string) (string, *route) {
	label, to := s.labels.of(bizType), s.routes.of(bizType)
	if known, ok := s.known[label]; !ok || (known == nil && to != nil) {
		s.known[label] = to
		s.sums.startType(s.name, label, to)
	}
	return label, to
}

func (s *ledgerSource) gauges(behind bool) []prometheus.Metric {
	standings := s.watch.standings(s.now())
	caughtUp := 1.0
	if behind {
		caughtUp = 0
	}
	metrics := []prometheus.Metric{
		gauge(s.descs.caughtUp, caughtUp, s.name),
		gauge(s.descs.watched, float64(len(s.watch.open)), s.name),
	}
	for label, to := range s.known {
		standing := standings[label]
		metrics = append(metrics,
			gauge(s.descs.processing, float64(standing.processing), s.name, label),
			gauge(s.descs.oldest, standing.oldest.Seconds(), s.name, label))
		if to != nil {
			metrics = append(metrics, gauge(s.descs.stale, float64(standing.stale), s.name, label))
		}
	}
	return metrics
}

// reread reads the open records that are due. A row that is gone, or whose id
// belongs to another key now, leaves the watch set quietly.
func (s *ledgerSource) reread(ctx context.Context) error {
	due := s.watch.due(s.now(), rereadChunks*readChunk, func(shard int) bool { return !s.tails[shard].failed })
	for len(due) > 0 {
		n := 1
		for n < len(due) && n < readChunk && due[n].shard == due[0].shard {
			n++
		}
		if err := s.rereadChunk(ctx, s.tails[due[0].shard], due[:n]); err != nil {
			return err
		}
		due = due[n:]
	}
	return nil
}

func (s *ledgerSource) rereadChunk(ctx context.Context, t *tail, places []place) error {
	ids := make([]uint64, len(places))
	for i, at := range places {
		ids[i] = at.id
	}
	rows, err := t.byID(ctx, ids)
	if err != nil {
		return err
	}
	for _, at := range places {
		row, there := rows[at.id]
		o := s.watch.open[at]
		if !there || s.print(row) != o.print {
			delete(s.watch.open, at)
			continue
		}
		s.again(at, o, row)
	}
	return nil
}

// arrived takes a row that did not exist at the start.
func (s *ledgerSource) arrived(at place, row ledger.Row) {
	o := s.opened(row)
	s.sums.created.WithLabelValues(s.name, o.label).Inc()
	s.ended(o, row)
	s.follow(at, o, row)
}

// stood takes a row that existed at the start. It is history: nothing is
// counted, but an open row is followed from here on.
func (s *ledgerSource) stood(at place, row ledger.Row) {
	s.follow(at, s.opened(row), row)
}

// again takes a row that is already followed.
func (s *ledgerSource) again(at place, o *open, row ledger.Row) {
	if o.phase == flow.Failed && (row.Phase == flow.Processing || row.Phase == flow.Completed) {
		s.sums.retries.WithLabelValues(o.label).Inc()
	}
	if o.phase != row.Phase {
		s.ended(o, row)
	}
	s.follow(at, o, row)
}

// opened describes a row that is seen for the first time.
func (s *ledgerSource) opened(row ledger.Row) *open {
	label, to := s.label(row.BizType)
	return &open{print: s.print(row), label: label, route: to}
}

// ended counts the end of a run, once per change of the phase.
func (s *ledgerSource) ended(o *open, row ledger.Row) {
	switch row.Phase {
	case flow.Completed:
		s.sums.completed.WithLabelValues(s.name, o.label).Inc()
		if row.RunTimeKnown && row.RunTime >= 0 {
			s.sums.duration.WithLabelValues(s.name, o.label).Observe(row.RunTime.Seconds())
		}
	case flow.Failed:
		s.sums.failed.WithLabelValues(s.name, o.label).Inc()
	default:
		return
	}
	if r := o.route; r != nil && r.lockTTL > 0 && !o.retried && row.RunTimeKnown && row.RunTime >= r.lockTTL {
		s.sums.longer.WithLabelValues(r.flow, o.label).Inc()
	}
}

// follow keeps an open record in the watch set and lets a completed one go.
func (s *ledgerSource) follow(at place, o *open, row ledger.Row) {
	if row.Phase == flow.Completed {
		delete(s.watch.open, at)
		return
	}
	o.saw(row, s.now())
	if !s.watch.add(at, o) {
		s.sums.watchOverflow.WithLabelValues(s.name).Inc()
		s.full = true
	}
}

// print is what tells a record from another one with the same id.
func (s *ledgerSource) print(row ledger.Row) uint64 {
	return maphash.Comparable(s.seed, flow.Key{BizType: row.BizType, BizID: row.BizID})
}

// rowID is the row's primary key. A row without one cannot come from a tail.
func rowID(row ledger.Row) (uint64, bool) {
	id, err := strconv.ParseUint(row.ID, 10, 64)
	return id, err == nil
}

func (s *ledgerSource) count(b ledger.Batch) {
	s.sums.rowsRead.WithLabelValues(s.name).Add(float64(len(b.Rows)))
}

func (s *ledgerSource) burned(ids uint64) {
	s.sums.burned.WithLabelValues(s.name).Add(float64(ids))
}
