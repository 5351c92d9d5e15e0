package flow

import "time"

// State is what looking at one layer came to. There are exactly four, and the
// last two are never read as Absent.
type State string

const (
	// Found: the layer shows it; the facts are there.
	Found State = "found"
	// Absent: everything it could be in was looked at, and it is not there.
	Absent State = "absent"
	// Unknown: only a part was looked at; Reason says which.
	Unknown State = "unknown"
	// Error: the layer could not be looked at; Reason says why.
	Error State = "error"
)

// Word is the state for people.
func (s State) Word() Text {
	switch s {
	case Found:
		return T("found", "存在")
	case Absent:
		return T("absent", "不存在")
	case Unknown:
		return T("unknown", "不确定")
	}
	return T("error", "读取失败")
}

// Observation is the header of every piece of evidence.
type Observation struct {
	State State
	// Source names the store and the place in it, e.g. "mysql main, shop.idempotent_record".
	Source string
	// ReadAt is when the answer arrived, by this process's clock.
	ReadAt time.Time
	// Took is how long the answer took.
	Took time.Duration
	// Command is what an engineer runs to see the same with the store's own
	// client. It holds no credential. Empty when there is no such command.
	Command string
	// Reason says why the state is Unknown or Error. Empty otherwise.
	Reason Text
	// Coverage says what was looked at and what was not. It may be empty.
	Coverage []Text
	// Pending: nobody waited for the answer, so the state is Unknown; asking again may tell.
	Pending bool
}

// Seen reports whether the layer gave a definite answer: found or absent.
func (o Observation) Seen() bool { return o.State == Found || o.State == Absent }

// ClockAhead is by how much, at least, the clock that the store told is ahead of
// ours: it told it at some moment between the question and the answer. Negative
// when it is behind; 0 when the length of the reading alone explains the
// difference.
func (o Observation) ClockAhead(theirs time.Time) time.Duration {
	asked := o.ReadAt.Add(-o.Took)
	switch {
	case theirs.After(o.ReadAt):
		return theirs.Sub(o.ReadAt)
	case theirs.Before(asked):
		return theirs.Sub(asked)
	}
	return 0
}

// Layer is one of the three layers that keep a consumer idempotent.
type Layer string

// The layers, in the order in which a message meets them.
const (
	LayerBroker Layer = "broker"
	LayerRedis  Layer = "redis"
	LayerMySQL  Layer = "mysql"
	LayerNone   Layer = "none"
)

// Phase is what the status of a record means, whatever word the table uses.
type Phase string

// The phases of a record. A table maps each of its status words to one of the
// first four; Unmapped is the phase of a word (or an empty value) that the
// configuration does not name.
const (
	NotStarted Phase = "not_started"
	Processing Phase = "processing"
	Completed  Phase = "completed"
	Failed     Phase = "failed"
	Unmapped   Phase = "unmapped"
)

// Word is the phase for people.
func (p Phase) Word() Text {
	switch p {
	case NotStarted:
		return T("not started", "未开始")
	case Processing:
		return T("processing", "处理中")
	case Completed:
		return T("completed", "已完成")
	case Failed:
		return T("failed", "失败")
	}
	return T("unmapped status", "未配置的状态")
}
