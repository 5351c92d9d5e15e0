package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
)

// deed is something that a consumer, an operator or time did to a key, and what it left in a store.
type deed func(t *testing.T, s *shop, f flow.Flow, k flow.Key)

// Values of insert that stand for the key at hand, and for times before now.
type (
	keyPart string
	// ago is a DATETIME in UTC, ahead of now when negative.
	ago time.Duration
	// instant is a TIMESTAMP, whatever the session's zone.
	instant time.Duration
)

const (
	theType keyPart = "type"
	theID   keyPart = "id"
)

// Status words of the tables with the shape of idempotent_record.
const (
	processing = "1"
	completed  = "2"
	failed     = "3"
)

// record is a row of the key in the flow's ledger: when the run began, and when the row was last written.
func record(status string, created, updated time.Duration) deed {
	return recordOf(theID, status, created, updated)
}

// recordOf is a record whose stored id is another one.
func recordOf(id any, status string, created, updated time.Duration) deed {
	return insert("", recordColumns, theType, id, status, ago(created), ago(updated))
}

const recordColumns = "biz_type, biz_id, status, create_time, update_time"

// insert writes one row. An empty table is that of the flow's ledger.
func insert(table, columns string, values ...any) deed {
	return write("INSERT INTO %s (%s) VALUES (%s)", table, columns, values)
}

// insertCarelessly writes without strict mode, as many an old application does: what does not fit is cut or emptied.
func insertCarelessly(table, columns string, values ...any) deed {
	return write("SET STATEMENT sql_mode = '' FOR INSERT INTO %s (%s) VALUES (%s)", table, columns, values)
}

func write(statement, table, columns string, values []any) deed {
	return func(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
		t.Helper()
		into := table
		if into == "" {
			into = ledgers()[f.Ledger].table
		}
		var marks []string
		var args []any
		for _, v := range values {
			mark, arg := bind(v, k)
			marks, args = append(marks, mark), append(args, arg)
		}
		s.db.Exec(t, fmt.Sprintf(statement, into, columns, strings.Join(marks, ", ")), args...)
	}
}

func bind(v any, k flow.Key) (mark string, arg any) {
	switch v := v.(type) {
	case keyPart:
		if v == theType {
			return "?", k.BizType
		}
		return "?", k.BizID
	case ago:
		return "UTC_TIMESTAMP() - INTERVAL ? SECOND", int64(time.Duration(v) / time.Second)
	case instant:
		return "FROM_UNIXTIME(UNIX_TIMESTAMP() - ?)", int64(time.Duration(v) / time.Second)
	}
	return "?", v
}

// lock is the key's lock with what is left of its TTL.
func lock(left time.Duration) deed {
	return func(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
		t.Helper()
		s.set(t, f.Lock.Render(k), "worker-7:4711:5f3a", left)
	}
}

// lockForEver is a lock that was taken with one command; the second one, for its expiry, was never sent.
var lockForEver = lock(0)

// marker is the key's marker with a value and what is left of its TTL.
func marker(value string, left time.Duration) deed {
	return func(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
		t.Helper()
		s.set(t, f.Marker.Render(k), value, left)
	}
}

// redisString is some Redis key under a name of its own.
func redisString(key string, left time.Duration) deed {
	return func(t *testing.T, s *shop, _ flow.Flow, _ flow.Key) {
		t.Helper()
		s.set(t, key, "worker-7:4711:5f3a", left)
	}
}

// set writes a Redis string; without a TTL when left is 0.
func (s *shop) set(t *testing.T, key, value string, left time.Duration) {
	t.Helper()
	if err := s.redis.Client.Set(t.Context(), key, value, left).Err(); err != nil {
		t.Fatal(err)
	}
}

// hashInPlaceOfLock is what a library leaves that keeps its locks as hashes.
func hashInPlaceOfLock(left time.Duration) deed {
	return func(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
		t.Helper()
		key := f.Lock.Render(k)
		if err := s.redis.Client.HSet(t.Context(), key, "worker-7:1", 1).Err(); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
		if err := s.redis.Client.PExpire(t.Context(), key, left).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
