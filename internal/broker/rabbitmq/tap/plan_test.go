package tap

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

func texts(p Plan) string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, s.Text.EN)
	}
	return strings.Join(lines, "\n")
}

func TestAPlanChangesNothingAndAppliesOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	first, err := s.tap.Plan(t.Context(), size)
	s.must(t, err)
	steps := []string{
		"create stream idemscope.tap, which keeps messages for 1 h, at most 20 MB", "create exchange idemscope.tap (fanout)",
		`bind idemscope.tap to exchange shop, key "order.paid"`,
	}
	if first.Version.Abilities().DeadLettersReachStreams {
		steps = append(steps, `bind idemscope.tap to exchange shop.dlx, key "order.paid.dlq"`)
	} else {
		steps = append(steps, "create queue idemscope.tap.dead", `bind idemscope.tap.dead to exchange shop.dlx, key "order.paid.dlq"`)
	}
	for _, want := range steps {
		if !strings.Contains(texts(first), want) {
			t.Errorf("no step %q in\n%s", want, texts(first))
		}
	}
	if again, err := s.tap.Plan(t.Context(), size); err != nil || texts(again) != texts(first) || !again.Pending() {
		t.Errorf("planning has changed something: %v\n%s", err, texts(again))
	}
	var done []string
	s.must(t, s.tap.Apply(t.Context(), first, func(s Step) { done = append(done, s.Text.EN) }))
	if strings.Join(done, "\n") != texts(first) {
		t.Errorf("done\n%s", strings.Join(done, "\n"))
	}
	again, err := s.tap.Plan(t.Context(), size)
	if err != nil || again.Pending() || texts(again) != texts(first) {
		t.Errorf("after the first time: %v, pending %v\n%s", err, again.Pending(), texts(again))
	}
	if len(first.Notes) == 0 || !strings.Contains(first.Notes[0].EN, "+73%") {
		t.Errorf("the cost is not told: %v", first.Notes)
	}
}

func TestRemovalLeavesNothingOfTheTap(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	p, err := s.tap.PlanRemoval(t.Context())
	s.must(t, err)
	want := []string{"delete queue idemscope.tap with", "delete exchange idemscope.tap"}
	if !p.Version.Abilities().DeadLettersReachStreams {
		want = append(want, "delete queue idemscope.tap.dead with")
	}
	for _, w := range want {
		if !strings.Contains(texts(p), w) || len(p.Steps) != len(want) {
			t.Errorf("no %q in\n%s", w, texts(p))
		}
	}
	s.must(t, s.tap.Apply(t.Context(), p, func(Step) {}))
	if p, err = s.tap.PlanRemoval(t.Context()); err != nil || len(p.Steps) != 0 {
		t.Errorf("%v: left\n%s", err, texts(p))
	}
	// The application's own are still there.
	for _, name := range payments.Queue.All() {
		if layout, err := s.tap.options.Manager.Layout(t.Context(), name); err != nil || !layout.Exists {
			t.Errorf("%s: %v, %v", name, layout, err)
		}
	}
}

func TestAStreamWithOtherArgumentsIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	_, err := s.tap.Plan(t.Context(), Size{MaxAge: 2 * time.Hour, MaxBytes: size.MaxBytes})
	if err == nil || !strings.Contains(err.Error(), "x-max-age=1h instead of 2h") {
		t.Errorf("got %v", err)
	}
	s.declare(t, "idemscope.other", nil)
	s.tap.options.Stream = "idemscope.other"
	if _, err = s.tap.Plan(t.Context(), size); err == nil || !strings.Contains(err.Error(), "it is a classic, not a stream") {
		t.Errorf("got %v", err)
	}
	for _, small := range []Size{{time.Second, size.MaxBytes}, {time.Hour, 1}} {
		if _, err = s.tap.Plan(t.Context(), small); err == nil || !strings.Contains(err.Error(), "--max-age or --max-bytes") {
			t.Errorf("got %v", err)
		}
	}
}

