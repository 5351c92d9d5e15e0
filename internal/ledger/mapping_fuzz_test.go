package ledger

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"idemscope/internal/flow"
)

// FuzzTables: a pattern names a bounded number of tables, each a name that the
// server can have, and none is named twice unless the pattern says so.
func FuzzTables(f *testing.F) {
	for _, p := range []string{"orders", "shop.orders", "r_{00..63}", "db_{0..3}.t_{00..15}", "r_{9..1}", "r_{0..99999999999999999999}", "{0..1}{0..1}{0..9999}", "a.b.c", "", ".", "r_{00..5}", "r`x", "订单_{0..1}", strings.Repeat("{0..9}", 9)} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		tables, err := parseTables(pattern, "shop")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "table: ") || tables != nil {
				t.Errorf("%q: %v with %v", pattern, err, tables)
			}
			return
		}
		if len(tables) == 0 || len(tables) > maxShards {
			t.Errorf("%q stands for %d tables", pattern, len(tables))
		}
		for _, one := range tables {
			for _, name := range []string{one.database, one.name} {
				if n := utf8.RuneCountInString(name); n == 0 || n > maxName || strings.ContainsAny(name, "./\\\x00") {
					t.Errorf("%q gives the name %q", pattern, name)
				}
			}
			if quoted := one.quoted(); strings.Count(quoted, "`")%2 != 0 {
				t.Errorf("%q is quoted as %s", pattern, quoted)
			}
		}
	})
}

// FuzzMapping: a mapping is refused with the name of the key that is wrong, or
// every stored word means the phase that was written.
func FuzzMapping(f *testing.F) {
	for _, s := range [][6]string{
		{"idempotent_record", "", "", "status", "state", "1,2"}, {"composite", "sign", "{user_id}:{sign_date}", "created", "at", ""},
		{"", "pay", "", "biz_id", "no", "ok,ok"}, {"consume_log", "", "{a}{b}", "nonsense", "-", ","}, {"nothing", "", "", "", "", ""},
		{"state_machine", "order", "", "status", "", "paid"}, {"outbox", "x", "{", "id", "-", "sent,"},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4], s[5])
	}
	f.Fuzz(func(t *testing.T, preset, bizType, bizID, role, name, words string) {
		spec := MappingSpec{BizType: bizType, BizID: bizID}
		if role != "" {
			spec.Columns = map[string]string{role: name}
		}
		if words != "" {
			spec.Status = map[string][]string{"completed": strings.Split(words, ","), "failed": {"failed!"}}
		}
		m, err := NewMapping(preset, spec)
		if err != nil {
			if key, _, named := strings.Cut(err.Error(), ":"); !named || key == "" {
				t.Errorf("a refusal that names no key: %v", err)
			}
			return
		}
		for _, phase := range phases {
			for _, word := range m.WordsOf(phase) {
				if got := m.PhaseOf(word); got != phase {
					t.Errorf("%q is listed as %s and means %s", word, phase, got)
				}
			}
		}
		if kept, ok := m.BizType(); ok != (bizType != "") || kept != bizType {
			t.Errorf("biz_type %q is kept as %q", bizType, kept)
		}
		if m.HasStatus() && m.PhaseOf("no such word \x00") != flow.Unmapped {
			t.Error("a word that nobody mapped has a meaning")
		}
	})
}

// FuzzKeyQuestion: however an id is taken apart into columns, the columns make
// up the id again, and what a narrow column would keep is its beginning.
func FuzzKeyQuestion(f *testing.F) {
	for _, s := range []struct {
		tpl, id string
		limit   uint8
	}{{"{user_id}:{sign_date}", "7:2025-01-15", 8}, {"{a}-{b}-{c}!", "1-2-3-4-5!", 1}, {"{a}", "💳💳💳", 2}, {"{a}:{b}", ":::::::::::::::::::::", 3}, {"x{a}y", "xy", 0}, {"{a}:{b}", "\xff\xfe:\xff", 1}} {
		f.Add(s.tpl, s.id, s.limit)
	}
	f.Fuzz(func(t *testing.T, text, id string, limit uint8) {
		tpl, err := flow.ParseTemplate(text)
		if err != nil || len(tpl.Names()) == 0 || len(tpl.Names()) > 4 || len(id) > 200 {
			return
		}
		l := &layout{mapping: Mapping{id: tpl}}
		for _, name := range tpl.Names() {
			l.id = append(l.id, &column{name: name, kind: "varchar", charset: "utf8mb4", limit: int(limit)})
		}
		q := l.question(flow.Key{BizID: id})
		if len(q.ways) > maxWays {
			t.Errorf("%d ways, the bound is %d", len(q.ways), maxWays)
		}
		for _, w := range q.ways {
			values := map[string]string{}
			for i, part := range w {
				values[tpl.Names()[i]] = part.values[0]
				checkKept(t, part, int(limit))
			}
			if got := tpl.Render(values); got != id {
				t.Errorf("%q takes %q apart into %q, which is %q", text, id, values, got)
			}
		}
	})
}

func checkKept(t *testing.T, part term, limit int) {
	t.Helper()
	asked := part.values[0]
	if len(part.values) == 1 {
		if limit > 0 && utf8.RuneCountInString(asked) > limit {
			t.Errorf("%q is longer than %d and would not be cut", asked, limit)
		}
		return
	}
	kept := part.values[1]
	if !slices.Equal([]rune(kept), []rune(asked)[:limit]) {
		t.Errorf("of %q a column of %d characters is said to keep %q", asked, limit, kept)
	}
}
