package flow

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reading is what a searched text could mean: keys that it names outright and
// ids that stand alone.
type Reading struct {
	// Places are the keys that the text names: "biz_type:biz_id", a Redis key,
	// or a message body. The most literal reading stands first.
	Places []Place
	// BareID is the text itself, when it may be a biz_id of any type; empty
	// when it cannot be one (a JSON message).
	BareID string
}

// Errors of Read; their texts name the remedy.
var (
	ErrEmptyQuery = errors.New("nothing to look for: give a biz_id, biz_type:biz_id, a Redis key or a JSON message")
	ErrMessage    = errors.New("this JSON message holds no biz_id that a flow knows: declare the field in the flow's queue (queue.id.json), or search for the biz_id itself")
)

// Read finds out what a searched text could mean. Nothing in it is trimmed or
// changed. Errors: ErrEmptyQuery, ErrMessage.
func (c *Catalog) Read(query string) (Reading, error) {
	if query == "" {
		return Reading{}, ErrEmptyQuery
	}
	if message, ok := parseMessage(query); ok {
		places := c.byMessage(message)
		if len(places) == 0 {
			return Reading{}, ErrMessage
		}
		return Reading{Places: places}, nil
	}
	return Reading{Places: merge(c.byTypedID(query), c.ByRedisKey("", query)), BareID: query}, nil
}

func merge(lists ...[]Place) []Place {
	var all []Place
	for _, list := range lists {
		for _, p := range list {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// byTypedID reads "biz_type:biz_id". A named type may itself contain colons; a
// type that no flow names ends at the first one.
func (c *Catalog) byTypedID(query string) []Place {
	var places []Place
	for _, f := range c.flows {
		for _, t := range f.BizTypes {
			if id, ok := strings.CutPrefix(query, t+":"); ok && id != "" {
				places = append(places, Place{Flow: f.Name, Key: Key{BizType: t, BizID: id}})
			}
		}
	}
	t, id, ok := strings.Cut(query, ":")
	if len(places) > 0 || !ok || t == "" || id == "" {
		return places
	}
	for _, f := range c.flows {
		if f.Rest {
			places = append(places, Place{Flow: f.Name, Key: Key{BizType: t, BizID: id}})
		}
	}
	return places
}

// parseMessage reads a JSON object. Numbers keep their digits: an id beyond
// 2^53 must not lose any.
func parseMessage(query string) (map[string]any, bool) {
	if !strings.HasPrefix(strings.TrimLeft(query, " \t\r\n"), "{") {
		return nil, false
	}
	var message map[string]any
	d := json.NewDecoder(strings.NewReader(query))
	d.UseNumber()
	if d.Decode(&message) != nil {
		return nil, false
	}
	// Anything behind the object, a stray bracket too, makes it no message.
	_, err := d.Token()
	return message, err == io.EOF
}

func (c *Catalog) byMessage(message map[string]any) []Place {
	var places []Place
	for _, f := range c.flows {
		for _, k := range f.keysIn(message) {
			places = append(places, Place{Flow: f.Name, Key: k})
		}
	}
	return places
}

// keysIn reads a message by the fields that the flow's queue declares. A message
// without a type could be of each type of the flow.
func (f Flow) keysIn(message map[string]any) []Key {
	if f.Queue == nil || f.Queue.IDField == "" {
		return nil
	}
	id, ok := field(message, f.Queue.IDField)
	if !ok {
		return nil
	}
	return f.keysOf(id, message)
}

// keysOf are the keys of an id whose type the message may name.
func (f Flow) keysOf(id string, message map[string]any) []Key {
	types := f.BizTypes
	if t, ok := field(message, f.Queue.TypeField); ok {
		types = nil
		if f.Rest || slices.Contains(f.BizTypes, t) {
			types = []string{t}
		}
	}
	var keys []Key
	for _, t := range types {
		keys = append(keys, Key{BizType: t, BizID: id})
	}
	return keys
}

// KeysIn reads the body of a message of the flow's queue: every key that it could
// be about, more than one when it does not name its type. There is none in a body
// that is no JSON object, or in which a field that the queue declares is missing.
func (f Flow) KeysIn(body []byte) []Key {
	// A byte that is not UTF-8 would be replaced, and name another id.
	if !utf8.Valid(body) {
		return nil
	}
	message, ok := parseMessage(string(body))
	if !ok {
		return nil
	}
	return f.keysIn(message)
}

// KeysOf is KeysIn for a message with its id: in a flow whose messages hold the
// biz_id in that property, the body is read for the type alone, if at all.
func (f Flow) KeysOf(messageID string, body []byte) []Key {
	switch {
	case f.Queue == nil || f.Queue.IDProperty == "":
		return f.KeysIn(body)
	case messageID == "":
		return nil
	case f.Queue.TypeField == "":
		return f.keysOf(messageID, nil)
	}
	message, ok := parseMessage(string(body))
	if !ok || !utf8.Valid(body) {
		return nil
	}
	return f.keysOf(messageID, message)
}

// field follows a dotted path through nested objects to a text or a number.
func field(message map[string]any, path string) (string, bool) {
	if path == "" {
		return "", false
	}
	if value, ok := message[path]; ok {
		return scalar(value)
	}
	head, rest, nested := strings.Cut(path, ".")
	if inner, ok := message[head].(map[string]any); ok && nested {
		return field(inner, rest)
	}
	return "", false
}

func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}