func TestABindingThatNoFlowNeedsAnyMoreIsTakenAway(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments, points)
	s.apply(t)
	p, err := s.newTap(t, s.amqpHost, payments).Plan(t.Context(), size)
	if err != nil || !strings.Contains(texts(p), `unbind idemscope.tap from exchange shop, key "points.changed"`) {
		t.Errorf("%v\n%s", err, texts(p))
	}
}

func TestWhatCannotBeTappedIsSaid(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.declare(t, "direct.only", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	s.declare(t, "nowhere", amqp.Table{"x-dead-letter-exchange": "no.such"})
	s.must(t, s.ch.QueueBind("nowhere", "nowhere", "shop", false, nil))
	tap := s.newTap(t, s.amqpHost,
		flow.Flow{Name: "direct", Queue: &flow.Queue{Broker: "rabbit", Name: "direct.only"}},
		flow.Flow{Name: "nowhere", Queue: &flow.Queue{Broker: "rabbit", Name: "nowhere", IDField: "id"}},
		flow.Flow{Name: "missing", Queue: &flow.Queue{Broker: "rabbit", Name: "misspelt", IDField: "id"}},
		flow.Flow{Name: "elsewhere", Queue: &flow.Queue{Broker: "other", Name: "elsewhere"}},
		flow.Flow{Name: "unqueued"})
	p, err := tap.Plan(t.Context(), size)
	s.must(t, err)
	var said []string
	for _, b := range p.Blind {
		if b.Text.ZH == "" {
			t.Errorf("not in Chinese: %s", b.Text.EN)
		}
		said = append(said, b.Flow+": "+b.Text.EN)
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{
		"direct: queue direct.only is bound to no exchange", "direct: dead letters of queue direct.only go by the default exchange",
		"direct: the flow does not say where its messages hold the biz_id", "nowhere: the dead-letter exchange no.such of queue nowhere does not exist",
		"missing: there is no queue misspelt",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not said: %s\n%s", want, all)
		}
	}
	if len(said) != 5 {
		t.Errorf("said\n%s", all)
	}
}

// The tap's credential can neither take a message of the application nor publish to it.
func TestTheTapsUserCanTouchNoMessageOfTheApplication(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.apply(t)
	s.send(t, "shop", "order.paid", body("order_paid", "1"))
	for what, try := range map[string]func(ch *amqp.Channel) error{
		"get": func(ch *amqp.Channel) error { _, _, err := ch.Get("order.paid", false); return err },
		"consume": func(ch *amqp.Channel) error {
			_, err := ch.Consume("order.paid", "", false, false, false, false, nil)
			return err
		},
		"purge":  func(ch *amqp.Channel) error { _, err := ch.QueuePurge("order.paid", false); return err },
		"delete": func(ch *amqp.Channel) error { _, err := ch.QueueDelete("order.paid", false, false, false); return err },
		"bind":   func(ch *amqp.Channel) error { return ch.QueueBind("order.paid", "#", "shop", false, nil) },
		"publish": func(ch *amqp.Channel) error {
			closed := ch.NotifyClose(make(chan *amqp.Error, 1))
			if err := ch.PublishWithContext(t.Context(), "shop", "order.paid", false, false, body("order_paid", "x")); err != nil {
				return err
			}
			return <-closed
		},
		"publish to a queue": func(ch *amqp.Channel) error {
			closed := ch.NotifyClose(make(chan *amqp.Error, 1))
			if err := ch.PublishWithContext(t.Context(), "", "order.paid", false, false, body("order_paid", "x")); err != nil {
				return err
			}
			return <-closed
		},
	} {
		conn, err := s.tap.address.Dial(t.Context(), "intruder")
		s.must(t, err)
		ch, err := conn.Channel()
		s.must(t, err)
		if err := try(ch); link.Code(err) != amqp.AccessRefused {
			t.Errorf("%s: %v", what, err)
		}
		link.Close(conn)
	}
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	s := openShop(t, payments)
	s.administer(t, "PUT", map[string]string{"configure": `^idemscope\.`, "write": `^idemscope\.`, "read": `^idemscope\.`}, "permissions", s.Name, s.Name+"-tap")
	p, err := s.tap.Plan(t.Context(), size)
	s.must(t, err)
	err = s.tap.Apply(t.Context(), p, func(Step) {})
	if err == nil || !strings.Contains(err.Error(), `bind idemscope.tap to exchange shop`) || !strings.Contains(err.Error(), "lacks a permission") || strings.Contains(err.Error(), tapPassword) {
		t.Errorf("got %v", err)
	}
	s.administer(t, "PUT", map[string]string{"password": "changed", "tags": ""}, "users", s.Name+"-tap")
	p, err = s.tap.Plan(t.Context(), size)
	s.must(t, err)
	if err = s.tap.Apply(t.Context(), p, func(Step) {}); err == nil || !strings.Contains(err.Error(), "wrong user or password") {
		t.Errorf("got %v", err)
	}
	var said interface{ Words() flow.Text }
	if !errors.As(err, &said) || said.Words().ZH == "" {
		t.Errorf("not in both languages: %v", err)
	}
}

func TestABadAddressIsRefusedWithoutQuotingIt(t *testing.T) {
	for _, uri := range []string{"", "amqp://127.0.0.1", "http://u:tell-nobody@h", "amqp://u:tell-nobody@h:port/", "amqp://:tell-nobody@h/", "amqp://u:tell nobody@h"} {
		_, err := New(Options{Broker: "rabbit", AMQP: uri})
		if err == nil || !strings.Contains(err.Error(), "amqp must be a URL") || strings.Contains(err.Error(), "nobody") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestTopicPatternsMatchWordByWord(t *testing.T) {
	for _, c := range []struct {
		pattern, key string
		want         bool
	}{
		{"#", "", true}, {"#", "a.b", true}, {"a.#", "a", true}, {"a.#", "a.b.c", true}, {"a.*", "a", false}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false},
		{"#.c", "a.b.c", true}, {"#.c", "c", true}, {"a.#.c", "a.c", true}, {"a.#.c", "a.b.d", false}, {"a", "a", true}, {"a", "b", false}, {"*.#", "", true},
		{"", "", true}, {"", "a", false}, {strings.Repeat("#.", 60) + "x", strings.Repeat("a.", 100) + "y", false},
	} {
		r := route{Binding: rabbitmq.Binding{Exchange: "e", Key: c.pattern}, kind: "topic"}
		if got := r.carries("e", c.key); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.key, got)
		}
		if r.carries("f", c.key) {
			t.Error("another exchange carried it")
		}
	}
	direct := route{Binding: rabbitmq.Binding{Exchange: "e", Key: "a.*"}, kind: "direct"}
	if direct.carries("e", "a.b") || !direct.carries("e", "a.*") {
		t.Error("a direct exchange compares keys as they are")
	}
	fanout := route{Binding: rabbitmq.Binding{Exchange: "e"}, kind: "fanout"}
	if !fanout.carries("e", "any") {
		t.Error("a fanout exchange ignores keys")
	}
}

func TestDeadLettersAreCaughtUnderTheKeyThatTheyHave(t *testing.T) {
	bound := rabbitmq.Layout{Name: "q", Bindings: []rabbitmq.Binding{{Exchange: "e", Key: "b"}, {Exchange: "e", Key: "a"}}, DeadLetters: &rabbitmq.DeadLetters{Exchange: "d"}}
	for kind, want := range map[string]string{"topic": "#", "fanout": "", "headers": "", "direct": "a,b,q"} {
		if got := strings.Join(deathKeys(bound, kind), ","); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	bound.DeadLetters.Key, bound.DeadLetters.HasKey = "k", true
	if got := deathKeys(bound, "topic"); len(got) != 1 || got[0] != "k" {
		t.Errorf("with a key of its own: %q", got)
	}
}
