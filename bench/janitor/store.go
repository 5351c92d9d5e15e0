package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"

	"idemscope/internal/lab/servers"
)

const (
	database = "bench"
	table    = "idempotent_record"
	base     = "base"
	archived = "idempotent_archive"
	// retain is for how long completed records stay.
	retain = 7 * 24 * time.Hour
	// month is how far back the records reach.
	month = 30 * 24 * time.Hour
	// batch is how many rows one INSERT makes.
	batch = 250_000
)

const createBase = `CREATE TABLE base (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
	create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
	UNIQUE KEY uk_biz (biz_type, biz_id))`

// store is a private MariaDB with a table that can be put back as it was.
type store struct {
	*servers.MariaDB
	db   *sql.DB
	size sizes
	// data is the server's data directory.
	data string
}

// startStore starts the server and fills the table that the others are copies of.
func startStore(ctx context.Context, size sizes) (_ *store, err error) {
	server, err := servers.StartMariaDB(ctx, servers.MariaDBOptions{Args: []string{
		"--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=1", "--max-binlog-size=256M", "--server-id=1",
		"--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1", "--innodb-buffer-pool-size=" + size.buffer, "--innodb-log-file-size=1G",
	}})
	if err != nil {
		return nil, err
	}
	s := &store{MariaDB: server, size: size}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.db, err = s.open("", 4); err != nil {
		return nil, err
	}
	if err := s.run(ctx, "CREATE DATABASE "+database, "USE "+database); err != nil {
		return nil, err
	}
	_ = s.db.Close()
	if s.db, err = s.open(database, 4); err != nil {
		return nil, err
	}
	if err := s.db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&s.data); err != nil {
		return nil, err
	}
	return s, s.fill(ctx)
}

func (s *store) stop() error {
	if s.db != nil {
		_ = s.db.Close()
	}
	return s.Stop()
}

func (s *store) open(name string, conns int) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "unix", s.Socket, "root", name
	cfg.InterpolateParams, cfg.Logger = true, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (s *store) run(ctx context.Context, statements ...string) error {
	for _, q := range statements {
		if _, err := s.db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

// fill makes records of 30 days: 94 % completed, the others failed or processing.
func (s *store) fill(ctx context.Context) error {
	if err := s.run(ctx, createBase); err != nil {
		return err
	}
	step := month.Seconds() / float64(s.size.rows)
	for from := 1; from <= s.size.rows; from += batch {
		at := fmt.Sprintf("UTC_TIMESTAMP() - INTERVAL %d SECOND + INTERVAL FLOOR(seq * %f) SECOND", int(month.Seconds()), step)
		q := fmt.Sprintf(`INSERT INTO base (biz_type, biz_id, status, create_time, update_time)
			SELECT CONCAT('type-', seq MOD 5), CONCAT('ORD', MD5(seq)), CASE WHEN seq MOD 33 = 0 THEN 1 WHEN seq MOD 33 = 1 THEN 3 ELSE 2 END, %[1]s, %[1]s
			FROM seq_%[2]d_to_%[3]d`, at, from, min(from+batch-1, s.size.rows))
		if err := s.run(ctx, q); err != nil {
			return err
		}
	}
	return s.run(ctx, "ANALYZE TABLE base")
}

// restore puts the table back as it was filled, and reads all of it, so that every
// cleanup meets the same pages in memory.
func (s *store) restore(ctx context.Context) error {
	if err := s.run(ctx, "DROP TABLE IF EXISTS "+table, "DROP TABLE IF EXISTS "+archived, "CREATE TABLE "+table+" LIKE base",
		"CREATE TABLE "+archived+" LIKE base", "ALTER TABLE "+archived+" DROP INDEX uk_biz, ADD INDEX uk_biz (biz_type, biz_id)", "ALTER TABLE "+table+" DISCARD TABLESPACE"); err != nil {
		return err
	}
	if err := s.copyBase(ctx); err != nil {
		return err
	}
	if err := s.run(ctx, "ALTER TABLE "+table+" IMPORT TABLESPACE"); err != nil {
		return err
	}
	var log, n string
	var position, ignored any
	if err := s.db.QueryRowContext(ctx, "SHOW MASTER STATUS").Scan(&log, &position, &ignored, &ignored); err != nil {
		return err
	}
	if err := s.run(ctx, "PURGE BINARY LOGS TO '"+log+"'", "ANALYZE TABLE "+table); err != nil {
		return err
	}
	for _, index := range []string{"PRIMARY", "uk_biz"} {
		if err := s.db.QueryRowContext(ctx, "SELECT COUNT(status) FROM "+table+" FORCE INDEX ("+index+")").Scan(&n); err != nil {
			return err
		}
	}
	return nil
}

// copyBase copies the files of the base table while the server leaves them alone.
func (s *store) copyBase(ctx context.Context) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "FLUSH TABLES base FOR EXPORT"); err != nil {
		return err
	}
	defer func() {
		_, unlockErr := conn.ExecContext(context.WithoutCancel(ctx), "UNLOCK TABLES")
		err = errors.Join(err, unlockErr)
	}()
	for _, kind := range []string{".ibd", ".cfg"} {
		if err := copyFile(filepath.Join(s.data, database, base+kind), filepath.Join(s.data, database, table+kind)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o660)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// old is how many rows of the original ones are left.
func (s *store) old(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table+" WHERE id <= ?", s.size.rows).Scan(&n)
	return n, err
}
