package action

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// ticketLife is for how long a screen may be acted on. A value that every holder
// of a lock shares cannot tell them apart, so that what was seen must be young.
const ticketLife = 15 * time.Minute

// Ticket is what was seen: what an order rests on. It proves nothing and grants
// nothing: every rule is applied again.
type Ticket struct {
	Kind  Kind
	Place flow.Place
	At    time.Time
	// Redis is the lock or the marker; nil for other actions, and when there was none.
	Redis *SeenRedis
	// Record is nil for other actions, and when there was not exactly one.
	Record *SeenRecord
	// MessageID is that of the message last known to be dead-lettered; empty when
	// nothing tells it.
	MessageID string
	// Earlier are attempts to replay that were shown to have no known end.
	Earlier []string
}

// SeenRedis is a key as it was seen. The value itself stays here: whoever orders
// may not be one who may see it.
type SeenRedis struct {
	Sum     [sha256.Size]byte
	NoTTL   bool
	Expires time.Time
}

// SeenRecord is a row as it was seen.
type SeenRecord struct {
	Table, ID                   string
	Status                      []byte
	Created, Updated, Completed ledger.Stamp
}

func newTicket(seen answer.Answer, kind Kind, now time.Time) Ticket {
	t := Ticket{Kind: kind, Place: flow.Place{Flow: seen.Flow.Name, Key: seen.Key}, At: now}
	switch kind {
	case ReleaseLock:
		t.Redis = seenRedis(seen.Lock)
	case ClearMarker:
		t.Redis = seenRedis(seen.Marker)
	case ResetRecord:
		t.Record = seenRecord(seen.Record)
	case Replay:
		if dead := seen.Tap.Of(flow.DeadLettered); len(dead) > 0 {
			t.MessageID = dead[len(dead)-1].MessageID
		}
	}
	return t
}

func seenRedis(r *dossier.RedisEvidence) *SeenRedis {
	if r == nil || r.State != flow.Found {
		return nil
	}
	s := &SeenRedis{Sum: sha256.Sum256([]byte(r.Value)), NoTTL: r.NoTTL}
	if !r.NoTTL {
		s.Expires = r.ReadAt.Add(r.TTL)
	}
	return s
}

// holds reports that the value is the one that was seen.
func (s *SeenRedis) holds(value string) bool { return s.Sum == sha256.Sum256([]byte(value)) }

func seenRecord(f ledger.Found) *SeenRecord {
	var exact []ledger.Row
	for _, r := range f.Rows {
		if r.Exact {
			exact = append(exact, r)
		}
	}
	if len(exact) != 1 {
		return nil
	}
	r := exact[0]
	return &SeenRecord{Table: r.Table, ID: r.ID, Status: []byte(r.Status), Created: r.Created, Updated: r.Updated, Completed: r.Completed}
}

// same reports that the row is the one that was seen, in all that an order rests on.
func (s SeenRecord) same(t SeenRecord) bool {
	alike := func(a, b ledger.Stamp) bool { return a.State == b.State && a.Text == b.Text }
	return s.Table == t.Table && s.ID == t.ID && string(s.Status) == string(t.Status) && alike(s.Created, t.Created) && alike(s.Updated, t.Updated) && alike(s.Completed, t.Completed)
}

// ErrTicket: the text is no ticket.
var ErrTicket = errors.New("the ticket cannot be read: ask for a new precheck")

// sealed is a ticket as text: bytes stay bytes.
type sealed struct {
	Kind      Kind        `json:"k"`
	Flow      string      `json:"f"`
	BizType   []byte      `json:"t"`
	BizID     []byte      `json:"i"`
	At        int64       `json:"at"`
	Redis     *SeenRedis  `json:"r,omitempty"`
	Record    *SeenRecord `json:"d,omitempty"`
	MessageID []byte      `json:"m,omitempty"`
	Earlier   []string    `json:"e,omitempty"`
}

// String writes the ticket for a form or an API.
func (t Ticket) String() string {
	text, err := json.Marshal(sealed{
		Kind: t.Kind, Flow: t.Place.Flow, BizType: []byte(t.Place.Key.BizType), BizID: []byte(t.Place.Key.BizID), At: t.At.UnixMilli(),
		Redis: t.Redis, Record: t.Record, MessageID: []byte(t.MessageID), Earlier: t.Earlier,
	})
	if err != nil {
		panic("ticket: " + err.Error() + strconv.Quote(string(t.Kind))) // it holds nothing that JSON cannot
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseTicket reads what String wrote. Error: ErrTicket.
func ParseTicket(text string) (Ticket, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Ticket{}, ErrTicket
	}
	var s sealed
	if json.Unmarshal(raw, &s) != nil || !s.Kind.Known() {
		return Ticket{}, ErrTicket
	}
	return Ticket{
		Kind: s.Kind, Place: flow.Place{Flow: s.Flow, Key: flow.Key{BizType: string(s.BizType), BizID: string(s.BizID)}}, At: time.UnixMilli(s.At),
		Redis: s.Redis, Record: s.Record, MessageID: string(s.MessageID), Earlier: s.Earlier,
	}, nil
}
