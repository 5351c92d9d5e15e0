package ledger

import (
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// resolveKey finds the integer by which rows are followed: the named column, if
// an index starts with it, or else the primary key. A primary key of several
// columns, as partitioned tables have, will do if it starts with the
// AUTO_INCREMENT column.
func (l *layout) resolveKey() {
	name := l.mapping.columns[roleID]
	switch name {
	case unmap:
		return
	case "":
		if c, sole := l.schema.primary(); c != nil && c.integer() && (sole || c.autoIncrement) {
			l.key, l.keyIndex = c, primaryKey
		}
	default:
		c := l.need(roleID, name)
		if c == nil {
			return
		}
		if i := slices.IndexFunc(l.schema.indexes, func(x index) bool {
			return x.usable && x.unique && strings.EqualFold(x.parts[0].column, c.name)
		}); i >= 0 && c.integer() {
			l.key, l.keyIndex = c, l.schema.indexes[i].name
		}
	}
	if l.key == nil {
		l.report(SeverityWarning, "no_integer_key", flow.T(
			"no single integer primary key: one key can be looked up, but the table cannot be followed for metrics",
			"没有单列整数主键：可以查询单个键，但无法跟踪该表以生成指标"))
	}
}

// keyNames are the columns of a whole key, lower case.
func (l *layout) keyNames() map[string]bool {
	names := map[string]bool{}
	for _, c := range l.id {
		names[strings.ToLower(c.name)] = true
	}
	if l.bizType != nil {
		names[strings.ToLower(l.bizType.name)] = true
	}
	return names
}

// resolveUnique judges the unique key that is to stop duplicates.
func (l *layout) resolveUnique() {
	names := l.keyNames()
	var wider *index
	var best *index
	for i := range l.schema.indexes {
		x := &l.schema.indexes[i]
		if !x.unique {
			continue
		}
		outside := x.without(names)
		if len(outside) > 0 {
			if len(x.parts)-len(outside) == len(names) {
				wider = x
			}
			continue
		}
		l.idAlone = l.idAlone || (x.usable && l.bizType != nil && len(x.parts) == len(l.id) && !x.has(l.bizType.name))
		if best == nil || l.weaknesses(x) < l.weaknesses(best) {
			best = x
		}
	}
	switch {
	case best == nil && wider != nil:
		l.problems = append(l.problems, problem{severity: SeverityError, code: "no_unique_key", wider: true, text: flow.T(
			"the unique key %s also holds %s: one key may have a row for each of its values",
			"唯一键 %s 还包含 %s：同一个键的每个取值都可以各有一行", wider.name, strings.Join(wider.without(names), ", "))})
	case best == nil:
		l.report(SeverityError, "no_unique_key", flow.T(
			"no unique key over the key columns: nothing in MySQL stops a duplicate", "键列上没有唯一键：MySQL 无法拦住重复"))
	default:
		l.checkUnique(best)
	}
}

func (l *layout) weaknesses(x *index) (n int) {
	for _, p := range x.parts {
		if c := l.schema.column(p.column); p.prefix || (c != nil && c.nullable) {
			n++
		}
	}
	return n
}

func (l *layout) checkUnique(x *index) {
	for _, p := range x.parts {
		if c := l.schema.column(p.column); c != nil && c.nullable {
			l.reportOn(c, SeverityError, "nullable_unique_key", flow.T(
				"column %s of the unique key %s may be NULL, and rows with NULL are never duplicates of one another",
				"唯一键 %[2]s 的列 %[1]s 可为 NULL，含 NULL 的行之间不算重复", c.name, x.name))
		}
		if p.prefix {
			l.problems = append(l.problems, problem{severity: SeverityWarning, code: "prefix_unique_key", index: x.name, text: flow.T(
				"the unique key %s holds only the beginning of %s: ids that begin alike refuse each other",
				"唯一键 %s 只包含 %s 的前缀：开头相同的 ID 会互相拒绝", x.name, p.column)})
		}
	}
}

// without lists the columns of the index that are not in names.
func (x *index) without(names map[string]bool) (outside []string) {
	for _, p := range x.parts {
		if !names[strings.ToLower(p.column)] {
			outside = append(outside, p.column)
		}
	}
	return outside
}

func (x *index) has(column string) bool {
	return slices.ContainsFunc(x.parts, func(p part) bool { return strings.EqualFold(p.column, column) })
}

// resolveLookup chooses the index for look-ups of one key: it must begin with
// key columns and hold the whole biz_id before any other column.
func (l *layout) resolveLookup() {
	names := l.keyNames()
	if l.idAlone {
		delete(names, strings.ToLower(l.bizType.name))
	}
	for i := range l.schema.indexes {
		x := &l.schema.indexes[i]
		if x.usable && l.leadsToID(x, names) && (l.lookup == nil || (x.unique && !l.lookup.unique)) {
			l.lookup = x
		}
	}
	if l.lookup == nil {
		l.report(SeverityError, "no_lookup_index", noLookup)
	}
}

var noLookup = flow.T(
	"no index begins with the key columns, so a look-up would read the whole table; none is made",
	"没有以键列开头的索引，查询会扫描整张表，因此不执行")

func (l *layout) leadsToID(x *index, names map[string]bool) bool {
	covered := 0
	for _, p := range x.parts {
		if !names[strings.ToLower(p.column)] {
			break
		}
		if l.bizType == nil || !strings.EqualFold(p.column, l.bizType.name) {
			covered++
		}
	}
	return covered == len(l.id)
}
