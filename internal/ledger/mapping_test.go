package ledger

import (
	"strings"
	"testing"

	"idemscope/internal/flow"
)

func TestMappingErrorsNameTheKey(t *testing.T) {
	columns := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	cases := []struct {
		name   string
		preset string
		spec   MappingSpec
		want   string
	}{
		{"preset", "idempotentrecord", MappingSpec{}, "preset: there is no \"idempotentrecord\"; allowed are composite, consume_log, idempotent_record,"},
		{"role", "idempotent_record", MappingSpec{Columns: columns("updated_at", "x")}, "columns.updated_at: no such column role; allowed are id, biz_type,"},
		{"phase", "idempotent_record", MappingSpec{Status: map[string][]string{"done": {"2"}}}, "status.done: no such phase; allowed are not_started, processing, completed, failed"},
		{"word twice", "idempotent_record", MappingSpec{Status: map[string][]string{"completed": {"2"}, "failed": {"2"}}}, `status.failed: "2" already means completed`},
		{"type missing", "consume_log", MappingSpec{}, "biz_type: needed"},
		{"type twice", "idempotent_record", MappingSpec{BizType: "order"}, `biz_type: the column "biz_type" already holds it`},
		{"id missing", "composite", MappingSpec{BizType: "sign"}, "biz_id: needed"},
		{"id twice", "composite", MappingSpec{BizType: "sign", BizID: "{a}:{b}", Columns: columns("biz_id", "c")}, "biz_id: the template"},
		{"id unmapped", "consume_log", MappingSpec{BizType: "x", Columns: columns("biz_id", "-")}, "biz_id: needed"},
		{"template", "composite", MappingSpec{BizType: "sign", BizID: "{a}{b}"}, "biz_id: template"},
		{"template without a column", "composite", MappingSpec{BizType: "sign", BizID: "abc"}, "biz_id: template \"abc\" names no column"},
		{"status needed", "state_machine", MappingSpec{BizType: "pay", Columns: columns("status", "-")}, "columns.status: preset state_machine needs"},
		{"words without column", "consume_log", MappingSpec{BizType: "x", Status: map[string][]string{"completed": {"1"}}}, "status: words are given, but no column"},
		{"column without words", "consume_log", MappingSpec{BizType: "x", Columns: columns("status", "state")}, "status: needed for column \"state\""},
		{"no column name", "idempotent_record", MappingSpec{Columns: columns("status", "a\x00b")}, "columns.status: "},
		{"by hand, nothing", "", MappingSpec{}, "biz_id: needed"},
	}
	for _, c := range cases {
		if _, err := NewMapping(c.preset, c.spec); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMappingWords(t *testing.T) {
	m, err := NewMapping("outbox", MappingSpec{BizType: "notify"})
	if err != nil {
		t.Fatal(err)
	}
	for word, phase := range map[string]flow.Phase{"pending": flow.NotStarted, "sent": flow.Completed, "failed": flow.Failed, "": flow.Unmapped, "SENT": flow.Unmapped} {
		if got := m.PhaseOf(word); got != phase {
			t.Errorf("%q: %s", word, got)
		}
	}
	m, err = NewMapping("idempotent_record", MappingSpec{Status: map[string][]string{"completed": {"9"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m.PhaseOf("9") != flow.Completed || m.PhaseOf("2") != flow.Unmapped {
		t.Error("given words must replace the words of the preset")
	}
	if constant, ok := m.BizType(); ok || constant != "" || !m.HasStatus() {
		t.Error("this preset has its type and status in columns")
	}
	// A preset is shared by all ledgers: completing it must not change it.
	if _, err := NewMapping("idempotent_record", MappingSpec{Columns: map[string]string{"status": "state"}}); err != nil {
		t.Fatal(err)
	}
	if presets["idempotent_record"].columns[roleStatus] != "status" {
		t.Error("NewMapping changed the preset")
	}
}

func TestNewLedgerErrors(t *testing.T) {
	s, err := NewServer(ServerOptions{Name: "main", Address: "127.0.0.1:1", Database: "shop", User: "u"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := NewMapping("idempotent_record", MappingSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no name":    {Server: s, Table: "t", Mapping: m},
		"no server":  {Name: "x", Table: "t", Mapping: m},
		"no mapping": {Name: "x", Server: s, Table: "t"},
		"no table":   {Name: "x", Server: s, Mapping: m},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for table, want := range map[string]string{
		"r":                  "mysql main, shop.r",
		"other.r":            "mysql main, other.r",
		"r_{00..63}":         "mysql main, shop.r_{00..63} (64 shards)",
		"db_{0..1}.r":        "mysql main, db_{0..1}.r (2 shards)",
		"db_{0..1}.r_{0..1}": "mysql main, db_{0..1}.r_{0..1} (4 shards)",
	} {
		l, err := New(Options{Name: "x", Server: s, Table: table, Mapping: m})
		if err != nil || l.Source() != want || l.Name() != "x" {
			t.Errorf("%s: %v %v", table, l, err)
		}
	}
}
