package janitor

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
)

// result is the answer of a plan to a check, of its first table.
func result(p Plan, code string) (Result, flow.Text) {
	for _, c := range p.Checks {
		if c.Code == code {
			return c.Result, c.Text
		}
	}
	return "", flow.Text{}
}

// wantCheck checks an answer and its words.
func wantCheck(t *testing.T, p Plan, code string, want Result, says string) {
	t.Helper()
	got, text := result(p, code)
	if got != want || !strings.Contains(text.EN, says) || text.ZH == "" {
		t.Errorf("%s: %s, want %s with %q: %s", code, got, want, says, text.EN)
	}
	if refused := strings.Contains(" "+strings.Join(codes(p), " ")+" ", " "+code+" "); refused != (want == Refuses) {
		t.Errorf("%s is %s, refusals are %q", code, want, codes(p))
	}
}

func planNow(t *testing.T, j *Janitor) Plan {
	t.Helper()
	p, err := j.Plan(soon(t), j.Tasks()[0], false)
	if err != nil || !p.Unread.Empty() {
		t.Fatalf("%v %s", err, p.Unread.EN)
	}
	return p
}

func TestAPlanListsEveryCheckInBothLanguages(t *testing.T) {
	_, p := ready(t, true, 10)
	plan := planNow(t, hire(t, p.task(t)))
	for _, code := range []string{"act_missing", "retention", "read_only", "replica", "clock_skew", "unsafe_binlog", "table"} {
		wantCheck(t, plan, code, Passes, "")
	}
	wantCheck(t, plan, "dead_letters", Off, "no flow")
	wantCheck(t, plan, "implausible", Off, "max_growth: 0")
	wantCheck(t, plan, "schema_changed", Off, plan.Tables[0].Schema)
	for lang, want := range map[flow.Language]string{flow.English: "ok [read_only] the server takes writes", flow.Chinese: "通过 [read_only] 服务器可写"} {
		var b bytes.Buffer
		if err := plan.WriteText(&b, lang, time.UTC); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v\n%s", err, b.String())
		}
		if got := plan.JSON(lang).Checks; len(got) != len(plan.Checks) || got[0].Code != "act_missing" || got[0].Result != Passes || got[0].Text == "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestAnotherTableThanTheExpectedIsRefused(t *testing.T) {
	db, p := ready(t, false, 10)
	task := p.task(t)
	hash := planNow(t, hire(t, task)).Tables[0].Schema
	if len(hash) != 32 {
		t.Fatalf("hash %q", hash)
	}
	task.ExpectSchema = hash
	db.Exec(t, "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time) VALUES ('x', 'y', 1, UTC_TIMESTAMP())")
	db.Exec(t, "ALTER TABLE idempotent_record COMMENT 'rows and comments are not its shape'")
	wantCheck(t, planNow(t, hire(t, task)), "schema_changed", Passes, hash)
	for _, change := range []string{
		"ADD COLUMN note INT", "DROP COLUMN note, MODIFY biz_id VARCHAR(127) NOT NULL", "MODIFY biz_id VARCHAR(128) NULL", "MODIFY biz_id VARCHAR(128) NOT NULL, ADD INDEX late (update_time)",
		"DROP INDEX late, DROP INDEX uk_biz, ADD UNIQUE uk_biz (biz_id, biz_type)", "DROP INDEX uk_biz, ADD INDEX uk_biz (biz_type, biz_id)", "DROP INDEX uk_biz, ADD UNIQUE uk_biz (biz_type, biz_id(9))",
	} {
		db.Exec(t, "ALTER TABLE idempotent_record "+change)
		r := sweepNow(t, hire(t, task), Refused)
		is := r.Plan.Tables[0].Schema
		wantCheck(t, r.Plan, "schema_changed", Refuses, "its hash is "+is+", expected is "+hash)
		if is == hash || r.Exit() != 4 || r.Gone() != 0 {
			t.Errorf("%s: hash %s, exit %d", change, is, r.Exit())
		}
	}
	db.Exec(t, "ALTER TABLE idempotent_record DROP INDEX uk_biz, ADD UNIQUE uk_biz (biz_type, biz_id)")
	if r := sweepNow(t, hire(t, task), Done); r.Gone() != 10 {
		t.Errorf("%d rows", r.Gone())
	}
}

