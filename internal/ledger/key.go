package ledger

import (
	"strings"
	"unicode/utf8"

	"idemscope/internal/flow"
)

// maxWays bounds in how many ways one id is taken apart.
const maxWays = 16

// term is one column with the values that it is compared with: the asked one
// and, when the column is too narrow for it, what the column would keep.
type term struct {
	column *column
	values []string
}

// way is one set of column values that could stand for the asked key.
type way []term

// where writes the condition of a way.
func (w way) where(put writer) string {
	var parts []string
	for _, t := range w {
		var values []string
		for _, v := range t.values {
			values = append(values, put(operand{v, t.column.binary()}))
		}
		comparison := " = " + values[0]
		if len(values) > 1 {
			comparison = " IN (" + strings.Join(values, ", ") + ")"
		}
		parts = append(parts, quote(t.column.name)+comparison)
	}
	return strings.Join(parts, " AND ")
}

// question is an asked key in the terms of a table.
type question struct {
	ways []way
	// all is false when the id can be taken apart in more ways than are tried.
	all bool
	// tooLong: the biz_id column is too narrow for the id.
	tooLong bool
}

// question takes the key apart. Without any way, the id does not fit the template.
func (l *layout) question(key flow.Key) question {
	q := question{all: true}
	matches := []map[string]string{{}}
	if !l.mapping.id.IsZero() {
		if matches = l.takeApart(key.BizID); len(matches) > maxWays {
			matches, q.all = matches[:maxWays], false
		}
	}
	for _, values := range matches {
		var w way
		if l.bizType != nil && !l.idAlone {
			t, _ := newTerm(l.bizType, key.BizType)
			w = append(w, t)
		}
		for i, c := range l.id {
			value := key.BizID
			if !l.mapping.id.IsZero() {
				value = values[l.mapping.id.Names()[i]]
			}
			t, cut := newTerm(c, value)
			w = append(w, t)
			q.tooLong = q.tooLong || (cut && l.mapping.id.IsZero())
		}
		q.ways = append(q.ways, w)
	}
	return q
}

func newTerm(c *column, value string) (t term, cut bool) {
	t = term{column: c, values: []string{value}}
	kept, cut := c.cut(value)
	if cut {
		t.values = append(t.values, kept)
	}
	return t, cut
}

// takeApart matches the id with the template. An id without the template's
// ending is refused before every position of every separator is tried in vain.
func (l *layout) takeApart(id string) []map[string]string {
	names := l.mapping.id.Names()
	last := "{" + names[len(names)-1] + "}"
	text := l.mapping.id.String()
	if !strings.HasSuffix(id, text[strings.LastIndex(text, last)+len(last):]) {
		return nil
	}
	return l.mapping.id.Matches(id, maxWays+1)
}

// unaskable says why MySQL cannot be asked for the key, or nothing.
func (l *layout) unaskable(key flow.Key) flow.Text {
	if l.bizType != nil && l.bizType.text() && !utf8.ValidString(key.BizType) {
		return notText(l.bizType)
	}
	for _, c := range l.id {
		if c.text() && !utf8.ValidString(key.BizID) {
			return notText(c)
		}
	}
	return flow.Text{}
}

func notText(c *column) flow.Text {
	return flow.T("the asked key holds bytes that are not UTF-8, and column %s (%s) holds text: MySQL would refuse or change them, so nothing was asked",
		"查询的键含有非 UTF-8 字节，而列 %s（%s）保存文本：MySQL 会拒绝或改变这些字节，因此没有查询", c.name, c.charset)
}

// width is how many characters the biz_id column keeps; 0 when unlimited or composite.
func (l *layout) width() int {
	if !l.mapping.id.IsZero() {
		return 0
	}
	return l.id[0].limit
}
