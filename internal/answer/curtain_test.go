package answer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

const payload = `{"card":"S9S9"}`

// answerWithPayload has a payload in every place that can hold one.
func answerWithPayload() Answer {
	a := answerOf()
	result := func() *string { return new(payload) }
	for i := range a.Record.Rows {
		a.Record.Rows[i].Result = result()
	}
	a.Record.Neighbours[0].Row.Result = result()
	a.Record.Archive.Rows = []ledger.Row{{Result: result()}, {}}
	entry := lockstore.Entry{
		Observation: flow.Observation{State: flow.Found}, Type: "string", Value: payload, Length: int64(len(payload)),
		Before: &lockstore.Sighting{Found: true, Value: payload},
	}
	a.Flow.Marker = &flow.RedisKey{TTL: time.Hour}
	a.Lock, a.Marker = &dossier.RedisEvidence{Entry: entry}, &dossier.RedisEvidence{Entry: entry}
	return a
}

// everything is all that anybody gets to see of an answer.
func everything(t *testing.T, a Answer) string {
	t.Helper()
	var all strings.Builder
	for _, lang := range flow.Languages {
		text, err := json.Marshal(a.JSON(lang))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		if err := a.WriteText(&all, lang, time.UTC); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func TestHiddenPayloadsAreNowhere(t *testing.T) {
	a := answerWithPayload()
	if !strings.Contains(everything(t, a), "S9S9") {
		t.Fatal("there is nothing to hide")
	}
	hidden := a.Hidden()
	if shown := everything(t, hidden); strings.Contains(shown, "S9S9") || !strings.Contains(shown, "needs the role payload") || !strings.Contains(shown, "需要角色 payload") {
		t.Errorf("hidden, it shows %s", shown)
	}
	j := hidden.JSON(flow.English)
	for _, r := range append(append([]RowJSON{j.Record.Neighbours[0].RowJSON}, j.Record.Rows...), j.Record.Archive.Rows[0]) {
		if r.Result != nil || !r.ResultHidden {
			t.Errorf("row %+v", r)
		}
	}
	if empty := j.Record.Archive.Rows[1]; empty.ResultHidden {
		t.Error("a result that is not there is said to be hidden")
	}
	for _, r := range []*RedisJSON{j.Lock, j.Marker} {
		if r.Value != nil || r.ValueHex != "" || !r.ValueHidden {
			t.Errorf("value %+v", r)
		}
	}
	if hidden.Lock.Before.Value != "" || !strings.Contains(everything(t, a), "S9S9") || a.Lock.Before.Value != payload {
		t.Error("an earlier value stays, or the answer itself was changed")
	}
}

func TestMaskedPayloads(t *testing.T) {
	a := answerWithPayload()
	mask := func(s string) string { return strings.ReplaceAll(s, "S9S9", "**") }
	masked := a.Masked(mask)
	if shown := everything(t, masked); strings.Contains(shown, "S9S9") || !strings.Contains(shown, `card\":\"**`) {
		t.Errorf("masked, it shows %s", shown)
	}
	if masked.Marker.Length != int64(len(masked.Marker.Value)) || masked.Marker.Before.Value != mask(payload) || a.Marker.Value != payload || *a.Record.Rows[0].Result != payload {
		t.Errorf("%+v", masked.Marker)
	}
}

// A lock's token and a marker's state are no payloads: they are what is looked for.
func TestWhatIsAPayload(t *testing.T) {
	for value, want := range map[string]struct{ lock, marker bool }{
		"":                                     {false, false},
		"1":                                    {false, false},
		"processing":                           {false, false},
		"IN_PROGRESS":                          {false, false},
		"1700":                                 {false, true},
		"host-1:4711:550e8400":                 {false, true},
		"13812345678":                          {false, true},
		"alice@example.com":                    {false, true},
		strings.Repeat("a", 33):                {false, true},
		`{"processed_at":1}`:                   {true, true},
		" [1]":                                 {true, true},
		`a:1:{s:5:"phone";s:11:"13812345678"}`: {true, true},
		`O:8:"stdClass":0:{}`:                  {true, true},
		"\xff\x00":                             {false, true},
	} {
		if got := !isToken(value); got != want.lock {
			t.Errorf("lock %q: %v", value, got)
		}
		if got := !isWord(value); got != want.marker {
			t.Errorf("marker %q: %v", value, got)
		}
	}
}

func TestWordsOfEventsAreMaskedBeforeTheyAreJudged(t *testing.T) {
	d := answerOf().Dossier
	d.Trail.Events[0].Outcome = "declined S9S9"
	masked := maskWords(d, func(s string) string { return strings.ReplaceAll(s, "S9S9", "**") })
	if masked.Trail.Events[0].Outcome != "declined **" || d.Trail.Events[0].Outcome != "declined S9S9" || masked.Trace != nil {
		t.Errorf("%+v", masked.Trail.Events[0])
	}
}
