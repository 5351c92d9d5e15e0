package console

import (
	"net/url"

	"idemscope/internal/answer"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// nearView is another key that could be meant.
type nearView struct {
	Kind flow.Text
	Key  keyView
	// Redis is the whole Redis key, where that is all that is known.
	Redis *ident
	// Phase is what its record says; empty without one.
	Phase flow.Text
	URL   string
}

// newNear lists other keys around this one: rows that MySQL takes for it, the same
// id under other types, other versions and spellings, and Redis keys that read alike.
func (c *console) newNear(v visit, a answer.Answer) []nearView {
	var list []nearView
	add := func(kind flow.Text, r ledger.Row) {
		k := flow.Key{BizType: r.BizType, BizID: r.BizID}
		list = append(list, nearView{Kind: kind, Key: newKeyView(k), Phase: r.Phase.Word(), URL: v.link("key", keyValues(k, c.flowFor(k, a.Flow.Name)))})
	}
	for _, r := range a.Record.Rows {
		if !r.Exact {
			add(newKeyWords().NearRows, r)
		}
	}
	for _, n := range a.Record.Neighbours {
		add(n.Kind.Word(), n.Row)
	}
	for _, r := range []*dossier.RedisEvidence{a.Lock, a.Marker} {
		if r == nil {
			continue
		}
		for _, key := range r.Similar {
			list = append(list, nearView{Kind: newKeyWords().NearRedis, Redis: new(newIdent(key)), URL: v.link("search", url.Values{"q": {key}})})
		}
	}
	return list
}

// flowFor names a flow for a link to the key: none where the key alone tells it,
// else the one that is looked at, if it carries the key.
func (c *console) flowFor(k flow.Key, looked string) string {
	places, err := c.Desk.Places(k, "")
	if err != nil || len(places) < 2 {
		return ""
	}
	for _, p := range places {
		if p.Flow == looked {
			return looked
		}
	}
	return ""
}
