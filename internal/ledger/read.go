package ledger

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"idemscope/internal/flow"
)

// maxResult is how many characters of a stored result are read.
const maxResult = 4096

// selection is the list of columns of one SELECT and the place into which each
// row of it is read.
type selection struct {
	layout *layout
	exprs  []string
	dest   []any

	head
	key, bizType, status, created, updated, completed, archived, result, attempts, worker sql.NullString
	id                                                                                    []sql.NullString
}

// selection makes the list: the key, the status and the times; with extras also
// the columns that only a person reads.
func (l *layout) selection(extras bool) *selection {
	s := &selection{layout: l, exprs: []string{headSQL}, id: make([]sql.NullString, len(l.id))}
	s.dest = s.head.dest()
	for i, c := range l.id {
		s.add(c, &s.id[i])
	}
	s.add(l.key, &s.key)
	s.add(l.bizType, &s.bizType)
	s.add(l.status, &s.status)
	s.add(l.created, &s.created)
	s.add(l.updated, &s.updated)
	s.add(l.completed, &s.completed)
	s.add(l.archived, &s.archived)
	if extras {
		s.add(l.attempts, &s.attempts)
		s.add(l.worker, &s.worker)
		if l.result != nil {
			s.exprs = append(s.exprs, fmt.Sprintf("LEFT(%s, %d)", quote(l.result.name), maxResult))
			s.dest = append(s.dest, &s.result)
		}
	}
	return s
}

func (s *selection) add(c *column, place *sql.NullString) {
	if c == nil {
		return
	}
	s.exprs = append(s.exprs, c.selected())
	s.dest = append(s.dest, place)
}

// from writes the beginning of the statement. The index is forced, because an
// optimizer with old statistics may prefer to read the whole table.
func (s *selection) from(index string) string {
	return fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (%s)", strings.Join(s.exprs, ", "), s.layout.schema.table.quoted(), quote(index))
}

// row makes a Row of what was read last.
func (s *selection) row() Row {
	l := s.layout
	r := Row{
		Table: l.schema.table.String(), ID: s.key.String, BizType: l.mapping.bizType, BizID: s.bizID(),
		Status: present, Phase: flow.Completed,
		Created: l.stamp(l.created, s.created), Updated: l.stamp(l.updated, s.updated), Completed: l.stamp(l.completed, s.completed),
		Archived: l.stamp(l.archived, s.archived),
		Result:   optional(s.result), Attempts: optional(s.attempts), Worker: optional(s.worker),
	}
	if l.bizType != nil {
		r.BizType = s.bizType.String
	}
	if l.status != nil {
		r.Status, r.Phase = s.status.String, flow.Unmapped
		if s.status.Valid {
			r.Phase = l.mapping.PhaseOf(r.Status)
		}
	}
	if l.mapping.id.IsZero() {
		r.IDFills = l.id[0].filled(r.BizID)
	}
	r.reckon(s.now())
	return r
}

func (s *selection) bizID() string {
	l := s.layout
	if l.mapping.id.IsZero() {
		return s.id[0].String
	}
	values := map[string]string{}
	for i, name := range l.mapping.id.Names() {
		values[name] = s.id[i].String
	}
	return l.mapping.id.Render(values)
}

func (l *layout) stamp(c *column, v sql.NullString) Stamp {
	switch {
	case c == nil:
		return Stamp{}
	case !v.Valid:
		return Stamp{State: StampNull}
	}
	return stampOf(c, v.String, l.zone)
}

func optional(v sql.NullString) *string {
	if !v.Valid {
		return nil
	}
	text := v.String
	return &text
}

// reckon computes age and run time. No figure rests on a stamp that is not one instant.
func (r *Row) reckon(now time.Time) {
	last := r.LastSign()
	if last.State != StampOK {
		return
	}
	r.Age, r.AgeKnown = now.Sub(last.Time), true
	ended := r.Phase == flow.Completed || r.Phase == flow.Failed
	// A row whose only stamp is Created shows when it began, not how long it took.
	apart := r.Updated.set() || r.Completed.set()
	if ended && apart && r.Created.State == StampOK && !last.Time.Before(r.Created.Time) {
		r.RunTime, r.RunTimeKnown = last.Time.Sub(r.Created.Time), true
	}
}

func (s Stamp) set() bool { return s.State != StampMissing && s.State != StampNull }

// exactFirst puts the rows in order: exact ones first, else as they came.
func exactFirst(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(rank(a), rank(b)) })
}

func rank(r Row) int {
	if r.Exact {
		return 0
	}
	return 1
}
