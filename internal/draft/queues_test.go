package draft

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idemscope/internal/broker/rabbitmq"
)

// queue is a queue whose rejected messages go to the targets.
func queue(name string, targets ...string) rabbitmq.QueueFacts {
	return rabbitmq.QueueFacts{Name: name, Kind: "classic", DeadLetters: len(targets) > 0, Targets: targets}
}

func delaying(name string, targets ...string) rabbitmq.QueueFacts {
	q := queue(name, targets...)
	q.Delays = true
	return q
}

func TestQueuesArePairedByWhatTheBrokerDoesAndByName(t *testing.T) {
	stream, passing := queue("audit"), queue("amq.gen-1")
	stream.Kind, passing.Passing = "stream", true
	for name, c := range map[string]struct {
		queues  []rabbitmq.QueueFacts
		want    []string
		ignored []string
	}{
		"a retry that comes back":  {[]rabbitmq.QueueFacts{queue("pay", "pay.retry"), delaying("pay.retry", "pay"), queue("pay.dlq")}, []string{"pay + pay.retry + pay.dlq"}, nil},
		"a retry without its word": {[]rabbitmq.QueueFacts{queue("pay", "pay.5s"), delaying("pay.5s", "pay")}, []string{"pay + pay.5s"}, nil},
		"dead letters by argument": {[]rabbitmq.QueueFacts{queue("pay", "graveyard"), queue("graveyard")}, []string{"graveyard", "pay + graveyard"}, nil},
		"words in front":           {[]rabbitmq.QueueFacts{queue("order.paid"), queue("dlq.order.paid"), queue("retry_order_paid")}, []string{"order.paid + retry_order_paid + dlq.order.paid"}, nil},
		"of nobody":                {[]rabbitmq.QueueFacts{queue("pay"), queue("stock.dlq")}, []string{"pay"}, []string{"stock.dlq"}},
		"a target that is missing": {[]rabbitmq.QueueFacts{queue("pay", "nowhere")}, []string{"pay"}, nil},
		"itself":                   {[]rabbitmq.QueueFacts{queue("pay", "pay")}, []string{"pay"}, nil},
		"streams and passing ones": {[]rabbitmq.QueueFacts{stream, passing, queue("pay")}, []string{"pay"}, []string{"audit", "amq.gen-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			work, ignored := Pair(c.queues)
			var got, out []string
			for _, q := range work {
				got = append(got, q.String())
			}
			for _, i := range ignored {
				out = append(out, i.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) || !slices.Equal(out, c.ignored) {
				t.Errorf("work %q, ignored %q", got, out)
			}
		})
	}
}

func TestQueuesAreGivenToTheTypesThatTheyAreNamedAfter(t *testing.T) {
	for name, c := range map[string]struct {
		types, queues []string
		want          string
	}{
		"the same words":      {[]string{"order_paid", "orderShipped"}, []string{"order.paid", "order-shipped-queue"}, "order_paid=order.paid/3 orderShipped=order-shipped-queue/3"},
		"one inside another":  {[]string{"sign"}, []string{"user.sign", "order.paid"}, "sign=user.sign/2"},
		"one word":            {[]string{"points_grant", "points_revoke"}, []string{"points.changed"}, "points_grant=points.changed/1 points_revoke=points.changed/1"},
		"one word of another": {[]string{"order_paid", "order_refund"}, []string{"order.paid"}, "order_paid=order.paid/3"},
		"two that could be":   {[]string{"order_closed"}, []string{"order.paid", "order.shipped"}, ""},
		"none":                {[]string{"refund"}, []string{"order.paid"}, ""},
		"no letters":          {[]string{"::"}, []string{"--"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var work []*Queue
			for _, q := range c.queues {
				work = append(work, &Queue{Name: q})
			}
			found := assign(c.types, work)
			var got []string
			for _, bizType := range c.types {
				if one, ok := found[bizType]; ok {
					got = append(got, fmt.Sprintf("%s=%s/%d", bizType, one.Name, one.fit))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
