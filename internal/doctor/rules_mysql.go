package doctor

import (
	"fmt"
	"strings"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

const (
	// clockTolerance is how far two clocks may differ, beyond what the question took.
	clockTolerance = 2 * time.Second
	// lagTolerance is how far a replica may be behind.
	lagTolerance = 30 * time.Second
)

var mysqlRules = []rule[mysqlFacts]{
	{Check{
		Code: "mysql_not_strict", Severity: Warning,
		Title:  flow.T("MySQL cuts what does not fit", "MySQL 会截断放不下的值"),
		Why:    flow.T("Without strict mode an id that is too long is cut on insert, and looked up in full: it is never found, and the next long id is refused as its duplicate.", "非严格模式下，过长的 ID 在写入时被截断，查询时却用完整的值：永远查不到，而下一个过长的 ID 又会被当成它的重复而拒绝。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/sql-mode.html",
	}, judgeStrict},
	{Check{
		Code: "binlog_statement", Severity: Warning,
		Title:  flow.T("The binary log holds statements, not rows", "二进制日志记录的是语句而不是行"),
		Why:    flow.T("A cleanup with DELETE ... LIMIT may delete other rows on each replica, and they drift apart.", "带 LIMIT 的 DELETE 清理可能在各个副本上删除不同的行，导致数据逐渐不一致。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/replication-rbr-safe-unsafe.html",
	}, judgeBinlog},
	{Check{
		Code: "mysql_clock", Severity: Warning,
		Title:  flow.T("MySQL's clock and ours differ", "MySQL 的时钟与本机不一致"),
		Why:    flow.T("Times that applications write and ages that MySQL computes do not fit together: a record seems stale too early or too late.", "应用写入的时间与 MySQL 计算的时长对不上：记录会过早或过晚被判定为超时。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/date-and-time-functions.html",
	}, judgeMySQLClock},
	{Check{
		Code: "replica_as_truth", Severity: Critical,
		Title:  flow.T("A replica is read as the truth", "把副本当作真实数据读取"),
		Why:    flow.T("A record that was written a moment ago may be missing there, so \"absent\" proves nothing; and nothing may be released or reset on that ground.", "刚写入的记录在副本上可能还不存在，因此「不存在」不能证明什么，也不能据此释放锁或重置记录。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/replication.html",
	}, judgeReplica},
	{Check{
		Code: "replica_lags", Severity: Warning,
		Title:  flow.T("The replica is behind, or stands still", "副本延迟或已停止复制"),
		Why:    flow.T("Look-ups answer from the past: what is missing may exist on the primary.", "查询结果是过去的数据：这里没有的记录，主库上可能已经有了。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/replication-administration-status.html",
	}, judgeLag},
	{Check{
		Code: "mysql_rights_wide", Severity: Warning,
		Title:  flow.T("The reading user may write", "只读用户拥有写权限"),
		Why:    flow.T("idemscope reads with SELECT alone. Whoever gets hold of this password can change the records that keep you idempotent.", "idemscope 只需要 SELECT。任何拿到该密码的人都能修改保证幂等的记录。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/grant.html",
	}, judgeMySQLRights},
	{Check{
		Code: "mysql_act_wide", Severity: Warning,
		Title:  flow.T("The acting user may do more than it needs", "执行操作的用户权限过大"),
		Why:    flow.T("Actions and the cleanup change rows. Whoever gets hold of this password can do all of the rest as well.", "操作与清理只更改行。任何拿到该密码的人还能做其余的一切。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/grant.html",
	}, judgeMySQLAct},
}

func judgeStrict(m mysqlFacts) []outcome {
	return given(m.settings, func(s ledger.Settings) []outcome {
		mode := s.SQLMode
		if mode == "" {
			mode = "''"
		}
		return when(!s.Strict(),
			flow.T("sql_mode of new sessions is %s", "新会话的 sql_mode 为 %s", mode),
			flow.T("Turn strict mode on, and see whether the application sets its own sql_mode.", "启用严格模式，并确认应用没有自行设置 sql_mode。"),
			"SET GLOBAL sql_mode = CONCAT_WS(',', NULLIF(@@GLOBAL.sql_mode, ''), 'STRICT_TRANS_TABLES');")
	})
}

func judgeBinlog(m mysqlFacts) []outcome {
	return given(m.settings, func(s ledger.Settings) []outcome {
		return when(strings.EqualFold(s.BinlogFormat, "STATEMENT"),
			flow.T("binlog_format is STATEMENT", "binlog_format 为 STATEMENT"),
			flow.T("Log rows, or delete by lists of primary keys only.", "改为按行记录，或只按主键列表删除。"),
			"SET GLOBAL binlog_format = 'ROW';")
	})
}

func judgeMySQLClock(m mysqlFacts) []outcome {
	return given(m.settings, func(s ledger.Settings) []outcome {
		return when(apart(s.ClockAhead, s.ClockMargin), clockSeen(s.ClockAhead, s.ClockMargin), clockFix, "chronyc tracking")
	})
}

// apart reports whether two clocks differ by more than is tolerated, whatever
// the way of the question took.
func apart(ahead, margin time.Duration) bool { return ahead.Abs()-margin > clockTolerance }

func clockSeen(ahead, margin time.Duration) flow.Text {
	if ahead < 0 {
		return flow.T("its clock is %v behind that of idemscope (give or take %v)", "其时钟比 idemscope 慢 %v（误差 %v）", flow.Span(ahead), flow.Span(margin))
	}
	return flow.T("its clock is %v ahead of that of idemscope (give or take %v)", "其时钟比 idemscope 快 %v（误差 %v）", flow.Span(ahead), flow.Span(margin))
}

var clockFix = flow.T("Run NTP on both machines and see which of the two is wrong.", "请在两台机器上运行 NTP，并确认是哪一台的时间不对。")

func judgeReplica(m mysqlFacts) []outcome {
	if m.declaredReplica {
		return fine()
	}
	fix := flow.T("Name the primary, or say that it is a replica: replica: true under mysql.%s. Absent records are then reported as unknown.",
		"请配置主库，或在 mysql.%s 下设置 replica: true；之后查不到的记录会显示为「不确定」。", m.name)
	if m.settings.why.Empty() && m.settings.is.ReadOnly {
		return bad(flow.T("the server is read-only", "该服务器为只读"), fix, "")
	}
	return given(m.replication, func(r ledger.Replication) []outcome {
		return when(r.Channels > 0, flow.T("the server follows another one (%d channels of replication)", "该服务器正在复制另一台服务器（%d 个复制通道）", r.Channels), fix, "")
	})
}

func judgeLag(m mysqlFacts) []outcome {
	if m.replication.why.Empty() && m.replication.is.Channels == 0 {
		return skip()
	}
	if !m.declaredReplica && !m.replication.why.Empty() {
		return skip() // replica_as_truth says that it cannot be told
	}
	return given(m.replication, func(r ledger.Replication) []outcome {
		fix := flow.T("See what holds replication up, or read from the primary meanwhile.", "请排查复制为何变慢或停止，期间可改为读取主库。")
		if !r.LagKnown {
			return bad(flow.T("replication stands still: the server tells no lag", "复制已停止：服务器没有给出延迟"), fix, "SHOW REPLICA STATUS;")
		}
		return when(r.Lag > lagTolerance, flow.T("it is %v behind", "已落后 %v", flow.Span(r.Lag)), fix, "SHOW REPLICA STATUS;")
	})
}

func judgeMySQLRights(m mysqlFacts) []outcome {
	return given(m.grants, func(g ledger.Grants) []outcome {
		fix := flow.T("Make a user that can read only, and configure it under mysql.%s.", "请创建一个只读用户，并配置到 mysql.%s。", m.name)
		command := fmt.Sprintf("CREATE USER 'idemscope'@'%%' IDENTIFIED BY '...';\nGRANT SELECT ON `%s`.* TO 'idemscope'@'%%';", strings.ReplaceAll(m.database, "`", "``"))
		if g.Unchecked {
			return bad(flow.T("the server runs without users (skip-grant-tables): everybody may do everything", "服务器未启用权限表（skip-grant-tables）：任何人都可以做任何事"), fix, command)
		}
		beyond := g.Writes()
		return when(len(beyond) > 0, flow.T("it may do more than read: %s", "除读取外还拥有：%s", shortened(strings.Join(beyond, "; "))), fix, command)
	})
}

// acting are the privileges that actions and the cleanup need on tables.
var acting = []string{"INSERT", "UPDATE", "DELETE"}

func judgeMySQLAct(m mysqlFacts) []outcome {
	if m.act == nil || m.act.why.Empty() && m.act.is.Unchecked {
		return skip() // mysql_rights_wide tells of a server without users
	}
	return given(*m.act, func(g ledger.Grants) []outcome {
		beyond := g.Beyond(acting...)
		return when(len(beyond) > 0, flow.T("it may do more than change rows: %s", "除更改行外还拥有：%s", shortened(strings.Join(beyond, "; "))),
			flow.T("Grant SELECT and UPDATE on the tables of records, INSERT and DELETE where the cleanup needs them, and configure that user under mysql.%s.act.", "请只授予记录表的 SELECT 与 UPDATE，以及清理所需的 INSERT 与 DELETE，并配置到 mysql.%s.act。", m.name),
			fmt.Sprintf("CREATE USER 'idemscope_act'@'%%' IDENTIFIED BY '...';\nGRANT SELECT, UPDATE ON %s.... TO 'idemscope_act'@'%%';", quoted(m.database)))
	})
}

// shortened keeps a list that a store gave within a sentence.
func shortened(s string) string {
	const most = 160
	text := []rune(flow.Visible(s))
	if len(text) > most {
		return string(text[:most]) + " …"
	}
	return string(text)
}
