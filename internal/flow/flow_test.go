package flow

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func template(t *testing.T, text string) Template {
	t.Helper()
	tpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func TestTemplateRendersBytesAsTheyAre(t *testing.T) {
	tpl := template(t, "idem_lock:{biz_type}:{biz_id}")
	for _, id := range []string{"1", " 1 ", "a:b", "{biz_type}", "\x00\xff", "💳", strings.Repeat("x", 10_000)} {
		want := "idem_lock:pay:" + id
		if got := tpl.Render(map[string]string{"biz_type": "pay", "biz_id": id}); got != want {
			t.Errorf("id %q: got %q, want %q", id, got, want)
		}
	}
}

func TestTemplateKeepsAHashTag(t *testing.T) {
	tpl := template(t, "lock:{{biz_id}}")
	if got := tpl.Render(map[string]string{"biz_id": "7"}); got != "lock:{7}" {
		t.Errorf("got %q", got)
	}
}

func TestTemplateRefusesWhatCannotBeTakenApart(t *testing.T) {
	for _, text := range []string{"{a}{b}", "{a}:{a}", "lock:{biz_id", "lock:biz_id}"} {
		if _, err := ParseTemplate(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestTemplateMatchesEveryReading(t *testing.T) {
	tpl := template(t, "idem_lock:{biz_type}:{biz_id}")
	got := tpl.Matches("idem_lock:order:refund:7", 10)
	want := []map[string]string{
		{"biz_type": "order", "biz_id": "refund:7"},
		{"biz_type": "order:refund", "biz_id": "7"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := len(tpl.Matches("idem_lock:"+strings.Repeat(":a", 5000), 10)); n != 10 {
		t.Errorf("a hostile key gave %d readings, the bound is 10", n)
	}
	for _, other := range []string{"", "idem_lock:", "idem_lock:a", "idem_lock:a:", "idem_lock::a", "lock:a:b"} {
		if got := tpl.Matches(other, 10); len(got) != 0 {
			t.Errorf("%q matched as %v", other, got)
		}
	}
}

func catalog(t *testing.T) *Catalog {
	lock := func(text string) *RedisKey {
		return &RedisKey{Redis: "main", Prefix: "app:", Template: template(t, text)}
	}
	return NewCatalog([]Flow{
		{Name: "orders", BizTypes: []string{"order", "order:refund"}, Ledger: "l", Lock: lock("idem_lock:{biz_type}:{biz_id}"),
			Queue: &Queue{Broker: "b", Name: "q", IDField: "data.order_no", TypeField: "type"}},
		{Name: "points", BizTypes: []string{"points", "bonus"}, Ledger: "l", Lock: lock("consume_lock:{biz_id}"),
			Queue: &Queue{Broker: "b", Name: "p", IDField: "biz_id"}},
		{Name: "rest", Rest: true, Ledger: "l", Lock: lock("rest:{biz_type}:{biz_id}")},
	})
}

func TestOwnersOfASharedRedisKey(t *testing.T) {
	c := catalog(t)
	owners, open := c.Owners("main", "app:idem_lock:order:refund:7", Key{"order", "refund:7"})
	if want := []Place{{"orders", Key{"order:refund", "7"}}}; !reflect.DeepEqual(owners, want) || open {
		t.Errorf("two readings: got %v %v, want %v", owners, open, want)
	}
	owners, _ = c.Owners("main", "app:consume_lock:9", Key{"points", "9"})
	if want := []Place{{"points", Key{"bonus", "9"}}}; !reflect.DeepEqual(owners, want) {
		t.Errorf("a key without its biz_type: got %v, want %v", owners, want)
	}
	owners, open = c.Owners("main", "app:idem_lock:order:9", Key{"order", "9"})
	if len(owners) > 0 || open {
		t.Errorf("a plain key has other owners: %v", owners)
	}
	if owners, _ = c.Owners("other", "app:consume_lock:9", Key{"points", "9"}); len(owners) > 0 {
		t.Errorf("a key on another server has owners here: %v", owners)
	}
}

func TestCatalogFor(t *testing.T) {
	c := catalog(t)
	for bizType, want := range map[string]string{"order": "orders", "bonus": "points", "anything": "rest", "Order": "rest", " order": "rest"} {
		if got := c.For(bizType); len(got) != 1 || got[0].Name != want {
			t.Errorf("%q: got %v, want flow %s", bizType, got, want)
		}
	}
}

func TestReadUnderstandsWhatPeoplePaste(t *testing.T) {
	c := catalog(t)
	tests := map[string]struct {
		query  string
		places []Place
		bare   bool
	}{
		"typed id":            {"order:1", []Place{{"orders", Key{"order", "1"}}}, true},
		"typed id, two ways":  {"order:refund:7", []Place{{"orders", Key{"order", "refund:7"}}, {"orders", Key{"order:refund", "7"}}}, true},
		"unnamed type":        {"gift:5", []Place{{"rest", Key{"gift", "5"}}}, true},
		"redis key":           {"app:consume_lock:42", []Place{{"rest", Key{"app", "consume_lock:42"}}, {"points", Key{"points", "42"}}, {"points", Key{"bonus", "42"}}}, true},
		"message":             {`{"type":"order","data":{"order_no":9007199254740993}}`, []Place{{"orders", Key{"order", "9007199254740993"}}}, false},
		"message of any type": {` {"biz_id":"x "}`, []Place{{"points", Key{"points", "x "}}, {"points", Key{"bonus", "x "}}}, false},
		"bare":                {"ORD-1 ", nil, true},
		"broken message":      {`{"biz_id"`, nil, true},
	}
	for name, tt := range tests {
		got, err := c.Read(tt.query)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got.Places, tt.places) {
			t.Errorf("%s: got %v, want %v", name, got.Places, tt.places)
		}
		if want := map[bool]string{true: tt.query, false: ""}[tt.bare]; got.BareID != want {
			t.Errorf("%s: bare id %q, want %q", name, got.BareID, want)
		}
	}
	if _, err := c.Read(""); !errors.Is(err, ErrEmptyQuery) {
		t.Errorf("empty query: %v", err)
	}
	if _, err := c.Read(`{"other":1}`); !errors.Is(err, ErrMessage) {
		t.Errorf("message without an id: %v", err)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain":      "plain",
		"订单 7":       "订单 7",
		" a b ":      "␣a b␣",
		"a\nb\x00":   `a\nb\x00`,
		"a\xffb":     `a\xFFb`,
		"a\u202eb":   `a\u202eb`,
		"a\u00a0b":   `a\u00a0b`,
		"💳":          "💳",
		"  ":         "␣␣",
		"<script>":   "<script>",
		"\x1b[31mno": `\x1b[31mno`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0 ms",
		300 * time.Microsecond:                "under 1 ms",
		340 * time.Millisecond:                "340 ms",
		1400 * time.Millisecond:               "1.4 s",
		2 * time.Second:                       "2 s",
		59*time.Second + 999*time.Millisecond: "59 s",
		-125 * time.Second:                    "2 min 5 s",
		3 * time.Hour:                         "3 h",
		220 * time.Hour:                       "9 d 4 h",
	} {
		if got := Span(d).EN; got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
	if got := Span(220 * time.Hour).ZH; got != "9 天 4 小时" {
		t.Errorf("Chinese: got %q", got)
	}
}

func TestTextFormatsBothLanguages(t *testing.T) {
	got := T("lock: %v left of %d", "锁：剩余 %v，共 %d", Span(time.Minute), 2)
	if want := (Text{"lock: 1 min left of 2", "锁：剩余 1 分，共 2"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseLanguage(t *testing.T) {
	for tag, want := range map[string]Language{"zh-CN": Chinese, "zh": Chinese, "en_US.UTF-8": English, "EN": English} {
		if got, ok := ParseLanguage(tag); !ok || got != want {
			t.Errorf("%q: got %v %v", tag, got, ok)
		}
	}
	for _, tag := range []string{"", "de", "C.UTF-8", "zhuang"} {
		if _, ok := ParseLanguage(tag); ok {
			t.Errorf("%q was taken for a language of ours", tag)
		}
	}
}

func TestAMessageIDIsTheBizIDWhereTheFlowSaysSo(t *testing.T) {
	one := Flow{BizTypes: []string{"pay"}, Queue: &Queue{IDProperty: PropertyMessageID}}
	typed := Flow{BizTypes: []string{"pay", "refund"}, Queue: &Queue{IDProperty: PropertyMessageID, TypeField: "kind"}}
	field := Flow{BizTypes: []string{"pay"}, Queue: &Queue{IDField: "id"}}
	for _, c := range []struct {
		flow     Flow
		id, body string
		want     []Key
	}{
		{one, "A-1", "\xff no JSON", []Key{{"pay", "A-1"}}},
		{one, "\xff", "", []Key{{"pay", "\xff"}}},
		{one, "", `{"id":"B-2"}`, nil},
		{typed, "A-1", `{"kind":"refund"}`, []Key{{"refund", "A-1"}}},
		{typed, "A-1", `{"kind":"other"}`, nil},
		{typed, "A-1", "no JSON", nil},
		{typed, "A-1", "{\"kind\":\"refund\",\"x\":\"\xff\"}", nil},
		{typed, "A-1", "{}", []Key{{"pay", "A-1"}, {"refund", "A-1"}}},
		{field, "A-1", `{"id":"B-2"}`, []Key{{"pay", "B-2"}}},
		{Flow{BizTypes: []string{"pay"}, Queue: &Queue{}}, "A-1", `{"id":"B-2"}`, nil},
		{Flow{BizTypes: []string{"pay"}}, "A-1", "{}", nil},
	} {
		if got := c.flow.KeysOf(c.id, []byte(c.body)); !slices.Equal(got, c.want) {
			t.Errorf("%q %q: %v, want %v", c.id, c.body, got, c.want)
		}
	}
	// A message that is pasted into the search has no message id.
	if got := one.KeysIn([]byte(`{"message_id":"A-1"}`)); got != nil {
		t.Errorf("a body alone: %v", got)
	}
}
