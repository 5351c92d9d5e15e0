package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"
)

// SweepTable is one table of a ledger that may be cleaned, with the table into
// which its rows are archived, if any. All its methods only read.
type SweepTable struct {
	shard *Shard
	// archive is nil when rows go to no table.
	archive *table
	// files is the directory for the rows; empty when they go to no file.
	files string
}

// SweepTables prepares the tables of the ledger for cleaning, one for each
// shard. archive names the table for the rows, with as many shards as the ledger
// has; empty means that rows are deleted. Error: ErrNeverCleaned, or an archive
// that cannot be one, worded for the configuration.
func (l *Ledger) SweepTables(archive string) ([]*SweepTable, error) {
	if l.mapping.preset == "state_machine" || l.mapping.Outbox() {
		return nil, ErrNeverCleaned
	}
	tables := make([]*SweepTable, len(l.shards))
	for i, s := range l.shards {
		tables[i] = &SweepTable{shard: s}
	}
	if archive == "" {
		return tables, nil
	}
	archives, err := parseTables(archive, l.server.database)
	if err != nil {
		return nil, err
	}
	if len(archives) != len(tables) {
		return nil, fmt.Errorf("table: %q stands for %d tables, but the ledger has %d; each needs its own, because they may use the same ids", archive, len(archives), len(tables))
	}
	for i := range archives {
		for _, s := range l.shards {
			if strings.EqualFold(s.table.String(), archives[i].String()) {
				return nil, fmt.Errorf("table: %s is a table of the ledger itself; name another one", archives[i])
			}
		}
		tables[i].archive = &archives[i]
	}
	return tables, nil
}

// Name is "database.table".
func (t *SweepTable) Name() string { return t.shard.Name() }

// IntoFiles lets the rows go to files in the directory, through a Keeper.
func (t *SweepTable) IntoFiles(directory string) { t.files = directory }

// Archive is "database.table" or the directory of the files; empty when rows are
// deleted for good.
func (t *SweepTable) Archive() string {
	if t.archive == nil {
		return t.files
	}
	return t.archive.String()
}

// Server is what the configuration calls the server.
func (t *SweepTable) Server() string { return t.shard.server.name }

// Range is the ids above After, up to and with To.
type Range struct{ After, To uint64 }

// Bounds are where in a table a cleanup looks.
type Bounds struct {
	// First and Top are the lowest and the highest id; 0 in an empty table.
	First, Top uint64
	// Last is the highest id to visit, below Top: the row with the highest id
	// never goes, because some servers would give its id out again. Below First
	// when there is nothing to visit.
	Last uint64
	// ByTime: the ids could be told apart by the time of creation.
	ByTime bool
}

// Bounds finds where rows were created before the cutoff, by a binary search as
// far as ids rise with time. Error: ErrNoTail, or what Explain words.
func (t *SweepTable) Bounds(ctx context.Context, cutoff time.Time) (b Bounds, err error) {
	err = t.shard.tail(ctx, "find the old rows of", func(l *layout) error {
		if b.First, err = t.shard.edge(ctx, l, "ASC"); err != nil {
			return err
		}
		if b.Top, err = t.shard.edge(ctx, l, "DESC"); err != nil || b.Top == 0 {
			return err
		}
		b.Last = b.Top - 1
		if l.created == nil {
			return nil
		}
		b.ByTime = true
		since, err := t.shard.bisect(ctx, l, cutoff)
		b.Last = min(b.Last, max(since, 1)-1)
		return err
	})
	return b, err
}

// Tally is how many rows of each kind there are.
type Tally map[Kind]int64

// Add adds the rows of other.
func (t Tally) Add(other Tally) {
	for kind, n := range other {
		t[kind] += n
	}
}

// Total is the number of all rows.
func (t Tally) Total() (n int64) {
	for _, rows := range t {
		n += rows
	}
	return n
}

// Count tells the kinds of the next rows in within, at most limit of them (1 to
// MaxBatch), and which ids those were. seen.To is within.To when no row is left.
// Error: ErrNoTail, or what Explain words.
func (t *SweepTable) Count(ctx context.Context, within Range, limit int, cutoff time.Time) (tally Tally, seen Range, err error) {
	limit = min(max(limit, 1), MaxBatch)
	err = t.shard.tail(ctx, "count the rows of", func(l *layout) error {
		var h head
		err := h.ask(ctx, t.shard.server)
		if err != nil {
			return err
		}
		rows, err := rule{l, cutoff}.read(ctx, t.shard.server, within, limit, h.now())
		tally, seen = rows.tally, rows.Range
		return err
	})
	return tally, seen, err
}

// scanner runs one reading statement: a Server, or the session of a sweep.
type scanner interface {
	scan(ctx context.Context, q statement, dest []any, each func()) error
}

