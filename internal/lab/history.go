package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// historySpan is how far back the older rows reach.
	historySpan = 10 * 24 * time.Hour
	// historyEnd is how long before now they end: the samples follow, so that ids and times rise together.
	historyEnd = 4 * time.Hour
	// bulk is how many rows one INSERT has.
	bulk = 1000
)

// past is the older rows of one table.
type past struct {
	// insert is the statement up to VALUES.
	insert string
	rows   int
	// row gives the placeholders' values of the nth row, which was created ago and took some seconds.
	row func(n int, random *rand.Rand, created time.Time, took time.Duration) []any
}

// olderRows are 20 thousand completed rows.
func olderRows() []past {
	const record = "INSERT INTO %s (biz_type, biz_id, status, create_time, update_time) VALUES "
	recordRow := func(bizTypes []string, prefix string) func(int, *rand.Rand, time.Time, time.Duration) []any {
		return func(n int, random *rand.Rand, created time.Time, took time.Duration) []any {
			bizType := bizTypes[random.IntN(len(bizTypes))]
			id := fmt.Sprintf("%s%s%06d", prefix, created.Format("20060102"), n)
			return []any{bizType, id, statusCompleted, stamp(created), stamp(created.Add(took))}
		}
	}
	return []past{
		{fmt.Sprintf(record, "idempotent_record"), 13500,
			recordRow([]string{"order_paid", "order_paid", "order_paid", "refund", "stock_import"}, "H")},
		{"INSERT INTO message_deduplication (message_type, message_id, status, created_at, completed_at) VALUES ", 4000,
			recordRowAsMessage(recordRow([]string{"points_grant", "points_grant", "points_grant", "points_revoke"}, "H"))},
		{"INSERT INTO user_sign_record (user_id, sign_date, points, created_at) VALUES ", 2000,
			func(n int, _ *rand.Rand, created time.Time, _ time.Duration) []any {
				return []any{200000 + n, created.Format(time.DateOnly), 5, stamp(created)}
			}},
		{fmt.Sprintf(record, "settlement_record"), 250, recordRow([]string{"settlement_day"}, "H")},
		{fmt.Sprintf(record, "coupon_record"), 250, recordRow([]string{"coupon_grant"}, "H")},
	}
}

// recordRowAsMessage gives the status its word in a table with an ENUM.
func recordRowAsMessage(row func(int, *rand.Rand, time.Time, time.Duration) []any) func(int, *rand.Rand, time.Time, time.Duration) []any {
	return func(n int, random *rand.Rand, created time.Time, took time.Duration) []any {
		values := row(n, random, created, took)
		values[2] = "completed"
		return values
	}
}

// insertHistory fills the tables; now is the database's clock.
func insertHistory(ctx context.Context, db *sqlx.DB, now time.Time) error {
	random := rand.New(rand.NewPCG(1, 2)) // the same history every time
	for _, p := range olderRows() {
		if err := p.insertAll(ctx, db, random, now); err != nil {
			return fmt.Errorf("older rows: %w", err)
		}
	}
	return nil
}

func (p past) insertAll(ctx context.Context, db *sqlx.DB, random *rand.Rand, now time.Time) error {
	step := (historySpan - historyEnd) / time.Duration(p.rows)
	var tuples []string
	var values []any
	for n := range p.rows {
		created := now.Add(-historySpan + time.Duration(n)*step)
		took := time.Duration(random.ExpFloat64() * float64(time.Second))
		row := p.row(n, random, created, took)
		tuples = append(tuples, "(?"+strings.Repeat(", ?", len(row)-1)+")")
		values = append(values, row...)
		if len(tuples) == bulk || n == p.rows-1 {
			if _, err := db.ExecContext(ctx, p.insert+strings.Join(tuples, ", "), values...); err != nil {
				return err
			}
			tuples, values = tuples[:0], values[:0]
		}
	}
	return nil
}

// stamp words a time for a column in the database's zone, which is UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) }
