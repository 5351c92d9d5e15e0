package exporter

import (
	"math"

	"idemscope/internal/flow"
)

// differ tells what happened between two readings.
type differ struct {
	before, now reading
	// usable: the readings are one step apart. Else nothing is known of what was counted.
	usable bool
}

// point is what one step shows of one biz_type of a flow.
type point struct {
	seen
	// lost: the figure was known before, so that a sum without it would be too low.
	lost [lines]bool
}

// point compares the readings of one label.
func (d differ) point(f flow.Flow, label string) point {
	p := point{seen: unseen()}
	d.counted(&p, label)
	d.recorded(&p, f.Ledger, label)
	return p
}

// counted takes what consumers counted since. Counters that fell began anew, so
// that what was counted in between is not known. Those that never counted
// anything say nothing: nobody may be counting.
func (d differ) counted(p *point, label string) {
	was, before := d.before.counters.types[label]
	is, now := d.now.counters.types[label]
	before = before && was.any
	fresh := d.now.counters.newer(d.before.counters.pollState)
	if _, known := d.before.counters.types[label]; !d.usable || !fresh || !known || !now || !is.any || is.fell(was) {
		for _, l := range []line{lineConflicts, lineDedupStatus, lineDedupRecord, lineRetries, lineRunP99} {
			p.lost[l] = before
		}
		return
	}
	p.values[lineConflicts] = is.conflicts - was.conflicts
	p.values[lineDedupStatus] = is.dedupStatus - was.dedupStatus
	p.values[lineDedupRecord] = is.dedupRecord - was.dedupRecord
	p.values[lineRetries] = is.retries - was.retries
	p.runs, _ = is.runs.since(was.runs)
}

// recorded takes what the ledger showed. While its tail is not read to the end,
// its figures are too low, and what comes late belongs to no step.
func (d differ) recorded(p *point, ledger, label string) {
	was, is := d.before.ledgers[ledger], d.now.ledgers[ledger]
	if is.outbox {
		return
	}
	if n, ok := is.stale[label]; ok && is.up && is.caughtUp {
		p.values[lineStale] = n
	}
	p.lost[lineStale] = !is.up || !is.caughtUp
	retriesBefore, known := d.before.retries[label]
	if !d.usable || !is.newer(was.pollState) || !is.caughtUp || !was.up || !was.caughtUp {
		p.lost[lineLedgerRetries], p.lost[lineRecordP99] = known, known
		return
	}
	if retries, ok := d.now.retries[label]; ok && known && retries >= retriesBefore {
		p.values[lineLedgerRetries] = retries - retriesBefore
	}
	if before, ok := was.durations[label]; ok {
		p.records, _ = is.durations[label].since(before)
	}
}

// total adds up the points of a flow's types.
type total struct {
	sum   [lines]float64
	known [lines]bool
	lost  [lines]bool
	runs  spread
	ended spread
}

func (t *total) add(p point) {
	for i, v := range p.values {
		if !math.IsNaN(v) {
			t.sum[i] += v
			t.known[i] = true
		}
		t.lost[i] = t.lost[i] || p.lost[i]
	}
	t.runs, t.ended = t.runs.plus(p.runs), t.ended.plus(p.records)
}

// seen is the sum, unknown where a part of it was lost or nothing is known.
func (t *total) seen() seen {
	s := unseen()
	for i := range s.values {
		if t.known[i] && !t.lost[i] {
			s.values[i] = t.sum[i]
		}
	}
	if !t.lost[lineRunP99] {
		s.runs = t.runs
	}
	if !t.lost[lineRecordP99] {
		s.records = t.ended
	}
	return s
}
