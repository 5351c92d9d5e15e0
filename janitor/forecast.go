package janitor

import (
	"context"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// aheadSpan is how far ahead arrivals are estimated, at most.
	aheadSpan = 7 * 24 * time.Hour
	// aheadSegments is how finely that range is sampled.
	aheadSegments = 8
	// ratedEntries is over how many of the last entries the pace is taken.
	ratedEntries = 20
	day          = 24 * time.Hour
)

// Forecast is what can be told of the days to come. All of it is estimated.
type Forecast struct {
	// PerDay is how many rows a day reach the cutoff; valid when PerDayKnown.
	PerDay      float64
	PerDayKnown bool
	// Pace is how many rows a second the last runs let go, pauses included; 0
	// when none has let any go.
	Pace float64
	// Takes is how long the rows of the plan take at that pace; 0 when not known.
	Takes time.Duration
	// PerWindow is how many rows one window can take; 0 when not known.
	PerWindow int64
	// Windows is how many windows it takes until nothing is left; 0 when that is
	// not known, or never.
	Windows float64
	// Binlog is how many bytes the run adds to the binary log; valid when
	// BinlogKnown. 0: the server keeps none.
	Binlog      int64
	BinlogKnown bool
}

// Behind reports whether more rows become old than a window takes out.
func (f Forecast) Behind() bool {
	return f.PerDayKnown && f.PerWindow > 0 && f.PerDay > float64(f.PerWindow)
}

// ahead estimates how many rows a day reach the cutoff in the next days: the
// completed ones that were created within that time after it. Without a created
// column nobody knows.
func (p *TablePlan) ahead(ctx context.Context, table *ledger.SweepTable, cutoff time.Time, retain time.Duration) error {
	span := min(retain, aheadSpan)
	later, err := table.Bounds(ctx, cutoff.Add(span))
	if err != nil || !later.ByTime {
		return err
	}
	rest := ledger.Range{After: p.visit().To, To: max(later.Last, p.visit().To)}
	rows, err := sampled(ctx, table, rest, aheadSegments, cutoff)
	if err != nil {
		return err
	}
	p.PerDay, p.PerDayKnown = (rows[ledger.TooYoung]+rows[ledger.Candidate])/(span.Hours()/24), true
	return nil
}

// sampled estimates the kinds of the rows in a range: it looks at some rows in
// each of many equal parts, and takes the rest of a part to be like them. A small
// range is counted.
func sampled(ctx context.Context, table *ledger.SweepTable, in ledger.Range, parts uint64, cutoff time.Time) (map[ledger.Kind]float64, error) {
	sums := map[ledger.Kind]float64{}
	ids := in.To - in.After
	if ids <= sampleAbove {
		tally, err := countAll(ctx, table, in, cutoff)
		for kind, n := range tally {
			sums[kind] = float64(n)
		}
		return sums, err
	}
	for i := range parts {
		part := ledger.Range{After: in.After + ids/parts*i, To: in.After + ids/parts*(i+1)}
		if i == parts-1 {
			part.To = in.To
		}
		tally, seen, err := table.Count(ctx, part, sampleRows, cutoff)
		if err != nil {
			return nil, err
		}
		scale := float64(part.To-part.After) / float64(seen.To-seen.After)
		for kind, n := range tally {
			sums[kind] += float64(n) * scale
		}
	}
	return sums, nil
}

// rowExtra is about what the binary log adds to the image of one row.
const rowExtra = 20

// binlog estimates what a run over the table adds to the binary log: the whole
// image of each row that is deleted, and once more of each that is archived.
// Statements are short. ok is false when the length of a row is not known.
func (p *TablePlan) binlog(format string) (bytes int64, ok bool) {
	switch {
	case format == "":
		return 0, true
	case format == "STATEMENT":
		return p.Batches * 300, true
	case p.Footprint.Row <= 0:
		return 0, false
	}
	images := int64(1)
	if p.Archive != "" {
		images = 2
	}
	return p.Candidates * images * (p.Footprint.Row + rowExtra), true
}

// forecast adds up the tables and sets them against what the last runs did.
func (j *Janitor) forecast(t *Task, p *Plan) {
	f := Forecast{PerDayKnown: len(p.Tables) > 0, BinlogKnown: len(p.Tables) > 0, Pace: j.pace(t.Name)}
	for _, table := range p.Tables {
		f.PerDay, f.PerDayKnown = f.PerDay+table.PerDay, f.PerDayKnown && table.PerDayKnown
		bytes, ok := table.binlog(p.Binlog)
		f.Binlog, f.BinlogKnown = f.Binlog+bytes, f.BinlogKnown && ok
	}
	if f.Pace > 0 {
		f.Takes = time.Duration(float64(p.Candidates()) / f.Pace * float64(time.Second)).Round(time.Second)
		f.PerWindow = t.perWindow(f.Pace, j.now())
	}
	if gain := float64(f.PerWindow) - f.PerDay; f.PerDayKnown && f.PerWindow > 0 && gain > 0 {
		f.Windows = max(float64(p.Candidates())/gain, 0)
	}
	p.Forecast = f
}

