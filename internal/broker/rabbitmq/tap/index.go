package tap

import (
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/history"
)

const (
	// maxEvents bounds the events of all flows together, some 300 bytes each.
	maxEvents = 200_000
	// minEvents is what each flow gets, however many there are.
	minEvents = 5_000
)

// index is what the stream told, by flow. The same biz_type may be kept in two
// ledgers, and is then a key of its own in each.
type index struct {
	tap *Tap

	mu    sync.Mutex
	top   topology
	flows map[string]*indexed
	// since is from when on the stream holds everything; zero: not known.
	since time.Time
	// bound is from when on an exchange has been bound to the stream, of those
	// that were bound later than the stream was made.
	bound map[string]time.Time
	// untied are the flows for which a binding of the stream is missing.
	untied map[string]bool
	tally  Tally
}

type indexed struct {
	flow flow.Flow
	log  *history.Log
	// keys, unread and large count messages.
	keys, unread, large int64
}

// Tally counts what the tap has read since it began.
type Tally struct {
	// Events were put into the index.
	Events int64
	// Unreadable messages name no key: no JSON, no biz_id, or no type.
	Unreadable int64
	// TooLarge messages were not looked at.
	TooLarge int64
	// Elsewhere: messages that belong to no flow.
	Elsewhere int64
	// FollowedAt is how far the stream is known to be read; zero: not at all yet.
	FollowedAt time.Time
}

func (t *Tap) newIndex() *index {
	x := &index{tap: t, flows: map[string]*indexed{}, bound: map[string]time.Time{}}
	for _, f := range t.flows {
		x.flows[f.Name] = &indexed{flow: f, log: history.New(history.Options{
			Source: t.source(), MaxEvents: max(maxEvents/len(t.flows), minEvents),
		})}
	}
	return x
}

// use takes a topology, and what the stream is bound to.
func (x *index) use(top topology, untied map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.top, x.untied = top, untied
}

// version is that of the broker, as last seen.
func (x *index) version() rabbitmq.Version {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.top.version
}

// add puts one message of the stream into the index. It returns the mark that
// the message is, if it is one.
func (x *index) add(d amqp.Delivery, arrived time.Time) (mark, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d.Exchange == x.tap.options.Stream {
		if m, ok := markOf(d); ok {
			x.addMark(m)
			return m, true
		}
		if died, ok := relayedDeath(d); ok {
			x.addDeath(d, died, arrived)
		}
		return mark{}, false
	}
	if died, ok := deathOf(d); ok && x.top.isDeath(d.Exchange) {
		x.addDeath(d, died, arrived)
		return mark{}, false
	}
	e := published(d, arrived)
	if !e.Arrived && e.Certainty == flow.Observed {
		x.begin(e.At, arrived)
	}
	names, sure := x.top.flowsOf(d.Exchange, d.RoutingKey)
	if !sure {
		x.addUnsure(d, e)
		return mark{}, false
	}
	x.spread(names, d, e)
	return mark{}, false
}

// begin notes from when on the stream holds everything: the time of the first
// message in it that we or the broker stamped. A publisher's clock may run
// behind, and would claim what the stream has long dropped.
func (x *index) begin(at, arrived time.Time) {
	if !x.since.IsZero() {
		return
	}
	if at.After(arrived) {
		at = arrived
	}
	x.since = at
}

func (x *index) addMark(m mark) {
	x.begin(m.at, time.Now())
	if m.kind == markBound {
		x.bound[m.exchange] = m.at
	}
}

func (x *index) addDeath(d amqp.Delivery, died death, arrived time.Time) {
	x.spread(x.tap.flowsOfQueue(died.queue), d, deadLettered(d, died, arrived))
}

// spread adds the event to each of the flows that can read the message. Flows
// that share a queue share it by type: the message is unreadable only if none
// of them can read it.
func (x *index) spread(names []string, d amqp.Delivery, e flow.Event) {
	if len(names) == 0 {
		x.tally.Elsewhere++
		return
	}
	worst, found := readKey, false
	for _, name := range names {
		k, how := keyOf(x.flows[name].flow, d)
		if how == readKey {
			x.put(name, k, e)
			found = true
		}
		worst = max(worst, how)
	}
	if found {
		return
	}
	for _, name := range names {
		if worst == tooLarge {
			x.flows[name].large++
		} else {
			x.flows[name].unread++
		}
	}
	if worst == tooLarge {
		x.tally.TooLarge++
	} else {
		x.tally.Unreadable++
	}
}

