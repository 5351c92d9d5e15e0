package lab

import (
	"context"
	"testing"
	"time"
)

// outbox is a queue that remembers what was sent.
type outbox struct{ sent []message }

func (o *outbox) publish(_ context.Context, m message) error {
	o.sent = append(o.sent, m)
	return nil
}

func (o *outbox) subscribe() (subscription, error) { return nil, nil }

func TestTraffic(t *testing.T) {
	out, queues := &outbox{}, map[string]queue{}
	for _, h := range trafficHabits() {
		queues[h.flow] = out
	}
	start := time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC)
	s := newSender(queues, 1, start)
	seen, kills := map[message]bool{}, map[string][]time.Time{}
	low, high := 1.0, 0.0
	const window = 10 * time.Second
	now := start
	for range duplicateCycle / window {
		out.sent = nil
		end := now.Add(window)
		for ; now.Before(end); now = now.Add(tick) {
			if err := s.step(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		duplicates := 0
		for _, m := range out.sent {
			if m.Lab.Kill {
				kills[m.BizType] = append(kills[m.BizType], now)
			}
			if seen[m] {
				duplicates++
			}
			seen[m] = true
		}
		if rate := float64(len(out.sent)) / window.Seconds(); rate < 20 || rate > 50 {
			t.Errorf("%.1f messages a second", rate)
		}
		share := float64(duplicates) / float64(len(out.sent))
		low, high = min(low, share), max(high, share)
	}
	// The windows are small, so their shares scatter by some percent.
	if low < 0.03 || low > 0.2 || high < 0.5 || high > 0.7 {
		t.Errorf("the share of duplicates goes from %.2f to %.2f", low, high)
	}
	if n := len(kills["order_paid"]); n != 2 {
		t.Errorf("%d consumers of order_paid were killed within %v", n, duplicateCycle)
	}
	for _, st := range s.streams {
		if len(st.recent) > remembered {
			t.Errorf("%s remembers %d messages", st.bizType, len(st.recent))
		}
	}
}

func TestBucketOf(t *testing.T) {
	for took, want := range map[time.Duration]string{
		0: "ms_le_5", 5 * time.Millisecond: "ms_le_5", 5999 * time.Microsecond: "ms_le_5", 6 * time.Millisecond: "ms_le_10",
		2 * time.Second: "ms_le_2000", 5 * time.Minute: "ms_le_300000", 301 * time.Second: "ms_le_inf",
	} {
		if got := bucketOf(took); got != want {
			t.Errorf("%v falls into %s, want %s", took, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Second: "10s", 5 * time.Minute: "5m", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 500 * time.Millisecond: "500ms",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}