// perWindow is how many rows the next window of an enabled task can take; 0 without one.
func (t *Task) perWindow(pace float64, now time.Time) int64 {
	if !t.Enabled || t.Window.None() {
		return 0
	}
	opens, closes := t.Window.next(now, true), time.Time{}
	if t.Window.Open(now) { // the whole next one, not what is left of this one
		opens = t.Window.Opens(t.Window.Closes(now))
	}
	closes = t.Window.Closes(opens)
	length := closes.Sub(opens)
	if t.RunTime > 0 {
		length = min(length, t.RunTime)
	}
	rows := int64(pace * length.Seconds())
	if t.Rows > 0 {
		rows = min(rows, t.Rows)
	}
	return rows
}

// pace is how many rows a second the last runs of the task let go, by the history.
func (j *Janitor) pace(task string) float64 {
	var rows int64
	var took time.Duration
	n := 0
	for _, e := range j.recent() {
		if e.Task != task || e.Rows == 0 || e.Took() <= 0 {
			continue
		}
		rows, took = rows+e.Rows, took+e.Took()
		if n++; n == ratedEntries {
			break
		}
	}
	if took <= 0 {
		return 0
	}
	return float64(rows) / took.Seconds()
}

// recent is the history, the newest first: that of the file, or without one what
// this process has seen.
func (j *Janitor) recent() []Entry {
	if j.history != nil {
		entries, err := j.history.List()
		if err == nil {
			return entries
		}
		j.log.Warn("the cleanup history cannot be read", "file", j.history.File(), "err", err)
	}
	j.keptMu.Lock()
	defer j.keptMu.Unlock()
	newest := make([]Entry, len(j.kept))
	for i, e := range j.kept {
		newest[len(j.kept)-1-i] = e
	}
	return newest
}

// Recent lists the runs of the past, the newest first, at most limit of them.
func (j *Janitor) Recent(limit int) []Entry {
	all := j.recent()
	return all[:min(limit, len(all))]
}

// record keeps what a run did. The schedule tries a refused task again and again:
// that is kept once.
func (j *Janitor) record(r Report, t *Task, by By) {
	entries := entriesOf(r, t, by)
	as := ending{r.Ended, r.Why}
	if len(r.Plan.Refusals) > 0 { // its words may hold a number that changes
		as.why = flow.Text{EN: r.Plan.Refusals[0].Code}
	}
	j.keptMu.Lock()
	if by == BySchedule && r.Gone() == 0 && r.Ended != Done && j.lastOf[t.Name] == as {
		j.keptMu.Unlock()
		return
	}
	j.lastOf[t.Name] = as
	j.kept = append(j.kept, entries...)
	if extra := len(j.kept) - historyEntries; extra > 0 {
		j.kept = append([]Entry{}, j.kept[extra:]...)
	}
	j.keptMu.Unlock()
	if j.history == nil {
		return
	}
	if err := j.history.Append(entries...); err != nil {
		j.log.Warn("the cleanup history cannot be written", "file", j.history.File(), "err", err)
	}
}

// Note words the forecast in one sentence each, for plans and pages.
func (p Plan) Note() (notes []flow.Text) {
	f := p.Forecast
	if f.PerDayKnown {
		notes = append(notes, flow.T("about %.0f rows a day reach the cutoff in the next days (estimated)", "未来几天每天约有 %.0f 行到达截止时间（估算）", f.PerDay))
	}
	switch {
	case f.Pace > 0:
		notes = append(notes, flow.T("the last runs let %[1]s rows a second go, so this takes about %[2]s (estimated)", "最近的运行每秒移除 %[1]s 行，预计需要 %[2]s（估算）", rateText(f.Pace), flow.Span(f.Takes)))
	case p.Candidates() > 0:
		notes = append(notes, flow.T("how long it takes is not known: no run has let rows go yet", "所需时间未知：还没有移除过记录的运行"))
	}
	switch {
	case !f.BinlogKnown && len(p.Tables) > 0:
		notes = append(notes, flow.T("how much it adds to the binary log is not known: the server keeps no row length", "写入 binlog 的数据量未知：服务器没有行长统计"))
	case f.Binlog > 0:
		notes = append(notes, flow.T("it adds about %s to the binary log (estimated from the average row length)", "将向 binlog 写入约 %s（按平均行长估算）", BytesText(f.Binlog)))
	}
	switch {
	case f.Behind():
		notes = append(notes, flow.T("FALLS BEHIND: one window takes about %[1]d rows, and about %[2]d become old each day", "落后：一个窗口约能移除 %[1]d 行，而每天约有 %[2]d 行到期", f.PerWindow, int64(f.PerDay)))
	case f.PerWindow > 0 && f.Windows > 1:
		notes = append(notes, flow.T("one window takes about %[1]d rows; nothing is left after about %.0[2]f windows", "一个窗口约能移除 %[1]d 行；约 %.0[2]f 个窗口后清完", f.PerWindow, f.Windows))
	case f.PerWindow > 0:
		notes = append(notes, flow.T("one window takes about %d rows", "一个窗口约能移除 %d 行", f.PerWindow))
	}
	return notes
}
