package ledger

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// turnClock gives every shard of l a clock that the test moves.
func turnClock(l *Ledger) (advance func(time.Duration)) {
	var ahead atomic.Int64
	for _, s := range l.shards {
		s.clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

var keyA = flow.Key{BizType: "t", BizID: "a"}

func TestTableThatIsMissingAtTheStartHeals(t *testing.T) {
	db := testkit.MySQL(t)
	l := openLedger(t, openServer(t, db), "idempotent_record", "idempotent_record", MappingSpec{})
	advance := turnClock(l)
	f := l.Find(soon(t), keyA)
	if f.State != flow.Error || !strings.Contains(f.Reason.EN, db.Name+".idempotent_record: there is no such table") || !strings.Contains(f.Reason.ZH, "表不存在") {
		t.Fatalf("%s %s", f.State, f.Reason.EN)
	}
	db.Exec(t, idempotentRecord)
	insertRecord(t, db, "t", "a", 1)
	if f := l.Find(soon(t), keyA); f.State != flow.Error {
		t.Errorf("the schema was read again within 10 s: %s", f.State)
	}
	advance(freshBroken)
	one(t, l, "t", "a")
}

func TestTableThatVanishesAndReturns(t *testing.T) {
	db, l := records(t)
	advance := turnClock(l)
	insertRecord(t, db, "t", "a", 1)
	one(t, l, "t", "a")
	db.Exec(t, "RENAME TABLE idempotent_record TO elsewhere")
	if f := l.Find(soon(t), keyA); f.State != flow.Error || !strings.Contains(f.Reason.EN, "no such table") {
		t.Errorf("%s %s", f.State, f.Reason.EN)
	}
	if _, err := l.Shards()[0].MaxID(soon(t)); err == nil || !strings.Contains(Explain(err).EN, "no such table") {
		t.Errorf("%v", err)
	}
	db.Exec(t, "RENAME TABLE elsewhere TO idempotent_record")
	advance(freshBroken)
	one(t, l, "t", "a")
}

func TestChangedTablesAreReadAgain(t *testing.T) {
	db, l := records(t)
	advance := turnClock(l)
	insertRecord(t, db, "t", "a", 1)
	one(t, l, "t", "a")
	// The forced index goes, another takes its place: the same look-up must work at once.
	db.Exec(t, "ALTER TABLE idempotent_record DROP INDEX uk_biz, ADD UNIQUE KEY other (biz_id, biz_type)")
	one(t, l, "t", "a")
	db.Exec(t, "ALTER TABLE idempotent_record CHANGE status state TINYINT")
	if f := l.Find(soon(t), keyA); f.State != flow.Error || !strings.Contains(f.Reason.EN, "no column status (status)") {
		t.Errorf("%s %s", f.State, f.Reason.EN)
	}
	db.Exec(t, "ALTER TABLE idempotent_record CHANGE state status TINYINT")
	advance(freshBroken)
	one(t, l, "t", "a")
	db.Exec(t, "ALTER TABLE idempotent_record MODIFY biz_id VARCHAR(2) NOT NULL")
	advance(freshUsable)
	if f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "abc"}); !f.TooLong || f.Width != 2 {
		t.Errorf("%+v", f)
	}
	db.Exec(t, "ALTER TABLE idempotent_record DROP INDEX other")
	if f := l.Find(soon(t), keyA); f.State != flow.Error || !strings.Contains(f.Reason.EN, "no index begins") {
		t.Errorf("%s %s", f.State, f.Reason.EN)
	}
	db.Exec(t, "ALTER TABLE idempotent_record ADD INDEX (biz_id)")
	advance(freshBroken)
	one(t, l, "t", "a")
}

func TestOneLedgerDownLeavesTheOthers(t *testing.T) {
	db, good := records(t)
	insertRecord(t, db, "t", "a", 1)
	bad := openLedger(t, good.server, "nowhere", "idempotent_record", MappingSpec{})
	for range 3 {
		if f := bad.Find(soon(t), keyA); f.State != flow.Error {
			t.Errorf("%s", f.State)
		}
		one(t, good, "t", "a")
	}
}

func sharded(t *testing.T, n int, skip ...int) (*testkit.Database, *Ledger) {
	t.Helper()
	db := testkit.MySQL(t)
	missing := map[int]bool{}
	for _, i := range skip {
		missing[i] = true
	}
	for i := range n {
		if !missing[i] {
			db.Exec(t, strings.Replace(idempotentRecord, "idempotent_record", fmt.Sprintf("idempotent_record_%02d", i), 1))
		}
	}
	return db, openLedger(t, openServer(t, db), fmt.Sprintf("idempotent_record_{00..%02d}", n-1), "idempotent_record", MappingSpec{})
}

