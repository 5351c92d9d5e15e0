package draft

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// Kind is what a Redis key is for.
type Kind int

// The kinds, as far as a name tells.
const (
	Unclear Kind = iota
	Lock
	Marker
)

// kindOf tells by the words in a name what a key is for.
func kindOf(name string) Kind {
	kind := Unclear
	for _, w := range words(name) {
		switch {
		case slices.Contains(lockWords, w), strings.HasPrefix(w, "lock"), strings.HasSuffix(w, "lock") && w != "block" && w != "clock" && w != "unlock":
			return Lock
		case hasAny([]string{w}, markerWords...):
			kind = Marker
		}
	}
	return kind
}

// Shape is a template that keys of the sample have in common.
type Shape struct {
	Template string
	Kind     Kind
	// Owners has what was seen by ledger and biz_type.
	Owners map[int]map[string]*Tally
	// Proved: the id of a row stands in a key. Otherwise only a biz_type does.
	Proved bool
	Tally

	first reading
}

// Tally is what was seen of some keys of a shape.
type Tally struct {
	// Keys is how many they are, Example one of them.
	Keys    int
	Example string
	// TTL is the longest remaining time that was seen, 0 when none was.
	TTL time.Duration
	// Endless counts keys that never expire.
	Endless int
	// Extended: a key was given more time while it kept its value.
	Extended bool
}

// typed reports whether the shape names the biz_type.
func (s *Shape) typed() bool { return strings.Contains(s.Template, "{biz_type}") }

// shapes collects shapes by their templates.
type shapes map[string]*Shape

func (s shapes) add(k lockstore.SampledKey, from []reading, proved bool) {
	counted := map[string]bool{}
	for _, one := range from {
		shape := s[one.template]
		if shape == nil {
			shape = &Shape{Template: one.template, Kind: kindOf(one.template), Owners: map[int]map[string]*Tally{}, first: one}
			s[one.template] = shape
		}
		shape.of(one.owner).see(k)
		shape.Proved = shape.Proved || proved
		if counted[one.template] {
			continue
		}
		counted[one.template] = true
		shape.see(k)
	}
}

// of returns the tally of a biz_type of a ledger.
func (s *Shape) of(o owner) *Tally {
	if s.Owners[o.ledger] == nil {
		s.Owners[o.ledger] = map[string]*Tally{}
	}
	if s.Owners[o.ledger][o.bizType] == nil {
		s.Owners[o.ledger][o.bizType] = &Tally{}
	}
	return s.Owners[o.ledger][o.bizType]
}

func (t *Tally) see(k lockstore.SampledKey) {
	one := Tally{Keys: 1, Example: k.Key, TTL: k.TTL, Extended: k.Extended}
	if k.NoTTL {
		one.Endless = 1
	}
	t.add(one)
}

func (t *Tally) add(other Tally) {
	if t.Keys == 0 {
		t.Example = other.Example
	}
	t.Keys += other.Keys
	t.TTL = max(t.TTL, other.TTL)
	t.Endless += other.Endless
	t.Extended = t.Extended || other.Extended
}

// Shapes groups the keys of a sample by what they look like when biz_types and
// biz_ids are taken out, the commonest shape first. It completes ledgers whose
// constant biz_type or whose joined id only Redis shows.
func (r *Reader) Shapes(keys []lockstore.SampledKey) []*Shape {
	all := shapes{}
	var rest []lockstore.SampledKey
	for _, k := range keys {
		if k.Type != "" && k.Type != "string" || strings.Contains(k.Key, countersWord) {
			continue
		}
		if from := typedFirst(r.direct(k.Key)); len(from) > 0 {
			all.add(k, from, true)
		} else {
			rest = append(rest, k)
		}
	}
	for _, k := range rest {
		if from := r.byShape(k.Key, all); len(from) > 0 {
			all.add(k, from, false)
		} else if from := r.byType(k.Key); len(from) > 0 {
			all.add(k, from, false)
		}
	}
	r.completeLedgers(all)
	return slices.SortedFunc(maps.Values(all), func(a, b *Shape) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), strings.Compare(a.Template, b.Template))
	})
}

// typedFirst drops readings without the biz_type where others have it.
func typedFirst(all []reading) []reading {
	typed := slices.DeleteFunc(slices.Clone(all), func(one reading) bool { return !strings.Contains(one.template, "{biz_type}") })
	if len(typed) > 0 {
		return typed
	}
	return all
}

// ways bounds in how many ways one key is taken apart by a template.
const ways = 64

