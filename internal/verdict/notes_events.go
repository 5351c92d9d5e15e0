package verdict

import (
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// skewTolerance is by how much a store's clock may differ from ours before it is
// worth a word.
const skewTolerance = 2 * time.Second

// eventNotes are what tap, trace and trail add to the verdict with that code.
func (e evidence) eventNotes(code Code) []Note {
	var notes []Note
	add := func(applies bool, code string, text flow.Text) {
		if applies {
			notes = append(notes, Note{code, text})
		}
	}
	told := e.runs()
	received := len(e.Trail.Of(flow.Received))
	add(code == Completed && seen(e.Trail) && received > told.begun, "duplicates_suppressed", flow.T(
		"duplicates_suppressed=%d: consumers received it %d times and ran it %d times", "已抑制重复 %d 次：消费者收到 %d 次，执行 %d 次", received-told.begun, received, told.begun))
	add(told.begun > told.done+told.failed && code != Running, "run_unfinished", flow.T(
		"consumers report %d runs that began and never reported an end", "消费者报告有 %d 次执行开始后没有报告结束", told.begun-told.done-told.failed))
	given, dead := e.givenUp()
	add(dead && code == Completed, "copy_in_dead_letter", flow.T(
		"a copy of its message went to the dead letters %v ago: it is safe to drop, the work is done", "它的一份消息在 %v前进入死信：工作已完成，可以安全丢弃", flow.Span(e.sinceEvent(given))))
	add(dead && code == Stuck, "dead_letter", flow.T(
		"its message went to the dead letters %v ago%v", "它的消息在 %v前进入死信%v", flow.Span(e.sinceEvent(given)), because(given)))
	ended, done := last(e.Trail, flow.RunDone)
	failed, again := last(e.Trail, flow.RunFailed)
	add(code == Completed && done && again && failed.At.After(ended.At), "failed_retry_is_noise", flow.T(
		"a later attempt failed; that is noise, the work had been done", "之后的一次尝试失败了；这是噪音，工作此前已完成"))
	for _, a := range []struct {
		account *flow.Account
		code    string
		name    flow.Text
	}{{e.Tap, "tap_unread", flow.T("the tap", "旁路采集")}, {e.Trace, "trace_unread", flow.T("the trace", "投递跟踪")}, {e.Trail, "trail_unread", flow.T("the trail", "消费轨迹")}} {
		add(a.account != nil && a.account.State == flow.Error, a.code, flow.T("%v could not be read", "未能读取%v", a.name))
	}
	return notes
}

// long: the run takes longer than nearly all of its kind.
func (e evidence) long() bool {
	if e.P99 == 0 || !e.is(flow.Processing) || e.row.Created.Time.IsZero() {
		return false
	}
	return e.Record.DBNow.Sub(e.row.Created.Time) > e.P99
}

// surroundingNotes are about what is near the key, and about the stores.
func (e evidence) surroundingNotes() []Note {
	notes := e.neighbours()
	for _, r := range []*dossier.RedisEvidence{e.Lock, e.Marker} {
		if r != nil && len(r.Similar) > 0 {
			notes = append(notes, Note{"redis_similar", flow.T("Redis holds a key that reads alike: %s", "Redis 中有写法相近的键：%s", flow.Visible(r.Similar[0]))})
		}
	}
	if skew := e.MySQLAhead(); skew.Abs() > skewTolerance {
		notes = append(notes, Note{"mysql_clock", flow.T("MySQL's clock differs from ours by %v", "MySQL 的时钟与本机相差 %v", flow.Span(skew.Abs()))})
	}
	if skew := e.RedisAhead(); skew.Abs() > skewTolerance {
		notes = append(notes, Note{"redis_clock", flow.T("Redis's clock differs from ours by %v", "Redis 的时钟与本机相差 %v", flow.Span(skew.Abs()))})
	}
	return notes
}

// neighbours words the records of other keys, one note per kind.
func (e evidence) neighbours() []Note {
	var notes []Note
	for _, kind := range []ledger.NeighbourKind{ledger.OtherType, ledger.OtherVersion, ledger.OtherSpelling} {
		var first *ledger.Neighbour
		count := 0
		for i := range e.Record.Neighbours {
			if n := &e.Record.Neighbours[i]; n.Kind == kind {
				if count++; first == nil {
					first = n
				}
			}
		}
		if first == nil {
			continue
		}
		named := flow.T("%s / %s (%v)", "%s / %s（%v）", flow.Visible(first.BizType), flow.Visible(first.BizID), first.Phase.Word())
		switch kind {
		case ledger.OtherType:
			notes = append(notes, Note{string(kind), flow.T("the same id has a record under %d other biz_types: %v", "同一 ID 在 %d 个其他业务类型下有记录：%v", count, named)})
		case ledger.OtherVersion:
			notes = append(notes, Note{string(kind), flow.T("other versions of this id have records (%d): %v", "该 ID 的其他版本有记录（%d 条）：%v", count, named)})
		case ledger.OtherSpelling:
			notes = append(notes, Note{string(kind), flow.T("an id that reads alike has a record of its own: %v", "有一个写法相近的 ID 有自己的记录：%v", named)})
		}
	}
	return notes
}
