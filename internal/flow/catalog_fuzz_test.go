package flow

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fuzzCatalog has the shapes that are hard to take apart: types with separators
// in them, no type at all, the id first, a hash tag, a lock that is a marker
// with an ending, and a flow that takes the rest.
func fuzzCatalog(f *testing.F) *Catalog {
	key := func(prefix, text string) *RedisKey {
		tpl, err := ParseTemplate(text)
		if err != nil {
			f.Fatal(err)
		}
		return &RedisKey{Redis: "main", Prefix: prefix, Template: tpl}
	}
	return NewCatalog([]Flow{
		{Name: "orders", BizTypes: []string{"order", "order:refund", "order:refund:v2"}, Lock: key("app:", "idem_lock:{biz_type}:{biz_id}"),
			Marker: key("", "idempotent:{biz_type}:{biz_id}"), Queue: &Queue{Name: "q", IDField: "data.order_no", TypeField: "type"}},
		{Name: "points", BizTypes: []string{"points", "bonus"}, Lock: key("", "msg:processed:{biz_id}:lock"), Marker: key("", "msg:processed:{biz_id}"),
			Queue: &Queue{Name: "p", IDField: "biz_id"}},
		{Name: "tagged", BizTypes: []string{"tag", "tag}"}, Lock: key("", "{{biz_id}}:{biz_type}")},
		{Name: "rest", Rest: true, Lock: key("", "rest:{biz_type}:{biz_id}"), Queue: &Queue{Name: "r", IDField: "id", TypeField: "kind"}},
	})
}

// FuzzCatalogKeys: every Redis key that a flow renders is found again as the key
// it was rendered from, and its other owners render the very same Redis key.
func FuzzCatalogKeys(f *testing.F) {
	c := fuzzCatalog(f)
	for _, id := range []string{"1", "refund:7", ":lock", "7:lock", "}:tag", " 1 ", "\xff\x00", "{biz_id}", "a}:tag}:b", "v2:v2", "💳", strings.Repeat(":", 100)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if id == "" {
			return
		}
		for _, fl := range c.Flows() {
			for _, bizType := range append(slices.Clone(fl.BizTypes), map[bool][]string{true: {"gift"}}[fl.Rest]...) {
				for _, shape := range fl.shapes() {
					checkRendered(t, c, fl, shape, Key{BizType: bizType, BizID: id})
				}
			}
		}
	})
}

func checkRendered(t *testing.T, c *Catalog, fl Flow, shape RedisKey, k Key) {
	t.Helper()
	redisKey := shape.Render(k)
	if places := c.ByRedisKey("main", redisKey); !slices.Contains(places, Place{Flow: fl.Name, Key: k}) {
		t.Errorf("%q of %q is read as %q", redisKey, k, places)
	}
	if others := c.ByRedisKey("other", redisKey); len(others) > 0 {
		t.Errorf("%q is read as a key of a server that holds none: %q", redisKey, others)
	}
	owners, _ := c.Owners("main", redisKey, k)
	for _, owner := range owners {
		of, known := c.Named(owner.Flow)
		if owner.Key == k || !known || !slices.ContainsFunc(of.shapes(), func(s RedisKey) bool { return s.Render(owner.Key) == redisKey }) {
			t.Errorf("%q of %q is said to be owned by %q", redisKey, k, owner)
		}
	}
}

// FuzzRead: whatever is pasted gives keys that a flow carries, each once, and
// the text itself as an id unless it is a message.
func FuzzRead(f *testing.F) {
	c := fuzzCatalog(f)
	for _, q := range []string{
		"", "order:1", "order:refund:7", "gift:5", ":", "a:", ":a", "app:idem_lock:order:refund:7", "msg:processed:9:lock", "{9}:tag",
		`{"type":"order","data":{"order_no":9007199254740993}}`, ` {"biz_id":"x "}`, `{"biz_id"`, `{"kind":"gift","id":1e400}`, `{"data":{"data":{}},"data.order_no":"5"}`,
		`{"biz_id":"` + "\\ud800" + `"}`, "{\"biz_id\":\"\xff\"}", `{"biz_id":null}`, `{}{}`, "{}", `{"biz_id":9}}}`, "[1]", strings.Repeat("{\"a\":", 50),
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		reading, err := c.Read(query)
		if err != nil {
			if !errors.Is(err, ErrEmptyQuery) && !errors.Is(err, ErrMessage) || len(reading.Places) > 0 || reading.BareID != "" {
				t.Errorf("%q: %v with %v", query, err, reading)
			}
			return
		}
		object := strings.HasPrefix(strings.TrimLeft(query, " \t\r\n"), "{")
		if reading.BareID == "" && !object || reading.BareID != "" && object && json.Valid([]byte(query)) {
			t.Errorf("%q: its bare id is %q", query, reading.BareID)
		}
		if reading.BareID != "" && reading.BareID != query {
			t.Errorf("%q was changed to %q", query, reading.BareID)
		}
		for i, p := range reading.Places {
			carries := slices.ContainsFunc(c.For(p.Key.BizType), func(fl Flow) bool { return fl.Name == p.Flow })
			if !carries {
				t.Errorf("%q is read as %q, which no flow of that name carries", query, p)
			}
			if slices.Contains(reading.Places[:i], p) {
				t.Errorf("%q is read as %q twice", query, p)
			}
		}
	})
}
