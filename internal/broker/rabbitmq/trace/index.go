package trace

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
	"idemscope/internal/history"
)

const (
	// maxBody bounds the bodies that are read.
	maxBody = 1 << 20
	// maxID bounds a biz_id or biz_type. No unique key of MySQL holds more.
	maxID = 3072
	// maxEvents bounds the events of all flows together.
	maxEvents = 100_000
	minEvents = 5_000
	// maxCounts bounds the keys that are counted.
	maxCounts = 100_000
)

// Count is how often messages of one key were delivered.
type Count struct {
	Flow string
	Key  flow.Key
	// Deliveries in all, Redelivered those of them that RabbitMQ marked so.
	Deliveries, Redelivered int64
}

// index is the deliveries of one trace, by flow.
type index struct {
	trace *Trace

	mu         sync.Mutex
	logs       map[string]*history.Log
	counts     map[flow.Place]*Count
	deliveries int64
	unread     int64
	// doubtful are the flows of which a delivery could not be read.
	doubtful map[string]bool
}

func (t *Trace) newIndex() *index {
	x := &index{trace: t, logs: map[string]*history.Log{}, counts: map[flow.Place]*Count{}, doubtful: map[string]bool{}}
	for _, f := range t.flows {
		x.logs[f.Name] = history.New(history.Options{Source: t.source(), MaxEvents: max(maxEvents/len(t.flows), minEvents)})
	}
	return x
}

// add counts one copy of a delivery.
func (x *index) add(d amqp.Delivery, arrived time.Time) {
	queue, ok := strings.CutPrefix(d.RoutingKey, deliverPrefix)
	user, _ := d.Headers["user"].(string)
	if !ok || slices.Contains(x.trace.options.OwnUsers, user) {
		return
	}
	e := flow.Event{
		Kind: flow.Delivered, At: arrived, Arrived: true, Layer: flow.LayerBroker, Source: x.trace.source(), Certainty: flow.Observed,
		Place: queue, Worker: worker(d.Headers, user), MessageID: messageID(d.Headers), Redelivered: redelivered(d.Headers),
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deliveries++
	read := false
	var candidates []string
	for _, f := range x.trace.flows {
		if !slices.Contains(f.Queue.All(), queue) {
			continue
		}
		candidates = append(candidates, f.Name)
		if k, ok := keyOf(f, e.MessageID, d.Body); ok {
			read = true
			x.put(flow.Place{Flow: f.Name, Key: k}, e)
		}
	}
	if !read {
		x.unread++
		for _, name := range candidates {
			x.doubtful[name] = true
		}
	}
}

func (x *index) put(p flow.Place, e flow.Event) {
	x.logs[p.Flow].Add(p.Key, e)
	c := x.counts[p]
	if c == nil {
		if len(x.counts) >= maxCounts {
			return
		}
		c = &Count{Flow: p.Flow, Key: p.Key}
		x.counts[p] = c
	}
	c.Deliveries++
	if e.Redelivered {
		c.Redelivered++
	}
}

func keyOf(f flow.Flow, messageID string, body []byte) (flow.Key, bool) {
	if len(body) > maxBody {
		return flow.Key{}, false
	}
	keys := f.KeysOf(messageID, body)
	if len(keys) != 1 || len(keys[0].BizID) > maxID || len(keys[0].BizType) > maxID {
		return flow.Key{}, false
	}
	return keys[0], true
}

func (x *index) top(n int) []Count {
	x.mu.Lock()
	all := make([]Count, 0, len(x.counts))
	for _, c := range x.counts {
		all = append(all, *c)
	}
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Deliveries, a.Deliveries), cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Key.BizType, b.Key.BizType), cmp.Compare(a.Key.BizID, b.Key.BizID))
	})
	return all[:min(n, len(all))]
}

// worker names who got the delivery: RabbitMQ's name of the connection, and the user.
func worker(headers amqp.Table, user string) string {
	connection, _ := headers["connection"].(string)
	if user == "" {
		return connection
	}
	return connection + " (" + user + ")"
}

func messageID(headers amqp.Table) string {
	properties, _ := headers["properties"].(amqp.Table)
	id, _ := properties["message_id"].(string)
	return id
}

// redelivered reads a flag that RabbitMQ writes as a number.
func redelivered(headers amqp.Table) bool {
	switch v := headers["redelivered"].(type) {
	case bool:
		return v
	case int64:
		return v != 0
	case int32:
		return v != 0
	case int16:
		return v != 0
	case int8:
		return v != 0
	case byte:
		return v != 0
	}
	return false
}
