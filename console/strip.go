package console

import (
	"idemscope/internal/answer"
	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// stripCell is one layer at a glance.
type stripCell struct {
	Layer flow.Layer
	// Pointed: the verdict points to it.
	Pointed bool
	Looks   []stripLook
}

// stripLook is one thing that was looked at in a layer.
type stripLook struct {
	// Anchor leads to all that is known of it.
	Anchor string
	Name   flow.Text
	// None: the flow has nothing of the kind; the text says so.
	None flow.Text
	flow.Observation
	// Fact is the figure that matters most; empty when the state says it all.
	Fact flow.Text
	// Left is the TTL in milliseconds when it counts down, else 0; LeftText the same in words.
	Left     int64
	LeftText flow.Text
	At       moment
	Latency  flow.Text
	// Scope is what was looked at, or why it is not known.
	Scope []flow.Text
}

// newStrip is every layer at a glance, in the order in which a message meets them.
func (c clock) newStrip(a answer.Answer, v verdictView) []stripCell {
	w := newKeyWords()
	queues := stripLook{Anchor: string(verdict.PieceQueues), Name: w.QueuesName, None: w.NoQueue}
	if a.Broker != nil {
		queues = c.look(queues, a.Broker.Observation)
		queues.Fact = queuesFact(*a.Broker)
	}
	record := c.look(stripLook{Anchor: string(verdict.PieceRecord), Name: w.RecordName}, a.Record.Observation)
	record.Fact = recordFact(a)
	return []stripCell{
		{flow.LayerBroker, v.At("broker"), []stripLook{queues}},
		{flow.LayerRedis, v.At("redis"), []stripLook{
			c.redisLook(stripLook{Anchor: string(verdict.PieceLock), Name: w.LockName, None: w.NoLock}, a.Lock),
			c.redisLook(stripLook{Anchor: string(verdict.PieceMarker), Name: w.MarkerName, None: w.NoMarker}, a.Marker),
		}},
		{flow.LayerMySQL, v.At("mysql"), []stripLook{record}},
	}
}

// look adds where, when and how fast something was read.
func (c clock) look(l stripLook, o flow.Observation) stripLook {
	l.None, l.Observation = flow.Text{}, o
	l.At, l.Latency = c.moment(o.ReadAt), flow.Span(o.Took)
	l.Scope = o.Coverage
	if !o.Reason.Empty() {
		l.Scope = []flow.Text{o.Reason}
	}
	return l
}

func (c clock) redisLook(l stripLook, r *dossier.RedisEvidence) stripLook {
	if r == nil {
		return l
	}
	l = c.look(l, r.Observation)
	switch {
	case r.State != flow.Found:
	case r.NoTTL:
		l.Fact = flow.T("no TTL", "没有 TTL")
	default:
		l.Left, l.LeftText = r.TTL.Milliseconds(), flow.Span(r.TTL)
		l.Fact = flow.T("left", "剩余")
	}
	return l
}

// queuesFact sums the queues: what waits to be delivered, what is being worked on,
// and what was given up.
func queuesFact(e broker.Evidence) flow.Text {
	var ready, unacked int64
	for _, q := range e.Queues {
		if q.State != flow.Found {
			return flow.Text{} // a sum without it would be too small
		}
		if q.Role != broker.RoleDeadLetter {
			ready, unacked = ready+q.Ready+q.Other, unacked+q.Unacked
		}
	}
	if len(e.Queues) == 0 {
		return flow.Text{}
	}
	return flow.T("%d waiting, %d unacked, %d dead", "等待 %d，未确认 %d，死信 %d", ready, unacked, e.Total(broker.RoleDeadLetter))
}

// recordFact is what the rows say, the first one with its age.
func recordFact(a answer.Answer) flow.Text {
	var exact []ledger.Row
	for _, r := range a.Record.Rows {
		if r.Exact {
			exact = append(exact, r)
		}
	}
	switch {
	case len(a.Record.Rows) > 0 && len(exact) == 0:
		return flow.T("another key's row", "另一个键的记录")
	case len(exact) > 1:
		return flow.T("%d rows, the first %v", "%d 行，第一行%v", len(exact), exact[0].Phase.Word())
	case len(exact) == 0 && a.Record.Archive != nil && a.Record.Archive.State == flow.Found:
		return flow.T("in the archive", "在归档表中")
	case len(exact) == 0:
		return flow.Text{}
	}
	r := exact[0]
	switch {
	case !r.AgeKnown || r.Age < 0:
		return r.Phase.Word()
	case r.Phase == flow.Processing:
		return flow.T("%v, silent for %v", "%v，已 %v没有动静", r.Phase.Word(), flow.Span(r.Age))
	}
	return flow.T("%v, %v ago", "%v，%v前", r.Phase.Word(), flow.Span(r.Age))
}
