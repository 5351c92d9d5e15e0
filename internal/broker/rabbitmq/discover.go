package rabbitmq

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	// listPage is how many queues one answer lists; each takes some 400 bytes.
	listPage = 200
	// maxSingle bounds how many queues and exchanges are asked for one by one.
	maxSingle = 100
)

// QueueFacts is how one queue was declared.
type QueueFacts struct {
	Name string
	// Kind is the broker's word: classic, quorum, stream.
	Kind string
	// Passing: the queue ends with a connection or with its last consumer.
	Passing bool
	// Delays: messages expire after a time that holds for all of them, as they
	// do in a queue that delays retries.
	Delays bool
	// DeadLetters: rejected and expired messages go on to an exchange.
	DeadLetters bool
	// Targets are the queues to which they go, as far as the bindings tell.
	Targets []string
}

// Discovery is what a broker's vhost has by way of queues.
type Discovery struct {
	Queues []QueueFacts
	// Complete: there are no more queues than were listed.
	Complete bool
}

// Discover lists the queues of the vhost with how they were declared, at most
// limit of them, a page at a time and without their statistics, which would
// cost a large broker seconds. Where messages go that are dead-lettered to an
// exchange, its bindings tell. The error is an *Error.
func (b *Broker) Discover(ctx context.Context, limit int) (Discovery, error) {
	start := time.Now()
	listed, complete, err := b.list(ctx, limit)
	if err == nil {
		err = b.policies(ctx, listed)
	}
	var routes map[string][]binding
	if err == nil {
		routes, err = b.bindings(ctx, listed)
	}
	if err != nil {
		return Discovery{}, &Error{Text: b.explain(err, time.Since(start)), Source: b.source(), cause: err}
	}
	s := Discovery{Complete: complete}
	for _, q := range listed {
		s.Queues = append(s.Queues, q.facts(routes))
	}
	return s, nil
}

// listedQueue is one queue as a list without statistics shows it.
type listedQueue struct {
	Name       string
	Type       string
	Exclusive  bool
	AutoDelete bool `json:"auto_delete"`
	Arguments  object
	// Policy names the policy that applies; what it says has to be asked for.
	Policy     string
	definition object
}

func (b *Broker) list(ctx context.Context, limit int) (queues []*listedQueue, complete bool, err error) {
	for page := 1; ; page++ {
		var answer struct {
			Items []*listedQueue
			Pages int `json:"page_count"`
		}
		address := b.url("name,type,exclusive,auto_delete,arguments,policy,page_count", "queues", b.opts.Vhost) +
			fmt.Sprintf("&disable_stats=true&enable_queue_totals=true&page=%d&page_size=%d", page, listPage)
		if err := b.get(ctx, address, &answer); isMissing(err) {
			return nil, false, errNoVhost
		} else if err != nil {
			return nil, false, err
		}
		queues = append(queues, answer.Items...)
		switch {
		case len(queues) > limit:
			return queues[:limit], false, nil
		case page >= answer.Pages:
			return queues, true, nil
		}
	}
}

// policies asks what the policies of queues say about dead letters, for those
// whose arguments say nothing.
func (b *Broker) policies(ctx context.Context, queues []*listedQueue) error {
	asked := 0
	for _, q := range queues {
		if q.Policy == "" || q.Arguments.has("x-dead-letter-exchange") || isDots(q.Name) || asked == maxSingle {
			continue
		}
		asked++
		var answer struct {
			Definition object `json:"effective_policy_definition"`
		}
		// Without the name, an answer that has nothing else would be an empty list.
		err := b.get(ctx, b.url("name,effective_policy_definition", "queues", b.opts.Vhost, q.Name), &answer)
		if err != nil && !isMissing(err) {
			return err
		}
		q.definition = answer.Definition
	}
	return nil
}

// setting reads one setting of a queue; an argument outweighs the policy.
func (q *listedQueue) setting(name string) (value string, ok bool) {
	for _, from := range []struct {
		settings object
		name     string
	}{{q.Arguments, "x-" + name}, {q.definition, name}} {
		if text, has := from.settings[from.name]; has {
			if json.Unmarshal(text, &value) != nil {
				value = string(text)
			}
			return value, true
		}
	}
	return "", false
}

// binding is one way out of an exchange.
type binding struct {
	Destination string
	Kind        string `json:"destination_type"`
	Key         string `json:"routing_key"`
}

// bindings reads the ways out of every exchange that dead letters go to. The
// default exchange has none: there a routing key is the name of a queue.
func (b *Broker) bindings(ctx context.Context, queues []*listedQueue) (map[string][]binding, error) {
	routes := map[string][]binding{}
	for _, q := range queues {
		exchange, ok := q.setting("dead-letter-exchange")
		if _, known := routes[exchange]; !ok || exchange == "" || known || isDots(exchange) || len(routes) == maxSingle {
			continue
		}
		var list []binding
		err := b.get(ctx, b.url("destination,destination_type,routing_key", "exchanges", b.opts.Vhost, exchange, "bindings", "source"), &list)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		routes[exchange] = slices.DeleteFunc(list, func(w binding) bool { return w.Kind != "queue" })
	}
	return routes, nil
}

func (q *listedQueue) facts(routes map[string][]binding) QueueFacts {
	f := QueueFacts{Name: q.Name, Kind: q.Type, Passing: q.Exclusive || q.AutoDelete}
	_, f.Delays = q.setting("message-ttl")
	var exchange string
	if exchange, f.DeadLetters = q.setting("dead-letter-exchange"); f.DeadLetters {
		key, keyed := q.setting("dead-letter-routing-key")
		f.Targets = targets(exchange, key, keyed, q.Name, routes[exchange])
	}
	return f
}

// targets tells to which queues dead letters go. Without a routing key of its
// own a message keeps the one that it came with, which mostly is the queue's name.
func targets(exchange, key string, keyed bool, queue string, ways []binding) []string {
	if !keyed {
		key = queue
	}
	if exchange == "" {
		return []string{key}
	}
	var exact, all []string
	for _, w := range ways {
		if w.Key == key {
			exact = append(exact, w.Destination)
		}
		all = append(all, w.Destination)
	}
	switch {
	case len(exact) > 0:
		return exact
	case len(all) == 1:
		return all
	}
	return nil
}
