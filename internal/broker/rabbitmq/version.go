package rabbitmq

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of RabbitMQ.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads "3.10.8", also with more behind it ("4.3.0-rc.1", "3.13.7+2").
func ParseVersion(text string) (Version, error) {
	bare, _, _ := strings.Cut(text, "-")
	bare, _, _ = strings.Cut(bare, "+")
	parts := strings.Split(bare, ".")
	if len(parts) < 3 {
		return Version{}, fmt.Errorf("%q is no version of RabbitMQ", text)
	}
	var numbers [3]int
	for i := range numbers {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return Version{}, fmt.Errorf("%q is no version of RabbitMQ", text)
		}
		numbers[i] = n
	}
	return Version{numbers[0], numbers[1], numbers[2]}, nil
}

// String is the version as RabbitMQ writes it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Compare orders versions: negative when v is older than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// Counting is what the header x-delivery-count of a quorum queue counts.
type Counting string

const (
	// EveryReturn: each way in which a message comes back to the queue.
	EveryReturn Counting = "every_return"
	// FailuresOnly: rejections and lost connections; a nack counts in
	// x-acquired-count alone.
	FailuresOnly Counting = "failures_only"
)

// Abilities are what a version of RabbitMQ can do, and where versions differ in
// what they make of a message.
type Abilities struct {
	// Streams: there are stream queues.
	Streams bool
	// DeadLettersReachStreams: a dead-letter exchange bound to a stream fills it.
	// Older versions drop such messages without a word.
	DeadLettersReachStreams bool
	// PropertyFilters: AMQP 1.0 can filter a stream by the messages' properties.
	PropertyFilters bool
	// SQLFilters: AMQP 1.0 can filter a stream by an SQL expression.
	SQLFilters bool
	// DeliveryLimit is that of a quorum queue that sets none; 0: none. A
	// message beyond it is dead-lettered, or dropped.
	DeliveryLimit int
	// DeliveryCount is what x-delivery-count counts.
	DeliveryCount Counting
	// ClientDeaths: an x-death header that a client sends is counted on.
	ClientDeaths bool
	// GetCounts: a basic.get that gives the message back (the management API's
	// "get") counts against the delivery limit of a quorum queue.
	GetCounts bool
}

// abilities lists, in order, the first version in which something changed. 3.11
// has releases with and without DeadLettersReachStreams; which of them does is
// not measured, so that all count as without.
var abilities = []struct {
	from   Version
	change func(*Abilities)
}{
	{Version{3, 8, 0}, func(a *Abilities) { a.DeliveryCount, a.ClientDeaths, a.GetCounts = EveryReturn, true, true }},
	{Version{3, 9, 0}, func(a *Abilities) { a.Streams = true }},
	{Version{3, 12, 0}, func(a *Abilities) { a.DeadLettersReachStreams = true }},
	{Version{4, 0, 0}, func(a *Abilities) { a.DeliveryLimit, a.ClientDeaths = 20, false }},
	{Version{4, 1, 0}, func(a *Abilities) { a.PropertyFilters = true }},
	{Version{4, 2, 0}, func(a *Abilities) { a.SQLFilters = true }},
	{Version{4, 3, 0}, func(a *Abilities) { a.DeliveryCount, a.GetCounts = FailuresOnly, false }},
}

// Abilities are those of the version. A version that is newer than all that are
// known here is taken for the newest of these.
func (v Version) Abilities() Abilities {
	var a Abilities
	for _, step := range abilities {
		if v.Compare(step.from) >= 0 {
			step.change(&a)
		}
	}
	return a
}
