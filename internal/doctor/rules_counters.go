package doctor

import (
	"slices"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// Counts of one delivery are written one after the other, so that sums that are
// read meanwhile may differ by those in flight.
const (
	inFlight     = 20
	inFlightPart = 1000
)

var counterRules = []rule[counterFacts]{
	{Check{
		Code: "not_instrumented", Severity: Info,
		Title: flow.T("Run times are not known", "不知道执行耗时"),
		Why:   flow.T("Whether locks live long enough, and how often they conflict, no store shows: only consumers can count it.", "锁是否足够长、冲突有多频繁，任何存储都看不出来：只有消费者能统计。"),
	}, judgeInstrumented},
	{Check{
		Code: "counters_broken", Severity: Warning,
		Title: flow.T("Consumers count wrongly", "消费者的计数有误"),
		Why:   flow.T("Metrics and alerts that rest on the counters are wrong.", "依赖这些计数器的指标和告警都不可信。"),
	}, judgeCounters},
	{Check{
		Code: "counters_unclaimed", Severity: Info,
		Title: flow.T("Consumers count biz_types that no flow names", "消费者统计了流程未声明的业务类型"),
		Why:   flow.T("The two sides spell them differently, or a flow is missing in the configuration.", "两边写法不同，或配置中缺少相应流程。"),
	}, judgeCountedTypes},
}

func judgeInstrumented(f counterFacts) []outcome {
	return when(f.source == "", flow.T("counters is not configured", "未配置 counters"),
		flow.T("Let consumers count as the instrumentation contract says, and name their Redis under counters.", "让消费者按埋点约定计数，并在 counters 中配置其 Redis。"), "")
}

func judgeCounters(f counterFacts) []outcome {
	if f.source == "" {
		return skip()
	}
	return given(f.read, func(c lockstore.Counters) []outcome {
		fix := flow.T("Correct the consumer's counting: one first write and one last write for each delivery, whole numbers by HINCRBY.", "请修正消费者的计数：每次投递各写一次开头和结尾，并用 HINCRBY 写入整数。")
		if len(c.ContractErrors) > 0 {
			return bad(flow.T("%s", "%s", visible(c.ContractErrors)), fix, "")
		}
		for _, one := range c.Types {
			if seen := contradiction(one); !seen.Empty() {
				return bad(flow.T("%s: %s", "%s：%s", flow.Visible(one.BizType), seen), fix, "")
			}
		}
		return fine()
	})
}

// contradiction says which sum of a type does not add up, if any.
func contradiction(c lockstore.TypeCounters) flow.Text {
	ends := c.LockConflict + c.DedupStatus + c.DedupRecord + c.Completed + c.Failed
	runs := c.Completed + c.Failed
	var timed uint64
	for _, n := range c.Buckets {
		timed += n
	}
	switch {
	// A consumer that writes only once leaves attempt out or counts it with the end.
	case c.Attempt > 0 && exceeds(ends, c.Attempt):
		return flow.T("%d deliveries ended, only %d began", "结束了 %d 次投递，却只开始了 %d 次", ends, c.Attempt)
	case exceeds(runs, timed) || exceeds(timed, runs):
		return flow.T("%d runs ended, and %d have a run time", "结束了 %d 次执行，而有耗时记录的是 %d 次", runs, timed)
	case exceeds(c.Retry, runs):
		return flow.T("%d retries, only %d runs", "重试 %d 次，执行却只有 %d 次", c.Retry, runs)
	}
	return flow.Text{}
}

// exceeds reports whether a is above b by more than deliveries in flight explain.
func exceeds(a, b uint64) bool { return a > b+inFlight+b/inFlightPart }

func judgeCountedTypes(f counterFacts) []outcome {
	if f.source == "" || f.rest {
		return skip()
	}
	return given(f.read, func(c lockstore.Counters) []outcome {
		var unclaimed []string
		for _, one := range c.Types {
			if !slices.Contains(f.named, one.BizType) {
				unclaimed = append(unclaimed, one.BizType)
			}
		}
		return when(len(unclaimed) > 0, flow.T("%s", "%s", visible(unclaimed)),
			flow.T("Compare the spelling, or add them to a flow.", "请核对写法，或把它们加入某个流程。"), "")
	})
}
