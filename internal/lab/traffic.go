package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// tick is the pause between two decisions of the sender: with duplicates, 30 to 45 messages a second.
	tick = time.Second / 30
	// duplicateCycle is how long the share of duplicates takes to go up and down once.
	duplicateCycle = 4 * time.Minute
	// remembered is how many messages of a biz_type can still be sent again.
	remembered = 256
)

// habits is how the messages of one biz_type are.
type habits struct {
	flow, bizType string
	// weight is its share of the traffic.
	weight int
	// baseMs and spreadMs give the run time: base plus an exponential part.
	baseMs, spreadMs int
	// slow is the share of runs that take slowMs to twice that.
	slow   float64
	slowMs int
	// fail is the share of messages that fail once, hopeless of those that fail for ever.
	fail, hopeless float64
	// killEvery is the time between two deaths of a consumer; 0 means none.
	killEvery time.Duration
	newID     func(n int64, now time.Time) string
}

func trafficHabits() []habits {
	orderNo := func(prefix string) func(int64, time.Time) string {
		return func(n int64, now time.Time) string {
			return fmt.Sprintf("%s%s%010d", prefix, now.Format("20060102"), n)
		}
	}
	return []habits{
		{flow: "payments", bizType: "order_paid", weight: 12, baseMs: 15, spreadMs: 40, slow: 0.005, slowMs: 1200,
			fail: 0.03, hopeless: 0.002, killEvery: 3 * time.Minute, newID: orderNo("SO")},
		{flow: "payments", bizType: "refund", weight: 4, baseMs: 25, spreadMs: 60, fail: 0.05, newID: orderNo("RF")},
		{flow: "points", bizType: "points_grant", weight: 8, baseMs: 8, spreadMs: 20, slow: 0.02, slowMs: 2200,
			fail: 0.02, killEvery: 45 * time.Second, newID: orderNo("PG")},
		{flow: "points", bizType: "points_revoke", weight: 2, baseMs: 10, spreadMs: 25, slow: 0.02, slowMs: 2200, newID: orderNo("PR")},
		{flow: "signs", bizType: "sign", weight: 4, baseMs: 5, spreadMs: 15,
			newID: func(n int64, now time.Time) string { return fmt.Sprintf("%d:%s", 500000+n, now.Format(time.DateOnly)) }},
	}
}

// stream is one biz_type while traffic runs.
type stream struct {
	habits
	queue    queue
	sent     int64
	recent   []message // a ring
	nextKill time.Time
}

// sender is the producer: it sends new messages, and some of them more than once.
type sender struct {
	streams []*stream
	random  *rand.Rand
	start   time.Time
}

func newSender(queues map[string]queue, firstID int64, now time.Time) *sender {
	s := &sender{random: rand.New(rand.NewPCG(uint64(now.UnixNano()), 0)), start: now}
	for _, h := range trafficHabits() {
		st := &stream{habits: h, queue: queues[h.flow], sent: firstID}
		if h.killEvery > 0 {
			st.nextKill = now.Add(time.Second)
		}
		s.streams = append(s.streams, st)
	}
	return s
}

// run sends until ctx ends.
func (s *sender) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if err := s.step(ctx, now); err != nil && !errors.Is(err, ctx.Err()) {
				return err
			}
		}
	}
}

// step sends a new message, a new one twice at the same instant, or an old one again.
func (s *sender) step(ctx context.Context, now time.Time) error {
	st := s.pick()
	repeat := s.random.Float64() < repeatChance(s.duplicates(now))
	if repeat && len(st.recent) > 0 && s.random.IntN(2) == 0 {
		return st.queue.publish(ctx, st.recent[s.random.IntN(len(st.recent))])
	}
	m := st.next(s.random, now)
	if err := st.queue.publish(ctx, m); err != nil {
		return err
	}
	if m.Lab.Kill {
		return nil // a copy could be done before the original, and then nobody would die
	}
	st.remember(m)
	if repeat {
		return st.queue.publish(ctx, m)
	}
	return nil
}

// duplicates is the share of duplicates in the traffic: 10 % to 60 %, changing over time.
func (s *sender) duplicates(now time.Time) float64 {
	turn := 2 * math.Pi * now.Sub(s.start).Seconds() / duplicateCycle.Seconds()
	return 0.35 + 0.25*math.Sin(turn)
}

// repeatChance is how many steps must repeat something for a share of duplicates: half of them send a new message too.
func repeatChance(share float64) float64 { return share / (1 - share/2) }

// pick chooses a biz_type by its weight.
func (s *sender) pick() *stream {
	total := 0
	for _, st := range s.streams {
		total += st.weight
	}
	at := s.random.IntN(total)
	for _, st := range s.streams {
		if at -= st.weight; at < 0 {
			return st
		}
	}
	return s.streams[0]
}

// next makes up a new message.
func (st *stream) next(random *rand.Rand, now time.Time) message {
	st.sent++
	m := message{BizType: st.bizType, BizID: st.newID(st.sent, now)}
	m.Lab.Ms = st.baseMs + int(min(random.ExpFloat64(), 6)*float64(st.spreadMs))
	if random.Float64() < st.slow {
		m.Lab.Ms = st.slowMs + random.IntN(st.slowMs)
	}
	switch chance := random.Float64(); {
	case chance < st.hopeless:
		m.Lab.FailRounds = maxRounds
	case chance < st.hopeless+st.fail:
		m.Lab.FailRounds = 1
	}
	if st.killEvery > 0 && now.After(st.nextKill) {
		m.Lab.Kill = true
		st.nextKill = now.Add(st.killEvery)
	}
	return m
}

func (st *stream) remember(m message) {
	if len(st.recent) < remembered {
		st.recent = append(st.recent, m)
		return
	}
	st.recent[st.sent%remembered] = m
}
