package lab

import (
	"context"
	"fmt"
	"time"

	"idemscope/internal/flow"
)

// waitingImports is how many messages wait in the queue that nobody consumes.
const waitingImports = 12

// placeSamples leaves the prepared keys in the stores.
func (l *Lab) placeSamples(ctx context.Context) error {
	for _, s := range samples(l.rabbit != nil) {
		r := routeOf(l.routes, s.Flow)
		if err := l.placeRecords(ctx, r, s); err != nil {
			return fmt.Errorf("sample %s: %w", s.BizID, err)
		}
		if err := l.placeKeys(ctx, r, s); err != nil {
			return fmt.Errorf("sample %s: %w", s.BizID, err)
		}
		if err := l.placeMessages(ctx, r, s); err != nil {
			return fmt.Errorf("sample %s: %w", s.BizID, err)
		}
	}
	return nil
}

// placeRecords writes without strict mode, as many an old application does: an id that is too long is cut.
func (l *Lab) placeRecords(ctx context.Context, r route, s prepared) error {
	conn, err := l.db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SET SESSION sql_mode = ''"); err != nil {
		return err
	}
	for _, old := range s.records {
		k := s.key()
		if old.bizID != "" {
			k.BizID = old.bizID
		}
		if err := r.book.place(ctx, conn, k, old.status, seconds(old.age), seconds(old.silent)); err != nil {
			return err
		}
	}
	// The connection goes back to the pool.
	_, err = conn.ExecContext(ctx, "SET SESSION sql_mode = DEFAULT")
	return err
}

func (l *Lab) placeKeys(ctx context.Context, r route, s prepared) error {
	for _, place := range []struct {
		shape *flow.RedisKey
		old   *oldKey
	}{{r.Lock, s.lock}, {r.Marker, s.marker}} {
		if place.old == nil {
			continue
		}
		left := place.shape.TTL - place.old.age
		if place.old.endless {
			left = 0
		}
		if err := l.redis.Set(ctx, place.shape.Render(s.key()), place.old.value, left).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) placeMessages(ctx context.Context, r route, s prepared) error {
	if r.Queue == nil {
		return nil
	}
	m := message{BizType: s.BizType, BizID: s.BizID, Lab: fate{Ms: 50}}
	if s.dead {
		return l.rabbit.publish(ctx, r.Queue.DeadLetter, m)
	}
	if !s.waiting {
		return nil
	}
	for n := range waitingImports - 1 {
		other := message{BizType: s.BizType, BizID: fmt.Sprintf("IMP-20250116-%02d", n+1), Lab: m.Lab}
		if err := l.rabbit.publish(ctx, r.Queue.Name, other); err != nil {
			return err
		}
	}
	return l.rabbit.publish(ctx, r.Queue.Name, m)
}

func (s Sample) key() flow.Key { return flow.Key{BizType: s.BizType, BizID: s.BizID} }

func seconds(d time.Duration) int { return int(d / time.Second) }
