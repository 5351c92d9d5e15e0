package draft

import (
	"maps"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// Sampled is a ledger with what its newest rows hold.
type Sampled struct {
	*Ledger
	// Keys are those of the newest rows, the newest first. Of an id of several
	// columns the values stand one after another as Spec joins them.
	Keys []flow.Key
	// Types are the biz_types that the table holds; AllTypes: there are no others.
	Types    []string
	AllTypes bool
	// Problem says why rows or types could not be read; empty when they could.
	Problem flow.Text
}

// owner is a row of a ledger whose id a Redis key may hold.
type owner struct {
	ledger  int
	bizType string
}

// Reader takes Redis keys apart by the biz_types and biz_ids that stand in the
// ledgers, byte by byte.
type Reader struct {
	ledgers []Sampled
	// ids finds the owners of an id; of an id of several columns by its first value.
	ids map[string][]owner
	// parts has the values of ids of several columns by ledger and first value.
	parts map[int]map[string][][]string
	// types finds the ledgers that hold a biz_type.
	types map[string][]int
}

const (
	// An id that is short or a small number stands in many keys by chance.
	minID, minNumber = 4, 6
	// maxBounds bounds the places at which an id may begin or end in a key.
	maxBounds = 40
)

// NewReader learns the ids of the ledgers.
func NewReader(ledgers []Sampled) *Reader {
	r := &Reader{ledgers: ledgers, ids: map[string][]owner{}, parts: map[int]map[string][][]string{}, types: map[string][]int{}}
	for i, l := range ledgers {
		for _, t := range l.Types {
			if t != placeholderType && t != "" {
				r.types[t] = append(r.types[t], i)
			}
		}
		for _, k := range l.Keys {
			r.learn(i, k)
		}
	}
	return r
}

func (r *Reader) learn(i int, k flow.Key) {
	if len(r.ledgers[i].Parts) > 0 {
		values := strings.Split(k.BizID, partSeparator)
		if r.parts[i] == nil {
			r.parts[i] = map[string][][]string{}
		}
		r.parts[i][values[0]] = append(r.parts[i][values[0]], values)
		return
	}
	if !r.ledgers[i].TypeColumn() {
		k.BizType = ""
	}
	if distinctive(k.BizID) {
		r.ids[k.BizID] = append(r.ids[k.BizID], owner{ledger: i, bizType: k.BizType})
	}
}

func distinctive(id string) bool {
	digits := strings.Trim(id, "0123456789") == ""
	return len(id) >= minID && (!digits || len(id) >= minNumber)
}

// Words in names of keys that say what a key is for. Lock words outweigh the others.
var (
	lockWords   = []string{"lock", "mutex", "lk"}
	markerWords = []string{"idem", "dedup", "dup", "duplicat", "processed", "consumed", "done", "once", "repeat", "handled", "finished", "success", "marker"}
	// countersWord begins the keys in which instrumented consumers count.
	countersWord = "idem_stat"
)

// Closer reports whether a key is worth more than a look at its name: it says
// that it is a lock or a marker, or it holds an id of a ledger.
func (r *Reader) Closer(key string) bool {
	if strings.Contains(key, countersWord) {
		return false
	}
	return kindOf(key) != Unclear || len(r.direct(key)) > 0
}

// bounds lists the places of a key at which a part of it may begin or end; nil
// when there are too many.
func bounds(key string) []int {
	var at []int
	for i := 0; i <= len(key); i++ {
		if i == 0 || i == len(key) || separates(key[i-1]) || separates(key[i]) {
			if at = append(at, i); len(at) > maxBounds {
				return nil
			}
		}
	}
	return at
}

func separates(c byte) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
	return !letter
}

// reading is one way to take a key apart.
type reading struct {
	owner
	// template is the key with placeholders.
	template string
	// id is what stands for {biz_id} in the key, idTemplate how several columns
	// form it; empty for one column.
	id, idTemplate string
}

// direct reads a key that holds the id of a row. The longest id counts.
func (r *Reader) direct(key string) []reading {
	at := bounds(key)
	var best []reading
	longest := 0
	for i, from := range at {
		for _, to := range slices.Backward(at[i+1:]) {
			id := key[from:to]
			if len(id) >= longest && len(id) > 0 && r.ids[id] != nil {
				if len(id) > longest {
					best, longest = nil, len(id)
				}
				best = append(best, r.plain(key, from, to)...)
			}
			for ledger, byFirst := range r.parts {
				for _, values := range byFirst[id] {
					if one, n := r.several(key, at, from, ledger, values); n > longest {
						best, longest = []reading{one}, n
					}
				}
			}
		}
	}
	return best
}