// addUnsure adds a message that came by way of another exchange: only a flow
// whose type it names, and only if that is one.
func (x *index) addUnsure(d amqp.Delivery, e flow.Event) {
	var name string
	var key flow.Key
	n := 0
	for _, of := range x.flows {
		if of.flow.Queue.TypeField == "" {
			continue
		}
		if k, how := keyOf(of.flow, d); how == readKey {
			name, key = of.flow.Name, k
			n++
		}
	}
	if n != 1 {
		x.tally.Elsewhere++
		return
	}
	x.put(name, key, e)
}

func (x *index) put(name string, k flow.Key, e flow.Event) {
	e.Source = x.tap.source()
	of := x.flows[name]
	of.log.Add(k, e)
	of.keys++
	x.tally.Events++
}

// gap notes that messages before at were dropped from the stream unread.
func (x *index) gap() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.since = time.Time{} // the next message that has a time sets it
}

// follow notes that all was read that was in the stream at the time.
func (x *index) follow(at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tally.FollowedAt = at
	for name, of := range x.flows {
		of.log.Follow(x.coveredFrom(name), at)
	}
}

// coveredFrom is from when on every publication of the flow must be in the stream.
func (x *index) coveredFrom(name string) time.Time {
	if x.untied[name] || x.since.IsZero() {
		return time.Time{}
	}
	since := x.since
	for _, r := range x.top.feeds {
		if at := x.bound[r.Exchange]; r.flow == name && at.After(since) {
			since = at
		}
	}
	return since
}

// forgot reports whether the stream goes further back than the account does.
func (x *index) forgot(name string, a *flow.Account) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	from := x.coveredFrom(name)
	return a.Seen() && !from.IsZero() && a.Since.After(from)
}

// lose notes that the stream is not followed, and why.
func (x *index) lose(reason flow.Text) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, of := range x.flows {
		of.log.Lose(reason)
	}
}

// account is what is known of a key.
func (x *index) account(name string, k flow.Key) *flow.Account {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.flows[name]
	if of == nil {
		return nil
	}
	a := of.log.Of(k)
	a.Coverage = append(a.Coverage, x.remarks(of)...)
	if a.State == flow.Error || x.tally.FollowedAt.IsZero() {
		return a
	}
	reason := x.doubt(of, k)
	switch {
	case len(a.Events) > 0:
		a.State, a.Reason = flow.Found, flow.Text{}
	case !reason.Empty():
		a.State, a.Reason, a.Since = flow.Unknown, reason, time.Time{}
	}
	return a
}

// doubt is a reason why a key without events may have some all the same.
func (x *index) doubt(of *indexed, k flow.Key) flow.Text {
	feeds := false
	for _, r := range x.top.feeds {
		feeds = feeds || r.flow == of.flow.Name
	}
	switch {
	case !of.flow.Queue.NamesID():
		return noField
	case len(k.BizID) > maxID || len(k.BizType) > maxID:
		return flow.T("ids beyond %d bytes are not indexed", "超过 %d 字节的 ID 不会被索引", maxID)
	case !feeds:
		return flow.T("publications of this flow cannot be seen: its queue is fed by the default exchange alone", "看不到该流程的发布：其队列只由默认交换机供给")
	case x.untied[of.flow.Name]:
		return flow.T("the stream is not bound to all exchanges that feed this flow: run idemscope rabbitmq tap apply", "stream 没有绑定到供给该流程的全部交换机：请运行 idemscope rabbitmq tap apply")
	case of.large > 0:
		return flow.T("%d messages of this flow beyond 1 MB were not read", "该流程有 %d 条超过 1 MB 的消息没有读取", of.large)
	case of.keys == 0 && of.unread > 0:
		return flow.T("none of the %d messages of this flow could be read: do queue.id and queue.type name the right places?", "该流程的 %d 条消息都无法读取：queue.id 和 queue.type 的设置是否正确？", of.unread)
	case x.since.IsZero():
		return flow.T("the stream does not tell from when on it is complete", "stream 没有说明从何时起是完整的")
	}
	return flow.Text{}
}

// remarks say what the account does not cover.
func (x *index) remarks(of *indexed) []flow.Text {
	texts := []flow.Text{flow.T("not seen: deliveries, acks, and messages sent to the queue by the default exchange", "看不到：投递、确认，以及经默认交换机直接发往队列的消息")}
	for _, blind := range x.top.blind[of.flow.Name] {
		texts = append(texts, flow.T("not seen: %s", "看不到：%s", blind))
	}
	if of.unread > 0 {
		texts = append(texts, flow.T("%d messages of this flow name no key of it", "该流程有 %d 条消息不含它的键", of.unread))
	}
	return texts
}
