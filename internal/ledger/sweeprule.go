package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"idemscope/internal/flow"
)

// Kind is why a row goes or stays.
type Kind string

// The kinds of rows, as a cleanup sees them.
const (
	// Candidate: completed, and every time of the row lies before the cutoff.
	Candidate Kind = "candidate"
	// TooYoung: completed, and changed at or after the cutoff.
	TooYoung Kind = "too_young"
	// InProcessing, NeverStarted and HasFailed are open: a person decides on them.
	InProcessing Kind = "processing"
	NeverStarted Kind = "not_started"
	HasFailed    Kind = "failed"
	// NoMeaning: the status is NULL or a word that the mapping does not know.
	NoMeaning Kind = "unmapped"
	// InFuture: completed, with a time after the database's clock.
	InFuture Kind = "future"
	// Unreadable: completed, and the time of the last change is NULL, zero or no date.
	Unreadable Kind = "unreadable_time"
)

// Kinds lists every kind in the order in which they are told to people.
var Kinds = []Kind{Candidate, TooYoung, InProcessing, NeverStarted, HasFailed, NoMeaning, InFuture, Unreadable}

// rule tells in SQL which rows of a table may go, so that the very statement
// that deletes a row judges it.
type rule struct {
	layout *layout
	cutoff time.Time
}

// times are the mapped time columns. The first is that of the last change.
func (l *layout) times() []*column {
	all := []*column{l.updated, l.completed, l.created}
	return slices.DeleteFunc(all, func(c *column) bool { return c == nil })
}

// candidate is the condition under which a row may go: its status means
// completed, its last change lies before the cutoff, and so does every other
// time that it has.
func (r rule) candidate(put writer) string {
	parts := []string{}
	if s := r.layout.status; s != nil {
		parts = append(parts, r.layout.hasPhase(flow.Completed, put))
	}
	for i, c := range r.layout.times() {
		before := r.layout.readable(c) + " AND " + r.layout.before(c, r.cutoff, put)
		// Of a NOT NULL column, IS NULL would also be true for a zero date.
		if i > 0 && c.nullable {
			before = fmt.Sprintf("(%s IS NULL OR (%s))", quote(c.name), before)
		}
		parts = append(parts, before)
	}
	return strings.Join(parts, " AND ")
}

// kind is an expression that names the kind of a row at the time now.
func (r rule) kind(now time.Time, put writer) string {
	var b strings.Builder
	b.WriteString("CASE")
	when := func(condition string, kind Kind) {
		if condition != "" {
			fmt.Fprintf(&b, " WHEN %s THEN '%s'", condition, kind)
		}
	}
	when(r.candidate(put), Candidate)
	if r.layout.status != nil {
		when(r.layout.hasPhase(flow.Processing, put), InProcessing)
		when(r.layout.hasPhase(flow.NotStarted, put), NeverStarted)
		when(r.layout.hasPhase(flow.Failed, put), HasFailed)
		when(fmt.Sprintf("COALESCE(NOT (%s), TRUE)", r.layout.hasPhase(flow.Completed, put)), NoMeaning)
	}
	for i, c := range r.layout.times() {
		unreadable := fmt.Sprintf("NOT COALESCE(%s, FALSE)", r.layout.readable(c))
		if i > 0 && c.nullable {
			unreadable = fmt.Sprintf("(%s IS NOT NULL AND %s)", quote(c.name), unreadable)
		}
		when(unreadable, Unreadable)
	}
	for _, c := range r.layout.times() {
		when(r.layout.after(c, now, put), InFuture)
	}
	fmt.Fprintf(&b, " ELSE '%s' END", TooYoung)
	return b.String()
}

