package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"idemscope/internal/archive"
	"idemscope/internal/ledger"
	"idemscope/janitor"
)

// cleanup is one way to clean the table.
type cleanup struct {
	name string
	// run cleans for about that long. It returns how long each transaction took,
	// where that is known.
	run func(ctx context.Context, s *store, length time.Duration) ([]time.Duration, error)
}

var (
	fullSpeed   = cleanup{"janitor", ours(fullDuty, nowhere)}
	defaultDuty = cleanup{"janitor with its pauses", ours(0, nowhere)}
	toTable     = cleanup{"janitor to a table", ours(fullDuty, intoTable)}
	toFile      = cleanup{"janitor to files", ours(fullDuty, intoFiles)}
	bareLoop    = cleanup{"range deletes", bare("DELETE FROM " + table + oldOnes)}
	bareMoves   = cleanup{"range copies and deletes", bare("INSERT INTO "+archived+" SELECT * FROM "+table+oldOnes+" FOR UPDATE", "DELETE FROM "+table+oldOnes)}
	rowByRow    = cleanup{"pt-archiver", ptArchiver("--purge", "--txn-size", "2000")}
	bulkDelete  = cleanup{"pt-archiver --bulk-delete", ptArchiver("--purge", "--bulk-delete", "--commit-each")}
	ptToFile    = cleanup{"pt-archiver --file", ptArchiver("--file", "%D.%t.%d", "--bulk-delete", "--commit-each")}
	ptToTable   = cleanup{"pt-archiver --dest", ptArchiver("--dest", "t="+archived, "--bulk-insert", "--bulk-delete", "--commit-each")}
)

// oldOnes are the rows that may go, as a bare loop names them.
const oldOnes = " WHERE id > ? AND id <= ? AND status = 2 AND update_time < ?"

// where the rows go.
type where int

const (
	nowhere where = iota
	intoTable
	intoFiles
)

// timed is a session that notes how long each transaction takes.
type timed struct {
	janitor.Session
	mu    *sync.Mutex
	times *[]time.Duration
}

func (t timed) Sweep(ctx context.Context, b ledger.SweepBatch, cutoff time.Time) (ledger.SweepBatch, error) {
	began := time.Now()
	swept, err := t.Session.Sweep(ctx, b, cutoff)
	t.mu.Lock()
	defer t.mu.Unlock()
	*t.times = append(*t.times, time.Since(began))
	return swept, err
}

// ours runs the janitor as the service does.
func ours(duty int, to where) func(context.Context, *store, time.Duration) ([]time.Duration, error) {
	return func(ctx context.Context, s *store, length time.Duration) (times []time.Duration, err error) {
		report, err := s.janitor(ctx, length, duty, to, &times)
		if err == nil && report.Ended != janitor.OutOfTime && report.Ended != janitor.Done {
			err = fmt.Errorf("the janitor ended with %s: %s", report.Ended, report.Why.EN)
		}
		return times, err
	}
}

// janitor runs one sweep, of limited length unless that is 0.
func (s *store) janitor(ctx context.Context, length time.Duration, duty int, to where, times *[]time.Duration) (janitor.Report, error) {
	sweeper, err := ledger.NewSweeper(s.options())
	if err != nil {
		return janitor.Report{}, err
	}
	defer sweeper.Close()
	var mu sync.Mutex
	open := janitor.Plainly(sweeper.Open)
	if to == intoFiles {
		dir, err := os.MkdirTemp("", "idemscope-bench-")
		if err != nil {
			return janitor.Report{}, err
		}
		defer os.RemoveAll(dir)
		open = janitor.IntoFiles(sweeper.Open, archive.Options{Directory: dir, Compression: archive.Zstd, MaxBytes: 256e6})
	}
	return s.janitorOn(ctx, length, duty, to, func(ctx context.Context, t *ledger.SweepTable) (janitor.Session, error) {
		session, err := open(ctx, t)
		if err != nil {
			return nil, err
		}
		return timed{session, &mu, times}, nil
	})
}

func (s *store) options() ledger.ServerOptions {
	return ledger.ServerOptions{Name: "bench", Socket: s.Socket, Database: database, User: "root", MaxConns: 2, StatementLimit: time.Minute}
}

// fullDuty is no pause at all; 0 stands for the default.
const fullDuty = 100

