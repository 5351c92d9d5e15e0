package console

import (
	"strings"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// words are the texts of the pages that do not come with the evidence.
type words struct {
	Tagline, Skip, SearchLabel, SearchHint, SearchButton, Start                              flow.Text
	Accepts, AcceptsID, AcceptsTyped, AcceptsRedis, AcceptsJSON, NotTrimmed                  flow.Text
	Flows, FlowsLead, Flow, Types, AllTypes, Lock, Marker, None                              flow.Text
	Retry, DeadLetter, Stale, ALock, AMarker, ARecord, Status                                flow.Text
	BizType, BizID, EmptyID, RawBytes, BytesCut                                              flow.Text
	Next, Advice, Facts, Notes, NoNext, NoAdvice, PointsTo                                   flow.Text
	Evidence, EvidenceLead, PointsHere, Queues, LockAndMarker                                flow.Text
	ReadAt, Took, Coverage, SeeYourself                                                      flow.Text
	Queue, Ready, Unacked, Consumers, OtherStates, Redelivered, DeadLettersOn, Sampled       flow.Text
	NoQueue, NoLock, NoMarker, NoRow, NoRedisKey                                             flow.Text
	Key, Value, EmptyValue, ValueCut, Kind, Held, NoTTL, TTL, OfDeclared, Owners, MoreOwners flow.Text
	Row, Stored, OtherBytes, TooLong, Replica, Clock                                         flow.Text
	JSON, Again, Language, Times, Copy, Copied, Expired, Units                               flow.Text
	Hits, NoTrace, NoTraceLead, HitsLead, NothingAsked, Cut, Sought                          flow.Text
	Meant, Looked, Findings, FlowsLink, Cleanup, Traces, Doctor                              flow.Text
	Environment, SignedIn, SignOut, Hidden, Audit                                            flow.Text
	Timeline, TimelineLead, Impossible, Sources                                              flow.Text
}

// newWords writes every text of the pages once, in both languages.
func newWords() words {
	return words{
		Tagline:      flow.T("What happened to this message?", "这条消息怎么了？"),
		Skip:         flow.T("Skip to the answer", "跳到结果"),
		SearchLabel:  flow.T("Look up a key", "查询一个键"),
		SearchHint:   flow.T("biz_id, biz_type:biz_id, Redis key or JSON message", "业务 ID、业务类型:业务 ID、Redis 键或 JSON 消息"),
		SearchButton: flow.T("Look up", "查询"),
		Start:        flow.T("Start page", "首页"),
		Findings:     flow.T("Findings", "问题列表"),
		FlowsLink:    flow.T("Flows", "流程"),
		Cleanup:      flow.T("Cleanup", "清理"),
		Doctor:       flow.T("Doctor", "体检"),
		Traces:       flow.T("Armed trace", "临时追踪"),
		Environment:  flow.T("What these stores belong to", "这些存储所属的环境"),
		SignedIn:     flow.T("Signed in as", "当前登录用户"),
		SignOut:      flow.T("Sign out", "退出登录"),
		Hidden:       answer.HiddenWords(),
		Audit:        flow.T("Audit", "操作审计"),

		Accepts:      flow.T("What the box takes", "可以输入"),
		AcceptsID:    flow.T("a biz_id alone: every biz_type is asked", "单独的业务 ID：会查询所有业务类型"),
		AcceptsTyped: flow.T("biz_type:biz_id", "业务类型:业务 ID"),
		AcceptsRedis: flow.T("a whole Redis key of a lock or marker", "锁或标记的完整 Redis 键"),
		AcceptsJSON:  flow.T("a JSON message body", "JSON 消息体"),
		NotTrimmed:   flow.T("Every byte counts: nothing is trimmed, and upper and lower case differ.", "逐字节精确匹配：不去空格，区分大小写。"),

		Flows:      flow.T("Configured flows", "已配置的流程"),
		FlowsLead:  flow.T("As the configuration has them; no store was asked for this page.", "内容来自配置；打开本页不会访问任何存储。"),
		Flow:       flow.T("Flow", "流程"),
		Types:      flow.T("biz_types", "业务类型"),
		AllTypes:   flow.T("every other biz_type of its ledger", "该表中的其他所有业务类型"),
		Lock:       flow.T("Lock", "锁"),
		Marker:     flow.T("Marker", "标记"),
		None:       flow.T("none", "无"),
		Retry:      flow.T("retry", "重试"),
		DeadLetter: flow.T("dead letter", "死信"),
		Stale:      flow.T("stale after %v", "超过 %v 判定为超时"),
		ALock:      flow.T("lock", "锁"),
		AMarker:    flow.T("marker", "标记"),
		ARecord:    flow.T("record", "记录"),
		Status:     flow.T("status", "状态"),

		BizType:  flow.T("biz_type", "业务类型"),
		BizID:    flow.T("biz_id", "业务 ID"),
		EmptyID:  flow.T("(empty)", "（空）"),
		RawBytes: flow.T("raw bytes", "原始字节"),
		BytesCut: flow.T("… of %d bytes", "… 共 %d 字节"),

		Next:     flow.T("What happens next by itself", "接下来会自行发生什么"),
		Advice:   flow.T("What to do, in this order", "建议（按顺序）"),
		Facts:    flow.T("Facts that decided it", "判定依据"),
		Notes:    flow.T("Also true", "其他情况"),
		NoNext:   flow.T("Nothing that idemscope knows of.", "据 idemscope 所知，没有。"),
		NoAdvice: flow.T("Nothing needs to be done.", "无需处理。"),
		PointsTo: flow.T("points to", "指向"),

		Evidence:      flow.T("What each layer shows", "各层所见"),
		EvidenceLead:  flow.T("in the order in which a message meets them", "按消息经过的顺序"),
		PointsHere:    flow.T("the verdict points here", "判定指向这里"),
		Queues:        flow.T("queues", "队列"),
		LockAndMarker: flow.T("lock and marker", "锁与标记"),

		Timeline:     flow.T("Timeline", "时间线"),
		TimelineLead: flow.T("what all sources tell, in one order", "所有来源的信息，按时间排列"),
		Impossible:   flow.T("impossible order:", "顺序不可能："),
		Sources:      flow.T("Sources of events", "事件来源"),

		ReadAt:      flow.T("Read at", "读取时间"),
		Took:        flow.T("took %v", "耗时 %v"),
		Coverage:    flow.T("What was looked at, and what was not", "查看了什么，没有查看什么"),
		SeeYourself: flow.T("See the same yourself", "自行查看"),

		Queue:         flow.T("queue", "队列"),
		Ready:         flow.T("ready", "就绪"),
		Unacked:       flow.T("unacked", "未确认"),
		Consumers:     flow.T("consumers", "消费者"),
		OtherStates:   flow.T("%d in other states, such as delayed", "%d 条处于其他状态（如延迟）"),
		Redelivered:   flow.T("redelivered %d times so far", "累计重新投递 %d 次"),
		DeadLettersOn: flow.T("rejected and expired messages go on to a dead-letter exchange", "被拒绝和过期的消息会转到死信交换机"),
		Sampled:       flow.T("Totals of whole queues, never about one key; sampled, and up to %v old.", "队列整体的数字，并不针对某个键；抽样统计，最多滞后 %v。"),

		NoQueue:    flow.T("This flow names no queue, so the broker was not asked.", "该流程没有配置队列，因此未查询消息代理。"),
		NoLock:     flow.T("This flow has no lock.", "该流程没有锁。"),
		NoMarker:   flow.T("This flow has no marker.", "该流程没有标记。"),
		NoRow:      flow.T("no record", "没有记录"),
		NoRedisKey: flow.T("not set", "未设置"),

		Key:        flow.T("Key", "键"),
		Value:      flow.T("Value", "值"),
		EmptyValue: flow.T("(empty value)", "（空值）"),
		ValueCut:   flow.T("only the beginning of %d bytes", "共 %d 字节，仅显示开头"),
		Kind:       flow.T("Type", "类型"),
		Held:       flow.T("Set", "设置于"),
		NoTTL:      flow.T("no TTL", "没有 TTL"),
		TTL:        flow.T("TTL left", "剩余 TTL"),
		OfDeclared: flow.T("of the %v that the flow declares", "（声明为 %v）"),
		Owners:     flow.T("May also belong to", "也可能属于"),
		MoreOwners: flow.T("other biz_types, which cannot be listed", "其他业务类型，无法一一列出"),

		Row:        flow.T("row", "行"),
		Stored:     flow.T("Stored", "存储的是"),
		OtherBytes: flow.T("MySQL takes this row for the key, but its bytes differ", "MySQL 认为该行就是这个键，但字节不同"),
		TooLong:    flow.T("The id is longer than the %d characters that the column keeps.", "ID 超过了列能保存的 %d 个字符。"),
		Replica:    flow.T("Read from a replica or read-only server: it may lag behind.", "读取自副本或只读服务器：可能有延迟。"),
		Clock:      flow.T("Database clock", "数据库时钟"),

		JSON:     flow.T("This answer as JSON", "以 JSON 查看"),
		Again:    flow.T("Look again", "重新查询"),
		Language: flow.T("Language", "语言"),
		Times:    flow.T("Times are shown in %s", "时间所用时区：%s"),
		Copy:     flow.T("Copy", "复制"),
		Copied:   flow.T("Copied", "已复制"),
		Expired:  flow.T("expired since", "此后已过期"),
		Units:    flow.T("d h min s", "天 小时 分 秒"),

		Hits:         flow.T("Keys that match", "匹配的键"),
		HitsLead:     flow.T("Each is a key of its own, with its own verdict.", "它们是各自独立的键，判定也各自独立。"),
		NoTrace:      flow.T("No trace of it", "没有任何痕迹"),
		NoTraceLead:  flow.T("No layer shows any of these keys. All of them were looked at:", "各层都没有以下这些键。已全部查看："),
		NothingAsked: flow.T("No biz_type could be asked: the flows name none, and their ledgers could not list any. Give biz_type:biz_id.", "没有可查询的业务类型：流程未指明，幂等表也无法列出。请输入 业务类型:业务 ID。"),
		Cut:          flow.T("Not every biz_type was asked: there are more than one search takes, or a ledger could not list its own. Give biz_type:biz_id to be sure.", "并未查询所有业务类型：数量超过一次搜索的上限，或某个幂等表无法列出。请输入 业务类型:业务 ID 以确认。"),
		Sought:       flow.T("Looked for", "查询内容"),
		Meant:        flow.T("What could have been meant", "可能的选择"),
		Looked:       flow.T("looked at", "查看于"),
	}
}

// severityWord words how much a verdict matters.
func severityWord(s verdict.Severity) flow.Text {
	switch s {
	case verdict.OK:
		return flow.T("OK", "正常")
	case verdict.Info:
		return flow.T("Info", "提示")
	case verdict.Warning:
		return flow.T("Warning", "警告")
	case verdict.Critical:
		return flow.T("Critical", "严重")
	}
	return flow.T("Undecided", "未定")
}

// codeWord is the verdict in one or two words, for titles and lists.
func codeWord(c verdict.Code) flow.Text {
	switch c {
	case verdict.KeyAmbiguous:
		return flow.T("AMBIGUOUS KEY", "键有歧义")
	case verdict.RanTwice:
		return flow.T("RAN TWICE", "执行了多次")
	case verdict.Unknown:
		return flow.T("CANNOT TELL", "无法判断")
	case verdict.ClockSkew:
		return flow.T("CLOCK SKEW", "时钟偏差")
	case verdict.Unreadable:
		return flow.T("UNREADABLE", "无法解读")
	case verdict.MayHaveRunTwice:
		return flow.T("MAY HAVE RUN TWICE", "可能执行了两次")
	case verdict.Stuck:
		return flow.T("STUCK", "卡住")
	case verdict.LostSuspected:
		return flow.T("POSSIBLY LOST", "疑似丢失")
	case verdict.DeadLettered:
		return flow.T("GIVEN UP", "已进入死信")
	case verdict.FailedUnplaced:
		return flow.T("FAILED", "失败")
	case verdict.RetryScheduled:
		return flow.T("RETRY WAITS", "等待重试")
	case verdict.Running:
		return flow.T("RUNNING", "执行中")
	case verdict.Completed:
		return flow.T("COMPLETED", "已完成")
	case verdict.Acquiring:
		return flow.T("BEGINNING", "刚开始")
	case verdict.Waiting:
		return flow.T("WAITING", "等待中")
	case verdict.Archived:
		return flow.T("ARCHIVED", "已归档")
	case verdict.MaybeWaiting:
		return flow.T("MAYBE WAITING", "可能在等待")
	case verdict.NeverSeen:
		return flow.T("NEVER SEEN", "从未出现")
	}
	// A code that this page has no words for still names itself.
	spelled := strings.ToUpper(strings.ReplaceAll(string(c), "_", " "))
	return flow.Text{EN: spelled, ZH: spelled}
}

// layerWord names a layer.
func layerWord(l flow.Layer) flow.Text {
	switch l {
	case flow.LayerBroker:
		return flow.T("Broker", "消息代理")
	case flow.LayerRedis:
		return flow.T("Redis", "Redis")
	case flow.LayerMySQL:
		return flow.T("MySQL", "MySQL")
	}
	return flow.T("none", "无")
}
