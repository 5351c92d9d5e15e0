package draft

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// Plan is a whole drafted configuration.
type Plan struct {
	facts   Facts
	ledgers []Sampled
	shapes  []*Shape
	work    []*Queue
	ignored []Ignored // queues
	flows   []plannedFlow
	// cut: there would be more than maxFlows flows.
	cut bool
}

// maxFlows bounds the size of the file, which a configuration bounds as well.
const maxFlows = 200

// plannedFlow is one flow of the plan.
type plannedFlow struct {
	name   string
	types  []string
	rest   bool
	ledger int
	// lock and marker are nil where none is known.
	lock, marker *use
	queue        *assigned
	doubts       []flow.Text
}

// use is a shape that a flow takes. assumed: it was seen for other biz_types of
// the ledger only.
type use struct {
	*Shape
	assumed bool
}

// Draw makes a plan of the facts. It completes the ledgers among them.
func Draw(f Facts) *Plan {
	p := &Plan{facts: f}
	if f.MySQL != nil {
		p.ledgers = f.MySQL.Ledgers
	}
	if f.Redis != nil {
		p.shapes = NewReader(p.ledgers).Shapes(f.Redis.keys())
	}
	if f.Broker != nil {
		p.work, p.ignored = Pair(f.Broker.Found.Queues)
	}
	p.nameTypes()
	p.nameLedgers()
	p.drawFlows()
	return p
}

// Complete: every store was named and read, and at least one ledger is in force.
func (p *Plan) Complete() bool {
	f := p.facts
	return f.MySQL != nil && f.MySQL.Problem.Empty() && f.Redis != nil && f.Redis.Problem.Empty() &&
		f.Broker != nil && f.Broker.Problem.Empty() && p.Usable()
}

// Usable: at least one flow is in force, without which a configuration is refused.
func (p *Plan) Usable() bool { return len(p.flows) > 0 }

// nameLedgers gives every ledger a name of its own.
func (p *Plan) nameLedgers() {
	names := uniqueNames{}
	for _, l := range p.ledgers {
		l.Name = names.take(l.Name)
	}
}

// nameTypes finds a biz_type for tables that have no column for it and whose
// keys in Redis told none: one for which consumers count, else the table's name.
func (p *Plan) nameTypes() {
	known := map[string]bool{}
	for _, l := range p.ledgers {
		for _, t := range l.Types {
			known[t] = true
		}
		known[l.BizType] = true
	}
	for _, l := range p.ledgers {
		if l.hasType || l.BizType != placeholderType {
			continue
		}
		if l.BizType = p.countedType(l.Ledger, known); l.BizType != "" {
			l.Why = append(l.Why, flow.T("biz_type %s is one for which consumers count", "业务类型 %s 出现在消费者的计数中", flow.Visible(l.BizType)))
		} else {
			l.BizType = ownType(l.Table)
			l.Doubts = append(l.Doubts, flow.T("the biz_type %s is made up from the name of the table: write the one that your keys and messages use", "业务类型 %s 取自表名：请改为键和消息中使用的类型", flow.Visible(l.BizType)))
		}
		known[l.BizType] = true
	}
}

func (p *Plan) countedType(l *Ledger, known map[string]bool) string {
	if p.facts.Redis == nil {
		return ""
	}
	own := words(ownType(l.Table))
	for _, t := range p.facts.Redis.Counted {
		if !known[t] && writableType(t) && matchOf(own, words(t)) >= inside {
			return t
		}
	}
	return ""
}

// ownType makes a biz_type of the name of a table.
func ownType(table string) string {
	noise := []string{"t", "tb", "tbl", "table", "record", "records", "log", "logs", "idempotent"}
	table, _, _ = strings.Cut(table, "{")
	kept := slices.DeleteFunc(words(table), func(w string) bool { return slices.Contains(noise, w) })
	if len(kept) == 0 {
		return configName(table, "all")
	}
	return configName(strings.Join(kept, "_"), "all")
}

// writableType reports whether a configuration can list the biz_type.
func writableType(t string) bool { return t != "" && t != "*" && len(t) <= maxType && valid(t) }

// maxType is how many bytes of a biz_type a file lists: a longer one is no name.
const maxType = 200

// valid reports whether a YAML file, which is UTF-8, can hold the text.
func valid(s string) bool { return utf8.ValidString(s) }

