package exporter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

const (
	progress = `idemscope_ledger_sweep_progress_ratio{source="orders"}`
	sweptAt  = `idemscope_sweep_completed_timestamp_seconds{kind="ledger",source="orders"}`
)

// past fills a table with n rows older than the lookback, every hundredth of them
// in processing, every hundred and first failed.
func (b *bench) past(table, columns string, n int) {
	b.t.Helper()
	b.Exec(b.t, fmt.Sprintf(`INSERT INTO %s (%s, biz_type, status, create_time, update_time)
		SELECT CONCAT('old-', seq), 'pay', CASE seq MOD 100 WHEN 0 THEN 1 WHEN 1 THEN 3 ELSE 2 END, UTC_TIMESTAMP() - INTERVAL 50 HOUR, UTC_TIMESTAMP() - INTERVAL 49 HOUR
		FROM seq_1_to_%d`, table, columns, n))
}

func TestSweepFindsOldOpenRecords(t *testing.T) {
	b := recordBench(t)
	b.past("idempotent_record", "biz_id", 3*sweepRows)
	b.insert("pay", processing, "young")
	began := time.Now()
	last := samples{progress: -1}
	for i := range 3 {
		s := b.good()
		s.want(t, samples{inProgress: float64(1 + (i+1)*sweepRows/100), caughtUp: 1})
		s.want(t, totals("pay", 0, 0, 0, 0))
		if s[progress] <= last[progress] || s[progress] > 1 {
			t.Errorf("progress is %v after %v", s[progress], last[progress])
		}
		last = s
		if _, done := s[sweptAt]; done {
			break
		}
	}
	s := b.good()
	s.want(t, samples{progress: 1, inProgress: 1 + 3*sweepRows/100, watched: 1 + 3*sweepRows/100, stalePay: 3 * sweepRows / 100})
	if at := s[sweptAt]; at < float64(began.Unix()) || at > float64(time.Now().Unix()+1) {
		t.Errorf("swept at %v", at)
	}
	if age := s[oldestPay]; age < 49*3600 {
		t.Errorf("the oldest has been silent for %v s", age)
	}
	b.update("pay", "old-100", completed, -200000, 0)
	b.passes(2 * maxPause)
	s = b.good()
	s.want(t, totals("pay", 0, 1, 0, 0))
	if read := b.good()[rowsRead]; read > s[rowsRead]+2 {
		t.Errorf("an idle cycle reads %v rows", read-s[rowsRead])
	}
}

// A later pass finds records that were opened again by hand, wherever they are.
func TestSweepBeginsAnewAfterAnHour(t *testing.T) {
	b := recordBench(t)
	b.past("idempotent_record", "biz_id", 200)
	b.insert("pay", completed, "young")
	first := b.good()
	first.want(t, samples{inProgress: 2, progress: 1})
	b.Exec(t, "UPDATE idempotent_record SET status = 1, update_time = UTC_TIMESTAMP() WHERE biz_id IN ('old-7', 'young')")
	b.good().want(t, samples{inProgress: 2})
	b.passes(sweepEvery)
	again := b.good()
	again.want(t, samples{inProgress: 4, progress: 1})
	again.want(t, totals("pay", 0, 0, 0, 0))
	if again[sweptAt] < first[sweptAt] {
		t.Errorf("swept at %v, then at %v", first[sweptAt], again[sweptAt])
	}
	b.passes(sweepEvery / 2)
	if d := grown(again, b.good()); d[rowsRead] > 10 {
		t.Errorf("half an hour later it reads %v rows", d[rowsRead])
	}
}

func TestSweepUsesAnIndexOnTheStatus(t *testing.T) {
	for _, c := range []struct {
		name, status, index string
		words               map[string][]string
		most                float64 // rows read
	}{
		{"number", "TINYINT NOT NULL", "KEY (status)", nil, 300},
		{"number, then id", "TINYINT NOT NULL", "KEY (status, id)", nil, 300},
		{"text", "VARCHAR(20) NOT NULL", "KEY (status)", nil, 300},
		{"enum", "ENUM('1','2','3') NOT NULL", "KEY (status)", nil, 300},
		{"two words", "TINYINT NOT NULL", "KEY (status)", map[string][]string{"processing": {"1", "9"}, "completed": {"2"}, "failed": {"3"}}, 300},
		{"another column between", "TINYINT NOT NULL", "KEY (status, create_time)", nil, 20100},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := testkit.MySQL(t)
			db.Exec(t, `CREATE TABLE record (id BIGINT AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(40), biz_type VARCHAR(20), status `+c.status+`,
				create_time DATETIME, update_time DATETIME, UNIQUE KEY (biz_type, biz_id), `+c.index+`)`)
			b := newBench(t, db, benchOptions{table: "record", preset: "idempotent_record", mapping: ledger.MappingSpec{Status: c.words}})
			b.past("record", "biz_id", 20000)
			reads := b.handlerReads()
			own := b.handlerReads() - reads
			reads = b.handlerReads()
			s := b.good()
			for s[progress] < 1 {
				s = b.good()
			}
			looked := b.handlerReads() - reads - own
			s.want(t, samples{inProgress: 200, stalePay: 200})
			if s[rowsRead] > c.most || float64(looked) > 2*c.most {
				t.Errorf("%v rows are read and %d looked at, want %v at most", s[rowsRead], looked, c.most)
			}
		})
	}
}

func TestSweepGoesThroughAllShards(t *testing.T) {
	db := testkit.MySQL(t)
	b := newBench(t, db, benchOptions{table: "record_{00..02}", preset: "idempotent_record"})
	for i := range 3 {
		db.Exec(t, fmt.Sprintf("CREATE TABLE record_%02d %s", i, recordTable))
		if i != 1 {
			b.past(fmt.Sprintf("record_%02d", i), "biz_id", 200)
		}
	}
	s := b.good()
	s.want(t, samples{inProgress: 4, progress: 1})
}

// A sweep that fails leaves the gauges of the ledger alone.
func TestSweepThatFailsIsNoFailureOfTheLedger(t *testing.T) {
	b := recordBench(t)
	b.past("idempotent_record", "biz_id", 200)
	b.insert("pay", completed, "young")
	real := b.source.tails[0].shard
	b.source.tails[0].shard = brokenSweep{real}
	s := b.good()
	s.want(t, samples{inProgress: 0, progress: 0})
	s.absent(t, sweptAt)
	b.good()
	b.source.tails[0].shard = real
	b.good().want(t, samples{inProgress: 2, progress: 1})
}

// brokenSweep fails with what only a sweep asks.
type brokenSweep struct{ shard }

func (brokenSweep) WithStatus(context.Context, string, uint64, int) (ledger.Batch, error) {
	return ledger.Batch{}, fmt.Errorf("no")
}

func TestLedgerWithoutOpenRecordsIsNotSwept(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, `CREATE TABLE consume_log (id BIGINT AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64) UNIQUE, handle_time DATETIME)`)
	db.Exec(t, `INSERT INTO consume_log (biz_id, handle_time) SELECT seq, UTC_TIMESTAMP() - INTERVAL 50 HOUR FROM seq_1_to_5000`)
	b := newBench(t, db, benchOptions{table: "consume_log", preset: "consume_log", mapping: ledger.MappingSpec{BizType: "pay"}})
	b.good().want(t, samples{progress: 1, rowsRead: 1})
}
