package doctor

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// administer calls the management API as the administrator.
func administer(t testing.TB, v *testkit.Vhost, body any, segments ...string) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	address := v.Management + "/api"
	for _, s := range segments {
		address += "/" + url.PathEscape(s)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(v.Admin, v.AdminPassword)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("PUT %q: %s", segments, resp.Status)
	}
}

// TestAQueueThatIsSetUpBadlyIsReported declares one fault at a time.
func TestAQueueThatIsSetUpBadlyIsReported(t *testing.T) {
	const work = "queue rabbit/order.paid"
	w := newWard(t, soundTable)
	_, ch := w.addBroker(t, nil)
	declare(t, ch, "order.paid.dlq", nil)
	if err := ch.QueueBind("order.paid.dlq", "", "amq.fanout", false, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args amqp.Table
		want []string
	}{
		"sound":                         {sound(nil), nil},
		"sound quorum":                  {sound(amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 5}), nil},
		"no dead letters":               {nil, []string{"no_dead_letter"}},
		"quorum with a limit":           {amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 5}, []string{"delivery_limit_drops"}},
		"quorum without a limit":        {amqp.Table{"x-queue-type": "quorum"}, []string{"no_dead_letter"}}, // before 4.0
		"no such exchange":              {amqp.Table{"x-dead-letter-exchange": "gone"}, []string{"dead_letter_nowhere"}},
		"an exchange without a binding": {amqp.Table{"x-dead-letter-exchange": "amq.topic"}, []string{"dead_letter_nowhere"}},
		"an exchange with a binding":    {amqp.Table{"x-dead-letter-exchange": "amq.fanout"}, nil},
		"no such queue":                 {amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "gone"}, []string{"dead_letter_nowhere"}},
		"its own routing key":           {amqp.Table{"x-dead-letter-exchange": ""}, nil},
		"bounded":                       {amqp.Table{"x-max-length": 10}, []string{"no_dead_letter", "drops_oldest"}},
		"bounded in bytes":              {amqp.Table{"x-max-length-bytes": 1000, "x-overflow": "drop-head"}, []string{"no_dead_letter", "drops_oldest"}},
		"bounded and refusing":          {amqp.Table{"x-max-length": 10, "x-overflow": "reject-publish"}, []string{"no_dead_letter"}},
		"bounded with dead letters":     {sound(amqp.Table{"x-max-length": 10}), nil},
		"expiring":                      {amqp.Table{"x-message-ttl": 1000}, []string{"no_dead_letter", "expiry_drops"}},
		"expiring with dead letters":    {sound(amqp.Table{"x-message-ttl": 1000}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			declare(t, ch, "order.paid", c.args)
			defer func() {
				if _, err := ch.QueueDelete("order.paid", false, false, false); err != nil {
					t.Error(err)
				}
			}()
			var want []string
			for _, code := range c.want {
				want = append(want, code+" "+work)
			}
			r := w.examine(t)
			wantProblems(t, r, want...)
			for _, code := range c.want {
				p := problem(t, r, code)
				t.Log(p.Seen.EN)
				if p.Command != "" && !strings.Contains(p.Command, `'^order\.paid$'`) {
					t.Error(p.Command)
				}
			}
		})
	}
}

func TestPoliciesCountAsArgumentsDo(t *testing.T) {
	w := newWard(t, soundTable)
	v, ch := w.addBroker(t, nil)
	declare(t, ch, "order.paid", amqp.Table{"x-queue-type": "quorum"})
	declare(t, ch, "order.paid.dlq", nil)
	wantProblems(t, w.examine(t), "no_dead_letter queue rabbit/order.paid")
	policy := func(definition map[string]any) {
		administer(t, v, map[string]any{"pattern": `^order\.paid$`, "definition": definition, "apply-to": "queues"}, "policies", v.Name, "p")
	}
	settles := func(want ...string) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, func() bool { return strings.Join(words(w.examine(t)), ",") == strings.Join(want, ",") },
			"not %q, last %q", want, words(w.examine(t)))
	}
	policy(map[string]any{"delivery-limit": 3})
	settles("delivery_limit_drops queue rabbit/order.paid")
	policy(map[string]any{"delivery-limit": 3, "dead-letter-exchange": "", "dead-letter-routing-key": "order.paid.dlq"})
	settles()
}

func TestMirroredAndFleetingQueuesAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	v, ch := w.addBroker(t, nil)
	if _, err := ch.QueueDeclare("order.paid", false, true, false, false, sound(nil)); err != nil {
		t.Fatal(err)
	}
	declare(t, ch, "order.paid.dlq", nil)
	administer(t, v, map[string]any{"pattern": `^order\.paid$`, "definition": map[string]any{"ha-mode": "all"}, "apply-to": "queues"}, "policies", v.Name, "ha")
	want := []string{"classic_mirrored queue rabbit/order.paid", "queue_not_durable queue rabbit/order.paid"}
	testkit.Eventually(t, 20*time.Second, func() bool { return len(w.examine(t).Problems) == 2 }, "the policy does not show")
	wantProblems(t, w.examine(t), want...)
}

func TestMissingQueuesAreReportedWithHostileNames(t *testing.T) {
	w := newWard(t, soundTable)
	_, ch := w.addBroker(t, nil)
	hostile := "<script>alert(1)</script>\u202e"
	w.flow().Queue.Retry = []string{hostile, "gone"}
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, hostile, nil)
	r := w.examine(t)
	wantProblems(t, r, "queue_missing queue rabbit/gone", "queue_missing queue rabbit/order.paid.dlq", "dead_letter_nowhere queue rabbit/order.paid")
	if r.Exit() != 1 {
		t.Error(r.Exit())
	}
	w.flow().Queue.Name = hostile
	p := problem(t, w.examine(t), "no_dead_letter")
	if !strings.Contains(p.Subject.Word().EN, `</script>\u202e`) || strings.Contains(p.Command, "\u202e") {
		t.Errorf("%q %q", p.Subject.Word().EN, p.Command)
	}
}

func TestDeadLettersThatNobodyReadsAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	_, ch := w.addBroker(t, nil)
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, "order.paid.dlq", nil)
	if err := ch.PublishWithContext(t.Context(), "", "order.paid.dlq", false, false, amqp.Publishing{Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 40*time.Second, func() bool { return len(words(w.examine(t))) == 1 }, "the dead letter is not counted, or grows for ever: %q", words(w.examine(t)))
	r := w.examine(t)
	wantProblems(t, r, "dead_letters_unattended queue rabbit/order.paid.dlq")
	if p := problem(t, r, "dead_letters_unattended"); p.Seen.EN != "1 messages, no consumer" {
		t.Error(p.Seen.EN)
	}
	if _, err := ch.Consume("order.paid.dlq", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 40*time.Second, func() bool { return len(w.examine(t).Problems) == 0 }, "the consumer is not counted")

	w.flow().Queue.DeadLetter = ""
	wantProblems(t, w.examine(t), "dead_letter_unnamed queue rabbit/order.paid")
}

func TestAnAdministratorIsTooMuchForMonitoring(t *testing.T) {
	w := newWard(t, soundTable)
	v, ch := w.addBroker(t, nil)
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, "order.paid.dlq", nil)
	b, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: v.Management, Vhost: v.Name, User: v.Admin, Password: v.AdminPassword, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w.opts.Brokers["rabbit"] = b
	r := w.examine(t)
	wantProblems(t, r, "broker_rights_wide broker rabbit")
	if p := problem(t, r, "broker_rights_wide"); !strings.Contains(p.Seen.EN, "administrator") {
		t.Error(p.Seen.EN)
	}
}

// TestDeliveryLimitsByVersion: which limit holds depends on the version.
func TestDeliveryLimitsByVersion(t *testing.T) {
	for _, c := range []struct {
		version string
		queue   broker.QueueSetUp
		want    bool
	}{
		{"3.13.7", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, false},
		{"4.0.5", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, true},
		{"4.3.6", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, true},
		{"4.0.5", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1, Unlimited: true}, false},
		{"4.0.5", broker.QueueSetUp{Kind: "classic", DeliveryLimit: -1}, false},
		{"4.0.5", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1, DeadLetter: &broker.DeadLetter{State: flow.Found}}, false},
		{"3.10.8", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: 0}, true},
		{"unreadable", broker.QueueSetUp{Kind: "quorum", DeliveryLimit: -1}, false},
	} {
		c.queue.State = flow.Found
		f := queueFacts{version: c.version, is: told[broker.QueueSetUp]{is: c.queue}}
		got := judgeDeliveryLimit(f, c.queue)
		if failing := len(got) > 0 && got[0].state == failed; failing != c.want {
			t.Errorf("%s %+v: %t", c.version, c.queue, failing)
		}
	}
	grows := broker.QueueSetUp{State: flow.Found, Counted: true, Messages: 9, Growth: 0.4}
	if got := judgeGrowth(queueFacts{NamedQueue: broker.NamedQueue{Role: broker.RoleDeadLetter}}, grows); got[0].state != failed || got[0].seen.EN != "9 messages, growing by 0.4 a second" {
		t.Errorf("%+v", got)
	}
}