// drawFlows makes a flow of the biz_types of a ledger that share lock, marker and queue.
func (p *Plan) drawFlows() {
	queues := assign(p.allTypes(), p.work)
	names := uniqueNames{}
	for i, l := range p.ledgers {
		if l.Confidence == Unsure {
			continue
		}
		var own []plannedFlow
		for _, t := range p.typesOf(i) {
			own = p.place(own, i, t, queues)
		}
		if len(own) == 0 {
			own = []plannedFlow{{ledger: i, rest: true, lock: p.use(i, "", Lock), marker: p.use(i, "", Marker),
				doubts: []flow.Text{flow.T("no biz_type is known yet, so the flow takes whatever the ledger will hold", "尚不知道业务类型，因此该流程包含表中出现的所有类型")}}}
		}
		for _, f := range own {
			if len(p.flows) == maxFlows {
				p.cut = true
				break
			}
			f.name = names.take(f.ownName(l.Ledger))
			p.flows = append(p.flows, f)
		}
	}
}

func (f plannedFlow) ownName(l *Ledger) string {
	switch {
	case len(f.types) == 1:
		return configName(f.types[0], l.Name)
	case f.queue != nil:
		return configName(f.queue.Name, l.Name)
	}
	return l.Name
}

// place puts a biz_type into the flow with the same parts, or into a new one.
func (p *Plan) place(own []plannedFlow, ledger int, t string, queues map[string]assigned) []plannedFlow {
	f := plannedFlow{types: []string{t}, ledger: ledger, lock: p.use(ledger, t, Lock), marker: p.use(ledger, t, Marker)}
	if q, ok := queues[t]; ok {
		f.queue = &q
	}
	for i := range own {
		if own[i].alike(f) {
			own[i].types = append(own[i].types, t)
			own[i].lock, own[i].marker = own[i].lock.with(f.lock), own[i].marker.with(f.marker)
			return own
		}
	}
	return append(own, f)
}

func (f plannedFlow) alike(other plannedFlow) bool {
	sameQueue := f.queue == nil && other.queue == nil || f.queue != nil && other.queue != nil && f.queue.Queue == other.queue.Queue
	return sameQueue && f.lock.template() == other.lock.template() && f.marker.template() == other.marker.template()
}

func (u *use) template() string {
	if u == nil {
		return ""
	}
	return u.Template
}

// with keeps in mind that a shape is assumed for one of two types.
func (u *use) with(other *use) *use {
	if u == nil {
		return nil
	}
	return &use{Shape: u.Shape, assumed: u.assumed || other.assumed}
}

// typesOf lists the biz_types of a ledger that a configuration can name.
func (p *Plan) typesOf(i int) []string {
	l := p.ledgers[i]
	if !l.hasType {
		return []string{l.BizType}
	}
	types := slices.DeleteFunc(slices.Clone(l.Types), func(t string) bool { return !writableType(t) })
	slices.Sort(types)
	return slices.Compact(types)
}

// allTypes lists the biz_types of all ledgers in force.
func (p *Plan) allTypes() []string {
	all := map[string]bool{}
	for i, l := range p.ledgers {
		if l.Confidence == Unsure {
			continue
		}
		for _, t := range p.typesOf(i) {
			all[t] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// use finds the lock or marker of a biz_type: the commonest shape that was seen
// for it, else one that names the biz_type and was seen for others of the ledger.
func (p *Plan) use(ledger int, bizType string, kind Kind) *use {
	var assumed *use
	for _, s := range p.shapes {
		if s.Kind != kind || !valid(s.Template) {
			continue
		}
		owned := s.Owners[ledger]
		// A type that stands in no column stands in no count of keys either.
		if owned[bizType] != nil || !p.ledgers[ledger].hasType && len(owned) > 0 {
			return &use{Shape: s}
		}
		if assumed == nil && len(owned) > 0 && s.typed() {
			assumed = &use{Shape: s, assumed: true}
		}
	}
	return assumed
}

// seenFor lists the biz_types of a ledger for which keys of the shape were seen.
func (s *Shape) seenFor(ledger int) []string {
	return slices.Sorted(maps.Keys(s.Owners[ledger]))
}

// tally sums up what was seen for the flow; for a shape that is assumed, or a
// table of one type, what was seen for the ledger.
func (u *use) tally(f plannedFlow) Tally {
	var sum Tally
	owned := u.Owners[f.ledger]
	all := u.assumed || f.rest || owned[f.types[0]] == nil
	for _, t := range u.seenFor(f.ledger) {
		if all || slices.Contains(f.types, t) {
			sum.add(*owned[t])
		}
	}
	return sum
}

// keys joins what the walk and the probe saw, each key once.
func (r *Redis) keys() []lockstore.SampledKey {
	seen := map[string]bool{}
	var all []lockstore.SampledKey
	for _, k := range append(slices.Clone(r.Sample.Keys), r.Probed...) {
		if !seen[k.Key] {
			seen[k.Key] = true
			all = append(all, k)
		}
	}
	return all
}
