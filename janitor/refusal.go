package janitor

import (
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Refusal is why a task must not run, with what to do about it.
type Refusal struct {
	// Code is stable: act_missing, retention, read_only, replica, clock_skew,
	// unsafe_binlog, dead_letters, dead_letters_unread, schema_changed, implausible,
	// or that of a ledger.Obstacle.
	Code string
	// Table is empty when the whole task is meant.
	Table string
	Text  flow.Text
}

// refuse makes the refusal of a whole task.
func refuse(code, en, zh string, args ...any) []Refusal {
	return []Refusal{{Code: code, Text: flow.T(en, zh, args...)}}
}

// maxSkew is how far the clocks of the server and of this machine may differ:
// more than that, and one of them may be so wrong that the cutoff is.
const maxSkew = time.Minute

func (t *Task) withoutAct() []Refusal {
	if t.Open != nil {
		return nil
	}
	return refuse("act_missing", "there is no user that may delete: set mysql.%[1]s.act (user, password) to one with SELECT, DELETE and TRIGGER on the table, and SELECT, INSERT and TRIGGER on its archive",
		"没有可执行删除的用户：请设置 mysql.%[1]s.act（user、password），该用户需要对此表的 SELECT、DELETE、TRIGGER 权限，以及对归档表的 SELECT、INSERT、TRIGGER 权限", t.server())
}

// withRetention: whatever of a flow may still meet the record must not outlive it.
func (t *Task) withRetention() (all []Refusal) {
	for _, f := range t.Flows {
		for _, span := range spans(f) {
			if t.Retain > span.length {
				continue
			}
			all = append(all, refuse("retention", "retain is %[1]s, but the flow %[2]s has %[3]s of %[4]s: a duplicate could then meet no record; set retain above that",
				"retain 为 %[1]s，但流程 %[2]s 的%[3]s为 %[4]s：届时重复消息可能查不到记录；请将 retain 设为更大的值",
				flow.Span(t.Retain), f.Name, span.what, flow.Span(span.length))...)
		}
	}
	return all
}

// span is a time of a flow during which its record is needed.
type span struct {
	what   flow.Text
	length time.Duration
}

func spans(f flow.Flow) (all []span) {
	if f.Lock != nil {
		all = append(all, span{flow.T("a lock TTL", "锁 TTL"), f.Lock.TTL})
	}
	if f.Marker != nil {
		all = append(all, span{flow.T("a marker TTL", "标记 TTL"), f.Marker.TTL})
	}
	if f.Queue != nil {
		all = append(all, span{flow.T("an ack_timeout", "ack_timeout"), f.Queue.AckTimeout})
	}
	return append(all, span{flow.T("a stale_after", "stale_after"), f.StaleAfter})
}

func (t *Task) onReadOnly(s ledger.SweepState) []Refusal {
	if !s.ReadOnly {
		return nil
	}
	return refuse("read_only", "the server mysql.%[1]s is read-only; point mysql.%[1]s.address to the primary", "服务器 mysql.%[1]s 为只读；请将 mysql.%[1]s.address 指向主库", t.server())
}

func (t *Task) onReplica(s ledger.SweepState) []Refusal {
	if !s.Replica {
		return nil
	}
	return refuse("replica", "the configuration calls mysql.%[1]s a replica, and only a primary is cleaned; give the ledger the primary", "配置中 mysql.%[1]s 是从库，而清理只在主库上进行；请让该账本使用主库", t.server())
}

func (t *Task) withSkew(s ledger.SweepState) []Refusal {
	if s.Skew.Abs() <= maxSkew+s.Doubt {
		return nil
	}
	return refuse("clock_skew", "the clocks of mysql.%[1]s and of this machine differ by %[2]s, so nobody knows how old a record is; set both by NTP",
		"mysql.%[1]s 与本机的时钟相差 %[2]s，无法确定记录的时长；请用 NTP 校准两者", t.server(), flow.Span(s.Skew))
}

func (t *Task) withBinlog(s ledger.SweepState) []Refusal {
	if s.Binlog != "STATEMENT" || !t.archives() {
		return nil
	}
	return refuse("unsafe_binlog", "mysql.%[1]s logs statements, and copying rows is not safe then: replicas may get other rows; set binlog_format = ROW or MIXED",
		"mysql.%[1]s 的 binlog 记录语句，此时复制行并不安全，从库可能得到不同的行；请设置 binlog_format = ROW 或 MIXED", t.server())
}
