package action

import (
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// acquireTime is how long a consumer may hold its lock before its record shows.
const acquireTime = 5 * time.Second

// generalRules hold for every action.
func (p *Precheck) generalRules() {
	p.refuse(p.Answer.Verdict.Code == verdict.KeyAmbiguous, "key_ambiguous", flow.T(
		"MySQL takes this id for another one: first find out which business operation each id belongs to", "MySQL 把这个 ID 当成了另一个 ID：请先弄清两个 ID 各属于哪笔业务"))
	p.unread(flow.T("the record", "记录"), p.Answer.Record.Observation)
	r := p.Answer.Record
	p.refuse(r.Replica && r.Seen() && !(r.LagKnown && r.Lag <= time.Second), "replica", flow.T(
		"the record was read from a replica or read-only server, and its primary may know better", "记录读取自从库或只读库，主库上的情况可能已经不同"))
	if r.Archive != nil && r.State == flow.Absent {
		p.unread(flow.T("the archive", "归档表"), r.Archive.Observation)
	}
}

// unread refuses what rests on a layer that gave no definite answer.
func (p *Precheck) unread(name flow.Text, o flow.Observation) {
	p.refuse(!o.Seen(), "layer_unread", flow.T("%v could not be read: %v", "未能读取%v：%v", name, o.Reason))
}

// unreadRedis is unread for a lock or a marker that the flow may not have.
func (p *Precheck) unreadRedis(name flow.Text, r *dossier.RedisEvidence) {
	if r != nil {
		p.unread(name, r.Observation)
	}
}

// unreadQueues refuses what rests on queues of which one was not counted.
func (p *Precheck) unreadQueues() {
	b := p.Answer.Broker
	switch {
	case b == nil:
	case b.State == flow.Error || len(b.Queues) == 0:
		p.refuse(true, "layer_unread", flow.T("%v could not be read: %v", "未能读取%v：%v", flow.T("the queues", "队列"), b.Reason))
	default:
		for _, q := range b.Queues {
			p.refuse(q.State != flow.Found, "layer_unread", flow.T("%v could not be read: %v", "未能读取%v：%v", flow.T("queue %s", "队列 %s", flow.Visible(q.Name)), q.Reason))
		}
	}
}

// cannotTell refuses where the verdict itself is in doubt.
func (p *Precheck) cannotTell() {
	v := p.Answer.Verdict
	switch v.Code {
	case verdict.Unknown, verdict.ClockSkew, verdict.Unreadable, verdict.RanTwice:
		p.refuse(len(p.Refusals) == 0, "cannot_tell", v.Sentence)
	}
}

// rows are the records of exactly the asked bytes.
func (p *Precheck) rows() []ledger.Row {
	var exact []ledger.Row
	for _, r := range p.Answer.Record.Rows {
		if r.Exact {
			exact = append(exact, r)
		}
	}
	return exact
}

// inPhase is the first exact row in the phase, or nil.
func (p *Precheck) inPhase(phase flow.Phase) *ledger.Row {
	for _, r := range p.rows() {
		if r.Phase == phase {
			return &r
		}
	}
	return nil
}

// refuseCompleted refuses what would let work run again that is done.
func (p *Precheck) refuseCompleted() {
	if r := p.inPhase(flow.Completed); r != nil {
		p.refuse(true, "completed", flow.T("the record says completed (%s): the work is done and must not run again", "记录状态为已完成（%s）：工作已完成，不得再次执行", whereIs(*r)))
	}
	if a := p.Answer.Record.Archive; a != nil {
		for _, r := range a.Rows {
			p.refuse(r.Phase == flow.Completed, "completed", flow.T("the record was completed and archived (%s): the work is done and must not run again", "记录已完成并已归档（%s）：工作已完成，不得再次执行", whereIs(r)))
		}
	}
}

// refuseAlive refuses to take from a run that goes on what protects it.
func (p *Precheck) refuseAlive() {
	stale := p.Answer.Flow.StaleAfter
	if r := p.inPhase(flow.Processing); r != nil && r.AgeKnown && r.Age <= stale {
		p.refuse(true, "holder_alive", flow.T("the record is processing and showed a sign of life %v ago; only after %v of silence is a run taken for dead",
			"记录处于处理中，%v前还有动静；静默超过 %v才视为已中断", flow.Span(r.Age), flow.Span(stale)))
	}
	lock, shape := p.Answer.Lock, p.Answer.Flow.Lock
	if lock != nil && lock.State == flow.Found {
		for _, n := range p.Answer.Verdict.Notes {
			p.refuse(n.Code == "renewed" && !lock.Extended(), "holder_alive", flow.T("%v: its holder lives", "%v：持有者仍在运行", n.Text))
		}
		p.refuse(lock.Extended(), "holder_alive", flow.T("the lock was extended while this program watched: its holder lives", "本程序观察期间锁被续期：持有者仍在运行"))
		held := shape.TTL - lock.TTL
		p.refuse(len(p.rows()) == 0 && !lock.NoTTL && shape.TTL > 0 && held >= 0 && held <= acquireTime, "holder_alive", flow.T(
			"the lock was taken %v ago: its holder may just be writing the record", "锁在 %v前才获取：持有者可能正要写入记录", flow.Span(held)))
	}
	if last, ok := p.runTold(); ok {
		p.refuse(true, "holder_alive", flow.T("a consumer (%s) reported a step of this run %v ago, and no end of it", "消费者（%s）在 %v前上报了该执行的步骤，且未上报结束",
			flow.Visible(last.Worker), flow.Span(p.Answer.At.Sub(last.At))))
	}
}

// runTold is the last step that consumers report of a run that has not ended and
// is not silent for too long.
func (p *Precheck) runTold() (last flow.Event, goesOn bool) {
	steps := p.Answer.Trail.Of(flow.RunBegan, flow.RunDone, flow.RunFailed)
	if len(steps) == 0 || steps[len(steps)-1].Kind != flow.RunBegan {
		return flow.Event{}, false
	}
	events := p.Answer.Trail.Events
	last = events[len(events)-1]
	return last, p.Answer.At.Sub(last.At) <= p.Answer.Flow.StaleAfter
}

// unacked counts deliveries of the flow's work queue that are not acked.
func (p *Precheck) unacked() (n int64) {
	if p.Answer.Broker == nil {
		return 0
	}
	for _, q := range p.Answer.Broker.Queues {
		if q.Role == broker.RoleWork {
			n += q.Unacked
		}
	}
	return n
}

// whereIs names a row.
func whereIs(r ledger.Row) string {
	if r.ID == "" {
		return r.Table
	}
	return r.Table + " id " + r.ID
}

func lockName() flow.Text   { return flow.T("the lock", "锁") }
func markerName() flow.Text { return flow.T("the marker", "标记") }

func untouched() flow.Text { return flow.T("nothing is changed", "不做更改") }