func TestShardsOfOneShapeHaveOneHash(t *testing.T) {
	db, p := ready(t, false, 10)
	db.Exec(t, "CREATE TABLE record_0 LIKE idempotent_record")
	db.Exec(t, "CREATE TABLE record_1 LIKE idempotent_record")
	single := planNow(t, hire(t, p.task(t))).Tables[0].Schema
	p.table = "record_{0..1}"
	plan := planNow(t, hire(t, p.task(t)))
	if plan.Tables[0].Schema != single || plan.Tables[1].Schema != single {
		t.Errorf("%s: %s and %s", single, plan.Tables[0].Schema, plan.Tables[1].Schema)
	}
}

func TestARunThatIsImplausiblyLargeIsRefusedUnlessAccepted(t *testing.T) {
	const many = growthFrom + 20_000
	db, p := ready(t, false, 200)
	task := p.task(t)
	task.MaxGrowth = 10
	history := filepath.Join(t.TempDir(), "runs")
	hired := func(accept bool) *Janitor {
		j := hire(t, task)
		j.history, j.acceptSize = NewHistory(history), accept
		return j
	}
	wantCheck(t, planNow(t, hired(false)), "implausible", NotKnown, "no run")
	sweepNow(t, hired(false), Done)
	fill(t, db, many, 2, 30)
	fill(t, db, 1, 2, 1)
	r := sweepNow(t, hired(false), Refused)
	wantCheck(t, r.Plan, "implausible", Refuses, "more than 10 times the 200 of the largest of the last 1 runs")
	if r.Exit() != 4 || r.Gone() != 0 || !strings.Contains(r.Why.EN, "janitor run --task orders --execute --accept-size") {
		t.Errorf("exit %d, %d rows: %s", r.Exit(), r.Gone(), r.Why.EN)
	}
	task.MaxGrowth = 0
	wantCheck(t, planNow(t, hired(false)), "implausible", Off, "")
	task.MaxGrowth = 10
	wantCheck(t, planNow(t, hired(true)), "implausible", Allowed, "--accept-size")
	if r := sweepNow(t, hired(true), Done); r.Gone() < many {
		t.Errorf("%d rows", r.Gone())
	}
	fill(t, db, many, 2, 30)
	wantCheck(t, planNow(t, hired(false)), "implausible", Passes, "the last 2 runs")
}

func TestOnlyFinishedRunsOfTheTableTellHowLargeOneIs(t *testing.T) {
	entry := func(rows int64, end Ended, table string) Entry {
		return Entry{Task: "a", Table: table, Rows: rows, End: end}
	}
	past := []Entry{entry(5, Done, "t"), entry(900, Failed, "t"), entry(900, Throttled, "t"), entry(900, Done, "u"), entry(0, Done, "t"), {Task: "b", Table: "t", Rows: 900, End: Done}, entry(7, OutOfTime, "t")}
	if largest, runs := largestOf(past, "a", "t"); largest != 7 || runs != 2 {
		t.Errorf("%d of %d runs", largest, runs)
	}
	waits := entry(4, WindowClosed, "t")
	waits.Planned = 50
	if largest, _ := largestOf(append(past, waits), "a", "t"); largest != 50 {
		t.Errorf("%d: what a window was too short for does not count", largest)
	}
	for range growthRuns {
		past = append([]Entry{entry(3, Done, "t")}, past...)
	}
	if largest, runs := largestOf(past, "a", "t"); largest != 3 || runs != growthRuns {
		t.Errorf("%d of %d runs", largest, runs)
	}
}
