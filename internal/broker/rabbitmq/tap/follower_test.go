package tap

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestPublicationsAreCountedExactlyPerKeyAndFlow(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments, points)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	for _, m := range []struct{ queue, bizType, id string }{
		{"order.paid", "order_paid", "1"}, {"order.paid", "order_paid", "1"}, {"order.paid", "refund", "1"},
		{"points.changed", "points_grant", "1"}, {"order.paid", "order_paid", "2"}, {"order.paid", "order_paid", "1"},
		{"points.changed", "order_paid", "1"}, // a type that the flow does not name
	} {
		s.send(t, "shop", m.queue, body(m.bizType, m.id))
	}
	settled(t, f)
	for _, c := range []struct {
		flow flow.Flow
		key  flow.Key
		want int
	}{
		{payments, key("order_paid", "1"), 3}, {payments, key("refund", "1"), 1}, {points, key("points_grant", "1"), 1},
		{payments, key("order_paid", "2"), 1}, {points, key("order_paid", "1"), 0}, {payments, key("order_paid", "3"), 0},
	} {
		a := f.Tell(t.Context(), c.flow, c.key)
		if got := len(a.Events); got != c.want || len(a.Of(flow.Published)) != c.want {
			t.Errorf("%s %s: %d events, want %d\n%s", c.flow.Name, c.key, got, c.want, summary(a))
		}
		if want := map[bool]flow.State{true: flow.Found, false: flow.Absent}[c.want > 0]; a.State != want {
			t.Errorf("%s %s: %s %v, want %s", c.flow.Name, c.key, a.State, a.Reason, want)
		}
	}
	a := f.Tell(t.Context(), payments, key("order_paid", "2"))
	e := a.Events[0]
	if e.Place != "shop" || e.MessageID != "m-2" || e.Certainty != flow.Reported || e.Arrived || time.Since(e.At) > time.Minute || !strings.Contains(e.Source, "tap of rabbitmq rabbit") {
		t.Errorf("%+v", e)
	}
	if !a.Covers(time.Now()) || a.Covers(time.Now().Add(-time.Hour)) {
		t.Errorf("covered since %s", a.Since)
	}
	if n := f.Tally(); n.Events != 6 || n.Unreadable != 1 {
		t.Errorf("%+v", n)
	}
}

func TestTheApplicationsQueuesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	for _, id := range []string{"1", "2", "3"} {
		s.send(t, "shop", "order.paid", body("order_paid", id))
	}
	awaitEvents(t, f, payments, key("order_paid", "3"), flow.Published, 1)
	for _, id := range []string{"1", "2", "3"} {
		d, ok, err := s.ch.Get("order.paid", true)
		if err != nil || !ok || d.MessageId != "m-"+id || d.Redelivered {
			t.Errorf("%s: %v %v %+v", id, ok, err, d)
		}
	}
}

// die rejects the messages of a queue, or lets them expire.
func TestDeadLettersAreSeenWithTheirReason(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	s.send(t, "shop", "order.paid", body("order_paid", "rejected"))
	d, ok, err := s.ch.Get("order.paid", false)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s.must(t, d.Reject(false))
	expiring := body("order_paid", "expired")
	expiring.Expiration = "1"
	s.send(t, "shop", "order.paid", expiring)
	for _, reason := range []string{"rejected", "expired"} {
		a := awaitEvents(t, f, payments, key("order_paid", reason), flow.DeadLettered, 1)
		e := a.Of(flow.DeadLettered)[0]
		if e.Outcome != reason || e.Place != "order.paid" || e.MessageID != "m-"+reason || e.Certainty != flow.Observed || e.Arrived || time.Since(e.At) > time.Minute {
			t.Errorf("%+v", e)
		}
		if n := len(a.Of(flow.Published)); n != 1 {
			t.Errorf("%s was published %d times\n%s", reason, n, summary(a))
		}
	}
	// Both rest in the application's own dead-letter queue as well.
	testkit.Eventually(t, soon, func() bool {
		q, err := s.ch.QueueDeclarePassive("order.paid.dlq", true, false, false, false, nil)
		return err == nil && q.Messages == 2
	}, "the application's dead letters are not there")
}

func TestARestartedFollowerGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	f, stop := s.follow(t, s.tap)
	for _, id := range []string{"1", "1", "2"} {
		s.send(t, "shop", "order.paid", body("order_paid", id))
	}
	d, ok, err := s.ch.Get("order.paid", false)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s.must(t, d.Nack(false, false))
	awaitEvents(t, f, payments, key("order_paid", "1"), flow.DeadLettered, 1)
	settled(t, f)
	before, since := map[string]string{}, map[string]time.Time{}
	for _, id := range []string{"1", "2"} {
		a := f.Tell(t.Context(), payments, key("order_paid", id))
		before[id], since[id] = summary(a), a.Since
	}
	stop()
	again, _ := s.follow(t, s.tap)
	settled(t, again)
	for _, id := range []string{"1", "2"} {
		a := again.Tell(t.Context(), payments, key("order_paid", id))
		if got := summary(a); got != before[id] || a.Since != since[id] || strings.Count(before[id], "\n") == 0 {
			t.Errorf("%s: since %s, then %s\n%sthen\n%s", id, since[id], a.Since, before[id], got)
		}
	}
}

func TestALostLineIsSaidAndHealsWithoutAGap(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	proxy := testkit.NewProxy(t, s.amqpHost)
	f, _ := s.follow(t, s.newTap(t, proxy.Addr, payments))
	s.send(t, "shop", "order.paid", body("order_paid", "1"))
	since := awaitEvents(t, f, payments, key("order_paid", "1"), flow.Published, 1).Since
	proxy.Drop(true)
	var a *flow.Account
	testkit.Eventually(t, soon, func() bool {
		a = f.Tell(t.Context(), payments, key("order_paid", "1"))
		return a.State == flow.Error
	}, "the loss does not show")
	if len(a.Events) != 1 || a.Covers(time.Now()) || a.Reason.ZH == "" || strings.Contains(a.Reason.EN, tapPassword) {
		t.Errorf("%+v", a)
	}
	s.send(t, "shop", "order.paid", body("order_paid", "1"))
	proxy.Drop(false)
	a = awaitEvents(t, f, payments, key("order_paid", "1"), flow.Published, 2)
	settled(t, f)
	a = f.Tell(t.Context(), payments, key("order_paid", "1"))
	if len(a.Events) != 2 || !a.Since.Equal(since) || !a.Covers(time.Now()) {
		t.Errorf("since %s, then %s\n%s", since, a.Since, summary(a))
	}
}

func TestAStreamThatIsMadeAnewIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	for range 20 { // more than the new one will hold
		s.send(t, "shop", "order.paid", body("order_paid", "old"))
	}
	awaitEvents(t, f, payments, key("order_paid", "old"), flow.Published, 20)
	p, err := s.tap.PlanRemoval(t.Context())
	s.must(t, err)
	s.must(t, s.tap.Apply(t.Context(), p, func(Step) {}))
	testkit.Eventually(t, soon, func() bool {
		return f.Tell(t.Context(), payments, key("order_paid", "old")).State == flow.Error
	}, "the removal does not show")
	made := time.Now()
	s.apply(t)
	s.send(t, "shop", "order.paid", body("order_paid", "new"))
	a := awaitEvents(t, f, payments, key("order_paid", "new"), flow.Published, 1)
	if a.Since.Before(made.Add(-time.Second)) {
		t.Errorf("it claims to cover since %s, made at %s", a.Since, made)
	}
	if old := f.Tell(t.Context(), payments, key("order_paid", "old")); len(old.Events) != 0 {
		t.Errorf("of the old stream: %s", summary(old))
	}
}

