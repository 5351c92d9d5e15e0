package janitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// meddler is a real session in whose way somebody steps.
type meddler struct {
	Session
	// before runs before a batch is changed; an error of it is the answer.
	before func(b ledger.SweepBatch) error
}

func (m meddler) Sweep(ctx context.Context, b ledger.SweepBatch, cutoff time.Time) (ledger.SweepBatch, error) {
	if err := m.before(b); err != nil {
		return b, err
	}
	return m.Session.Sweep(ctx, b, cutoff)
}

// meddle lets before run ahead of every change of the task.
func meddle(task *Task, before func(b ledger.SweepBatch) error) {
	open := task.Open
	task.Open = func(ctx context.Context, t *ledger.SweepTable) (Session, error) {
		s, err := open(ctx, t)
		if err != nil {
			return nil, err
		}
		return meddler{s, before}, nil
	}
}

// ready makes a table with n candidates, ten younger rows, and an archive if wanted.
func ready(t *testing.T, archive bool, n int) (*testkit.Database, place) {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, record)
	fill(t, db, n, 2, 30)
	fill(t, db, 10, 2, 1)
	p := recordsIn(db)
	if archive {
		db.Exec(t, recordArchive)
		db.Exec(t, plainArchive)
		p.archive = "idempotent_record_archive"
	}
	return db, p
}

// everyWay runs a test for deleting, for archiving to a table, and to files.
func everyWay(t *testing.T, n int, test func(t *testing.T, db *testkit.Database, p place)) {
	for _, way := range []string{"delete", "table", "files"} {
		t.Run(way, func(t *testing.T) {
			db, p := ready(t, way == "table", n)
			if way == "files" {
				p.files = t.TempDir()
			}
			test(t, db, p)
		})
	}
}

func TestRowsThatChangeBetweenLookAndDeleteStay(t *testing.T) {
	everyWay(t, 10, func(t *testing.T, db *testkit.Database, p place) {
		task := p.task(t)
		meddle(&task, func(ledger.SweepBatch) error {
			db.Exec(t, "UPDATE idempotent_record SET status = 1 WHERE id = 1")
			db.Exec(t, "UPDATE idempotent_record SET update_time = UTC_TIMESTAMP() WHERE id = 2")
			db.Exec(t, "DELETE FROM idempotent_record WHERE id IN (3, 4)")
			db.Exec(t, "INSERT INTO idempotent_record (biz_id, biz_type, status, create_time) VALUES ('ORD4', 'order_paid', 1, UTC_TIMESTAMP())")
			db.Exec(t, "UPDATE idempotent_record SET status = 3 WHERE id = 5")
			return nil
		})
		r := sweepNow(t, hire(t, task), Done)
		if r.Gone() != 5 || r.Tables[0].Stayed[string(ledger.InProcessing)] != 1 || r.Tables[0].Stayed[string(ledger.HasFailed)] != 1 {
			t.Errorf("%+v", r.Tables[0])
		}
		wantIDs(t, "left", ids(t, db.DB, "idempotent_record")[:4], 1, 2, 5, 11)
		if n := count(t, db.DB, "SELECT COUNT(*) FROM idempotent_record WHERE biz_id = 'ORD4'"); n != 1 {
			t.Error("the row that was inserted anew is gone")
		}
		if p.keeps() && len(p.archived(t, db)) != 5 {
			t.Errorf("archived: %v", p.archived(t, db))
		}
	})
}