// plain makes the readings of a key whose id is one column.
func (r *Reader) plain(key string, from, to int) []reading {
	var all []reading
	for _, o := range r.ids[key[from:to]] {
		one := reading{owner: o, id: key[from:to], template: key[:from] + "{biz_id}" + key[to:]}
		if r.ledgers[o.ledger].TypeColumn() {
			one.template = withType(key[:from], o.bizType) + "{biz_id}" + key[to:]
			if !strings.Contains(one.template, "{biz_type}") {
				one.template = key[:from] + "{biz_id}" + withType(key[to:], o.bizType)
			}
		}
		if faithful(one.template, key, o.bizType, one.id) {
			all = append(all, one)
		}
	}
	return all
}

// withType puts the placeholder in place of the biz_type, where that stands by
// itself; the last place counts.
func withType(text, bizType string) string {
	if bizType == "" {
		return text
	}
	for end := len(text); end > 0; {
		at := strings.LastIndex(text[:end], bizType)
		if at < 0 {
			return text
		}
		after := at + len(bizType)
		if (at == 0 || separates(text[at-1])) && (after == len(text) || separates(text[after])) {
			return text[:at] + "{biz_type}" + text[after:]
		}
		end = after - 1
	}
	return text
}

// faithful reports whether the template is one that a configuration takes, and
// gives the key again.
func faithful(text, key, bizType, id string) bool {
	t, err := flow.ParseTemplate(text)
	if err != nil || !t.Has(flow.PlaceBizID) {
		return false
	}
	for _, name := range t.Names() {
		if name != flow.PlaceBizID && name != flow.PlaceBizType {
			return false
		}
	}
	return t.Render(map[string]string{flow.PlaceBizID: id, flow.PlaceBizType: bizType}) == key
}

// several reads a key in which the values of several columns stand in order. n
// is how long the values are together; 0 when they do not.
func (r *Reader) several(key string, at []int, from, ledger int, values []string) (one reading, n int) {
	parts := r.ledgers[ledger].Parts
	idTemplate, end := "{"+parts[0]+"}", from+len(values[0])
	n = len(values[0])
	for i, value := range values[1:] {
		next := -1
		for _, place := range at {
			if place > end && value != "" && strings.HasPrefix(key[place:], value) && slices.Contains(at, place+len(value)) {
				next = place
				break
			}
		}
		if next < 0 || strings.ContainsAny(key[end:next], "{}") {
			return reading{}, 0
		}
		idTemplate += key[end:next] + "{" + parts[i+1] + "}"
		end = next + len(value)
		n += len(value)
	}
	one = reading{owner: owner{ledger: ledger}, id: key[from:end], idTemplate: idTemplate, template: key[:from] + "{biz_id}" + key[end:]}
	if n < minNumber || !faithful(one.template, key, "", one.id) {
		return reading{}, 0
	}
	return one, n
}

// byType reads a key that names a biz_type of a ledger and says that it is a
// lock or a marker: what follows the type is taken for the id.
func (r *Reader) byType(key string) []reading {
	at := bounds(key)
	for _, bizType := range slices.Sorted(maps.Keys(r.types)) {
		head, rest, found := strings.Cut(key, bizType)
		after := len(head) + len(bizType)
		if !found || len(rest) < 2 || !separates(rest[0]) || !slices.Contains(at, len(head)) || kindOf(head) == Unclear {
			continue
		}
		id, tail := rest[1:], ""
		for _, ending := range []string{":lock", "_lock", ".lock", "}"} {
			if cut, ok := strings.CutSuffix(id, ending); ok && cut != "" {
				id, tail = cut, ending
				break
			}
		}
		template := head + "{biz_type}" + key[after:after+1] + "{biz_id}" + tail
		if !faithful(template, key, bizType, id) {
			continue
		}
		var all []reading
		for _, ledger := range r.types[bizType] {
			all = append(all, reading{owner: owner{ledger: ledger, bizType: bizType}, template: template, id: id})
		}
		return all
	}
	return nil
}

// Readable reports whether rows of the table can tell more about it: not those of
// business tables, whose ids stand in the keys of many other things.
func (l *Ledger) Readable() bool { return l.Preset != "state_machine" && l.Preset != "outbox" }

// LocalTimes reports whether the time at which a row was made stands in a
// column without a zone.
func (l *Ledger) LocalTimes() bool { return l.local }

// LearnTypes takes the biz_types that the table lists, or else those of the
// newest rows. err says why it lists none.
func (s *Sampled) LearnTypes(listed []string, all bool, err error) {
	s.Types, s.AllTypes = slices.Clone(listed), all && err == nil
	if s.AllTypes {
		return
	}
	for _, k := range s.Keys {
		if !slices.Contains(s.Types, k.BizType) {
			s.Types = append(s.Types, k.BizType)
		}
	}
	slices.Sort(s.Types)
}
