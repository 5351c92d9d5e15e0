package draft

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

func TestTablesThatDifferInANumberAreOneLedger(t *testing.T) {
	var shards []string
	for n := range 64 {
		shards = append(shards, fmt.Sprintf("record_%02d", n))
	}
	for name, c := range map[string]struct {
		names []string
		want  []string
	}{
		"padded":              {shards, []string{"record_{00..63}"}},
		"from one":            {[]string{"t1", "t2", "t3"}, []string{"t{1..3}"}},
		"past nine":           {[]string{"t0", "t1", "t10", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}, []string{"t{0..10}"}},
		"a gap":               {[]string{"t0", "t1", "t3"}, []string{"t0", "t1", "t3"}},
		"years":               {[]string{"log2024", "log2025"}, []string{"log2024", "log2025"}},
		"one":                 {[]string{"record_00"}, []string{"record_00"}},
		"padded and unpadded": {[]string{"t0", "t01"}, []string{"t0", "t01"}},
		"numbers only":        {[]string{"1", "2"}, []string{"1", "2"}},
		"a stem of its own":   {[]string{"t", "t_0", "t_1"}, []string{"t", "t_{0..1}"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range Fold(c.names) {
				got = append(got, g.Pattern)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// guess is the short form of what a test expects.
type guess struct {
	preset     string
	confidence Confidence
	columns    map[string]string
	doubt      string
}

func TestTablesAreRecognisedByTheirShape(t *testing.T) {
	enum := ledger.ColumnFacts{Name: "status", Kind: "enum", Words: []string{"processing", "completed", "failed"}}
	legend := commented("status", "tinyint", "1:处理中 2:已完成 3:失败")
	messages := []ledger.ColumnFacts{column("message_id", "varchar"), column("message_type", "varchar"), enum, column("result", "text"), column("created_at", "timestamp"), column("completed_at", "timestamp")}
	for name, c := range map[string]struct {
		facts ledger.TableFacts
		want  guess
	}{
		"idempotent_record": {table("idempotent_record", recordColumns(legend), []string{"biz_type", "biz_id"}), guess{preset: "idempotent_record", confidence: Sure}},
		"the unique key in another order": {table("idempotent_record", recordColumns(legend), []string{"biz_id", "biz_type"}),
			guess{preset: "idempotent_record", confidence: Sure}},
		"message_deduplication": {table("message_deduplication", messages, []string{"message_id", "message_type"}), guess{preset: "message_deduplication", confidence: Sure}},
		"message_idempotence":   {table("message_idempotence", messages, []string{"message_id", "message_type"}), guess{preset: "message_idempotence", confidence: Sure}},
		"names of another house": {table("t_mq_dedup", []ledger.ColumnFacts{column("msg_id", "varchar"), column("msg_type", "varchar"), enum, column("gmt_create", "datetime"), column("gmt_modified", "datetime")}, []string{"msg_type", "msg_id"}),
			guess{preset: "message_deduplication", confidence: Sure, columns: map[string]string{"biz_id": "msg_id", "biz_type": "msg_type", "created": "gmt_create", "updated": "gmt_modified", "completed": "-", "result": "-"}}},
		"consume_log": {table("consume_log", []ledger.ColumnFacts{column("biz_id", "varchar"), column("handle_time", "datetime")}, []string{"biz_id"}),
			guess{preset: "consume_log", confidence: Likely}},
		"message_processed": {table("message_processed", []ledger.ColumnFacts{column("message_id", "varchar"), column("biz_type", "varchar"), enum, column("processed_at", "datetime")}, []string{"message_id"}),
			guess{preset: "message_processed", confidence: Sure}},
		"composite": {table("user_sign_record", []ledger.ColumnFacts{column("user_id", "bigint"), column("sign_date", "date"), column("created_at", "datetime")}, []string{"user_id", "sign_date"}),
			guess{preset: "composite", confidence: Unsure, doubt: "no lock or marker"}},
		"a business table": {table("orders", []ledger.ColumnFacts{column("order_no", "varchar"), column("status", "varchar"), column("created_at", "datetime"), column("updated_at", "datetime")}, []string{"order_no"}),
			guess{preset: "state_machine", confidence: Unsure, doubt: "map its states"}},
		"an outbox": {table("order_outbox", []ledger.ColumnFacts{column("message_id", "char"), column("payload", "json"), column("status", "varchar"), column("retry_count", "int"), column("created_at", "datetime")}, []string{"message_id"}),
			guess{preset: "outbox", confidence: Unsure, doubt: "sender side"}},
		"a name that tells nothing": {table("notices", []ledger.ColumnFacts{column("message_id", "varchar"), enum, column("created_at", "datetime")}, []string{"message_id"}),
			guess{preset: "message_deduplication", confidence: Unsure, doubt: "does not say", columns: map[string]string{"biz_type": "-", "completed": "-", "result": "-"}}},
		"pending for processing": {table("idempotent_record", recordColumns(ledger.ColumnFacts{Name: "status", Kind: "enum", Words: []string{"pending", "success", "fail", "odd"}}), []string{"biz_type", "biz_id"}),
			guess{preset: "idempotent_record", confidence: Sure, doubt: "taken for processing"}},
	} {
		t.Run(name, func(t *testing.T) {
			l, reason := Recognise(alone(c.facts.Name), c.facts)
			if l == nil {
				t.Fatalf("left out: %s", reason.EN)
			}
			spec(t, l)
			if l.Preset != c.want.preset || l.Confidence != c.want.confidence {
				t.Errorf("%s, confidence %d, %v", l.Preset, l.Confidence, l.Columns)
			}
			if c.want.columns != nil && fmt.Sprint(l.Columns) != fmt.Sprint(c.want.columns) {
				t.Errorf("columns %v, want %v", l.Columns, c.want.columns)
			}
			if said := doubtsOf(l); c.want.doubt == "" && said != "" || !strings.Contains(said, c.want.doubt) {
				t.Errorf("doubts %q, want %q", said, c.want.doubt)
			}
			if len(l.Why) == 0 || l.Why[0].ZH == "" {
				t.Error("no reason is given")
			}
		})
	}
}

func doubtsOf(l *Ledger) string {
	var all []string
	for _, d := range l.Doubts {
		all = append(all, d.EN)
	}
	return strings.Join(all, "; ")
}

func TestAMissingUniqueKeyIsADoubtAndNoReasonToLookAway(t *testing.T) {
	facts := table("coupon_record", recordColumns(commented("status", "tinyint", "1 processing, 2 completed")))
	facts.Keys = append(facts.Keys, ledger.KeyFacts{Name: "idx_biz", Columns: []string{"biz_type", "biz_id"}})
	l, reason := Recognise(alone("coupon_record"), facts)
	if l == nil {
		t.Fatal(reason.EN)
	}
	if l.Confidence != Likely || !strings.Contains(doubtsOf(l), "no unique key stops") {
		t.Errorf("confidence %d, doubts %q", l.Confidence, doubtsOf(l))
	}
}

func TestTablesThatAreNoLedgersAreLeftOutWithAReason(t *testing.T) {
	status := column("status", "tinyint")
	key := []string{"biz_type", "biz_id"}
	for name, c := range map[string]struct {
		facts ledger.TableFacts
		want  string
	}{
		"an archive":            {table("idempotent_record_archive", recordColumns(status), key), "archive"},
		"a copy of a day":       {table("idempotent_record_20250115", recordColumns(status), key), "date"},
		"no time":               {table("lab_effects", []ledger.ColumnFacts{column("biz_type", "varbinary"), column("biz_id", "varbinary"), column("effects", "int")}, key), "when a row was made"},
		"no unique key":         {table("log", recordColumns(status)), "no unique key"},
		"no id":                 {table("users", []ledger.ColumnFacts{{Name: "id", Kind: "bigint", AutoIncrement: true}, column("email", "varchar"), column("created_at", "datetime")}, []string{"id"}, []string{"email"}), "no unique key that could"},
		"a join table":          {table("user_role", []ledger.ColumnFacts{column("user_id", "bigint"), column("role_id", "bigint"), column("created_at", "datetime")}, []string{"user_id", "role_id"}), "no unique key that could"},
		"a business log":        {table("payments", []ledger.ColumnFacts{column("order_no", "varchar"), column("created_at", "datetime")}, []string{"order_no"}), "without a status"},
		"nothing to see":        {ledger.TableFacts{Name: "secret"}, "could not be read"},
		"an unwritable name":    {table("a.b", recordColumns(status), key), "cannot name"},
		"braces":                {table("a{0..1}", recordColumns(status), key), "cannot name"},
		"a counter as the key":  {table("record", []ledger.ColumnFacts{{Name: "biz_id", Kind: "bigint", AutoIncrement: true}, column("created_at", "datetime")}, []string{"biz_id"}), "no unique key"},
		"prefix of the columns": {prefixed(), "no unique key that could"},
	} {
		t.Run(name, func(t *testing.T) {
			l, reason := Recognise(alone(c.facts.Name), c.facts)
			if l != nil {
				t.Fatalf("recognised as %s", l.Preset)
			}
			if !strings.Contains(reason.EN, c.want) || reason.ZH == "" {
				t.Errorf("%q, want %q", reason.EN, c.want)
			}
		})
	}
}

func prefixed() ledger.TableFacts {
	facts := table("sign_record", []ledger.ColumnFacts{column("user", "varchar"), column("day", "date"), column("created_at", "datetime")}, []string{"user", "day"})
	facts.Keys[0].Prefix = true
	return facts
}

func TestLegendsInCommentsAreRead(t *testing.T) {
	for comment, want := range map[string]string{
		"1 processing, 2 completed, 3 failed":    "processing=1 completed=2 failed=3",
		"1:processing 2:completed 3:failed":      "processing=1 completed=2 failed=3",
		"状态：0-处理中；1-成功；2-失败":                     "processing=0 completed=1 failed=2",
		"0=待处理,1=处理中,2=已完成,3=失败":                 "not_started=0 processing=1 completed=2 failed=3",
		"处理中:1,已完成:2,失败:3":                       "processing=1 completed=2 failed=3",
		"processing(1), success(2)":              "processing=1 completed=2",
		"(1)处理中 (2)处理完成":                         "processing=1 completed=2",
		"10 处理中 20 成功 30 已关闭":                    "processing=10 completed=20",
		"0 待处理 1 成功 2 失败":                        "processing=0 completed=1 failed=2",
		"processing(1) success(2) failed(3)":     "processing=1 completed=2 failed=3",
		"1 processing 2 completed 3 failed":      "processing=1 completed=2 failed=3",
		"1 completed 1 failed 2 processing":      "",
		"record status":                          "",
		"see the wiki, page 1 and 2":             "",
		"1 processing":                           "",
		"\xff\xfe 1 processing \x00 2 completed": "processing=1 completed=2",
	} {
		s := byLegend(comment)
		var got []string
		for _, p := range phases {
			if len(s.words[p]) > 0 && s.enough() {
				got = append(got, fmt.Sprintf("%s=%s", p, strings.Join(s.words[p], ",")))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
}

func TestStatusWordsThatNobodyExplainsAreComparedWithTheRows(t *testing.T) {
	for name, c := range map[string]struct {
		status ledger.ColumnFacts
		stored []string
		want   Confidence
		phase  map[string]flow.Phase
		doubt  string
	}{
		"the preset's numbers": {column("status", "tinyint"), []string{"1", "2"}, Likely, map[string]flow.Phase{"1": flow.Processing, "3": flow.Failed}, "fit what is usual"},
		"no rows":              {column("status", "tinyint"), nil, Likely, map[string]flow.Phase{"2": flow.Completed}, "no row was read"},
		"other numbers":        {column("status", "tinyint"), []string{"0", "1", "2"}, Unsure, nil, "fill status in"},
		"the usual words":      {column("status", "varchar"), []string{"processing", "completed"}, Likely, map[string]flow.Phase{"failed": flow.Failed}, "fit what is usual"},
		"other words":          {column("status", "varchar"), []string{"DOING", "SUCCESS"}, Likely, map[string]flow.Phase{"DOING": flow.Processing, "SUCCESS": flow.Completed, "failed": flow.Failed}, ""},
		"strange words":        {column("status", "varchar"), []string{"alpha", "completed"}, Unsure, nil, "fill status in"},
		"explained, and one more": {commented("status", "tinyint", "1 processing 2 completed"), []string{"1", "2", "9"}, Sure,
			map[string]flow.Phase{"2": flow.Completed, "9": flow.Unmapped}, "(9)"},
	} {
		t.Run(name, func(t *testing.T) {
			l, reason := Recognise(alone("idempotent_record"), table("idempotent_record", recordColumns(c.status), []string{"biz_type", "biz_id"}))
			if l == nil {
				t.Fatal(reason.EN)
			}
			stored := map[string]int{}
			for _, w := range c.stored {
				stored[w]++
			}
			l.Learn(stored)
			m := spec(t, l)
			if l.Confidence != c.want || !strings.Contains(doubtsOf(l), c.doubt) {
				t.Errorf("confidence %d, doubts %q", l.Confidence, doubtsOf(l))
			}
			for word, phase := range c.phase {
				if got := m.PhaseOf(word); got != phase {
					t.Errorf("%q means %s, want %s", word, got, phase)
				}
			}
		})
	}
}
