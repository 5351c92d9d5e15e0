package janitor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"idemscope/internal/ledger"
)

func TestTheSizeFollowsTheTimeOfBatchesAndDistrustsEmptyRanges(t *testing.T) {
	s := newSizer(2000)
	if s.next() != 500 {
		t.Errorf("begins with %d", s.next())
	}
	for range 20 {
		s.learn(time.Millisecond, 500, 500)
	}
	if s.next() != 2000 {
		t.Errorf("quick batches lead to %d", s.next())
	}
	s.learn(10*batchTarget, 2000, 2000)
	if s.next() != 1000 {
		t.Errorf("a slow batch leads to %d", s.next())
	}
	for range 20 {
		s.learn(time.Millisecond, 1000, 3)
	}
	if s.next() != 1000 {
		t.Errorf("batches in which nearly all rows stayed lead to %d", s.next())
	}
	for range 50 {
		s.learn(2*batchTarget, 100, 100)
	}
	if s.next() != smallest || !s.atSmallest() {
		t.Errorf("batches over their time lead to %d", s.next())
	}
}

// TestNearlyAllBatchesKeepTheTarget: with times that scatter widely (by a factor of
// two, one time in three) the size settles where 95 of 100 batches are in time,
// and is not much smaller than that needs.
func TestNearlyAllBatchesKeepTheTarget(t *testing.T) {
	for name, spread := range map[string]float64{"even": 0, "scattered": 0.7} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			s, inTime, sum := newSizer(10_000), 0, 0.0
			const first, last = 500, 5500
			for i := range last {
				rows := s.next()
				took := time.Duration(float64(rows) / 40 * math.Exp(spread*random.NormFloat64()) * float64(time.Millisecond))
				if i >= first {
					sum += float64(rows)
					if took <= batchTarget {
						inTime++
					}
				}
				s.learn(took, int64(rows), int64(rows))
			}
			// The largest size of which 95 of 100 are in time: 1.645 deviations below the target.
			best := 40 * 25 / math.Exp(1.645*spread)
			share, mean := float64(inTime)/(last-first), sum/(last-first)
			if share < 0.95 || mean < 0.7*best || mean > best {
				t.Errorf("%.3f of the batches in time, with %.0f rows in the mean; best are %.0f", share, mean, best)
			}
		})
	}
}

// TestEveryRowIsMetOnceWhateverTheGaps: stretches of rows that go, of rows that
// stay and of ids that are gone, of random lengths, change how a batch is found;
// each row is counted once, and the one with the highest id stays.
func TestEveryRowIsMetOnceWhateverTheGaps(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			db, p := ready(t, false, 0)
			db.Exec(t, "DELETE FROM idempotent_record")
			want, id := map[int]int64{}, uint64(1)
			for range 40 {
				length, step, status := 1+random.IntN(150), uint64(1+random.IntN(2)*random.IntN(40)), 1+random.IntN(3)
				db.Exec(t, fmt.Sprintf(`INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time)
					SELECT %[1]d + seq * %[2]d, %[1]d + seq * %[2]d, 't', %[3]d, UTC_TIMESTAMP() - INTERVAL 30 DAY, UTC_TIMESTAMP() - INTERVAL 30 DAY FROM seq_1_to_%[4]d`, id, step, status, length))
				id += uint64(length)*step + uint64(random.IntN(2)*random.IntN(1000))
				want[status] += int64(length)
			}
			db.Exec(t, "INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time) VALUES (?, 'last', 't', 2, '2020-01-01', '2020-01-01')", id+1)
			task := p.task(t)
			task.Batch = 100
			r := sweepNow(t, hire(t, task), Done)
			stayed := r.Tables[0].Stayed
			if r.Gone() != want[2] || stayed[string(ledger.InProcessing)] != want[1] || stayed[string(ledger.HasFailed)] != want[3] || len(stayed) > 2 {
				t.Errorf("%d gone, stayed %v; want %v", r.Gone(), stayed, want)
			}
			if n := count(t, db.DB, "SELECT COUNT(*) FROM idempotent_record WHERE status = 2 AND biz_id <> 'last'"); n != 0 {
				t.Errorf("%d rows were passed over", n)
			}
			if n := count(t, db.DB, "SELECT COUNT(*) FROM idempotent_record"); n != want[1]+want[3]+1 {
				t.Errorf("%d rows left, want %d", n, want[1]+want[3]+1)
			}
		})
	}
}
