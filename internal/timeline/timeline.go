// Package timeline tells the story of one key: everything that its dossier knows
// to have happened, from all sources in one order, with who says so and how
// certain it is, and with the orders that cannot be.
//
// It judges nothing: what the story means is for package verdict.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Entry is one line of the story.
type Entry struct {
	flow.Event
	// Text says what happened.
	Text flow.Text
	// Future: it has not happened yet, and will if nothing intervenes.
	Future bool
	// Odd says why it cannot have happened in this order; empty for most. Clocks
	// that differ are the usual cause.
	Odd flow.Text
}

// How says how the time of the entry is known.
func (e Entry) How() flow.Text {
	switch {
	case e.Future:
		return flow.T("to come", "尚未发生")
	case e.Arrived:
		return flow.T("time of arrival here", "到达此处的时间")
	}
	return e.Certainty.Word()
}

// tolerance is by how much times of two sources may be out of order before that
// is odd: columns hold whole seconds, and clocks are never quite alike.
const tolerance = 2 * time.Second

// maxEntries bounds the story; of more, the latest are kept.
const maxEntries = 500

// Of tells the story of a dossier's key, the earliest entry first. Times of
// MySQL and Redis are moved by what their clocks are known to differ from ours.
func Of(d dossier.Dossier) []Entry {
	var entries []Entry
	entries = append(entries, ofRecord(d)...)
	entries = append(entries, ofRedis(d.Lock, d.Flow.Lock, flow.LockTaken, flow.LockExpires, flow.T("lock", "锁"))...)
	entries = append(entries, ofRedis(d.Marker, d.Flow.Marker, flow.MarkerSet, flow.MarkerExpires, flow.T("marker", "标记"))...)
	entries = append(entries, ofAccount(d.Tap, 0)...)
	entries = append(entries, ofAccount(d.Trace, 0)...)
	entries = append(entries, ofAccount(d.Trail, d.RedisAhead())...)
	entries = append(entries, ofAccount(d.Audit, 0)...)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(order(a.Kind), order(b.Kind)))
	})
	if len(entries) > maxEntries {
		entries = entries[len(entries)-maxEntries:]
	}
	for i := range entries {
		entries[i].Future = d.At.Before(entries[i].At) && expiry(entries[i].Kind)
	}
	markOdd(entries, d)
	return entries
}

func expiry(k flow.EventKind) bool { return k == flow.LockExpires || k == flow.MarkerExpires }

// order is that in which things of the same second happen in a delivery.
func order(k flow.EventKind) int {
	return slices.Index([]flow.EventKind{
		flow.Published, flow.Delivered, flow.Received, flow.StatusChecked, flow.LockTried, flow.LockTaken, flow.RecordTried, flow.RecordCreated,
		flow.RunBegan, flow.RecordUpdated, flow.RunDone, flow.RunFailed, flow.RecordCompleted, flow.RecordFailed, flow.MarkerSet, flow.Unlocked,
		flow.Acked, flow.GivenBack, flow.DeadLettered, flow.RecordArchived, flow.Acted, flow.LockExpires, flow.MarkerExpires,
	}, k)
}

// ofRecord tells what the time columns of the rows say.
func ofRecord(d dossier.Dossier) []Entry {
	ahead := d.MySQLAhead()
	var entries []Entry
	add := func(kind flow.EventKind, s ledger.Stamp, place string, text flow.Text) {
		if s.Time.IsZero() {
			return
		}
		entries = append(entries, Entry{Text: text, Event: flow.Event{
			Kind: kind, At: s.Time.Add(-ahead), Layer: flow.LayerMySQL, Source: d.Record.Source, Certainty: flow.Observed, Place: place,
		}})
	}
	for _, r := range d.Record.Rows {
		if !r.Exact {
			continue
		}
		add(flow.RecordCreated, r.Created, r.Table, flow.T("record created", "记录创建"))
		if last := r.LastSign(); last.Time != r.Created.Time || r.Created.Time.IsZero() {
			kind, text := ofPhase(r.Phase)
			add(kind, last, r.Table, text)
		}
	}
	if d.Record.Archive != nil {
		for _, r := range d.Record.Archive.Rows {
			add(flow.RecordArchived, r.LastSign(), r.Table, flow.T("completed; the record was archived later", "完成；记录之后被归档"))
		}
	}
	return entries
}

