package exporter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

func TestLateCommitIsNotMissed(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", completed, "before")
	b.good()
	tx := b.begin()
	insert(t, tx, "pay", processing, "late1", "late2")
	b.insert("pay", completed, "after")
	s := b.good()
	s.want(t, totals("pay", 1, 1, 0, 0))
	s.want(t, samples{inProgress: 0, burned: 0})

	b.passes(holeGrace - 4*defaultInterval)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s = b.good()
	s.want(t, totals("pay", 3, 1, 0, 0))
	s.want(t, samples{inProgress: 2})
	b.update("pay", "late1", completed, -1, 0)
	b.passes(2 * holeGrace)
	s = b.good()
	s.want(t, totals("pay", 3, 2, 0, 0))
	s.want(t, samples{burned: 0, inProgress: 1})
}

func TestLateCommitAmongRowsOfTheStart(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", completed, "before")
	tx := b.begin()
	insert(t, tx, "pay", completed, "late")
	insert(t, b.begin(), "pay", completed, "rolled back")
	b.insert("pay", completed, "after")
	b.good().want(t, totals("pay", 0, 0, 0, 0))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	b.good().want(t, totals("pay", 1, 1, 0, 0)) // it did not stand there at the start
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 0}) // but the gap did
}

// The first rows of a table have none below them that would show a gap.
func TestLateCommitOfTheFirstRows(t *testing.T) {
	b := recordBench(t)
	b.good()
	for range 2 { // an empty table, and one that was emptied
		before := b.good()
		late, lost := b.begin(), b.begin()
		insert(t, late, "pay", processing, "first")
		insert(t, lost, "pay", processing, "rolled back")
		b.insert("pay", completed, "after")
		b.good()
		if err := late.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := lost.Rollback(); err != nil {
			t.Fatal(err)
		}
		d := grown(before, b.good())
		if d["idem_records_created_total{biz_type=\"pay\",ledger=\"orders\"}"] != 2 || d[inProgress] != 1 {
			t.Errorf("a late first row and one above it change %v", d.only("idem_records"))
		}
		b.update("pay", "first", completed, -1, 0)
		b.passes(2 * holeGrace)
		b.good().want(t, samples{inProgress: 0, burned: 0}) // nobody knows since when it is empty
		b.Exec(t, "TRUNCATE idempotent_record")
		b.good()
	}
}

func TestGapsBurnAfterTheGrace(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", completed, "a")
	b.good()
	tx := b.begin()
	insert(t, tx, "pay", processing, "x", "y", "z")
	b.refuse("pay", "a", "a")
	b.insert("pay", completed, "b")
	b.refuse("pay", "a")
	b.good().want(t, samples{burned: 0}) // the last gap has no row above it yet
	b.insert("pay", completed, "c")
	b.passes(30 * time.Second)
	b.good().want(t, samples{burned: 0})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	b.passes(30 * time.Second)
	b.good().want(t, samples{burned: 5})
	b.passes(30 * time.Second)
	s := b.good()
	s.want(t, samples{burned: 6})
	s.want(t, totals("pay", 2, 2, 0, 0))
}

func TestLateBulkCommitFillsAWideHole(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", completed, "before")
	b.good()
	tx := b.begin()
	if _, err := tx.Exec("INSERT INTO idempotent_record (biz_type, biz_id, status) SELECT 'refund', seq, 2 FROM seq_1_to_50000"); err != nil {
		t.Fatal(err)
	}
	b.insert("pay", completed, "after")
	b.good()
	idle := b.good()
	if d := grown(idle, b.good()); d[rowsRead] > 3 {
		t.Errorf("an empty wide hole costs %v rows a cycle", d[rowsRead])
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s := b.good()
	if s[caughtUp] != 0 {
		t.Error("caught up in one cycle, want a bounded one")
	}
	b.passes(2 * holeGrace) // what was not read yet does not burn
	b.good().want(t, samples{burned: 0, caughtUp: 0})
	s = b.good()
	s.want(t, totals("refund", 50000, 50000, 0, 0))
	s.want(t, totals("pay", 1, 1, 0, 0))
	s.want(t, samples{caughtUp: 1})
	b.passes(2 * holeGrace)
	// InnoDB reserves ids for a bulk insert in doubling blocks.
	if n := b.good()[burned]; n < 1 || n > 20000 {
		t.Errorf("%v ids burned", n)
	}
}

func TestHugeJumpOfIDs(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", completed, "a")
	b.good()
	b.Exec(t, "INSERT INTO idempotent_record (id, biz_type, biz_id, status) VALUES (18000000000000000000, 'pay', 'b', 2)")
	b.good().want(t, totals("pay", 1, 1, 0, 0))
	b.Exec(t, "INSERT INTO idempotent_record (id, biz_type, biz_id, status) VALUES (9000000000000000000, 'pay', 'c', 2)")
	b.good().want(t, totals("pay", 2, 2, 0, 0))
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 2 * maxBurned})
}

