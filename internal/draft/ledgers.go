package draft

import (
	"slices"
	"strings"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Confidence is how sure a guess is.
type Confidence int

const (
	// Unsure guesses are written as comments only.
	Unsure Confidence = iota
	// Likely guesses are in force, with a word on what to check.
	Likely
	// Sure guesses rest on what the owner of the table wrote down.
	Sure
)

// Word is the confidence for people.
func (c Confidence) Word() flow.Text {
	switch c {
	case Sure:
		return flow.T("sure", "确定")
	case Likely:
		return flow.T("likely", "很可能")
	}
	return flow.T("unsure", "不确定")
}

// Ledger is a table that could be a ledger, with how a configuration would
// describe it.
type Ledger struct {
	// Name is what the configuration calls it.
	Name string
	// Table is a name or a pattern for shards.
	Table  string
	Preset string
	// BizType is the constant type of a table without a column for it.
	BizType string
	// BizID is the template of an id of several columns, which Parts names.
	BizID string
	Parts []string
	// Columns are the roles in which the table differs from its preset.
	Columns map[string]string
	// Status is empty where the words of the preset hold.
	Status     map[flow.Phase][]string
	Confidence Confidence
	// Why says what spoke for the guesses, Doubts what a person has to check.
	Why, Doubts []flow.Text

	hasType, hasStatus bool
	statusColumn       string
	// assumed: the meaning of the status words is that of the preset, unproved.
	assumed bool
	// local: Created is a column without a zone.
	local bool
}

// partSeparator stands between the values of an id of several columns while it
// is not known how the application joins them.
const partSeparator = "\x1f"

// Spec is what the ledger package needs to read the table: for an id of several
// columns, with a separator that no value has.
func (l *Ledger) Spec() ledger.MappingSpec {
	spec := ledger.MappingSpec{BizType: l.BizType, Columns: l.Columns, Status: map[string][]string{}}
	for p, list := range l.Status {
		spec.Status[string(p)] = list
	}
	if len(l.Parts) > 0 {
		spec.BizID = "{" + strings.Join(l.Parts, "}"+partSeparator+"{") + "}"
	}
	return spec
}

// TypeColumn reports whether a column holds the biz_type.
func (l *Ledger) TypeColumn() bool { return l.hasType }

// Ignored is something that was looked at and left out.
type Ignored struct {
	Name   string
	Reason flow.Text
}

// Recognise tells what a table is for. It returns nil and the reason for a table that
// is no ledger.
func Recognise(g Group, t ledger.TableFacts) (*Ledger, flow.Text) {
	tableWords := words(strings.TrimRight(g.Tables[0], "0123456789"))
	if reason := leftover(g.Tables[0], tableWords); !reason.Empty() {
		return nil, reason
	}
	if reason := ledger.Unmappable(g.Tables[0]); !reason.Empty() {
		return nil, reason
	}
	r := candidate{group: g, table: t, roles: rolesOf(t), words: tableWords, keys: businessKeys(t)}
	if reason := r.timeless(); !reason.Empty() {
		return nil, reason
	}
	l, reason := r.judge()
	if l == nil {
		return nil, reason
	}
	l.Name, l.Table = configName(g.Tables[0], "ledger"), g.Pattern
	if len(g.Tables) > 1 {
		l.Name = configName(strings.TrimRight(strings.TrimRight(g.Tables[0], "0123456789"), "_-"), "ledger")
		l.Why = append(l.Why, flow.T("%d tables with the same name and a number", "%d 个同名且带编号的表", len(g.Tables)))
	}
	l.local = r.roles[roleCreated].Kind == "datetime"
	return l, flow.Text{}
}

// leftover names copies that nobody writes to any more.
func leftover(name string, list []string) flow.Text {
	last := list
	if len(last) > 0 {
		last = last[len(last)-1:]
	}
	digits := len(name) - len(strings.TrimRight(name, "0123456789"))
	switch {
	case slices.ContainsFunc(last, func(w string) bool {
		return slices.Contains([]string{"archive", "archived", "bak", "backup", "old", "tmp", "temp", "copy", "his", "history", "deleted", "del"}, w)
	}):
		return flow.T("its name says that it is a copy or an archive", "从名称看是备份或归档表")
	case digits >= 4:
		return flow.T("its name ends with a date or a long number: if new rows go there, name the table yourself", "名称以日期或长编号结尾：如果新数据写入该表，请自行配置")
	}
	return flow.Text{}
}

// candidate is a table while it is judged.
type candidate struct {
	group Group
	table ledger.TableFacts
	roles map[string]ledger.ColumnFacts
	words []string
	keys  []ledger.KeyFacts
}

func (r candidate) has(role string) bool { _, ok := r.roles[role]; return ok }

// timeless: without a time no age of a record can be told.
func (r candidate) timeless() flow.Text {
	if len(r.table.Columns) == 0 {
		return flow.T("its columns could not be read", "无法读取其列")
	}
	for _, role := range []string{roleCreated, roleUpdated, roleCompleted} {
		if r.has(role) {
			return flow.Text{}
		}
	}
	return flow.T("no column tells when a row was made or changed", "没有列说明行的创建或更新时间")
}

func (r candidate) judge() (*Ledger, flow.Text) {
	if !r.has(roleBizID) {
		if c, ok := named(r.table, businessNumbers, identifies); ok {
			r.roles[roleBizID] = c
			if !r.has(roleBizType) {
				return r.business(c)
			}
		}
	}
	switch {
	case r.has(roleBizID) && r.has(roleBizType):
		return r.typed()
	case r.has(roleBizID):
		return r.single()
	}
	return r.composite()
}

// typed: a table for many kinds of operations.
func (r candidate) typed() (*Ledger, flow.Text) {
	id, kind := r.roles[roleBizID].Name, r.roles[roleBizType].Name
	key, over := keyOver(r.keys, kind, id)
	if !over {
		key, over = keyOver(r.keys, id)
	}
	l := r.build()
	switch {
	case over && r.has(roleStatus):
		l.Confidence = Sure
	case over:
		l.Confidence = Likely
	default:
		plainKey, found := keyOver(r.table.Keys, kind, id)
		if !found || !r.has(roleStatus) {
			return nil, flow.T("no unique key over %s and %s", "没有覆盖 %s 与 %s 的唯一键", flow.Visible(kind), flow.Visible(id))
		}
		l.Confidence = Likely
		l.Why = append(l.Why, flow.T("columns %s, %s and %s, but the index %s is not unique", "有列 %s、%s、%s，但索引 %s 不是唯一索引",
			flow.Visible(kind), flow.Visible(id), flow.Visible(r.roles[roleStatus].Name), flow.Visible(plainKey.Name)))
		l.Doubts = append(l.Doubts, flow.T("no unique key stops a second record of one key: see idemscope doctor", "没有唯一键阻止同一键写入第二条记录：请看 idemscope doctor"))
		return l, flow.Text{}
	}
	l.Why = append(l.Why, flow.T("unique key %s over %s", "唯一键 %s 覆盖 %s", flow.Visible(key.Name), visibleList(key.Columns)))
	return l, flow.Text{}
}

// single: a table whose id stands alone.
func (r candidate) single() (*Ledger, flow.Text) {
	id := r.roles[roleBizID].Name
	key, ok := keyOver(r.keys, id)
	if !ok {
		return nil, flow.T("no unique key over %s", "没有覆盖 %s 的唯一键", flow.Visible(id))
	}
	if hasAny(r.words, "outbox") || hasAny(r.words, "local") && hasAny(r.words, "message", "msg") {
		return r.outbox(key)
	}
	l := r.build()
	l.Confidence = Likely
	l.Why = append(l.Why, flow.T("unique key %s over %s", "唯一键 %s 覆盖 %s", flow.Visible(key.Name), visibleList(key.Columns)))
	if !hasAny(r.words, ledgerWords...) {
		l.Confidence = Unsure
		l.Doubts = append(l.Doubts, flow.T("the name of the table does not say that it records processed messages", "从表名看不出它记录已处理的消息"))
	}
	return l, flow.Text{}
}

// ledgerWords begin words in the names of tables that record what was processed.
var ledgerWords = []string{"idem", "dedup", "duplicat", "repeat", "consum", "process", "handle", "message", "msg", "mq", "receipt", "callback", "notify", "record", "log"}

// business: a row of the business itself, which has a number of its own.
func (r candidate) business(id ledger.ColumnFacts) (*Ledger, flow.Text) {
	key, ok := keyOver(r.keys, id.Name)
	switch {
	case !ok:
		return nil, flow.T("no unique key over %s", "没有覆盖 %s 的唯一键", flow.Visible(id.Name))
	case !r.has(roleStatus):
		return nil, flow.T("a business table without a status column", "没有状态列的业务表")
	}
	l := r.describe("state_machine")
	l.Status = nil
	l.Why = append(l.Why, flow.T("a business table: unique key %s over %s, and a status", "业务表：唯一键 %s 覆盖 %s，并有状态列", flow.Visible(key.Name), visibleList(key.Columns)))
	l.Doubts = append(l.Doubts, flow.T("if its status is what makes the consumer idempotent: map its states to not_started, processing, completed and failed", "若消费者依靠其状态实现幂等：请把各状态映射到 not_started、processing、completed、failed"))
	return l, flow.Text{}
}

// outbox: messages that wait to be sent.
func (r candidate) outbox(key ledger.KeyFacts) (*Ledger, flow.Text) {
	if !r.has(roleStatus) {
		return nil, flow.T("an outbox without a status column", "没有状态列的本地消息表")
	}
	l := r.describe("outbox")
	l.Why = append(l.Why, flow.T("an outbox by its name, with the unique key %s over %s", "从名称看是本地消息表，唯一键 %s 覆盖 %s", flow.Visible(key.Name), visibleList(key.Columns)))
	l.Doubts = append(l.Doubts, flow.T("sender side: give it the biz_type of the messages, and check the words of its status", "发送端：请填写消息的业务类型，并核对状态取值"))
	return l, flow.Text{}
}

// composite: several columns make up the id. Many tables look like that, so the
// guess waits for a proof in Redis.
func (r candidate) composite() (*Ledger, flow.Text) {
	if !hasAny(r.words, append([]string{"sign", "checkin", "history", "grant", "claim"}, ledgerWords...)...) {
		return nil, flow.T("no unique key that could hold a business id", "没有可能保存业务 ID 的唯一键")
	}
	for _, k := range r.keys {
		if len(k.Columns) < 2 || len(k.Columns) > 4 || k.Prefix || slices.ContainsFunc(k.Columns, func(c string) bool { return !templateName(c) }) {
			continue
		}
		l := r.describe("composite")
		l.Parts = k.Columns
		l.BizID = "{" + strings.Join(k.Columns, "}:{") + "}"
		l.Why = append(l.Why, flow.T("unique key %s over %s makes up an id of several columns; without a status, a row means completed", "唯一键 %s 覆盖 %s，组成多列 ID；没有状态列时，行存在即表示完成", flow.Visible(k.Name), visibleList(k.Columns)))
		l.Doubts = append(l.Doubts, flow.T("no lock or marker was seen whose id is made of these columns", "没有看到由这些列组成 ID 的锁或标记"))
		return l, flow.Text{}
	}
	return nil, flow.T("no unique key that could hold a business id", "没有可能保存业务 ID 的唯一键")
}

func visibleList(names []string) string {
	var list []string
	for _, n := range names {
		list = append(list, flow.Visible(n))
	}
	return "(" + strings.Join(list, ", ") + ")"
}
