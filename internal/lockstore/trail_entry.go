package lockstore

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

const (
	// maxTrailText is how many bytes of an outcome, a worker or a message id are kept.
	maxTrailText = 256
	// maxTrailKey bounds a biz_type and a biz_id: what is longer breaks the contract.
	maxTrailKey = 4096
	// trailAhead is how far a time may lie in our future.
	trailAhead = 24 * time.Hour
)

// trailStart is the earliest time that an entry can have: an entry with an older
// one was written with an id of the consumer's own.
var trailStart = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// trailSteps are the steps of the contract, and the layer that each is about.
var trailSteps = map[string]struct {
	kind  flow.EventKind
	layer flow.Layer
}{
	"received": {flow.Received, flow.LayerBroker},
	"status":   {flow.StatusChecked, flow.LayerMySQL},
	"lock":     {flow.LockTried, flow.LayerRedis},
	"insert":   {flow.RecordTried, flow.LayerMySQL},
	"run":      {flow.RunBegan, flow.LayerMySQL},
	"done":     {flow.RunDone, flow.LayerMySQL},
	"failed":   {flow.RunFailed, flow.LayerMySQL},
	"unlock":   {flow.Unlocked, flow.LayerRedis},
	"ack":      {flow.Acked, flow.LayerBroker},
	"nack":     {flow.GivenBack, flow.LayerBroker},
}

// trailEntry is one entry of the trail, read by the contract.
type trailEntry struct {
	key flow.Key
	// event has no Kind when the step is none that this version knows.
	event flow.Event
	// fault says how the entry breaks the contract; empty when it does not. An
	// entry without a key is of no use, one with a key keeps what is right.
	fault string
}

// readTrailEntry takes an entry apart. source names the store.
func readTrailEntry(source string, m redis.XMessage) trailEntry {
	text := func(field string) string { value, _ := m.Values[field].(string); return value }
	at, ok := streamTime(m.ID)
	e := trailEntry{key: flow.Key{BizType: text("t"), BizID: text("b")}}
	switch {
	case !ok || at.Before(trailStart) || at.After(time.Now().Add(trailAhead)):
		return trailEntry{fault: "an id that is no time: write entries with *"}
	case e.key.BizType == "" || e.key.BizID == "":
		return trailEntry{fault: "no t (biz_type) or no b (biz_id)"}
	case len(e.key.BizType) > maxTrailKey || len(e.key.BizID) > maxTrailKey:
		return trailEntry{fault: fmt.Sprintf("a biz_type or biz_id longer than %d bytes", maxTrailKey)}
	case text("s") == "":
		e.fault = "no s (step)"
		return e
	}
	step := trailSteps[text("s")]
	e.event = flow.Event{
		Kind: step.kind, At: at, Layer: step.layer, Source: source, Certainty: flow.Reported,
		Outcome: short(text("o")), Worker: short(text("w")), MessageID: short(text("m")), Redelivered: text("r") == "1",
	}
	if r := text("r"); r != "" && r != "0" && r != "1" {
		e.fault = "r (redelivered) is neither 0 nor 1"
	}
	return e
}

func short(text string) string {
	if len(text) > maxTrailText {
		return strings.Clone(text[:maxTrailText]) // or all of it would stay in memory
	}
	return text
}

// streamTime is the time in the id of an entry, by the clock of the Redis.
func streamTime(id string) (at time.Time, ok bool) {
	ms, seq, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	// Entries of one millisecond are numbered: a microsecond each keeps their order.
	within, _ := strconv.ParseInt(seq, 10, 64)
	return time.UnixMilli(n).Add(time.Duration(min(max(within, 0), 999)) * time.Microsecond).UTC(), true
}

// idParts are the milliseconds and the number within them; a part that is no
// number counts as 0.
func idParts(id string) (ms, seq uint64) {
	before, within, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(before, 10, 64)
	seq, _ = strconv.ParseUint(within, 10, 64)
	return ms, seq
}

// after reports whether the entry a was added after b. The empty id is before all.
func after(a, b string) bool {
	aMS, aSeq := idParts(a)
	bMS, bSeq := idParts(b)
	return aMS > bMS || aMS == bMS && aSeq > bSeq
}

// idBefore is the last id that an entry before this one can have.
func idBefore(id string) string {
	ms, seq := idParts(id)
	if seq == 0 {
		return fmt.Sprintf("%d-%d", ms-1, uint64(math.MaxUint64))
	}
	return fmt.Sprintf("%d-%d", ms, seq-1)
}
