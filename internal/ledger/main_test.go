package ledger

import (
	"context"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// The tables of the presets, as DOMAIN.md describes them.
const (
	idempotentRecord = `CREATE TABLE idempotent_record (
		id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
		biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL DEFAULT 1,
		create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
		UNIQUE KEY uk_biz (biz_type, biz_id))`
	messageDeduplication = `CREATE TABLE message_deduplication (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		message_id VARCHAR(64) NOT NULL, message_type VARCHAR(64) NOT NULL,
		status ENUM('processing','completed','failed') NOT NULL DEFAULT 'processing', result TEXT,
		created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, completed_at TIMESTAMP NULL,
		UNIQUE KEY uk (message_id, message_type), KEY idx_status (status), KEY idx_created (created_at))`
	messageIdempotence = `CREATE TABLE message_idempotence (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		message_id VARCHAR(64) NOT NULL, message_type VARCHAR(64) NOT NULL,
		status VARCHAR(16) NOT NULL, result TEXT,
		created_at TIMESTAMP(6) NULL, completed_at TIMESTAMP(6) NULL,
		UNIQUE KEY uk (message_id, message_type))`
	messageProcessed = `CREATE TABLE message_processed (
		id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		message_id VARCHAR(64) NOT NULL, biz_type VARCHAR(32) NOT NULL, status VARCHAR(16) NOT NULL,
		processed_at DATETIME(3) NOT NULL, UNIQUE KEY uk_message (message_id))`
	consumeLog = `CREATE TABLE consume_log (biz_id VARCHAR(64) NOT NULL PRIMARY KEY, handle_time DATETIME NOT NULL)`
	userSign   = `CREATE TABLE user_sign_record (
		id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL, sign_date DATE NOT NULL,
		points INT NOT NULL DEFAULT 0, created_at DATETIME NOT NULL, UNIQUE KEY uk_user_date (user_id, sign_date))`
	orders = `CREATE TABLE orders (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, order_no VARCHAR(32) NOT NULL UNIQUE,
		status VARCHAR(16) NOT NULL, version INT NOT NULL DEFAULT 0, created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL)`
	outbox = `CREATE TABLE outbox (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id CHAR(36) NOT NULL UNIQUE, payload JSON,
		status CHAR(10) NOT NULL, retry_count INT NOT NULL DEFAULT 0, created_at DATETIME NOT NULL, sent_at DATETIME NULL)`
)

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// soon is a deadline that only a fault can miss.
func soon(t testing.TB) context.Context { return within(t, 20*time.Second) }

func openServer(t testing.TB, db *testkit.Database, change ...func(*ServerOptions)) *Server {
	t.Helper()
	o := ServerOptions{Name: "main", Address: db.Addr, Database: db.Name, User: db.User, Password: db.Password, StatementLimit: 10 * time.Second}
	for _, c := range change {
		c(&o)
	}
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	})
	return s
}

func openLedger(t testing.TB, s *Server, table, preset string, spec MappingSpec) *Ledger {
	t.Helper()
	m, err := NewMapping(preset, spec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Options{Name: "orders", Server: s, Table: table, Mapping: m})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// records makes the commonest table in a fresh database and returns its ledger.
func records(t testing.TB, change ...func(*ServerOptions)) (*testkit.Database, *Ledger) {
	t.Helper()
	db := testkit.MySQL(t)
	db.Exec(t, idempotentRecord)
	return db, openLedger(t, openServer(t, db, change...), "idempotent_record", "idempotent_record", MappingSpec{})
}

func insertRecord(t testing.TB, db *testkit.Database, bizType, bizID string, status int) {
	t.Helper()
	db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES (?, ?, ?, UTC_TIMESTAMP() - INTERVAL 90 SECOND, UTC_TIMESTAMP() - INTERVAL 60 SECOND)", bizType, bizID, status)
}

// one looks a key up and expects exactly one row.
func one(t testing.TB, l *Ledger, bizType, bizID string) Row {
	t.Helper()
	f := l.Find(soon(t), flow.Key{BizType: bizType, BizID: bizID})
	if f.State != flow.Found || len(f.Rows) != 1 {
		t.Fatalf("find %q %q: state %s (%s), %d rows %+v", bizType, bizID, f.State, f.Reason.EN, len(f.Rows), f.Rows)
	}
	return f.Rows[0]
}

func near(d, want time.Duration) bool { return (d - want).Abs() < 15*time.Second }
