package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"idemscope/internal/flow"
)

const (
	// surveyRows is how many of its newest rows a table is judged by.
	surveyRows = 200
	// surveyFresh is how many of them tell what is written now.
	surveyFresh = 10
	// surveyOff is how far a stamp may be ahead because clocks differ, and
	// surveyAhead how far it can be because zones do.
	surveyOff, surveyAhead = 10 * time.Minute, 26 * time.Hour
	// surveyDay is the time over which the use of ids is measured.
	surveyDay = 24 * time.Hour
)

// Survey is what the schema and the newest rows of a ledger's tables show.
type Survey struct {
	// Problems are those of Check, with the SQL that mends them.
	Problems []Problem
	// Tables are in the order of the shards.
	Tables []TableSurvey
}

// TableSurvey is what one table shows.
type TableSurvey struct {
	// Database and Table name it.
	Database, Table string
	// Unread says why nothing else is known of the table; empty when it was read.
	Unread flow.Text
	// Hidden: the table or a column that is mapped does not exist, or the user
	// may not see it. Unread says what.
	Hidden bool
	// IDAlone: a unique key holds the biz_id without the biz_type.
	IDAlone bool
	// IDColumn is the column of the biz_id and IDWidth how many characters it
	// keeps; empty and 0 for an id of several columns or without such a limit.
	IDColumn string
	IDWidth  int
	// Recent is what the newest rows show; nil without an integer key to find them by.
	Recent *Recent
	// RecentWhy says why Recent is nil although there is such a key.
	RecentWhy flow.Text
}

// Name is "database.table".
func (t TableSurvey) Name() string { return table{t.Database, t.Table}.String() }

// Recent is what the newest rows of a table show.
type Recent struct {
	// Rows is how many were read, 200 at most. The other fields are zero without any.
	Rows int
	// DBNow is the database's clock when they were read.
	DBNow time.Time
	// Newest and Oldest are the ids at the two ends of those rows.
	Newest, Oldest uint64
	// Limit is the highest id that the column keeps, KeyType its type and KeyColumn its name.
	Limit              uint64
	KeyType, KeyColumn string
	// PerDay is how many ids the last day used. Valid only when PerDayKnown: it
	// is asked for only once half of the range is used.
	PerDay      uint64
	PerDayKnown bool
	// Filling is how many of the rows have a biz_id that fills its column;
	// SameLength: all ids have one length.
	Filling    int
	SameLength bool
	// Unmapped is how many rows have a status without a meaning, NoTime how many
	// have a date in a time column that does not exist.
	Unmapped, NoTime int
	// Types are the biz_types of the rows, each once.
	Types []string
	// Latest is the youngest time stamp of all of them that is not days ahead of
	// the database's clock. Zero when there is none.
	Latest time.Time
	// Ahead is how many of the Fresh newest rows have a stamp that is some minutes
	// or hours ahead of the database's clock.
	Ahead, Fresh int
	// Local: the stamps are local times, read in the configured zone.
	Local bool
	// WrittenAt is when the table was last written to, by the storage engine's
	// account and the database's clock; zero when it does not tell.
	WrittenAt time.Time
}

// Survey reads the schema of every shard anew, and the newest rows of each by
// their key: at most a few statements for each table, all of them bounded.
func (l *Ledger) Survey(ctx context.Context) Survey {
	found := make([][]problem, len(l.shards))
	layouts := make([]*layout, len(l.shards))
	tables := make([]TableSurvey, len(l.shards))
	probe := &collations{server: l.server, known: map[string]folding{}}
	l.eachShard(func(i int, s *Shard) {
		tables[i] = TableSurvey{Database: s.table.database, Table: s.table.name}
		sch, err := s.server.readSchema(ctx, s.table)
		if err != nil {
			tables[i].Unread = Explain(err)
			return
		}
		layout := resolve(s.mapping, sch, s.server.zone)
		layout.checkDeeper(ctx, probe)
		layouts[i], found[i] = layout, layout.problems
		s.survey(ctx, layout, &tables[i])
	})
	return Survey{Problems: l.mended(ctx, found, layouts), Tables: tables}
}

