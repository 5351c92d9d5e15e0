package draft

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// orders is a ledger with a column for the biz_type, and with these keys.
func orders(keys ...flow.Key) Sampled {
	s := Sampled{Ledger: &Ledger{Name: "orders", Table: "idempotent_record", Preset: "idempotent_record", hasType: true, hasStatus: true, Confidence: Sure}, AllTypes: true}
	for _, k := range keys {
		s.Keys = append(s.Keys, k)
		if !slices.Contains(s.Types, k.BizType) {
			s.Types = append(s.Types, k.BizType)
		}
	}
	return s
}

// signs is a ledger whose id is made of two columns.
func signs(values ...string) Sampled {
	s := Sampled{Ledger: &Ledger{Name: "signs", Table: "user_sign_record", Preset: "composite", BizType: placeholderType, BizID: "{user_id}:{sign_date}", Parts: []string{"user_id", "sign_date"}}}
	for _, v := range values {
		s.Keys = append(s.Keys, flow.Key{BizType: placeholderType, BizID: strings.ReplaceAll(v, "|", partSeparator)})
	}
	return s
}

func sampleOf(keys ...string) []lockstore.SampledKey {
	var all []lockstore.SampledKey
	for _, k := range keys {
		all = append(all, lockstore.SampledKey{Key: k, Type: "string", TTL: 9 * time.Second})
	}
	return all
}

// shapesText is "template kind keys", one after another.
func shapesText(list []*Shape) string {
	var all []string
	for _, s := range list {
		all = append(all, fmt.Sprintf("%s %d %d", s.Template, s.Kind, s.Keys))
	}
	return strings.Join(all, "; ")
}

