package answer

import (
	"encoding/hex"
	"time"
	"unicode/utf8"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// JSON is an Answer as the API and `idemscope lookup --json` give it. Ids are
// strings, times are RFC 3339 with offset, durations are seconds. Sentences are
// in the language that was asked for; codes never change.
type JSON struct {
	Key     KeyJSON     `json:"key"`
	Flow    string      `json:"flow"`
	Verdict VerdictJSON `json:"verdict"`
	Record  RecordJSON  `json:"record"`
	Lock    *RedisJSON  `json:"lock"`
	Marker  *RedisJSON  `json:"marker"`
	Broker  *BrokerJSON `json:"broker"`
	// Tap, Trace and Trail are null where they are not set up.
	Tap   *AccountJSON `json:"tap"`
	Trace *AccountJSON `json:"trace"`
	Trail *AccountJSON `json:"trail"`
	// Audit is what people tried to change; null where nothing can be changed.
	Audit    *AccountJSON `json:"audit"`
	Timeline []EntryJSON  `json:"timeline"`
	At       string       `json:"at"`
	Took     float64      `json:"took"`
}

// KeyJSON is the key. Bytes that are not UTF-8 are replaced in the text fields;
// the hex fields, present only then, hold the true bytes.
type KeyJSON struct {
	BizType    string `json:"biz_type"`
	BizID      string `json:"biz_id"`
	BizTypeHex string `json:"biz_type_hex,omitempty"`
	BizIDHex   string `json:"biz_id_hex,omitempty"`
}

// VerdictJSON is the verdict in one language.
type VerdictJSON struct {
	Code     verdict.Code     `json:"code"`
	Severity verdict.Severity `json:"severity"`
	Layer    flow.Layer       `json:"layer"`
	Sentence string           `json:"sentence"`
	Notes    []NoteJSON       `json:"notes"`
	Facts    []FactJSON       `json:"facts"`
	Next     []string         `json:"next"`
	Advice   []string         `json:"advice"`
}

// NoteJSON is one note.
type NoteJSON struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// FactJSON is one fact.
type FactJSON struct {
	Layer flow.Layer `json:"layer"`
	Text  string     `json:"text"`
}

// ObservationJSON is the header of every layer's evidence.
type ObservationJSON struct {
	State    flow.State `json:"state"`
	Source   string     `json:"source"`
	ReadAt   string     `json:"read_at"`
	Took     float64    `json:"took"`
	Command  string     `json:"command,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Coverage []string   `json:"coverage,omitempty"`
}

// RecordJSON is what the ledger shows.
type RecordJSON struct {
	ObservationJSON
	DBNow   string    `json:"db_now,omitempty"`
	TooLong bool      `json:"too_long,omitempty"`
	Replica bool      `json:"replica,omitempty"`
	Lag     *float64  `json:"lag,omitempty"`
	Rows    []RowJSON `json:"rows"`
	// Neighbours are records of other keys that could be meant.
	Neighbours []NeighbourJSON `json:"neighbours,omitempty"`
	// Archive is missing where the ledger has none.
	Archive *ArchiveJSON `json:"archive,omitempty"`
}

// RowJSON is one row.
type RowJSON struct {
	KeyJSON
	Table     string     `json:"table"`
	ID        string     `json:"id,omitempty"`
	Exact     bool       `json:"exact"`
	Status    string     `json:"status"`
	Phase     flow.Phase `json:"phase"`
	Created   *StampJSON `json:"created,omitempty"`
	Updated   *StampJSON `json:"updated,omitempty"`
	Completed *StampJSON `json:"completed,omitempty"`
	Age       *float64   `json:"age,omitempty"`
	RunTime   *float64   `json:"run_time,omitempty"`
	Result    *string    `json:"result,omitempty"`
	Attempts  *string    `json:"attempts,omitempty"`
	Worker    *string    `json:"worker,omitempty"`
	// ResultHidden: there is a result, and the reader has no role payload.
	ResultHidden bool `json:"result_hidden,omitempty"`
	// The true bytes of a text that is not UTF-8; missing otherwise.
	StatusHex string `json:"status_hex,omitempty"`
	ResultHex string `json:"result_hex,omitempty"`
	WorkerHex string `json:"worker_hex,omitempty"`
}

// StampJSON is one time column; time is missing when it is no instant.
type StampJSON struct {
	State  ledger.StampState `json:"state"`
	Stored string            `json:"stored,omitempty"`
	Time   string            `json:"time,omitempty"`
}

// RedisJSON is a lock or a marker.
type RedisJSON struct {
	ObservationJSON
	Key      string  `json:"key"`
	KeyHex   string  `json:"key_hex,omitempty"`
	Type     string  `json:"type,omitempty"`
	Foreign  bool    `json:"foreign,omitempty"`
	Value    *string `json:"value,omitempty"`
	ValueHex string  `json:"value_hex,omitempty"`
	// ValueHidden: there is a value, and the reader has no role payload.
	ValueHidden bool      `json:"value_hidden,omitempty"`
	Length      int64     `json:"length,omitempty"`
	NoTTL       bool      `json:"no_ttl,omitempty"`
	TTL         *float64  `json:"ttl,omitempty"`
	Ambiguous   bool      `json:"ambiguous,omitempty"`
	Owners      []KeyJSON `json:"owners,omitempty"`
	// Similar are other Redis keys that exist and read alike.
	Similar []string `json:"similar,omitempty"`
}

// BrokerJSON is what the broker shows.
type BrokerJSON struct {
	ObservationJSON
	StatisticsAge float64     `json:"statistics_age"`
	Queues        []QueueJSON `json:"queues"`
}

// QueueJSON is one queue.
type QueueJSON struct {
	State              flow.State  `json:"state"`
	Reason             string      `json:"reason,omitempty"`
	Name               string      `json:"name"`
	Role               broker.Role `json:"role"`
	Kind               string      `json:"kind,omitempty"`
	Ready              *int64      `json:"ready,omitempty"`
	Unacked            *int64      `json:"unacked,omitempty"`
	Consumers          *int64      `json:"consumers,omitempty"`
	Redelivered        *int64      `json:"redelivered,omitempty"`
	DeadLetterExchange bool        `json:"dead_letter_exchange,omitempty"`
}

// JSON words the answer in lang.
func (a Answer) JSON(lang flow.Language) JSON {
	return JSON{
		Key: keyJSON(a.Key), Flow: a.Flow.Name, Verdict: verdictJSON(a.Verdict, lang),
		Record: recordJSON(a.Record, lang),
		Lock:   redisJSON(a.Lock, lang), Marker: redisJSON(a.Marker, lang),
		Broker: brokerJSON(a.Broker, lang),
		Tap:    accountJSON(a.Tap, lang), Trace: accountJSON(a.Trace, lang), Trail: accountJSON(a.Trail, lang),
		Audit:    accountJSON(a.Audit, lang),
		Timeline: storyJSON(a.Story(), lang),
		At:       a.At.Format(time.RFC3339Nano), Took: a.Took.Seconds(),
	}
}

// NewKeyJSON is the key with its true bytes.
func NewKeyJSON(k flow.Key) KeyJSON { return keyJSON(k) }

func keyJSON(k flow.Key) KeyJSON {
	return KeyJSON{BizType: k.BizType, BizID: k.BizID, BizTypeHex: hexUnlessText(k.BizType), BizIDHex: hexUnlessText(k.BizID)}
}

func hexUnlessText(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return hex.EncodeToString([]byte(s))
}

func verdictJSON(v verdict.Verdict, lang flow.Language) VerdictJSON {
	j := VerdictJSON{
		Code: v.Code, Severity: v.Severity, Layer: v.Layer, Sentence: v.Sentence.In(lang),
		Notes: []NoteJSON{}, Facts: []FactJSON{}, Next: wordAll(v.Next, lang), Advice: wordAll(v.Advice, lang),
	}
	for _, n := range v.Notes {
		j.Notes = append(j.Notes, NoteJSON{n.Code, n.Text.In(lang)})
	}
	for _, f := range v.Facts {
		j.Facts = append(j.Facts, FactJSON{f.Layer, f.Text.In(lang)})
	}
	return j
}

func wordAll(texts []flow.Text, lang flow.Language) []string {
	words := make([]string, 0, len(texts))
	for _, t := range texts {
		words = append(words, t.In(lang))
	}
	return words
}

func observationJSON(o flow.Observation, lang flow.Language) ObservationJSON {
	j := ObservationJSON{
		State: o.State, Source: o.Source, ReadAt: o.ReadAt.Format(time.RFC3339Nano),
		Took: o.Took.Seconds(), Command: o.Command, Reason: o.Reason.In(lang),
	}
	for _, c := range o.Coverage {
		j.Coverage = append(j.Coverage, c.In(lang))
	}
	return j
}

func recordJSON(f ledger.Found, lang flow.Language) RecordJSON {
	j := RecordJSON{ObservationJSON: observationJSON(f.Observation, lang), TooLong: f.TooLong, Replica: f.Replica, Rows: []RowJSON{}}
	if !f.DBNow.IsZero() {
		j.DBNow = f.DBNow.Format(time.RFC3339Nano)
	}
	if f.LagKnown {
		j.Lag = new(f.Lag.Seconds())
	}
	for _, r := range f.Rows {
		j.Rows = append(j.Rows, rowJSON(r))
	}
	for _, n := range f.Neighbours {
		j.Neighbours = append(j.Neighbours, NeighbourJSON{Kind: n.Kind, RowJSON: rowJSON(n.Row)})
	}
	if f.Archive != nil {
		j.Archive = &ArchiveJSON{ObservationJSON: observationJSON(f.Archive.Observation, lang), Rows: []RowJSON{}}
		for _, r := range f.Archive.Rows {
			j.Archive.Rows = append(j.Archive.Rows, rowJSON(r))
		}
	}
	return j
}

func rowJSON(r ledger.Row) RowJSON {
	row := RowJSON{
		KeyJSON: keyJSON(flow.Key{BizType: r.BizType, BizID: r.BizID}), Table: r.Table, ID: r.ID, Exact: r.Exact,
		Status: r.Status, Phase: r.Phase, Created: stampJSON(r.Created), Updated: stampJSON(r.Updated), Completed: stampJSON(r.Completed),
		Result: r.Result, ResultHidden: r.ResultHidden, Attempts: r.Attempts, Worker: r.Worker,
	}
	row.StatusHex = hexUnlessText(r.Status)
	if r.Result != nil {
		row.ResultHex = hexUnlessText(*r.Result)
	}
	if r.Worker != nil {
		row.WorkerHex = hexUnlessText(*r.Worker)
	}
	if r.AgeKnown {
		row.Age = new(r.Age.Seconds())
	}
	if r.RunTimeKnown {
		row.RunTime = new(r.RunTime.Seconds())
	}
	return row
}

func stampJSON(s ledger.Stamp) *StampJSON {
	if s.State == ledger.StampMissing {
		return nil
	}
	j := &StampJSON{State: s.State, Stored: s.Text}
	if !s.Time.IsZero() {
		j.Time = s.Time.Format(time.RFC3339Nano)
	}
	return j
}

func redisJSON(r *dossier.RedisEvidence, lang flow.Language) *RedisJSON {
	if r == nil {
		return nil
	}
	j := &RedisJSON{
		ObservationJSON: observationJSON(r.Observation, lang), Key: r.Key, KeyHex: hexUnlessText(r.Key),
		Type: r.Type, Foreign: r.Foreign, Length: r.Length, NoTTL: r.NoTTL, Ambiguous: r.Ambiguous(), Similar: r.Similar,
	}
	j.ValueHidden = r.ValueHidden
	if r.State == flow.Found && !r.Foreign && !r.ValueHidden {
		j.Value, j.ValueHex = new(r.Value), hexUnlessText(r.Value)
	}
	if r.State == flow.Found && !r.NoTTL {
		j.TTL = new(r.TTL.Seconds())
	}
	for _, owner := range r.Owners {
		j.Owners = append(j.Owners, keyJSON(owner.Key))
	}
	return j
}

func brokerJSON(e *broker.Evidence, lang flow.Language) *BrokerJSON {
	if e == nil {
		return nil
	}
	j := &BrokerJSON{ObservationJSON: observationJSON(e.Observation, lang), StatisticsAge: e.StatisticsAge.Seconds(), Queues: []QueueJSON{}}
	for _, q := range e.Queues {
		queue := QueueJSON{State: q.State, Reason: q.Reason.In(lang), Name: q.Name, Role: q.Role, Kind: q.Kind, DeadLetterExchange: q.DeadLetterExchange}
		if q.State == flow.Found {
			queue.Ready, queue.Unacked, queue.Consumers = new(q.Ready), new(q.Unacked), new(q.Consumers)
		}
		if q.RedeliveredKnown {
			queue.Redelivered = new(q.Redelivered)
		}
		j.Queues = append(j.Queues, queue)
	}
	return j
}

// ResultJSON is a search as the API and `idemscope lookup --json` give it when
// the text could mean several keys.
type ResultJSON struct {
	Answers []JSON `json:"answers"`
	// Cut: more biz_types exist than were asked.
	Cut bool `json:"cut"`
	// Offers are other readings of the text.
	Offers []OfferJSON `json:"offers,omitempty"`
}

// OfferJSON is another reading of a searched text.
type OfferJSON struct {
	Why string `json:"why"`
	// Query is what to search for instead; missing where the answers are keys inside the text.
	Query    string `json:"query,omitempty"`
	QueryHex string `json:"query_hex,omitempty"`
	Answers  []JSON `json:"answers"`
}

// JSON words the result in lang.
func (r Result) JSON(lang flow.Language) ResultJSON {
	j := ResultJSON{Answers: []JSON{}, Cut: r.Cut}
	for _, a := range r.Answers {
		j.Answers = append(j.Answers, a.JSON(lang))
	}
	for _, o := range r.Offers {
		offer := OfferJSON{Why: o.Why.In(lang), Query: o.Query, QueryHex: hexUnlessText(o.Query), Answers: []JSON{}}
		for _, a := range o.Answers {
			offer.Answers = append(offer.Answers, a.JSON(lang))
		}
		j.Offers = append(j.Offers, offer)
	}
	return j
}
