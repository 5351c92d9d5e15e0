package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// neighboursOf looks a key up and lists its neighbours as "kind type id".
func neighboursOf(t testing.TB, l *Ledger, bizType, bizID string) []string {
	t.Helper()
	f := l.Find(soon(t), flow.Key{BizType: bizType, BizID: bizID})
	if f.State == flow.Error {
		t.Fatalf("%q: %s", bizID, f.Reason.EN)
	}
	var list []string
	for _, n := range f.Neighbours {
		list = append(list, fmt.Sprintf("%s %s %q", n.Kind, n.BizType, n.BizID))
		if n.Exact || n.Table == "" || n.Phase == "" {
			t.Errorf("%q: %+v", bizID, n)
		}
	}
	return list
}

func binaryRecords(t testing.TB) (*testkit.Database, *Ledger) {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, strings.ReplaceAll(idempotentRecord, ") NOT NULL,", ") CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,"))
	return db, openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
}

func TestNeighboursOfAKey(t *testing.T) {
	db, l := binaryRecords(t)
	for _, k := range []flow.Key{
		{BizType: "order", BizID: "A-1"}, {BizType: "refund", BizID: "A-1"}, {BizType: "ship", BizID: "A-1"}, {BizType: "order", BizID: "B-1:v2"}, {BizType: "order", BizID: "B-1"},
		{BizType: "order", BizID: "B-1:v3"}, {BizType: "refund", BizID: "B-1:v1"}, {BizType: "order", BizID: "caf\u00e9"}, {BizType: "order", BizID: "123"}, {BizType: "order", BizID: "trailing "},
		{BizType: "order", BizID: "line\n"}, {BizType: "order", BizID: "UPPER"}, {BizType: "order", BizID: "订单１"}, {BizType: "order", BizID: "0123"},
	} {
		insertRecord(t, db, k.BizType, k.BizID, 2)
	}
	for _, c := range []struct {
		id   string
		want []string
	}{
		{"A-1", []string{`other_type refund "A-1"`, `other_type ship "A-1"`}},
		{"B-1:v1", []string{`other_type refund "B-1:v1"`, `other_version order "B-1:v3"`, `other_version order "B-1:v2"`, `other_version order "B-1"`}},
		{"B-1", []string{`other_version order "B-1:v3"`, `other_version order "B-1:v2"`}},
		{"cafe\u0301", []string{"other_spelling order \"caf\u00e9\""}},
		{"caf\u00e9", nil},
		{" 123", []string{`other_spelling order "123"`}},
		{"１２３", []string{`other_spelling order "123"`}},
		{"trailing", []string{`other_spelling order "trailing "`}},
		{"line", []string{`other_spelling order "line\n"`}},
		{"upper", []string{`other_spelling order "UPPER"`}},
		{"订单1", []string{`other_spelling order "订单１"`}},
		{"00123", nil},
		{"nothing like it", nil},
	} {
		if got := neighboursOf(t, l, "order", c.id); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.id, got, c.want)
		}
	}
}

