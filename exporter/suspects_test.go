package exporter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

// suspected reads the keys of all suspects, in the order of the list.
func (b *bench) suspected() []string {
	b.t.Helper()
	rows, _ := b.source.suspects.last()
	var ids []string
	for _, at := range rows {
		p, there, err := b.source.key(b.t.Context(), at)
		if err != nil || !there || p.Flow != "payments" {
			b.t.Fatalf("row %v: %+v, there %v, %v", at, p, there, err)
		}
		ids = append(ids, p.Key.BizType+"/"+p.Key.BizID)
	}
	return ids
}

func TestSuspectsAreStaleFailedOrUnmapped(t *testing.T) {
	b := recordBench(t)
	for id, row := range map[string]struct{ status, silent int }{
		"working": {processing, -10}, "stale": {processing, -3600}, "just failed": {failed, -5}, "failed ": {failed, -1800},
		"odd": {9, -60}, "from the future": {processing, 7200}, "done": {completed, -7200},
	} {
		b.insert("pay", row.status, id)
		b.update("pay", id, row.status, row.silent-5, row.silent)
	}
	b.insert("nobody's", failed, "x")
	b.update("nobody's", "x", failed, -900, -900)
	b.good()
	if got, want := b.suspected(), []string{"pay/stale", "pay/failed ", "pay/odd"}; !slices.Equal(got, want) {
		t.Errorf("suspects %q, want %q", got, want)
	}
	b.passes(agelessPatience)
	b.good()
	if got := b.suspected(); !slices.Contains(got, "pay/from the future") || slices.Contains(got, "pay/working") {
		t.Errorf("after %s: %q", agelessPatience, got)
	}
	b.update("pay", "stale", completed, -3600, 0)
	b.passes(maxPause + time.Second)
	b.good()
	if got := b.suspected(); slices.Contains(got, "pay/stale") {
		t.Errorf("a completed record is suspected: %q", got)
	}
}

func TestSuspectsAreBoundedOldestFirst(t *testing.T) {
	b := recordBench(t)
	b.Exec(t, `INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time)
		SELECT 'pay', seq, 3, UTC_TIMESTAMP() - INTERVAL 20 HOUR, UTC_TIMESTAMP() - INTERVAL 10000 SECOND - INTERVAL seq SECOND FROM seq_1_to_2100`)
	for b.good()[caughtUp] != 1 {
	}
	rows, beyond := b.source.suspects.last()
	if len(rows) != maxSuspects || beyond != 100 {
		t.Errorf("%d suspects, %d beyond", len(rows), beyond)
	}
	first, there, err := b.source.key(t.Context(), rows[0])
	if err != nil || !there || first.Key.BizID != "2100" {
		t.Errorf("the oldest is %+v, %v", first, err)
	}
}

func TestRowThatIsGoneIsNoSuspect(t *testing.T) {
	b := recordBench(t)
	id := b.insert("pay", failed, "a")
	b.insert("nobody's", failed, "b")
	for i, at := range []place{{id: id}, {id: id + 1}, {id: id + 2}} {
		if _, there, err := b.source.key(t.Context(), at); err != nil || there != (i == 0) {
			t.Errorf("row %v: there %v, %v", at, there, err)
		}
	}
}

// Without a unique key two records of one key can complete. Nothing of them is open.
func TestTwinsAreSuspects(t *testing.T) {
	b := recordBench(t)
	b.Exec(t, "ALTER TABLE idempotent_record DROP KEY uk_biz")
	b.insert("pay", completed, "once", "twice", "other", "twice")
	b.insert("refund", completed, "once")
	b.good()
	b.good()
	if got := b.suspected(); !slices.Equal(got, []string{"pay/twice"}) {
		t.Errorf("suspects %q", got)
	}
	b.insert("pay", completed, "other")
	b.good()
	if got := b.suspected(); !slices.Equal(got, []string{"pay/twice", "pay/other"}) {
		t.Errorf("suspects %q", got)
	}
}

func TestTwinsAreBounded(t *testing.T) {
	var w twins
	for print := range uint64(3 * maxTwins) {
		w.met(place{id: print}, print+1)
		w.met(place{id: print + 10_000}, print+1)
	}
	if len(w.list) != maxTwins || w.list[maxTwins-1].id != 10_000+3*maxTwins-1 {
		t.Errorf("%d twins, the last is %v", len(w.list), w.list[len(w.list)-1])
	}
	if len(w.slots) != twinSlots {
		t.Errorf("%d slots", len(w.slots))
	}
	w = twins{}
	w.met(place{id: 1}, 7)
	w.met(place{id: 2}, 7+twinSlots) // pushes it out
	w.met(place{id: 3}, 7)
	if len(w.list) != 0 {
		t.Errorf("different keys are twins: %v", w.list)
	}
}

// What is not read is said, so that an empty list is not taken for a good one.
func TestCoverageNamesWhatIsNotRead(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	way := testkit.NewProxy(t, db.Addr)
	b := newBench(t, db, benchOptions{address: way.Addr})
	f := b.findings(nil)
	says := func(want string, wantUnread bool) {
		t.Helper()
		texts, unread := f.coverage()
		var all []string
		for _, text := range texts {
			if all = append(all, text.EN); text.ZH == "" {
				t.Errorf("no Chinese for %q", text.EN)
			}
		}
		if got := strings.Join(all, " "); strings.Contains(got, "edger orders") != (want != "") || !strings.Contains(got, want) || unread != wantUnread {
			t.Errorf("%s unread %v", got, unread)
		}
	}
	says("Ledger orders was not read yet.", true)
	way.Drop(true)
	b.poll()
	says("Ledger orders cannot be read at present; newer suspects are missing.", true)
	way.Drop(false)
	testkit.Eventually(t, 10*time.Second, func() bool { return b.poll()[isUp] == 1 }, "the table is not read again")
	says("", false)
}

// A table that cannot be followed has no suspects. That matters unless each of
// its rows means completed.
func TestCoverageOfATableWithoutIntegerKey(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE message_processed (message_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64) NOT NULL, status VARCHAR(20), processed_at DATETIME)`)
	db.Exec(t, `CREATE TABLE consume_log (biz_id VARCHAR(64) NOT NULL PRIMARY KEY, handle_time DATETIME NOT NULL)`)
	for table, want := range map[string]bool{"message_processed": true, "consume_log": false} {
		o := benchOptions{table: table, preset: table}
		if table == "consume_log" {
			o.mapping.BizType = "pay"
		}
		b := newBench(t, db, o)
		b.good()
		texts, unread := b.findings(nil).coverage()
		if said := texts[len(texts)-1].EN == "Ledger orders cannot be followed, so its records are not looked through."; said != want || unread != want {
			t.Errorf("%s: said %v, unread %v", table, said, unread)
		}
	}
}
