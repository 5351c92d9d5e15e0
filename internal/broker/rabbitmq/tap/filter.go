package tap

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/flow"
)

const (
	// maxMatches bounds what a search takes.
	maxMatches = 1000
	// maxSearched is the longest id that a publisher by AMQP 0-9-1 can give a message.
	maxSearched = 255
	// inFlight is how many matches are on their way to us at most.
	inFlight = 100

	sqlFilter     = "sql-filter"
	sqlFilterCode = 0x120
	offsetFilter  = "rabbitmq:stream-offset-spec"
)

var (
	errNoFilter = link.Say(flow.T("the broker does not take the filter", "Broker 不接受该过滤器"))
	errNoEnd    = link.Say(flow.T("no message at the end of the stream has an id by which the search would notice that it is through", "stream 末尾没有带 ID 的消息，无法判断搜索是否已到末尾"))
)

// searchable reports whether the broker's own filter finds every message of the
// key. It takes an SQL filter: a filter by one property alone never says that it
// is through, and silence is no sign of it.
func searchable(v rabbitmq.Version, fl flow.Flow, k flow.Key) bool {
	return v.Abilities().SQLFilters && fl.Queue.IDProperty == flow.PropertyMessageID &&
		k.BizID != "" && len(k.BizID) <= maxSearched && utf8.ValidString(k.BizID)
}

// search puts all messages of the id into the index, from the first in the stream
// on, and the marks that tell from when on the stream is complete. The last part
// of the stream is read as it is; one of its messages, which the filter lets
// through as well, ends the search. Without an error the index holds what was
// found; running out of time is none, and leaves the index alone.
func (s *Scanner) search(ctx context.Context, x *index, conn *amqp.Connection, id string) (found extent, err error) {
	found.filtered = true
	defer func() {
		if err != nil && ctx.Err() != nil {
			found, err = extent{filtered: true, note: outOfTime}, nil
		}
	}()
	tail, err := s.tail(ctx, conn)
	if err != nil || len(tail) == 0 {
		found.whole = err == nil
		return found, err
	}
	end, ok := endOf(tail)
	if !ok {
		return extent{}, errNoEnd
	}
	conn10, closed, err := s.tap.address.Dial10(ctx, "idemscope look-up")
	if err != nil {
		return extent{}, s.fail(err)
	}
	defer closed()
	session, err := conn10.NewSession(ctx, nil)
	if err != nil {
		return extent{}, s.fail(err)
	}
	wanted := "properties.message_id = " + quoted(id) + " OR " + headerMark + " = " + quoted(markBound)
	matches, err := s.filter(ctx, session, wanted, end, maxMatches, func(d amqp.Delivery) bool { return d.MessageId == id || isMark(d) })
	if err != nil {
		return extent{}, err
	}
	found.capped = len(matches.messages) == maxMatches
	if !matches.through && !found.capped {
		return extent{filtered: true, early: matches.messages, note: outOfTime}, nil
	}
	// The marks of the bindings tell from when on the stream holds everything, as
	// long as it keeps them; after that the first mark of a follower does.
	began := filtered{through: true}
	if matches.through && !slices.ContainsFunc(matches.messages, isMark) {
		if began, err = s.filter(ctx, session, headerMark+" = "+quoted(markHere), end, 1, isMark); err != nil {
			return extent{}, err
		}
	}
	for _, d := range began.messages {
		x.add(d, time.Now())
	}
	for _, d := range append(matches.messages, tail...) {
		if d.MessageId == id {
			found.messages++
		}
		x.add(d, time.Now())
	}
	found.whole = matches.through && (began.through || len(began.messages) > 0)
	return found, nil
}

// searchAlone answers by a search, with the topology that a follower knows; nil
// when it does not come to its end.
func (s *Scanner) searchAlone(ctx context.Context, known *index, fl flow.Flow, k flow.Key) *flow.Account {
	began, x := time.Now(), s.tap.newIndex()
	known.mu.Lock()
	top, untied := known.top, known.untied
	known.mu.Unlock()
	x.use(top, untied)
	ctx, cancel := withReserve(ctx)
	defer cancel()
	conn, err := s.tap.address.Dial(ctx, "idemscope look-up")
	if err != nil {
		return nil
	}
	defer link.Close(conn)
	found, err := s.search(ctx, x, conn, k.BizID)
	if err != nil || !found.whole {
		return nil
	}
	return x.answer(fl.Name, k, began, found, nil)
}

