package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/action"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// manyOrder is the body of a POST to /api/v1/actions.
type manyOrder struct {
	// Action is any but replay.
	Action string     `json:"action"`
	Keys   []keyOrder `json:"keys"`
	// Reason is kept with the attempt on each key.
	Reason string `json:"reason,omitempty"`
	// Execute does it; without it, the answer is the precheck of each key.
	Execute bool `json:"execute,omitempty"`
}

// keyOrder is one key of an order. Ids that are not UTF-8 come in the hex fields.
type keyOrder struct {
	Type    string `json:"type,omitempty"`
	TypeHex string `json:"type_hex,omitempty"`
	ID      string `json:"id,omitempty"`
	IDHex   string `json:"id_hex,omitempty"`
	Flow    string `json:"flow,omitempty"`
	// Ticket is that of a precheck; without one, what is there now is acted on.
	Ticket string `json:"ticket,omitempty"`
}

// ManyPrecheckJSON is what an action would do to each of many keys, in their order.
type ManyPrecheckJSON struct {
	Action action.Kind           `json:"action"`
	Counts ManyPrecheckCounts    `json:"counts"`
	Keys   []action.PrecheckJSON `json:"keys"`
}

// ManyPrecheckCounts counts keys.
type ManyPrecheckCounts struct {
	Allowed int `json:"allowed"`
	Nothing int `json:"nothing"`
	Refused int `json:"refused"`
}

// ManyResultJSON is what came of each of many keys, in their order.
type ManyResultJSON struct {
	Action action.Kind         `json:"action"`
	Counts ManyResultCounts    `json:"counts"`
	Keys   []action.ResultJSON `json:"keys"`
}

// ManyResultCounts counts keys.
type ManyResultCounts struct {
	Done    int `json:"done"`
	Nothing int `json:"nothing"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
}

// placedKey is a key of an order with its flow; its ticket is nil where none came.
type placedKey struct {
	place  flow.Place
	ticket *action.Ticket
}

// manyJSON is the same for programs. One key that cannot be placed, or a ticket that
// does not belong to its key, refuses the whole order: nothing was begun.
func (c *console) manyJSON(g *gin.Context, v visit) error {
	if c.Actor == nil {
		return actionsOff()
	}
	var o manyOrder
	if err := c.readOrder(g, maxManyForm, &o); err != nil {
		return err
	}
	if o.Action == "" {
		return noSuchAction("")
	}
	kind, err := manyKindOf(o.Action)
	if err != nil {
		return err
	}
	keys, err := c.placedKeys(v, kind, o.Keys)
	if err != nil {
		return err
	}
	if !o.Execute {
		return c.prechecksJSON(g, v, kind, keys)
	}
	results := c.doMany(g.Request.Context(), len(keys), func(ctx context.Context, i int) action.Result {
		return c.Actor.Do(ctx, c.ticketFor(ctx, kind, keys[i]), o.Reason)
	}, func(i int) action.Result { return action.Result{Kind: kind, Place: keys[i].place} })
	counts := countOutcomes(results)
	j := ManyResultJSON{Action: kind, Keys: []action.ResultJSON{}, Counts: ManyResultCounts{
		Done: counts[audit.Done], Nothing: counts[audit.Nothing], Refused: counts[audit.Refused], Failed: counts[audit.Failed],
	}}
	for _, r := range results {
		j.Keys = append(j.Keys, r.JSON(v.lang))
	}
	c.json(g, statusOfMany(results), j)
	return nil
}

// ticketFor is the ticket that came, or that of a look of now. Where that look fails,
// it is one that says nothing, and the action says why it is refused.
func (c *console) ticketFor(ctx context.Context, kind action.Kind, k placedKey) action.Ticket {
	if k.ticket != nil {
		return *k.ticket
	}
	p, err := c.Actor.Precheck(ctx, k.place, kind)
	if err != nil {
		return action.Ticket{Kind: kind, Place: k.place, At: time.Now()}
	}
	return p.Ticket
}

func (c *console) placedKeys(v visit, kind action.Kind, orders []keyOrder) (keys []placedKey, err error) {
	switch {
	case len(orders) == 0:
		return nil, nothingSelected()
	case len(orders) > maxKeys:
		return nil, tooManyKeys(len(orders))
	}
	seen := map[flow.Place]bool{}
	for _, o := range orders {
		key, err := orderedKey(o.Type, o.TypeHex, o.ID, o.IDHex)
		if err != nil {
			return nil, err
		}
		places, err := c.Desk.Places(key, o.Flow)
		if err != nil {
			return nil, err
		}
		if len(places) > 1 {
			return nil, severalFlows(v, places)
		}
		k := placedKey{place: places[0]}
		if seen[k.place] {
			return nil, keyTwice(key)
		}
		seen[k.place] = true
		if o.Ticket != "" {
			t, err := action.ParseTicket(o.Ticket)
			if err != nil || t.Kind != kind || t.Place != k.place {
				return nil, badTicket()
			}
			k.ticket = &t
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func (c *console) prechecksJSON(g *gin.Context, v visit, kind action.Kind, keys []placedKey) error {
	ctx := g.Request.Context()
	checks, errs := make([]action.Precheck, len(keys)), make([]error, len(keys))
	if begun := c.each(ctx, len(keys), func(i int) { checks[i], errs[i] = c.Actor.Precheck(ctx, keys[i].place, kind) }); begun < len(keys) {
		return busy()
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	j := ManyPrecheckJSON{Action: kind, Keys: []action.PrecheckJSON{}}
	for _, p := range checks {
		switch {
		case p.Allowed():
			j.Counts.Allowed++
		case len(p.Refusals) == 0:
			j.Counts.Nothing++
		default:
			j.Counts.Refused++
		}
		j.Keys = append(j.Keys, p.JSON(v.lang))
	}
	c.json(g, http.StatusOK, j)
	return nil
}
