package config

import (
	"fmt"
	"slices"
	"time"

	"idemscope/internal/flow"
)

// rest is the word in biz_types for all that no other flow names.
const rest = "*"

// defaultStaleAfter is how long a processing record may be silent when the flow does not say.
const defaultStaleAfter = 5 * time.Minute

// claim is a biz_type of a ledger (or the rest of it) that a flow has taken.
type claim struct {
	flow string
	at   place
}

// flows reads the section flows into c.
func (s *section) flows(c *Config) {
	claims := map[[2]string]claim{}
	s.named("flows", func(name string, part *section) {
		f := part.flow(name, c)
		part.bizTypes(&f, c, claims)
		c.Flows = append(c.Flows, f)
	})
	if len(s.defined["flows"]) == 0 {
		if v := s.value("flows"); !s.reported(v.path) {
			s.problemf(v.at, v.path, "at least one flow is needed; examples/idemscope.yaml shows how to write it")
		}
	}
}

// flow reads one flow, without its biz_types.
func (s *section) flow(name string, c *Config) flow.Flow {
	return flow.Flow{
		Name:         name,
		Ledger:       s.ref("ledger", "ledgers"),
		Lock:         s.redisKey("lock", c),
		Marker:       s.redisKey("marker", c),
		Queue:        s.queue(),
		StaleAfter:   s.duration("stale_after", defaultStaleAfter, time.Second, year),
		OnProcessing: flow.OnProcessing(s.word("on_processing", string(flow.Refuse), string(flow.Refuse), string(flow.Retry), string(flow.Resume))),
		Rerun:        flow.Rerun(s.word("rerun", string(flow.RerunManual), string(flow.RerunNever), string(flow.RerunManual))),
		KeyRule:      s.text("key_rule"),
	}
}

// bizTypes reads the biz_types of a flow and sees to it that no two flows of
// one ledger claim the same.
func (s *section) bizTypes(f *flow.Flow, c *Config, claims map[[2]string]claim) {
	items := s.requiredList("biz_types", `list the biz_types, or write ["*"] for all that no other flow of the ledger names`)
	only := c.onlyBizType(f.Ledger)
	for _, it := range items {
		switch {
		case it.text == rest && len(items) > 1:
			s.problemf(it.at, it.path, `"*" stands alone: it already means every other biz_type; remove it or the rest of the list`)
			continue
		case it.text == rest && only != "":
			it.text = only
		case it.text == rest:
			f.Rest = true
		case only != "" && it.text != only:
			s.problemf(it.at, it.path, "the ledger %q holds the biz_type %q only; write that, or \"*\"", f.Ledger, only)
			continue
		}
		if !f.Rest {
			f.BizTypes = append(f.BizTypes, it.text)
		}
		if f.Ledger != "" {
			s.claim(claims, f, it)
		}
	}
}

// claim notes that f has a biz_type, or reports who had it before.
func (s *section) claim(claims map[[2]string]claim, f *flow.Flow, it item) {
	key := [2]string{f.Ledger, it.text}
	first, taken := claims[key]
	switch {
	case !taken:
		claims[key] = claim{flow: f.Name, at: it.at}
	case first.flow == f.Name:
		s.problemf(it.at, it.path, "%q stands twice; it is already in line %d", it.text, first.at.line)
	case f.Rest:
		s.problemf(it.at, it.path, `the flow %q in line %d already takes the rest ("*") of the ledger %q; name the biz_types of one of them`, first.flow, first.at.line, f.Ledger)
	default:
		s.problemf(it.at, it.path, "the flow %q in line %d already has the biz_type %q of the ledger %q; keep it in one of them", first.flow, first.at.line, it.text, f.Ledger)
	}
}

// onlyBizType returns the one biz_type that the named ledger holds; "" when it may hold more.
func (c *Config) onlyBizType(ledger string) string {
	i := slices.IndexFunc(c.Ledgers, func(l Ledger) bool { return l.Name == ledger })
	if i < 0 {
		return ""
	}
	return c.Ledgers[i].BizType
}

