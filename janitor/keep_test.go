package janitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// one is a row with what is to become of it.
type one struct {
	status       string // SQL
	created, upd string // SQL
	goes         bool
	kind         ledger.Kind // why it stays
}

const (
	old    = "UTC_TIMESTAMP() - INTERVAL 30 DAY"
	young  = "UTC_TIMESTAMP() - INTERVAL 1 DAY"
	future = "UTC_TIMESTAMP() + INTERVAL 1 DAY"
)

var every = []one{
	{"2", old, old, true, ""},
	{"2", old, young, false, ledger.TooYoung},
	{"1", old, old, false, ledger.InProcessing},
	{"3", old, old, false, ledger.HasFailed},
	{"9", old, old, false, ledger.NoMeaning},
	{"-2", old, old, false, ledger.NoMeaning},
	{"2", old, future, false, ledger.InFuture},
	{"2", future, old, false, ledger.InFuture},
	{"2", old, "NULL", false, ledger.Unreadable},
	{"2", old, "'0000-00-00 00:00:00'", false, ledger.Unreadable},
	{"2", old, "'2024-02-31 00:00:00'", false, ledger.Unreadable},
	{"2", old, "'2024-02-00 00:00:00'", false, ledger.Unreadable},
	{"2", "'0000-00-00 00:00:00'", old, false, ledger.Unreadable},
	{"2", young, old, false, ledger.TooYoung},
	{"1", old, "NULL", false, ledger.InProcessing},
	{"2", old, "UTC_TIMESTAMP() - INTERVAL 7 DAY + INTERVAL 1 HOUR", false, ledger.TooYoung},
	{"2", old, "UTC_TIMESTAMP() - INTERVAL 7 DAY - INTERVAL 1 SECOND", true, ""},
}

// everyKind fills a table with every kind of row, several of each, and returns how many of each there are.
func everyKind(t *testing.T, db *testkit.Database) (goes int64, stay ledger.Tally) {
	t.Helper()
	db.Exec(t, record)
	db.Exec(t, "SET sql_mode = 'ALLOW_INVALID_DATES'")
	stay = ledger.Tally{}
	for i := range 20 {
		for n, row := range every {
			db.Exec(t, fmt.Sprintf("INSERT INTO idempotent_record (biz_id, biz_type, status, create_time, update_time) VALUES ('%d-%d', 'a', %s, %s, %s)", i, n, row.status, row.created, row.upd))
			if row.goes {
				goes++
			} else {
				stay[row.kind]++
			}
		}
	}
	return goes, stay
}

func TestOnlyOldCompletedRowsGoAndAllOthersStayAsTheyAre(t *testing.T) {
	for _, way := range []string{"delete", "table", "files"} {
		t.Run(way, func(t *testing.T) {
			db := testkit.MySQL(t)
			goes, stay := everyKind(t, db)
			// The row with the highest id is old and completed, and stays.
			newest := "biz_id = 'newest'"
			db.Exec(t, "INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time) VALUES (5000, 'newest', 'a', 2, "+old+", "+old+")")
			p := recordsIn(db)
			switch way {
			case "table":
				p.archive = "idempotent_record_archive"
				db.Exec(t, recordArchive)
				db.Exec(t, plainArchive)
			case "files":
				p.files = t.TempDir()
			}
			j := hire(t, p.task(t))
			before := rowsOf(t, db.DB, "idempotent_record", "1 = 1")
			plan, err := j.Plan(soon(t), "orders", true)
			if err != nil || plan.Exit() != 0 {
				t.Fatalf("%v %+v", err, plan)
			}
			got := plan.Tables[0]
			if got.Candidates != goes || got.Newest != 1 || got.Later != 0 {
				t.Errorf("plan: %d go, %d newest, %d later; want %d, 1, 0", got.Candidates, got.Newest, got.Later, goes)
			}
			for _, kind := range ledger.Kinds {
				if got.Stay[kind] != stay[kind] {
					t.Errorf("plan: %s %d, want %d", kind, got.Stay[kind], stay[kind])
				}
			}
			r := sweepNow(t, j, Done)
			after := rowsOf(t, db.DB, "idempotent_record", "1 = 1")
			if r.Gone() != goes || len(before)-len(after) != int(goes) {
				t.Errorf("%d rows gone, %d fewer, want %d", r.Gone(), len(before)-len(after), goes)
			}
			for _, kind := range ledger.Kinds {
				if kind != ledger.Candidate && r.Tables[0].Stayed[string(kind)] != stay[kind] {
					t.Errorf("report: %s %d, want %d", kind, r.Tables[0].Stayed[string(kind)], stay[kind])
				}
			}
			for id, row := range after {
				if before[id] != row {
					t.Errorf("row %s was %s, is %s", id, before[id], row)
				}
			}
			if n := count(t, db.DB, "SELECT COUNT(*) FROM idempotent_record WHERE "+newest); n != 1 {
				t.Error("the row with the highest id is gone")
			}
			if way == "delete" {
				return
			}
			kept := p.archived(t, db)
			for id, row := range before {
				_, stays := after[id]
				if stays == (kept[id] != "") || !stays && kept[id] != row {
					t.Errorf("row %s %s is archived as %q, and stays: %t", id, row, kept[id], stays)
				}
			}
		})
	}
}

