package console

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"idemscope/internal/flow"
)

// homePage is the start page: the search box and what is configured.
type homePage struct {
	page
	Examples []example
	Flows    []flowView
}

// example is one form of text that the search box takes.
type example struct {
	Text string
	Says flow.Text
}

// flowView is one configured flow.
type flowView struct {
	flow.Flow
	// Lock and Marker are the shapes of the Redis keys; empty without one.
	LockKey, MarkerKey shape
}

// shape is the whole shape of a Redis key with its TTL.
type shape struct {
	Text string
	// TTL is empty when it is not declared.
	TTL flow.Text
}

func (c *console) home(g *gin.Context, v visit) error {
	view := homePage{page: c.newPage(v, ""), Examples: examples(c.Flows)}
	view.Focus, view.Hero = true, true
	for _, f := range c.Flows {
		view.Flows = append(view.Flows, flowView{Flow: f, LockKey: shapeOf(f.Lock), MarkerKey: shapeOf(f.Marker)})
	}
	return c.render(g, http.StatusOK, v.lang, "home", view)
}

func shapeOf(key *flow.RedisKey) shape {
	if key == nil {
		return shape{}
	}
	s := shape{Text: key.Prefix + key.Template.String()}
	if key.TTL > 0 {
		s.TTL = flow.Span(key.TTL)
	}
	return s
}

// examples are what the search box takes, spelled with the flows' own names.
func examples(flows []flow.Flow) []example {
	const id = "20260101000042"
	w := newWords()
	bizType, redisKey, field := "biz_type", "", ""
	for _, f := range flows {
		if bizType == "biz_type" && len(f.BizTypes) > 0 {
			bizType = f.BizTypes[0]
		}
	}
	key := flow.Key{BizType: bizType, BizID: id}
	for _, f := range flows {
		for _, shape := range []*flow.RedisKey{f.Lock, f.Marker} {
			if redisKey == "" && shape != nil {
				redisKey = shape.Render(key)
			}
		}
		if field == "" && f.Queue != nil {
			field = f.Queue.IDField
		}
	}
	all := []example{{id, w.AcceptsID}, {bizType + ":" + id, w.AcceptsTyped}}
	if redisKey != "" {
		all = append(all, example{redisKey, w.AcceptsRedis})
	}
	if field != "" {
		all = append(all, example{nested(field, id), w.AcceptsJSON})
	}
	return append(all, example{"18:07:31 WARN " + all[len(all)-1].Text, newSearchWords().AcceptsLine})
}

// nested spells a JSON message whose dotted field holds the id.
func nested(field, id string) string {
	parts := strings.Split(field, ".")
	return `{"` + strings.Join(parts, `": {"`) + `": "` + id + `"` + strings.Repeat("}", len(parts))
}
