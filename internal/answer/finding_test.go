package answer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/verdict"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func judged(severity verdict.Severity) Answer {
	return Answer{Verdict: verdict.Verdict{Code: verdict.Stuck, Severity: severity}, Dossier: dossier.Dossier{
		At: noon, Flow: flow.Flow{Name: "payments"}, Key: key, Record: ledger.Found{Observation: flow.Observation{State: flow.Error}},
	}}
}

var key = flow.Key{BizType: "pay", BizID: "1"}

func TestWhichAnswersAreFindings(t *testing.T) {
	for severity, want := range map[verdict.Severity]bool{verdict.OK: false, verdict.Info: false, "": false, verdict.Warning: true, verdict.Critical: true, verdict.Unsure: true} {
		f, ok := judged(severity).Finding()
		if ok != want {
			t.Errorf("%s is a finding: %v", severity, ok)
		}
		if ok && (f.Place != flow.Place{Flow: "payments", Key: key} || f.AgeKnown || !f.Began.Equal(noon) || !f.Since.Equal(noon)) {
			t.Errorf("%+v", f)
		}
	}
}

// Messages that wait are no trace of a key: the finding leaves with its last trace.
func TestAKeyWithoutTraceIsNoFinding(t *testing.T) {
	a := judged(verdict.Warning)
	a.Record.State, a.Flow.Lock = flow.Absent, &flow.RedisKey{}
	a.Lock = &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Absent}}}
	if _, ok := a.Finding(); ok {
		t.Error("it is one")
	}
	a.Lock.State = flow.Found
	if _, ok := a.Finding(); !ok {
		t.Error("a lock is a trace")
	}
}

func TestWhenAFindingBegan(t *testing.T) {
	row := func(exact bool, age time.Duration, known bool) ledger.Row {
		return ledger.Row{Exact: exact, Age: age, AgeKnown: known}
	}
	redis := func(ttl time.Duration, noTTL bool) *dossier.RedisEvidence {
		return &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: flow.Observation{State: flow.Found, ReadAt: noon}, TTL: ttl, NoTTL: noTTL}}
	}
	for name, c := range map[string]struct {
		rows         []ledger.Row
		lock, marker *dossier.RedisEvidence
		renewed      bool
		want         time.Duration // negative: not known
	}{
		"nothing":                 {want: -1},
		"one row":                 {rows: []ledger.Row{row(true, time.Hour, true)}, lock: redis(time.Second, false), want: time.Hour},
		"the oldest row":          {rows: []ledger.Row{row(true, time.Hour, true), row(true, 2*time.Hour, true)}, want: 2 * time.Hour},
		"another id's row":        {rows: []ledger.Row{row(false, time.Hour, true)}, want: -1},
		"no age":                  {rows: []ledger.Row{row(true, time.Hour, false)}, want: -1},
		"an age in the future":    {rows: []ledger.Row{row(true, -time.Hour, true)}, want: -1},
		"lock":                    {lock: redis(10*time.Second, false), marker: redis(time.Hour, false), want: 5 * time.Second},
		"lock that is renewed":    {lock: redis(10*time.Second, false), renewed: true, want: -1},
		"lock without TTL":        {lock: redis(0, true), want: -1},
		"lock with too long TTL":  {lock: redis(time.Hour, false), want: -1},
		"marker alone":            {marker: redis(23*time.Hour, false), want: time.Hour},
		"marker, lock endless":    {lock: redis(0, true), marker: redis(23*time.Hour, false), want: time.Hour},
		"row in doubt and marker": {rows: []ledger.Row{row(true, -1, true)}, marker: redis(23*time.Hour, false), want: time.Hour},
	} {
		a := judged(verdict.Critical)
		a.Flow.Lock = &flow.RedisKey{TTL: 15 * time.Second, Renewed: c.renewed}
		a.Flow.Marker = &flow.RedisKey{TTL: 24 * time.Hour}
		a.Record.ReadAt, a.Record.Rows, a.Lock, a.Marker = noon, c.rows, c.lock, c.marker
		f, _ := a.Finding()
		if age, known := f.Age(noon); known != (c.want >= 0) || known && age != c.want {
			t.Errorf("%s: age %s, known %v", name, age, known)
		}
	}
}

// findings makes n of them, some of the same instant.
func manyFindings(n int) (list []Finding) {
	for i := range n {
		f, _ := judged([]verdict.Severity{verdict.Critical, verdict.Warning, verdict.Unsure}[i%3]).Finding()
		f.Key.BizID, f.Began = fmt.Sprint(i), noon.Add(time.Duration(i/20)*time.Minute)
		list = append(list, f)
	}
	return list
}

func TestPagesHoldEveryFindingOnce(t *testing.T) {
	list := manyFindings(300)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	SortFindings(list)
	var all []Finding
	for after, pages := "", 0; ; pages++ {
		page, next, err := Page(list, after, 7)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); next == "" {
			break
		}
		// The finding that the mark names may be gone by then.
		if after = next; pages%2 == 0 {
			list = slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return f.mark(ByWorst).String() == after })
		}
	}
	if len(all) != 300 {
		t.Errorf("%d findings on all pages", len(all))
	}
	for i := 1; i < len(all); i++ {
		if all[i-1].mark(ByWorst).compare(all[i].mark(ByWorst)) >= 0 {
			t.Fatalf("%+v stands before %+v", all[i-1], all[i])
		}
	}
	if first := all[0]; first.Severity != verdict.Critical || !first.Began.Equal(noon) {
		t.Errorf("the first is %+v", first)
	}
}

func TestMarksThatNobodyGave(t *testing.T) {
	list := manyFindings(3)
	SortFindings(list)
	for _, mark := range []string{"x", "1.2", "1.2.3.4", "0.1.zz", "a.1.1", "+0.1.1", "0.01.1", "0.1.0A", "0.1.A", " 0.1.1", "0.99999999999999999999.1"} {
		if _, _, err := Page(list, mark, 1); err != ErrMark {
			t.Errorf("%q: %v", mark, err)
		}
	}
	for mark, want := range map[string]int{"": 3, "-1.0.0": 3, "9.0.0": 0, list[0].mark(ByWorst).String(): 2, list[2].mark(ByWorst).String(): 0} {
		if page, next, err := Page(list, mark, 5); err != nil || len(page) != want || next != "" {
			t.Errorf("after %q: %d findings, next %q, %v", mark, len(page), next, err)
		}
	}
}

func TestKeysThatRunTogetherHaveMarksOfTheirOwn(t *testing.T) {
	a, b := manyFindings(1)[0], manyFindings(1)[0]
	a.Key, b.Key = flow.Key{BizType: "order", BizID: "1:2"}, flow.Key{BizType: "order1", BizID: ":2"}
	if a.mark(ByWorst) == b.mark(ByWorst) {
		t.Error("one mark for two keys")
	}
}
