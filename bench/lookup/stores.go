package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/lab/servers"
)

// The two ledgers, each a database with the same table, and the biz_type of each.
const (
	largeLedger = "large"
	smallLedger = "small"
	table       = "idempotent_record"
	queue       = "order.paid"
	// batch is how many rows one INSERT makes.
	batch = 250_000
	// marked is how many keys of each ledger have a marker, locked how many a lock.
	marked, locked = 10_000, 100
	// messages wait in the queue.
	messages = 5
	monitor  = "monitor"
)

var ledgers = []string{largeLedger, smallLedger}

const createTable = `CREATE TABLE idempotent_record (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL,
	create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
	UNIQUE KEY uk_biz (biz_type, biz_id))`

// stores are the private servers.
type stores struct {
	mariadb *servers.MariaDB
	redis   *servers.Redis
	rabbit  *servers.RabbitMQ
	// stops are called in reverse order.
	stops []func() error
}

// startStores starts the servers and fills them.
func startStores(ctx context.Context, size sizes) (*stores, error) {
	s := &stores{}
	for _, step := range []func(context.Context, sizes) error{s.startMariaDB, s.startRedis, s.startRabbitMQ} {
		if err := step(ctx, size); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

func (s *stores) stop() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	return errors.Join(errs...)
}

func (s *stores) startMariaDB(ctx context.Context, size sizes) (err error) {
	s.mariadb, err = servers.StartMariaDB(ctx, servers.MariaDBOptions{Args: []string{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M"}})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, s.mariadb.Stop)
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.MultiStatements = "tcp", s.mariadb.Addr, "root", true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for ledger, rows := range map[string]int{largeLedger: size.large, smallLedger: size.small} {
		if _, err := db.ExecContext(ctx, "CREATE DATABASE "+ledger+"; USE "+ledger+"; "+createTable); err != nil {
			return err
		}
		if err := fill(ctx, db, ledger, rows); err != nil {
			return fmt.Errorf("fill the %s ledger: %w", ledger, err)
		}
	}
	return nil
}

// fill inserts rows with the ids 1 to n: one in a hundred has been processing for
// ten hours, one has failed, the others are completed.
func fill(ctx context.Context, db *sql.DB, ledger string, n int) error {
	for from := 1; from <= n; from += batch {
		q := fmt.Sprintf(`INSERT INTO %[1]s.%[2]s (biz_type, biz_id, status, create_time, update_time)
			SELECT '%[1]s', seq, CASE seq MOD 100 WHEN 0 THEN 1 WHEN 1 THEN 3 ELSE 2 END, UTC_TIMESTAMP() - INTERVAL 10 HOUR, UTC_TIMESTAMP() - INTERVAL 10 HOUR
			FROM %[1]s.seq_%[3]d_to_%[4]d`, ledger, table, from, min(from+batch-1, n))
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	_, err := db.ExecContext(ctx, "ANALYZE TABLE "+ledger+"."+table)
	return err
}

func (s *stores) startRedis(ctx context.Context, _ sizes) (err error) {
	s.redis, err = servers.StartRedis(ctx, servers.RedisOptions{Args: []string{"--enable-debug-command", "local"}})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, s.redis.Stop)
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr, DisableIdentity: true, ReadTimeout: time.Minute})
	defer client.Close()
	for _, ledger := range ledgers {
		for prefix, n := range map[string]int{"idempotent:": marked, "idem_lock:": locked} {
			if err := client.Do(ctx, "DEBUG", "POPULATE", n, prefix+ledger).Err(); err != nil {
				return fmt.Errorf("make keys: %w", err)
			}
		}
	}
	return nil
}

// startRabbitMQ makes a queue in which some messages wait.
func (s *stores) startRabbitMQ(ctx context.Context, _ sizes) (err error) {
	if s.rabbit, err = servers.StartRabbitMQ(ctx, servers.RabbitMQOptions{}); err != nil {
		return err
	}
	s.stops = append(s.stops, s.rabbit.Stop)
	if err := s.rabbit.CreateUser(ctx, servers.RabbitMQUser{Name: monitor, Password: monitor, Tags: []string{"monitoring"},
		Permissions: map[string]servers.RabbitMQPermissions{"/": {Configure: "^$", Write: "^$", Read: "^$"}}}); err != nil {
		return err
	}
	if err := s.manage(ctx, http.MethodPut, "/api/queues/%2F/"+queue, map[string]any{"durable": true}); err != nil {
		return err
	}
	for range messages {
		message := map[string]any{"properties": map[string]any{}, "routing_key": queue, "payload": "{}", "payload_encoding": "string"}
		if err := s.manage(ctx, http.MethodPost, "/api/exchanges/%2F/amq.default/publish", message); err != nil {
			return err
		}
	}
	return nil
}

// manage changes the private broker.
func (s *stores) manage(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.rabbit.Management+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.SetBasicAuth(s.rabbit.Admin, s.rabbit.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return nil
}