// ofPhase is what the last change of a row in the phase was.
func ofPhase(p flow.Phase) (flow.EventKind, flow.Text) {
	switch p {
	case flow.Completed:
		return flow.RecordCompleted, flow.T("record marked completed", "记录标为已完成")
	case flow.Failed:
		return flow.RecordFailed, flow.T("record marked failed", "记录标为失败")
	}
	return flow.RecordUpdated, flow.T("record changed (%v)", "记录更新（%v）", p.Word())
}

// ofRedis computes when a key was set from the TTL that is declared and the one
// that is left: nobody saw it. A TTL is a span, so the clock of Redis is not asked.
func ofRedis(r *dossier.RedisEvidence, shape *flow.RedisKey, set, expires flow.EventKind, name flow.Text) []Entry {
	if r == nil || r.State != flow.Found || r.Ambiguous() || r.NoTTL {
		return nil
	}
	event := flow.Event{Layer: flow.LayerRedis, Source: r.Source, Certainty: flow.Computed, Place: r.Key}
	var entries []Entry
	if shape.TTL > 0 && r.TTL <= shape.TTL {
		event.Kind, event.At = set, r.ReadAt.Add(r.TTL-shape.TTL)
		entries = append(entries, Entry{Event: event, Text: flow.T("%v set or extended (%v of %v are left)", "%v被设置或续期（%v，共 %v）", name, flow.Span(r.TTL), flow.Span(shape.TTL))})
	}
	event.Kind, event.At = expires, r.ReadAt.Add(r.TTL)
	return append(entries, Entry{Event: event, Text: flow.T("%v expires", "%v过期", name)})
}

func ofAccount(a *flow.Account, ahead time.Duration) []Entry {
	if a == nil {
		return nil
	}
	var entries []Entry
	for _, e := range a.Events {
		e.At = e.At.Add(-ahead)
		entries = append(entries, Entry{Event: e, Text: ofEvent(e)})
	}
	return entries
}

// ofEvent words an event with the source's own word for its outcome.
func ofEvent(e flow.Event) flow.Text {
	text := wordOf(e)
	if e.Outcome != "" {
		text = flow.T("%v: %s", "%v：%s", text, flow.Visible(e.Outcome))
	}
	return text
}

func wordOf(e flow.Event) flow.Text {
	place := flow.Visible(e.Place)
	switch e.Kind {
	case flow.Published:
		return flow.T("published to exchange %s", "发布到交换机 %s", place)
	case flow.Delivered:
		if e.Redelivered {
			return flow.T("delivered again from queue %s", "从队列 %s 再次投递", place)
		}
		return flow.T("delivered from queue %s", "从队列 %s 投递", place)
	case flow.DeadLettered:
		return flow.T("dead-lettered from queue %s", "从队列 %s 进入死信", place)
	case flow.Received:
		if e.Redelivered {
			return flow.T("received again", "再次收到")
		}
		return flow.T("received", "收到")
	case flow.StatusChecked:
		return flow.T("status checked", "检查状态")
	case flow.LockTried:
		return flow.T("lock tried", "尝试获取锁")
	case flow.RecordTried:
		return flow.T("record inserted", "插入记录")
	case flow.RunBegan:
		return flow.T("run began", "开始执行")
	case flow.RunDone:
		return flow.T("run done", "执行完成")
	case flow.RunFailed:
		return flow.T("run failed", "执行失败")
	case flow.Unlocked:
		return flow.T("lock released", "释放锁")
	case flow.Acked:
		return flow.T("acked", "确认（ack）")
	case flow.GivenBack:
		return flow.T("given back", "退回消息（nack）")
	case flow.Acted:
		return flow.T("action %s", "操作 %s", place)
	}
	return flow.T("%s", "%s", flow.Visible(string(e.Kind)))
}
