package console

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// canned stands in for all three stores where rendering is the subject, so that
// every kind of evidence can be put on a page, also kinds that real stores show
// for milliseconds only. Judging and answering are the real ones.
type canned struct {
	record func(flow.Key) ledger.Found
	lock   func(key string) lockstore.Entry
	queues func(flow.Queue) broker.Evidence
	// similar are Redis keys that read like the asked one.
	similar []string
}

func (c canned) Find(_ context.Context, k flow.Key) ledger.Found { return c.record(k) }
func (c canned) Look(_ context.Context, key string) lockstore.Entry {
	e := c.lock(key)
	e.Key = key
	return e
}
func (c canned) LookSimilar(context.Context, []string) []string           { return c.similar }
func (c canned) Evidence(_ context.Context, q flow.Queue) broker.Evidence { return c.queues(q) }

// desk answers from canned evidence.
func (c canned) desk(t testing.TB, flows []flow.Flow) *answer.Desk {
	t.Helper()
	catalog := flow.NewCatalog(flows)
	o := dossier.Options{Catalog: catalog, Ledgers: map[string]dossier.Records{}, Redis: map[string]dossier.Keys{}, Brokers: map[string]dossier.Queues{}}
	for _, f := range flows {
		o.Ledgers[f.Ledger] = c
		for _, shape := range []*flow.RedisKey{f.Lock, f.Marker} {
			if shape != nil {
				o.Redis[shape.Redis] = c
			}
		}
		if f.Queue != nil {
			o.Brokers[f.Queue.Broker] = c
		}
	}
	gatherer, err := dossier.NewGatherer(o)
	if err != nil {
		t.Fatal(err)
	}
	return answer.NewDesk(answer.Options{Catalog: catalog, Gatherer: gatherer})
}

// readAt is when canned stores were read: a fixed instant, so that pages are the same in every run.
var readAt = time.Date(2026, 3, 14, 18, 7, 31, 412e6, time.UTC)

func seen(state flow.State, source, command string) flow.Observation {
	return flow.Observation{State: state, Source: source, ReadAt: readAt, Took: 3 * time.Millisecond, Command: command}
}

func failed(source string, why flow.Text) flow.Observation {
	o := seen(flow.Error, source, "")
	o.Reason = why
	return o
}

func row(status string, phase flow.Phase, age time.Duration) ledger.Row {
	created := readAt.Add(-age)
	return ledger.Row{
		Table: "shop.idempotent_record", ID: "84291", BizType: "order_paid", BizID: "20260314000123", Exact: true,
		Status: status, Phase: phase, Age: age, AgeKnown: true,
		Created: ledger.Stamp{State: ledger.StampOK, Text: created.Format(time.DateTime), Time: created.Add(-2 * time.Second)},
		Updated: ledger.Stamp{State: ledger.StampOK, Text: created.Format(time.DateTime), Time: created},
	}
}

func records(rows ...ledger.Row) func(flow.Key) ledger.Found {
	return func(k flow.Key) ledger.Found {
		f := ledger.Found{
			Observation: seen(flow.Absent, "mysql main, shop.idempotent_record", "SELECT * FROM `shop`.`idempotent_record` WHERE `biz_type` = 'order_paid' AND `biz_id` = '20260314000123' LIMIT 20 -- mysql main"),
			DBNow:       readAt,
		}
		if len(rows) > 0 && (k.BizID == orderNo || k.BizID == rows[0].BizID) {
			f.State, f.Rows = flow.Found, rows
		}
		return f
	}
}

func redisKeys(lock, marker lockstore.Entry) func(string) lockstore.Entry {
	return func(key string) lockstore.Entry {
		e := marker
		if !strings.HasPrefix(key, "idempotent:") {
			e = lock
		}
		if !strings.HasSuffix(key, orderNo) {
			e = none()
		}
		e.Observation = seen(e.State, "redis main (127.0.0.1:6379)", "redis-cli -h 127.0.0.1 -p 6379 PTTL "+key+"; redis-cli -h 127.0.0.1 -p 6379 GETRANGE "+key+" 0 4095")
		return e
	}
}

func held(value string, ttl time.Duration) lockstore.Entry {
	return lockstore.Entry{Observation: flow.Observation{State: flow.Found}, Type: "string", Value: value, Length: int64(len(value)), TTL: ttl}
}

func none() lockstore.Entry {
	return lockstore.Entry{Observation: flow.Observation{State: flow.Absent}}
}

func queues(ready, unacked, dead int64) func(flow.Queue) broker.Evidence {
	return func(q flow.Queue) broker.Evidence {
		found := seen(flow.Found, "rabbitmq rabbit", "")
		e := broker.Evidence{
			Observation:   seen(flow.Absent, "broker rabbit (http://127.0.0.1:15672, vhost /)", "rabbitmqctl list_queues -p / name messages_ready messages_unacknowledged consumers"),
			StatisticsAge: 10 * time.Second,
			Queues: []broker.Queue{
				{Observation: found, Name: q.Name, Role: broker.RoleWork, Kind: "quorum", Ready: ready, Unacked: unacked, Consumers: 4, Redelivered: 311, RedeliveredKnown: true, DeadLetterExchange: true},
				{Observation: found, Name: q.Name + ".retry", Role: broker.RoleRetry, Kind: "classic"},
				{Observation: found, Name: q.DeadLetter, Role: broker.RoleDeadLetter, Kind: "classic", Ready: dead},
			},
		}
		e.Coverage = []flow.Text{flow.T("totals only; no message was looked at", "仅统计总数；没有查看任何消息")}
		if ready+unacked+dead > 0 {
			e.State = flow.Unknown
			e.Reason = flow.T("%d messages are there and this could be one of them", "有 %d 条消息，它可能是其中之一", ready+unacked+dead)
		}
		return e
	}
}

// shopFlows are the flows of a small shop.
func shopFlows(t testing.TB) []flow.Flow {
	t.Helper()
	template := func(text string) flow.Template {
		parsed, err := flow.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	return []flow.Flow{
		{
			Name: "payments", BizTypes: []string{"order_paid", "refund"}, Ledger: "orders",
			Lock:       &flow.RedisKey{Redis: "main", Template: template("idem_lock:{biz_type}:{biz_id}"), TTL: 15 * time.Second},
			Marker:     &flow.RedisKey{Redis: "main", Template: template("idempotent:{biz_type}:{biz_id}"), TTL: 24 * time.Hour},
			Queue:      &flow.Queue{Broker: "rabbit", Name: "order.paid", Retry: []string{"order.paid.retry"}, DeadLetter: "order.paid.dlq", IDField: "data.order_no"},
			StaleAfter: 5 * time.Minute, OnProcessing: flow.Refuse, Rerun: flow.RerunManual,
		},
		{Name: "points", BizTypes: []string{"points_granted"}, Ledger: "points", StaleAfter: time.Minute,
			Lock: &flow.RedisKey{Redis: "main", Template: template("consume_lock:{biz_type}:{biz_id}"), TTL: 2 * time.Second}},
		{Name: "signs", BizTypes: []string{"sign"}, Ledger: "signs"},
		{Name: "mirror", BizTypes: []string{"refund"}, Ledger: "mirror"},
	}
}

// serve starts the console over a desk.
func serve(t testing.TB, o Options) *httptest.Server {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Patience == 0 {
		o.Patience = time.Minute // a busy machine must not turn a test of something else into one of patience
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// keyPath is the address of a key's page.
func keyPath(bizType, bizID string, more ...string) string {
	values := url.Values{"type": {bizType}, "id": {bizID}}
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return "/key?" + values.Encode()
}
