package tap

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
	"idemscope/internal/history"
	"idemscope/internal/testkit"
)

// charges holds the biz_id in the message id.
var charges = flow.Flow{Name: "charges", BizTypes: []string{"charge"}, Queue: &flow.Queue{
	Broker: "rabbit", Name: "charges", Retry: []string{"charges.retry"}, DeadLetter: "charges.dlq", IDProperty: flow.PropertyMessageID,
}}

func named(id string) amqp.Publishing {
	return amqp.Publishing{MessageId: id, Timestamp: time.Now(), DeliveryMode: amqp.Persistent, Body: []byte("no JSON")}
}

// searches reports whether the broker of the test searches its streams.
func (s *shop) searches(t *testing.T) bool {
	t.Helper()
	v, err := s.tap.options.Manager.Version(t.Context())
	s.must(t, err)
	return v.Abilities().SQLFilters
}

func coverage(a *flow.Account) string {
	var lines []string
	for _, text := range a.Coverage {
		lines = append(lines, text.EN)
	}
	return strings.Join(lines, "\n")
}

func TestMessageIDsAreFollowedWhereTheyAreTheBizIDs(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	for _, id := range []string{"1", "1", "2", ""} {
		s.send(t, "shop", "charges", named(id))
	}
	big := named("big")
	big.Body = make([]byte, maxBody+1)
	s.send(t, "shop", "charges", big)
	settled(t, f)
	for id, want := range map[string]int{"1": 2, "2": 1, "big": 1, "3": 0} {
		if a := f.Tell(t.Context(), charges, key("charge", id)); len(a.Of(flow.Published)) != want || !a.Seen() || !a.Covers(time.Now()) {
			t.Errorf("%s: %+v, want %d", id, a, want)
		}
	}
	if n := f.Tally(); n.Events != 4 || n.Unreadable != 1 || n.TooLarge != 0 {
		t.Errorf("%+v", n)
	}
}

// The same look-up on any version: where the broker can search, it does.
func TestALookUpByMessageIDUsesWhatTheVersionCan(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	ids := []string{"plain", "it's", `back\slash`, "a\nb", `a"b`, "中文😀", "a%b_c", "nul\x00x", "' OR TRUE OR '", "&p:x", "--c", "\xff", strings.Repeat("''", 127)}
	for range 2 {
		for _, id := range ids {
			s.send(t, "shop", "charges", named(id))
		}
	}
	d, ok, err := s.ch.Get("charges", false)
	if err != nil || !ok || d.MessageId != "plain" {
		t.Fatal(ok, err, d.MessageId)
	}
	s.must(t, d.Reject(false))
	searches := s.searches(t)
	if searches {
		testkit.Eventually(t, soon, func() bool {
			q, err := s.ch.QueueDeclarePassive("charges.dlq", true, false, false, false, nil)
			return err == nil && q.Messages == 1
		}, "the dead letter is not there")
	}
	s.send(t, "shop", "charges", named("latest"))
	scan := s.tap.NewScanner()
	for _, id := range ids {
		a := scan.Tell(t.Context(), charges, key("charge", id))
		if a.State != flow.Found || len(a.Of(flow.Published)) != 2 || !a.Covers(time.Now()) {
			t.Errorf("%q: %s\n%+v", id, summary(a), a)
		}
		wanted := "read now: the last 1 h of the stream"
		if searches && id != "\xff" {
			wanted = "searched now by the broker's own filter: the whole stream"
		}
		if got := coverage(a); !strings.Contains(got, wanted) || strings.Contains(got, "could not be used") {
			t.Errorf("%q: no %q in %s", id, wanted, got)
		}
	}
	if a := scan.Tell(t.Context(), charges, key("charge", "nobody")); a.State != flow.Absent || !a.Covers(time.Now()) {
		t.Errorf("%+v", a)
	}
	if a := scan.Tell(t.Context(), charges, key("charge", "latest")); len(a.Of(flow.Published)) != 1 {
		t.Errorf("the last message of the stream: %+v", a)
	}
	if !searches {
		return
	}
	a := scan.Tell(t.Context(), charges, key("charge", "plain"))
	deaths := a.Of(flow.DeadLettered)
	if len(deaths) != 1 || deaths[0].Outcome != "rejected" || deaths[0].Place != "charges" || deaths[0].Arrived || time.Since(deaths[0].At) > time.Minute {
		t.Errorf("deaths: %s", summary(a))
	}
}

