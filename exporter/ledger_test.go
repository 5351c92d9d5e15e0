package exporter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

func TestConfiguredSeriesStartAtZero(t *testing.T) {
	b := recordBench(t)
	s := b.good()
	for _, bizType := range []string{"pay", "refund"} {
		s.want(t, totals(bizType, 0, 0, 0, 0))
		s.want(t, samples{
			`idem_records_processing{biz_type="` + bizType + `",ledger="orders"}`:            0,
			`idem_records_stale{biz_type="` + bizType + `",ledger="orders"}`:                 0,
			`idem_oldest_processing_age_seconds{biz_type="` + bizType + `",ledger="orders"}`: 0,
			`idem_runs_longer_than_lock_total{biz_type="` + bizType + `",flow="payments"}`:   0,
		})
	}
	s.want(t, samples{burned: 0, watched: 0, caughtUp: 1})
	lint(t, b.registry)
}

func TestLifeOfRecords(t *testing.T) {
	b := recordBench(t)
	b.good()

	b.insert("pay", processing, "a", "b", "c")
	b.insert("pay", completed, "d")
	b.insert("refund", failed, "e")
	s := b.good()
	s.want(t, totals("pay", 4, 1, 0, 0))
	s.want(t, totals("refund", 1, 0, 1, 0))
	s.want(t, samples{inProgress: 3, stalePay: 0, watched: 4, longerPay: 0})

	b.update("pay", "a", completed, -20, 0) // outlived the lock of 15 s
	b.update("pay", "b", failed, -3, 0)
	b.update("refund", "e", processing, -60, 0)
	s = b.good()
	s.want(t, totals("pay", 4, 2, 1, 0))
	s.want(t, totals("refund", 1, 0, 1, 1))
	s.want(t, samples{inProgress: 1, watched: 3, longerPay: 1,
		`idem_record_duration_seconds_sum{biz_type="pay",ledger="orders"}`: 20})

	b.update("pay", "b", completed, -90, 0) // failed before: retried, and no single run took 90 s
	b.update("refund", "e", failed, -60, 0)
	s = b.good()
	s.want(t, totals("pay", 4, 3, 1, 1))
	s.want(t, totals("refund", 1, 0, 2, 1))
	s.want(t, samples{longerPay: 1, watched: 2})

	b.Exec(t, "DELETE FROM idempotent_record WHERE biz_id IN ('c', 'a')") // one open, one ended long ago
	before := s
	if d := grown(before, b.good()).only("idem_records_", "idem_retries", "idem_record_duration", "idem_record_ids"); len(d) != 1 || d[inProgress] != -1 {
		t.Errorf("deleted rows changed %v", d)
	}
	b.passes(2 * holeGrace)
	b.good().want(t, samples{burned: 0})
	if strings.Contains(b.log.String(), "WARN") {
		t.Errorf("log: %s", b.log)
	}
}

func TestHistoryIsNotCounted(t *testing.T) {
	b := recordBench(t)
	for i, status := range []int{completed, failed, processing, completed} {
		b.insert("pay", status, fmt.Sprint(i))
		b.refuse("pay", "0")
	}
	b.insert("pay", completed, "last")
	s := b.good()
	s.want(t, totals("pay", 0, 0, 0, 0))
	s.want(t, samples{inProgress: 1, watched: 2})

	b.update("pay", "2", completed, -2, 0)
	b.insert("pay", completed, "new")
	b.passes(2 * holeGrace)
	s = b.good()
	s.want(t, totals("pay", 1, 2, 0, 0))
	s.want(t, samples{inProgress: 0, burned: 0})
}

func TestRestartCountsNothingTwice(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", completed, "a", "b")
	b.insert("pay", processing, "c", "d")
	b.refuse("pay", "a", "a")
	b.insert("pay", failed, "e")
	b.good()
	b.passes(2 * holeGrace)
	first := b.good()
	first.want(t, totals("pay", 5, 2, 1, 0))
	first.want(t, samples{burned: 2})

	again := newBench(t, b.Database, benchOptions{})
	again.good()
	again.passes(2 * holeGrace)
	second := again.good()
	second.want(t, totals("pay", 0, 0, 0, 0))
	second.want(t, samples{burned: 0, inProgress: first[inProgress], watched: first[watched]})
	again.update("pay", "c", completed, -1, 0)
	again.good().want(t, totals("pay", 0, 1, 0, 0))
}

