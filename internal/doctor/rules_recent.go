package doctor

import (
	"slices"
	"strings"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// Ids that the column has left, as a part of its range and as time at the present use.
	fewIDs, someIDs = 0.05, 0.25
	soon, someday   = 30 * 24 * time.Hour, 365 * 24 * time.Hour
	// More than burnedPerRow ids for each of burnedRows records or more are many.
	burnedPerRow, burnedRows = 10, 50
	// The last write of a table set its youngest time, give or take zoneTolerance, if it set one.
	zoneTolerance = 5 * time.Second
	// written is how young the last write to a table has to be.
	written = time.Minute
)

// recentRules judge by the newest rows of each table.
var recentRules = []rule[ledgerFacts]{
	{Check{
		Code: "id_fills_column", Severity: Warning,
		Title:  flow.T("Ids are as long as their column", "ID 的长度已达到列宽"),
		Why:    flow.T("Longer ones may have been cut, so that two of them became one record; or their insert fails each time.", "更长的 ID 可能已被截断，两个 ID 变成一条记录；或者每次写入都失败。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/char.html",
	}, eachTable(judgeWidth)},
	{Check{
		Code: "id_space_ends", Severity: Critical,
		Title:  flow.T("The primary key is almost used up", "主键即将用尽"),
		Why:    flow.T("At its end every insert fails, or is taken for a duplicate: new messages are refused and lost.", "用尽后所有写入都会失败，或被误认为重复：新消息会被拒绝并丢失。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/integer-types.html",
	}, eachTable(judgeSpace(true))},
	{Check{
		Code: "id_space_shrinks", Severity: Warning,
		Title:  flow.T("The primary key will be used up", "主键迟早会用尽"),
		Why:    flow.T("Refused inserts use ids up as well, so the end comes sooner than the number of rows tells.", "被拒绝的写入也会消耗 ID，因此用尽的时间早于行数所显示的。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/innodb-auto-increment-handling.html",
	}, eachTable(judgeSpace(false))},
	{Check{
		Code: "ids_burned", Severity: Warning,
		Title:  flow.T("Most inserts are refused", "大部分写入被拒绝"),
		Why:    flow.T("Every insert that the unique key refuses uses an id up: many duplicates reach MySQL, so the layers before it do not stop them.", "唯一键每拒绝一次写入就消耗一个 ID：说明大量重复到达了 MySQL，前面的防线没有拦住。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/innodb-auto-increment-handling.html",
	}, eachTable(judgeBurned)},
	{Check{
		Code: "zone_ahead", Severity: Critical,
		Title:  flow.T("Records seem to come from the future", "记录的时间在未来"),
		Why:    flow.T("The configured time zone is not the one in which the application writes: a dead run is noticed hours late.", "配置的时区与应用写入时使用的时区不同：崩溃的执行会晚几个小时才被发现。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/datetime.html",
	}, eachTable(judgeZone(true))},
	{Check{
		Code: "zone_behind", Severity: Warning,
		Title:  flow.T("Records seem to be hours old when they are written", "记录刚写入就显得已过数小时"),
		Why:    flow.T("The configured time zone is probably not the one in which the application writes: runs in progress look stale at once.", "配置的时区很可能与应用写入时使用的时区不同：正在执行的记录会立刻被判定为超时。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/datetime.html",
	}, eachTable(judgeZone(false))},
	{Check{
		Code: "records_unreadable", Severity: Warning,
		Title:  flow.T("Records have a status or date that means nothing", "记录的状态或日期无法识别"),
		Why:    flow.T("INSERT IGNORE and non-strict modes leave empty words and zero dates; nobody can tell whether such a record is done.", "INSERT IGNORE 和非严格模式会留下空状态和零日期；这样的记录是否完成无从得知。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/insert.html",
	}, eachTable(judgeUnreadable)},
	{Check{
		Code: "types_unclaimed", Severity: Warning,
		Title: flow.T("The ledger holds biz_types that no flow names", "表中有流程未声明的业务类型"),
		Why:   flow.T("Their records are in no metric, alert or finding, and a look-up of them is refused.", "这些记录不会出现在指标、告警和问题列表中，也无法查询。"),
	}, judgeUnclaimed},
}

// eachTable judges every table of a ledger by its newest rows and puts the
// tables together that show the same fault.
func eachTable(judge func(ledgerFacts, ledger.TableSurvey) []outcome) func(ledgerFacts) []outcome {
	return func(f ledgerFacts) []outcome {
		var worst, other []outcome
		failing, where := 0, ""
		for _, t := range f.survey.Tables {
			found := judgeTable(f, t, judge)
			switch {
			case len(found) == 0:
			case found[0].state == failed:
				if failing++; failing == 1 {
					worst, where = found, flow.Visible(t.Name())
				}
			case len(other) == 0 || found[0].state == untold:
				other = found
			}
		}
		if failing == 0 {
			return other
		}
		worst[0].seen = flow.T("%s: %s", "%s：%s", where, worst[0].seen)
		if failing > 1 {
			worst[0].seen = flow.T("%s (and %d more tables)", "%s（另有 %d 张表）", worst[0].seen, failing-1)
		}
		return worst
	}
}

func judgeTable(f ledgerFacts, t ledger.TableSurvey, judge func(ledgerFacts, ledger.TableSurvey) []outcome) []outcome {
	switch {
	case t.Hidden:
		return skip()
	case !t.Unread.Empty():
		return unsure(t.Unread)
	case !t.RecentWhy.Empty():
		return unsure(t.RecentWhy)
	case t.Recent == nil || t.Recent.Rows == 0:
		return skip()
	}
	return judge(f, t)
}

func judgeWidth(f ledgerFacts, t ledger.TableSurvey) []outcome {
	r := t.Recent
	if t.IDWidth == 0 {
		return skip()
	}
	strict := f.server.settings.why.Empty() && f.server.settings.is.Strict()
	// Ids of one length fill their column by design, if nothing could have cut them.
	return when(r.Filling > 0 && !(r.SameLength && strict),
		flow.T("%d of the newest %d ids have the %d characters that %s keeps", "最新 %[2]d 个 ID 中有 %[1]d 个达到了 %[4]s 的上限 %[3]d 个字符", r.Filling, r.Rows, t.IDWidth, flow.Visible(t.IDColumn)),
		flow.T("Widen the column beyond the longest id that a producer sends.", "把列加宽，使其超过生产者可能发送的最长 ID。"), "")
}

// judgeSpace is about the near end of the ids, or about the distant one.
func judgeSpace(near bool) func(ledgerFacts, ledger.TableSurvey) []outcome {
	return func(_ ledgerFacts, t ledger.TableSurvey) []outcome {
		r := t.Recent
		if r.Limit == 0 {
			return skip()
		}
		left := 1 - float64(r.Newest)/float64(r.Limit)
		lasts, known := lasting(r)
		ends := left < fewIDs || known && lasts < soon
		shrinks := left < someIDs || known && lasts < someday
		seen := flow.T("%.1f %% of the ids of %s (%s) are left", "%[2]s（%[3]s）的 ID 还剩 %.1[1]f %%", left*100, flow.Visible(r.KeyColumn), r.KeyType)
		if known {
			seen = flow.T("%s, which is enough for %v at the present use", "%s，按目前的消耗还能用 %v", seen, flow.Span(lasts))
		}
		return when(ends && near || shrinks && !ends && !near, seen,
			flow.T("Make the column BIGINT UNSIGNED, online with a schema-change tool where the table is large.", "把列改为 BIGINT UNSIGNED；大表请使用在线变更工具。"), "")
	}
}

func judgeBurned(f ledgerFacts, t ledger.TableSurvey) []outcome {
	r := t.Recent
	if r.Rows < burnedRows || r.Oldest > r.Newest || !f.server.settings.why.Empty() {
		return skip()
	}
	used := (r.Newest-r.Oldest)/max(f.server.settings.is.Step, 1) + 1
	return when(used > burnedPerRow*uint64(r.Rows),
		flow.T("the newest %d records used %d ids", "最新的 %d 条记录消耗了 %d 个 ID", r.Rows, used),
		flow.T("See the lock conflicts and status checks of the consumers: duplicates should end there. INSERT IGNORE, upserts and rollbacks use ids up as well.", "请检查消费者的锁冲突和状态检查：重复应当在那里被拦住。INSERT IGNORE、upsert 和回滚也会消耗 ID。"), "")
}

// judgeZone is about stamps in the future, or about those that are hours old
// although the table has just been written to.
func judgeZone(ahead bool) func(ledgerFacts, ledger.TableSurvey) []outcome {
	return func(f ledgerFacts, t ledger.TableSurvey) []outcome {
		r := t.Recent
		if !r.Local || r.Latest.IsZero() {
			return skip()
		}
		fix := flow.T("Set time_zone under mysql.%s to the zone in which the application writes DATETIME columns.", "请把 mysql.%s 的 time_zone 设为应用写入 DATETIME 列时使用的时区。", f.server.name)
		if ahead {
			return when(2*r.Ahead >= r.Fresh,
				flow.T("%d of the newest %d records are ahead of the database's clock, the last one by %v, read as %s", "最新 %[2]d 条记录中有 %[1]d 条的时间快于数据库时钟，最多快 %[3]v（按 %[4]s 解读）", r.Ahead, r.Fresh, flow.Span(r.Latest.Sub(r.DBNow)), f.zone),
				fix, "")
		}
		return when(f.writtenElsewhere(r),
			flow.T("the table was written to just now, and its youngest time is %v old, read as %s", "该表刚刚被写入，而其中最新的时间已是 %v前（按 %s 解读）", flow.Span(r.DBNow.Sub(r.Latest)), f.zone),
			fix, "")
	}
}

// writtenElsewhere reports whether the last write set a time in UTC or in the
// server's own zone, where another zone is configured.
func (f ledgerFacts) writtenElsewhere(r *ledger.Recent) bool {
	if r.WrittenAt.IsZero() || r.DBNow.Sub(r.WrittenAt) > written {
		return false
	}
	_, seconds := r.DBNow.In(f.zone).Zone()
	configured := time.Duration(seconds) * time.Second
	others := []time.Duration{0}
	if f.server.settings.is.ZoneKnown {
		others = append(others, f.server.settings.is.Zone)
	}
	off := r.Latest.Sub(r.WrittenAt)
	return slices.ContainsFunc(others, func(other time.Duration) bool {
		expected := other - configured
		return expected < 0 && (off-expected).Abs() <= zoneTolerance
	})
}

func judgeUnreadable(f ledgerFacts, t ledger.TableSurvey) []outcome {
	r := t.Recent
	return when(r.Unmapped+r.NoTime > 0,
		flow.T("of the newest %d records %d have an unmapped status and %d a date that does not exist", "最新 %d 条记录中有 %d 条的状态未配置，%d 条的日期不存在", r.Rows, r.Unmapped, r.NoTime),
		flow.T("Map the words under ledgers.%s.status, and correct rows that are broken.", "请在 ledgers.%s.status 中配置这些状态，并修正损坏的行。", f.name), "")
}

func judgeUnclaimed(f ledgerFacts) []outcome {
	var named []string
	for _, one := range f.flows {
		if one.Rest {
			return skip()
		}
		named = append(named, one.BizTypes...)
	}
	if len(f.unread()) == 0 {
		return skip()
	}
	return given(f.types, func(types typeList) []outcome {
		unclaimed := slices.DeleteFunc(slices.Clone(types.list), func(t string) bool { return carries(named, t) })
		return when(len(unclaimed) > 0,
			flow.T("%s", "%s", visible(unclaimed)),
			flow.T("Add them to the biz_types of a flow, or let one flow of the ledger take the rest: biz_types: [\"*\"].", "请把它们加入某个流程的 biz_types，或让该表的一个流程接管其余类型：biz_types: [\"*\"]。"), "")
	})
}

// carries reports whether the type is among the named ones in some spelling: a
// ledger lists types that its collation takes for equal once.
func carries(named []string, bizType string) bool {
	return slices.ContainsFunc(named, func(n string) bool {
		return strings.EqualFold(strings.TrimRight(n, " "), strings.TrimRight(bizType, " "))
	})
}

// lasting is how long the ids last at the use of the last day.
func lasting(r *ledger.Recent) (time.Duration, bool) {
	if !r.PerDayKnown || r.PerDay == 0 || r.Newest > r.Limit {
		return 0, false
	}
	days := float64(r.Limit-r.Newest) / float64(r.PerDay)
	// Beyond a century nobody asks.
	return time.Duration(min(days, 36500) * 24 * float64(time.Hour)), true
}
