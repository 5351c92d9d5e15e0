package doctor

import (
	"slices"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

const (
	// margin is how many times the mean run a lock should live.
	margin = 10
	// longLock is from when on a crash blocks its key for longer than anybody wants to wait.
	longLock = time.Hour
	// usualAckTimeout is the broker's, where nobody sets another.
	usualAckTimeout = 30 * time.Minute
	// sampleID stands for any id when templates are compared.
	sampleID = "42"
)

const distributedLocks = "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/"

var flowRules = append([]rule[flowFacts]{
	{Check{
		Code: "lock_below_p99", Severity: Critical,
		Title:  flow.T("The lock expires before the work ends", "锁在业务结束前就会过期"),
		Why:    flow.T("More than one run in a hundred outlives its lock: a redelivery in that time starts a second run.", "每百次执行中有一次以上超过锁的 TTL：期间若重新投递，就会开始第二次执行。"),
		Manual: distributedLocks,
	}, judgeLockTTL},
	{Check{
		Code: "lock_margin_small", Severity: Warning,
		Title:  flow.T("The lock has little to spare", "锁的余量不足"),
		Why:    flow.T("A slow database or a pause of the process is enough to outlive it.", "数据库变慢或进程停顿就足以使执行超过锁的 TTL。"),
		Manual: distributedLocks,
	}, judgeLockMargin},
	{Check{
		Code: "lock_ttl_undeclared", Severity: Warning,
		Title:  flow.T("The lock's TTL is not declared", "未声明锁的 TTL"),
		Why:    flow.T("If consumers set none, a crash blocks the key for ever. Nothing can compare it with run times, and no look-up can tell since when a lock is held.", "如果消费者没有设置 TTL，一次崩溃就会永远阻塞该键。此外无法与执行时间比较，查询也无法判断锁从何时开始持有。"),
		Manual: "https://redis.io/docs/latest/commands/set/",
	}, judgeUndeclared},
	{Check{
		Code: "lock_ttl_long", Severity: Warning,
		Title:  flow.T("A crash blocks the key for hours", "一次崩溃会阻塞该键数小时"),
		Why:    flow.T("Until the lock of a dead consumer expires, every retry is turned away.", "在崩溃的消费者留下的锁过期之前，每次重试都会被拒绝。"),
		Manual: distributedLocks,
	}, judgeLongLock},
	{Check{
		Code: "lock_is_marker", Severity: Critical,
		Title:  flow.T("Lock and marker are one key", "锁和标记是同一个键"),
		Why:    flow.T("Releasing the lock deletes the marker, or the marker keeps the lock taken: one of the two layers is not there.", "释放锁会删除标记，或者标记使锁一直被占用：两道防线少了一道。"),
		Manual: distributedLocks,
	}, judgeOneKey},
	{Check{
		Code: "keys_shared", Severity: Critical,
		Title:  flow.T("Different operations share a Redis key", "不同业务共用 Redis 键"),
		Why:    flow.T("With the same id they block each other, and a marker of the one makes messages of the other vanish as duplicates.", "ID 相同时会互相阻塞；一种业务的标记会让另一种业务的消息被当作重复而消失。"),
		Manual: "https://redis.io/docs/latest/develop/using-commands/keyspace/",
	}, judgeShared},
	{Check{
		Code: "keys_can_collide", Severity: Warning,
		Title:  flow.T("Two keys can be spelled alike in Redis", "两个键在 Redis 中可能拼写相同"),
		Why:    flow.T("Where a separator also stands inside a biz_type or an id, two different keys make one Redis key; idemscope refuses to take it for evidence.", "分隔符同时出现在业务类型或 ID 中时，两个不同的键会拼成同一个 Redis 键；idemscope 不会把它当作证据。"),
		Manual: "https://redis.io/docs/latest/develop/using-commands/keyspace/",
	}, judgeCollide},
	{Check{
		Code: "stale_before_lock", Severity: Warning,
		Title: flow.T("A record counts as stale while its lock lives", "锁还在时记录就被判定为超时"),
		Why:   flow.T("A run that its lock still protects is reported as if it had died.", "仍受锁保护的执行会被当作已崩溃上报。"),
	}, judgeStaleLock},
	{Check{
		Code: "stale_before_p99", Severity: Warning,
		Title: flow.T("A record counts as stale while it is at work", "正在执行的记录会被判定为超时"),
		Why:   flow.T("Runs that take their time are reported as if they had died.", "耗时较长的正常执行会被当作已崩溃上报。"),
	}, judgeStaleRuns},
	{Check{
		Code: "ack_timeout_short", Severity: Critical,
		Title:  flow.T("The broker's ack timeout is shorter than the longest run", "消息代理的确认超时短于最长的执行"),
		Why:    flow.T("The broker closes the channel and delivers the message again while the first run is still at work.", "第一次执行还在进行时，消息代理就会关闭信道并重新投递消息。"),
		Manual: "https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout",
	}, judgeAckTimeout},
	{Check{
		Code: "refuse_loses", Severity: Info,
		Title: flow.T("A crash loses the message", "一次崩溃就会丢失消息"),
		Why:   flow.T("The next delivery meets the record of the dead run, acks the message, and nothing is left that would run it.", "下一次投递遇到已崩溃执行留下的记录后会确认消息，此后再也没有东西会执行它。"),
	}, judgeRefuse},
	{Check{
		Code: "resume_against_never", Severity: Warning,
		Title: flow.T("Consumers do what operators must not", "消费者会做操作员不被允许的事"),
		Why:   flow.T("Consumers take over the record of a dead run and run it again, while the flow says that it must never be run again.", "消费者会接管崩溃执行的记录并再次执行，而该流程声明绝不能再次执行。"),
	}, judgeResume},
	{Check{
		Code: "types_never_seen", Severity: Info,
		Title: flow.T("A biz_type of the flow was never seen", "流程的业务类型从未出现"),
		Why:   flow.T("It may be new, or spelled differently by the consumers: its metrics stay at 0 and its alerts silent.", "可能是新的，也可能与消费者使用的写法不同：其指标一直为 0，告警也不会触发。"),
	}, judgeNeverSeen},
}, retentionRules...)

// onRuns judges each type that has run.
func onRuns(f flowFacts, judge func(runs) []outcome) []outcome {
	if !f.counted {
		return skip()
	}
	return given(f.runs, func(all []runs) []outcome { return worst(all, judge) })
}

// expires reports whether the lock has a TTL that a run can outlive.
func (f flowFacts) expires() bool { return f.Lock != nil && f.Lock.TTL > 0 && !f.Lock.Renewed }

func judgeLockTTL(f flowFacts) []outcome {
	if !f.expires() {
		return skip()
	}
	return onRuns(f, func(r runs) []outcome { return when(r.p99.low >= f.Lock.TTL, f.lockSeen(r), lockFix, "") })
}

var lockFix = flow.T("Raise the lock's TTL above the P99 and to ten times the mean, let a watchdog renew it, or make the work shorter.", "把锁的 TTL 提高到 P99 以上且不低于平均值的十倍，或用看门狗续期，或缩短业务。")

func (f flowFacts) lockSeen(r runs) flow.Text {
	return flow.T("%s: the P99 of %d runs lies %v, the mean is %v; the lock lives %v", "%s：%d 次执行的 P99 在 %v，平均 %v；锁的 TTL 为 %v",
		flow.Visible(r.bizType), r.number, r.p99.word(), flow.Span(r.mean), flow.Span(f.Lock.TTL))
}

func judgeLockMargin(f flowFacts) []outcome {
	if !f.expires() {
		return skip()
	}
	return onRuns(f, func(r runs) []outcome {
		if r.p99.low >= f.Lock.TTL {
			return skip() // lock_below_p99 says so
		}
		near := r.p99.high == 0 || r.p99.high > f.Lock.TTL
		return when(near || r.mean*margin > f.Lock.TTL, f.lockSeen(r), lockFix, "")
	})
}

func judgeUndeclared(f flowFacts) []outcome {
	if f.Lock == nil {
		return skip()
	}
	return when(f.Lock.TTL == 0, flow.T("flows.%s.lock has no ttl", "flows.%s.lock 没有 ttl", f.Name),
		flow.T("Declare the TTL that the consumers set.", "请声明消费者设置的 TTL。"), "")
}

func judgeLongLock(f flowFacts) []outcome {
	if f.Lock == nil || f.Lock.TTL == 0 {
		return skip()
	}
	return when(f.Lock.TTL >= longLock, flow.T("the lock lives %v", "锁的 TTL 为 %v", flow.Span(f.Lock.TTL)),
		flow.T("Use a short TTL that a watchdog renews while the work goes on.", "使用较短的 TTL，并在业务执行期间由看门狗续期。"), "")
}

func judgeOneKey(f flowFacts) []outcome {
	if f.Lock == nil || f.Marker == nil {
		return skip()
	}
	k := flow.Key{BizType: "t", BizID: sampleID}
	same := f.Lock.Redis == f.Marker.Redis && f.Lock.Render(k) == f.Marker.Render(k)
	return when(same, flow.T("both are %s", "两者都是 %s", flow.Visible(f.Lock.Template.String())),
		flow.T("Give each a key of its own. If consumers keep one key that stays, configure it as the marker alone.", "为两者使用不同的键。如果消费者只用一个长期保留的键，请只把它配置为标记。"), "")
}

// collision is a Redis key that two keys own.
type collision struct {
	redisKey     string
	one, other   flow.Key
	otherFlow    string
	unlistedType bool
}

// collisions finds, for a sample id of each type, the Redis keys that others own
// as well. shared: with one and the same id.
func (f flowFacts) collisions(shared bool) (found []collision) {
	for _, shape := range keysOf(f.Flow) {
		types := f.BizTypes
		if f.Rest {
			types = []string{"any"}
		}
		for _, t := range types {
			k := flow.Key{BizType: t, BizID: sampleID}
			redisKey := shape.Render(k)
			owners, anyType := f.catalog.Owners(shape.Redis, redisKey, k)
			if anyType && shared {
				found = append(found, collision{redisKey: redisKey, one: k, unlistedType: true})
			}
			for _, owner := range owners {
				if (owner.Key.BizID == sampleID) == shared {
					found = append(found, collision{redisKey: redisKey, one: k, other: owner.Key, otherFlow: owner.Flow})
				}
			}
		}
	}
	return found
}

func (c collision) seen() flow.Text {
	if c.unlistedType {
		return flow.T("%s belongs to the id %s of every biz_type", "%s 属于所有业务类型中 ID 为 %s 的键", flow.Visible(c.redisKey), c.one.BizID)
	}
	return flow.T("%s belongs to %s and to %s (flow %s)", "%s 同时属于 %s 和 %s（流程 %s）", flow.Visible(c.redisKey), c.one, c.other, c.otherFlow)
}

func (f flowFacts) judgeCollisions(shared bool, fix flow.Text) []outcome {
	if f.Lock == nil && f.Marker == nil {
		return skip()
	}
	found := f.collisions(shared)
	if len(found) == 0 {
		return fine()
	}
	seen := found[0].seen()
	if more := len(found) - 1; more > 0 {
		seen = flow.T("%s, and %d more of the kind", "%s，另有 %d 处类似", seen, more)
	}
	return bad(seen, fix, "")
}

func judgeShared(f flowFacts) []outcome {
	return f.judgeCollisions(true, flow.T("Put {biz_type} into the key, in the consumers and then in the configuration.", "在键中加入 {biz_type}：先改消费者，再改配置。"))
}

func judgeCollide(f flowFacts) []outcome {
	return f.judgeCollisions(false, flow.T("Use a separator that stands in no biz_type, and put what tells lock from marker before the id, not behind it.", "使用任何业务类型中都不会出现的分隔符；区分锁与标记的部分放在 ID 之前而不是之后。"))
}

func judgeStaleLock(f flowFacts) []outcome {
	if !f.expires() || f.StaleAfter == 0 {
		return skip()
	}
	return when(f.StaleAfter < f.Lock.TTL, flow.T("stale_after is %v, the lock lives %v", "stale_after 为 %v，锁的 TTL 为 %v", flow.Span(f.StaleAfter), flow.Span(f.Lock.TTL)), staleFix, "")
}

var staleFix = flow.T("Raise stale_after above the lock's TTL and the longest run.", "把 stale_after 提高到锁的 TTL 和最长执行时间以上。")

func judgeStaleRuns(f flowFacts) []outcome {
	if f.StaleAfter == 0 {
		return skip()
	}
	return onRuns(f, func(r runs) []outcome {
		return when(r.p99.low >= f.StaleAfter, flow.T("%s: the P99 of %d runs lies %v, stale_after is %v", "%s：%d 次执行的 P99 在 %v，stale_after 为 %v",
			flow.Visible(r.bizType), r.number, r.p99.word(), flow.Span(f.StaleAfter)), staleFix, "")
	})
}

func judgeAckTimeout(f flowFacts) []outcome {
	if f.queue == nil {
		return skip()
	}
	return onRuns(f, func(r runs) []outcome {
		return found(func(_ queueFacts, q broker.QueueSetUp) []outcome { return f.judgeLongest(r, q) })(*f.queue)
	})
}

func (f flowFacts) judgeLongest(r runs, q broker.QueueSetUp) []outcome {
	if q.Kind == "stream" {
		return skip()
	}
	timeout := f.ackTimeout(q)
	seen := flow.T("%s: the longest run took %v; the broker waits %v", "%s：最长的执行耗时 %v；消息代理等待 %v", flow.Visible(r.bizType), r.longest.word(), flow.Span(timeout))
	if r.longest.high == 0 && r.longest.low < timeout {
		return unsure(flow.T("%s; how long exactly, the counters do not tell", "%s；计数器没有给出确切时长", seen))
	}
	return when(r.longest.low >= timeout, seen, flow.T("Raise consumer_timeout above the longest run, or split the work.", "把 consumer_timeout 提高到最长执行时间以上，或拆分业务。"), "")
}

// ackTimeout is that of the queue or its policy, else the declared one, else the
// broker's usual one: no API tells what the broker is set to.
func (f flowFacts) ackTimeout(q broker.QueueSetUp) time.Duration {
	switch {
	case q.AckTimeout > 0:
		return q.AckTimeout
	case f.Queue.AckTimeout > 0:
		return f.Queue.AckTimeout
	}
	return usualAckTimeout
}

func judgeRefuse(f flowFacts) []outcome {
	return when(f.OnProcessing == flow.Refuse, flow.T("on_processing is refuse", "on_processing 为 refuse"),
		flow.T("Let consumers give such a message back (retry), and take over records that are stale and unlocked; until then watch the findings.", "让消费者把这类消息退回（retry），并接管超时且未加锁的记录；在此之前请关注问题列表。"), "")
}

func judgeResume(f flowFacts) []outcome {
	return when(f.OnProcessing == flow.Resume && f.Rerun == flow.RerunNever, flow.T("on_processing is resume, rerun is never", "on_processing 为 resume，rerun 为 never"),
		flow.T("Decide which holds: if a second run does harm, consumers must not resume.", "请确定以哪个为准：如果第二次执行有害，消费者就不能接管。"), "")
}

func judgeNeverSeen(f flowFacts) []outcome {
	if f.Rest {
		return skip()
	}
	return given(f.types, func(types typeList) []outcome {
		if !types.complete {
			return skip()
		}
		unseen := slices.DeleteFunc(slices.Clone(f.BizTypes), func(t string) bool { return carries(types.list, t) })
		return when(len(unseen) > 0, flow.T("the ledger holds no record of %s", "表中没有 %s 的记录", visible(unseen)),
			flow.T("Compare the spelling with what the consumers write.", "请与消费者写入的值核对写法。"), "")
	})
}
