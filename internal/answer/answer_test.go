package answer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile holds what a terminal or a JSON reader must never get as it is.
const hostile = "a\x1b[31m\r\n\x00\u202e\xff<script>"

// answerOf is a whole answer in which every text that a store can hold is hostile.
func answerOf() Answer {
	seen := flow.Observation{State: flow.Found, Source: "somewhere", ReadAt: time.Unix(1700000000, 0)}
	stamp := ledger.Stamp{State: ledger.StampOK, Text: "2023-11-14 22:13:20", Time: time.Unix(1700000000, 0)}
	d := dossier.Dossier{
		Key:  flow.Key{BizType: "pay", BizID: hostile},
		Flow: flow.Flow{Name: "payments", StaleAfter: time.Minute, Lock: &flow.RedisKey{TTL: time.Minute}, Queue: &flow.Queue{Name: "q"}},
		Record: ledger.Found{Observation: seen, Rows: []ledger.Row{
			{Table: "shop.t", ID: "18446744073709551615", BizType: "pay", BizID: hostile, Exact: true, Status: hostile, Phase: flow.Completed, Created: stamp, Updated: stamp, Age: time.Hour, AgeKnown: true},
			{Table: "shop.t", ID: "2", BizType: "pay", BizID: hostile, Status: "1", Phase: flow.Unmapped, Updated: ledger.Stamp{State: ledger.StampZero, Text: "0000-00-00 00:00:00"}},
		}},
		Lock:   &dossier.RedisEvidence{Entry: lockstore.Entry{Observation: seen, Key: hostile, Type: "string", Value: hostile, TTL: time.Second}},
		Broker: &broker.Evidence{Observation: seen, Queues: []broker.Queue{{Observation: flow.Observation{State: flow.Error, Reason: flow.T("down", "不可用")}, Name: "q"}}},
	}
	event := flow.Event{Kind: flow.Received, At: time.Unix(1700000000, 0), Layer: flow.LayerBroker, Source: hostile, Certainty: flow.Reported,
		Place: hostile, Outcome: hostile, Worker: hostile, MessageID: hostile}
	unheard := event
	unheard.Kind = flow.EventKind(hostile)
	d.Trail = &flow.Account{Observation: seen, Events: []flow.Event{event, unheard}, Since: time.Unix(1600000000, 0)}
	d.Tap = &flow.Account{Observation: flow.Observation{State: flow.Error, Reason: flow.T("down", "不可用")}}
	d.Lock.Similar = []string{hostile}
	d.Record.Neighbours = []ledger.Neighbour{{Kind: ledger.OtherSpelling, Row: d.Record.Rows[0]}}
	d.Record.Archive = &ledger.Archive{Observation: seen, Rows: d.Record.Rows[:1]}
	return Answer{Dossier: d, Verdict: verdict.Judge(d)}
}

func TestJSONHoldsTheWholeStory(t *testing.T) {
	j := answerOf().JSON(flow.Chinese)
	if j.Trace != nil || j.Tap == nil || j.Tap.Reason != "不可用" || j.Trail == nil || j.Trail.Events != 2 || j.Trail.Since == "" {
		t.Errorf("tap %+v, trace %+v, trail %+v", j.Tap, j.Trace, j.Trail)
	}
	if len(j.Record.Neighbours) != 1 || j.Record.Archive == nil || len(j.Record.Archive.Rows) != 1 || len(j.Lock.Similar) != 1 {
		t.Errorf("record %+v, lock %+v", j.Record, j.Lock)
	}
	kinds := map[flow.EventKind]int{}
	for _, e := range j.Timeline {
		kinds[e.Kind]++
		if e.At == "" || e.Text == "" || e.Certainty == "" {
			t.Errorf("entry without time, words or certainty: %+v", e)
		}
	}
	for _, want := range []flow.EventKind{flow.Received, flow.RecordCreated, flow.LockExpires, flow.RecordArchived} {
		if kinds[want] != 1 {
			t.Errorf("the timeline has %d entries %s: %v", kinds[want], want, kinds)
		}
	}
}

func TestTextCannotMoveTheCursor(t *testing.T) {
	for _, lang := range flow.Languages {
		var out strings.Builder
		if err := answerOf().WriteText(&out, lang, time.UTC); err != nil {
			t.Fatal(err)
		}
		for _, r := range strings.ReplaceAll(out.String(), "\n", "") {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
				t.Fatalf("%s: %U is printed as it is:\n%q", lang, r, out.String())
			}
		}
		if !strings.Contains(out.String(), "COMPLETED [ok]") || !strings.Contains(out.String(), "0000-00-00 00:00:00 (zero)") {
			t.Errorf("%s: verdict or stamp is missing:\n%s", lang, &out)
		}
	}
}

func TestJSONKeepsEveryByteAndDigit(t *testing.T) {
	text, err := json.Marshal(answerOf().JSON(flow.English))
	if err != nil {
		t.Fatal(err)
	}
	var back JSON
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	const wantHex = "611b5b33316d0d0a00e280aeff3c7363726970743e"
	if back.Key.BizIDHex != wantHex || back.Record.Rows[0].BizIDHex != wantHex || back.Lock.KeyHex != wantHex || back.Lock.ValueHex != wantHex {
		t.Errorf("bytes are lost: %s", text)
	}
	if back.Record.Rows[0].ID != "18446744073709551615" {
		t.Errorf("digits are lost: %s", back.Record.Rows[0].ID)
	}
	if strings.Contains(string(text), "<script>") {
		t.Errorf("markup is not escaped: %s", text)
	}
	if back.Marker != nil || back.Broker.Queues[0].Ready != nil || back.Record.Rows[1].Updated.Time != "" {
		t.Errorf("what is not known has a value: %s", text)
	}
}

func TestPlacesNamesWhatIsKnown(t *testing.T) {
	catalog := flow.NewCatalog([]flow.Flow{{Name: "payments", BizTypes: []string{"pay"}}, {Name: "copies", BizTypes: []string{"pay"}}})
	desk := NewDesk(Options{Catalog: catalog})
	if places, err := desk.Places(flow.Key{BizType: "pay", BizID: "1"}, ""); err != nil || len(places) != 2 {
		t.Errorf("two flows carry the type: %v %v", places, err)
	}
	if places, err := desk.Places(flow.Key{BizType: "pay", BizID: "1"}, "copies"); err != nil || len(places) != 1 {
		t.Errorf("narrowed to one flow: %v %v", places, err)
	}
	for _, flowName := range []string{"", "nowhere"} {
		_, err := desk.Places(flow.Key{BizType: "PAY", BizID: "1"}, flowName)
		var none NoFlow
		if !errors.As(err, &none) || !strings.Contains(err.Error(), "pay") {
			t.Errorf("flow %q: %v", flowName, err)
		}
	}
}