func TestAnExchangeThatIsBoundLaterIsCoveredFromThenOn(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments, points)
	first := s.newTap(t, s.amqpHost, payments)
	p, err := first.Plan(t.Context(), size)
	s.must(t, err)
	s.must(t, first.Apply(t.Context(), p, func(Step) {}))
	s.must(t, s.ch.ExchangeDeclare("shop.dlx", "direct", true, false, false, false, nil))
	// The second flow's exchange is not bound to the stream yet.
	s.must(t, s.ch.QueueUnbind("points.changed", "points.changed", "shop", nil))
	s.must(t, s.ch.QueueBind("points.changed", "points", "shop.dlx", false, nil))
	f, stop := s.follow(t, s.tap)
	settled(t, f)
	k := key("points_grant", "1")
	if a := f.Tell(t.Context(), points, k); a.State != flow.Unknown || !strings.Contains(a.Reason.EN, "not bound to all exchanges") || a.Covers(time.Now()) {
		t.Errorf("%+v", a)
	}
	if a := f.Tell(t.Context(), payments, key("order_paid", "1")); a.State != flow.Absent || !a.Covers(time.Now()) {
		t.Errorf("the other flow: %+v", a)
	}
	stop()
	bound := time.Now()
	s.apply(t)
	f, _ = s.follow(t, s.tap)
	settled(t, f)
	a := f.Tell(t.Context(), points, k)
	if a.State != flow.Absent || !a.Covers(time.Now()) || a.Covers(bound.Add(-time.Millisecond)) {
		t.Errorf("bound %s: %+v", bound, a)
	}
	if a := f.Tell(t.Context(), payments, key("order_paid", "1")); !a.Covers(bound) {
		t.Errorf("the other flow is covered since %s only", a.Since)
	}
}

func TestHostileBodiesAreCountedAndHarmNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	deep := strings.Repeat("[", 100_000)
	for _, text := range []string{
		"", "{", "[]", "null", `{"biz_id":1}`, `{"biz_id":null,"biz_type":"refund"}`, `{"biz_id":{"a":1},"biz_type":"refund"}`,
		`{"biz_id":"x","biz_type":["refund"]}`, "{\"biz_id\":\"\xff\",\"biz_type\":\"refund\"}", `{"a":` + deep, `{"biz_id":"x","biz_type":"nobody"}`,
		`{"biz_id":"a","biz_type":"refund"} {}`,
	} {
		s.send(t, "shop", "order.paid", amqp.Publishing{Body: []byte(text)})
	}
	s.send(t, "shop", "order.paid", amqp.Publishing{Body: []byte(`{"biz_type":"refund","biz_id":9007199254740993}`)})
	s.send(t, "shop", "order.paid", amqp.Publishing{Body: []byte(`{"biz_type":"refund","biz_id":"a\u0000b"}`)})
	settled(t, f)
	for _, id := range []string{"9007199254740993", "a\x00b"} {
		if a := f.Tell(t.Context(), payments, key("refund", id)); len(a.Events) != 1 || !a.Events[0].Arrived {
			t.Errorf("%q: %+v", id, a)
		}
	}
	if n := f.Tally(); n.Events != 2 || n.Unreadable != 12 || n.TooLarge != 0 {
		t.Errorf("%+v", n)
	}
	if a := f.Tell(t.Context(), payments, key("refund", "x")); a.State != flow.Absent {
		t.Errorf("%+v", a)
	}
	// A large body could be about any key.
	s.send(t, "shop", "order.paid", amqp.Publishing{Body: []byte(`{"biz_type":"refund","biz_id":"big","pad":"` + strings.Repeat("x", maxBody) + `"}`)})
	long := body("refund", strings.Repeat("i", maxID+1))
	long.MessageId = ""
	s.send(t, "shop", "order.paid", long)
	settled(t, f)
	if n := f.Tally(); n.TooLarge != 2 {
		t.Errorf("%+v", n)
	}
	if a := f.Tell(t.Context(), payments, key("refund", "x")); a.State != flow.Unknown || !strings.Contains(a.Reason.EN, "beyond 1 MB") {
		t.Errorf("%+v", a)
	}
}

func TestAScanReadsTheLastHourWithoutWriting(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	for _, id := range []string{"1", "1", "2"} {
		s.send(t, "shop", "order.paid", body("order_paid", id))
	}
	scan := s.tap.NewScanner()
	for range 2 {
		a := scan.Tell(t.Context(), payments, key("order_paid", "1"))
		if a.State != flow.Found || len(a.Events) != 2 || !a.Covers(time.Now()) || a.Took <= 0 {
			t.Errorf("%+v", a)
		}
		// The marks of the three bindings, and the three messages: it has added none.
		if text := a.Coverage[len(a.Coverage)-1].EN; !strings.Contains(text, ", 6 messages") && !strings.Contains(text, ", 5 messages") {
			t.Errorf("coverage %s", text)
		}
	}
	if a := scan.Tell(t.Context(), payments, key("order_paid", "3")); a.State != flow.Absent || !a.Covers(time.Now()) {
		t.Errorf("%+v", a)
	}
}
