package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func lineCatalog(t testing.TB) *Catalog {
	t.Helper()
	key := func(text string) *RedisKey {
		template, err := ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return &RedisKey{Redis: "main", Template: template}
	}
	return NewCatalog([]Flow{
		{Name: "payments", BizTypes: []string{"order_paid", "refund"}, Lock: key("idem_lock:{biz_type}:{biz_id}"),
			Queue: &Queue{IDField: "data.order_no", TypeField: "kind"}},
		{Name: "signs", BizTypes: []string{"sign"}, Lock: key("{biz_id}"), Marker: key("msg:processed:{biz_id}:lock")},
		{Name: "rest", Rest: true, Lock: key("{biz_type}:{biz_id}"), Marker: key("idempotent:{biz_type}:{biz_id}")},
	})
}

// TestInLine: keys of known shapes are found inside a line of a log, and nothing is
// taken for a key because it looks like one.
func TestInLine(t *testing.T) {
	c := lineCatalog(t)
	for text, want := range map[string]string{
		"2026-03-14 18:07:31 WARN lock idem_lock:order_paid:4711 is held by 10.0.0.7:22190":                    "payments/order_paid/4711 ids []",
		`{"level":"info","msg":"got","body":"{\"kind\":\"refund\",\"data\":{\"order_no\":9007199254740993}}"}`: "payments/refund/9007199254740993 ids []",
		`18:07 consumed {"kind":"order_paid","data":{"order_no":"A 1"}} in 3 ms`:                               "payments/order_paid/A 1 ids []",
		"key=order_paid:20260314000123, attempt=2":                                                             "payments/order_paid/20260314000123 ids []",
		"refund:1 order_paid:2":                         "payments/refund/1 payments/order_paid/2 ids []",
		"msg:processed:7:2026-03-14:lock gone":          "signs/sign/7:2026-03-14 ids []",
		"DEL idempotent:points:88 -> 1":                 "rest/points/88 ids []",
		"nobody:4711 and some:thing 12:30:00":           "ids []",
		"order 20260314000123 failed (TX-998877665544)": "ids [20260314000123 TX-998877665544]",
		"2026-03-14T18:07:31.412Z 127.0.0.1:6379 ok":    "ids []",
		"{broken {\"kind\":":                            "ids []",
		"订单：order_paid:4711。":                           "payments/order_paid/4711 ids []",
		"20260314000123":                                "ids []",
	} {
		line := c.InLine(text)
		var got []string
		for _, p := range line.Places {
			got = append(got, fmt.Sprintf("%s/%s/%s", p.Flow, p.Key.BizType, p.Key.BizID))
		}
		got = append(got, fmt.Sprintf("ids %v", line.IDs))
		if strings.Join(got, " ") != want {
			t.Errorf("%s:\n got %s\nwant %s", text, strings.Join(got, " "), want)
		}
	}
}

// TestInLineIsBounded: whatever is pasted, the answer is short and comes soon.
func TestInLineIsBounded(t *testing.T) {
	c := lineCatalog(t)
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "order_paid:%d id %d ", i, 1_000_000_000+i)
	}
	line := c.InLine(many.String())
	if len(line.Places) != maxLinePlaces || len(line.IDs) > maxLineIDs {
		t.Errorf("%d places, %d ids", len(line.Places), len(line.IDs))
	}
	if line := c.InLine(strings.Repeat("{", 1<<20)); len(line.Places) != 0 {
		t.Errorf("%+v", line)
	}
	if line := c.InLine(strings.Repeat(`{"a":`, 9_000)); len(line.Places) != 0 {
		t.Errorf("%+v", line)
	}
}

func FuzzInLine(f *testing.F) {
	f.Add(`x {"data":{"order_no":"1"},"kind":"refund"} idem_lock:refund:2`)
	c := lineCatalog(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range c.InLine(text).Places {
			if !slices.ContainsFunc(c.Flows(), func(f Flow) bool { return f.Name == p.Flow }) {
				t.Errorf("%+v", p)
			}
		}
	})
}
