package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// TestTrailAndArchiveReachTheAnswer sets both up by configuration: the trail is
// scanned by a single look-up and followed by the service.
func TestTrailAndArchiveReachTheAnswer(t *testing.T) {
	db, redis := testkit.MySQL(t), testkit.Redis(t)
	db.Exec(t, `CREATE TABLE idempotent_record (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL,
		biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
		UNIQUE KEY uk_biz (biz_type, biz_id))`)
	db.Exec(t, "CREATE TABLE old_record LIKE idempotent_record")
	db.Exec(t, `INSERT INTO old_record (biz_id, biz_type, status, create_time, update_time) VALUES ('ORD-1', 'pay', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())`)
	if err := redis.Client.Do(t.Context(), "XADD", "shop:app:idem_trail", "*", "t", "pay", "b", "ORD-1", "s", "received", "w", "host:1").Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	text := fmt.Sprintf(`
mysql:
  main: {address: %q, database: %q, user: %q}
redis:
  main: {addresses: [%q], db: %d, key_prefix: "shop:"}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record, archive: old_record}
flows:
  payments: {biz_types: [pay], ledger: orders, lock: {redis: main, key: "idem_lock:{biz_type}:{biz_id}", ttl: 15s}}
counters: {redis: main, prefix: "app:", trail: true}
console: {lookup_timeout: 20s}
`, db.Addr, db.Name, db.User, redis.Addr, redis.DB)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, followed := range []bool{false, true} {
		s, err := openStores(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		if followed {
			follow := s.followTrail(c, slog.New(slog.DiscardHandler))
			loops.Go(func() { follow(ctx) })
		}
		desk, err := s.desk(c)
		if err != nil {
			t.Fatal(err)
		}
		var a answer.Answer
		testkit.Eventually(t, 30*time.Second, func() bool {
			a, err = desk.Answer(t.Context(), flow.Place{Flow: "payments", Key: flow.Key{BizType: "pay", BizID: "ORD-1"}})
			return err == nil && a.Trail != nil && a.Trail.State == flow.Found
		}, "the trail does not reach the answer: %+v", a.Trail)
		if len(a.Trail.Events) != 1 || a.Trail.Events[0].Worker != "host:1" || a.Record.Archive == nil || a.Record.Archive.State != flow.Found || a.Verdict.Code != "archived" {
			t.Errorf("followed %v: trail %+v, archive %+v, verdict %s", followed, a.Trail, a.Record.Archive, a.Verdict.Code)
		}
		cancel()
		loops.Wait()
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}