func (s *Shard) survey(ctx context.Context, l *layout, t *TableSurvey) {
	if err := l.unusable(); err != nil {
		t.Unread, t.Hidden = Explain(err), true
		return
	}
	t.IDAlone = l.idAlone
	if l.mapping.id.IsZero() {
		t.IDColumn, t.IDWidth = l.id[0].name, l.id[0].limit
	}
	if l.key == nil {
		return
	}
	recent, err := s.recent(ctx, l)
	if err != nil {
		t.RecentWhy = Explain(err)
		return
	}
	t.Recent = recent
}

// mended groups the problems as Check does, and adds the SQL for the first
// table of each.
func (l *Ledger) mended(ctx context.Context, found [][]problem, layouts []*layout) []Problem {
	problems := l.group(found)
	if len(problems) == 0 {
		return nil
	}
	var dialect Dialect
	if status, err := l.server.Ping(ctx); err == nil {
		dialect = status.Dialect
	}
	// In the order in which group has met them.
	seen := map[problem]bool{}
	n := 0
	for i, list := range found {
		for _, p := range list {
			if !seen[p] {
				seen[p] = true
				problems[n].SQL = layouts[i].remedy(p, dialect)
				n++
			}
		}
	}
	return problems
}

// recent reads the newest rows of a table that has a key.
func (s *Shard) recent(ctx context.Context, l *layout) (*Recent, error) {
	var at lastWrite
	if err := at.ask(ctx, s); err != nil {
		return nil, err
	}
	b, err := s.batch(ctx, l, fmt.Sprintf(">= ? ORDER BY %s DESC LIMIT %d", quote(l.key.name), surveyRows), 0)
	if err != nil {
		return nil, err
	}
	r := &Recent{Rows: len(b.Rows), DBNow: b.DBNow, Limit: l.key.highest(), KeyType: l.key.whole, KeyColumn: l.key.name, WrittenAt: at.time()}
	if r.Rows == 0 {
		return r, nil
	}
	r.Newest, r.Oldest = parseID(b.Rows[0].ID), parseID(b.Rows[r.Rows-1].ID)
	r.SameLength = true
	for i, row := range b.Rows {
		ahead := r.add(row, len(b.Rows[0].BizID))
		if i < surveyFresh {
			r.Fresh++
			if ahead {
				r.Ahead++
			}
		}
	}
	for _, c := range []*column{l.created, l.updated, l.completed} {
		r.Local = r.Local || c != nil && (c.kind == "datetime" || c.kind == "date")
	}
	if r.Newest > r.Limit/2 && l.created != nil {
		return r, s.useOfIDs(ctx, l, r)
	}
	return r, nil
}

// add counts one row, and reports whether it has a stamp in the future.
func (r *Recent) add(row Row, length int) (ahead bool) {
	if row.IDFills {
		r.Filling++
	}
	r.SameLength = r.SameLength && len(row.BizID) == length
	if !slices.Contains(r.Types, row.BizType) {
		r.Types = append(r.Types, row.BizType)
	}
	if row.Phase == flow.Unmapped {
		r.Unmapped++
	}
	stamps := []Stamp{row.Created, row.Updated, row.Completed}
	if slices.ContainsFunc(stamps, func(s Stamp) bool { return s.State == StampZero }) {
		r.NoTime++
	}
	for _, s := range stamps {
		if s.State != StampOK || s.Time.Sub(r.DBNow) > surveyAhead {
			continue // one broken row says nothing about all
		}
		ahead = ahead || s.Time.Sub(r.DBNow) > surveyOff
		if s.Time.After(r.Latest) {
			r.Latest = s.Time
		}
	}
	return ahead
}

// useOfIDs counts the ids of the last day. A table without a row that is older
// than that, or whose server does not answer in time, leaves it unknown.
func (s *Shard) useOfIDs(ctx context.Context, l *layout, r *Recent) error {
	lowest, err := s.edge(ctx, l, "ASC")
	if err != nil {
		return err
	}
	first, err := s.bisect(ctx, l, r.DBNow.Add(-surveyDay))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil:
		return err
	}
	if first > lowest && first <= r.Newest+1 {
		r.PerDay, r.PerDayKnown = r.Newest+1-first, true
	}
	return nil
}
