package lab

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// testSamples compares what each sample promises with what the stores hold.
func testSamples(t *testing.T, l *Lab) {
	for _, s := range samples(true) {
		t.Run(s.Verdict+" "+s.BizID[:min(len(s.BizID), 20)], func(t *testing.T) {
			r := routeOf(l.routes, s.Flow)
			wantRecords(t, l, r, s)
			wantKey(t, l.redis, r.Lock, s.key(), s.lock)
			wantKey(t, l.redis, r.Marker, s.key(), s.marker)
			if s.waiting && !inQueue(t, l, r.Queue.Name, s.BizID) {
				t.Error("its message does not wait")
			}
			if s.dead && !inQueue(t, l, r.Queue.DeadLetter, s.BizID) {
				t.Error("its message is not among the dead letters")
			}
		})
	}
	t.Run("running", func(t *testing.T) {
		r, k := routeOf(l.routes, "reports"), runningSample().key()
		_, phase, err := r.book.(statusTable).find(t.Context(), l.db, k)
		if err != nil || phase != flow.Processing {
			t.Fatalf("record %q, %v", phase, err)
		}
		if ttl := l.redis.PTTL(t.Context(), r.Lock.Render(k)).Val(); ttl < r.Lock.TTL/2 {
			t.Fatalf("the lock's TTL is %v", ttl)
		}
	})
	for _, q := range routeOf(l.routes, "settlement").Queue.All() {
		if n, known, err := l.monitor.total(t.Context(), plainClient(), q); err != nil || !known || n != 0 {
			t.Errorf("%s: %d messages, known %v, %v", q, n, known, err)
		}
	}
}

type storedRecord struct {
	Status      string
	Type, ID    string
	Age, Silent int
}

// wantRecords reads the rows that MySQL takes for the sample's key.
func wantRecords(t *testing.T, l *Lab, r route, s prepared) {
	t.Helper()
	query := `SELECT status, biz_type AS type, biz_id AS id, TIMESTAMPDIFF(SECOND, create_time, NOW()) AS age,
		TIMESTAMPDIFF(SECOND, update_time, NOW()) AS silent FROM %s WHERE biz_type = ? AND biz_id = ? ORDER BY id`
	table := map[string]string{"settlement": "settlement_record", "legacy": "coupon_record"}[s.Flow]
	if table == "" {
		table = "idempotent_record"
	}
	query = fmt.Sprintf(query, table)
	stored := s.BizID
	switch {
	case s.Flow == "points":
		query = `SELECT status, message_type AS type, message_id AS id, TIMESTAMPDIFF(SECOND, created_at, NOW()) AS age,
			TIMESTAMPDIFF(SECOND, completed_at, NOW()) AS silent FROM message_deduplication WHERE message_type = ? AND message_id = ?`
	case s.Flow == "signs":
		query = `SELECT '2' AS status, ? AS type, CONCAT(user_id, ':', sign_date) AS id, TIMESTAMPDIFF(SECOND, created_at, NOW()) AS age,
			TIMESTAMPDIFF(SECOND, created_at, NOW()) AS silent FROM user_sign_record HAVING id = ?`
	case len(s.BizID) > recordWidth:
		stored = s.BizID[:recordWidth]
	}
	var rows []storedRecord
	if err := l.db.Select(&rows, query, s.BizType, stored); err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(s.records) {
		t.Fatalf("%d records, want %d", len(rows), len(s.records))
	}
	for i, row := range rows {
		old := s.records[i]
		if old.bizID != "" && len(old.bizID) <= recordWidth {
			stored = old.bizID
		}
		if row.Status != old.status || row.ID != stored {
			t.Errorf("record %+v, want status %s of %q", row, old.status, stored)
		}
		if !closeTo(row.Age, old.age) || !closeTo(row.Silent, old.silent) {
			t.Errorf("record is %d s old and silent for %d s, want %v and %v", row.Age, row.Silent, old.age, old.silent)
		}
	}
}

// closeTo allows for the age of the lab itself.
func closeTo(got int, want time.Duration) bool {
	return got >= seconds(want)-1 && got <= seconds(want)+120
}

func wantKey(t *testing.T, store *redis.Client, shape *flow.RedisKey, k flow.Key, want *oldKey) {
	t.Helper()
	if shape == nil {
		return
	}
	key := shape.Render(k)
	value, err := store.Get(t.Context(), key).Result()
	if want == nil {
		if !errors.Is(err, redis.Nil) {
			t.Errorf("%s is %q, %v; want none", key, value, err)
		}
		return
	}
	ttl := store.PTTL(t.Context(), key).Val()
	if value != want.value || (ttl < 0) != want.endless || ttl > shape.TTL-want.age {
		t.Errorf("%s is %q for %v, want %+v", key, value, ttl, *want)
	}
}

// inQueue looks for an id in a queue and puts everything back.
func inQueue(t *testing.T, l *Lab, queue, id string) bool {
	t.Helper()
	channel, err := l.rabbit.consuming.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	for {
		raw, ok, err := channel.Get(queue, false)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return false
		}
		if m, err := decode(raw.Body); err == nil && m.BizID == id {
			return true
		}
	}
}

func TestSamplesAreToldInBothLanguages(t *testing.T) {
	ids := map[flow.Key]bool{}
	for _, s := range append(samples(true), prepared{Sample: runningSample()}) {
		if s.Story.EN == "" || s.Story.ZH == "" || s.Story.EN == s.Story.ZH {
			t.Errorf("%s: story %+v", s.BizID, s.Story)
		}
		if ids[s.key()] {
			t.Errorf("%v is prepared twice", s.key())
		}
		ids[s.key()] = true
	}
}
