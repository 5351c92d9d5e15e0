package verdict

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// rough is a text of a store or a message that a terminal must never get as it is.
const rough = "a\x1b[31m\r\n\x00\u202e\xff"

// dice makes random dossiers: every field, in every combination that the
// packages below promise in their comments.
type dice struct {
	*rand.Rand
	// calm: every source was read, so that the rules below Unknown are reached.
	calm bool
}

func (r dice) maybe(oneIn int) bool { return r.IntN(oneIn) == 0 }

func pick[T any](r dice, from ...T) T { return from[r.IntN(len(from))] }

func upTo(r dice, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// span lies at or near a border of the rules, or anywhere.
func (r dice) span() time.Duration {
	near := pick(r, 0, time.Second, acquireTime, 10*time.Second, 15*time.Second, 5*time.Minute, time.Hour, 24*time.Hour, 240*time.Hour)
	return max(near+pick(r, -time.Second, -1, 0, 0, 1, time.Second, upTo(r, time.Minute)), 0)
}

func (r dice) age() time.Duration {
	if r.maybe(8) {
		return -r.span()
	}
	return r.span()
}

func (r dice) observation(states ...flow.State) flow.Observation {
	if r.calm && slices.Contains(states, flow.Absent) {
		states = slices.DeleteFunc(slices.Clone(states), func(s flow.State) bool { return s == flow.Unknown || s == flow.Error })
	}
	o := flow.Observation{State: pick(r, states...), Source: "somewhere", ReadAt: now.Add(-upTo(r, time.Second))}
	if !o.Seen() {
		o.Reason = flow.T("no answer within %v", "%v内没有应答", flow.Span(time.Second))
	}
	return o
}

func (r dice) dossier() dossier.Dossier {
	r.calm = r.maybe(2)
	d := dossier.Dossier{
		Key: flow.Key{BizType: pick(r, "order", rough), BizID: pick(r, "7", "", rough)},
		Flow: flow.Flow{Name: "payments", StaleAfter: pick(r, 5*time.Minute, time.Hour),
			OnProcessing: pick(r, flow.Refuse, flow.Retry, flow.Resume), Rerun: pick(r, flow.RerunNever, flow.RerunManual)},
		At: now, P99: pick(r, 0, time.Second, time.Hour),
	}
	d.Record = r.record(d.Key)
	d.Flow.Lock, d.Lock = r.redis(15 * time.Second)
	d.Flow.Marker, d.Marker = r.redis(24 * time.Hour)
	d.Flow.Queue, d.Broker = r.broker()
	if d.Flow.Queue != nil {
		d.Tap = r.account(flow.Published, flow.DeadLettered)
		d.Trace = r.account(flow.Published, flow.Delivered)
	}
	d.Trail = r.account(flow.Received, flow.StatusChecked, flow.LockTried, flow.RecordTried, flow.RunBegan, flow.RunDone, flow.RunFailed, flow.Unlocked, flow.Acked, flow.GivenBack)
	return d
}

func (r dice) record(k flow.Key) ledger.Found {
	f := ledger.Found{Observation: r.observation(flow.Found, flow.Found, flow.Found, flow.Absent, flow.Absent, flow.Unknown, flow.Error)}
	f.Replica, f.ByPresence = r.maybe(5), r.maybe(6)
	f.LagKnown = f.Replica && r.maybe(2)
	f.Lag = pick(r, 0, time.Second, 2*time.Second, time.Minute)
	if f.State == flow.Error {
		return f
	}
	f.DBNow = now.Add(pick(r, 0, time.Minute, -time.Minute))
	if f.State == flow.Found || f.State == flow.Unknown && r.maybe(2) {
		for range 1 + pick(r, 0, 0, 0, 1, 2) {
			f.Rows = append(f.Rows, r.row(k, f.ByPresence))
		}
	}
	if f.State == flow.Absent {
		f.TooLong, f.Width = r.maybe(10), 32
		if f.Replica { // a row that a replica lacks may exist on its primary
			f.State, f.Reason = flow.Unknown, flow.T("read from a replica", "读取自从库")
		}
	}
	for range pick(r, 0, 0, 1, 3) {
		kind := pick(r, ledger.OtherType, ledger.OtherVersion, ledger.OtherSpelling)
		f.Neighbours = append(f.Neighbours, ledger.Neighbour{Kind: kind, Row: r.row(flow.Key{BizType: rough, BizID: rough}, false)})
	}
	if r.maybe(3) {
		f.Archive = &ledger.Archive{Observation: r.observation(flow.Found, flow.Absent, flow.Unknown, flow.Error)}
		if f.Archive.State == flow.Found {
			f.Archive.Rows = []ledger.Row{r.row(k, false)}
		}
	}
	return f
}

func (r dice) row(k flow.Key, presence bool) ledger.Row {
	row := ledger.Row{
		Table: "shop.idempotent_record", ID: pick(r, "7", "8", ""), BizType: k.BizType, BizID: k.BizID, Exact: !r.maybe(6),
		Status: pick(r, "1", "", rough, "processing"), Phase: pick(r, flow.NotStarted, flow.Processing, flow.Processing, flow.Completed, flow.Failed, flow.Unmapped),
		Created: r.stamp(), Updated: r.stamp(), Completed: r.stamp(), Archived: r.stamp(),
		Age: r.age(), AgeKnown: !r.maybe(5), RunTime: r.span(), RunTimeKnown: r.maybe(2), IDFills: r.maybe(9),
	}
	if presence {
		row.Status, row.Phase = "present", flow.Completed
	}
	if !row.Exact {
		row.BizID += " "
	}
	// An age is counted from an instant.
	if sign := row.LastSign(); sign.State != ledger.StampOK && sign.State != ledger.StampAmbiguous {
		row.AgeKnown = false
	}
	row.Result, row.Attempts, row.Worker = pick(r, nil, new(rough)), pick(r, nil, new("2")), pick(r, nil, new(rough))
	return row
}

func (r dice) stamp() ledger.Stamp {
	s := ledger.Stamp{State: pick(r, ledger.StampOK, ledger.StampOK, ledger.StampOK, ledger.StampMissing, ledger.StampNull, ledger.StampZero, ledger.StampAmbiguous)}
	if s.State == ledger.StampOK || s.State == ledger.StampAmbiguous {
		s.Time = now.Add(-r.age())
	}
	return s
}

func (r dice) redis(ttl time.Duration) (*flow.RedisKey, *dossier.RedisEvidence) {
	if r.maybe(6) {
		return nil, nil
	}
	shape := &flow.RedisKey{Redis: "main", TTL: pick(r, ttl, ttl, ttl, 0), Renewed: r.maybe(4)}
	e := &dossier.RedisEvidence{Entry: lockstore.Entry{Key: rough, Observation: r.observation(flow.Found, flow.Found, flow.Absent, flow.Absent, flow.Absent, flow.Unknown, flow.Error)}}
	if r.maybe(6) {
		e.Owners = []flow.Place{{Flow: "other", Key: flow.Key{BizID: rough}}}
	}
	e.OwnersOpen = r.maybe(12)
	if e.State == flow.Found {
		e.Type, e.Value, e.Foreign, e.NoTTL = "string", rough, r.maybe(8), r.maybe(5)
		if e.Foreign {
			e.Type, e.Value = "hash", ""
		}
		if !e.NoTTL {
			e.TTL = max(shape.TTL-r.span(), 1) + pick(r, 0, 0, 0, time.Minute)
		}
	}
	if e.Seen() && r.maybe(2) {
		e.Server = &lockstore.ServerFacts{RunID: pick(r, "a", "b"), Role: pick(r, "master", "slave"), Now: now.Add(pick(r, 0, time.Minute)), Uptime: r.span(),
			Persistent: r.maybe(2), PersistentKnown: r.maybe(2), Evicted: uint64(r.IntN(3))}
		e.Server.NoneEvictedFor = min(e.Server.Uptime, r.span())
	}
	if r.maybe(3) {
		e.Before = &lockstore.Sighting{At: now.Add(-r.span() - time.Second), Found: r.maybe(2), Value: rough, Expires: now.Add(r.age()), RunID: "a", Role: "master"}
	}
	if r.maybe(6) {
		e.Similar = []string{rough}
	}
	return shape, e
}

// broker shows queues, and of them the state that totals allow.
func (r dice) broker() (*flow.Queue, *broker.Evidence) {
	if r.maybe(6) {
		return nil, nil
	}
	q := &flow.Queue{Broker: "rabbit", Name: "work"}
	e := &broker.Evidence{StatisticsAge: 15 * time.Second}
	if r.maybe(10) { // no answer at all
		e.Observation = r.observation(flow.Error)
		return q, e
	}
	add := func(name string, role broker.Role) {
		one := broker.Queue{Name: name, Role: role, Kind: pick(r, "classic", "quorum", "stream"), DeadLetterExchange: r.maybe(3),
			Observation: r.observation(flow.Found, flow.Found, flow.Found, flow.Found, flow.Found, flow.Absent, flow.Unknown, flow.Error)}
		if one.State == flow.Found && r.maybe(3) {
			one.Ready, one.Unacked, one.Other = r.Int64N(3), r.Int64N(3), r.Int64N(2)
		}
		if one.State == flow.Found {
			one.Consumers = r.Int64N(2)
		}
		e.Queues = append(e.Queues, one)
	}
	add("work", broker.RoleWork)
	if r.maybe(3) {
		q.Retry = []string{"retry"}
		add("retry", broker.RoleRetry)
	}
	if !r.maybe(3) {
		q.DeadLetter = "dead"
		add("dead", broker.RoleDeadLetter)
	}
	e.Observation = r.observation(stateOfTotals(r, e))
	return q, e
}

// stateOfTotals is what package rabbitmq makes of the same queues.
func stateOfTotals(r dice, e *broker.Evidence) flow.State {
	is := func(s flow.State) func(broker.Queue) bool { return func(q broker.Queue) bool { return q.State == s } }
	switch {
	case !slices.ContainsFunc(e.Queues, func(q broker.Queue) bool { return q.State != flow.Error }):
		return flow.Error
	case slices.ContainsFunc(e.Queues, func(q broker.Queue) bool { return !is(flow.Found)(q) || q.Messages() > 0 }) || r.maybe(5):
		return flow.Unknown
	}
	return flow.Absent
}

func (r dice) account(kinds ...flow.EventKind) *flow.Account {
	if r.maybe(2) {
		return nil
	}
	a := &flow.Account{Observation: r.observation(flow.Found, flow.Found, flow.Absent, flow.Unknown, flow.Error), Cut: r.maybe(5)}
	if a.Seen() || r.maybe(2) {
		a.Since = now.Add(-pick(r, time.Minute, time.Hour, 1000*time.Hour))
	}
	// What was known stays known when the source is lost.
	if a.State == flow.Absent {
		return a
	}
	for range 1 + r.IntN(5) {
		a.Events = append(a.Events, flow.Event{Kind: pick(r, kinds...), At: now.Add(-r.span()), Outcome: pick(r, "", "rejected", rough),
			Worker: pick(r, "", "w:1", "w:2"), MessageID: rough, Place: rough, Redelivered: r.maybe(2), Arrived: r.maybe(2)})
	}
	// Few orders of steps mean that a message was given back and waits.
	if slices.Contains(kinds, flow.GivenBack) && r.maybe(4) {
		a.Events = append(a.Events, flow.Event{Kind: flow.GivenBack, At: now, Worker: "w:1"})
	}
	slices.SortStableFunc(a.Events, func(a, b flow.Event) int { return a.At.Compare(b.At) })
	return a
}

// plain reports a text without anything that a terminal would obey.
func plain(s string) bool {
	return s == strings.ToValidUTF8(s, "") && flow.Visible(strings.TrimSpace(s)) == strings.TrimSpace(s)
}
