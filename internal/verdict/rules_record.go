package verdict

import (
	"encoding/hex"
	"slices"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// keyAmbiguous: another id's row answers for this key.
func keyAmbiguous(e evidence) *Verdict {
	if !e.Record.Seen() || len(e.exact) > 0 || (len(e.near) == 0 && !e.Record.TooLong) {
		return nil
	}
	v := &Verdict{
		Code: KeyAmbiguous, Severity: Critical, Layer: flow.LayerMySQL,
		Sentence: flow.T(
			"MySQL takes this id for another one, whose record answers for it: this message would be skipped as a duplicate.",
			"MySQL 把这个 ID 当成了另一个 ID，由后者的记录代为应答：这条消息会被当作重复而跳过。"),
		Facts: e.facts(),
		Advice: []flow.Text{
			flow.T("Do not act on either key before it is clear which business operation each id belongs to.",
				"在弄清两个 ID 各属于哪笔业务之前，不要对任何一个键执行操作。"),
			flow.T("Give the id columns a collation that compares bytes (utf8mb4_nopad_bin on MariaDB, utf8mb4_0900_bin on MySQL 8), or make the ids unlike each other.",
				"为 ID 列改用按字节比较的排序规则（MariaDB 用 utf8mb4_nopad_bin，MySQL 8 用 utf8mb4_0900_bin），或让 ID 彼此明确不同。"),
		},
	}
	if e.sameIDOtherType() {
		v.Sentence = flow.T("The same id under another biz_type has the record, and the unique key holds the id alone: this message would be skipped as a duplicate.",
			"同一 ID 在另一个业务类型下已有记录，而唯一键只包含 ID：这条消息会被当作重复而跳过。")
		v.Advice[1] = flow.T("Put the biz_type into the unique key.", "将业务类型加入唯一键。")
	}
	for _, near := range e.near {
		v.Facts = append(v.Facts, Fact{flow.LayerMySQL, flow.T("asked %s / %s, stored %s / %s", "查询的是 %s / %s，存储的是 %s / %s",
			hexOf(e.Key.BizType), hexOf(e.Key.BizID), hexOf(near.BizType), hexOf(near.BizID)), PieceRecord})
	}
	if e.Record.TooLong {
		v.Sentence = flow.T("The id is longer than the %d characters that the column keeps: it is refused, or cut and then taken for another id.",
			"该 ID 超过了列能保存的 %d 个字符：写入会被拒绝，或被截断后当成另一个 ID。", e.Record.Width)
		v.Advice[1] = flow.T("Widen the column, or shorten the id before it is sent; in strict SQL mode the insert fails instead of being cut.",
			"加宽该列，或在发送前缩短 ID；严格 SQL 模式下写入会失败而不是被截断。")
	}
	return v
}

// sameIDOtherType: the row that answers has the very bytes of the id, and another biz_type.
func (e evidence) sameIDOtherType() bool {
	return len(e.near) > 0 && !e.Record.TooLong && !slices.ContainsFunc(e.near, func(r ledger.Row) bool { return r.BizID != e.Key.BizID })
}

// hexOf shows bytes as hexadecimal, cut to what a person compares by eye.
func hexOf(s string) string {
	const limit = 64
	if len(s) > limit {
		return "0x" + hex.EncodeToString([]byte(s[:limit])) + "…"
	}
	return "0x" + hex.EncodeToString([]byte(s))
}

// ranTwice: two completed rows for one key, one more than was archived, or two
// completed runs that consumers report.
func ranTwice(e evidence) *Verdict {
	v := &Verdict{
		Code: RanTwice, Severity: Critical, Layer: flow.LayerMySQL, Facts: e.facts(),
		Advice: []flow.Text{
			flow.T("Find out what the extra run did and undo its effect in the business data.", "查明多出的那次执行做了什么，并在业务数据中撤销其影响。"),
		},
	}
	switch n, told := e.count(flow.Completed), e.runs(); {
	case n >= 2:
		v.Sentence = flow.T("It ran %d times: there are %d completed records for one key, so the unique key let the duplicates through.",
			"执行了 %d 次：同一个键有 %d 条已完成记录，唯一键没有拦住重复。", n, n)
		v.Advice = append(v.Advice, flow.T("Look at the table's unique key: it is missing, holds a column that may be NULL, or is unique only within a partition or shard.",
			"检查表的唯一键：可能缺失、含有可为 NULL 的列，或只在单个分区/分表内唯一。"))
	case e.ranAgain():
		v.Sentence = flow.T("It ran twice: its record was archived as completed, and then a message of the same key ran again.",
			"执行了两次：记录已作为完成归档，之后同一个键的消息又执行了一次。")
		v.Advice = append(v.Advice, flow.T("Keep records for longer than any message of theirs can come back (retries, dead letters, replays by hand).",
			"记录的保留时间要长于其消息可能再次出现的时间（重试、死信、人工重放）。"))
	case told.done >= 2 && told.overlapped:
		v.Layer = flow.LayerRedis
		v.Sentence = flow.T("It ran %d times: consumers report %d completed runs, and two of them overlapped, so the lock did not keep them apart.",
			"执行了 %d 次：消费者报告了 %d 次完成的执行，其中两次有重叠，锁没有把它们隔开。", told.done, told.done)
		v.Advice = append(v.Advice, flow.T("Compare the lock's TTL with how long the work takes.", "对比锁的 TTL 与业务执行时间。"))
	case told.done >= 2:
		v.Sentence = flow.T("It ran %d times: consumers report %d completed runs, one after the other, so the record did not turn the later one away.",
			"执行了 %d 次：消费者报告了 %d 次完成的执行，先后进行，记录没有拦下后一次。", told.done, told.done)
		v.Advice = append(v.Advice, flow.T("Find out whether the record was deleted or set back between the runs, or was never asked.",
			"查明记录是否在两次执行之间被删除或改回，或根本没有被查询。"))
	default:
		return nil
	}
	return v
}

// clockSkew: no age can be claimed where an age decides, or a stamp lies in the future.
func clockSkew(e evidence) *Verdict {
	if e.row == nil {
		return nil
	}
	ahead := e.row.AgeKnown && e.row.Age < -clockTolerance
	// A completed record does not rest on its age, so an hour that happened
	// twice takes nothing from it.
	ambiguous := !e.is(flow.Completed) && e.row.LastSign().State == ledger.StampAmbiguous
	if !ahead && !ambiguous {
		return nil
	}
	v := &Verdict{
		Code: ClockSkew, Severity: Warning, Layer: flow.LayerMySQL,
		Sentence: flow.T("The record says %v, but its time lies %v in the database's future, so no age is claimed.",
			"记录状态为%v，但其时间比数据库时钟晚 %v，因此不对时长下结论。", e.row.Phase.Word(), flow.Span(e.row.Age)),
		Facts: e.facts(),
		Advice: []flow.Text{
			flow.T("Compare the zone in which the application writes with mysql.*.time_zone of the configuration, and the clocks of the hosts.",
				"核对应用写入时使用的时区与配置中的 mysql.*.time_zone，以及各主机的时钟。"),
		},
	}
	if !ahead {
		v.Sentence = flow.T("The record says %v, but its local time happened twice when daylight saving ended, so no age is claimed.",
			"记录状态为%v，但该本地时间因夏令时结束出现过两次，因此不对时长下结论。", e.row.Phase.Word())
		v.Advice = []flow.Text{flow.T("Wait until an hour after the change of the clocks, then look again.", "等时钟调整过去一小时后再查看。")}
	}
	return v
}

// unreadable: a status or a time that means nothing.
func unreadable(e evidence) *Verdict {
	if e.row == nil {
		return nil
	}
	v := &Verdict{Code: Unreadable, Severity: Warning, Layer: flow.LayerMySQL, Facts: e.facts()}
	switch {
	case e.row.Phase == flow.Unmapped && e.row.Status == "":
		v.Sentence = flow.T("The record's status is empty: a write was cut or refused, and what happened cannot be read from it.",
			"记录的状态为空：写入曾被截断或拒绝，无法从中读出发生了什么。")
	case e.row.Phase == flow.Unmapped:
		v.Sentence = flow.T("The record's status %q is not in the configuration, so it is not known what it means.",
			"记录的状态 %q 不在配置中，含义未知。", flow.Visible(e.row.Status))
	case e.row.Created.State == ledger.StampZero || e.row.LastSign().State == ledger.StampZero:
		v.Sentence = flow.T("The record says %v, but its time is a zero date or one that does not exist, so no age is claimed.",
			"记录状态为%v，但其时间是零值或不存在的时间，因此不对时长下结论。", e.row.Phase.Word())
	default:
		return nil
	}
	v.Advice = []flow.Text{
		flow.T("Look at the row itself; add the status to ledgers.*.status if it is a regular one.", "直接查看该行；若该状态属于正常取值，请加入 ledgers.*.status。"),
		flow.T("Check that the application's SQL mode is strict: only then are bad values refused.", "确认应用使用严格 SQL 模式：只有这样错误的值才会被拒绝。"),
	}
	return v
}

// mayHaveRunTwice: a second run began while the first one's record was open, or
// cannot be excluded.
func mayHaveRunTwice(e evidence) *Verdict {
	v := &Verdict{Code: MayHaveRunTwice, Severity: Warning, Layer: flow.LayerRedis, Facts: e.facts()}
	switch {
	case e.is(flow.Completed) && e.count(flow.Processing) > 0 || e.count(flow.Processing) > 1:
		v.Layer = flow.LayerMySQL
		v.Sentence = flow.T("It may have run twice: this key has %d records and at least one more run was begun, so the unique key let a duplicate through.",
			"可能执行了两次：该键有 %d 条记录，且至少又开始过一次执行，唯一键没有拦住重复。", len(e.exact))
		v.Advice = []flow.Text{flow.T("Look at the table's unique key and at the consumer that wrote the open record.", "检查表的唯一键，以及写入未完成记录的消费者。")}
	case e.lockTakenAnew() && !e.Flow.Lock.Renewed:
		age, _ := e.lockAge()
		v.Sentence = flow.T("It may have run twice: the lock was taken anew %v ago, while the record has been processing for %v.",
			"可能执行了两次：锁在 %v前被重新获取，而记录已处于处理中 %v。", flow.Span(age), flow.Span(e.row.Age))
		v.Next = []flow.Text{e.lockExpires(), e.secondDelivery()}
		v.Advice = []flow.Text{
			flow.T("Find the first consumer: if it still works, its lock (TTL %v) was too short for this run.", "找到第一个消费者：若它仍在工作，说明锁（TTL %v）对这次执行太短。", flow.Span(e.Flow.Lock.TTL)),
			flow.T("If consumers extend their locks while they work, declare it: flows.%s.lock.renewed: true.", "若消费者在工作时会续期锁，请声明：flows.%s.lock.renewed: true。", e.Flow.Name),
		}
	case e.changedHands():
		v.Sentence = flow.T("It may have run twice: the lock changed hands while the record was in processing (last sign of life %v ago).",
			"可能执行了两次：记录处于处理中（最近一次动静在 %v前）期间，锁换了持有者。", flow.Span(e.row.Age))
		v.Next = []flow.Text{e.lockExpires(), e.secondDelivery()}
		v.Advice = []flow.Text{flow.T("Find both consumers by the lock's values; if the first one still works, its lock was too short for this run.",
			"通过锁的值找到两个消费者；若第一个仍在工作，说明锁对这次执行太短。")}
	case e.lockTakenInRun():
		age, _ := e.lockAge()
		v.Sentence = flow.T("It may have run twice: the run outlived its lock, and the lock was taken anew %v ago, before the run was over.",
			"可能执行了两次：执行时间超过了锁的 TTL，而锁在 %v前、执行结束之前被重新获取。", flow.Span(age))
		v.Advice = []flow.Text{flow.T("Find the consumer that holds the lock now: it may be running the same work.", "找到现在持有锁的消费者：它可能正在执行同样的工作。")}
	case e.runs().overlapped:
		v.Sentence = flow.T("It may have run twice: consumers report that a second run began before the first one had ended.",
			"可能执行了两次：消费者报告第二次执行在第一次结束之前就开始了。")
		v.Advice = []flow.Text{flow.T("Find out what both runs did; compare the lock's TTL with how long the work takes.", "查明两次执行各做了什么；对比锁的 TTL 与业务执行时间。")}
	case e.deliveredUnprotected():
		by, _ := e.unprotected()
		v.Sentence = flow.T("It may have run twice: the run outlived its lock by %v, and the message was delivered again in that time.",
			"可能执行了两次：执行时间比锁多出 %v，期间消息又被投递了一次。", flow.Span(by))
		v.Advice = []flow.Text{flow.T("Find out whether the second consumer got past the unique key: look for the effect in the business data.",
			"查明第二个消费者是否越过了唯一键：在业务数据中查看操作的影响。")}
	case e.archivedAway() && e.lockHeld():
		v.Layer = flow.LayerMySQL
		v.Sentence = flow.T("It may be running again: its record was archived as completed, and now its lock is held.",
			"可能正在再次执行：记录已作为完成归档，而现在它的锁被持有。")
		v.Next = []flow.Text{e.lockExpires()}
		v.Advice = []flow.Text{flow.T("Find the consumer that holds the lock, and who sent the message again after its record was cleaned up.",
			"找到持有锁的消费者，以及在记录被清理后又重新发送消息的一方。")}
	default:
		return nil
	}
	return v
}

// completed: one completed record.
func completed(e evidence) *Verdict {
	if !e.is(flow.Completed) {
		return nil
	}
	v := &Verdict{
		Code: Completed, Severity: OK, Layer: flow.LayerNone,
		Sentence: flow.T("It ran once and is completed.", "已执行一次并完成。"),
		Facts:    e.facts(),
	}
	if e.row.AgeKnown {
		v.Sentence = flow.T("It ran once and completed %v ago.", "已执行一次，于 %v前完成。", flow.Span(e.row.Age))
	}
	if told := e.runs(); told.begun > 1 {
		v.Sentence = flow.T("It is completed; consumers report %d runs that began, of which one completed.", "已完成；消费者报告有 %d 次执行开始，其中一次完成。", told.begun)
	}
	v.Next = []flow.Text{flow.T("Every further delivery is a duplicate, and the record stops it.", "此后的每次投递都是重复，会被记录拦下。")}
	return v
}
