package draft

import (
	"slices"
	"strings"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
)

// Queue is a work queue with the queues that belong to it.
type Queue struct {
	Name       string
	Retry      []string
	DeadLetter string
	Why        []flow.Text
	// exact: its name is a biz_type, word by word.
	exact bool
}

// Words at the end or the beginning of a name that say what a queue is for.
var (
	deadWords  = []string{"dlq", "dlx", "dead", "deadletter", "letter", "dl", "error", "errors", "failed", "fail", "poison", "parking"}
	retryWords = []string{"retry", "retries", "delay", "delayed", "wait", "later"}
	queueNoise = []string{"queue", "q", "mq"}
)

// roleOf tells by its name what a queue is for, and what is left of the name
// without that.
func roleOf(name string) (base string, dead, retry bool) {
	list := words(name)
	var kept []string
	for _, w := range list {
		switch {
		case slices.Contains(deadWords, w):
			dead = true
		case slices.Contains(retryWords, w):
			retry = true
		case !slices.Contains(queueNoise, w):
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " "), dead, retry && !dead
}

// Pair finds the work queues, and for each the queues in which its messages wait
// for a retry or lie as dead letters: by what the broker does with rejected
// messages, then by names.
func Pair(facts []rabbitmq.QueueFacts) (work []*Queue, ignored []Ignored) {
	p := pairing{facts: map[string]rabbitmq.QueueFacts{}, role: map[string]flow.Text{}}
	for _, q := range facts {
		p.facts[q.Name] = q
	}
	for _, q := range facts {
		switch _, dead, retry := roleOf(q.Name); {
		case q.Kind == "stream":
			ignored = append(ignored, Ignored{q.Name, flow.T("a stream, not a queue that consumers work off", "是流（stream），不是消费者消费的队列")})
		case q.Passing:
			ignored = append(ignored, Ignored{q.Name, flow.T("it ends with its connection or its last consumer", "随连接或最后一个消费者一起消失")})
		case dead || retry || p.comesBack(q):
		default:
			work = append(work, &Queue{Name: q.Name})
		}
	}
	for _, w := range work {
		p.follow(w)
	}
	for _, q := range facts {
		p.byName(q, work)
	}
	for _, q := range facts {
		_, dead, retry := roleOf(q.Name)
		if _, taken := p.role[q.Name]; !taken && (dead || retry) && q.Kind != "stream" && !q.Passing {
			ignored = append(ignored, Ignored{q.Name, flow.T("it looks like a retry or dead-letter queue, but of which queue is not clear", "像是重试或死信队列，但不清楚属于哪个队列")})
		}
	}
	return work, ignored
}

type pairing struct {
	facts map[string]rabbitmq.QueueFacts
	// role remembers the queues that belong to a work queue.
	role map[string]flow.Text
}

// comesBack: messages expire here and go on to a queue that sends its rejected
// messages here.
func (p pairing) comesBack(q rabbitmq.QueueFacts) bool {
	return q.Delays && slices.ContainsFunc(q.Targets, func(target string) bool {
		return slices.Contains(p.facts[target].Targets, q.Name)
	})
}

// follow goes where rejected messages of a work queue go.
func (p pairing) follow(w *Queue) {
	for _, target := range p.facts[w.Name].Targets {
		next, exists := p.facts[target]
		_, dead, retry := roleOf(target)
		switch {
		case !exists || target == w.Name:
		case slices.Contains(next.Targets, w.Name) || retry:
			p.retry(w, target, flow.T("rejected messages go to %s and come back", "被拒绝的消息进入 %s 后会返回", flow.Visible(target)))
			for _, further := range next.Targets {
				if _, last, _ := roleOf(further); last {
					p.dead(w, further, flow.T("%s passes messages on to %s", "%s 把消息转到 %s", flow.Visible(target), flow.Visible(further)))
				}
			}
		case dead || !next.DeadLetters:
			p.dead(w, target, flow.T("rejected messages go to %s", "被拒绝的消息进入 %s", flow.Visible(target)))
		}
	}
}

func (p pairing) retry(w *Queue, name string, why flow.Text) {
	if !slices.Contains(w.Retry, name) && name != w.Name {
		w.Retry, p.role[name] = append(w.Retry, name), why
		w.Why = append(w.Why, why)
	}
}

func (p pairing) dead(w *Queue, name string, why flow.Text) {
	if w.DeadLetter == "" && name != w.Name && !slices.Contains(w.Retry, name) {
		w.DeadLetter, p.role[name] = name, why
		w.Why = append(w.Why, why)
	}
}

// byName gives a retry or dead-letter queue to the work queue with the same name otherwise.
func (p pairing) byName(q rabbitmq.QueueFacts, work []*Queue) {
	base, dead, retry := roleOf(q.Name)
	if _, taken := p.role[q.Name]; taken || !dead && !retry {
		return
	}
	for _, w := range work {
		if own, _, _ := roleOf(w.Name); own != base || base == "" {
			continue
		}
		why := flow.T("%s has the same name but for the ending", "%s 与其名称只差后缀", flow.Visible(q.Name))
		if dead {
			p.dead(w, q.Name, why)
		} else {
			p.retry(w, q.Name, why)
		}
		return
	}
}

// match is how well the name of a queue fits a biz_type.
type match int

const (
	noMatch match = iota
	// oneWord: they share a word that no other work queue has.
	oneWord
	// inside: all words of the one stand in the other.
	inside
	// same: they are the same words in the same order.
	same
)

func matchOf(queue, bizType []string) match {
	shared := 0
	for _, w := range bizType {
		if slices.Contains(queue, w) {
			shared++
		}
	}
	switch {
	case len(bizType) == 0:
		return noMatch
	case slices.Equal(queue, bizType):
		return same
	case shared > 0 && (shared == len(bizType) || shared == len(queue)):
		return inside
	case shared > 0:
		return oneWord
	}
	return noMatch
}

// queueWords are the words of a queue's name that tell queues apart.
func queueWords(name string) []string {
	base, _, _ := roleOf(name)
	return strings.Fields(base)
}

// assign finds the queue of each biz_type by its name: the best fit, if there is
// one best. A queue that is named after a type takes no other type for the sake of one word.
func assign(types []string, work []*Queue) map[string]assigned {
	for _, q := range work {
		q.exact = slices.ContainsFunc(types, func(t string) bool { return matchOf(queueWords(q.Name), words(t)) == same })
	}
	found := map[string]assigned{}
	for _, t := range types {
		if one, ok := bestQueue(t, work); ok {
			found[t] = one
		}
	}
	return found
}

// assigned is the queue of a biz_type and how well its name fits.
type assigned struct {
	*Queue
	fit match
}

func bestQueue(bizType string, work []*Queue) (best assigned, ok bool) {
	tied := false
	for _, q := range work {
		fit := matchOf(queueWords(q.Name), words(bizType))
		if fit == oneWord && q.exact {
			fit = noMatch
		}
		switch {
		case fit > best.fit:
			best, tied = assigned{q, fit}, false
		case fit == best.fit && fit > noMatch:
			tied = true
		}
	}
	return best, best.fit > noMatch && !tied
}
