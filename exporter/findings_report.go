package exporter

import (
	"context"
	"strings"
	"sync"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// tellFrom is how many seconds of work are worth a word beforehand.
const tellFrom = 5

// Findings lists what was found so far, from memory. Without a judge it is
// empty, and its coverage says so.
func (e *Exporter) Findings() answer.Findings {
	if e.findings == nil {
		return answer.Findings{Coverage: []flow.Text{flow.T("Findings are not collected (exporter.findings.per_second is 0).", "未收集问题（exporter.findings.per_second 为 0）。")}}
	}
	return e.findings.report()
}

// FindOnce reads the ledgers from the lookback on to their ends, judges every
// suspect once, and returns what it found. It is for a process that does not Run.
func (e *Exporter) FindOnce(ctx context.Context) answer.Findings {
	if e.findings == nil {
		return e.Findings()
	}
	var ledgers sync.WaitGroup
	for _, l := range e.findings.ledgers {
		l.source.suspects.hasty = true
		ledgers.Go(func() {
			for ctx.Err() == nil && l.loop.poll(ctx) {
			}
		})
	}
	ledgers.Wait()
	if n, _ := e.findings.pending(); n > tellFrom*e.findings.perSecond {
		e.log.Info("judging suspects", "count", n, "per_second", e.findings.perSecond)
	}
	e.findings.drain(ctx)
	found := e.findings.report()
	found.Unread = found.Unread || found.Pending > 0
	return found
}

// pending counts the suspects that were not judged yet; known is false before
// the first ledger was read.
func (f *findings) pending() (pending int, known bool) {
	listed := map[subject]bool{}
	for _, l := range f.ledgers {
		rows, beyond := l.source.suspects.last()
		read, _, _ := l.source.suspects.standing()
		pending, known = pending+beyond, known || read
		for _, at := range rows {
			listed[subject{ledger: l.source.name, row: at}] = true
		}
	}
	if f.keys != nil {
		for _, p := range f.keys() {
			listed[subject{key: p}] = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for o := range listed {
		if q := f.inquiries[o]; q == nil || !q.judged {
			pending++
		}
	}
	return pending, known
}

func (f *findings) report() answer.Findings {
	r := answer.Findings{At: f.now()}
	r.Pending, _ = f.pending()
	r.Coverage, r.Unread = f.coverage()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.inquiries {
		if q.finding != nil {
			r.List = append(r.List, *q.finding)
		}
	}
	answer.SortFindings(r.List)
	return r
}

// coverage says where the suspects come from; unread reports a ledger that was
// not read to its end.
func (f *findings) coverage() (texts []flow.Text, unread bool) {
	add := func(en, zh string, args ...any) { texts = append(texts, flow.T(en, zh, args...)) }
	add("Records that are stale, failed or of an unmapped status, of the last %v (exporter.lookback).", "最近 %v内（exporter.lookback）超时、失败或状态未配置的记录。", flow.Span(f.lookback))
	add("Keys with more than one record, among those read lately.", "最近读取的记录中，出现多条记录的键。")
	var unswept []string
	if f.keys == nil {
		add("Redis is not swept: a lock without TTL or a marker without a record is found only where a record is a suspect too.", "没有扫描 Redis：没有 TTL 的锁、没有记录的标记，只有在其记录也可疑时才会被发现。")
	} else {
		add("Locks without TTL, and markers without a record among those that were sampled, as of the last complete sweep of Redis.", "没有 TTL 的锁，以及抽样标记中没有记录的，以最近一次完整的 Redis 扫描为准。")
	}
	add("Not found this way: ids that MySQL takes for one another, and messages that wait without any trace.", "这种方式无法发现：被 MySQL 当作同一个的不同 ID，以及没有任何痕迹的等待中消息。")
	for _, l := range f.ledgers {
		_, beyond := l.source.suspects.last()
		read, behind, swept := l.source.suspects.standing()
		st := l.loop.last()
		switch {
		case !st.polled():
			unread = true
			add("Ledger %s was not read yet.", "幂等表 %s 尚未读取。", l.loop.name)
		case !st.up:
			unread = true
			add("Ledger %s cannot be read at present; newer suspects are missing.", "幂等表 %s 目前无法读取，缺少较新的可疑记录。", l.loop.name)
		case !read && len(l.source.waiting) == 0:
			// Every row means completed, so none can be open.
		case !read:
			unread = true
			add("Ledger %s cannot be followed, so its records are not looked through.", "幂等表 %s 无法跟踪，未检查其中的记录。", l.loop.name)
		case behind:
			unread = true
			add("Ledger %s is still being read.", "幂等表 %s 仍在读取中。", l.loop.name)
		}
		if read && !swept {
			unswept = append(unswept, l.loop.name)
		}
		if beyond > 0 {
			add("Ledger %s has %d more suspects than are judged at a time.", "幂等表 %s 还有 %d 条可疑记录超出一次可判断的数量。", l.loop.name, beyond)
		}
	}
	if len(unswept) > 0 {
		add("Records older than exporter.lookback were not all read yet in: %s.", "早于 exporter.lookback 的记录尚未全部读取：%s。", strings.Join(unswept, ", "))
	}
	if f.isFull() {
		add("The list is full: there are more than %d findings.", "列表已满：问题超过 %d 个。", f.max)
	}
	return texts, unread
}

func (f *findings) isFull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full
}