func TestASecondJanitorIsRefusedAndTold(t *testing.T) {
	_, p := ready(t, false, 100)
	task := p.task(t)
	first, err := task.Open(soon(t), task.Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	r := sweepNow(t, hire(t, p.task(t)), Taken)
	if r.Exit() != 4 || !strings.Contains(r.Why.EN, fmt.Sprintf("KILL %d", first.(*ledger.SweepSession).Connection())) {
		t.Errorf("exit %d: %s", r.Exit(), r.Why.EN)
	}
	first.Close()
	if r := sweepNow(t, hire(t, p.task(t)), Done); r.Gone() != 100 {
		t.Errorf("%d rows", r.Gone())
	}
}

func TestAServerThatBecomesReadOnlyEndsTheRun(t *testing.T) {
	db, p := ready(t, false, 2000)
	task := p.task(t)
	meddle(&task, func(ledger.SweepBatch) error {
		db.Exec(t, "SET GLOBAL read_only = 1")
		return nil
	})
	defer db.Exec(t, "SET GLOBAL read_only = 0")
	task.Batch = 400
	r := sweepNow(t, hire(t, task), Refused)
	// Its user may write nonetheless, so one batch went; the next look saw it.
	if r.Gone() != 100 || !strings.Contains(r.Why.EN, "read-only") || r.Exit() != 1 {
		t.Errorf("exit %d, %d rows: %s", r.Exit(), r.Gone(), r.Why.EN)
	}
	if r := sweepNow(t, hire(t, p.task(t)), Refused); r.Exit() != 4 || r.Plan.Refusals[0].Code != "read_only" {
		t.Errorf("exit %d: %+v", r.Exit(), r.Plan.Refusals)
	}
}

func TestAKilledConnectionIsReplaced(t *testing.T) {
	everyWay(t, 1000, func(t *testing.T, db *testkit.Database, p place) {
		task := p.task(t)
		task.Batch = 400
		open, kills := task.Open, 0
		task.Open = func(ctx context.Context, table *ledger.SweepTable) (Session, error) {
			s, err := open(ctx, table)
			if err != nil {
				return nil, err
			}
			return meddler{s, func(ledger.SweepBatch) error {
				if kills++; kills%3 == 0 {
					db.Exec(t, fmt.Sprintf("KILL %d", s.(*ledger.SweepSession).Connection()))
				}
				return nil
			}}, nil
		}
		r := sweepNow(t, hire(t, task), Done)
		if r.Gone() != 1000 || r.Tables[0].Retries == 0 || r.Tables[0].Unconfirmed != 0 {
			t.Errorf("%+v", r.Tables[0])
		}
		if p.keeps() && len(p.archived(t, db)) != 1000 {
			t.Error("not every row is archived")
		}
	})
}

func TestALostAnswerToACommitIsReadAndNotAssumed(t *testing.T) {
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed %t", committed), func(t *testing.T) {
			everyWay(t, 300, func(t *testing.T, db *testkit.Database, p place) {
				wire := newCommitCutter(t, db.Addr, committed)
				p.addr = wire.addr
				task := p.task(t)
				task.Batch = 400
				r := sweepNow(t, hire(t, task), Done)
				if !wire.cut.Load() || r.Gone() != 300 || r.Tables[0].Retries != 1 || r.Tables[0].Unconfirmed != 0 {
					t.Errorf("cut %t, %+v", wire.cut.Load(), r.Tables[0])
				}
				if n := len(ids(t, db.DB, "idempotent_record")); n != 10 {
					t.Errorf("%d rows left", n)
				}
				if p.keeps() && len(p.archived(t, db)) != 300 {
					t.Error("not every row is archived once")
				}
			})
		})
	}
}

// commitCutter is a wire that breaks at the first COMMIT: before the server has
// it, or after it has answered.
type commitCutter struct {
	addr   string
	passes bool
	cut    atomic.Bool
}

func newCommitCutter(t *testing.T, target string, passes bool) *commitCutter {
	t.Helper()
	c := &commitCutter{passes: passes}
	c.addr = newWire(t, target, c.question)
	return c
}

func (c *commitCutter) question(q []byte, client, server net.Conn) (goesOn bool) {
	if !bytes.Contains(q, []byte("COMMIT")) || bytes.Contains(q, []byte("COMMITTED")) || !c.cut.CompareAndSwap(false, true) {
		return true
	}
	if c.passes {
		_ = client.Close() // the answer finds nobody
		_, _ = server.Write(q)
		_, _ = server.Read(make([]byte, 1<<16))
	}
	return false
}

