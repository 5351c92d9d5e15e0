package scenarios

import (
	"fmt"
	"testing"

	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// ledgerShape is one ledger of the shop: a table, what its columns mean, and through which connection it is read.
type ledgerShape struct {
	table   string
	preset  string
	spec    ledger.MappingSpec
	through string // name of the server; empty means main
	ddl     string // empty when another ledger makes the table
	archive string // empty when there is none
}

const columns = `id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(%d) NOT NULL, biz_type VARCHAR(64) NOT NULL,
	status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL`

// recordTable has the shape of the preset idempotent_record, with a width of the id, a key and table options.
func recordTable(name string, width int, key, options string) ledgerShape {
	return ledgerShape{
		table: name, preset: "idempotent_record",
		ddl: fmt.Sprintf("CREATE TABLE %s (%s, %s) %s", name, fmt.Sprintf(columns, width), key, options),
	}
}

func kept(l ledgerShape, archive string) ledgerShape {
	l.archive = archive
	return l
}

const (
	uniqueKey  = "UNIQUE KEY uk_biz (biz_type, biz_id)"
	generalCI  = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
	shardCount = 3
)

// ledgers are the idempotency tables of the shop, good and bad.
func ledgers() map[string]ledgerShape {
	all := map[string]ledgerShape{
		"orders":   recordTable("idempotent_record", 128, uniqueKey, generalCI),
		"padded":   recordTable("padded_record", 128, uniqueKey, "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
		"exact":    recordTable("exact_record", 128, uniqueKey, "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"),
		"unicode":  recordTable("unicode_record", 128, uniqueKey, "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"),
		"old":      recordTable("old_record", 128, uniqueKey, "CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci"),
		"narrow":   recordTable("narrow_record", 32, uniqueKey, generalCI),
		"keyless":  recordTable("keyless_record", 128, "KEY idx_biz (biz_type, biz_id)", generalCI),
		"nullable": recordTable("nullable_record", 128, "tenant INT NULL, UNIQUE KEY uk_biz (biz_type, biz_id, tenant)", generalCI),
		"monthly": {
			table: "monthly_record", preset: "idempotent_record",
			ddl: `CREATE TABLE monthly_record (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,
				status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
				PRIMARY KEY (id, create_time), UNIQUE KEY uk_biz (biz_type, biz_id, create_time))
				PARTITION BY RANGE (TO_DAYS(create_time)) (PARTITION p1 VALUES LESS THAN (TO_DAYS('2025-02-01')), PARTITION p2 VALUES LESS THAN MAXVALUE)`,
		},
		"presence": {
			table: "consume_log", preset: "consume_log", spec: ledger.MappingSpec{BizType: "presence"},
			ddl: "CREATE TABLE consume_log (biz_id VARCHAR(64) NOT NULL PRIMARY KEY, handle_time DATETIME NOT NULL)",
		},
		"outbox": {
			table: "outbox", preset: "outbox", spec: ledger.MappingSpec{BizType: "outbox"},
			ddl: `CREATE TABLE outbox (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id CHAR(36) NOT NULL UNIQUE, status CHAR(10) NOT NULL,
				retry_count INT NOT NULL DEFAULT 0, created_at DATETIME NOT NULL, sent_at DATETIME NULL)`,
		},
		"messages": {
			table: "message_deduplication", preset: "message_deduplication",
			ddl: `CREATE TABLE message_deduplication (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64) NOT NULL,
				message_type VARCHAR(64) NOT NULL, status ENUM('processing', 'completed', 'failed') NOT NULL, result TEXT NULL,
				created_at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, completed_at TIMESTAMP NULL DEFAULT NULL,
				UNIQUE KEY uk_message (message_id, message_type), KEY idx_status (status)) ` + generalCI,
		},
		"subscribers": {
			table: "subscriber_inbox", preset: "message_processed",
			ddl: `CREATE TABLE subscriber_inbox (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, message_id VARCHAR(64) NOT NULL,
				biz_type VARCHAR(64) NOT NULL, status VARCHAR(16) NOT NULL, processed_at DATETIME NOT NULL, UNIQUE KEY uk_message (message_id)) ` + generalCI,
		},
		"timeless": {
			table: "timeless_record", spec: ledger.MappingSpec{
				Columns: map[string]string{"biz_type": "biz_type", "biz_id": "biz_id", "status": "status"},
				Status:  map[string][]string{"processing": {"doing"}, "completed": {"done"}, "failed": {"failed"}},
			},
			ddl: `CREATE TABLE timeless_record (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(64) NOT NULL, biz_type VARCHAR(64) NOT NULL,
				status VARCHAR(16) NOT NULL, UNIQUE KEY uk_biz (biz_type, biz_id))`,
		},
		"jobs": {
			table: "jobs", spec: ledger.MappingSpec{
				Columns: map[string]string{
					"biz_type": "kind", "biz_id": "job_no", "status": "state", "created": "created_at", "updated": "heartbeat_at",
					"worker": "worker", "attempts": "attempts",
				},
				Status: map[string][]string{"not_started": {"pending"}, "processing": {"running"}, "completed": {"succeeded"}, "failed": {"failed"}},
			},
			ddl: `CREATE TABLE jobs (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, kind VARCHAR(64) NOT NULL, job_no VARCHAR(64) NOT NULL,
				state VARCHAR(16) NOT NULL, worker VARCHAR(64) NULL, attempts INT NOT NULL DEFAULT 0, created_at DATETIME NOT NULL, heartbeat_at DATETIME NOT NULL,
				UNIQUE KEY uk_job (kind, job_no))`,
		},
		"kept":    kept(recordTable("kept_record", 128, uniqueKey, generalCI), "kept_record_archive"),
		"unkept":  kept(recordTable("unkept_record", 128, uniqueKey, generalCI), "no_such_archive"),
		"shards":  {table: fmt.Sprintf("shard_record_{0..%d}", shardCount-1), preset: "idempotent_record"},
		"halved":  {table: "half_record_{0..1}", preset: "idempotent_record"}, // its second shard is not there
		"replica": {table: "idempotent_record", preset: "idempotent_record", through: "replica"},
		"berlin":  {table: "berlin_record", preset: "idempotent_record", through: "berlin", ddl: recordTable("berlin_record", 128, uniqueKey, generalCI).ddl},
		"absent":  {table: "idempotent_record", preset: "idempotent_record", through: "down"},
	}
	return all
}

// createTables makes the tables of all ledgers.
func createTables(t testing.TB, db *testkit.Database) {
	t.Helper()
	for _, l := range ledgers() {
		if l.ddl != "" {
			db.Exec(t, l.ddl)
		}
	}
	for n := range shardCount {
		db.Exec(t, recordTable(fmt.Sprintf("shard_record_%d", n), 128, uniqueKey, generalCI).ddl)
	}
	db.Exec(t, recordTable("kept_record_archive", 128, uniqueKey, generalCI).ddl)
	db.Exec(t, recordTable("half_record_0", 128, uniqueKey, generalCI).ddl)
}
