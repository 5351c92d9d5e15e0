package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
)

// Obstacle is why a table must not be cleaned, with what to do about it.
type Obstacle struct {
	// Code is stable: no_integer_key, nothing_completed, no_time_column, engine,
	// foreign_keys, triggers, triggers_hidden, archive_missing, archive_differs,
	// archive_unique, archive_engine.
	Code string
	Text flow.Text
}

// SweepState is what a server says about itself before a cleanup.
type SweepState struct {
	// DBNow is the server's clock, and Skew how far it was ahead of this
	// machine's when it answered (negative: behind), give or take half of Doubt.
	DBNow       time.Time
	Skew, Doubt time.Duration
	// ReadOnly: it takes no writes. Replica: the configuration calls it one.
	ReadOnly, Replica bool
	// Binlog is the format in which it logs changes: ROW, MIXED or STATEMENT;
	// empty when it logs none.
	Binlog string
}

const sweepStateSQL = "SELECT " + headSQL + ", @@global.log_bin, @@session.binlog_format"

// State asks the server. Explain words its errors.
func (t *SweepTable) State(ctx context.Context) (SweepState, error) {
	s := t.shard.server
	var h head
	var logs, format sql.NullString
	sent := time.Now()
	if err := s.scan(ctx, statement{text: sweepStateSQL}, append(h.dest(), &logs, &format), func() {}); err != nil {
		return SweepState{}, fmt.Errorf("ask mysql %s before a cleanup: %w", s.name, err)
	}
	doubt := time.Since(sent)
	state := SweepState{
		DBNow: h.now(), Skew: h.now().Sub(sent.Add(doubt / 2)), Doubt: doubt,
		ReadOnly: h.isReadOnly(), Replica: s.replica,
	}
	if logs.String == "1" || logs.String == "ON" {
		state.Binlog = strings.ToUpper(format.String)
	}
	return state, nil
}

