package exporter

import (
	"fmt"
	"testing"
	"time"

	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

func (b *bench) remove(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		b.Exec(b.t, "DELETE FROM idempotent_record WHERE biz_id = ?", id)
	}
}

func TestDeletedRowInsertedAnewIsARetry(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", processing, "of the start")
	b.good()
	b.insert("pay", failed, "failed")
	b.insert("pay", processing, "died", "both", "never back", "cleaned")
	b.insert("pay", completed, "done")
	b.update("pay", "cleaned", completed, -1, 0)
	b.good().want(t, totals("pay", 6, 2, 1, 0))

	b.remove("failed", "died", "never back", "cleaned", "done", "of the start")
	b.good().want(t, samples{vanishedPay: 4, inProgress: 1})
	b.insert("pay", processing, "failed", "died", "done", "cleaned", "of the start")
	b.remove("both") // deleted and inserted between two polls
	b.insert("pay", processing, "both")
	s := b.good()
	s.want(t, totals("pay", 12, 2, 1, 4))
	s.want(t, samples{vanishedPay: 5, inProgress: 6, burned: 0})
	if again := b.good(); len(grown(s, again).only("idem_r", "idemscope_records")) > 0 {
		t.Errorf("an idle cycle changes %v", grown(s, again))
	}
	b.remove("died") // and again
	b.good()
	b.insert("pay", completed, "died")
	b.good().want(t, totals("pay", 13, 3, 1, 5))
}

func TestRowThatComesBackAfterTheLookbackIsNew(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", failed, "a")
	b.good()
	b.remove("a")
	b.good()
	b.passes(defaultLookback)
	b.insert("pay", processing, "a")
	b.good().want(t, totals("pay", 2, 0, 1, 0))
}

// Without a unique key a second row of a key replaces nothing.
func TestSecondRowOfAKeyIsNoRetry(t *testing.T) {
	b := recordBench(t)
	b.Exec(t, "ALTER TABLE idempotent_record DROP KEY uk_biz")
	b.good()
	first := b.insert("pay", processing, "a")
	b.good()
	b.insert("pay", processing, "a")
	b.good().want(t, samples{inProgress: 2, vanishedPay: 0})
	b.Exec(t, "DELETE FROM idempotent_record WHERE id = ?", first)
	s := b.good()
	s.want(t, samples{inProgress: 1, vanishedPay: 1})
	s.want(t, totals("pay", 2, 0, 0, 0))
}

func TestLostKeysAreBounded(t *testing.T) {
	l := newLost(100)
	for print := range uint64(1000) {
		l.add(print, at(int(print)), time.Hour)
	}
	if len(l.when) != 100 || len(l.order) != 100 {
		t.Fatalf("%d keys, %d in order", len(l.when), len(l.order))
	}
	if l.back(899, at(1000), time.Hour) || !l.back(900, at(1000), time.Hour) || l.back(900, at(1000), time.Hour) {
		t.Error("the first ones are kept, or one comes back twice")
	}
	if l.back(950, at(9000), time.Hour) {
		t.Error("a key comes back after its time")
	}
	l.add(999, at(5000), time.Hour) // vanished again
	if len(l.order) != 1 || !l.back(999, at(5001), time.Hour) {
		t.Errorf("%d in order", len(l.order))
	}
}