func insertShard(t *testing.T, db *testkit.Database, shard int, id string) {
	t.Helper()
	db.Exec(t, fmt.Sprintf("INSERT INTO idempotent_record_%02d (biz_type, biz_id, status, create_time, update_time) VALUES ('t', ?, 2, NOW(), NOW())", shard), id)
}

func TestShards(t *testing.T) {
	db, l := sharded(t, 16)
	insertShard(t, db, 3, "a")
	insertShard(t, db, 15, "b")
	insertShard(t, db, 7, "twice")
	insertShard(t, db, 8, "twice")
	insertShard(t, db, 2, "TWICE")
	if len(l.Shards()) != 16 || l.Shards()[3].Name() != db.Name+".idempotent_record_03" || l.Source() != "mysql main, "+db.Name+".idempotent_record_{00..15} (16 shards)" {
		t.Errorf("%s, %d shards", l.Source(), len(l.Shards()))
	}
	if r := one(t, l, "t", "a"); r.Table != db.Name+".idempotent_record_03" {
		t.Errorf("%+v", r)
	}
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "twice"})
	if len(f.Rows) != 3 || !f.Rows[0].Exact || !f.Rows[1].Exact || f.Rows[2].Exact || f.Rows[0].Table == f.Rows[1].Table || strings.Count(f.Command, "SELECT") != 3 {
		t.Errorf("%+v", f)
	}
	f = l.Find(soon(t), flow.Key{BizType: "t", BizID: "none"})
	if f.State != flow.Absent || !strings.Contains(f.Command, "the same for 15 more shards") || f.Coverage[0].EN != "16 of 16 shards were read" {
		t.Errorf("%+v", f)
	}
}

func TestOneMissingShardIsNeverAbsence(t *testing.T) {
	db, l := sharded(t, 8, 5)
	insertShard(t, db, 3, "a")
	f := l.Find(soon(t), flow.Key{BizType: "t", BizID: "none"})
	if f.State != flow.Unknown || !strings.Contains(f.Reason.EN, db.Name+".idempotent_record_05: there is no such table") || f.Coverage[0].EN != "7 of 8 shards were read" {
		t.Errorf("%s %s %v", f.State, f.Reason.EN, f.Coverage)
	}
	if f = l.Find(soon(t), keyA); f.State != flow.Unknown || len(f.Rows) != 1 {
		t.Errorf("%s %+v", f.State, f.Rows)
	}
	expectProblems(t, l.Check(soon(t)), "missing_table: idempotent_record_05", "folds_case: idempotent_record_00 and 6 more shards: column biz_type", "folds_case: column biz_id", "ignores_padding: column biz_type", "ignores_padding: column biz_id")
	_, none := sharded(t, 3, 0, 1, 2)
	if f := none.Find(soon(t), keyA); f.State != flow.Error || !strings.Contains(f.Reason.EN, "and 2 more shards") {
		t.Errorf("%s %s", f.State, f.Reason.EN)
	}
}

func TestShardsInSeveralDatabases(t *testing.T) {
	db := testkit.MySQL(t)
	for i := range 2 {
		name := fmt.Sprintf("%s_%d", db.Name, i)
		db.Exec(t, "CREATE DATABASE "+name)
		t.Cleanup(func() { db.Exec(t, "DROP DATABASE "+name) })
		db.Exec(t, strings.Replace(consumeLog, "TABLE ", "TABLE "+name+".", 1))
	}
	db.Exec(t, "INSERT INTO "+db.Name+"_1.consume_log VALUES ('a', NOW())")
	l := openLedger(t, openServer(t, db), db.Name+"_{0..1}.consume_log", "consume_log", MappingSpec{BizType: "t"})
	if r := one(t, l, "t", "a"); r.Table != db.Name+"_1.consume_log" {
		t.Errorf("%+v", r)
	}
}

func TestManyLookUpsAtOnce(t *testing.T) {
	db, l := sharded(t, 4)
	insertShard(t, db, 1, "a")
	var wg sync.WaitGroup
	var wrong atomic.Int32
	for range 50 {
		wg.Go(func() {
			if f := l.Find(soon(t), keyA); f.State != flow.Found || len(f.Rows) != 1 {
				wrong.Add(1)
			}
		})
	}
	wg.Wait()
	if wrong.Load() != 0 {
		t.Errorf("%d wrong answers", wrong.Load())
	}
	if open := l.server.db.Stats().OpenConnections; open > defaultConns {
		t.Errorf("%d connections", open)
	}
}
