package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"idemscope/internal/flow"
)

// maxRows is how many rows of one key are read from one shard.
const maxRows = 20

// Find looks one key up: every row that MySQL considers equal to it, in every
// shard. A shard that cannot be read makes the answer Unknown (Error when none
// can), never Absent. It reads through an index or not at all.
//
// Neighbours are looked for at the same time, and the archive afterwards; what
// goes wrong with either is said there and leaves the rest of the answer alone.
func (l *Ledger) Find(ctx context.Context, key flow.Key) Found {
	start := time.Now()
	f := Found{Observation: flow.Observation{Source: l.source}, Replica: l.server.replica}
	if constant, ok := l.mapping.BizType(); ok && key.BizType != constant {
		f.State = flow.Absent
		f.Coverage = []flow.Text{flow.T("this ledger holds only biz_type %s", "该账本只保存 biz_type %s", flow.Visible(constant))}
	} else {
		neighbours := l.askNear(ctx, key)
		l.merge(&f, l.ask(ctx, key))
		f.Archive = l.findArchived(ctx, key)
		f.takeNear(<-neighbours, key)
		l.tellLag(ctx, &f)
	}
	f.ReadAt = time.Now()
	f.Took = f.ReadAt.Sub(start)
	return f
}

// ask asks every shard for the key.
func (l *Ledger) ask(ctx context.Context, key flow.Key) []answer {
	answers := make([]answer, len(l.shards))
	l.eachShard(func(i int, s *Shard) { answers[i] = s.find(ctx, key) })
	return answers
}

// tellLag adds how far a replica is behind.
func (l *Ledger) tellLag(ctx context.Context, f *Found) {
	if !f.Replica || f.State == flow.Error {
		return
	}
	ctx, cancel := share(ctx, 1, 2)
	defer cancel()
	f.Lag, f.LagKnown = l.server.lagNow(ctx)
}

// answer is what one shard says about a key.
type answer struct {
	rows     []Row
	now      time.Time
	readOnly bool
	width    int
	tooLong  bool
	presence bool
	command  string
	coverage []flow.Text
	// unknown says what was not looked at; empty when all was.
	unknown flow.Text
	// unstorable: the columns' character set cannot hold the id.
	unstorable bool
	err        error
}

func (s *Shard) find(ctx context.Context, key flow.Key) answer {
	var a answer
	a.err = s.use(ctx, func(l *layout) error {
		a = answer{width: l.width(), presence: l.status == nil}
		return s.look(ctx, l, key, &a)
	})
	return a
}

// look asks one table for every way in which the key could be stored there.
func (s *Shard) look(ctx context.Context, l *layout, key flow.Key, a *answer) error {
	if l.lookup == nil {
		return l.lacks(ErrNoIndex, noLookup)
	}
	if a.unknown = l.unaskable(key); !a.unknown.Empty() {
		return nil
	}
	q := l.question(key)
	a.tooLong = q.tooLong
	a.describe(l, q)
	for _, w := range q.ways {
		err := s.lookWay(ctx, l, w, key, a)
		switch {
		case isNumber(err, errWrongValue):
			// MySQL 8 refuses to compare a date with what is no date: no row can have it.
		case isNumber(err, refusesCharacters...):
			a.unstorable = true
			a.unknown = flow.T("%s, and MySQL refuses to compare them: an insert of this id fails, or stores other characters",
				"%s，MySQL 拒绝比较：写入该 ID 会失败，或被存成其他字符", charset)
		case err != nil:
			return err
		}
	}
	if !a.now.IsZero() {
		return nil
	}
	var h head
	if err := h.ask(ctx, s.server); err != nil {
		return err
	}
	a.now, a.readOnly = h.now(), h.isReadOnly()
	return nil
}

// describe says what the question covers.
func (a *answer) describe(l *layout, q question) {
	if len(q.ways) == 0 {
		a.coverage = append(a.coverage, flow.T("the id does not fit the template %s, so no row can have it", "该 ID 与模板 %s 不符，不可能有对应的行", l.mapping.id))
	}
	if q.tooLong {
		a.coverage = append(a.coverage, flow.T("column %s keeps %d of this id: rows of the shortened id were looked for too",
			"列 %s 只能保存该 ID 的前 %d 位：同时查找了截断后的 ID", l.id[0].name, a.width))
	}
	if l.idAlone {
		a.coverage = append(a.coverage, flow.T("the unique key holds the id without the type: rows of other types with this id were looked for too",
			"唯一键只含 ID 而不含类型：同时查找了其他类型的同一 ID"))
	}
	if !q.all {
		a.unknown = flow.T("the id can be taken apart by %s in more than %d ways; the others were not looked for", "按模板 %s 拆分该 ID 的方式超过 %d 种，其余的没有查找", l.mapping.id, maxWays)
	}
}

