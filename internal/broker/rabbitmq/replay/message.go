package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/broker"
)

// brokerHeaders are what RabbitMQ adds on the way, and CC and BCC, by which it
// would route further copies.
var brokerHeaders = []string{"x-death", "x-delivery-count", "x-acquired-count", "x-replay-id", "x-replayed-by", "cc", "bcc"}

// added reports a header that does not go with a replayed message.
func added(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(brokerHeaders, name) || strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// died is the latest entry of a message's x-death header.
type died struct {
	queue, reason string
	at            time.Time
	count         int64
}

// death is empty for a message that carries none.
func death(d amqp.Delivery) (last died) {
	all, _ := d.Headers["x-death"].([]any)
	if len(all) == 0 {
		return died{}
	}
	entry, _ := all[0].(amqp.Table)
	last.queue, _ = entry["queue"].(string)
	last.reason, _ = entry["reason"].(string)
	last.at, _ = entry["time"].(time.Time)
	last.count, _ = entry["count"].(int64)
	return last
}

// describe names the dead letter. The same dead letter has the same replay id
// each time; once it was replayed and died again, it is another.
func describe(queue string, d amqp.Delivery) broker.DeadMessage {
	last := death(d)
	sum := sha256.New()
	for _, part := range []string{queue, d.MessageId, last.queue, last.reason, last.at.UTC().Format(time.RFC3339), string(d.Body)} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(part))) // a hash takes everything
		sum.Write([]byte(part))
	}
	earlier, _ := d.Headers["x-replay-id"].(string)
	sum.Write([]byte(earlier))
	return broker.DeadMessage{
		ReplayID: hex.EncodeToString(sum.Sum(nil)[:16]), MessageID: d.MessageId, Queue: queue, Reason: last.reason, Died: last.at, Bytes: len(d.Body),
	}
}