func TestTruncatedTableStartsAnew(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", processing, "a", "b", "c")
	b.good().want(t, samples{inProgress: 3})

	b.Exec(t, "TRUNCATE idempotent_record")
	b.good()
	b.insert("pay", processing, "a", "d")
	s := b.good()
	s.want(t, totals("pay", 5, 0, 0, 1)) // a came back before it ended
	s.want(t, samples{inProgress: 2, vanishedPay: 3})

	// Truncated and filled again between two polls, past the old mark.
	b.Exec(t, "TRUNCATE idempotent_record")
	b.insert("pay", processing, "e", "f", "g", "h")
	b.good()
	s = b.good()
	s.want(t, samples{inProgress: 4, vanishedPay: 5}) // followed, though not counted as new
	s.want(t, totals("pay", 5, 0, 0, 1))
	b.insert("pay", completed, "i")
	b.passes(2 * holeGrace)
	s = b.good()
	s.want(t, totals("pay", 6, 1, 0, 1))
	s.want(t, samples{burned: 0})
}

func TestTruncatedTableHasItsOwnGaps(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", completed, "a")
	b.good()
	b.refuse("pay", "a")
	b.insert("pay", completed, "b", "c", "d")
	b.good() // one gap is waiting for its grace
	b.Exec(t, "TRUNCATE idempotent_record")
	b.good()
	b.insert("pay", completed, "a")
	b.refuse("pay", "a", "a")
	b.insert("pay", completed, "b")
	b.good()
	b.passes(2 * holeGrace)
	s := b.good()
	s.want(t, samples{burned: 2})
	s.want(t, totals("pay", 5, 5, 0, 0))
}

func TestEmptiedTableKeepsItsGaps(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", processing, "a", "b")
	b.good()
	b.Exec(t, "DELETE FROM idempotent_record")
	b.good().want(t, samples{inProgress: 0})
	tx := b.begin()
	insert(t, tx, "pay", completed, "late")
	b.insert("pay", completed, "c")
	b.good().want(t, totals("pay", 3, 1, 0, 0))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	b.passes(2 * holeGrace)
	s := b.good()
	s.want(t, totals("pay", 4, 2, 0, 0))
	s.want(t, samples{burned: 0})
}

func TestDeletedEndOfTheTable(t *testing.T) {
	b := recordBench(t)
	b.good()
	tx := b.begin()
	b.insert("pay", completed, "a", "b")
	insert(t, tx, "pay", processing, "late")
	last := b.insert("pay", processing, "c", "d")
	b.good().want(t, totals("pay", 4, 2, 0, 0))

	// A consumer that deletes the row of a failed run takes away the last ones.
	b.Exec(t, "DELETE FROM idempotent_record WHERE id IN (?, ?)", last-1, last)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s := b.good()
	s.want(t, totals("pay", 5, 2, 0, 0))
	s.want(t, samples{inProgress: 1})
	for i := range 5 {
		id := fmt.Sprint("again", i)
		b.insert("pay", processing, id)
		b.good()
		b.Exec(t, "DELETE FROM idempotent_record WHERE biz_id = ?", id)
		b.good()
	}
	b.passes(2 * holeGrace)
	s = b.good()
	s.want(t, totals("pay", 10, 2, 0, 0))
	s.want(t, samples{burned: 0, inProgress: 1})
	if strings.Contains(b.log.String(), "anew") {
		t.Errorf("log: %s", b.log)
	}
}

func TestReplacedTable(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", processing, "a")
	b.good()
	b.Exec(t, "DROP TABLE idempotent_record")
	b.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	b.insert("pay", processing, "b", "c")
	b.good()
	b.good().want(t, samples{inProgress: 2, watched: 2})
}

func TestFilledHoleIsCountedOnceWhenTheEndIsDeleted(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", completed, "a", "b")
	tx := b.begin()
	insert(t, tx, "pay", completed, "late")
	last := b.insert("pay", completed, "c")
	b.good()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	b.good().want(t, totals("pay", 4, 4, 0, 0))
	b.Exec(t, "DELETE FROM idempotent_record WHERE id = ?", last)
	b.good()
	b.insert("pay", completed, "d")
	b.good().want(t, totals("pay", 5, 5, 0, 0))
}