func (s *Shard) lookWay(ctx context.Context, l *layout, w way, key flow.Key, a *answer) error {
	sel := l.selection(true)
	text := func(put writer) string {
		return fmt.Sprintf("%s WHERE %s LIMIT %d", sel.from(l.lookup.name), w.where(put), maxRows)
	}
	var bound statement
	bound.text = text(bind(&bound.args))
	a.addCommand(s, l, text(literal))
	read := 0
	err := s.server.scan(ctx, bound, sel.dest, func() {
		read++
		row := sel.row()
		row.Exact = row.BizType == key.BizType && row.BizID == key.BizID
		a.add(row)
		a.now, a.readOnly = sel.now(), sel.isReadOnly()
	})
	if err != nil {
		return fmt.Errorf("look up a key in %s: %w", s.table, err)
	}
	if read == maxRows {
		a.coverage = append(a.coverage, flow.T("%s: at least %d rows match; no more were read", "%s：至少有 %d 行匹配，没有再多读", s.Name(), maxRows))
	}
	return nil
}

// add takes a row, unless another way led to it already.
func (a *answer) add(row Row) {
	for _, r := range a.rows {
		if row.ID != "" && r.ID == row.ID {
			return
		}
	}
	a.rows = append(a.rows, row)
}

// addCommand notes the statement for people.
func (a *answer) addCommand(s *Shard, l *layout, text string) {
	if a.command == "" {
		a.command = fmt.Sprintf("-- %s (%s), database %s\n", s.server.name, s.server.place, s.table.database)
		if l.hasTimestamp() {
			a.command += "SET time_zone = '+00:00';\n"
		}
	} else {
		a.command += "\n"
	}
	a.command += text + ";"
}

// hasTimestamp reports whether a stamp depends on the session's time zone.
func (l *layout) hasTimestamp() bool {
	for _, c := range []*column{l.created, l.updated, l.completed, l.archived} {
		if c != nil && c.kind == "timestamp" {
			return true
		}
	}
	return false
}

// merge makes one answer of all shards'.
func (l *Ledger) merge(f *Found, answers []answer) {
	var reasons []flow.Text
	failed := 0
	for i, a := range answers {
		switch {
		case a.err != nil && len(answers) == 1:
			failed++
			reasons = append(reasons, Explain(a.err))
		case a.err != nil:
			failed++
			reasons = append(reasons, explainShard(l.shards[i], a.err))
		case !a.unknown.Empty():
			reasons = append(reasons, a.unknown)
		}
		f.take(a)
	}
	exactFirst(f.Rows)
	f.Command = commandOf(answers)
	f.State = flow.Absent
	switch {
	case len(f.Rows) > 0:
		f.State = flow.Found
	case f.Replica:
		f.State, f.Reason = flow.Unknown, replicaMayLack
	}
	if len(reasons) > 0 {
		f.State, f.Reason = flow.Unknown, reasons[0]
		if failed == len(answers) {
			f.State = flow.Error
		}
		if more := len(reasons) - 1; more > 0 {
			f.Reason = flow.T("%s (and %d more shards)", "%s（另有 %d 个分表）", reasons[0], more)
		}
	}
	if len(answers) > 1 {
		f.Coverage = append(f.Coverage, flow.T("%d of %d shards were read", "已读取 %d / %d 个分表", len(answers)-failed, len(answers)))
	}
	if f.Replica {
		f.Coverage = append(f.Coverage, flow.T("the server is a replica or read-only: what was written moments ago may be missing", "该服务器是从库或只读库：刚写入的数据可能还没有到达"))
	}
}

var replicaMayLack = flow.T("no row, but the server is a replica or read-only: what its primary wrote moments ago may be missing",
	"没有对应的行，但该服务器是从库或只读库：主库刚写入的数据可能还没有到达")

func (f *Found) take(a answer) {
	f.Rows = append(f.Rows, a.rows...)
	f.TooLong = f.TooLong || a.tooLong
	f.Unstorable = f.Unstorable || a.unstorable
	f.Replica = f.Replica || a.readOnly
	f.ByPresence = f.ByPresence || a.presence
	if a.now.After(f.DBNow) {
		f.DBNow = a.now
	}
	// Of shards that differ the narrowest decides what can be cut.
	if a.width > 0 && (f.Width == 0 || a.width < f.Width) {
		f.Width = a.width
	}
	for _, text := range a.coverage {
		if !slices.Contains(f.Coverage, text) {
			f.Coverage = append(f.Coverage, text)
		}
	}
}

// commandOf chooses the statements worth showing: those of the shards with
// rows, else of the first shard that was asked.
func commandOf(answers []answer) string {
	var commands []string
	first, asked := "", 0
	for _, a := range answers {
		if a.command == "" {
			continue
		}
		if asked++; asked == 1 {
			first = a.command
		}
		if len(a.rows) > 0 {
			commands = append(commands, a.command)
		}
	}
	switch {
	case len(commands) > 0:
		return strings.Join(commands, "\n")
	case asked > 1:
		return fmt.Sprintf("%s\n-- and the same for %d more shards", first, asked-1)
	}
	return first
}
