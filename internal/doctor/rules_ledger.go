package doctor

import (
	"slices"
	"strings"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// The checks of tables that package ledger makes, with what they mean here.
var ledgerRules = append([]rule[ledgerFacts]{
	{Check{
		Code: "ledger_missing", Severity: Critical,
		Title:  flow.T("The table is not as it is configured", "表与配置不符"),
		Why:    flow.T("No record of this ledger can be looked up: every answer about its keys stays unknown.", "该表的记录都无法查询：有关其键的回答一律是「不确定」。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/information-schema-columns-table.html",
	}, judgeMissing},
	{Check{
		Code: "mysql_rights_narrow", Severity: Critical,
		Title:  flow.T("The user may not read the table", "用户无权读取该表"),
		Why:    flow.T("What a user may not see looks to it as if it were not there.", "用户看不到的表，看上去就像不存在一样。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/grant.html",
	}, judgeNarrow},
	{Check{
		Code: "mysql_act_narrow", Severity: Warning,
		Title:  flow.T("The acting user may not set records back", "执行操作的用户无权重置记录"),
		Why:    flow.T("A stale record cannot be set back when somebody has to, and that shows only then.", "需要重置超时记录时才会发现无法执行。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/grant.html",
	}, judgeActNarrow},
	{Check{
		Code: "no_unique_key", Severity: Critical,
		Title:  flow.T("No unique key stops a duplicate", "没有唯一键拦住重复"),
		Why:    flow.T("The unique key is the last layer: when a lock has expired, two consumers write a record each, and the effect happens twice.", "唯一键是最后一道防线：锁过期后，两个消费者会各写一条记录，业务就执行了两次。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/create-index.html",
	}, problems("no_unique_key", func(p ledger.Problem) bool { return !p.Wider }, flow.T("Add a unique key over the key columns. Records that are there twice have to be sorted out first.", "在键列上添加唯一键。已经重复的记录需要先处理。"))},
	{Check{
		Code: "unique_key_too_wide", Severity: Critical,
		Title:  flow.T("A key is unique within a part of the table only", "键只在表的一部分内唯一"),
		Why:    flow.T("The unique key also holds another column, as partitioning by time forces it to: one id in two months is two records, and runs twice.", "唯一键还包含其他列（按时间分区时必须如此）：同一个 ID 跨两个月就是两条记录，会执行两次。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/partitioning-limitations-partitioning-keys-unique-keys.html",
	}, problems("no_unique_key", func(p ledger.Problem) bool { return p.Wider }, flow.T("Keep the keys in a table without partitions, with a unique key of their own, and the details in the partitioned one.", "把键放在一张不分区的表中并单独建唯一键，明细放在分区表中。"))},
	{Check{
		Code: "unique_key_nullable", Severity: Critical,
		Title:  flow.T("A column of the unique key may be NULL", "唯一键的列可为 NULL"),
		Why:    flow.T("Rows with NULL are never duplicates of one another: a consumer that leaves the column out runs every time.", "含 NULL 的行之间不算重复：消费者漏写该列时，每次都会执行。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/create-index.html",
	}, problems("nullable_unique_key", nil, flow.T("Make the column NOT NULL; give rows with NULL a value first.", "把该列改为 NOT NULL，已有的 NULL 需先补上值。"))},
	{Check{
		Code: "unique_key_prefix", Severity: Warning,
		Title:  flow.T("The unique key holds the beginning of the id only", "唯一键只包含 ID 的前缀"),
		Why:    flow.T("A new id that begins like an old one is refused as its duplicate, acked, and lost.", "与旧 ID 开头相同的新 ID 会被当作重复拒绝、确认，然后丢失。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/column-indexes.html",
	}, problems("prefix_unique_key", nil, flow.T("Index the whole column.", "对整列建索引。"))},
	{Check{
		Code: "type_outside_unique_key", Severity: Warning,
		Title:  flow.T("The unique key leaves the biz_type out", "唯一键不含业务类型"),
		Why:    flow.T("Two operations, or two consumers, that share an id share one record: the second is refused as a duplicate of the first and never runs.", "两种业务（或两个消费者）使用相同的 ID 时共用一条记录：后一个会被当作前一个的重复，永远不会执行。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/create-index.html",
	}, judgeIDAlone},
	{Check{
		Code: "no_lookup_index", Severity: Critical,
		Title:  flow.T("No index leads to a key", "没有可用于查键的索引"),
		Why:    flow.T("Every status check of the consumers reads the whole table; idemscope refuses to do that, so no record can be looked up.", "消费者每次检查状态都会扫描整张表；idemscope 不会这样做，因此无法查询任何记录。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/mysql-indexes.html",
	}, problems("no_lookup_index", nil, flow.T("Add a unique key over the key columns.", "在键列上添加唯一键。"))},
	{Check{
		Code: "folds_case", Severity: Warning,
		Title:  flow.T("Upper and lower case are equal to MySQL", "MySQL 不区分大小写"),
		Why:    flow.T("Two ids that differ in case are one record and two Redis keys: the second message is acked as a duplicate although its work was never done.", "仅大小写不同的两个 ID 在 MySQL 中是一条记录，在 Redis 中是两个键：后一条消息会被当作重复而确认，其业务从未执行。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/charset-collation-effect.html",
	}, problems("folds_case", nil, byteFix)},
	{Check{
		Code: "ignores_padding", Severity: Warning,
		Title:  flow.T("Blanks at the end are ignored by MySQL", "MySQL 忽略末尾空格"),
		Why:    flow.T("An id with a blank at its end and one without are one record and two Redis keys.", "末尾带空格与不带空格的 ID 在 MySQL 中是一条记录，在 Redis 中是两个键。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/charset-binary-collations.html",
	}, problems("ignores_padding", nil, byteFix)},
	{Check{
		Code: "utf8mb3", Severity: Warning,
		Title:  flow.T("The id column keeps no emoji", "ID 列无法保存表情符号"),
		Why:    flow.T("An insert with a character of four bytes fails each time: the message comes back for ever, or is given up.", "含四字节字符的写入每次都会失败：消息会反复投递，或最终被放弃。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/charset-unicode-utf8mb3.html",
	}, problems("utf8mb3", nil, byteFix)},
	{Check{
		Code: "not_transactional", Severity: Critical,
		Title:  flow.T("The table has no transactions", "表不支持事务"),
		Why:    flow.T("The record stays when the business transaction is rolled back: the retry is then refused as a duplicate, and the work is lost.", "业务事务回滚后记录仍然存在：重试会被当作重复拒绝，业务就此丢失。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/innodb-introduction.html",
	}, problems("not_transactional", nil, flow.T("Convert the table to InnoDB; that locks it while it is copied.", "把表转换为 InnoDB；转换期间会锁表。"))},
	{Check{
		Code: "no_integer_key", Severity: Info,
		Title:  flow.T("The table cannot be followed", "无法跟踪该表"),
		Why:    flow.T("Without an integer key to read new rows by, its records show in look-ups only, not in metrics and findings.", "没有整数主键就无法跟踪新行：其记录只能单个查询，不会出现在指标和问题列表中。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/example-auto-increment.html",
	}, problems("no_integer_key", nil, flow.T("Give the table an AUTO_INCREMENT primary key, or name one under columns.id.", "为表添加 AUTO_INCREMENT 主键，或在 columns.id 中指定。"))},
	{Check{
		Code: "time_column", Severity: Warning,
		Title:  flow.T("The age of a record cannot be told well", "无法准确得知记录的时长"),
		Why:    flow.T("What is stale cannot be told from what is at work.", "无法区分超时的记录与正在处理的记录。"),
		Manual: "https://dev.mysql.com/doc/refman/8.4/en/datetime.html",
	}, judgeTimeColumns},
}, recentRules...)

var byteFix = flow.T("Give the column a collation that compares byte by byte (or make it VARBINARY). Repeat DEFAULT and COMMENT of the column in the statement; the table is rebuilt.",
	"把列改为按字节比较的排序规则（或 VARBINARY）。语句中需保留该列的 DEFAULT 和 COMMENT；执行时会重建表。")

// problems judges by what package ledger found wrong under the code and, unless
// only is nil, passes it.
func problems(code string, only func(ledger.Problem) bool, fix flow.Text) func(ledgerFacts) []outcome {
	return func(f ledgerFacts) []outcome {
		return f.together(func(p ledger.Problem) bool { return p.Code == code && (only == nil || only(p)) }, fix)
	}
}

// together makes one outcome of the problems, which may be about several columns.
func (f ledgerFacts) together(take func(ledger.Problem) bool, fix flow.Text) []outcome {
	var seen flow.Text
	var commands []string
	for _, p := range f.survey.Problems {
		if !take(p) {
			continue
		}
		if seen.Empty() {
			seen = p.Text
		} else {
			seen = flow.T("%s; %s", "%s；%s", seen, p.Text)
		}
		if p.SQL != "" && !slices.Contains(commands, p.SQL) {
			commands = append(commands, p.SQL)
		}
	}
	if seen.Empty() {
		return f.unread()
	}
	return bad(seen, fix, strings.Join(commands, "\n"))
}

// unread is fine when the schema of every table is known, unsure when a table
// could not be read, and nothing when one is not there, which is a matter of
// its own.
func (f ledgerFacts) unread() []outcome {
	for _, t := range f.survey.Tables {
		if !t.Hidden && !t.Unread.Empty() {
			return unsure(t.Unread)
		}
	}
	for _, p := range f.survey.Problems {
		if p.Code == "unreadable" {
			return unsure(p.Text)
		}
	}
	if f.hidden() {
		return skip()
	}
	return fine()
}

// reads reports whether the user may read the table, as far as that is known.
func (f ledgerFacts) reads(t ledger.TableSurvey) bool {
	return !f.server.grants.why.Empty() || f.server.grants.is.Reads(t.Database, t.Table)
}

func judgeMissing(f ledgerFacts) []outcome {
	for _, t := range f.survey.Tables {
		if t.Hidden && !f.reads(t) {
			return skip() // mysql_rights_narrow says why
		}
	}
	fix := flow.T("Correct ledgers.%s in the configuration, or make the table or column.", "请修改配置中的 ledgers.%s，或创建相应的表或列。", f.name)
	for _, p := range f.survey.Problems {
		if p.Code == "missing_table" || p.Code == "missing_column" {
			return bad(p.Text, fix, "")
		}
	}
	return f.unread()
}

func judgeNarrow(f ledgerFacts) []outcome {
	if !f.server.grants.why.Empty() {
		return unsure(f.server.grants.why)
	}
	for _, t := range f.survey.Tables {
		if !f.reads(t) {
			return bad(flow.T("no grant of this user has SELECT on %s", "该用户没有 %s 的 SELECT 权限", flow.Visible(t.Name())),
				flow.T("Grant it, or configure another user under mysql.%s.", "请授权，或在 mysql.%s 中配置其他用户。", f.server.name),
				"GRANT SELECT ON "+quoted(t.Database)+"."+quoted(t.Table)+" TO ...;")
		}
	}
	return fine()
}

// judgeActNarrow is about flows whose records may be set back at all.
func judgeActNarrow(f ledgerFacts) []outcome {
	rerun := slices.ContainsFunc(f.flows, func(one flow.Flow) bool { return one.Rerun != flow.RerunNever })
	act := f.server.act
	if act == nil || !f.resettable || !rerun || len(act.is.Roles) > 0 {
		return skip()
	}
	return given(*act, func(g ledger.Grants) []outcome {
		for _, t := range f.survey.Tables {
			if !g.May("UPDATE", t.Database, t.Table) {
				return bad(flow.T("no grant of the user under mysql.%s.act has UPDATE on %s", "mysql.%s.act 的用户没有 %s 的 UPDATE 权限", f.server.name, flow.Visible(t.Name())),
					flow.T("Grant it, if records are to be set back from here.", "如需在此重置记录，请授权。"),
					"GRANT SELECT, UPDATE ON "+quoted(t.Database)+"."+quoted(t.Table)+" TO ...;")
			}
		}
		return fine()
	})
}

func judgeIDAlone(f ledgerFacts) []outcome {
	several := len(f.types.is.list) > 1
	for _, one := range f.flows {
		several = several || one.Rest || len(one.BizTypes) > 1
	}
	for _, t := range f.survey.Tables {
		if t.IDAlone && (several || len(f.flows) > 1) {
			return bad(flow.T("%s has a unique key over %s alone, and the table serves several biz_types", "%s 有仅基于 %s 的唯一键，而该表服务于多个业务类型", flow.Visible(t.Name()), flow.Visible(t.IDColumn)),
				flow.T("Put the biz_type into the unique key, unless ids are unique over all types (such as UUIDs of messages).", "把业务类型加入唯一键；除非 ID 在所有类型之间都唯一（例如消息的 UUID）。"), "")
		}
	}
	return f.unread()
}

func judgeTimeColumns(f ledgerFacts) []outcome {
	return f.together(func(p ledger.Problem) bool {
		return p.Code == "no_time_column" || p.Code == "time_column_type" || p.Code == "optional_column"
	}, flow.T("Map a DATETIME or TIMESTAMP column under ledgers.%s.columns.", "请在 ledgers.%s.columns 中映射 DATETIME 或 TIMESTAMP 列。", f.name))
}

// quoted writes a name for a statement that a person runs.
func quoted(name string) string {
	out := []byte{'`'}
	for i := range len(name) {
		if name[i] == '`' {
			out = append(out, '`')
		}
		out = append(out, name[i])
	}
	return string(append(out, '`'))
}
