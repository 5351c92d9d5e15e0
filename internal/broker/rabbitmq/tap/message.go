package tap

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
)

const (
	// maxBody bounds the bodies that are read. A larger one is counted, not read.
	maxBody = 1 << 20
	// maxID bounds a biz_id or biz_type in the index. No unique key of MySQL holds more.
	maxID = 3072
)

// Headers under which dead letters are moved to the stream, which keeps simple
// values only on some versions.
const (
	headerDiedIn  = "idemscope-died-in"
	headerReason  = "idemscope-reason"
	headerDiedAt  = "idemscope-died-at" // Unix time in s, by the broker's clock
	headerTooLong = "idemscope-body-too-long"
)

// death is the latest entry of a message's x-death header.
type death struct {
	queue, reason string
	// at is zero when the broker did not say.
	at time.Time
}

// deathOf reads x-death, or what a stream kept of it.
func deathOf(d amqp.Delivery) (death, bool) {
	if deaths, ok := d.Headers["x-death"].([]any); ok && len(deaths) > 0 {
		if last, ok := deaths[0].(amqp.Table); ok {
			var found death
			found.queue, _ = last["queue"].(string)
			found.reason, _ = last["reason"].(string)
			found.at, _ = last["time"].(time.Time)
			return found, found.queue != ""
		}
	}
	for _, prefix := range []string{"x-last-death-", "x-first-death-"} {
		queue, ok := d.Headers[prefix+"queue"].(string)
		if ok && queue != "" {
			reason, _ := d.Headers[prefix+"reason"].(string)
			return death{queue: queue, reason: reason}, true
		}
	}
	return death{}, false
}

// relayed is the message that moves a dead letter to the stream.
func relayed(d amqp.Delivery, died death) amqp.Publishing {
	p := amqp.Publishing{
		MessageId: d.MessageId, Timestamp: d.Timestamp, ContentType: d.ContentType, DeliveryMode: amqp.Persistent, Body: d.Body,
		Headers: amqp.Table{headerDiedIn: died.queue, headerReason: died.reason, headerTooLong: len(d.Body) > maxBody},
	}
	if !died.at.IsZero() {
		p.Headers[headerDiedAt] = died.at.Unix()
	}
	if len(d.Body) > maxBody {
		p.Body = nil
	}
	return p
}

// relayedDeath reads the headers of relayed.
func relayedDeath(d amqp.Delivery) (death, bool) {
	queue, ok := d.Headers[headerDiedIn].(string)
	if !ok {
		return death{}, false
	}
	died := death{queue: queue}
	died.reason, _ = d.Headers[headerReason].(string)
	if s, ok := whole(d.Headers[headerDiedAt]); ok {
		died.at = time.Unix(s, 0)
	}
	return died, true
}

// markOf reads a mark.
func markOf(d amqp.Delivery) (mark, bool) {
	kind, ok := d.Headers[headerMark].(string)
	if !ok {
		return mark{}, false
	}
	m := mark{kind: kind, id: d.MessageId}
	m.exchange, _ = d.Headers[headerExchange].(string)
	ms, ok := whole(d.Headers[headerAt])
	m.at = time.UnixMilli(ms)
	return m, ok
}

// whole reads an integer of whatever width.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case byte:
		return int64(n), true
	case int:
		return int64(n), true
	}
	return 0, false
}

// published says when a message reached the broker: by the broker's clock if it
// stamps messages, else by the publisher's, else not before it arrived here.
func published(d amqp.Delivery, arrived time.Time) flow.Event {
	e := flow.Event{Kind: flow.Published, Layer: flow.LayerBroker, MessageID: d.MessageId, Place: d.Exchange}
	ms, stamped := whole(d.Headers["timestamp_in_ms"])
	switch {
	case stamped && ms > 0:
		e.At, e.Certainty = time.UnixMilli(ms), flow.Observed
	case d.Timestamp.Unix() > 0:
		e.At, e.Certainty = d.Timestamp, flow.Reported
	default:
		e.At, e.Certainty, e.Arrived = arrived, flow.Observed, true
	}
	return e
}

// deadLettered is the event of a death.
func deadLettered(d amqp.Delivery, died death, arrived time.Time) flow.Event {
	e := flow.Event{
		Kind: flow.DeadLettered, Layer: flow.LayerBroker, MessageID: d.MessageId, Place: died.queue, Outcome: died.reason,
		At: died.at, Certainty: flow.Observed,
	}
	if died.at.IsZero() {
		e.At, e.Arrived = arrived, true
	}
	return e
}

// reading is what came of reading a body for one flow.
type reading int

const (
	readKey     reading = iota // one key
	notReadable                // no JSON, no id, or of no single type of the flow
	tooLarge                   // not looked at
)

// keyOf reads the key of a message of the flow, and its body only where that holds a part of it.
func keyOf(f flow.Flow, d amqp.Delivery) (flow.Key, reading) {
	inBody := f.Queue.IDProperty == "" || f.Queue.TypeField != ""
	if tooLong, _ := d.Headers[headerTooLong].(bool); inBody && (tooLong || len(d.Body) > maxBody) {
		return flow.Key{}, tooLarge
	}
	keys := f.KeysOf(d.MessageId, d.Body)
	switch {
	case len(keys) != 1:
		return flow.Key{}, notReadable
	case len(keys[0].BizID) > maxID || len(keys[0].BizType) > maxID:
		return flow.Key{}, tooLarge
	}
	return keys[0], readKey
}