// Obstacles reads the schema anew and lists all that speaks against cleaning the
// table. The error says what could not be read.
func (t *SweepTable) Obstacles(ctx context.Context) ([]Obstacle, error) {
	s := t.shard.server
	sch, err := s.readSchema(ctx, t.shard.table)
	if err != nil {
		return nil, err
	}
	l := resolve(t.shard.mapping, sch, s.zone)
	if err := l.unusable(); err != nil {
		return nil, err
	}
	found := l.sweepObstacles()
	for _, check := range []func(context.Context, *layout) ([]Obstacle, error){t.referrers, t.triggers, t.archiveObstacles} {
		more, err := check(ctx, l)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// sweepObstacles are those that the schema of the table alone shows.
func (l *layout) sweepObstacles() (found []Obstacle) {
	add := func(code, en, zh string, args ...any) { found = append(found, Obstacle{code, flow.T(en, zh, args...)}) }
	if !l.walkable() {
		add("no_integer_key",
			"the table has no primary key of one integer column, so it cannot be walked in small ranges; such tables are not cleaned: delete its old rows with a job of your own, or drop old partitions",
			"该表没有单列整数主键，无法按小范围逐段清理，因此不予清理：请用自己的任务删除旧行，或直接删除旧分区")
	}
	if l.status != nil && l.hasPhase(flow.Completed, literal) == "FALSE" {
		add("nothing_completed", "no stored status means completed; name the words in status.completed of the ledger",
			"没有任何已存状态表示“已完成”；请在该账本的 status.completed 中写明")
	}
	times := l.times()
	if len(times) == 0 {
		add("no_time_column", "no time column is mapped, so the age of a row cannot be told; map columns.updated, columns.completed or columns.created",
			"没有映射时间列，无法得知记录的时长；请映射 columns.updated、columns.completed 或 columns.created")
	}
	for _, c := range times {
		if !c.time() {
			add("no_time_column", "time column %[1]s is of type %[2]s; change it to DATETIME or TIMESTAMP, or map another column", "时间列 %[1]s 的类型是 %[2]s；请改为 DATETIME 或 TIMESTAMP，或映射其他列", c.name, c.kind)
		}
	}
	if l.schema.engine != "innodb" {
		add("engine", "the storage engine is %[1]s, and only InnoDB can take a batch back; ALTER TABLE %[2]s ENGINE = InnoDB", "存储引擎是 %[1]s，只有 InnoDB 能回滚一个批次；请执行 ALTER TABLE %[2]s ENGINE = InnoDB",
			l.schema.engine, l.schema.table.quoted())
	}
	return found
}

// walkable reports whether the primary key is one integer, the one by which rows are followed.
func (l *layout) walkable() bool {
	_, sole := l.schema.primary()
	return l.key != nil && l.keyIndex == primaryKey && sole
}

const referrersSQL = `SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UNIQUE_CONSTRAINT_SCHEMA = ? AND REFERENCED_TABLE_NAME = ?`

// hiddenReferrersSQL also names tables that this user may not see, where it may
// ask at all (privilege PROCESS).
var hiddenReferrersSQL = map[Dialect]string{
	MariaDB: "SELECT ID, FOR_NAME FROM information_schema.INNODB_SYS_FOREIGN WHERE REF_NAME = ?",
	MySQL:   "SELECT ID, FOR_NAME FROM information_schema.INNODB_FOREIGN WHERE REF_NAME = ?",
}

// referrers finds foreign keys of other tables: a delete would fail, or would
// delete rows there.
func (t *SweepTable) referrers(ctx context.Context, l *layout) ([]Obstacle, error) {
	s := t.shard.server
	var schema, name, constraint string
	keys := map[string]bool{}
	q := statement{text: referrersSQL, args: []any{l.schema.table.database, l.schema.table.name}}
	if err := s.scan(ctx, q, []any{&schema, &name, &constraint}, func() { keys[fmt.Sprintf("%s.%s (%s)", schema, name, constraint)] = true }); err != nil {
		return nil, fmt.Errorf("look for foreign keys to %s: %w", l.schema.table, err)
	}
	for _, text := range hiddenReferrersSQL {
		if len(keys) > 0 {
			break
		}
		// Refused without PROCESS, and unknown to the other family: then the visible ones have to do.
		q := statement{text: text, args: []any{l.schema.table.database + "/" + l.schema.table.name}}
		_ = s.scan(ctx, q, []any{&constraint, &name}, func() { keys[strings.Replace(name, "/", ".", 1)+" ("+constraint+")"] = true })
	}
	var found []Obstacle
	for _, key := range sortedKeys(keys) {
		found = append(found, Obstacle{"foreign_keys", flow.T(
			"the foreign key of %s refers to this table, so a delete would fail or delete rows there; drop the foreign key", "外键 %s 引用了本表，删除会失败，或连带删除该表的行；请先删除该外键", key)})
	}
	return found, nil
}

const triggersSQL = `SELECT TRIGGER_NAME FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? AND EVENT_MANIPULATION = ?`

// triggers finds what would run with every deleted or archived row. Who lacks
// the privilege TRIGGER sees none, which proves nothing.
func (t *SweepTable) triggers(ctx context.Context, l *layout) (found []Obstacle, err error) {
	events := map[string]table{"DELETE": l.schema.table}
	if t.archive != nil {
		events["INSERT"] = *t.archive
	}
	grants := t.shard.server.grants(ctx)
	for _, event := range []string{"DELETE", "INSERT"} {
		on, ok := events[event]
		if !ok {
			continue
		}
		if !seesTriggers(grants, on) {
			found = append(found, Obstacle{"triggers_hidden", flow.T(
				"whether %[1]s has triggers cannot be told: GRANT TRIGGER ON %[2]s to the user of mysql.%[3]s.act", "无法得知 %[1]s 是否有触发器：请对 mysql.%[3]s.act 的用户执行 GRANT TRIGGER ON %[2]s", on, on.quoted(), t.shard.server.name)})
		}
		var name string
		q := statement{text: triggersSQL, args: []any{on.database, on.name, event}}
		err := t.shard.server.scan(ctx, q, []any{&name}, func() {
			found = append(found, Obstacle{"triggers", flow.T(
				"the trigger %[1]s of %[2]s would run for every row (%[3]s); drop it", "触发器 %[1]s（%[2]s）会对每一行执行（%[3]s）；请先删除它", name, on, event)})
		})
		if err != nil {
			return nil, fmt.Errorf("look for triggers of %s: %w", on, err)
		}
	}
	return found, nil
}

// grants are the privileges of the user, one statement each; nil on a server
// without privileges, where everybody sees everything.
func (s *Server) grants(ctx context.Context) (lines []string) {
	lines = []string{}
	err := s.query(ctx, statement{text: "SHOW GRANTS"}, func(rows *sqlx.Rows) error {
		var line string
		err := rows.Scan(&line)
		lines = append(lines, line)
		return err
	})
	if isNumber(err, errWithoutGrants) {
		return nil
	}
	return lines
}

// errWithoutGrants: the server runs without its tables of privileges.
const errWithoutGrants = 1290

var grantLine = regexp.MustCompile("^GRANT (.+) ON (?:TABLE )?(`(?:[^`]|``)*`|\\*)\\.(`(?:[^`]|``)*`|\\*) TO ")

// seesTriggers reports whether one of the grants holds TRIGGER on the table.
func seesTriggers(grants []string, t table) bool {
	for _, line := range grants {
		m := grantLine.FindStringSubmatch(line)
		if m == nil || !strings.Contains(m[1], "ALL PRIVILEGES") && !strings.Contains(m[1], "TRIGGER") {
			continue
		}
		database := strings.NewReplacer(`\_`, "_", `\%`, "%").Replace(m[2])
		if (m[2] == "*" || strings.EqualFold(database, quote(t.database))) && (m[3] == "*" || strings.EqualFold(m[3], quote(t.name))) {
			return true
		}
	}
	return grants == nil
}

// Lag asks a replica how far it is behind its source, in whole seconds. Not being
// told is an error; Explain words it.
func (s *Server) Lag(ctx context.Context) (time.Duration, error) {
	status, err := s.Ping(ctx)
	if err != nil {
		return 0, err
	}
	lag, known := s.lag(ctx, status.Dialect)
	if !known {
		return 0, &sweepError{flow.T(
			"mysql %[1]s does not say how far it is behind: replication stands still, it is no replica, or this user lacks REPLICATION CLIENT (SLAVE MONITOR from MariaDB 10.5 on)",
			"mysql %[1]s 未告知复制延迟：复制已停止、它不是从库，或该用户缺少 REPLICATION CLIENT 权限（MariaDB 10.5 起为 SLAVE MONITOR）", s.name)}
	}
	return lag, nil
}
