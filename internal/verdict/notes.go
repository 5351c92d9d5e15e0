package verdict

import (
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// notes are the smaller truths beside the verdict with the given code.
func (e evidence) notes(code Code) []Note {
	var notes []Note
	add := func(applies bool, code string, text flow.Text) {
		if applies {
			notes = append(notes, Note{code, text})
		}
	}
	done := e.is(flow.Completed)
	unprotected, outlived := e.unprotected()
	add(code == Completed && outlived, "unprotected_for", flow.T(
		"from first claim to completion it took %v longer than the lock's TTL: for that long the unique key alone protected it",
		"从首次占用到完成比锁的 TTL 多出 %v：这段时间只有唯一键在保护", flow.Span(unprotected)))
	add(done && there(e.Lock), "lock_left", flow.T("the lock is still there although the run is over", "执行已结束，但锁仍然存在"))
	add(code == Completed && len(e.exact) > 1, "more_records", flow.T("this key has %d records; the others are not completed", "该键有 %d 条记录，其余未完成", len(e.exact)))
	add(code == Running && e.long(), "long", flow.T("it has been running for longer than 99 %% of the runs of its kind (P99: %v)", "执行时间已超过同类执行的 99 %%（P99：%v）", flow.Span(e.P99)))
	add(done && there(e.Lock) && e.Lock.Extended(), "lock_renewed", flow.T("the lock is still being extended although the run is over", "执行已结束，但锁仍在被续期"))
	add(code == Running && (e.lockTakenAnew() || there(e.Lock) && e.Lock.Extended()), "renewed", flow.T("the lock was extended while the run goes on", "执行过程中锁被续期"))
	add(code == Running && e.is(flow.Processing) && e.Lock != nil && e.Lock.State == flow.Absent, "lock_absent", flow.T(
		"no lock protects this run: a second delivery would get past Redis to the unique key", "没有锁在保护这次执行：再次投递会越过 Redis 到达唯一键"))
	add(code == Running && e.lockGoneEarly(), "lock_gone_early", flow.T("the lock is gone before its TTL was over: given back early, deleted, or evicted", "锁在 TTL 结束之前就消失了：被提前释放、删除或淘汰"))
	add(e.row != nil && e.row.IDFills, "id_fills_column", flow.T("the id fills its column: a longer one may have been cut to it", "该 ID 占满了列宽：更长的 ID 可能被截断成它"))
	add(code == Stuck && e.lockCouldDecide() && e.Lock.Server == nil, "redis_unverified", flow.T(
		"whether Redis was restarted or evicted keys meanwhile is not known (it does not answer INFO)", "无法得知 Redis 在此期间是否重启或淘汰过键（它不应答 INFO）"))
	add(e.is(flow.Failed) && e.lockHeld(), "lock_held", flow.T("a lock is held: a retry is just beginning, or it is refused until the lock expires", "锁被持有：重试刚开始，或在锁过期前都会被拒绝"))
	add(code == Stuck && e.unacked() > 0, "unacked_could_be_it", flow.T(
		"messages delivered and not acked yet: %d; this could be among them, and its consumer still at work", "已投递未确认的消息：%d；它可能就在其中，消费者或许仍在工作", e.unacked()))
	add(e.Key.BizID == "", "empty_id", flow.T("the biz_id is empty: every message without an id shares this key", "业务 ID 为空：所有没有 ID 的消息都共用这个键"))
	add(len(e.near) > 0 && len(e.exact) > 0, "near_miss", flow.T("MySQL also matches %d records whose bytes differ", "MySQL 还匹配到 %d 条字节不同的记录", len(e.near)))
	add(e.Record.Replica, "replica", flow.T("read from a replica or read-only server: it may lag behind", "读取自副本或只读服务器：可能有延迟"))
	for _, n := range e.redisNotes(e.Lock, e.Flow.Lock, "lock", flow.T("the lock", "锁")) {
		add(true, n.Code, n.Text)
	}
	for _, n := range e.redisNotes(e.Marker, e.Flow.Marker, "marker", flow.T("the marker", "标记")) {
		add(true, n.Code, n.Text)
	}
	notes = append(notes, e.eventNotes(code)...)
	notes = append(notes, e.surroundingNotes()...)
	add(e.Broker != nil && e.Broker.State == flow.Error, "broker_unread", flow.T("the queues could not be read", "未能读取队列"))
	return notes
}

// lockGoneEarly: the record was created less than the lock's TTL ago, and there
// is no lock.
func (e evidence) lockGoneEarly() bool {
	if e.Lock == nil || e.Lock.State != flow.Absent || !e.is(flow.Processing) || e.row.Created.State != ledger.StampOK || e.Record.DBNow.IsZero() {
		return false
	}
	return e.Record.DBNow.Sub(e.row.Created.Time)+lockMargin < e.Flow.Lock.TTL
}

// lockCouldDecide: a silent record is called stuck because a lock that could
// still live is not there.
func (e evidence) lockCouldDecide() bool {
	return e.Lock != nil && e.Lock.State == flow.Absent && e.silent() && e.lockCouldLive()
}

// redisNotes are what is odd about one Redis key.
func (e evidence) redisNotes(r *dossier.RedisEvidence, shape *flow.RedisKey, code string, name flow.Text) []Note {
	switch {
	case failedToRead(r):
		return []Note{{code + "_unread", flow.T("%v could not be read", "未能读取%v", name)}}
	case !there(r):
		return nil
	}
	var notes []Note
	if r.Ambiguous() {
		notes = append(notes, Note{code + "_ambiguous", flow.T("%v's Redis key could be another key's as well: it is evidence for neither", "%v的 Redis 键也可能属于别的键：对两者都不构成证据", name)})
	}
	if r.Foreign {
		notes = append(notes, Note{code + "_foreign_type", flow.T("%v holds a %s where a plain value is expected", "%v的类型是 %s，而应为普通值", name, r.Type)})
	}
	if r.NoTTL {
		notes = append(notes, Note{code + "_without_ttl", flow.T("%v has no TTL and never expires", "%v没有 TTL，永不过期", name)})
	}
	if !r.NoTTL && shape.TTL > 0 && r.TTL > shape.TTL {
		notes = append(notes, Note{code + "_ttl_implausible", flow.T("%v has %v left, more than the %v that the flow declares", "%v剩余 %v，超过流程声明的 %v", name, flow.Span(r.TTL), flow.Span(shape.TTL))})
	}
	return notes
}

// unprotected is by how much a completed run outlived its lock.
func (e evidence) unprotected() (by time.Duration, outlived bool) {
	if !e.is(flow.Completed) || !e.row.RunTimeKnown || e.Flow.Lock == nil || e.Flow.Lock.TTL == 0 || e.Flow.Lock.Renewed {
		return 0, false
	}
	return e.row.RunTime - e.Flow.Lock.TTL, e.row.RunTime >= e.Flow.Lock.TTL
}

// unacked counts deliveries of the flow's work queue that are not acked.
func (e evidence) unacked() int64 {
	var n int64
	if e.Broker != nil {
		for _, q := range e.Broker.Queues {
			if q.Role == broker.RoleWork {
				n += q.Unacked
			}
		}
	}
	return n
}
