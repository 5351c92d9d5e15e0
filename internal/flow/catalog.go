package flow

import (
	"slices"
	"strings"
)

// Catalog is all configured flows and what can be told from their shapes alone.
type Catalog struct {
	flows []Flow
}

// NewCatalog keeps the flows in the given order.
func NewCatalog(flows []Flow) *Catalog { return &Catalog{flows: slices.Clone(flows)} }

// Flows lists every flow in the order of the configuration.
func (c *Catalog) Flows() []Flow { return slices.Clone(c.flows) }

// Named returns the flow of that name.
func (c *Catalog) Named(name string) (Flow, bool) {
	for _, f := range c.flows {
		if f.Name == name {
			return f, true
		}
	}
	return Flow{}, false
}

// For returns the flows that carry the biz_type: those that name it, else those
// that take the rest of their ledger. More than one result means that one
// biz_type is kept in several ledgers; each is a key of its own.
func (c *Catalog) For(bizType string) []Flow {
	var named, rest []Flow
	for _, f := range c.flows {
		switch {
		case slices.Contains(f.BizTypes, bizType):
			named = append(named, f)
		case f.Rest:
			rest = append(rest, f)
		}
	}
	if len(named) > 0 {
		return named
	}
	return rest
}

// Types lists every biz_type that a flow names, each once, in order.
func (c *Catalog) Types() []string {
	var types []string
	for _, f := range c.flows {
		for _, t := range f.BizTypes {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	return types
}

// Place is one key in one flow: what a look-up needs to know.
type Place struct {
	Flow string
	Key  Key
}

// Owners returns the keys other than k whose lock or marker would be the very
// same Redis key on the same server. A key that could have several owners is
// evidence for none of them. anyType reports that the key's shape does not
// name the biz_type while the flow takes types that nobody listed, so that an
// unknown number of others could own it too.
func (c *Catalog) Owners(redis, redisKey string, k Key) (owners []Place, anyType bool) {
	for _, place := range c.ByRedisKey(redis, redisKey) {
		if place.Key != k {
			owners = append(owners, place)
		}
	}
	for _, f := range c.flows {
		for _, shape := range f.shapes() {
			if f.Rest && shape.Redis == redis && !shape.Template.Has(PlaceBizType) && shape.Render(k) == redisKey {
				anyType = true
			}
		}
	}
	return owners, anyType
}

// ByRedisKey returns every key whose lock or marker on the server redis (any
// server when empty) has that whole Redis key, each once. A flow that takes the
// rest of its ledger contributes the type that its template spells out, unless
// another flow names it.
func (c *Catalog) ByRedisKey(redis, redisKey string) []Place {
	var places []Place
	for _, f := range c.flows {
		for _, shape := range f.shapes() {
			if redis != "" && shape.Redis != redis {
				continue
			}
			for _, k := range c.readKey(f, shape, redisKey) {
				if place := (Place{Flow: f.Name, Key: k}); !slices.Contains(places, place) {
					places = append(places, place)
				}
			}
		}
	}
	return places
}

func (c *Catalog) readKey(f Flow, shape RedisKey, redisKey string) []Key {
	bare, ok := strings.CutPrefix(redisKey, shape.Prefix)
	if !ok {
		return nil
	}
	var keys []Key
	for _, t := range f.BizTypes {
		// With its type put in, a shape has one placeholder and one reading.
		for _, values := range shape.Template.With(PlaceBizType, t).Matches(bare, 1) {
			keys = append(keys, Key{BizType: t, BizID: values[PlaceBizID]})
		}
	}
	if len(keys) == 0 && f.Rest {
		keys = firstUnnamed(c.Types(), shape.Template.Matches(bare, 1))
	}
	return keys
}

// firstUnnamed reads a key of a flow without named types the plain way: the
// shortest biz_type that the template allows. Longer readings would make every
// id with a separator in it ambiguous.
func firstUnnamed(named []string, matches []map[string]string) []Key {
	for _, values := range matches {
		if t, typed := values[PlaceBizType]; typed && !slices.Contains(named, t) {
			return []Key{{BizType: t, BizID: values[PlaceBizID]}}
		}
	}
	return nil
}

// shapes lists the flow's lock and marker, those that it has.
func (f Flow) shapes() []RedisKey {
	var shapes []RedisKey
	for _, r := range []*RedisKey{f.Lock, f.Marker} {
		if r != nil {
			shapes = append(shapes, *r)
		}
	}
	return shapes
}
