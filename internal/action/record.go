package action

import (
	"context"
	"errors"
	"fmt"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// checkRecord says what setting a stale record back would do.
func (a *Actor) checkRecord(ctx context.Context, p *Precheck) {
	seen := p.Answer
	p.effect(flow.LayerBroker, flow.T("no message is sent: the next delivery of this key may run", "不发送消息：该键的下一次投递可以执行"))
	p.effect(flow.LayerRedis, untouched())
	p.refuse(seen.Flow.Rerun == flow.RerunNever, "rerun_never", rerunNever(seen.Flow))
	p.unreadRedis(lockName(), seen.Lock)
	p.unreadRedis(markerName(), seen.Marker)
	p.unreadQueues()
	if seen.Trail != nil {
		p.refuse(seen.Trail.State == flow.Error, "layer_unread", flow.T("%v could not be read: %v", "未能读取%v：%v", flow.T("the trail", "消费轨迹"), seen.Trail.Reason))
	}
	p.refuse(seen.Lock != nil && seen.Lock.State == flow.Found, "lock_held", flow.T("the lock is held: a run may go on", "锁被持有：可能仍在执行"))
	p.refuse(p.unacked() > 0, "unacked", flow.T("messages delivered and not acked yet: %d; this key's could be among them, and its consumer still at work", "已投递未确认的消息：%d；该键的消息可能在其中，消费者或许仍在工作", p.unacked()))
	if last, ok := p.runTold(); ok {
		p.refuse(true, "holder_alive", flow.T("a consumer (%s) reported a step of this run %v ago, and no end of it", "消费者（%s）在 %v前上报了该执行的步骤，且未上报结束",
			flow.Visible(last.Worker), flow.Span(seen.At.Sub(last.At))))
	}
	a.checkRow(ctx, p)
	p.cannotTell()
	p.warn(seen.Broker == nil, flow.T("the flow names no queue, so a delivery that is still being worked on would not show", "该流程没有配置队列，无法看到仍在处理的投递"))
	p.warn(seen.Marker != nil && seen.Marker.State == flow.Found, flow.T("a marker is there: it may have the retry dropped until it is cleared or expires", "存在标记：在清除或过期之前，它可能使重试被丢弃"))
}

func rerunNever(f flow.Flow) flow.Text {
	return flow.T("the flow says rerun: never (flows.%s.rerun): an outside effect may have happened that must not happen twice", "流程设置为 rerun: never（flows.%s.rerun）：可能已产生不得重复的外部影响", f.Name)
}

// checkRow judges the record itself.
func (a *Actor) checkRow(ctx context.Context, p *Precheck) {
	rows := p.rows()
	if len(rows) != 1 {
		p.effect(flow.LayerMySQL, untouched())
	}
	switch {
	case !p.Answer.Record.Seen():
		return
	case len(rows) == 0:
		p.Nothing = flow.T("there is no record", "没有记录")
		return
	case len(rows) > 1:
		p.refuse(true, "several_rows", flow.T("the key has %d records, and which of them counts is not known", "该键有 %d 条记录，无法确定以哪一条为准", len(rows)))
		return
	}
	a.planRow(ctx, p, rows[0])
	switch row, stale := rows[0], p.Answer.Flow.StaleAfter; row.Phase {
	case flow.Completed:
		p.refuseCompleted()
	case flow.Failed:
		p.Nothing = flow.T("the record says failed already: it may be run again as it is", "记录状态已是失败：无需更改即可重试")
	case flow.Processing:
		switch {
		case !row.AgeKnown:
			p.refuse(true, "not_stale", flow.T("how long the record has been silent is not known", "无法得知记录已静默多久"))
		case row.Age <= stale:
			p.refuse(true, "not_stale", flow.T("the record showed a sign of life %v ago; it is stale only after %v", "记录在 %v前还有动静；超过 %v才判定为超时", flow.Span(row.Age), flow.Span(stale)))
		}
	default:
		p.refuse(true, "not_stale", flow.T("the record's status is %s (%v), not processing", "记录状态为 %s（%v），不是处理中", flow.Visible(row.Status), row.Phase.Word()))
	}
}

// planRow asks the ledger what would be written.
func (a *Actor) planRow(ctx context.Context, p *Precheck, row ledger.Row) {
	records, open := a.options.Ledgers[p.Answer.Flow.Ledger]
	p.refuse(!open || records.Reset == nil, "no_credential", flow.T("no user that may change records is configured: set mysql.NAME.act of ledger %s", "没有配置可以更改记录的用户：请为账本 %s 设置 mysql.NAME.act", p.Answer.Flow.Ledger))
	if !open {
		p.effect(flow.LayerMySQL, untouched())
		return
	}
	var never *ledger.NoReset
	plan, err := records.Plan(ctx, p.Answer.Key, row)
	switch {
	case errors.As(err, &never):
		p.effect(flow.LayerMySQL, untouched())
		p.refuse(true, never.Code, never.Text)
		return
	case err != nil:
		p.effect(flow.LayerMySQL, untouched())
		p.unread(flow.T("the record", "记录"), flow.Observation{State: flow.Error, Reason: ledger.Explain(err)})
		return
	}
	p.plan = plan
	if row.Phase != flow.Processing {
		p.effect(flow.LayerMySQL, untouched())
		return
	}
	times := flow.T("the table has no mapped update time, so no time is set", "表没有映射更新时间列，因此不设置时间")
	if plan.Updated != "" {
		times = flow.T("%s becomes the database's time of now", "%s 设为数据库当前时间", plan.Updated)
	}
	p.effect(flow.LayerMySQL, flow.T("%s: status %s becomes %s (failed), %v; only if status and times are still those shown here", "%s：状态 %s 改为 %s（失败），%v；前提是状态和各时间仍与此处所示一致",
		whereIs(row), flow.Visible(plan.From), flow.Visible(plan.To), times))
	p.Effects[len(p.Effects)-1].Command = plan.SQL + ";"
}

// compareRecord refuses a record that is not as it was on the screen. gone: there
// is none any more.
func (p *Precheck) compareRecord(t Ticket) (gone bool) {
	if !p.Answer.Record.Seen() {
		return false
	}
	now := seenRecord(p.Answer.Record)
	rows := p.rows()
	switch {
	case len(rows) == 0:
		return true
	case now == nil:
		// Several rows: refused already.
	case t.Record == nil || !t.Record.same(*now):
		p.refuse(true, "changed", flow.T("the record changed since it was shown: now %s", "记录在展示之后已改变：现在为 %s", wordRow(rows[0])))
	}
	return false
}

// setBack does what checkRecord says.
func (a *Actor) setBack(ctx context.Context, p *Precheck) (done, *Refusal) {
	d := done{before: wordRow(p.rows()[0])}
	changed, err := a.options.Ledgers[p.Answer.Flow.Ledger].Reset(ctx, p.plan)
	switch {
	case err != nil && ledger.Unchanged(err):
		d.outcome, d.code, d.why = failed, "store_failed", flow.T("MySQL refused, and nothing was changed: %v", "MySQL 拒绝，未做任何更改：%v", ledger.Explain(err))
	case err != nil:
		d.outcome, d.code, d.why = failed, "store_failed", flow.T("MySQL gave no answer, so whether the record was changed is not known: %v", "MySQL 没有应答，无法得知记录是否已更改：%v", ledger.Explain(err))
	case !changed:
		return d, &Refusal{"changed", flow.T("the record changed in the very moment of writing", "记录恰在写入时发生了变化")}
	default:
		d.outcome, d.code, d.why = succeeded, "done", flow.T("the record was set back to %s (failed): the next delivery may run", "记录已重置为 %s（失败）：下一次投递可以执行", flow.Visible(p.plan.To))
	}
	return d, nil
}

// wordRow is the state of a record for the journal.
func wordRow(r ledger.Row) string {
	text := fmt.Sprintf("%s status=%s", whereIs(r), flow.Visible(r.Status))
	for _, s := range []struct {
		name  string
		stamp ledger.Stamp
	}{{"created", r.Created}, {"updated", r.Updated}, {"completed", r.Completed}} {
		if s.stamp.State != ledger.StampMissing && s.stamp.State != ledger.StampNull {
			text += fmt.Sprintf(" %s=%s", s.name, s.stamp.Text)
		}
	}
	return text
}
