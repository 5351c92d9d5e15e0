package action

import (
	"context"
	"fmt"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// expiryMargin is by how much an expiry may seem to move on without having been
// extended: less than that is the time that answers travel.
const expiryMargin = time.Second

// checkLock says what releasing the lock would do.
func (a *Actor) checkLock(p *Precheck) {
	seen := p.Answer
	p.effect(flow.LayerBroker, flow.T("nothing is changed; a message that is refused because of the lock can be taken up again", "不做更改；因锁被拒绝的消息可以再次被处理"))
	if seen.Flow.Lock == nil {
		p.effect(flow.LayerRedis, untouched())
		p.effect(flow.LayerMySQL, untouched())
		p.refuse(true, "no_lock", flow.T("the flow has no lock", "该流程没有锁"))
		return
	}
	a.checkRedis(p, seen.Lock, seen.Flow.Lock, lockName())
	p.effect(flow.LayerMySQL, flow.T("nothing is changed; the record goes on guarding the key", "不做更改；记录继续保护该键"))
	p.refuseAlive()
	p.warn(p.unacked() > 0, flow.T("messages delivered and not acked yet: %d; if one of them is this key's, its consumer may still be at work", "已投递未确认的消息：%d；如果其中有该键的消息，其消费者可能仍在工作", p.unacked()))
	p.warnTrail()
}

// checkMarker says what clearing the marker would do.
func (a *Actor) checkMarker(p *Precheck) {
	seen := p.Answer
	p.effect(flow.LayerBroker, flow.T("nothing is changed; messages that were dropped because of the marker do not come back by themselves", "不做更改；因标记而被丢弃的消息不会自行返回"))
	if seen.Flow.Marker == nil {
		p.effect(flow.LayerRedis, untouched())
		p.effect(flow.LayerMySQL, untouched())
		p.refuse(true, "no_marker", flow.T("the flow has no marker", "该流程没有标记"))
		return
	}
	a.checkRedis(p, seen.Marker, seen.Flow.Marker, markerName())
	p.effect(flow.LayerMySQL, flow.T("nothing is changed; without the marker, the record alone tells a duplicate", "不做更改；没有标记后，仅由记录识别重复"))
	p.refuseCompleted()
	p.unreadRedis(lockName(), seen.Lock)
	p.refuseAlive()
	p.warn(len(p.rows()) == 0 && seen.Record.State == flow.Absent, flow.T(
		"there is no record: if the work was done and its record was lost, the next message does it again", "没有记录：如果工作已完成而记录丢失，下一条消息会再次执行"))
	p.warnTrail()
}

func (p *Precheck) warnTrail() {
	t := p.Answer.Trail
	p.warn(t != nil && !t.Seen(), flow.T("what consumers report could not be read whole, so a run that goes on may be missed", "消费者上报的步骤未能完整读取，可能漏掉正在进行的执行"))
}

// checkRedis holds for both kinds of keys.
func (a *Actor) checkRedis(p *Precheck, r *dossier.RedisEvidence, shape *flow.RedisKey, name flow.Text) {
	store, open := a.options.Redis[shape.Redis]
	what := flow.T("key %s is deleted, if it still holds the value shown here and was not extended; compared and deleted in one step", "删除键 %s，前提是其值仍与此处所示一致且未被续期；比较与删除在同一步完成", flow.Visible(r.Key))
	if open && !store.Second {
		what = flow.T("%v; with the user that also reads (no redis.%s.act)", "%v；使用读取时的同一用户（未配置 redis.%s.act）", what, shape.Redis)
	}
	p.effect(flow.LayerRedis, what)
	p.refuse(!open, "no_credential", flow.T("redis %s cannot be changed from here", "不能在此更改 redis %s", shape.Redis))
	p.unread(name, r.Observation)
	switch {
	case r.State == flow.Absent:
		p.Nothing = flow.T("%v is not there", "%v不存在", name)
	case r.State != flow.Found:
	case r.Foreign:
		p.refuse(true, "foreign_type", flow.T("the key holds a %s where a plain value is expected: it may belong to something else", "该键的类型为 %s，而应为普通值：它可能属于别的用途", r.Type))
	case r.Length > int64(len(r.Value)):
		p.refuse(true, "value_cut", flow.T("the value has %d bytes, more than are read and compared (%d)", "值有 %d 字节，超过读取和比较的长度（%d）", r.Length, lockstore.MaxValue))
	}
	p.refuse(r.State == flow.Found && r.Ambiguous(), "ambiguous_owner", flow.T("the same Redis key could be another key's as well, which would lose it", "同一个 Redis 键也可能属于别的键，删除会影响它"))
}

// deleteKey does what checkRedis says.
func (a *Actor) deleteKey(ctx context.Context, p *Precheck, t Ticket, r *dossier.RedisEvidence, shape *flow.RedisKey) (done, *Refusal) {
	before := p.wordRedis(r)
	expected := lockstore.Expected{Key: r.Key, Value: r.Value, NoTTL: t.Redis.NoTTL}
	if !t.Redis.NoTTL {
		expected.MostTTL = max(0, t.Redis.Expires.Sub(a.options.Now())) + expiryMargin
	}
	got, err := a.options.Redis[shape.Redis].Release(ctx, expected)
	if err != nil {
		return done{outcome: failed, code: "store_failed", before: before, why: flow.T(
			"Redis gave no answer, so whether the key was deleted is not known: %v", "Redis 没有应答，无法得知键是否已删除：%v", wordsOf(err))}, nil
	}
	switch got.Outcome {
	case lockstore.Deleted:
		return done{outcome: succeeded, code: "done", before: before, why: flow.T("the key was deleted", "键已删除")}, nil
	case lockstore.AlreadyGone:
		return done{outcome: nothing, code: "already_gone", before: before, why: goneText(p.Kind)}, nil
	case lockstore.OtherType:
		return done{}, &Refusal{"foreign_type", flow.T("the key was replaced: it now holds a %s", "键已被替换：现在的类型为 %s", got.Type)}
	case lockstore.LongerExpiry:
		return done{}, &Refusal{"extended", extendedText()}
	}
	return done{}, &Refusal{"changed", heldText(wordValue(p.Kind, got.Value))}
}

// compareRedis refuses a key that is not as it was on the screen. gone: it is not
// there any more.
func (p *Precheck) compareRedis(t Ticket, r *dossier.RedisEvidence) (gone bool) {
	if r == nil || !r.Seen() {
		return false // refused for that already
	}
	if r.State == flow.Absent {
		return true
	}
	switch {
	case t.Redis == nil:
		p.refuse(true, "changed", flow.T("there was no key on the screen; now it is there: look again", "屏幕上没有该键，现在它存在了：请重新查看"))
	case r.Foreign:
	case !t.Redis.holds(r.Value):
		p.refuse(true, "changed", heldText(wordValue(p.Kind, r.Value)))
	case r.NoTTL != t.Redis.NoTTL, !r.NoTTL && r.ReadAt.Add(r.TTL).After(t.Redis.Expires.Add(expiryMargin)):
		p.refuse(true, "extended", extendedText())
	}
	return false
}

func goneText(kind Kind) flow.Text {
	if kind == ResetRecord {
		return flow.T("the record was gone already: cleaned up, or deleted by somebody else", "记录已经不在了：已被清理，或已被他人删除")
	}
	return flow.T("it was gone already: expired, or released by somebody else", "它已经不在了：已过期，或已被他人释放")
}

func heldText(value string) flow.Text {
	return flow.T("the value changed: now held by %s", "值已改变：现在由 %s 持有", value)
}

func extendedText() flow.Text {
	return flow.T("the value is the same, but it was extended or taken anew since: somebody lives", "值相同，但此后已被续期或重新获取：持有者仍在运行")
}

// wordRedis is the state of a key for the journal.
func (p *Precheck) wordRedis(r *dossier.RedisEvidence) string {
	switch {
	case r == nil:
		return ""
	case r.State == flow.Absent:
		return fmt.Sprintf("%s: absent", flow.Visible(r.Key))
	case r.State != flow.Found:
		return fmt.Sprintf("%s: %s", flow.Visible(r.Key), r.State)
	case r.Foreign:
		return fmt.Sprintf("%s: a %s", flow.Visible(r.Key), r.Type)
	case r.NoTTL:
		return fmt.Sprintf("%s = %s, no expiry", flow.Visible(r.Key), wordValue(p.Kind, r.Value))
	}
	return fmt.Sprintf("%s = %s, %d ms left", flow.Visible(r.Key), wordValue(p.Kind, r.Value), r.TTL.Milliseconds())
}

// cut keeps a value short in a sentence.
func cut(s string) string {
	const limit = 200
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