// redisKey reads a lock or marker; nil when it is left out.
func (s *section) redisKey(key string, c *Config) *flow.RedisKey {
	part := s.section(key)
	if part == nil {
		return nil
	}
	defer part.close()
	k := &flow.RedisKey{Redis: part.ref("redis", "redis")}
	k.Prefix = c.keyPrefix(k.Redis)
	if text := part.required("key", `write the shape of the key, such as "idem_lock:{biz_type}:{biz_id}"`); text != "" {
		k.Template = part.template("key", text, flow.PlaceBizType, flow.PlaceBizID)
		if v := part.value("key"); !k.Template.IsZero() && !k.Template.Has(flow.PlaceBizID) {
			part.problemf(v.at, v.path, "has no {biz_id}, so all records would share one key; put it where the business id stands")
		}
	}
	k.TTL = part.duration("ttl", 0, time.Millisecond, year)
	if key == "lock" {
		k.Renewed = part.flag("renewed")
	}
	return k
}

// template reads the text of key as a template with the allowed placeholders;
// with none given, any column name is one. It is zero when it cannot be used.
func (s *section) template(key, text string, allowed ...string) flow.Template {
	v := s.value(key)
	t, err := flow.ParseTemplate(text)
	if err != nil {
		s.problemf(v.at, v.path, "%v", err)
		return flow.Template{}
	}
	if len(t.Names()) == 0 && len(allowed) == 0 {
		s.problemf(v.at, v.path, "names no column; write them in braces, such as {user_id}:{sign_date}")
	}
	for _, name := range t.Names() {
		if len(allowed) == 0 || slices.Contains(allowed, name) {
			continue
		}
		help := "a key may have {biz_type} and {biz_id}"
		if near, ok := nearest(name, allowed); ok {
			help = fmt.Sprintf("did you mean {%s}?", near)
		}
		s.problemf(v.at, v.path, "has the unknown placeholder {%s}; %s", name, help)
		return flow.Template{}
	}
	return t
}

// queue reads where a flow's messages wait; nil when it is left out.
func (s *section) queue() *flow.Queue {
	part := s.section("queue")
	if part == nil {
		return nil
	}
	defer part.close()
	q := &flow.Queue{
		Broker: part.ref("broker", "brokers"),
		Name:   part.required("name", "name the queue that the consumer reads"),
	}
	role := map[string]string{q.Name: "name"}
	once := func(v value, queue, key string) {
		if other, twice := role[queue]; twice {
			part.problemf(v.at, v.path, "the queue %q is already under %s; its messages would count twice", queue, other)
		}
		role[queue] = key
	}
	for _, it := range part.list("retry") {
		q.Retry = append(q.Retry, it.text)
		once(it.value, it.text, "retry")
	}
	if q.DeadLetter = part.text("dead_letter"); q.DeadLetter != "" {
		once(part.value("dead_letter"), q.DeadLetter, "dead_letter")
	}
	q.IDField, q.IDProperty = part.id()
	q.TypeField = part.bodyField("type")
	q.AckTimeout = part.duration("ack_timeout", 0, time.Second, year)
	return q
}

// id reads where a message holds its biz_id: in a field of its JSON body, or in a
// property; both "" when it is left out.
func (s *section) id() (field, property string) {
	part := s.section("id")
	if part == nil {
		return "", ""
	}
	defer part.close()
	property = part.word("property", "", flow.PropertyMessageID)
	if part.value("property").node == nil {
		return part.required("json", "name the field of the JSON body, or write property: message_id"), ""
	}
	if v, both := part.take("json"); both {
		part.problemf(v.at, v.path, "stands beside property; a biz_id is in one of the two, so leave the other out")
	}
	return "", property
}

// bodyField reads which field of a JSON body holds a value; "" when it is left out.
func (s *section) bodyField(key string) string {
	part := s.section(key)
	if part == nil {
		return ""
	}
	defer part.close()
	return part.required("json", "name the field of the JSON body")
}
