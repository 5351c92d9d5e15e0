package exporter

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

// What happens to tables and servers must not count anything twice, lose
// anything, or pass for burned ids.

// With auto_increment_increment above 1 ids rise in steps: the ids between them
// were never given out.
func TestStepsOfIDsAreNotBurned(t *testing.T) {
	for _, step := range []int{2, 7} {
		b := recordBench(t)
		for _, q := range []string{"SET GLOBAL auto_increment_increment = %d", "SET SESSION auto_increment_increment = %d"} {
			b.Exec(t, fmt.Sprintf(q, step))
		}
		t.Cleanup(func() { b.Exec(t, "SET GLOBAL auto_increment_increment = 1") })
		b.insert("pay", completed, "a")
		b.good()
		b.insert("pay", completed, "b", "c", "d")
		b.refuse("pay", "a", "b")
		tx := b.begin()
		insert(t, tx, "pay", completed, "late")
		insert(t, b.begin(), "pay", completed, "rolled back")
		b.insert("pay", completed, "e")
		b.good().want(t, totals("pay", 4, 4, 0, 0))
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		b.good().want(t, totals("pay", 5, 5, 0, 0))
		b.passes(2 * holeGrace)
		s := b.good()
		s.want(t, samples{burned: 3})
		s.want(t, totals("pay", 5, 5, 0, 0))
		b.Exec(t, "SET GLOBAL auto_increment_increment = 1")
	}
}

// Two writers share the ids of steps of two. None is lost, whoever commits late.
func TestTwoWritersWithStepsLoseNothing(t *testing.T) {
	b := recordBench(t)
	b.Exec(t, "SET GLOBAL auto_increment_increment = 2")
	t.Cleanup(func() { b.Exec(t, "SET GLOBAL auto_increment_increment = 1") })
	odd, even := b.session("auto_increment_increment = 2, auto_increment_offset = 1"), b.session("auto_increment_increment = 2, auto_increment_offset = 2")
	insert(t, odd, "pay", completed, "first")
	b.good()
	for i := range 2 * patternRows { // the pattern of a single writer
		insert(t, odd, "pay", completed, fmt.Sprint("odd", i))
	}
	b.good()
	tx, err := even.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	insert(t, tx, "pay", completed, "late", "later")
	insert(t, odd, "pay", completed, "x", "y", "z")
	b.good().want(t, totals("pay", 2*patternRows+3, 2*patternRows+3, 0, 0))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	b.good().want(t, totals("pay", 2*patternRows+5, 2*patternRows+5, 0, 0))
	b.passes(2 * holeGrace)
	// A server that is told different offsets in turn skips a step at each change.
	if n := b.good()[burned]; n > 2 {
		t.Errorf("%v ids burned", n)
	}
}

// A replica does not know the steps of its primary.
func TestStepsAreSeenInTheIDsOfAReplica(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	b := newBench(t, db, benchOptions{replica: true})
	primary := b.session("auto_increment_increment = 3")
	insert(t, primary, "pay", completed, "a")
	b.good()
	for i := range patternRows + 1 {
		insert(t, primary, "pay", completed, fmt.Sprint(i))
	}
	for range 2 {
		if _, err := primary.ExecContext(t.Context(), "INSERT INTO idempotent_record (biz_type, biz_id, status) VALUES ('pay', 'a', 1)"); err == nil {
			t.Fatal("the key is not taken")
		}
	}
	insert(t, primary, "pay", completed, "b")
	b.good()
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 2})
}

func TestGapOfAMillion(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", processing, "a")
	b.good()
	b.Exec(t, "ALTER TABLE idempotent_record AUTO_INCREMENT = 1000002")
	last := b.insert("pay", completed, "b")
	if last != 1000002 {
		t.Fatalf("the id is %d", last)
	}
	first := b.good()
	first.want(t, totals("pay", 1, 1, 0, 0))
	b.Exec(t, "INSERT INTO idempotent_record (id, biz_type, biz_id, status) VALUES (500000, 'pay', 'inside', 2)")
	second := b.good()
	second.want(t, totals("pay", 2, 2, 0, 0))
	if d := grown(first, second)[rowsRead]; d > 10 {
		t.Errorf("%v rows are read for it", d)
	}
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 2 * maxBurned, inProgress: 1})
}

func TestRenamedTableAndBack(t *testing.T) {
	t.Parallel() // the schema of a missing table is read again after ten seconds
	b := recordBench(t)
	b.good()
	b.insert("pay", processing, "a")
	b.insert("pay", completed, "b")
	b.good().want(t, totals("pay", 2, 1, 0, 0))
	b.Exec(t, "RENAME TABLE idempotent_record TO elsewhere")
	b.poll().want(t, samples{isUp: 0})
	b.Exec(t, "INSERT INTO elsewhere (biz_type, biz_id, status) VALUES ('pay', 'c', 2)")
	b.Exec(t, "UPDATE elsewhere SET status = 2 WHERE biz_id = 'a'")
	b.Exec(t, "RENAME TABLE elsewhere TO idempotent_record")
	testkit.Eventually(t, 15*time.Second, func() bool { return b.poll()[isUp] == 1 }, "the ledger is read again")
	s := b.good()
	s.want(t, totals("pay", 3, 3, 0, 0))
	s.want(t, samples{inProgress: 0, vanishedPay: 0, burned: 0})
}