func TestOpenRecordsByTheDatabaseClock(t *testing.T) {
	b := recordBench(t)
	b.insert("pay", processing, "young", "stale", "older", "ahead")
	b.update("pay", "young", processing, -2000, -100)
	b.update("pay", "stale", processing, -400, -400)
	b.update("pay", "older", processing, -5000, -1000)
	b.update("pay", "ahead", processing, -5000, 5000) // clock skew: no age is claimed
	s := b.good()
	s.want(t, samples{inProgress: 4, stalePay: 2})
	if age := s[oldestPay]; age < 1000 || age > 1010 {
		t.Errorf("oldest age is %v", age)
	}
	b.passes(20 * time.Second)
	if age := b.good()[oldestPay]; age < 1020 || age > 1040 {
		t.Errorf("20 s later the oldest age is %v", age)
	}
	b.passes(time.Minute)
	for _, id := range []string{"stale", "older", "young"} {
		b.update("pay", id, completed, -1, 0)
	}
	s = b.good()
	s.want(t, samples{inProgress: 1, stalePay: 0, oldestPay: 0})
	b.Exec(t, "DELETE FROM idempotent_record")
	b.good().want(t, samples{inProgress: 0, stalePay: 0, oldestPay: 0, watched: 0})
}

func TestFailedRecordsLeaveTheWatchSet(t *testing.T) {
	b := recordBench(t)
	b.good()
	b.insert("pay", failed, "a")
	b.insert("pay", processing, "b")
	b.good().want(t, samples{watched: 2})
	b.passes(25 * time.Hour)
	b.update("pay", "a", failed, -90000, -90000)
	b.update("pay", "b", processing, -90000, -90000)
	b.good().want(t, samples{watched: 1, inProgress: 1, stalePay: 1})
}

func TestRowsBeforeTheLookbackAreLeftToTheSweep(t *testing.T) {
	b := recordBench(t)
	b.Exec(t, `INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time)
		SELECT 'pay', seq, 2, UTC_TIMESTAMP() - INTERVAL 50 HOUR + INTERVAL seq SECOND, UTC_TIMESTAMP() - INTERVAL 50 HOUR FROM seq_1_to_5000`)
	b.insert("pay", processing, "young")
	const below = 1 // tells that nobody has committed a row late between the old ones and the young one
	b.good().want(t, samples{inProgress: 1, rowsRead: 1 + below + sweepRows, caughtUp: 1})

	b.Exec(t, "DELETE FROM idempotent_record WHERE biz_id = 'young'")
	quiet := newBench(t, b.Database, benchOptions{}) // no row within the lookback: followed from the last one
	quiet.good()
	quiet.insert("pay", completed, "new")
	quiet.good().want(t, totals("pay", 1, 1, 0, 0))
}

// The start is found by the database's clock, and so are ages.
func TestClockOfThisMachineIsWrong(t *testing.T) {
	for _, ahead := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		b := recordBench(t)
		b.insert("pay", processing, "a", "b")
		b.update("pay", "a", processing, -3600, -3600)
		b.update("pay", "b", processing, -7200, -7200)
		b.passes(ahead)
		s := b.good()
		s.want(t, samples{inProgress: 2, stalePay: 2})
		if age := s[oldestPay]; age < 7200 || age > 7210 {
			t.Errorf("%s ahead the oldest age is %v", ahead, age)
		}
	}
}

func TestTableWithoutIntegerKey(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE message_processed (message_id VARCHAR(64) PRIMARY KEY, biz_type VARCHAR(64) NOT NULL, status VARCHAR(20), processed_at DATETIME)`)
	b := newBench(t, db, benchOptions{table: "message_processed", preset: "message_processed"})
	for range 3 {
		s := b.good()
		s.absent(t, "idem_record", "idem_oldest", "idemscope_watched", "idemscope_tail")
	}
	if got := strings.Count(b.log.String(), "ledger cannot be followed"); got != 1 {
		t.Errorf("%d log lines: %s", got, b.log)
	}
}

func TestTableWithoutCreatedColumn(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE bare (id BIGINT AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64) UNIQUE, status VARCHAR(20))`)
	db.Exec(t, `INSERT INTO bare (message_id, status) VALUES ('a', 'new'), ('b', 'new')`)
	b := newBench(t, db, benchOptions{table: "bare", mapping: ledger.MappingSpec{BizType: "pay",
		Columns: map[string]string{"biz_id": "message_id", "status": "status"}, Status: map[string][]string{"not_started": {"new"}, "completed": {"done"}}}})
	b.good().want(t, totals("pay", 0, 0, 0, 0))
	db.Exec(t, `INSERT INTO bare (message_id, status) VALUES ('c', 'new')`)
	db.Exec(t, `UPDATE bare SET status = 'done' WHERE message_id = 'b'`)
	s := b.good() // done without times: completed, and nothing to put into the histogram
	s.want(t, samples{`idem_records_created_total{biz_type="pay",ledger="orders"}`: 1, `idem_records_completed_total{biz_type="pay",ledger="orders"}`: 1,
		`idem_record_duration_seconds_count{biz_type="pay",ledger="orders"}`: 0, inProgress: 0, watched: 1})
}