func TestTheCutoffIsExactToTheSecond(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64), biz_type VARCHAR(64), status INT, create_time DATETIME(6), update_time TIMESTAMP(6) NULL)")
	j := hire(t, recordsIn(db).task(t))
	db.Exec(t, "INSERT INTO idempotent_record VALUES (99, 'newest', 'a', 1, UTC_TIMESTAMP(), NULL)")
	task := &j.tasks[0]
	for range 5 {
		plan := j.plan(soon(t), task, false)
		cutoff := plan.Cutoff
		for i, d := range []time.Duration{-time.Second, -time.Microsecond, 0, time.Microsecond, time.Second} {
			text := cutoff.Add(d).Format("2006-01-02 15:04:05.999999")
			db.Exec(t, "REPLACE INTO idempotent_record VALUES (?, ?, 'a', 2, ?, ?)", i+1, fmt.Sprint(i), text, text)
		}
		tally, err := countAll(soon(t), task.Tables[0], ledger.Range{To: 98}, cutoff)
		if err != nil || tally[ledger.Candidate] != 2 || tally[ledger.TooYoung] != 3 {
			t.Fatalf("%v %v", tally, err)
		}
		session, err := task.Open(soon(t), task.Tables[0])
		if err != nil {
			t.Fatal(err)
		}
		b, err := session.Next(soon(t), ledger.Range{To: 98}, 100, cutoff)
		if err == nil {
			b, err = session.Sweep(soon(t), b, cutoff)
		}
		session.Close()
		if err != nil || b.Gone != 2 {
			t.Fatalf("%+v %v", b, err)
		}
		wantIDs(t, "left", ids(t, db.DB, "idempotent_record"), 3, 4, 5, 99)
		db.Exec(t, "DELETE FROM idempotent_record WHERE id < 99")
	}
}

func TestEveryPresetThatMayBeCleanedIsCleaned(t *testing.T) {
	for name, c := range map[string]struct {
		table, insert string
		spec          ledger.MappingSpec
		left          []uint64
	}{
		"message_deduplication": {
			`CREATE TABLE x (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64), message_type VARCHAR(64),
				status ENUM('processing','completed','failed') NOT NULL, created_at TIMESTAMP NULL, completed_at TIMESTAMP NULL, KEY (status))`,
			`INSERT INTO x VALUES (1, 'a', 't', 'completed', {old}, {old}), (2, 'b', 't', 'completed', {old}, NULL), (3, 'c', 't', 'failed', {old}, {old}),
				(4, 'd', 't', 'completed', {old}, {young}), (5, 'e', 't', 'completed', {old}, {old}), (6, 'f', 't', 'processing', {young}, NULL)`,
			ledger.MappingSpec{}, []uint64{2, 3, 4, 6},
		},
		"message_idempotence": { // words are compared byte by byte
			`CREATE TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64), message_type VARCHAR(64),
				status VARCHAR(20) CHARACTER SET latin1, created_at DATETIME, completed_at DATETIME)`,
			`INSERT INTO x VALUES (1, 'a', 't', 'completed', {old}, {old}), (2, 'b', 't', 'COMPLETED', {old}, {old}), (3, 'c', 't', 'completed ', {old}, {old}),
				(4, 'd', 't', NULL, {old}, {old}), (5, 'e', 't', '', {old}, {old}), (6, 'f', 't', 'processing', {young}, NULL)`,
			ledger.MappingSpec{}, []uint64{2, 3, 4, 5, 6},
		},
		"composite": { // presence means completed; only a day is known
			`CREATE TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, user_id INT, sign_date DATE, created_at DATE)`,
			`INSERT INTO x VALUES (1, 1, {old}, {old}), (2, 1, {young}, {young}), (3, 2, {old}, UTC_DATE() - INTERVAL 7 DAY), (4, 3, {old}, UTC_DATE() - INTERVAL 8 DAY), (9, 2, {young}, {young})`,
			ledger.MappingSpec{BizType: "sign", BizID: "{user_id}:{sign_date}"}, []uint64{2, 3, 9},
		},
		"consume_log": { // times are integers: seconds, milliseconds, microseconds
			`CREATE TABLE x (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64), handle_time BIGINT)`,
			`INSERT INTO x VALUES (1, 'a', UNIX_TIMESTAMP() - 2592000), (2, 'b', (UNIX_TIMESTAMP() - 2592000) * 1000), (3, 'c', (UNIX_TIMESTAMP() - 2592000) * 1000000),
				(4, 'd', UNIX_TIMESTAMP()), (5, 'e', UNIX_TIMESTAMP() * 1000), (6, 'f', UNIX_TIMESTAMP() * 1000000), (7, 'g', 0), (8, 'h', NULL), (9, 'i', -5), (10, 'j', UNIX_TIMESTAMP())`,
			ledger.MappingSpec{BizType: "x"}, []uint64{4, 5, 6, 7, 8, 9, 10},
		},
		"message_processed": { // the status is a bit field
			`CREATE TABLE x (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64), biz_type VARCHAR(64), status BIT(4), processed_at DATETIME(3))`,
			`INSERT INTO x VALUES (1, 'a', 't', 2, {old}), (2, 'b', 't', 1, {old}), (3, 'c', 't', 2, {old}), (4, 'd', 't', 2, {young}), (5, 'e', 't', 2, {young})`,
			ledger.MappingSpec{Status: map[string][]string{"completed": {"2"}, "processing": {"1"}}}, []uint64{2, 4, 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := testkit.MySQL(t)
			db.Exec(t, c.table)
			db.Exec(t, replaceTimes(c.insert))
			p := place{addr: db.Addr, database: db.Name, table: "x", preset: name, spec: c.spec}
			j := hire(t, p.task(t))
			plan, err := j.Plan(soon(t), "orders", true)
			if err != nil || plan.Exit() != 0 {
				t.Fatalf("%v %+v", err, plan)
			}
			r := sweepNow(t, j, Done)
			wantIDs(t, "left", ids(t, db.DB, "x"), c.left...)
			if r.Gone() != plan.Tables[0].Candidates {
				t.Errorf("planned %d, gone %d", plan.Tables[0].Candidates, r.Gone())
			}
		})
	}
}