func TestIDThatBelongsToAnotherKeyNow(t *testing.T) {
	b := recordBench(t)
	b.good()
	id := b.insert("pay", processing, "a")
	b.insert("pay", completed, "b")
	b.good().want(t, totals("pay", 2, 1, 0, 0))
	b.Exec(t, "DELETE FROM idempotent_record WHERE id = ?", id)
	b.Exec(t, "INSERT INTO idempotent_record (id, biz_type, biz_id, status) VALUES (?, 'pay', 'restored', 2)", id)
	s := b.good()
	s.want(t, totals("pay", 2, 1, 0, 0))
	s.want(t, samples{inProgress: 0, watched: 0})
}

func TestDroppedAndRecreatedTable(t *testing.T) {
	t.Parallel() // the schema of a missing table is read again after ten seconds
	b := recordBench(t)
	b.insert("pay", processing, "a")
	b.good().want(t, samples{inProgress: 1})
	b.insert("pay", processing, "b")
	b.good()

	b.Exec(t, "DROP TABLE idempotent_record")
	for range 2 {
		s := b.poll()
		s.want(t, samples{isUp: 0})
		s.want(t, totals("pay", 1, 0, 0, 0)) // this process's own sums stay
		s.absent(t, "idem_records_processing", "idem_records_stale", "idem_oldest", "idemscope_watched", "idemscope_tail")
	}
	if got := strings.Count(b.log.String(), "cannot be read"); got != 1 {
		t.Errorf("%d log lines: %s", got, b.log)
	}

	b.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	testkit.Eventually(t, 15*time.Second, func() bool { return b.poll()[isUp] == 1 }, "the ledger is read again")
	b.good().want(t, samples{inProgress: 0, watched: 0, vanishedPay: 2})
	b.insert("pay", completed, "a", "b", "c")
	b.good().want(t, totals("pay", 4, 3, 0, 2))
}

// A cycle costs the same whatever the size of the table.
func TestCatchUpIsBoundedAndIdleCyclesAreCheap(t *testing.T) {
	b := recordBench(t)
	b.Exec(t, `INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time)
		SELECT 'pay', seq, IF(seq % 10000 = 0, 1, 2), UTC_TIMESTAMP() - INTERVAL 60000 SECOND + INTERVAL seq SECOND, UTC_TIMESTAMP() FROM seq_1_to_50000`)
	cycles := 1
	for s := b.good(); s[caughtUp] == 0; s = b.good() {
		if read := s[rowsRead]; read > float64(cycles*(spareChunks+1)*(tailChunk+1)) {
			t.Fatalf("%d cycles read %v rows", cycles, read)
		}
		cycles++
	}
	if cycles < 3 || cycles > 6 {
		t.Errorf("caught up in %d cycles", cycles)
	}
	b.passes(2 * maxPause)
	s := b.good()
	s.want(t, samples{inProgress: 5})
	s.want(t, totals("pay", 0, 0, 0, 0))

	reads := b.handlerReads()
	own := b.handlerReads() - reads // what asking costs
	reads = b.handlerReads()
	idle := b.good()
	const open, mark = 5, 1
	if d := idle[rowsRead] - s[rowsRead]; d > open+mark {
		t.Errorf("an idle cycle reads %v rows", d)
	}
	if got := b.handlerReads() - reads - own; got > 20 {
		t.Errorf("for an idle cycle the server looks at %d rows", got)
	}
	b.insert("pay", completed, "new")
	reads = b.handlerReads()
	b.good().want(t, totals("pay", 1, 1, 0, 0))
	if got := b.handlerReads() - reads - own; got > 20 {
		t.Errorf("for one new row the server looks at %d rows", got)
	}
}

func TestAnchors(t *testing.T) {
	var a anchors
	for id := range uint64(maxAnchors + 10) {
		a.add(anchor{2 * id, id})
	}
	if len(a) != maxAnchors || a[0].id != 20 {
		t.Fatalf("%d anchors from %d", len(a), a[0].id)
	}
	a.add(anchor{31, 7})
	a.add(anchor{33, 8})
	a.add(anchor{33, 9})
	ids := a.ids()
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			t.Fatalf("anchors are not in order: %v", ids)
		}
	}
	if len(a) != maxAnchors {
		t.Errorf("%d anchors", len(a))
	}
}
