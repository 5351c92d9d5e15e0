package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"idemscope/internal/flow"
)

const (
	// maxNeighbours is how many records of each kind of neighbour are kept.
	maxNeighbours = 10
	// nearLimit is how many rows each part of the question may return.
	nearLimit = 40
)

// Marks of the two parts of the question: ids that resemble the asked one, and
// other types of the very same id.
const (
	markAlike = 1
	markTypes = 2
)

// surroundings are what was found around a key.
type surroundings struct {
	rows []Neighbour
	// gaps say what was not looked for.
	gaps []flow.Text
}

// askNear looks for neighbours while the key itself is looked up: one statement
// for each shard, on another connection, with half of the time that the look-up
// has. What goes wrong is a gap and never touches the answer about the key.
func (l *Ledger) askNear(ctx context.Context, key flow.Key) <-chan surroundings {
	out := make(chan surroundings, 1)
	go func() {
		ctx, cancel := share(ctx, 1, 2)
		defer cancel()
		found := make([]surroundings, len(l.shards))
		l.eachShard(func(i int, s *Shard) { found[i] = l.nearIn(ctx, s, key) })
		var all surroundings
		for _, n := range found {
			all.rows = append(all.rows, n.rows...)
			all.gaps = append(all.gaps, n.gaps...)
		}
		out <- all
	}()
	return out
}

func (l *Ledger) nearIn(ctx context.Context, s *Shard, key flow.Key) (n surroundings) {
	err := s.use(ctx, func(layout *layout) error {
		n = surroundings{}
		if layout.lookup == nil || !layout.unaskable(key).Empty() {
			return nil // the look-up of the key says so
		}
		q := l.nearQuestion(ctx, layout, key, &n)
		if len(q.parts) == 0 {
			return nil
		}
		return s.readNear(ctx, layout, q, &n)
	})
	switch {
	case isNumber(err, refusesCharacters...):
		// The look-up of the key says that no such id can be stored.
	case err != nil:
		n.rows = nil
		n.gaps = append(n.gaps, flow.T("neighbours of this key were not looked for: %s", "未查找与该键相近的记录：%s", explainShard(s, err)))
	}
	return n
}

// nearQuestion is the one statement that asks for all neighbours in a table.
type nearQuestion struct {
	parts    []nearPart
	versions []string
}

// nearPart is one SELECT of the statement.
type nearPart struct {
	mark  int
	index string
	where way
}

func (l *Ledger) nearQuestion(ctx context.Context, layout *layout, key flow.Key, n *surroundings) nearQuestion {
	q := nearQuestion{versions: flow.Versions(key.BizID)}
	if alike := layout.alike(key, q.versions); len(alike.values) > 0 {
		where := way{alike}
		if layout.bizType != nil && !layout.idAlone {
			where = way{{column: layout.bizType, values: []string{key.BizType}}, alike}
		}
		q.parts = append(q.parts, nearPart{mark: markAlike, index: layout.lookup.name, where: where})
	}
	if layout.bizType == nil || layout.idAlone || !layout.mapping.id.IsZero() {
		return q
	}
	id := term{column: layout.id[0], values: []string{key.BizID}}
	if index := layout.idIndex(); index != "" {
		q.parts = append(q.parts, nearPart{mark: markTypes, index: index, where: way{id}})
		return q
	}
	types, gap := l.typesNow(ctx)
	if !gap.Empty() {
		n.gaps = append(n.gaps, gap)
	}
	types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == key.BizType })
	if len(types) > 0 {
		where := way{{column: layout.bizType, values: types}, id}
		q.parts = append(q.parts, nearPart{mark: markTypes, index: layout.lookup.name, where: where})
	}
	return q
}

// alike are the ids that resemble the asked one and that the column could hold.
// Ids of several columns, and ids that are numbers, have none.
func (l *layout) alike(key flow.Key, versions []string) term {
	t := term{column: l.id[0]}
	c := l.id[0]
	if !l.mapping.id.IsZero() || c.kind == "enum" || c.kind == "set" || !c.text() && !c.binary() {
		return t
	}
	for _, id := range slices.Concat(flow.Variants(key.BizID), versions) {
		if _, cut := c.cut(id); !cut && c.holds(id, key.BizID) && !slices.Contains(t.values, id) {
			t.values = append(t.values, id)
		}
	}
	return t
}