// Another table takes the name for a while, as when an online schema change is undone.
func TestSwappedTableAndBack(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", processing, "a", "b")
	b.good().want(t, samples{inProgress: 2})
	b.Exec(t, "CREATE TABLE other LIKE idempotent_record")
	b.Exec(t, "INSERT INTO other (id, biz_type, biz_id, status) VALUES (1, 'pay', 'x', 1)")
	b.Exec(t, "RENAME TABLE idempotent_record TO away, other TO idempotent_record")
	b.good()
	s := b.good()
	s.want(t, samples{inProgress: 1, vanishedPay: 2})
	s.want(t, totals("pay", 0, 0, 0, 0))
	b.Exec(t, "RENAME TABLE idempotent_record TO other, away TO idempotent_record")
	b.good()
	s = b.good()
	s.want(t, samples{inProgress: 2, vanishedPay: 3})
	s.want(t, totals("pay", 0, 0, 0, 0))
}

// The hour that happens twice has no one age; the hours around it do.
func TestAgesWhileDaylightSavingEnds(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	turned := time.Now().Add(-100 * time.Minute).Truncate(time.Second)
	zone := zoneThatTurns(t, turned)
	b := newBench(t, db, benchOptions{zone: zone})
	for id, since := range map[string]time.Duration{"summer": -90 * time.Minute, "twice": -30 * time.Minute, "winter": 80 * time.Minute} {
		local := turned.Add(since).In(zone).Format(time.DateTime)
		db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', ?, 1, ?, ?)", id, local, local)
	}
	s := b.good()
	s.want(t, samples{inProgress: 3, stalePay: 2})
	if age := s[oldestPay]; age < 190*60 || age > 190*60+20 {
		t.Errorf("the oldest has been silent for %v s, want 3 h 10 min", age)
	}
	db.Exec(t, "UPDATE idempotent_record SET status = 2, update_time = ? WHERE biz_id = 'summer'", turned.Add(70*time.Minute).In(zone).Format(time.DateTime))
	b.passes(maxPause)
	s = b.good()
	s.want(t, totals("pay", 0, 1, 0, 0))
	s.want(t, samples{`idem_record_duration_seconds_sum{biz_type="pay",ledger="orders"}`: 160 * 60}) // by the clock on the wall 100 min
}

// zoneThatTurns is four hours west of Greenwich until an instant and five after it.
func zoneThatTurns(t *testing.T, at time.Time) *time.Location {
	t.Helper()
	data := []byte("TZif\x00" + strings.Repeat("\x00", 15))
	for _, count := range []uint32{0, 0, 0, 1, 2, 8} { // transitions, zones, letters of their names
		data = binary.BigEndian.AppendUint32(data, count)
	}
	data = binary.BigEndian.AppendUint32(data, uint32(at.Unix()))
	data = append(data, 1) // to the second zone
	for i, offset := range []int32{-4 * 3600, -5 * 3600} {
		data = binary.BigEndian.AppendUint32(data, uint32(offset))
		data = append(data, byte(1-i), byte(4*i))
	}
	zone, err := time.LoadLocationFromTZData("turns", append(data, "EDT\x00EST\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestOneConnectionIsEnough(t *testing.T) {
	db := testkit.MySQL(t)
	for i := range 8 {
		db.Exec(t, fmt.Sprintf("CREATE TABLE record_%02d %s", i, recordTable))
		db.Exec(t, fmt.Sprintf("INSERT INTO record_%02d (biz_type, biz_id, status) VALUES ('pay', 'a', 1), ('pay', 'b', 2)", i))
	}
	b := newBench(t, db, benchOptions{table: "record_{00..07}", preset: "idempotent_record", conns: 1})
	b.good().want(t, samples{inProgress: 8})
	for i := range 8 {
		db.Exec(t, fmt.Sprintf("INSERT INTO record_%02d (biz_type, biz_id, status) VALUES ('pay', 'c', 2)", i))
	}
	b.good().want(t, totals("pay", 8, 8, 0, 0))
}

// Shards are read side by side, as many as the server has connections for but
// one, which is left to look-ups.
func TestShardsAreReadSideBySide(t *testing.T) {
	db := testkit.MySQL(t)
	for i := range 12 {
		db.Exec(t, fmt.Sprintf("CREATE TABLE record_%02d %s", i, recordTable))
	}
	way := testkit.NewProxy(t, db.Addr)
	b := newBench(t, db, benchOptions{address: way.Addr, table: "record_{00..11}", preset: "idempotent_record", conns: 4})
	b.good()
	way.Delay(60 * time.Millisecond) // far more than what a busy machine adds
	began := time.Now()
	b.good()
	side := time.Since(began)
	b.source.atOnce = 1
	began = time.Now()
	b.good()
	if alone := time.Since(began); alone < side*3/2 {
		t.Errorf("12 shards take %s one after the other and %s side by side", alone, side)
	}
}
