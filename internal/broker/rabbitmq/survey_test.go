package rabbitmq

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestTheSetUpOfQueuesIsReadByTheMonitorAlone(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	b, ch := open(t, v, nil), channel(t, v.AMQP)
	declare(t, ch, "work", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 7, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq", "x-max-length": 9, "x-overflow": "reject-publish"})
	declare(t, ch, "dlq", amqp.Table{"x-message-ttl": 60000})
	s, err := b.SetUp(t.Context(), []broker.NamedQueue{{Name: "work", Role: broker.RoleWork}, {Name: "dlq", Role: broker.RoleDeadLetter}, {Name: "gone"}, {Name: ".."}})
	if err != nil || s.Version == "" || strings.Join(s.Tags, " ") != "monitoring" || len(s.Queues) != 4 {
		t.Fatalf("%+v %v", s, err)
	}
	work, dlq, gone, odd := s.Queues[0], s.Queues[1], s.Queues[2], s.Queues[3]
	if work.Kind != "quorum" || !work.Durable || work.AutoDelete || work.DeliveryLimit != 7 || !work.Bounded || work.Overflow != "reject-publish" || work.Expires || work.Mirrored ||
		work.DeadLetter == nil || work.DeadLetter.State != flow.Found || work.DeadLetter.Key != "dlq" {
		t.Errorf("%+v %+v", work, work.DeadLetter)
	}
	if !dlq.Expires || dlq.MessageTTL != time.Minute || !dlq.HeadPublished.IsZero() || dlq.DeadLetter != nil || dlq.DeliveryLimit != -1 || dlq.Role != broker.RoleDeadLetter {
		t.Errorf("%+v", dlq)
	}
	if gone.State != flow.Absent || gone.Reason.ZH == "" || odd.State != flow.Error || odd.Reason.ZH == "" {
		t.Errorf("%+v %+v", gone, odd)
	}
}

func TestLimitsOfArgumentsAndPolicies(t *testing.T) {
	for text, want := range map[string]broker.QueueSetUp{
		`{}`: {DeliveryLimit: -1},
		`{"arguments":{"x-delivery-limit":9},"effective_policy_definition":{"delivery-limit":5}}`: {DeliveryLimit: 5},
		`{"arguments":{"x-delivery-limit":-1}}`:                                                   {DeliveryLimit: -1, Unlimited: true},
		`{"arguments":[],"effective_policy_definition":{"ha-mode":"all","max-length-bytes":1}}`:   {DeliveryLimit: -1, Mirrored: true, Bounded: true},
		`{"arguments":{"x-message-ttl":9000},"effective_policy_definition":{"message-ttl":5000}}`: {DeliveryLimit: -1, Expires: true, MessageTTL: 5 * time.Second},
		`{"arguments":{"x-message-ttl":-9000000000000000000}}`:                                    {DeliveryLimit: -1, Expires: true},
		`{"arguments":{"x-consumer-timeout":90000,"x-overflow":"drop-head"}}`:                     {DeliveryLimit: -1, AckTimeout: 90 * time.Second, Overflow: "drop-head"},
	} {
		var is declared
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			t.Fatal(err)
		}
		q := broker.QueueSetUp{DeliveryLimit: -1}
		is.limits(&q)
		if fmt.Sprintf("%+v", q) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", text, q, want)
		}
	}
}

// TestTheHeadsTimestampIsTakenWhereItIsOne: it is null without one, and publishers write what they like.
func TestTheHeadsTimestampIsTakenWhereItIsOne(t *testing.T) {
	for text, want := range map[string]time.Time{
		`{}`:                                              {},
		`{"head_message_timestamp":null}`:                 {},
		`{"head_message_timestamp":""}`:                   {},
		`{"head_message_timestamp":0}`:                    {},
		`{"head_message_timestamp":1795696589}`:           time.Unix(1795696589, 0),
		`{"head_message_timestamp":1795696589000}`:        {}, // milliseconds
		`{"head_message_timestamp":9223372036854775807}`:  {},
		`{"head_message_timestamp":18446744073709551615}`: {},
	} {
		var is declared
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			t.Fatal(err)
		}
		if got := is.headPublished(); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestASetUpThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	v := testkit.RabbitMQ(t)
	_, err := open(t, v, func(o *Options) { o.Password = "tell-nobody" }).SetUp(t.Context(), nil)
	var failure *Error
	if !errors.As(err, &failure) || failure.Worded().ZH == "" || strings.Contains(err.Error(), "tell-nobody") {
		t.Error(err)
	}
}
