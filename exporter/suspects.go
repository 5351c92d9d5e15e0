package exporter

import (
	"context"
	"slices"
	"sync"
	"time"

	"idemscope/internal/flow"
)

const (
	// maxSuspects is how many open records of one ledger are judged at a time.
	maxSuspects = 2000
	// maxTwins is how many records with a key that was seen before are judged.
	maxTwins = 200
	// twinSlots bounds the keys that are remembered to find twins.
	twinSlots = 1 << 17
	// failedPatience is how long a failed record may wait for its retry.
	failedPatience = 30 * time.Second
	// agelessPatience is how long a record in processing may stand whose age
	// the table does not tell, or puts into the future.
	agelessPatience = 10 * time.Second
)

// suspectRows are the records of one ledger that may be findings, by place alone:
// whoever judges one reads its key from the table. The ledger's loop writes
// them, the collector of findings reads them.
type suspectRows struct {
	mu sync.Mutex
	// read is false until a cycle of the ledger has ended; behind: that one
	// stopped before the end of the table; swept: its past was read as well.
	read, behind, swept bool
	open                []place
	// hasty: there is no second reading, so records without an age are not
	// waited for. Set before the first cycle.
	hasty bool
	// total counts the open ones, also those beyond maxSuspects.
	total int
	twins twins
}

// publish hands the suspects over at the end of a cycle.
func (s *ledgerSource) publish(behind bool) {
	open, total := s.oldest(s.now(), maxSuspects)
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	s.suspects.open, s.suspects.total = open, total
	s.suspects.read, s.suspects.behind, s.suspects.swept = true, behind, s.sweep.passes > 0
}

// met notes a record that is seen for the first time, by what tells its key.
func (s *suspectRows) met(at place, print uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twins.met(at, print)
}

// last returns what is known now. beyond counts open suspects that are not listed.
func (s *suspectRows) last() (places []place, beyond int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.open, s.twins.list), s.total - len(s.open)
}

// standing reports whether a cycle has ended, whether there is more to read, and
// whether what is older than the lookback was read once.
func (s *suspectRows) standing() (read, behind, swept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, s.behind, s.swept
}

// twins are records whose key stood in another row before: where a unique key
// is missing, or shards do not share one, both may have completed. One slot per
// hash keeps the memory constant; a key that others pushed out is forgotten.
type twins struct {
	slots []uint64
	list  []place
}

func (t *twins) met(at place, print uint64) {
	if t.slots == nil {
		t.slots = make([]uint64, twinSlots)
	}
	slot := &t.slots[print%twinSlots]
	if *slot == print && !slices.Contains(t.list, at) {
		if len(t.list) == maxTwins {
			t.list = slices.Delete(t.list, 0, 1)
		}
		t.list = append(t.list, at)
	}
	*slot = print
}

// suspect reports whether the record may be a finding. One that no flow takes
// cannot be judged.
func (o *open) suspect(now time.Time, hasty bool) bool {
	switch {
	case o.route == nil:
		return false
	case o.phase == flow.Processing && o.aged:
		return o.age(now) > o.route.staleAfter
	case o.phase == flow.Processing:
		return hasty || o.age(now) > agelessPatience
	case o.phase == flow.Failed:
		return o.age(now) > failedPatience
	}
	return o.phase == flow.Unmapped
}

// oldest lists the open records that may be findings, those that have been
// silent longest first and at most limit of them; total counts all.
func (s *ledgerSource) oldest(now time.Time, limit int) (oldest []place, total int) {
	type candidate struct {
		at   place
		sign time.Time
	}
	var found []candidate
	// youngest is the last one that is kept, once there are enough.
	var youngest time.Time
	keep := func() {
		slices.SortFunc(found, func(a, b candidate) int { return a.sign.Compare(b.sign) })
		if len(found) >= limit {
			found = found[:limit]
			youngest = found[limit-1].sign
		}
	}
	for _, t := range s.tails {
		for at, o := range t.watch.all() {
			if !o.suspect(now, s.suspects.hasty) {
				continue
			}
			if total++; !youngest.IsZero() && !o.sign.Before(youngest) {
				continue
			}
			if found = append(found, candidate{at, o.sign}); len(found) == 2*limit {
				keep()
			}
		}
	}
	keep()
	for _, c := range found {
		oldest = append(oldest, c.at)
	}
	return oldest, total
}

// key reads whose record stands at a place and in which flow. ok is false when
// it is gone, or no flow takes it.
func (s *ledgerSource) key(ctx context.Context, at place) (p flow.Place, ok bool, err error) {
	batch, err := s.tails[at.shard].shard.ByID(ctx, []uint64{at.id})
	if err != nil || len(batch.Rows) == 0 {
		return flow.Place{}, false, err
	}
	s.count(batch)
	row := batch.Rows[0]
	to := s.routes.of(row.BizType)
	if to == nil {
		return flow.Place{}, false, nil
	}
	return flow.Place{Flow: to.flow, Key: flow.Key{BizType: row.BizType, BizID: row.BizID}}, true, nil
}
