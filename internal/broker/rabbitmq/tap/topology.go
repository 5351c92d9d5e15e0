package tap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
)

// topology is how messages of the flows get into their queues, and where they go
// when they die there.
type topology struct {
	version rabbitmq.Version
	// feeds are the bindings of the flows' work queues.
	feeds []route
	// deaths are the bindings that catch the dead letters of the flows' queues.
	deaths []route
	// blind says what cannot be tapped, by flow.
	blind map[string][]flow.Text
}

// route is a binding, and the flow whose messages it carries.
type route struct {
	rabbitmq.Binding
	// kind is that of the exchange.
	kind string
	flow string
	// queue is the flow's queue at the end of the binding or, of a death, the
	// queue in which the message died.
	queue string
}

// look reads the topology of the flows.
func (t *Tap) look(ctx context.Context, flows []flow.Flow) (topology, error) {
	top := topology{blind: map[string][]flow.Text{}}
	var err error
	if top.version, err = t.options.Manager.Version(ctx); err != nil {
		return topology{}, err
	}
	layouts, err := t.layouts(ctx, flows)
	if err != nil {
		return topology{}, err
	}
	kinds := map[string]string{}
	for _, f := range flows {
		for _, name := range f.Queue.All() {
			layout := layouts[name]
			if err := t.learnKinds(ctx, layout, kinds); err != nil {
				return topology{}, err
			}
			if !layout.Exists {
				top.blind[f.Name] = append(top.blind[f.Name], flow.T("there is no queue %s", "没有队列 %s", flow.Visible(name)))
				continue
			}
			if name == f.Queue.Name {
				top.addFeeds(f, layout, kinds)
			}
			top.addDeaths(f, layout, kinds)
		}
	}
	return top, nil
}

// layouts reads all queues of the flows, some at a time: a look-up waits for it.
func (t *Tap) layouts(ctx context.Context, flows []flow.Flow) (map[string]rabbitmq.Layout, error) {
	const together = 4
	var (
		mu       sync.Mutex
		all      = map[string]rabbitmq.Layout{}
		asked    = map[string]bool{}
		failures []error
		asking   sync.WaitGroup
		free     = make(chan struct{}, together)
	)
	for _, f := range flows {
		for _, name := range f.Queue.All() {
			if asked[name] {
				continue
			}
			asked[name] = true
			free <- struct{}{}
			asking.Go(func() {
				defer func() { <-free }()
				layout, err := t.options.Manager.Layout(ctx, name)
				mu.Lock()
				defer mu.Unlock()
				all[name] = layout
				failures = append(failures, err)
			})
		}
	}
	asking.Wait()
	return all, errors.Join(failures...)
}

// learnKinds asks for the kind of each exchange that the queue has to do with.
func (t *Tap) learnKinds(ctx context.Context, layout rabbitmq.Layout, kinds map[string]string) error {
	names := map[string]bool{}
	for _, b := range layout.Bindings {
		names[b.Exchange] = true
	}
	if layout.DeadLetters != nil && layout.DeadLetters.Exchange != "" {
		names[layout.DeadLetters.Exchange] = true
	}
	for name := range names {
		if _, known := kinds[name]; known {
			continue
		}
		kind, err := t.options.Manager.ExchangeKind(ctx, name)
		if err != nil {
			return err
		}
		kinds[name] = kind
	}
	return nil
}

func (top *topology) addFeeds(f flow.Flow, layout rabbitmq.Layout, kinds map[string]string) {
	for _, b := range layout.Bindings {
		top.feeds = append(top.feeds, route{Binding: b, kind: kinds[b.Exchange], flow: f.Name, queue: layout.Name})
	}
	if len(layout.Bindings) == 0 {
		top.blind[f.Name] = append(top.blind[f.Name], flow.T(
			"queue %s is bound to no exchange: messages reach it by the default exchange, to which nothing can be bound. To make them visible, let the publisher send to an exchange of its own and bind the queue to it",
			"队列 %s 没有绑定任何交换机：消息经默认交换机到达，而默认交换机无法绑定。若要可见，请让生产者发送到自己的交换机，并把该队列绑定到它", flow.Visible(layout.Name)))
	}
}

// addDeaths finds the bindings that a dead letter of the queue would follow.
func (top *topology) addDeaths(f flow.Flow, layout rabbitmq.Layout, kinds map[string]string) {
	d := layout.DeadLetters
	if d == nil {
		return
	}
	kind := kinds[d.Exchange]
	switch {
	case d.Exchange == "":
		top.blind[f.Name] = append(top.blind[f.Name], flow.T(
			"dead letters of queue %s go by the default exchange, to which nothing can be bound. To make them visible, give the queue a dead-letter exchange of its own (by a policy, if the queue must not be declared anew)",
			"队列 %s 的死信经默认交换机转发，而默认交换机无法绑定。若要可见，请为该队列设置自己的死信交换机（如果不便重新声明队列，可用策略设置）", flow.Visible(layout.Name)))
		return
	case kind == "":
		top.blind[f.Name] = append(top.blind[f.Name], flow.T(
			"the dead-letter exchange %s of queue %s does not exist: what dies in the queue is gone",
			"队列 %[2]s 的死信交换机 %[1]s 不存在：在该队列中死亡的消息会直接丢失", flow.Visible(d.Exchange), flow.Visible(layout.Name)))
		return
	}
	for _, key := range deathKeys(layout, kind) {
		top.deaths = append(top.deaths, route{
			Binding: rabbitmq.Binding{Exchange: d.Exchange, Key: key}, kind: kind, flow: f.Name, queue: layout.Name,
		})
	}
}

// deathKeys are the routing keys under which dead letters of the queue arrive.
// Without a key of its own a dead letter keeps that of its publication, which an
// exchange that does not route by equal keys can be asked for in general.
func deathKeys(layout rabbitmq.Layout, kind string) []string {
	switch {
	case layout.DeadLetters.HasKey:
		return []string{layout.DeadLetters.Key}
	case kind == "topic":
		return []string{"#"}
	case kind == "fanout", kind == "headers":
		return []string{""}
	}
	keys := map[string]bool{layout.Name: true} // published by the default exchange
	for _, b := range layout.Bindings {
		keys[b.Key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// bindings are the distinct bindings of routes, in a stable order.
func bindings(routes []route) []rabbitmq.Binding {
	var all []rabbitmq.Binding
	for _, r := range routes {
		if !slices.ContainsFunc(all, func(b rabbitmq.Binding) bool { return sameBinding(b, r.Binding) }) {
			all = append(all, r.Binding)
		}
	}
	slices.SortFunc(all, func(a, b rabbitmq.Binding) int {
		return slices.Compare([]string{a.Exchange, a.Key}, []string{b.Exchange, b.Key})
	})
	return all
}

func sameBinding(a, b rabbitmq.Binding) bool {
	return a.Exchange == b.Exchange && a.Key == b.Key && (len(a.Arguments) == 0 && len(b.Arguments) == 0 || fmt.Sprint(a.Arguments) == fmt.Sprint(b.Arguments))
}

// lacking are the wanted bindings that there are not.
func lacking(wanted, there []rabbitmq.Binding) []rabbitmq.Binding {
	var missing []rabbitmq.Binding
	for _, w := range wanted {
		if !slices.ContainsFunc(there, func(b rabbitmq.Binding) bool { return sameBinding(w, b) }) {
			missing = append(missing, w)
		}
	}
	return missing
}