// holds reports that the column can be compared with id without an error, given
// that it can be with asked. MySQL refuses characters that a character set lacks.
func (c *column) holds(id, asked string) bool {
	if c.binary() {
		return true
	}
	if !utf8.ValidString(id) {
		return false
	}
	switch c.charset {
	case "utf8mb4", "utf16", "utf16le", "utf32":
		return true
	case "utf8", "utf8mb3", "ucs2":
		return !strings.ContainsFunc(id, func(r rune) bool { return r > 0xffff })
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return r >= utf8.RuneSelf && !strings.ContainsRune(asked, r) })
}

// idIndex is an index that begins with the biz_id, whatever the type; or empty.
func (l *layout) idIndex() string {
	for _, x := range l.schema.indexes {
		if x.usable && !x.parts[0].prefix && strings.EqualFold(x.parts[0].column, l.id[0].name) {
			return x.name
		}
	}
	return ""
}

func (s *Shard) readNear(ctx context.Context, l *layout, q nearQuestion, n *surroundings) error {
	sel := l.selection(false)
	var mark int
	sel.exprs = append([]string{""}, sel.exprs...)
	var bound statement
	put := bind(&bound.args)
	var parts []string
	for _, p := range q.parts {
		sel.exprs[0] = fmt.Sprint(p.mark)
		parts = append(parts, fmt.Sprintf("(%s WHERE %s LIMIT %d)", sel.from(p.index), p.where.where(put), nearLimit))
	}
	bound.text = strings.Join(parts, " UNION ALL ")
	err := s.server.scan(ctx, bound, append([]any{&mark}, sel.dest...), func() {
		row := sel.row()
		n.rows = append(n.rows, Neighbour{Kind: q.kindOf(mark, row), Row: row})
	})
	if err != nil {
		return fmt.Errorf("look for neighbours of a key in %s: %w", s.table, err)
	}
	return nil
}

// kindOf tells other versions from other spellings. The collation may have found
// one in another case than it was asked for.
func (q nearQuestion) kindOf(mark int, row Row) NeighbourKind {
	switch {
	case mark == markTypes:
		return OtherType
	case slices.ContainsFunc(q.versions, func(v string) bool { return strings.EqualFold(v, row.BizID) }):
		return OtherVersion
	}
	return OtherSpelling
}

// takeNear adds the neighbours: those that are not rows of the key itself, a few
// of each kind.
func (f *Found) takeNear(n surroundings, key flow.Key) {
	slices.SortStableFunc(n.rows, neighbourOrder)
	kept := map[NeighbourKind]int{}
	for _, row := range n.rows {
		if (row.BizType == key.BizType && row.BizID == key.BizID) || f.has(row.Row) || kept[row.Kind] >= maxNeighbours {
			continue
		}
		kept[row.Kind]++
		f.Neighbours = append(f.Neighbours, row)
	}
	for _, gap := range n.gaps {
		if !slices.Contains(f.Coverage, gap) {
			f.Coverage = append(f.Coverage, gap)
		}
	}
}

// has reports that the row is among those that MySQL matches to the key.
func (f *Found) has(row Row) bool {
	return slices.ContainsFunc(f.Rows, func(r Row) bool {
		return r.Table == row.Table && r.ID == row.ID && r.BizType == row.BizType && r.BizID == row.BizID
	})
}

// neighbourOrder: by kind; the highest version first, else by name.
func neighbourOrder(a, b Neighbour) int {
	if a.Kind == b.Kind && a.Kind == OtherVersion {
		return cmp.Or(cmp.Compare(len(b.BizID), len(a.BizID)), cmp.Compare(b.BizID, a.BizID), cmp.Compare(a.Table, b.Table))
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.BizType, b.BizType), cmp.Compare(a.BizID, b.BizID), cmp.Compare(a.Table, b.Table))
}

// typesGap says why other types were not, or not all, looked for; nothing when all were.
func typesGap(complete bool, err error) flow.Text {
	switch {
	case errors.Is(err, ErrNoIndex):
		return flow.T("the same id under other biz_types was not looked for: no index leads to it", "未查找其他业务类型下的同一 ID：没有可用的索引")
	case err != nil:
		return flow.T("the same id under other biz_types was not looked for: %s", "未查找其他业务类型下的同一 ID：%s", Explain(err))
	case !complete:
		return flow.T("the same id was looked for under %d other biz_types only; there are more", "只在 %d 个业务类型下查找了同一 ID，还有更多类型", maxNearTypes)
	}
	return flow.Text{}
}