func TestUnmappedRecordsCountApart(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE record (id INT AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(8), biz_type VARCHAR(20), status VARCHAR(20) NULL,
		create_time DATETIME DEFAULT CURRENT_TIMESTAMP, update_time DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE KEY (biz_type, biz_id))`)
	b := newBench(t, db, benchOptions{table: "record", preset: "idempotent_record"})
	const unmapped = `idem_records_unmapped{biz_type="pay",ledger="orders"}`
	b.good().want(t, samples{unmapped: 0})
	db.Exec(t, "INSERT INTO record (biz_type, biz_id, status) VALUES ('pay', 'a', ''), ('pay', 'b', NULL), ('pay', 'c', 'archived'), ('pay', 'd', '1'), ('pay', 'e', '2')")
	s := b.good()
	s.want(t, samples{unmapped: 3, inProgress: 1})
	s.want(t, totals("pay", 5, 1, 0, 0))
	db.Exec(t, "UPDATE record SET status = '2' WHERE biz_id = 'a'")
	db.Exec(t, "DELETE FROM record WHERE biz_id = 'b'")
	s = b.good()
	s.want(t, samples{unmapped: 1, vanishedPay: 1})
	s.want(t, totals("pay", 5, 2, 0, 0))
	b.passes(25 * time.Hour)
	db.Exec(t, "UPDATE record SET update_time = UTC_TIMESTAMP() - INTERVAL 25 HOUR WHERE biz_id = 'c'")
	b.good().want(t, samples{unmapped: 0, watched: 1})
}

const outboxTable = `CREATE TABLE outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, message_id CHAR(8) UNIQUE, payload TEXT, status VARCHAR(20),
	retry_count INT NOT NULL DEFAULT 0, created_at DATETIME, updated_at DATETIME, sent_at DATETIME NULL)`

func TestOutboxHasMetricsOfItsOwn(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, outboxTable)
	insert := func(id, status string, created, updated int) {
		db.Exec(t, `INSERT INTO outbox (message_id, status, created_at, updated_at) VALUES (?, ?, UTC_TIMESTAMP() - INTERVAL ? SECOND, UTC_TIMESTAMP() - INTERVAL ? SECOND)`,
			id, status, created, updated)
	}
	insert("ancient", "pending", 500000, 400000) // before the lookback: found by the sweep
	insert("sent", "sent", 400000, 400000)
	b := newBench(t, db, benchOptions{table: "outbox", preset: "outbox", mapping: ledger.MappingSpec{BizType: "pay"}})
	const pending, oldest = `idem_outbox_pending{ledger="orders"}`, `idem_outbox_oldest_pending_age_seconds{ledger="orders"}`
	s := b.good()
	s.want(t, samples{pending: 1, watched: 1})
	if age := s[oldest]; age < 500000 || age > 500010 {
		t.Errorf("the oldest waits for %v s, want the time since its creation", age)
	}
	insert("tried", "pending", 300, 2)
	insert("new", "pending", 0, 0)
	insert("given up", "failed", 100, 50)
	s = b.good()
	s.want(t, samples{pending: 3})
	s.absent(t, "idem_records", "idem_record_duration", "idem_retries", "idem_oldest", "idem_runs")
	db.Exec(t, "UPDATE outbox SET status = 'sent', sent_at = UTC_TIMESTAMP(), updated_at = UTC_TIMESTAMP() WHERE message_id = 'ancient'")
	db.Exec(t, "DELETE FROM outbox WHERE message_id = 'new'")
	b.passes(2 * maxPause)
	s = b.good()
	s.want(t, samples{pending: 1, vanishedPay: 1})
	if age := s[oldest]; age < 300 || age > 310 {
		t.Errorf("the oldest waits for %v s", age)
	}
	lint(t, b.registry)
}

func TestHeadroomOfIDs(t *testing.T) {
	for kind, limit := range map[string]float64{
		"TINYINT": 127, "TINYINT UNSIGNED": 255, "SMALLINT": 32767, "MEDIUMINT UNSIGNED": 16777215, "INT": 2147483647, "BIGINT UNSIGNED": 18446744073709551615,
	} {
		db := testkit.MySQL(t)
		db.Exec(t, fmt.Sprintf("CREATE TABLE a_0 (id %s AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(20) UNIQUE, handle_time DATETIME)", kind))
		db.Exec(t, "CREATE TABLE a_1 LIKE a_0")
		b := newBench(t, db, benchOptions{table: "a_{0..1}", preset: "consume_log", mapping: ledger.MappingSpec{BizType: "pay"}})
		const headroom = `idem_record_id_headroom_ratio{ledger="orders"}`
		b.good().want(t, samples{headroom: 1})
		db.Exec(t, "INSERT INTO a_1 VALUES (100, 'x', NOW())")
		if got, want := b.good()[headroom], 1-100/limit; got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

func TestIDsThatFillTheirColumn(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	db.Exec(t, "ALTER TABLE idempotent_record MODIFY biz_id VARCHAR(4) NOT NULL")
	b := newBench(t, db, benchOptions{})
	const width = `idem_ids_at_column_width{ledger="orders"}`
	b.insert("pay", completed, "abcd", "abc", "订单号码", "订单号")
	b.good().want(t, samples{width: 2})
	b.insert("pay", processing, "éééé", "ééé", "")
	b.good().want(t, samples{width: 3})
	b.good().want(t, samples{width: 3})
}