// What MySQL takes for equal is a row of the key, not a neighbour.
func TestNearMissesAreNoNeighbours(t *testing.T) {
	db, l := records(t) // folds case and padding
	insertRecord(t, db, "order", "ORD-9A", 2)
	insertRecord(t, db, "order", "ORD-9A:V2", 2)
	insertRecord(t, db, "order", " ORD-9A", 2)
	f := l.Find(soon(t), flow.Key{BizType: "order", BizID: "ord-9a"})
	if len(f.Rows) != 1 || f.Rows[0].Exact {
		t.Errorf("rows %+v", f.Rows)
	}
	want := []string{`other_spelling order " ORD-9A"`, `other_version order "ORD-9A:V2"`}
	if got := neighboursOf(t, l, "order", "ord-9a"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOtherTypesThroughAnIndexThatBeginsWithTheID(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, messageDeduplication)
	l := openLedger(t, openServer(t, db), "message_deduplication", "message_deduplication", MappingSpec{})
	for _, bizType := range []string{"a", "b", "c"} {
		db.Exec(t, "INSERT INTO message_deduplication (message_id, message_type) VALUES ('m1', ?)", bizType)
	}
	f := l.Find(soon(t), flow.Key{BizType: "a", BizID: "m1"})
	if len(f.Neighbours) != 2 || f.Neighbours[0].BizType != "b" || f.Neighbours[0].Kind != OtherType || f.Neighbours[0].Phase != flow.Processing || len(f.Coverage) != 0 {
		t.Errorf("%+v %v", f.Neighbours, f.Coverage)
	}
}

func TestMoreTypesThanAreAskedAreSaid(t *testing.T) {
	db, l := records(t)
	for i := range maxNearTypes + 5 {
		insertRecord(t, db, fmt.Sprintf("type-%03d", i), "a", 2)
	}
	f := l.Find(soon(t), flow.Key{BizType: "type-000", BizID: "a"})
	if len(f.Neighbours) != maxNeighbours || f.Neighbours[0].BizType != "type-001" || len(f.Coverage) != 1 || !strings.Contains(f.Coverage[0].EN, "100 other biz_types only") {
		t.Errorf("%d neighbours, %v", len(f.Neighbours), f.Coverage)
	}
}

// A new type is noticed when the list of types has become old.
func TestTheListOfTypesIsReadAgain(t *testing.T) {
	db, l := records(t)
	insertRecord(t, db, "order", "a", 2)
	if got := neighboursOf(t, l, "order", "a"); got != nil {
		t.Errorf("%q", got)
	}
	insertRecord(t, db, "refund", "a", 2)
	if got := neighboursOf(t, l, "order", "a"); got != nil {
		t.Errorf("the list of types is read with every look-up: %q", got)
	}
	l.known.at = time.Now().Add(-freshTypes)
	if got := neighboursOf(t, l, "order", "a"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Neighbours are extra: what they cannot be asked for never spoils the answer.
func TestNeighboursOfEveryCharacterSet(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	for _, charset := range []string{"utf8mb4", "utf8mb3", "ucs2", "utf16", "latin1", "gbk", "ascii", "binary"} {
		table := "t_" + charset
		db.Exec(t, fmt.Sprintf("CREATE TABLE %s (biz_type VARCHAR(16) NOT NULL, biz_id VARCHAR(32) CHARACTER SET %s NOT NULL, handle_time DATETIME, PRIMARY KEY (biz_type, biz_id))", table, charset))
		l := openLedger(t, s, table, "consume_log", MappingSpec{Columns: map[string]string{"biz_type": "biz_type"}})
		db.Exec(t, "INSERT INTO "+table+" VALUES ('t', 'id-12', NOW()), ('u', 'id-12', NOW()), ('t', 'id-12:v1', NOW())")
		want := []string{`other_type u "id-12"`, `other_version t "id-12:v1"`}
		if got := neighboursOf(t, l, "t", "id-12"); !slices.Equal(got, want) {
			t.Errorf("%s: %q", charset, got)
		}
		for _, id := range []string{"id-12\t", "é12", "中12", "😀12", "bad\xff", strings.Repeat("9", 33), strings.Repeat("9", 2000)} {
			f := l.Find(soon(t), flow.Key{BizType: "t", BizID: id})
			if slices.ContainsFunc(f.Coverage, func(c flow.Text) bool { return strings.Contains(c.EN, "not looked for: ") }) {
				t.Errorf("%s %q: %v", charset, id, f.Coverage)
			}
		}
	}
}

func TestIDsThatAreNoTextHaveNoSpellings(t *testing.T) {
	db := testkit.MySQL(t)
	s := openServer(t, db)
	db.Exec(t, "CREATE TABLE numbers (biz_id BIGINT PRIMARY KEY, handle_time DATETIME)")
	db.Exec(t, "INSERT INTO numbers VALUES (7, NOW())")
	db.Exec(t, userSign)
	db.Exec(t, "INSERT INTO user_sign_record (user_id, sign_date, created_at) VALUES (7, '2025-01-15', NOW())")
	for _, l := range []*Ledger{
		openLedger(t, s, "numbers", "consume_log", MappingSpec{BizType: "t"}),
		openLedger(t, s, "user_sign_record", "composite", MappingSpec{BizType: "t", BizID: "{user_id}:{sign_date}"}),
	} {
		for _, id := range []string{"7", "7 ", "8", "7:2025-01-15", "7:2025-01-15 "} {
			f := l.Find(soon(t), flow.Key{BizType: "t", BizID: id})
			if len(f.Neighbours) > 0 || slices.ContainsFunc(f.Coverage, func(c flow.Text) bool { return strings.Contains(c.EN, "neighbours") }) {
				t.Errorf("%q: %+v %v", id, f.Neighbours, f.Coverage)
			}
		}
	}
}

func TestNeighboursInEveryShard(t *testing.T) {
	db := testkit.MySQL(t)
	for i := range 3 {
		db.Exec(t, strings.Replace(idempotentRecord, "idempotent_record", fmt.Sprint("rec_", i), 1))
		db.Exec(t, fmt.Sprintf("INSERT INTO rec_%d (biz_type, biz_id, status, create_time, update_time) VALUES ('order', 'a:v%d', 2, NOW(), NOW())", i, i))
	}
	l := openLedger(t, openServer(t, db), "rec_{0..2}", "idempotent_record", MappingSpec{})
	want := []string{`other_version order "a:v2"`, `other_version order "a:v1"`, `other_version order "a:v0"`}
	if got := neighboursOf(t, l, "order", "a"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	db.Exec(t, "DROP TABLE rec_1")
	f := l.Find(soon(t), flow.Key{BizType: "order", BizID: "a"})
	if len(f.Neighbours) != 2 || f.State != flow.Unknown {
		t.Errorf("%s %+v", f.State, f.Neighbours)
	}
}

// The neighbours hang, the record does not: the answer is there in time and whole.
func TestSlowNeighboursLeaveTheAnswerAlone(t *testing.T) {
	db, l := records(t)
	insertRecord(t, db, "order", "a", 2)
	one(t, l, "order", "a") // connects and reads the schema
	l.known.turn <- struct{}{}
	defer func() { <-l.known.turn }()
	start := time.Now()
	f := l.Find(within(t, 2*time.Second), flow.Key{BizType: "order", BizID: "a"})
	if f.State != flow.Found || len(f.Rows) != 1 || !f.Rows[0].Exact || time.Since(start) > 1900*time.Millisecond {
		t.Errorf("%s after %s", f.State, time.Since(start))
	}
	if len(f.Coverage) == 0 || !strings.Contains(f.Coverage[0].EN, "other biz_types was not looked for") || f.Coverage[0].ZH == "" {
		t.Errorf("%v", f.Coverage)
	}
}