func TestStateMachinesAndOutboxesAreNeverCleaned(t *testing.T) {
	for _, preset := range []string{"state_machine", "outbox"} {
		_, _, err := place{addr: "127.0.0.1:1", database: "x", table: "orders", preset: preset, spec: ledger.MappingSpec{BizType: "t"}}.open()
		if err != ledger.ErrNeverCleaned {
			t.Errorf("%s: %v", preset, err)
		}
	}
}

func TestLocalTimesAroundAChangeOfTheClocksStayUntilEveryReadingIsOldEnough(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	db := testkit.MySQL(t)
	db.Exec(t, record)
	p := recordsIn(db)
	p.zone = zone
	table := p.task(t).Tables[0]
	// On 3 November 2024 at 06:00 UTC, 02:00 became 01:00: 01:30 happened at 05:30 and at 06:30 UTC.
	db.Exec(t, "INSERT INTO idempotent_record VALUES (1, 'a', 'a', 2, '2024-11-01', '2024-11-03 01:30:00'), (2, 'b', 'a', 1, '2024-11-05', NULL)")
	at := func(text string) int64 {
		t.Helper()
		cutoff, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		tally, err := countAll(soon(t), table, ledger.Range{To: 1}, cutoff)
		if err != nil {
			t.Fatal(err)
		}
		return tally[ledger.Candidate]
	}
	for text, want := range map[string]int64{
		"2024-11-03 05:29:59": 0, "2024-11-03 05:30:01": 0, "2024-11-03 06:30:00": 0, "2024-11-03 06:30:01": 1, "2024-11-09 00:00:00": 1,
	} {
		if got := at(text); got != want {
			t.Errorf("01:30 with the cutoff %s UTC: candidates %d, want %d", text, got, want)
		}
	}
	// On 10 March 2024 at 07:00 UTC, 02:00 became 03:00: no clock showed 02:30.
	db.Exec(t, "UPDATE idempotent_record SET create_time = '2024-03-01', update_time = '2024-03-10 02:30:00' WHERE id = 1")
	for text, want := range map[string]int64{"2024-03-10 06:31:00": 0, "2024-03-10 07:30:00": 0, "2024-03-10 07:30:01": 1} {
		if got := at(text); got != want {
			t.Errorf("02:30 with the cutoff %s UTC: candidates %d, want %d", text, got, want)
		}
	}
}

func TestShardsAreCleanedInTurn(t *testing.T) {
	db := testkit.MySQL(t)
	for i := range 3 {
		db.Exec(t, record)
		fill(t, db, 300, 2, 30)
		fill(t, db, 5, 2, 1)
		db.Exec(t, fmt.Sprintf("RENAME TABLE idempotent_record TO idempotent_record_%02d", i))
	}
	p := recordsIn(db)
	p.table = "idempotent_record_{00..02}"
	r := sweepNow(t, hire(t, p.task(t)), Done)
	if r.Gone() != 900 || len(r.Tables) != 3 || r.Tables[1].Gone != 300 {
		t.Errorf("%d rows of %d tables", r.Gone(), len(r.Tables))
	}
	if _, _, err := (place{addr: db.Addr, database: db.Name, table: p.table, preset: p.preset, archive: "archive"}).open(); err == nil {
		t.Error("one archive for three shards was accepted")
	}
}

func replaceTimes(text string) string {
	return strings.NewReplacer("{old}", old, "{young}", young).Replace(text)
}

func TestAPlanWithNothingToDoSaysSo(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, record)
	fill(t, db, 50, 2, 1)
	j := hire(t, recordsIn(db).task(t))
	plan, err := j.Plan(soon(t), j.Tasks()[0], false)
	var text strings.Builder
	if err != nil || plan.WriteText(&text, flow.English, time.UTC) != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "nothing to do") || strings.Contains(text.String(), "DELETE") {
		t.Errorf("the plan says:\n%s", &text)
	}
}
