package doctor

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// TestRetentionIsComparedWithWhatComesBackLater has what queues may tell, and not tell.
func TestRetentionIsComparedWithWhatComesBackLater(t *testing.T) {
	const week = 7 * 24 * time.Hour
	asked := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	waits := func(ttl time.Duration) broker.QueueSetUp {
		return broker.QueueSetUp{State: flow.Found, Expires: true, MessageTTL: ttl}
	}
	holds := func(age time.Duration) broker.QueueSetUp {
		return broker.QueueSetUp{State: flow.Found, HeadPublished: asked.Add(-age)}
	}
	untimed := broker.QueueSetUp{State: flow.Found}
	unread := broker.QueueSetUp{State: flow.Error, Reason: flow.T("it hangs", "无响应")}
	for name, c := range map[string]struct {
		keeps         time.Duration
		first, second broker.QueueSetUp
		dead          broker.QueueSetUp
		want          string
	}{
		"sound":                             {week, waits(time.Minute), waits(time.Hour), holds(time.Hour), "+retry_delay +dead_letter_age"},
		"nothing is cleaned":                {0, waits(30 * week), waits(30 * week), holds(30 * week), ""},
		"a long delay":                      {week, waits(time.Minute), waits(week), holds(time.Hour), "!retry_delay +dead_letter_age"},
		"the first one is long":             {week, waits(2 * week), waits(time.Minute), holds(time.Hour), "!retry_delay +dead_letter_age"},
		"an old dead letter":                {week, waits(time.Minute), waits(time.Hour), holds(week), "+retry_delay !dead_letter_age"},
		"one delay is not known":            {week, waits(time.Minute), untimed, untimed, ""},
		"one is not known, another is long": {week, untimed, waits(week), untimed, "!retry_delay"},
		"one queue cannot be read":          {week, waits(time.Minute), unread, unread, "?retry_delay ?dead_letter_age"},
		"a timestamp that lies ahead":       {week, untimed, untimed, holds(-time.Hour), ""},
		"no such queues":                    {week, broker.QueueSetUp{State: flow.Absent}, broker.QueueSetUp{State: flow.Absent}, broker.QueueSetUp{State: flow.Absent}, ""},
	} {
		one := soundFlow(t, func(f *flow.Flow) {
			f.Marker, f.Queue = nil, &flow.Queue{Broker: "rabbit", Name: "work", Retry: []string{"first", "second"}, DeadLetter: "dead"}
		})
		d := &Doctor{opts: Options{Flows: []flow.Flow{one}, Retention: func(string) (time.Duration, bool) { return c.keeps, c.keeps > 0 }}}
		queue := func(name string, is broker.QueueSetUp) queueFacts {
			return queueFacts{NamedQueue: broker.NamedQueue{Name: name}, asked: asked, is: told[broker.QueueSetUp]{is: is}}
		}
		joined := d.joinFlows(facts{brokers: []brokerFacts{{name: "rabbit", queues: []queueFacts{
			queue("work", untimed), queue("first", c.first), queue("second", c.second), queue("dead", c.dead),
		}}}})
		if got := retentionMarks(joined[0]); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// retentionMarks lists the checks of the retention: + fine, ! a problem, ? cannot be told.
func retentionMarks(f flowFacts) string {
	var r Report
	apply(&r, Subject{KindFlow, f.Name}, retentionRules, f)
	var marks []string
	for _, rule := range retentionRules {
		short := strings.TrimPrefix(rule.Code, "retention_below_")
		for _, p := range r.Fine {
			if p.Code == rule.Code {
				marks = append(marks, "+"+short)
			}
		}
		for _, p := range r.Problems {
			if p.Code == rule.Code {
				marks = append(marks, "!"+short)
			}
		}
		for _, u := range r.Unsure {
			if u.Code == rule.Code {
				marks = append(marks, "?"+short)
			}
		}
	}
	return strings.Join(marks, " ")
}

func TestARetryDelayBeyondTheRetentionIsReported(t *testing.T) {
	w := newWard(t, soundTable)
	_, ch := w.addBroker(t, nil)
	w.flow().Queue.Retry = []string{"order.paid.retry"}
	w.opts.Retention = func(ledger string) (time.Duration, bool) { return time.Hour, ledger == "orders" }
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, "order.paid.dlq", nil)
	back := func(ttl int64) amqp.Table {
		return amqp.Table{"x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "order.paid"}
	}
	declare(t, ch, "order.paid.retry", back(60_000))
	r := w.examine(t)
	wantProblems(t, r)
	if !isFine(r, "retention_below_retry_delay") {
		t.Error("a short delay is not fine")
	}
	if _, err := ch.QueueDelete("order.paid.retry", false, false, false); err != nil {
		t.Fatal(err)
	}
	declare(t, ch, "order.paid.retry", back(7_200_000))
	r = w.examine(t)
	wantProblems(t, r, "retention_below_retry_delay flow payments")
	if p := problem(t, r, "retention_below_retry_delay"); p.Seen.EN != "messages wait in order.paid.retry for 2 h, records are kept for 1 h" {
		t.Error(p.Seen.EN)
	}
}

func TestADeadLetterOlderThanTheRetentionIsReported(t *testing.T) {
	const check = "retention_below_dead_letter_age"
	w := newWard(t, soundTable)
	_, ch := w.addBroker(t, nil)
	w.opts.Retention = func(ledger string) (time.Duration, bool) { return time.Hour, ledger == "orders" }
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, "order.paid.dlq", nil)
	// lies makes one message the only dead letter.
	lies := func(published time.Time) {
		t.Helper()
		if _, err := ch.QueuePurge("order.paid.dlq", false); err != nil {
			t.Fatal(err)
		}
		m := amqp.Publishing{Body: []byte("{}"), DeliveryMode: amqp.Persistent, Timestamp: published}
		if err := ch.PublishWithContext(t.Context(), "", "order.paid.dlq", false, false, m); err != nil {
			t.Fatal(err)
		}
	}
	has := func(r Report) bool {
		for _, p := range r.Problems {
			if p.Code == check {
				return true
			}
		}
		return false
	}
	lies(time.Now().Add(-3*time.Hour - 5*time.Minute))
	testkit.Eventually(t, 40*time.Second, func() bool { return has(w.examine(t)) }, "an old dead letter does not show")
	r := w.examine(t)
	wantProblemsOf(t, r, KindFlow, check)
	if p := problem(t, r, check); !strings.HasPrefix(p.Seen.EN, "the first message in order.paid.dlq was published 3 h 5 min ago by its timestamp, records are kept for 1 h") {
		t.Error(p.Seen.EN)
	}
	lies(time.Now())
	testkit.Eventually(t, 40*time.Second, func() bool { return isFine(w.examine(t), check) }, "a young dead letter is not fine")
	lies(time.Time{}) // the publisher sets no timestamp
	testkit.Eventually(t, 40*time.Second, func() bool { r := w.examine(t); return !isFine(r, check) && !has(r) }, "the age of a dead letter is made up")
}

// TestAnAckTimeoutThatCannotBeReadIsCannotTell: the queue may have one of its own.
func TestAnAckTimeoutThatCannotBeReadIsCannotTell(t *testing.T) {
	ran, _ := runsOf(lockstore.TypeCounters{BizType: "pay", Buckets: counted("pay", 10, time.Second).Buckets})
	for state, want := range map[flow.State]state{flow.Found: passed, flow.Error: untold} {
		q := queueFacts{is: told[broker.QueueSetUp]{is: broker.QueueSetUp{State: state, Reason: flow.T("it hangs", "无响应")}}}
		f := flowFacts{Flow: soundFlow(t, nil), counted: true, runs: told[[]runs]{is: []runs{ran}}, queue: &q}
		if got := judgeAckTimeout(f); len(got) != 1 || got[0].state != want {
			t.Errorf("%s: %+v", state, got)
		}
	}
}
