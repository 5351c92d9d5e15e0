package tap

import (
	"slices"
	"strings"
)

// carries reports whether a message published to the exchange with the key went
// along the route. A kind of exchange that does not route by the key alone may
// have carried it.
func (r route) carries(exchange, key string) bool {
	if r.Exchange != exchange {
		return false
	}
	switch r.kind {
	case "direct":
		return r.Key == key
	case "topic":
		return topicMatches(strings.Split(r.Key, "."), strings.Split(key, "."))
	}
	return true
}

// topicMatches compares word by word: * is any one word, # any number of them.
// It looks at each pair of words at most once, whatever the pattern.
func topicMatches(pattern, words []string) bool {
	reached := make([]bool, len(words)+1)
	reached[0] = true
	for _, p := range pattern {
		next := make([]bool, len(words)+1)
		for i := range reached {
			switch {
			case p == "#":
				next[i] = reached[i] || i > 0 && next[i-1]
			case i > 0:
				next[i] = reached[i-1] && (p == "*" || p == words[i-1])
			}
		}
		reached = next
	}
	return reached[len(words)]
}

// flowsOf are the names of the flows to whose queue a publication went. sure is
// false when that cannot be told, because the exchange feeds none of them itself
// but perhaps through another exchange; then it may be any flow.
func (top topology) flowsOf(exchange, key string) (names []string, sure bool) {
	for _, r := range top.feeds {
		if r.Exchange == exchange {
			sure = true
		}
		if r.carries(exchange, key) && !slices.Contains(names, r.flow) {
			names = append(names, r.flow)
		}
	}
	return names, sure
}

// isDeath reports whether dead letters come by the exchange.
func (top topology) isDeath(exchange string) bool {
	return slices.ContainsFunc(top.deaths, func(r route) bool { return r.Exchange == exchange })
}

// flowsOfQueue are the flows that name the queue.
func (t *Tap) flowsOfQueue(queue string) []string {
	var names []string
	for _, f := range t.flows {
		if slices.Contains(f.Queue.All(), queue) {
			names = append(names, f.Name)
		}
	}
	return names
}