func TestKeysAreTakenApartByTheIDsOfTheRows(t *testing.T) {
	pay := orders(flow.Key{BizType: "order_paid", BizID: "SO-2025/1"}, flow.Key{BizType: "refund", BizID: "SO-2025/1"}, flow.Key{BizType: "a.b*c", BizID: "{x}$y"},
		flow.Key{BizType: "refund", BizID: "42"}, flow.Key{BizType: "bytes", BizID: "\xff\xfe\x00z"})
	for name, c := range map[string]struct {
		ledgers []Sampled
		keys    []string
		want    string
	}{
		"typed":                 {[]Sampled{pay}, []string{"idem_lock:order_paid:SO-2025/1", "idem_lock:refund:SO-2025/1"}, "idem_lock:{biz_type}:{biz_id} 1 2"},
		"the type at the end":   {[]Sampled{pay}, []string{"done:SO-2025/1:refund"}, "done:{biz_id}:{biz_type} 2 1"},
		"a suffix":              {[]Sampled{pay}, []string{"msg:processed:SO-2025/1:lock", "msg:processed:SO-2025/1"}, "msg:processed:{biz_id} 2 1; msg:processed:{biz_id}:lock 1 1"},
		"a hash tag":            {[]Sampled{pay}, []string{"lock:{order_paid:SO-2025/1}"}, "lock:{{biz_type}:{biz_id}} 1 1"},
		"any bytes":             {[]Sampled{pay}, []string{"lock:a.b*c:{x}$y", "lock:bytes:\xff\xfe\x00z"}, "lock:{biz_type}:{biz_id} 1 2"},
		"a prefix of a house":   {[]Sampled{pay}, []string{"shop:pay:idem:order_paid:SO-2025/1"}, "shop:pay:idem:{biz_type}:{biz_id} 2 1"},
		"neither lock nor mark": {[]Sampled{pay}, []string{"cache:order:SO-2025/1"}, "cache:order:{biz_id} 0 1"},
		"a clock is no lock":    {[]Sampled{pay}, []string{"clock:SO-2025/1"}, "clock:{biz_id} 0 1"},
		"a number by chance":    {[]Sampled{pay}, []string{"idem_lock:page:42"}, ""},
		"inside another word":   {[]Sampled{pay}, []string{"lock:xSO-2025/1y"}, ""},
		"a brace left over":     {[]Sampled{pay}, []string{"lock:{order_paid:SO-2025/1"}, ""},
		"a placeholder by name": {[]Sampled{pay}, []string{"lock:{tenant}:SO-2025/1"}, ""},
		"by the type alone":     {[]Sampled{pay}, []string{"idem_lock:refund:UNKNOWN-7"}, "idem_lock:{biz_type}:{biz_id} 1 1"},
		"by a proved shape":     {[]Sampled{pay}, []string{"idem_lock:refund:SO-2025/1", "idem_lock:order_paid:a:b"}, "idem_lock:{biz_type}:{biz_id} 1 2"},
		"counters":              {[]Sampled{pay}, []string{"idem_stat:{order_paid}", "idem_stat:types"}, ""},
		"two columns":           {[]Sampled{signs("7|2025-01-15")}, []string{"sign_lock:user:7:date:2025-01-15"}, "sign_lock:user:{biz_id} 1 1"},
		"too many separators":   {[]Sampled{pay}, []string{"lock:" + strings.Repeat(":", 100) + "SO-2025/1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shapesText(NewReader(c.ledgers).Shapes(sampleOf(c.keys...))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAKeyThatIsNoStringIsNoLock(t *testing.T) {
	keys := sampleOf("idem_lock:order_paid:SO-2025")
	keys[0].Type = "hash"
	if got := NewReader([]Sampled{orders(flow.Key{BizType: "order_paid", BizID: "SO-2025"})}).Shapes(keys); len(got) > 0 {
		t.Error(shapesText(got))
	}
}

func TestTheConstantTypeAndTheJoinedIDAreReadOutOfAKey(t *testing.T) {
	for name, c := range map[string]struct{ key, bizType, bizID string }{
		"plain":                 {"idempotent:sign:10086:2025-01-15", "sign", "{user_id}:{sign_date}"},
		"with words in between": {"idempotent:sign:user:10086:date:2025-01-15", "sign", "user:{user_id}:date:{sign_date}"},
	} {
		t.Run(name, func(t *testing.T) {
			pay, sign := orders(flow.Key{BizType: "order_paid", BizID: "SO-2025"}), signs("999999|2025-01-14", "10086|2025-01-15")
			shapes := NewReader([]Sampled{pay, sign}).Shapes(sampleOf("idempotent:order_paid:SO-2025", c.key))
			if got := shapesText(shapes); got != "idempotent:{biz_type}:{biz_id} 2 2" {
				t.Error(got)
			}
			if sign.BizType != c.bizType || sign.BizID != c.bizID || sign.Confidence != Likely || len(sign.Doubts) > 0 {
				t.Errorf("%+v", *sign.Ledger)
			}
		})
	}
}

func TestLifetimesAreRoundedUpToWhatPeopleChoose(t *testing.T) {
	for seen, want := range map[time.Duration]string{
		13 * time.Second: "15s", 15 * time.Second: "15s", 15*time.Second + 1: "20s", 23*time.Hour + 29*time.Minute: "24h",
		100 * time.Millisecond: "1s", 61 * time.Second: "2m", 400 * 24 * time.Hour: "9600h",
	} {
		if got := duration(roundedUp(seen)); got != want {
			t.Errorf("%s: %s, want %s", seen, got, want)
		}
	}
}

func TestTheDefaultShapesAreAskedForByTheNewestRows(t *testing.T) {
	pay := orders(flow.Key{BizType: "order_paid", BizID: "SO-1"}, flow.Key{BizType: "order_paid", BizID: "SO-2"})
	all := NewReader([]Sampled{pay, signs("7|2025-01-15")}).Candidates(100)
	if len(all) != 2*len(defaultShapes) || !slices.Contains(all, "idem_lock:order_paid:SO-2") {
		t.Errorf("%q", all)
	}
	if few := NewReader([]Sampled{pay}).Candidates(3); len(few) != 3 {
		t.Errorf("%q", few)
	}
}
