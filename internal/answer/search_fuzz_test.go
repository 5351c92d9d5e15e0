package answer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// house stands for all three stores and shows of every key what it is told to.
type house struct {
	state  flow.State
	stored string
}

func (h house) observation() flow.Observation {
	o := flow.Observation{State: h.state, Source: "the house", ReadAt: noon}
	if h.state == flow.Unknown || h.state == flow.Error {
		o.Reason = flow.T("told so", "如此告知")
	}
	return o
}

func (h house) Find(_ context.Context, k flow.Key) ledger.Found {
	found := ledger.Found{Observation: h.observation()}
	if h.state == flow.Found {
		found.Rows = []ledger.Row{{Table: "shop.t", ID: "1", BizType: k.BizType, BizID: h.stored, Exact: h.stored == k.BizID, Status: h.stored, Phase: flow.Unmapped}}
	}
	return found
}

func (h house) Look(_ context.Context, key string) lockstore.Entry {
	return lockstore.Entry{Observation: h.observation(), Key: key, Type: "string", Value: h.stored, TTL: time.Second}
}

func (h house) LookSimilar(_ context.Context, keys []string) []string {
	if h.state == flow.Found {
		return append([]string{h.stored}, keys...)
	}
	return nil
}

func (h house) Evidence(_ context.Context, q flow.Queue) broker.Evidence {
	return broker.Evidence{Observation: h.observation(), Queues: []broker.Queue{{Observation: h.observation(), Name: q.Name}}}
}

func (h house) Types(context.Context, int) ([]string, bool, error) {
	return []string{"gift", h.stored}, true, nil
}

// desk has a flow that names its types, one that shares its Redis key, and one
// that takes the rest.
func (h house) desk(t testing.TB) *Desk {
	t.Helper()
	key := func(text string) *flow.RedisKey {
		tpl, err := flow.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return &flow.RedisKey{Redis: "main", Template: tpl, TTL: time.Minute}
	}
	catalog := flow.NewCatalog([]flow.Flow{
		{Name: "payments", Ledger: "main", BizTypes: []string{"pay", "pay:refund"}, Lock: key("lock:{biz_type}:{biz_id}"), Marker: key("done:{biz_type}:{biz_id}"),
			Queue: &flow.Queue{Broker: "main", Name: "q", IDField: "id", TypeField: "type"}, StaleAfter: time.Minute},
		{Name: "points", Ledger: "main", BizTypes: []string{"points", "bonus"}, Lock: key("{biz_id}"), StaleAfter: time.Minute},
		{Name: "others", Ledger: "main", Rest: true, StaleAfter: time.Minute},
	})
	gatherer, err := dossier.NewGatherer(dossier.Options{Catalog: catalog, Ledgers: map[string]dossier.Records{"main": h},
		Redis: map[string]dossier.Keys{"main": h}, Brokers: map[string]dossier.Queues{"main": h}})
	if err != nil {
		t.Fatal(err)
	}
	return NewDesk(Options{Catalog: catalog, Gatherer: gatherer, Ledgers: map[string]Types{"main": h}})
}

// FuzzSearch pastes anything into the search, with stores that show anything:
// every answer is about a key that a flow carries, is JSON that keeps its bytes,
// and is text that no terminal obeys.
func FuzzSearch(f *testing.F) {
	for i, s := range []string{"pay:1", "lock:pay:refund:7", `{"type":"pay","id":"7"}`, hostile, "gift:5", `{"id":12345678901234567890}`, "{", ":", "pay:", " "} {
		f.Add(s, s, uint8(i))
	}
	f.Fuzz(func(t *testing.T, query, stored string, pick uint8) {
		state := []flow.State{flow.Found, flow.Absent, flow.Unknown, flow.Error}[pick%4]
		result, err := house{state, stored}.desk(t).Search(t.Context(), query)
		if err != nil {
			return
		}
		if len(result.Answers) > maxPlaces {
			t.Errorf("%d answers, the bound is %d", len(result.Answers), maxPlaces)
		}
		for _, a := range result.Answers {
			checkAnswer(t, a)
		}
		if _, err := json.Marshal(result.JSON(flow.Chinese)); err != nil {
			t.Error(err)
		}
	})
}

func checkAnswer(t *testing.T, a Answer) {
	t.Helper()
	if a.Flow.Name == "" || a.Verdict.Code == "" {
		t.Fatalf("an answer of no flow or without a verdict: %+v", a)
	}
	for _, lang := range flow.Languages {
		var out strings.Builder
		if err := a.WriteText(&out, lang, time.UTC); err != nil {
			t.Fatal(err)
		}
		for _, r := range strings.ReplaceAll(out.String(), "\n", "") {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%s: %U is printed as it is:\n%q", lang, r, out.String())
			}
		}
		if !utf8.ValidString(out.String()) {
			t.Fatalf("%s: printed bytes are not UTF-8: %q", lang, out.String())
		}
	}
	text, err := json.Marshal(a.JSON(flow.English))
	if err != nil {
		t.Fatal(err)
	}
	var back JSON
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if got := (flow.Key{BizType: bytesOf(t, back.Key.BizType, back.Key.BizTypeHex), BizID: bytesOf(t, back.Key.BizID, back.Key.BizIDHex)}); got != a.Key {
		t.Errorf("the key %q comes back as %q", a.Key, got)
	}
	for i, row := range back.Record.Rows {
		if got := bytesOf(t, row.BizID, row.BizIDHex); got != a.Record.Rows[i].BizID {
			t.Errorf("the stored id %q comes back as %q", a.Record.Rows[i].BizID, got)
		}
	}
	if back.Lock != nil && bytesOf(t, back.Lock.Key, back.Lock.KeyHex) != a.Lock.Key {
		t.Errorf("the Redis key %q comes back as %q", a.Lock.Key, back.Lock.Key)
	}
}

// bytesOf is what a reader of the API makes of a text field and its hex field.
func bytesOf(t *testing.T, text, inHex string) string {
	t.Helper()
	if inHex == "" {
		return text
	}
	raw, err := hex.DecodeString(inHex)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// FuzzMark: a mark that is taken is one that a page gave; whatever is asked for,
// a page holds no more than its limit and its next mark is taken.
func FuzzMark(f *testing.F) {
	list := manyFindings(50)
	SortFindings(list)
	f.Add("", 7)
	f.Add("0.1.zz", 1)
	f.Add(list[3].mark(ByWorst).String(), 100)
	f.Add("-9223372036854775808.9223372036854775807.ffffffffffffffff", 3)
	f.Fuzz(func(t *testing.T, after string, limit int) {
		limit = 1 + int(uint(limit)%1000)
		page, next, err := Page(list, after, limit)
		if err != nil {
			if err != ErrMark || page != nil || next != "" {
				t.Errorf("%q: %v", after, err)
			}
			return
		}
		if m, err := parseMark(after); after != "" && (err != nil || m.String() != after) {
			t.Errorf("%q is taken for %v: %v", after, m, err)
		}
		if len(page) > limit || (next == "") == (len(page) == limit && list[len(list)-1].Key != page[len(page)-1].Key) {
			t.Errorf("after %q: %d findings of %d, next %q", after, len(page), limit, next)
		}
		if _, _, err := Page(list, next, limit); err != nil {
			t.Errorf("the mark %q of a page: %v", next, err)
		}
	})
}