// rows is where a table's rows are read in the order of their ids.
func (l *layout) rows() string {
	return fmt.Sprintf("%s FORCE INDEX (%s)", l.schema.table.quoted(), quote(l.keyIndex))
}

// next is where the next limit rows are. Counting rows, not ids, keeps a batch
// small behind ranges in which most ids are gone.
func (l *layout) next(ctx context.Context, on scanner, within Range, limit int) (Range, error) {
	q := statement{
		text: fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s > ? AND %[1]s <= ? ORDER BY %[1]s LIMIT 1 OFFSET %[3]d", quote(l.key.name), l.rows(), limit-1),
		args: []any{within.After, within.To},
	}
	found := within
	var to sql.NullString
	err := on.scan(ctx, q, []any{&to}, func() { found.To = parseID(to.String) })
	return found, err
}

// look is what must be known before a few rows are touched.
type look struct {
	// top is the highest id of the table.
	top uint64
	// due: a row of the range may go.
	due bool
	now time.Time
}

// look reads it in one statement. Error: ErrReadOnly, or what Explain words.
func (r rule) look(ctx context.Context, on scanner, in Range) (look, error) {
	key, from := quote(r.layout.key.name), r.layout.rows()
	var args []any
	q := statement{text: fmt.Sprintf("SELECT %s, (SELECT MAX(%[2]s) FROM %[3]s), EXISTS (SELECT 1 FROM %[3]s WHERE %[2]s > %[4]d AND %[2]s <= %[5]d AND %[6]s)",
		headSQL, key, from, in.After, in.To, r.candidate(bind(&args)))}
	q.args = args
	var h head
	var top sql.NullString
	var due bool
	err := on.scan(ctx, q, append(h.dest(), &top, &due), func() {})
	if err == nil && h.isReadOnly() {
		err = ErrReadOnly
	}
	return look{top: parseID(top.String), due: due, now: h.now()}, err
}

// reading is what rows of a range are.
type reading struct {
	Range
	tally Tally
	// first is the id of the first candidate; 0 when there is none.
	first uint64
}

// read tells what the next rows are, at most limit of them. They are counted here:
// grouping would cost the server a temporary table for each batch.
func (r rule) read(ctx context.Context, on scanner, within Range, limit int, now time.Time) (reading, error) {
	var args []any
	q := fmt.Sprintf("SELECT %[1]s, %[2]s FROM %[3]s WHERE %[1]s > %[4]d AND %[1]s <= %[5]d ORDER BY %[1]s LIMIT %[6]d",
		quote(r.layout.key.name), r.kind(now, bind(&args)), r.layout.rows(), within.After, within.To, limit)
	var id, kind string
	n, rows := 0, reading{Range: within, tally: Tally{}}
	err := on.scan(ctx, statement{text: q, args: args}, []any{&id, &kind}, func() {
		n++
		rows.tally[Kind(kind)]++
		if Kind(kind) == Candidate && rows.first == 0 {
			rows.first = parseID(id)
		}
	})
	if n == limit {
		rows.To = parseID(id)
	}
	return rows, err
}

// tally tells the kinds of all rows in a range.
func (r rule) tally(ctx context.Context, on scanner, in Range, now time.Time) (Tally, error) {
	rows, err := r.read(ctx, on, in, math.MaxInt32, now)
	return rows.tally, err
}

// SQL is what a sweep will run, batch by batch, to be read by people. Error:
// ErrNoTail, or what Explain words.
func (t *SweepTable) SQL(ctx context.Context, in Range, cutoff time.Time) (statements []string, err error) {
	err = t.shard.tail(ctx, "write the statements for", func(l *layout) error {
		r := rule{l, cutoff}
		if t.Archive() == "" {
			statements = []string{r.deleteSQL(in, false, literal)}
			return nil
		}
		columns, err := describe(ctx, t.shard.server, t.shard.table)
		if t.files != "" {
			statements = []string{r.readSQL(in, columns, literal), r.deleteSQL(in, false, literal)}
			return err
		}
		statements = []string{r.copySQL(in, *t.archive, stored(columns), literal), r.deleteSQL(in, false, literal)}
		return err
	})
	return statements, err
}

// deleteSQL deletes the candidates of a range. Where the binary log keeps
// statements, every server must delete in the same order.
func (r rule) deleteSQL(in Range, ordered bool, put writer) string {
	key := quote(r.layout.key.name)
	q := fmt.Sprintf("DELETE FROM %s WHERE %s > %d AND %s <= %d AND %s", r.layout.schema.table.quoted(), key, in.After, key, in.To, r.candidate(put))
	if ordered {
		q += " ORDER BY " + key
	}
	return q
}
