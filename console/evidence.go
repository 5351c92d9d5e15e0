package console

import (
	"strconv"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// brokerView is the column of the broker.
type brokerView struct {
	// None: the flow names no queue.
	None bool
	broker.Evidence
	Queues []queueView
	// Read: at least one queue's totals are there.
	Read bool
}

// queueView is one row of the table of queues.
type queueView struct {
	broker.Queue
	RoleWord flow.Text
	// Read: the totals are there.
	Read bool
	// Why is the reason of a state other than found, unless the column says it already.
	Why flow.Text
}

func newBrokerView(e *broker.Evidence) brokerView {
	if e == nil {
		return brokerView{None: true}
	}
	view := brokerView{Evidence: *e}
	for _, q := range e.Queues {
		row := queueView{Queue: q, RoleWord: q.Role.Word(), Read: q.State == flow.Found}
		if q.Reason != e.Reason {
			row.Why = q.Reason
		}
		view.Queues, view.Read = append(view.Queues, row), view.Read || row.Read
	}
	return view
}

// redisView is a lock or a marker.
type redisView struct {
	// None: the flow has no such key.
	None bool
	dossier.RedisEvidence
	KeyIdent, ValueIdent ident
	// Here: the key was found. Expires: it has a TTL.
	Here, Expires bool
	// Cut: the value is longer than what was read of it.
	Cut bool
	// Left is the TTL in milliseconds, LeftText in words.
	Left     int64
	LeftText flow.Text
	// Declared is the TTL of the configuration in milliseconds, 0 when not
	// declared or when more than that is left, so that the two do not compare.
	Declared     int64
	DeclaredText flow.Text
	// Held is since when the key has been there; empty when that cannot be told.
	Held flow.Text
	// Others are keys that could own this one as well.
	Others []keyView
}

func newRedisView(r *dossier.RedisEvidence, shape *flow.RedisKey) redisView {
	if r == nil {
		return redisView{None: true}
	}
	view := redisView{
		RedisEvidence: *r, KeyIdent: newIdent(r.Key), ValueIdent: newIdent(r.Value),
		Here: r.State == flow.Found, Cut: r.Length > int64(len(r.Value)) && !r.ValueHidden,
	}
	for _, owner := range r.Owners {
		view.Others = append(view.Others, newKeyView(owner.Key))
	}
	if view.Expires = view.Here && !r.NoTTL; !view.Expires {
		return view
	}
	view.Left, view.LeftText = r.TTL.Milliseconds(), flow.Span(r.TTL)
	if shape == nil || shape.TTL == 0 || r.TTL > shape.TTL {
		return view
	}
	view.Declared, view.DeclaredText = shape.TTL.Milliseconds(), flow.Span(shape.TTL)
	if !shape.Renewed {
		view.Held = ago(r.ReadAt.Add(r.TTL-shape.TTL), r.ReadAt)
	}
	return view
}

// recordView is the column of the ledger.
type recordView struct {
	ledger.Found
	Rows []rowView
	// DBClock is the database's clock; nil when it did not answer.
	DBClock *moment
}

// rowView is one record.
type rowView struct {
	ledger.Row
	// Anchor is what facts lead to.
	Anchor    string
	PhaseWord flow.Text
	// StatusText is the stored word where it says more than the phase.
	StatusText string
	// Stored are the row's own bytes, for a row whose bytes differ.
	Stored keyView
	// Lines are its figures in the order in which they are read.
	Lines []line
}

// line is one labelled figure: words, a time, or bytes as they are stored.
type line struct {
	Label flow.Text
	Text  flow.Text
	Time  *moment
	Bytes *ident
}

func (c clock) newRecordView(f ledger.Found, of flow.Flow) recordView {
	view := recordView{Found: f}
	now := f.DBNow
	if now.IsZero() {
		now = f.ReadAt
	} else {
		at := c.moment(now)
		view.DBClock = &at
	}
	for i, r := range f.Rows {
		row := rowView{Row: r, Anchor: string(verdict.PieceRow) + strconv.Itoa(i+1), PhaseWord: r.Phase.Word(), Stored: newKeyView(flow.Key{BizType: r.BizType, BizID: r.BizID}), Lines: c.rowLines(r, of, now)}
		if r.Status != string(r.Phase) {
			row.StatusText = flow.Visible(r.Status)
		}
		view.Rows = append(view.Rows, row)
	}
	return view
}

func (c clock) rowLines(r ledger.Row, of flow.Flow, now time.Time) []line {
	lines := make([]line, 0, 8)
	if r.AgeKnown {
		lines = append(lines, line{Label: flow.T("Age", "距今"), Text: ageText(r, of)})
	}
	if r.RunTimeKnown {
		lines = append(lines, line{Label: flow.T("Run time", "执行时长"), Text: runTimeText(r.RunTime, of.Lock)})
	}
	for _, s := range []struct {
		label flow.Text
		stamp ledger.Stamp
	}{
		{flow.T("Created", "创建"), r.Created},
		{flow.T("Updated", "更新"), r.Updated},
		{flow.T("Completed", "完成"), r.Completed},
	} {
		if s.stamp.State != ledger.StampMissing {
			lines = append(lines, c.stampLine(s.label, s.stamp, now))
		}
	}
	if r.ResultHidden {
		lines = append(lines, line{Label: flow.T("Result", "结果"), Text: answer.HiddenWords()})
	}
	for _, s := range []struct {
		label flow.Text
		value *string
	}{
		{flow.T("Result", "结果"), r.Result}, {flow.T("Attempts", "尝试次数"), r.Attempts}, {flow.T("Worker", "执行者"), r.Worker},
	} {
		if s.value != nil {
			id := newIdent(*s.value)
			lines = append(lines, line{Label: s.label, Bytes: &id})
		}
	}
	return lines
}

// ageText words how long the row has been silent; a time ahead of the
// database's clock is worded as such.
func ageText(r ledger.Row, of flow.Flow) flow.Text {
	switch {
	case r.Age < -momentTolerance:
		return flow.T("none: %v ahead of the database's clock", "无：比数据库时钟晚 %v", flow.Span(r.Age))
	case r.Phase == flow.Processing && of.StaleAfter > 0:
		return flow.T("%v without a sign of life (allowed: %v)", "%v 没有动静（允许 %v）", flow.Span(max(0, r.Age)), flow.Span(of.StaleAfter))
	}
	return flow.T("%v since its last change", "最近一次变更距今 %v", flow.Span(max(0, r.Age)))
}

func runTimeText(d time.Duration, lock *flow.RedisKey) flow.Text {
	switch {
	case d < 0:
		return flow.T("none: it ends %v before it begins", "无：结束比开始早 %v", flow.Span(d))
	case lock != nil && lock.TTL > 0:
		return flow.T("%v (lock TTL: %v)", "%v（锁 TTL：%v）", flow.Span(d), flow.Span(lock.TTL))
	}
	return flow.Span(d)
}

func (c clock) stampLine(label flow.Text, s ledger.Stamp, now time.Time) line {
	l := line{Label: label}
	switch s.State {
	case ledger.StampNull:
		l.Text = flow.T("NULL", "NULL")
		return l
	case ledger.StampZero:
		l.Text = flow.T("%s is no instant: a zero date, or a time that does not exist", "%s 不是有效时刻：零值，或不存在的时间", flow.Visible(s.Text))
		return l
	}
	at := c.moment(s.Time)
	l.Time, l.Text = &at, ago(s.Time, now)
	if s.State == ledger.StampAmbiguous {
		l.Text = flow.T("%v or an hour more: the local time %s happened twice", "%v，或再早一小时：本地时间 %s 出现过两次", l.Text, flow.Visible(s.Text))
	}
	return l
}