// batchOf is the largest batch: what is advised for full speed, else the default
// of the configuration.
func batchOf(duty int) int {
	if duty == fullDuty {
		return 4000
	}
	return 500
}

// janitorOn runs one sweep over the sessions that open returns.
func (s *store) janitorOn(ctx context.Context, length time.Duration, duty int, to where, open func(context.Context, *ledger.SweepTable) (janitor.Session, error)) (janitor.Report, error) {
	server, err := ledger.NewServer(s.options())
	if err != nil {
		return janitor.Report{}, err
	}
	defer server.Close()
	mapping, err := ledger.NewMapping("idempotent_record", ledger.MappingSpec{})
	if err != nil {
		return janitor.Report{}, err
	}
	l, err := ledger.New(ledger.Options{Name: "bench", Server: server, Table: table, Mapping: mapping})
	if err != nil {
		return janitor.Report{}, err
	}
	name := ""
	if to == intoTable {
		name = archived
	}
	tables, err := l.SweepTables(name)
	if err != nil {
		return janitor.Report{}, err
	}
	if to == intoFiles {
		tables[0].IntoFiles("files")
	}
	task := janitor.Task{
		Name: "bench", Ledger: "bench", Tables: tables, Retain: retain, Batch: batchOf(duty), RunTime: length,
		Limits: janitor.Limits{MaxThreadsRunning: 50, MaxHistoryLength: 100_000, Duty: duty}, Open: open,
	}
	j, err := janitor.New(janitor.Options{Tasks: []janitor.Task{task}, Metrics: janitor.NewMetrics(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return janitor.Report{}, err
	}
	return j.Sweep(ctx, task.Name, false)
}

// bareStep is how many ids the bare loops take in one transaction.
const bareStep = 2000

// bare is the least that a cleanup can do: no look before a batch, and nothing is
// counted behind it. Each of the statements takes the ids and the cutoff.
func bare(statements ...string) func(context.Context, *store, time.Duration) ([]time.Duration, error) {
	return func(ctx context.Context, s *store, length time.Duration) (times []time.Duration, err error) {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"); err != nil {
			return nil, err
		}
		defer func() {
			_, resetErr := conn.ExecContext(context.WithoutCancel(ctx), "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
			err = errors.Join(err, resetErr)
		}()
		var cutoff string
		if err := conn.QueryRowContext(ctx, "SELECT UTC_TIMESTAMP() - INTERVAL ? SECOND", int(retain.Seconds())).Scan(&cutoff); err != nil {
			return nil, err
		}
		began := time.Now()
		for after := 0; after < s.size.rows && time.Since(began) < length; after += bareStep {
			started := time.Now()
			if err := inOne(ctx, conn, statements, after, after+bareStep, cutoff); err != nil {
				return nil, err
			}
			times = append(times, time.Since(started))
		}
		return times, nil
	}
}

// inOne runs the statements in one transaction, which a single one is by itself.
func inOne(ctx context.Context, conn *sql.Conn, statements []string, args ...any) error {
	if len(statements) == 1 {
		_, err := conn.ExecContext(ctx, statements[0], args...)
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, q := range statements {
		if _, err := tx.ExecContext(ctx, q, args...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// ptArchiver runs Percona's tool on the same rows.
func ptArchiver(mode ...string) func(context.Context, *store, time.Duration) ([]time.Duration, error) {
	return func(ctx context.Context, s *store, length time.Duration) ([]time.Duration, error) {
		args := append([]string{
			"--no-version-check", "--no-check-charset", "--primary-key-only", "--limit", "2000", "--run-time", fmt.Sprintf("%ds", int(length.Seconds())),
			"--source", "S=" + s.Socket + ",u=root,D=" + database + ",t=" + table + ",A=utf8mb4,L=1",
			"--where", fmt.Sprintf("status=2 AND update_time < UTC_TIMESTAMP() - INTERVAL %d SECOND", int(retain.Seconds())),
		}, mode...)
		if mode[0] != "--purge" { // a copy needs all columns
			args = append(args[:2], args[3:]...)
		}
		dir, err := os.MkdirTemp("", "idemscope-bench-") // for a file, if it writes one
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		command := exec.CommandContext(ctx, "pt-archiver", args...)
		command.Dir = dir
		said, err := command.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("pt-archiver %s: %w: %s", strings.Join(mode, " "), err, said)
		}
		return nil, err
	}
}
