package exporter

import (
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// keyFlow is one flow that has keys in one Redis.
type keyFlow struct {
	name string
	rest bool
	// lock and marker are nil unless they are in that Redis.
	lock, marker *flow.RedisKey
}

// keyMap tells whose lock or marker a key of one Redis is.
type keyMap struct {
	redis string
	flows []keyFlow
	// locks and markers know the flows by that one shape alone.
	locks, markers *flow.Catalog
}

// newKeyMap has no flows when none has a key in that Redis.
func newKeyMap(redis string, flows []flow.Flow) *keyMap {
	m := &keyMap{redis: redis}
	var locks, markers []flow.Flow
	here := func(k *flow.RedisKey) *flow.RedisKey {
		if k != nil && k.Redis == redis && !k.Template.IsZero() {
			return k
		}
		return nil
	}
	for _, f := range flows {
		kf := keyFlow{name: f.Name, rest: f.Rest, lock: here(f.Lock), marker: here(f.Marker)}
		if kf.lock != nil || kf.marker != nil {
			m.flows = append(m.flows, kf)
		}
		// The flows without keys here stay: their types are not the rest.
		f.Lock, f.Marker = kf.lock, nil
		locks = append(locks, f)
		f.Lock, f.Marker = nil, kf.marker
		markers = append(markers, f)
	}
	m.locks, m.markers = flow.NewCatalog(locks), flow.NewCatalog(markers)
	return m
}

// shapes lists all locks and markers.
func (m *keyMap) shapes() []*flow.RedisKey {
	var shapes []*flow.RedisKey
	for _, f := range m.flows {
		for _, shape := range []*flow.RedisKey{f.lock, f.marker} {
			if shape != nil {
				shapes = append(shapes, shape)
			}
		}
	}
	return shapes
}

// prefixes are what the keys begin with.
func (m *keyMap) prefixes() []string {
	var prefixes []string
	for _, shape := range m.shapes() {
		prefixes = append(prefixes, literalStart(shape))
	}
	slices.Sort(prefixes)
	return slices.Compact(prefixes)
}

// literalStart is what stands before the first placeholder.
func literalStart(k *flow.RedisKey) string {
	text := k.Template.String()
	if names := k.Template.Names(); len(names) > 0 {
		text, _, _ = strings.Cut(text, "{"+names[0]+"}")
	}
	return k.Prefix + text
}

// wanted reports whether the key is a lock or a marker of some flow.
func (m *keyMap) wanted(key string) bool {
	return len(m.lockOwners(key)) > 0 || len(m.markerOwners(key)) > 0
}

// owner is a flow to which a key may belong. The places say of which business
// operation; there are several when the key alone does not tell, and none when
// it does not tell the biz_type.
type owner struct {
	flow   string
	places []flow.Place
}

// sole is the place of the key, when there is just one.
func (o owner) sole() (flow.Place, bool) {
	if len(o.places) != 1 {
		return flow.Place{}, false
	}
	return o.places[0], true
}

func (m *keyMap) lockOwners(key string) []owner {
	return m.owners(m.locks, key, func(f keyFlow) *flow.RedisKey { return f.lock })
}

func (m *keyMap) markerOwners(key string) []owner {
	return m.owners(m.markers, key, func(f keyFlow) *flow.RedisKey { return f.marker })
}

func (m *keyMap) owners(catalog *flow.Catalog, key string, shapeOf func(keyFlow) *flow.RedisKey) []owner {
	var owners []owner
	var places []flow.Place
	read := false
	for _, f := range m.flows {
		shape := shapeOf(f)
		if shape == nil || !strings.HasPrefix(key, literalStart(shape)) {
			continue
		}
		if !read {
			places, read = catalog.ByRedisKey(m.redis, key), true
		}
		o := owner{flow: f.name}
		for _, p := range places {
			if p.Flow == f.name {
				o.places = append(o.places, p)
			}
		}
		if len(o.places) > 0 || f.rest && untyped(shape, key) {
			owners = append(owners, o)
		}
	}
	return owners
}

// untyped reports that the key has the shape, which does not name the biz_type.
func untyped(k *flow.RedisKey, key string) bool {
	bare, ok := strings.CutPrefix(key, k.Prefix)
	return ok && !k.Template.Has(flow.PlaceBizType) && len(k.Template.Matches(bare, 1)) > 0
}
