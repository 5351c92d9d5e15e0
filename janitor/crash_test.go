package janitor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

// childEnv passes the work of a child process, as JSON of child.
const childEnv = "IDEMSCOPE_JANITOR_CHILD"

// child is a sweep that dies on the way.
type child struct {
	Addr, Database, Archive, Files string
	DieAfter                       time.Duration // from the first batch on
}

// sweepAsChild kills its own process as a power cut would: nothing is cleaned up.
func sweepAsChild() {
	var c child
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &c); err != nil {
		panic(err)
	}
	task, _, err := place{addr: c.Addr, database: c.Database, table: "idempotent_record", preset: "idempotent_record", archive: c.Archive, files: c.Files}.open()
	if err != nil {
		panic(err)
	}
	task.Batch = 100
	j, err := New(Options{Tasks: []Task{task}, Metrics: NewMetrics(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	armed := false
	j.pause = func(context.Context, time.Duration) {
		if !armed {
			armed = true
			time.AfterFunc(c.DieAfter, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
		}
	}
	if r := j.sweep(context.Background(), &j.tasks[0], ByCommand); r.Ended != Done {
		panic(fmt.Sprint(r.Ended, r.Why.EN))
	}
}

// run starts the child and reports whether it was killed.
func (c child) run(t *testing.T) (killed bool) {
	t.Helper()
	work, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(work))
	out, err := cmd.CombinedOutput()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && (!ok || status.Signal() != syscall.SIGKILL) {
		t.Fatalf("the child failed by itself: %v\n%s", err, out)
	}
	return err != nil
}

// TestAKillAtAnyPointLosesAndDoublesNothing kills a hundred sweeps, a third of
// them for each way to let rows go.
func TestAKillAtAnyPointLosesAndDoublesNothing(t *testing.T) {
	const perMode = 34
	for _, mode := range []string{"delete", "to a table", "to files"} {
		t.Run(mode, func(t *testing.T) {
			db := testkit.MySQL(t)
			db.Exec(t, record)
			p := recordsIn(db)
			switch mode {
			case "to a table":
				db.Exec(t, recordArchive)
				db.Exec(t, plainArchive)
				p.archive = "idempotent_record_archive"
			case "to files":
				p.files = t.TempDir()
			}
			fill(t, db, 40_000, 2, 30)
			db.Exec(t, "UPDATE idempotent_record SET status = 1 + id % 3 * 2 WHERE id % 7 = 0") // 1, 3 or 5
			fill(t, db, 100, 2, 1)
			const candidates = "status = 2 AND update_time < UTC_TIMESTAMP() - INTERVAL 7 DAY"
			expired := rowsOf(t, db.DB, "idempotent_record", candidates)
			rest := rowsOf(t, db.DB, "idempotent_record", "NOT ("+candidates+")")
			kills := 0
			for kills < perMode {
				c := child{Addr: db.Addr, Database: db.Name, Archive: p.archive, Files: p.files, DieAfter: time.Duration(rand.Int64N(int64(15 * time.Millisecond)))}
				if !c.run(t) {
					break
				}
				kills++
			}
			if kills < perMode {
				t.Errorf("only %d sweeps were killed", kills)
			}
			sweepNow(t, hire(t, p.task(t)), Done)
			compareAfterKills(t, db, p, expired, rest)
		})
	}
}

// compareAfterKills checks that every expired row is where it belongs, and every
// other row where it was, byte for byte.
func compareAfterKills(t *testing.T, db *testkit.Database, p place, expired, rest map[string]string) {
	t.Helper()
	now := rowsOf(t, db.DB, "idempotent_record", "1 = 1")
	if checksum(now) != checksum(rest) || len(now) != len(rest) {
		t.Errorf("%d rows are left, want %d alike", len(now), len(rest))
	}
	if !p.keeps() {
		return
	}
	kept := p.archived(t, db)
	if checksum(kept) != checksum(expired) || len(kept) != len(expired) {
		t.Errorf("%d rows are archived, want %d alike", len(kept), len(expired))
		for id, row := range kept {
			t.Fatalf("one of them is %s, want %s", row, expired[id])
		}
	}
}