// TestARowThatComesOfAgeBehindTheCopyIsArchivedWithTheNextTry: it was not locked
// when the others were, and is deleted only after it has been archived. Those
// that were copied are locked until they are deleted.
func TestARowThatComesOfAgeBehindTheCopyIsArchivedWithTheNextTry(t *testing.T) {
	everyWay(t, 300, func(t *testing.T, db *testkit.Database, p place) {
		db.Exec(t, "UPDATE idempotent_record SET status = 1 WHERE id IN (7, 8)")
		var changed atomic.Bool
		var locked uint16
		p.addr = newWire(t, db.Addr, func(q []byte, _, _ net.Conn) bool {
			if bytes.Contains(q, []byte("DELETE FROM")) && changed.CompareAndSwap(false, true) {
				db.Exec(t, "UPDATE idempotent_record SET status = 2 WHERE id = 7")
				_, err := db.DB.Exec("SELECT id FROM idempotent_record WHERE id = 9 FOR UPDATE NOWAIT")
				if refused := (*mysql.MySQLError)(nil); errors.As(err, &refused) {
					locked = refused.Number
				}
			}
			return true
		})
		r := sweepNow(t, hire(t, p.task(t)), Done)
		if retries := r.Tables[0].Retries; !changed.Load() || r.Gone() != 299 || p.keeps() != (retries > 0) {
			t.Errorf("changed %t, %d retries, %+v", changed.Load(), retries, r.Tables[0])
		}
		if wanted := map[bool]uint16{true: 1205}[p.keeps()]; locked != wanted {
			t.Errorf("to lock a row that was copied answers %d, want %d", locked, wanted)
		}
		wantIDs(t, "left", ids(t, db.DB, "idempotent_record")[:1], 8)
		if p.keeps() && len(p.archived(t, db)) != 299 {
			t.Errorf("%d rows archived", len(p.archived(t, db)))
		}
	})
}

func TestAnArchiveAlteredInTheMiddleEndsTheRunAndLosesNothing(t *testing.T) {
	for name, alter := range map[string]string{
		"narrower":        "MODIFY biz_id VARCHAR(100) NOT NULL",
		"less precise":    "MODIFY update_time DATE NULL",
		"without column":  "DROP COLUMN update_time",
		"with a must":     "ADD COLUMN why INT NOT NULL",
		"another charset": "MODIFY biz_id VARCHAR(128) CHARACTER SET latin1 NOT NULL",
	} {
		t.Run(name, func(t *testing.T) {
			db, p := ready(t, true, 1000)
			before := rowsOf(t, db.DB, "idempotent_record", "1 = 1")
			task := p.task(t)
			task.Batch = 400
			batches := 0
			meddle(&task, func(ledger.SweepBatch) error {
				if batches++; batches == 3 {
					db.Exec(t, "ALTER TABLE idempotent_record_archive "+alter+", FORCE")
				}
				return nil
			})
			r := sweepNow(t, hire(t, task), Refused)
			here := ids(t, db.DB, "idempotent_record")
			there := ids(t, db.DB, p.archive)
			if len(here)+len(there) != len(before) || r.Gone() != int64(len(there)) || r.Gone() == 0 {
				t.Errorf("%d here, %d archived, %d counted, of %d", len(here), len(there), r.Gone(), len(before))
			}
			if again := sweepNow(t, hire(t, p.task(t)), Refused); again.Plan.Refusals[0].Code != "archive_differs" || !strings.Contains(again.Why.EN, "ALTER TABLE") {
				t.Errorf("afterwards: %+v", again.Plan.Refusals)
			}
		})
	}
}

func TestAnArchiveThatHoldsTheIDAlreadyEndsTheRunAndLosesNothing(t *testing.T) {
	db, p := ready(t, true, 50)
	db.Exec(t, "INSERT INTO idempotent_record_archive (id, biz_id, biz_type, create_time) VALUES (7, 'other', 'x', '2020-01-01')")
	r := sweepNow(t, hire(t, p.task(t)), Refused)
	if r.Gone() != 0 || len(ids(t, db.DB, "idempotent_record")) != 60 || len(ids(t, db.DB, p.archive)) != 1 {
		t.Errorf("%+v", r.Tables[0])
	}
}