func TestPresenceMeansCompleted(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE consume_log (id BIGINT AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64) UNIQUE, handle_time DATETIME)`)
	b := newBench(t, db, benchOptions{table: "consume_log", preset: "consume_log", mapping: ledger.MappingSpec{BizType: "pay"}})
	b.good()
	db.Exec(t, `INSERT INTO consume_log (biz_id, handle_time) VALUES ('a', UTC_TIMESTAMP()), ('b', UTC_TIMESTAMP())`)
	b.good().want(t, samples{`idem_records_created_total{biz_type="pay",ledger="orders"}`: 2, `idem_records_completed_total{biz_type="pay",ledger="orders"}`: 2,
		`idem_record_duration_seconds_count{biz_type="pay",ledger="orders"}`: 0, watched: 0})
}

func TestTypesThatNoFlowNames(t *testing.T) {
	b := recordBench(t)
	b.source.labels.max = 3 // pay, refund and one more
	b.good()
	b.insert("gift", processing, "a")
	b.insert("game", processing, "b")
	b.insert("book", processing, "c")
	s := b.good()
	s.want(t, totals("gift", 1, 0, 0, 0))
	s.want(t, totals("other", 2, 0, 0, 0))
	s.want(t, samples{`idem_records_processing{biz_type="gift",ledger="orders"}`: 1, `idem_records_processing{biz_type="other",ledger="orders"}`: 2,
		"idemscope_label_overflow_total": 2})
	s.absent(t, `idem_records_stale{biz_type="gift"`, `idem_records_stale{biz_type="other"`)
	if again := b.good(); again["idemscope_label_overflow_total"] != 2 {
		t.Errorf("an idle cycle counts overflow: %v", again["idemscope_label_overflow_total"])
	}
}

func TestBizTypesThatAreNotUTF8(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+strings.Replace(recordTable, "biz_type VARCHAR", "biz_type VARBINARY", 1))
	rest := flow.Flow{Name: "rest", Rest: true, Ledger: "orders", StaleAfter: time.Minute}
	b := newBench(t, db, benchOptions{flows: []flow.Flow{rest}})
	b.good()
	b.insert("a\xff", processing, "1", "2")
	b.insert(`a\xFF`, processing, "3")
	b.insert("line\nbreak \"quoted\" \\ 订单\x00", processing, "4")
	s := b.good()
	s.want(t, samples{`idem_records_processing{biz_type="a\\xFF",ledger="orders"}`: 3, `idem_records_created_total{biz_type="a\\xFF",ledger="orders"}`: 3,
		`idem_records_processing{biz_type="line\nbreak \"quoted\" \\ 订单\x00",ledger="orders"}`: 1})
}

func TestShardsStandTogether(t *testing.T) {
	db := testkit.MySQL(t)
	for _, shard := range []string{"00", "01", "03"} {
		db.Exec(t, "CREATE TABLE record_"+shard+" "+recordTable)
	}
	b := newBench(t, db, benchOptions{table: "record_{00..03}", preset: "idempotent_record"})
	s := b.poll()
	s.want(t, samples{isUp: 0})
	s.absent(t, "idem_records_processing", "idemscope_watched")

	db.Exec(t, "INSERT INTO record_01 (biz_type, biz_id, status) VALUES ('pay', 'a', 1)")
	db.Exec(t, "INSERT INTO record_03 (biz_type, biz_id, status) VALUES ('pay', 'b', 1)")
	s = b.poll() // one shard is missing: counters go on, gauges would be too low
	s.want(t, samples{isUp: 0, `idem_records_created_total{biz_type="pay",ledger="orders"}`: 2})
	s.absent(t, inProgress)
	db.Exec(t, "UPDATE record_03 SET status = 2")
	b.poll().want(t, totals("pay", 2, 1, 0, 0))

	whole := newBench(t, db, benchOptions{table: "record_{00..01}", preset: "idempotent_record"})
	whole.good().want(t, samples{inProgress: 1, isUp: 1})
}

func TestWatchSetIsBounded(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	b := newBench(t, db, benchOptions{maxWatched: 2})
	b.good().want(t, samples{`idemscope_watch_overflow_total{source="orders"}`: 0})
	b.insert("pay", processing, "a", "b", "c", "d")
	b.good().want(t, samples{watched: 2, `idemscope_watch_overflow_total{source="orders"}`: 2, `idem_records_created_total{biz_type="pay",ledger="orders"}`: 4})
	if got := strings.Count(b.log.String(), "too many open records"); got != 1 {
		t.Errorf("%d log lines: %s", got, b.log)
	}
}
