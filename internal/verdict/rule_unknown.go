package verdict

import (
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// unknown: a layer that decides between the rules below could not be read, or
// what it shows cannot be attributed to this key.
func unknown(e evidence) *Verdict {
	gap := e.gap()
	if gap == nil {
		return nil
	}
	return &Verdict{
		Code: Unknown, Severity: Unsure, Layer: gap.layer,
		Sentence: flow.T("Cannot tell: %v.", "无法判断：%v。", gap.why),
		Facts:    e.facts(),
		Next:     gap.next,
		Advice:   gap.advice,
	}
}

// whenItAnswers is what to expect of a layer that could not be read.
func whenItAnswers() []flow.Text {
	return []flow.Text{flow.T("Look again when that layer answers; what the other layers show still holds.", "待该层可读后再查；其他层所示内容仍然有效。")}
}

// whenTotalsAreNewer is what to expect of totals that may be too old.
func whenTotalsAreNewer() []flow.Text {
	return []flow.Text{flow.T("Look again in half a minute: the queue figures are newer then.", "半分钟后再查：届时队列数字会更新。")}
}

// gap is evidence that is missing where it decides.
type gap struct {
	layer        flow.Layer
	why          flow.Text
	next, advice []flow.Text
}

// gap finds the first missing piece of evidence that decides, record first: it
// depends on the record which other layers matter. Nil when nothing is missing.
func (e evidence) gap() *gap {
	if !e.Record.Seen() {
		return e.gapOfUnreadRecord()
	}
	switch {
	case e.is(flow.Completed), e.fresh(), e.is(flow.Unmapped):
		return nil
	case e.Record.Replica && !e.caughtUp() && (e.is(flow.Processing) || e.is(flow.Failed) || e.notBegun()):
		return e.gapOfReplica()
	case e.is(flow.Processing):
		return e.gapOfSilentRecord()
	case e.is(flow.Failed):
		return e.gapOfFailedRecord()
	}
	return e.gapWithoutRecord()
}

// gapOfUnreadRecord also knows ids that the column cannot hold.
func (e evidence) gapOfUnreadRecord() *gap {
	g := &gap{layer: flow.LayerMySQL, why: flow.T("the record could not be read (%v)", "无法读取记录（%v）", e.Record.Reason), next: whenItAnswers()}
	if e.Record.Unstorable {
		g.next = nil
		g.advice = []flow.Text{flow.T("Give the id columns the character set utf8mb4: the present one cannot hold this id.", "将 ID 列改为 utf8mb4 字符集：当前字符集无法保存该 ID。")}
	}
	return g
}

// caughtUp: the replica says that it is not behind. It counts whole seconds.
func (e evidence) caughtUp() bool { return e.Record.LagKnown && e.Record.Lag <= time.Second }

func (e evidence) gapOfReplica() *gap {
	says := flow.T("there is no record", "没有记录")
	if e.row != nil {
		says = flow.T("the record says %v", "记录状态为%v", e.row.Phase.Word())
	}
	why := flow.T("%v, but it was read from a replica or read-only server, and its primary may know better",
		"%v，但读取自从库或只读库，主库上的情况可能已经不同", says)
	if e.Record.LagKnown {
		why = flow.T("%v, but it was read from a replica that is %v behind, and its primary may know better",
			"%v，但读取自落后 %v的从库，主库上的情况可能已经不同", says, flow.Span(e.Record.Lag))
	}
	return &gap{layer: flow.LayerMySQL, why: why, advice: []flow.Text{flow.T("Look the record up on the primary.", "到主库上查询该记录。")}}
}

// gapOfForgetfulRedis: no lock is there, and Redis may have lost one that should
// still live: it was started anew or threw keys away since the last sign of life.
func (e evidence) gapOfForgetfulRedis() *gap {
	if e.Lock == nil || e.Lock.State != flow.Absent || e.Lock.Server == nil || !e.lockCouldLive() {
		return nil
	}
	advice := []flow.Text{flow.T("Look for the consumer itself: its process, its logs, the unacked messages of the queue.", "直接查看消费者：进程、日志、队列中未确认的消息。")}
	switch server := e.Lock.Server; {
	case server.Uptime < e.row.Age && !(server.PersistentKnown && server.Persistent):
		return &gap{layer: flow.LayerRedis, advice: advice, why: flow.T(
			"there is no lock, but Redis was started %v ago, after the record's last sign of life, and may have lost it", "没有锁，但 Redis 在 %v前才启动，晚于记录最近一次动静，锁可能已丢失", flow.Span(server.Uptime))}
	case server.NoneEvictedFor < min(e.row.Age, server.Uptime):
		return &gap{layer: flow.LayerRedis, advice: advice, why: flow.T(
			"there is no lock, but Redis has evicted keys for want of memory (%d since it started), and may have thrown it away", "没有锁，但 Redis 因内存不足淘汰过键（启动以来 %d 个），锁可能已被淘汰", server.Evicted)}
	case e.Lock.Before != nil && e.Lock.Before.Found && e.Lock.Before.Expires.After(e.Lock.ReadAt) && e.Lock.Before.RunID != server.RunID:
		return &gap{layer: flow.LayerRedis, advice: advice, why: flow.T(
			"the lock was seen %v ago and should still live, but another Redis server answers now: a failover may have lost it", "锁在 %v前还存在且本应有效，但现在应答的是另一台 Redis：故障切换可能丢失了它", flow.Span(e.Lock.ReadAt.Sub(e.Lock.Before.At)))}
	}
	return nil
}

// gapOfOldLock: a lock is a sign of life only of the moment when it was set. One
// that is older than the flow lets a run be silent would be there all the same
// if its holder had died.
func (e evidence) gapOfOldLock() *gap {
	if !e.lockHeld() || e.lockRecent() {
		return nil
	}
	age, known := e.lockAge()
	why := flow.T("the record is silent for %v, and the lock, taken %v ago, would be held until its TTL ends even if the run had died",
		"记录已 %v 没有动静，而锁是 %v前获取的，即使执行已中断也会保留到 TTL 结束", flow.Span(e.row.Age), flow.Span(age))
	if !known {
		why = flow.T("the record is silent for %v, and since when the lock is held cannot be told, so it proves no run",
			"记录已 %v 没有动静，而无法得知锁从何时起被持有，不能证明仍在执行", flow.Span(e.row.Age))
	}
	return &gap{layer: flow.LayerRedis, why: why, next: []flow.Text{e.lockExpires()}, advice: []flow.Text{
		flow.T("Look for the consumer itself: its process, its logs, the unacked messages of the queue.", "直接查看消费者：进程、日志、队列中未确认的消息。"),
		flow.T("Declare the lock's TTL (flows.%s.lock.ttl), and let it be shorter than stale_after.", "请声明锁的 TTL（flows.%s.lock.ttl），并让它短于 stale_after。", e.Flow.Name),
	}}
}

// lockRecent: the lock was set no longer ago than the flow lets a run be silent,
// or this process has seen it extended.
func (e evidence) lockRecent() bool {
	age, known := e.lockAge()
	return e.lockHeld() && (known && age <= e.Flow.StaleAfter || e.Lock.Extended())
}

// lockCouldLive: a lock taken for the run that the record shows could still be
// there; otherwise its absence is what time alone does.
func (e evidence) lockCouldLive() bool {
	return e.Flow.Lock.Renewed || e.Flow.Lock.TTL == 0 || e.Flow.Lock.TTL > e.row.Age
}

// gapOfSilentRecord: only a lock that is read, and is ours, tells running from stuck.
func (e evidence) gapOfSilentRecord() *gap {
	if g := redisGap(e.Lock, lockName()); g != nil {
		return g
	}
	if e.silent() {
		if g := e.gapOfOldLock(); g != nil {
			return g
		}
		if g := e.gapOfForgetfulRedis(); g != nil {
			return g
		}
	}
	if e.lockRecent() || e.row.AgeKnown || e.row.LastSign().State == ledger.StampZero || e.row.LastSign().State == ledger.StampAmbiguous {
		return nil
	}
	return &gap{
		layer:  flow.LayerMySQL,
		why:    flow.T("the record is processing, but no time column tells for how long", "记录处于处理中，但没有时间列能说明已持续多久"),
		advice: []flow.Text{flow.T("Map a time column of the ledger: ledgers.*.columns.updated or created.", "为该表映射时间列：ledgers.*.columns.updated 或 created。")},
	}
}

func (e evidence) gapOfFailedRecord() *gap {
	if g := redisGap(e.Lock, lockName()); g != nil && !e.lockHeld() {
		return g
	}
	if g := redisGap(e.Marker, markerName()); g != nil {
		return g
	}
	if ours(e.Marker) {
		return nil
	}
	if g := e.brokerGap(); g != nil {
		return g
	}
	if e.lockOutlivedRun() {
		return nil
	}
	if e.placesUnseen() && !e.lockHeld() {
		return &gap{layer: flow.LayerBroker, why: flow.T("the run failed, and not every place where its message could rest was looked at (%v)",
			"执行失败，而且消息可能停留的地方没有全部查看（%v）", e.Broker.Reason)}
	}
	if e.brokerEmpty() && !e.olderThanTotals(e.row.Age, e.row.AgeKnown) {
		return &gap{layer: flow.LayerBroker, next: whenTotalsAreNewer(), why: flow.T(
			"the run failed less than %v ago, and the queue figures may be older than that", "执行在不到 %v前失败，而队列数字可能比这更旧", flow.Span(e.Broker.StatisticsAge))}
	}
	return nil
}

func (e evidence) gapWithoutRecord() *gap {
	for _, g := range []*gap{redisGap(e.Lock, lockName()), redisGap(e.Marker, markerName())} {
		if g != nil {
			return g
		}
	}
	if e.lockForEver() || e.archivedAway() {
		return nil
	}
	if there(e.Lock) {
		return e.gapOfLoneLock()
	}
	if a := e.Record.Archive; a != nil && !a.Seen() && len(e.exact) == 0 {
		return &gap{layer: flow.LayerMySQL, why: flow.T("there is no record, and the archive could not be read (%v)", "没有记录，而归档表无法读取（%v）", a.Reason), next: whenItAnswers()}
	}
	if g := e.brokerGap(); g != nil {
		return g
	}
	if ours(e.Marker) {
		if g := e.gapOfMarkedRun(); g != nil {
			return g
		}
		return e.gapOfYoungMarker()
	}
	if ev, ok := e.told(); ok {
		if g := e.gapOfToldKey(e.sinceEvent(ev)); g != nil {
			return g
		}
	}
	if e.placesUnseen() {
		return &gap{layer: flow.LayerBroker, why: flow.T("there is no trace of it, and not every place where its message could rest was looked at (%v)",
			"没有任何痕迹，而且消息可能停留的地方没有全部查看（%v）", e.Broker.Reason)}
	}
	return nil
}

// gapOfLoneLock: a lock without a record is a run that begins, a table that gets
// its row at the end, or a consumer that died in between.
func (e evidence) gapOfLoneLock() *gap {
	age, known := e.lockAge()
	if known && age <= acquireTime || e.Record.ByPresence || e.markerYoung() {
		return nil
	}
	return &gap{
		layer: flow.LayerRedis,
		why: flow.T("the lock is held but no record shows a run: the consumer is slow to write it, or died before it could",
			"锁被持有，但没有记录表明在执行：消费者写入较慢，或在写入前已中断"),
		next: []flow.Text{e.lockExpires()},
		advice: []flow.Text{
			flow.T("Look again when the lock has expired: a record, a waiting message or nothing at all will tell which.", "待锁过期后再查：届时是有记录、有等待的消息还是什么都没有，即可分辨。"),
			flow.T("If its holder is known to be dead and the wait is too long: delete the lock, only if its value is still the one shown here.", "若确认持有者已中断且无法等待：仅当锁的值仍与此处所示一致时才删除。"),
		},
	}
}

// placesUnseen: no message is known to wait, and not every place was looked at.
func (e evidence) placesUnseen() bool {
	return e.Broker != nil && e.Broker.State == flow.Unknown && e.waitingMessages() == 0
}

// gapOfMarkedRun: the marker says that a run goes on, the table gets its row at
// the end, and a message that could be this one is being worked on.
func (e evidence) gapOfMarkedRun() *gap {
	if !e.Record.ByPresence || !e.markerInProgress() || e.unacked() == 0 {
		return nil
	}
	return &gap{layer: flow.LayerRedis, next: []flow.Text{e.markerExpires()}, why: flow.T(
		"the marker says that a run goes on, and messages are delivered and not acked (%d): this could be one of them, or its run may have died",
		"标记表示正在执行，且有已投递未确认的消息（%d）：它可能是其中之一，也可能其执行已中断", e.unacked())}
}

// gapOfYoungMarker: a marker set a moment ago, and totals that may be older.
func (e evidence) gapOfYoungMarker() *gap {
	age, known := e.markerAge()
	if !e.brokerEmpty() || !known || age <= acquireTime || e.olderThanTotals(age, known) {
		return nil
	}
	return &gap{layer: flow.LayerBroker, next: whenTotalsAreNewer(), why: flow.T(
		"the marker was set %v ago without a record, and the queue figures may be older than that", "标记在 %v前设置但没有记录，而队列数字可能比这更旧", flow.Span(age))}
}

// gapOfToldKey: messages of the key were there a while ago, and whether a queue
// still holds one cannot be told. Neither lock nor marker is there.
func (e evidence) gapOfToldKey(ago time.Duration) *gap {
	switch {
	case e.Broker == nil:
		return &gap{layer: flow.LayerBroker, why: flow.T("a message of it was there %v ago and no record shows a run; the flow names no queue in which it could wait", "它的消息在 %v前还在，且没有记录表明执行过；该流程没有配置可能等待的队列", flow.Span(ago)),
			advice: []flow.Text{flow.T("Name the queue in flows.%s.queue to see whether it waits.", "在 flows.%s.queue 中配置队列，以便查看它是否在等待。", e.Flow.Name)}}
	case e.brokerEmpty() && !e.olderThanTotals(ago, true):
		return &gap{layer: flow.LayerBroker, next: whenTotalsAreNewer(), why: flow.T("a message of it was there %v ago, and the queue figures may be older than that", "它的消息在 %v前还在，而队列数字可能比这更旧", flow.Span(ago))}
	}
	return nil
}

func lockName() flow.Text   { return flow.T("the lock", "锁") }
func markerName() flow.Text { return flow.T("the marker", "标记") }

// redisGap: the key could not be read, or what it holds says nothing about this
// key of ours. Nil when it is absent, ours, or the flow has none.
func redisGap(r *dossier.RedisEvidence, name flow.Text) *gap {
	switch {
	case failedToRead(r):
		return &gap{layer: flow.LayerRedis, why: flow.T("%v could not be read (%v)", "无法读取%v（%v）", name, r.Reason), next: whenItAnswers()}
	case there(r) && r.Ambiguous():
		return &gap{layer: flow.LayerRedis, why: flow.T("%v exists, but its Redis key could be another key's as well", "%v存在，但同一个 Redis 键也可能属于别的键", name),
			advice: []flow.Text{flow.T("Give every biz_type its own Redis key: put {biz_type} into the template, with a separator that biz_types do not contain.",
				"让每个业务类型使用独立的 Redis 键：在模板中加入 {biz_type}，并使用业务类型中不会出现的分隔符。")}}
	case there(r) && r.Foreign && !r.NoTTL:
		return &gap{layer: flow.LayerRedis, why: flow.T("%v exists, but holds a %s where a plain value is expected, so it proves no run", "%v存在，但其类型为 %s 而不是普通值，不能证明有执行", name, r.Type)}
	}
	return nil
}

func (e evidence) brokerGap() *gap {
	if !e.brokerFailed() {
		return nil
	}
	return &gap{layer: flow.LayerBroker, why: flow.T("the queues could not be read (%v)", "无法读取队列（%v）", e.Broker.Reason), next: whenItAnswers()}
}