// What a follower had to forget is found by the broker, if that can search.
func TestAFollowerAsksTheBrokerForWhatItHasForgotten(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	f, _ := s.follow(t, s.tap)
	x := f.current()
	x.mu.Lock()
	x.flows["charges"].log = history.New(history.Options{Source: "small", MaxEvents: 2})
	x.mu.Unlock()
	settled(t, f)
	at := time.Now()
	for i, id := range []string{"1", "2", "3", "4"} {
		m := named(id)
		m.Timestamp = at.Add(time.Duration(i+1) * time.Second) // seconds are all that the message keeps
		s.send(t, "shop", "charges", m)
	}
	settled(t, f)
	a := f.Tell(t.Context(), charges, key("charge", "1"))
	if searches := s.searches(t); searches != (a.State == flow.Found && a.Covers(at)) || searches == f.searched.IsZero() {
		t.Errorf("the broker searches: %v; %+v", searches, a)
	}
	if again := f.Tell(t.Context(), charges, key("charge", "2")); again.State != flow.Absent || again.Covers(at) {
		t.Errorf("the next look-up is answered from the index: %+v", again)
	}
}

func TestOnlyVersionsWithAFilterForWholeIDsAreAsked(t *testing.T) {
	for _, c := range []struct {
		version string
		flow    flow.Flow
		id      string
		want    bool
	}{
		{"3.10.8", charges, "1", false}, {"4.0.5", charges, "1", false}, {"4.1.9", charges, "1", false}, {"4.2.0", charges, "1", true},
		{"4.3.6", charges, "1", true}, {"4.3.6", payments, "1", false}, {"4.3.6", charges, "", false}, {"4.3.6", charges, "\xff", false},
		{"4.3.6", charges, strings.Repeat("x", maxSearched), true}, {"4.3.6", charges, strings.Repeat("x", maxSearched+1), false},
	} {
		v, err := rabbitmq.ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := searchable(v, c.flow, key("charge", c.id)); got != c.want {
			t.Errorf("%s %s %.20q: %v", c.version, c.flow.Name, c.id, got)
		}
	}
}

// A filter that the broker does not apply sends everything.
func TestWhatAFilterShouldNotHaveSentIsDropped(t *testing.T) {
	message := func(id any, offset int64) *amqp10.Message {
		return &amqp10.Message{Properties: &amqp10.MessageProperties{MessageID: id}, Annotations: amqp10.Annotations{"x-stream-offset": offset}}
	}
	var f filtered
	wanted := func(d amqp.Delivery) bool { return d.MessageId == "7" }
	for _, m := range []*amqp10.Message{
		message("7", 0), message("70", 1), message(uint64(7), 2), message([]byte("7"), 3), {}, message(nil, 4), message("end", 5), message("7", 6),
	} {
		f.take(m, end{"end", 9}, wanted)
	}
	if len(f.messages) != 2 || offsetOf(f.messages[0]) != 0 || offsetOf(f.messages[1]) != 6 || f.through {
		t.Errorf("%+v", f)
	}
	if f.take(message("7", 9), end{"end", 9}, wanted); !f.through || len(f.messages) != 2 {
		t.Errorf("what is read without a filter counts twice: %+v", f)
	}
}

// The end of a search is a message with an id. Without one the last hour is read.
func TestAStreamThatEndsWithoutAnIDIsReadInstead(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	s.send(t, "shop", "charges", named("1"))
	s.send(t, "shop", "charges", named(""))
	a := s.tap.NewScanner().Tell(t.Context(), charges, key("charge", "1"))
	if a.State != flow.Found || len(a.Events) != 1 || !a.Covers(time.Now()) || !strings.Contains(coverage(a), "the last 1 h") {
		t.Errorf("%+v", a)
	}
	if said := strings.Contains(coverage(a), "own filter could not be used"); said != s.searches(t) {
		t.Errorf("%s", coverage(a))
	}
}

func TestMoreMatchesThanAreReadAreNoWholeAnswer(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	var last *amqp.DeferredConfirmation
	for range maxMatches + 50 {
		var err error
		last, err = s.ch.PublishWithDeferredConfirmWithContext(t.Context(), "shop", "charges", false, false, named("1"))
		s.must(t, err)
	}
	if ok, err := last.WaitContext(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	s.send(t, "shop", "charges", named("2"))
	a := s.tap.NewScanner().Tell(t.Context(), charges, key("charge", "1"))
	if a.State != flow.Found || len(a.Events) == 0 {
		t.Errorf("%+v", a)
	}
	if searches := s.searches(t); searches && (!a.Since.IsZero() || !strings.Contains(coverage(a), "too many")) {
		t.Errorf("since %s: %s", a.Since, coverage(a))
	}
}

func TestASearchWithoutEnoughTimeProvesNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	s.send(t, "shop", "charges", named("1"))
	conn, err := s.tap.address.Dial(t.Context(), "test")
	s.must(t, err)
	defer link.Close(conn)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := s.tap.newIndex()
	top, untied, err := s.tap.lookAll(t.Context(), s.tap.flows)
	s.must(t, err)
	x.use(top, untied)
	read, err := s.tap.NewScanner().search(ctx, x, conn, "1")
	if err != nil || read.whole || read.note.Empty() {
		t.Fatalf("%+v, %v", read, err)
	}
	if a := x.answer("charges", key("charge", "1"), time.Now(), read, nil); a.State != flow.Unknown || a.Covers(time.Now()) {
		t.Errorf("%+v", a)
	}
	if a := s.tap.NewScanner().searchAlone(ctx, x, charges, key("charge", "1")); a != nil {
		t.Errorf("a follower would say %+v", a)
	}
}