// tail is the last part of the stream; empty when the stream is.
func (s *Scanner) tail(ctx context.Context, conn *amqp.Connection) ([]amqp.Delivery, error) {
	last, any, err := s.last(ctx, conn)
	if err != nil || !any {
		return nil, err
	}
	deliveries, ch, err := s.tap.consume(conn, last)
	if err != nil {
		return nil, s.fail(err)
	}
	defer ch.Close()
	var tail []amqp.Delivery
	_, whole, err := s.drain(ctx, ch, deliveries, last, func(d amqp.Delivery) { tail = append(tail, d) })
	if err == nil && !whole {
		err = s.fail(context.DeadlineExceeded)
	}
	return tail, err
}

// end is how a search notices that it is through.
type end struct {
	// id is that of a message at or behind offset.
	id string
	// offset is where the part begins that is read without a filter.
	offset int64
}

func endOf(tail []amqp.Delivery) (end, bool) {
	for _, d := range tail {
		if d.MessageId != "" && utf8.ValidString(d.MessageId) {
			return end{d.MessageId, offsetOf(tail[0])}, true
		}
	}
	return end{}, false
}

// filtered is what a filter let through, before the end.
type filtered struct {
	messages []amqp.Delivery
	// through: there is no more of it.
	through bool
}

// filter takes from the beginning of the stream what the condition lets through,
// at most so many messages. Each is checked here as well: one that is not wanted
// counts for nothing. When time runs out it returns what has come.
func (s *Scanner) filter(ctx context.Context, session *amqp10.Session, condition string, end end, most int, wanted func(amqp.Delivery) bool) (filtered, error) {
	receiver, err := session.NewReceiver(ctx, "/queues/"+url.PathEscape(s.tap.options.Stream), &amqp10.ReceiverOptions{
		Credit: inFlight, RequestedSenderSettleMode: amqp10.SenderSettleModeSettled.Ptr(),
		Filters: []amqp10.LinkFilter{
			amqp10.NewLinkFilter(offsetFilter, 0, "first"),
			amqp10.NewLinkFilter(sqlFilter, sqlFilterCode, condition+" OR properties.message_id = "+quoted(end.id)),
		},
	})
	if err != nil {
		return filtered{}, s.fail(err)
	}
	defer func() { _ = receiver.Close(ctx) }()
	// A broker that does not know a filter leaves it out of its answer, and sends everything.
	if receiver.LinkSourceFilterValue(sqlFilter) == nil {
		return filtered{}, errNoFilter
	}
	var f filtered
	for len(f.messages) < most {
		m, err := receiver.Receive(ctx, nil)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return f, nil
		case err != nil:
			return filtered{}, s.fail(err)
		}
		if f.take(m, end, wanted); f.through {
			break
		}
	}
	return f, nil
}

// take adds a message, or notes that the end has come.
func (f *filtered) take(m *amqp10.Message, end end, wanted func(amqp.Delivery) bool) {
	d := delivery(m)
	switch {
	case offsetOf(d) >= end.offset:
		f.through = true
	case wanted(d):
		f.messages = append(f.messages, d)
	}
}

func isMark(d amqp.Delivery) bool {
	_, ok := markOf(d)
	return ok
}

// offsetOf is the place of a message in the stream.
func offsetOf(d amqp.Delivery) int64 {
	offset, _ := whole(d.Headers["x-stream-offset"])
	return offset
}

// quoted is a text in an SQL filter. A quote in it is written twice; nothing else
// has a meaning there.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// delivery is the message as AMQP 0-9-1 shows it, as far as the index reads it.
func delivery(m *amqp10.Message) amqp.Delivery {
	d := amqp.Delivery{Headers: amqp.Table{}}
	for name, value := range m.ApplicationProperties {
		d.Headers[name] = value
	}
	d.Headers["x-stream-offset"] = m.Annotations["x-stream-offset"]
	d.Exchange, _ = m.Annotations["x-exchange"].(string)
	d.RoutingKey, _ = m.Annotations["x-routing-key"].(string)
	if deaths, ok := m.Annotations["x-opt-deaths"].([]map[any]any); ok && len(deaths) > 0 {
		d.Headers["x-death"] = []any{lastDeath(deaths[0])}
	}
	if p := m.Properties; p != nil {
		d.MessageId, _ = p.MessageID.(string)
		if p.CreationTime != nil {
			d.Timestamp = *p.CreationTime
		}
	}
	for _, part := range m.Data {
		d.Body = append(d.Body, part...)
	}
	return d
}

// lastDeath is the latest entry of the deaths, which stands first, in the words of AMQP 0-9-1.
func lastDeath(of map[any]any) amqp.Table {
	return amqp.Table{"queue": of["queue"], "reason": of["reason"], "time": of["last-time"]}
}
