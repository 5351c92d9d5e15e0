package lab

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// recordDDL has the shape of the preset idempotent_record. Its collation takes upper and lower case for equal, as the
// default of most installations does; the second %s is the index over the key columns.
const recordDDL = `CREATE TABLE %s (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) NOT NULL,
	biz_type VARCHAR(64) NOT NULL,
	status TINYINT NOT NULL COMMENT '1 processing, 2 completed, 3 failed',
	create_time DATETIME NOT NULL,
	update_time DATETIME NOT NULL,
	%s
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`

const messageDDL = `CREATE TABLE message_deduplication (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	message_id VARCHAR(64) NOT NULL,
	message_type VARCHAR(64) NOT NULL,
	status ENUM('processing', 'completed', 'failed') NOT NULL,
	result TEXT NULL,
	created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	completed_at TIMESTAMP NULL DEFAULT NULL,
	UNIQUE KEY uk_message (message_id, message_type),
	KEY idx_status (status),
	KEY idx_created (created_at)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`

const signDDL = `CREATE TABLE user_sign_record (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	user_id BIGINT NOT NULL,
	sign_date DATE NOT NULL,
	points INT NOT NULL,
	created_at DATETIME NOT NULL,
	UNIQUE KEY uk_user_date (user_id, sign_date)
) DEFAULT CHARACTER SET utf8mb4`

// effectDDL is what the business does: one row per key, with how often the effect happened. It compares bytes.
const effectDDL = `CREATE TABLE lab_effects (
	biz_type VARBINARY(64) NOT NULL,
	biz_id VARBINARY(512) NOT NULL,
	effects INT NOT NULL,
	PRIMARY KEY (biz_type, biz_id)
)`

const uniqueKey = "UNIQUE KEY uk_biz (biz_type, biz_id)"

// plainKey finds rows but lets the same key in twice: what a table looks like whose unique key was forgotten.
const plainKey = "KEY idx_biz (biz_type, biz_id)"

func createTables(ctx context.Context, db *sqlx.DB) error {
	for _, ddl := range []string{
		fmt.Sprintf(recordDDL, "idempotent_record", uniqueKey),
		fmt.Sprintf(recordDDL, "settlement_record", uniqueKey),
		fmt.Sprintf(recordDDL, "coupon_record", plainKey),
		messageDDL, signDDL, effectDDL,
	} {
		if _, err := db.ExecContext(ctx, ddl); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	return nil
}