// What a search found in its half of the time counts, and nothing of it twice.
func TestTheLastHourIsReadWhenASearchWasTooSlow(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	s.send(t, "shop", "charges", named("1"))
	s.send(t, "shop", "charges", named("1"))
	conn, err := s.tap.address.Dial(t.Context(), "test")
	s.must(t, err)
	defer link.Close(conn)
	early := func(offset int64) amqp.Delivery {
		return amqp.Delivery{MessageId: "1", Exchange: "shop", RoutingKey: "charges", Timestamp: time.Now(), Headers: amqp.Table{"x-stream-offset": offset}}
	}
	x := s.tap.newIndex()
	top, untied, err := s.tap.lookAll(t.Context(), s.tap.flows)
	s.must(t, err)
	x.use(top, untied)
	began := time.Now()
	// One stands before what the hour holds, the other is in it.
	read, err := s.tap.NewScanner().scanHour(t.Context(), x, conn, extent{early: []amqp.Delivery{early(-1), early(3)}, note: outOfTime}, began)
	s.must(t, err)
	a := x.answer("charges", key("charge", "1"), began, read, nil)
	if len(a.Events) != 3 || !strings.Contains(coverage(a), "the last 1 h") || !strings.Contains(coverage(a), outOfTime.EN) {
		t.Errorf("%s%s", summary(a), coverage(a))
	}
}

func TestABrokerThatLacksAMQP10SaysSoWithoutTheCredential(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	v, err := s.tap.options.Manager.Version(t.Context())
	s.must(t, err)
	_, closed, err := s.tap.address.Dial10(t.Context(), "test")
	if err == nil {
		closed()
	}
	if has := v.Major >= 4; has != (err == nil) {
		t.Errorf("%s: %v", v, err)
	}
	if text := s.tap.address.Explain(err); err != nil && (text.ZH == "" || strings.Contains(text.EN, tapPassword)) {
		t.Errorf("%+v", text)
	}
}

func TestARefusalByAMQP10IsPutIntoWords(t *testing.T) {
	a, err := link.ParseAddress("amqp://tap:"+tapPassword+"@127.0.0.1/shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, err := range map[string]error{
		"user tap lacks a permission: read access":  &amqp10.LinkError{RemoteErr: &amqp10.Error{Condition: amqp10.ErrCondUnauthorizedAccess, Description: "read access"}},
		"RabbitMQ refuses: amqp:not-found no queue": &amqp10.SessionError{RemoteErr: &amqp10.Error{Condition: amqp10.ErrCondNotFound, Description: "no queue"}},
		"RabbitMQ refuses: amqp:internal-error x":   &amqp10.ConnError{RemoteErr: &amqp10.Error{Condition: amqp10.ErrCondInternalError, Description: "x"}},
		"the connection to 127.0.0.1:5672 was lost": &amqp10.ConnError{},
	} {
		if got := a.Explain(err); got.EN != text || got.ZH == "" {
			t.Errorf("%+v, want %s", got, text)
		}
	}
}

func TestAFilterThatTheBrokerDoesNotTakeIsNoticed(t *testing.T) {
	t.Parallel()
	s := openShop(t, charges)
	s.apply(t)
	s.send(t, "shop", "charges", named("1"))
	conn, closed, err := s.tap.address.Dial10(t.Context(), "test")
	if !s.searches(t) {
		if err == nil {
			closed()
		}
		return
	}
	s.must(t, err)
	defer closed()
	session, err := conn.NewSession(t.Context(), nil)
	s.must(t, err)
	if _, err := s.tap.NewScanner().filter(t.Context(), session, "no SQL at all", end{"1", 0}, 1, isMark); !errors.Is(err, errNoFilter) {
		t.Errorf("%v", err)
	}
}
