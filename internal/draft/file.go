package draft

import (
	"strings"
	"time"

	"idemscope/internal/flow"
)

// Names that the draft gives to the stores.
const (
	mysqlName  = "main"
	redisName  = "main"
	brokerName = "rabbit"
)

// File writes the configuration, with the reasons as comments in the language.
// It holds no password.
func (p *Plan) File(lang flow.Language) []byte {
	w := &page{lang: lang}
	w.note(0, flow.T("Drafted by idemscope init. A comment above a line says why it is there, and what to check.", "由 idemscope init 生成的草稿。每行上方的注释说明依据以及需要核对的内容。"))
	w.note(0, flow.T("Next: idemscope config check, then idemscope doctor. All keys: examples/idemscope.yaml.", "下一步：idemscope config check，然后 idemscope doctor。所有配置项见 examples/idemscope.yaml。"))
	if !p.Usable() {
		w.note(0, flow.T("Not complete: no ledger is in force, so config check refuses it until you have written one ledger and one flow.", "尚不完整：没有生效的幂等表，写好一个幂等表和一个流程之前 config check 会拒绝它。"))
	}
	w.line(0, "")
	w.line(0, "listen: 127.0.0.1:9877")
	w.note(0, flow.T("the zone in which times are displayed", "显示时间所用的时区"))
	w.line(0, "time_zone: %s", quoted(p.displayZone()))
	p.writeMySQL(w)
	p.writeRedis(w)
	p.writeBroker(w)
	p.writeLedgers(w)
	p.writeFlows(w)
	p.writeCounters(w)
	return []byte(w.String())
}

func (p *Plan) displayZone() string {
	if p.facts.MySQL == nil {
		return "UTC"
	}
	return p.facts.MySQL.zone().text
}

// missing writes what a section would look like for a store that nobody named.
func (w *page) missing(section, flag string, lines ...string) {
	w.note(0, flow.T("not looked at: name it with %s, or fill this in", "没有查看：请用 %s 指定，或自行填写", flag))
	w.suggest(0, "%s:", section)
	for _, l := range lines {
		w.suggest(0, "%s", l)
	}
}

func (w *page) problem(depth int, t flow.Text) {
	if !t.Empty() {
		w.note(depth, flow.T("could not be read when this was drafted: %s", "生成草稿时无法读取：%s", t))
	}
}

func (w *page) password(depth int, pw Password, variable string) {
	switch {
	case pw.File != "":
		w.line(depth, "password_file: %s", quoted(pw.File))
	case pw.Variable != "":
		w.line(depth, `password: "${%s}"`, pw.Variable)
	default:
		w.suggest(depth, `password: "${%s}"`, variable)
	}
}

func (p *Plan) writeMySQL(w *page) {
	w.line(0, "")
	m := p.facts.MySQL
	if m == nil {
		w.missing("mysql", "--mysql", "  main:", "    address: 127.0.0.1:3306", "    database: shop", "    user: idemscope", `    password: "${MYSQL_PASSWORD}"`)
		return
	}
	w.line(0, "mysql:")
	w.line(1, "%s:", mysqlName)
	w.problem(2, m.Problem)
	if m.Socket != "" {
		w.line(2, "socket: %s", quoted(m.Socket))
	} else {
		w.line(2, "address: %s", quoted(m.Address))
	}
	w.line(2, "database: %s", quoted(m.Database))
	w.line(2, "user: %s", quoted(m.User))
	w.password(2, m.Password, "MYSQL_PASSWORD")
	z := m.zone()
	w.note(2, flow.T("in which the application writes DATETIME columns", "应用写入 DATETIME 列所用的时区"))
	for _, t := range []flow.Text{z.why, z.doubts} {
		if !t.Empty() {
			w.note(2, t)
		}
	}
	w.line(2, "time_zone: %s", quoted(z.text))
	w.note(2, flow.T("true if this is a replica", "若为从库则写 true"))
	w.suggest(2, "replica: false")
}

