package doctor

import (
	"slices"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// retentionRules compare how long the cleanup keeps records with what comes
// back later. They say nothing about a flow whose ledger is not cleaned.
var retentionRules = []rule[flowFacts]{
	{Check{
		Code: "marker_outlives_record", Severity: Warning,
		Title: flow.T("The marker outlives the record", "标记比记录存活更久"),
		Why:   flow.T("After the cleanup the marker still drops messages, and nothing proves any more that their work was done.", "清理之后标记仍会丢弃消息，却已没有任何东西能证明业务执行过。"),
	}, judgeRetention},
	{Check{
		Code: "retention_below_retry_delay", Severity: Warning,
		Title:  flow.T("Records are cleaned up before a retry comes back", "记录在重试到来之前就已被清理"),
		Why:    flow.T("If another copy of the message is completed while this one waits, its record is gone when the retry arrives: the work is done again.", "等待期间，若同一消息的另一份已处理完成，重试到来时其记录已被清理：业务会再次执行。"),
		Manual: "https://www.rabbitmq.com/docs/ttl",
	}, judgeRetryDelay},
	{Check{
		Code: "retention_below_dead_letter_age", Severity: Warning,
		Title:  flow.T("A dead letter is older than records are kept", "死信距发布的时间超过了记录的保留时间"),
		Why:    flow.T("Its record may have been cleaned up: nothing shows any more whether the work was done, and a replay does it again.", "其记录可能已被清理：无从得知业务是否执行过，重放会再次执行。"),
		Manual: "https://www.rabbitmq.com/docs/dlx",
	}, judgeDeadLetterAge},
}

func judgeRetention(f flowFacts) []outcome {
	if f.keeps == 0 || f.Marker == nil || f.Marker.TTL == 0 {
		return skip()
	}
	return when(f.Marker.TTL > f.keeps, flow.T("the marker lives %v, records are kept for %v", "标记的 TTL 为 %v，记录保留 %v", flow.Span(f.Marker.TTL), flow.Span(f.keeps)),
		flow.T("Keep records for longer than markers live.", "记录的保留时间应长于标记的 TTL。"), "")
}

// judgeRetryDelay goes by the TTL of the retry queues. Where a queue has none,
// each message brings its own, which no broker tells.
func judgeRetryDelay(f flowFacts) []outcome {
	if f.keeps == 0 {
		return skip()
	}
	result := worst(f.retry, found(func(q queueFacts, is broker.QueueSetUp) []outcome {
		if !is.Expires {
			return skip()
		}
		return when(is.MessageTTL >= f.keeps,
			flow.T("messages wait in %s for %v, records are kept for %v", "消息在 %s 中等待 %v，记录保留 %v", flow.Visible(q.Name), flow.Span(is.MessageTTL), flow.Span(f.keeps)),
			flow.T("Raise retain of the cleanup task of ledgers.%s well above the longest delay of a retry.", "请把 ledgers.%s 的清理任务的 retain 提高到明显长于最长的重试延迟。", f.Ledger), "")
	}))
	untimed := func(q queueFacts) bool { return q.is.is.State == flow.Found && !q.is.is.Expires }
	if len(result) > 0 && result[0].state == passed && slices.ContainsFunc(f.retry, untimed) {
		return skip()
	}
	return result
}

// judgeDeadLetterAge goes by the timestamp that the publisher gave the next dead
// letter. One that lies ahead is no time of publication.
func judgeDeadLetterAge(f flowFacts) []outcome {
	if f.keeps == 0 || f.deadLetter == nil {
		return skip()
	}
	return found(func(q queueFacts, is broker.QueueSetUp) []outcome {
		if is.HeadPublished.IsZero() || is.HeadPublished.After(q.asked) {
			return skip()
		}
		age := q.asked.Sub(is.HeadPublished)
		return when(age >= f.keeps,
			flow.T("the first message in %s was published %v ago by its timestamp, records are kept for %v", "按时间戳，%s 中的第一条消息发布于 %v前，记录保留 %v", flow.Visible(q.Name), flow.Span(age), flow.Span(f.keeps)),
			flow.T("Compare with the business data before you replay it. Replay or drop dead letters sooner, or raise retain of the cleanup task of ledgers.%s.", "重放之前请先与业务数据核对。今后应尽早重放或丢弃死信，或提高 ledgers.%s 的清理任务的 retain。", f.Ledger), "")
	})(*f.deadLetter)
}