// hasPhase is the condition that the status means the phase. Words are compared
// byte by byte, as the mapping does; empty when no word has that phase, or FALSE
// for completed.
func (l *layout) hasPhase(phase flow.Phase, put writer) string {
	var words []string
	for _, word := range l.mapping.WordsOf(phase) {
		if !l.status.integer() {
			words = append(words, put(operand{word, true}))
		} else if whole(word) {
			words = append(words, word)
		}
	}
	switch {
	case len(words) == 0 && phase == flow.Completed:
		return "FALSE"
	case len(words) == 0:
		return ""
	}
	return fmt.Sprintf("%s IN (%s)", l.statusBytes(), strings.Join(words, ", "))
}

// statusBytes is the stored status, free of collation and padding.
func (l *layout) statusBytes() string {
	switch {
	case l.status.integer():
		return quote(l.status.name)
	case l.status.binary():
		return fmt.Sprintf("CAST(%s AS BINARY)", quote(l.status.name))
	}
	return fmt.Sprintf("CAST(CONVERT(%s USING utf8mb4) AS BINARY)", l.status.selected())
}

// whole reports whether word is how an integer column's value arrives as text.
func whole(word string) bool {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return strconv.FormatInt(n, 10) == word
	}
	n, err := strconv.ParseUint(word, 10, 64)
	return err == nil && strconv.FormatUint(n, 10) == word
}

// readable is the condition that a time column holds a time: no zero, and a day
// that its month has. It is NULL for NULL.
func (l *layout) readable(c *column) string {
	name := quote(c.name)
	switch {
	case c.integer():
		return name + " > 0"
	case c.kind == "timestamp":
		return name + " >= '1970-01-01 00:00:01'"
	}
	// Most days are in every month: the last day of the month is looked up for the others alone.
	return fmt.Sprintf("(%[1]s >= '1970-01-02' AND (DAYOFMONTH(%[1]s) BETWEEN 1 AND 28 OR DAYOFMONTH(%[1]s) BETWEEN 29 AND DAYOFMONTH(LAST_DAY(%[1]s))))", name)
}

// Integers count seconds, milliseconds or microseconds since 1970, told apart by
// their size as parseEpoch does.
const (
	firstMillisecond = 100_000_000_000
	firstMicrosecond = 100_000_000_000_000
)

// before is the condition that a column, when it is readable, lies before t in
// every way in which it can be read.
func (l *layout) before(c *column, t time.Time, put writer) string {
	name := quote(c.name)
	if c.integer() {
		return fmt.Sprintf("(%[1]s < %[2]d OR (%[1]s >= %[3]d AND %[1]s < %[4]d) OR (%[1]s >= %[5]d AND %[1]s < %[6]d))",
			name, t.Unix(), int64(firstMillisecond), t.UnixMilli(), int64(firstMicrosecond), t.UnixMicro())
	}
	return name + " < " + put(operand{value: l.latestWall(c, t, false)})
}

// after is the condition that a column lies after t in every way in which it can
// be read.
func (l *layout) after(c *column, t time.Time, put writer) string {
	name := quote(c.name)
	if c.integer() {
		return fmt.Sprintf("((%[1]s > %[2]d AND %[1]s < %[3]d) OR (%[1]s > %[4]d AND %[1]s < %[5]d) OR %[1]s > %[6]d)",
			name, t.Unix(), int64(firstMillisecond), t.UnixMilli(), int64(firstMicrosecond), t.UnixMicro())
	}
	return name + " > " + put(operand{value: l.latestWall(c, t, true)})
}

// latestWall is what the application's clocks show at t. Around a change of the
// offset, when one local time may stand for two instants or for none, it is what
// they show by the lowest offset of a day before and after (the highest for
// later): then no reading of an earlier local time lies after t.
func (l *layout) latestWall(c *column, t time.Time, later bool) string {
	if c.kind == "timestamp" {
		return t.UTC().Format(time.DateTime)
	}
	_, offset := t.In(l.zone).Zone()
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, other := t.Add(near).In(l.zone).Zone()
		if later {
			offset = max(offset, other)
		} else {
			offset = min(offset, other)
		}
	}
	wall := t.UTC().Add(time.Duration(offset) * time.Second)
	if c.kind == "date" {
		return wall.Format(time.DateOnly)
	}
	return wall.Format(time.DateTime)
}