func (p *Plan) writeRedis(w *page) {
	w.line(0, "")
	r := p.facts.Redis
	if r == nil {
		w.missing("redis", "--redis", "  main:", `    addresses: ["127.0.0.1:6379"]`, `    password: "${REDIS_PASSWORD}"`)
		return
	}
	w.line(0, "redis:")
	w.line(1, "%s:", redisName)
	w.problem(2, r.Problem)
	w.line(2, "addresses: %s", quotedList([]string{r.Address}))
	if r.Cluster {
		w.note(2, flow.T("the server says that it is a node of a cluster: add more of its nodes", "服务器是集群节点：请补充其他节点"))
		w.line(2, "mode: cluster")
	} else {
		w.line(2, "db: %d", r.DB)
	}
	if r.User != "" {
		w.line(2, "user: %s", quoted(r.User))
	}
	w.password(2, r.Password, "REDIS_PASSWORD")
}

func (p *Plan) writeBroker(w *page) {
	w.line(0, "")
	b := p.facts.Broker
	if b == nil {
		w.missing("brokers", "--rabbitmq", "  rabbit:", "    type: rabbitmq", "    management: http://127.0.0.1:15672", "    user: monitor", `    password: "${RABBIT_PASSWORD}"`)
		return
	}
	w.line(0, "brokers:")
	w.line(1, "%s:", brokerName)
	w.problem(2, b.Problem)
	w.line(2, "type: rabbitmq")
	w.line(2, "management: %s", quoted(b.Management))
	w.line(2, "vhost: %s", quoted(b.Vhost))
	w.line(2, "user: %s", quoted(b.User))
	w.password(2, b.Password, "RABBIT_PASSWORD")
}

func (p *Plan) writeLedgers(w *page) {
	w.line(0, "")
	if !p.Usable() {
		w.note(0, flow.T("no table was recognised for certain as a ledger; this is what one looks like", "没有能确定为幂等表的表；幂等表的写法如下"))
		w.suggest(0, "ledgers:")
		w.suggest(1, "orders: {mysql: %s, table: idempotent_record, preset: idempotent_record}", mysqlName)
	} else {
		w.line(0, "ledgers:")
	}
	for _, l := range p.ledgers {
		p.writeLedger(w, l)
	}
}

func (p *Plan) writeLedger(w *page, l Sampled) {
	if l.Confidence == Unsure {
		w.note(1, flow.T("Perhaps a ledger: take the # away from these lines, and write a flow, if it is one.", "可能是幂等表：如果是，请去掉以下各行的 # 并编写流程。"))
	}
	w.note(1, flow.T("%s: %s", "%s：%s", l.Confidence.Word(), flow.Visible(l.Table)))
	w.notes(1, l.Why)
	w.notes(1, checks(l.Doubts))
	if !l.Problem.Empty() {
		w.note(1, flow.T("its rows could not be read: %s", "无法读取其中的行：%s", l.Problem))
	}
	w.off = l.Confidence == Unsure
	defer func() { w.off = false }()
	w.line(1, "%s:", nameText(l.Name))
	w.line(2, "mysql: %s", mysqlName)
	w.line(2, "table: %s", quoted(l.Table))
	w.line(2, "preset: %s", l.Preset)
	if !l.hasType {
		w.line(2, "biz_type: %s", quoted(l.BizType))
	}
	if l.BizID != "" {
		w.line(2, "biz_id: %s", quoted(l.BizID))
	}
	writeMap(w, "columns", sortedPairs(l.Columns, func(s string) string { return quoted(s) }))
	status := map[string]string{}
	for phase, list := range l.Status {
		status[string(phase)] = quotedList(list)
	}
	writeMap(w, "status", sortedPairs(status, func(s string) string { return s }))
}

// checks marks doubts, so that a search finds them all.
func checks(doubts []flow.Text) []flow.Text {
	var all []flow.Text
	for _, d := range doubts {
		all = append(all, flow.T("CHECK: %s", "请核对：%s", d))
	}
	return all
}

func writeMap(w *page, key string, pairs []string) {
	if len(pairs) > 0 {
		w.line(2, "%s: {%s}", key, strings.Join(pairs, ", "))
	}
}

func (p *Plan) writeCounters(w *page) {
	w.line(0, "")
	if p.facts.Redis != nil && len(p.facts.Redis.Counted) > 0 {
		w.note(0, flow.T("instrumented consumers count for %s", "已接入的消费者正在计数：%s", visibleList(p.facts.Redis.Counted)))
		w.line(0, "counters: {redis: %s}", redisName)
		return
	}
	w.note(0, flow.T("if consumers count attempts and conflicts by the instrumentation contract:", "若消费者按接入约定统计次数与冲突："))
	w.suggest(0, "counters: {redis: %s}", redisName)
}

// duration writes a time span as a configuration does: 24h, not 24h0m0s.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