// byShape reads a key by the shapes that are proved and name the biz_type.
func (r *Reader) byShape(key string, proved shapes) []reading {
	for _, text := range slices.Sorted(maps.Keys(proved)) {
		if !proved[text].typed() || !proved[text].Proved {
			continue
		}
		t, _ := flow.ParseTemplate(text)
		var all []reading
		for _, values := range t.Matches(key, ways) {
			bizType := values[flow.PlaceBizType]
			for _, ledger := range r.types[bizType] {
				all = append(all, reading{owner: owner{ledger: ledger, bizType: bizType}, template: text, id: values[flow.PlaceBizID]})
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// completeLedgers gives the ledgers without a column for the biz_type the one
// that stands in their keys, and joins the columns of an id as the keys do.
func (r *Reader) completeLedgers(all shapes) {
	for i, l := range r.ledgers {
		if l.TypeColumn() {
			continue
		}
		for _, text := range slices.Sorted(maps.Keys(all)) {
			s := all[text]
			if s.Owners[i] == nil || s.typed() || !s.Proved || s.Kind == Unclear || s.first.ledger != i {
				continue
			}
			l.proveBy(s)
			r.readType(i, s, all)
		}
	}
}

// proveBy takes the way in which a key joins the columns of the id.
func (l *Ledger) proveBy(s *Shape) {
	if s.first.idTemplate == "" {
		return
	}
	if l.Confidence == Unsure {
		l.Confidence, l.Doubts = Likely, nil
	}
	l.BizID = s.first.idTemplate
	l.Why = append(l.Why, flow.T("the Redis key %s is made of these columns", "Redis 键 %s 由这些列组成", shortened(s.Example)))
}

// readType reads the constant biz_type of a ledger out of a key with the help
// of a shape that other ledgers have proved.
func (r *Reader) readType(i int, s *Shape, all shapes) {
	l := r.ledgers[i]
	for _, text := range slices.Sorted(maps.Keys(all)) {
		other := all[text]
		if !other.typed() || other.Kind != s.Kind {
			continue
		}
		t, _ := flow.ParseTemplate(text)
		// The plainest reading has the shortest type.
		for _, values := range t.Matches(s.Example, ways) {
			bizType := values[flow.PlaceBizType]
			ahead, ok := strings.CutSuffix(values[flow.PlaceBizID], s.first.id)
			if !ok || !writableType(bizType) || !valid(ahead) || ahead != "" && (s.first.idTemplate == "" || strings.ContainsAny(ahead, "{}")) {
				continue
			}
			if s.first.idTemplate != "" {
				l.BizID = ahead + s.first.idTemplate
			}
			l.BizType = bizType
			l.Why = append(l.Why, flow.T("biz_type %s is read out of the key by the shape %s", "业务类型 %s 按键形 %s 从键中读出", flow.Visible(l.BizType), flow.Visible(text)))
			other.adopt(s, i, l.BizType)
			delete(all, s.Template)
			return
		}
	}
}

// adopt takes over the keys of a shape that turned out to be the same.
func (s *Shape) adopt(other *Shape, ledger int, bizType string) {
	s.of(owner{ledger: ledger, bizType: bizType}).add(other.Tally)
	s.Tally.add(other.Tally)
}

// Candidates lists the keys that the default shapes would give the newest rows.
// A key space that is too large for a sample still shows whether they exist.
func (r *Reader) Candidates(limit int) []string {
	var keys []string
	for n := 0; len(keys) < limit; n++ {
		more := false
		for _, l := range r.ledgers {
			if n >= len(l.Keys) || len(l.Parts) > 0 {
				continue
			}
			more = true
			for _, shape := range defaultShapes {
				if len(keys) < limit && (l.TypeColumn() || !shape.Has(flow.PlaceBizType)) {
					keys = append(keys, shape.Render(map[string]string{flow.PlaceBizType: l.Keys[n].BizType, flow.PlaceBizID: l.Keys[n].BizID}))
				}
			}
		}
		if !more {
			break
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// defaultShapes are those that work out of the box.
var defaultShapes = parsed("idem_lock:{biz_type}:{biz_id}", "consume_lock:{biz_id}", "idempotent:{biz_type}:{biz_id}", "msg:processed:{biz_id}", "msg:processed:{biz_id}:lock")

func parsed(texts ...string) []flow.Template {
	var list []flow.Template
	for _, text := range texts {
		t, err := flow.ParseTemplate(text)
		if err != nil {
			panic(err) // the templates are constants of this file
		}
		list = append(list, t)
	}
	return list
}

// steps are the lifetimes that people choose.
var steps = []time.Duration{1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 2 * 3600, 3 * 3600, 4 * 3600, 6 * 3600, 8 * 3600,
	12 * 3600, 24 * 3600, 2 * 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600, 14 * 24 * 3600, 30 * 24 * 3600, 90 * 24 * 3600, 365 * 24 * 3600}

// roundedUp is the lifetime that people choose at or above the longest one that
// was seen.
func roundedUp(ttl time.Duration) time.Duration {
	for _, seconds := range steps {
		if step := seconds * time.Second; ttl <= step {
			return step
		}
	}
	return ttl
}
