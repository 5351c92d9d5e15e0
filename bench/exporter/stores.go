package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"idemscope/internal/lab/servers"
)

const (
	table = "idempotent_record"
	// Each party has its own user, so that the server tells their times apart.
	exporterUser = "exporter"
	naiveUser    = "naive"
	rootUser     = "root"
	// batch is how many rows one INSERT makes.
	batch = 250_000
)

const createTable = `CREATE TABLE idempotent_record (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
	create_time DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, update_time DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
	UNIQUE KEY uk_biz (biz_type, biz_id))`

// store is a private MariaDB that tells how long it works for whom.
type store struct {
	*servers.MariaDB
	root *sql.DB
}

// startStore starts the server with the table, empty, in a database of its own.
func startStore(ctx context.Context) (*store, error) {
	server, err := servers.StartMariaDB(ctx, servers.MariaDBOptions{Args: []string{"--userstat=1",
		"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M"}})
	if err != nil {
		return nil, err
	}
	s := &store{MariaDB: server}
	admin, err := s.open(rootUser, "", 1)
	if err != nil {
		return nil, s.failed(err)
	}
	defer admin.Close()
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE bench"); err != nil {
		return nil, s.failed(err)
	}
	if s.root, err = s.open(rootUser, "bench", 1); err != nil {
		return nil, s.failed(err)
	}
	if _, err := s.root.ExecContext(ctx, createTable); err != nil {
		return nil, s.failed(err)
	}
	return s, nil
}

func (s *store) failed(err error) error {
	s.stop()
	return err
}

func (s *store) stop() {
	if s.root != nil {
		_ = s.root.Close()
	}
	_ = s.Stop()
}

func (s *store) open(user, database string, conns int) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "tcp", s.Addr, user, database
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

// fill inserts rows whose other columns are SQL expressions over seq, 1 to n.
func (s *store) fill(ctx context.Context, n int, status, created, updated string) error {
	for from := 1; from <= n; from += batch {
		q := fmt.Sprintf(`INSERT INTO %s (biz_type, biz_id, status, create_time, update_time)
			SELECT CONCAT('type-', seq MOD 5), LPAD(seq, 12, '0'), %s, %s, %s FROM seq_%d_to_%d`, table, status, created, updated, from, min(from+batch-1, n))
		if _, err := s.root.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	_, err := s.root.ExecContext(ctx, "ANALYZE TABLE "+table)
	return err
}

// handlerReads is how many rows the server has looked at so far.
func (s *store) handlerReads(ctx context.Context) (sum int64, err error) {
	err = s.root.QueryRowContext(ctx, `SELECT CAST(SUM(VARIABLE_VALUE) AS INT) FROM information_schema.GLOBAL_STATUS
		WHERE VARIABLE_NAME LIKE 'HANDLER\_READ\_%'`).Scan(&sum)
	return sum, err
}

// busy is how long the server has worked for a user so far.
func (s *store) busy(ctx context.Context, user string) (time.Duration, error) {
	var seconds float64
	err := s.root.QueryRowContext(ctx, "SELECT BUSY_TIME FROM information_schema.USER_STATISTICS WHERE USER = ?", user).Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), err
}