func TestARowThatIsLockedForAMomentIsWaitedFor(t *testing.T) {
	everyWay(t, 500, func(t *testing.T, db *testkit.Database, p place) {
		holder, err := db.DB.Connx(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close()
		exec := func(q string) {
			if _, err := holder.ExecContext(soon(t), q); err != nil {
				t.Fatal(err)
			}
		}
		exec("START TRANSACTION")
		exec("SELECT * FROM idempotent_record WHERE id = 77 FOR UPDATE")
		task := p.task(t)
		tries := 0
		meddle(&task, func(ledger.SweepBatch) error {
			if tries++; tries == 2 {
				exec("COMMIT")
			}
			return nil
		})
		if r := sweepNow(t, hire(t, task), Done); r.Gone() != 500 || r.Tables[0].Retries != 1 {
			t.Errorf("%+v", r.Tables[0])
		}
	})
}

func TestARowThatIsLockedForTooLongDoesNotHoldUpTheRest(t *testing.T) {
	_, p := ready(t, false, 1000)
	task := p.task(t)
	meddle(&task, func(b ledger.SweepBatch) error {
		if b.After < 777 && b.To >= 777 {
			return &mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded"}
		}
		return nil
	})
	r := sweepNow(t, hire(t, task), Done)
	locked := r.Tables[0].Stayed[reasonLocked]
	if locked == 0 || locked > smallest || r.Gone() != 1000-locked {
		t.Errorf("%+v", r.Tables[0])
	}
}

func TestAStopEndsTheStatementOnTheServer(t *testing.T) {
	db, p := ready(t, false, 500)
	holder, err := db.DB.Connx(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	for _, q := range []string{"START TRANSACTION", "SELECT * FROM idempotent_record WHERE id = 77 FOR UPDATE"} {
		if _, err := holder.ExecContext(soon(t), q); err != nil {
			t.Fatal(err)
		}
	}
	j := hire(t, p.task(t))
	ctx, stop := context.WithCancel(soon(t))
	ended := make(chan Report, 1)
	go func() { ended <- j.sweep(ctx, &j.tasks[0], ByCommand) }()
	waiting := func() bool {
		return count(t, db.DB, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DELETE FROM `"+db.Name+"`%'") > 0
	}
	testkit.Eventually(t, 20*time.Second, waiting, "no DELETE waits")
	stop()
	if r := <-ended; r.Ended != Stopped || r.Gone() != 0 {
		t.Errorf("%s, %d rows", r.Ended, r.Gone())
	}
	testkit.Eventually(t, time.Second, func() bool { return !waiting() }, "the DELETE goes on")
	if _, err := holder.ExecContext(soon(t), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if r := sweepNow(t, hire(t, p.task(t)), Done); r.Gone() != 500 {
		t.Errorf("%d rows", r.Gone())
	}
}

func TestLimitsEndARunAndTheNextOneGoesOn(t *testing.T) {
	_, p := ready(t, false, 1000)
	task := p.task(t)
	task.Rows = 130
	j := hire(t, task)
	if r := sweepNow(t, j, OutOfRows); r.Gone() != 130 || r.Exit() != 1 {
		t.Errorf("%d rows, exit %d", r.Gone(), r.Exit())
	}
	j.tasks[0].Rows, j.tasks[0].RunTime = 0, time.Nanosecond
	if r := sweepNow(t, j, OutOfTime); r.Gone() != 0 {
		t.Errorf("%d rows", r.Gone())
	}
	j.tasks[0].RunTime = 0
	if r := sweepNow(t, j, Done); r.Gone() != 870 || r.Why != (flow.Text{}) {
		t.Errorf("%d rows", r.Gone())
	}
}

func TestASparseTableIsWalkedByRowsNotByIDs(t *testing.T) {
	db, p := ready(t, false, 1000)
	db.Exec(t, "UPDATE idempotent_record SET id = id * 1000000007 ORDER BY id DESC")
	r := sweepNow(t, hire(t, p.task(t)), Done)
	if r.Gone() != 1000 || r.Tables[0].Batches > 10 {
		t.Errorf("%+v", r.Tables[0])
	}
}
