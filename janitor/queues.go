package janitor

import (
	"context"
	"slices"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// queuesTimeout bounds all questions to one broker.
const queuesTimeout = 10 * time.Second

// queueKey names a queue of a broker.
type queueKey struct{ broker, name string }

// askedQueues are the answers of the brokers, by queue.
type askedQueues struct {
	queues map[queueKey]broker.QueueSetUp
	// silent says why a broker gave no answer at all.
	silent map[string]flow.Text
}

// askQueues asks each broker for the queues of the task's flows.
func (t *Task) askQueues(ctx context.Context) askedQueues {
	all := askedQueues{queues: map[queueKey]broker.QueueSetUp{}, silent: map[string]flow.Text{}}
	named := map[string][]broker.NamedQueue{}
	var order []string
	for _, f := range t.Flows {
		if f.Queue == nil {
			continue
		}
		if _, seen := named[f.Queue.Broker]; !seen {
			order = append(order, f.Queue.Broker)
		}
		for _, name := range f.Queue.All() {
			named[f.Queue.Broker] = append(named[f.Queue.Broker], broker.NamedQueue{Name: name})
		}
	}
	for _, name := range order {
		all.ask(ctx, name, t.Brokers[name], named[name])
	}
	return all
}

func (a *askedQueues) ask(ctx context.Context, name string, b Broker, queues []broker.NamedQueue) {
	if b == nil {
		a.silent[name] = flow.T("the broker %s is not configured", "未配置 broker %s", name)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, queuesTimeout)
	defer cancel()
	answer, err := b.SetUp(ctx, queues)
	if err != nil {
		a.silent[name] = worded(err)
		return
	}
	for _, q := range answer.Queues {
		a.queues[queueKey{name, q.Name}] = q
	}
}

// worded is an error of a broker for people.
func worded(err error) flow.Text {
	if e, ok := err.(interface{ Worded() flow.Text }); ok {
		return e.Worded()
	}
	return flow.Text{EN: err.Error(), ZH: err.Error()}
}

// of is one queue; why says why it is not known.
func (a askedQueues) of(broker, name string) (q broker.QueueSetUp, why flow.Text) {
	if why := a.silent[broker]; !why.Empty() {
		return q, why
	}
	q = a.queues[queueKey{broker, name}]
	if q.State != flow.Found {
		return q, q.Reason
	}
	return q, flow.Text{}
}

// inQueues checks what of the flows' messages may still meet a record: those
// that wait for their next attempt, and those that were given up.
func (p *Plan) inQueues(ctx context.Context, t *Task) {
	answers := t.askQueues(ctx)
	seen := map[queueKey]bool{}
	queues := 0
	for _, f := range t.Flows {
		if f.Queue == nil {
			continue
		}
		queues++
		p.delays(t, f, answers)
		key := queueKey{f.Queue.Broker, f.Queue.DeadLetter}
		switch {
		case key.name == "":
			p.tell("dead_letters", "", NotKnown, flow.T("the flow %s names no dead-letter queue, so nobody looks whether there are dead letters", "流程 %s 没有指定死信队列，因此不检查是否有死信", f.Name))
		case !seen[key]:
			seen[key] = true
			p.deadLetters(t, key, answers)
		}
	}
	if queues == 0 {
		p.tell("dead_letters", "", Off, flow.T("no flow of the ledger names a queue", "该账本的流程都没有指定队列"))
	}
}

// delays compares the retention with how long messages wait in the flow's queues.
func (p *Plan) delays(t *Task, f flow.Flow, answers askedQueues) {
	work, why := answers.of(f.Queue.Broker, f.Queue.Name)
	switch {
	case !why.Empty():
		p.tell("retention", "", NotKnown, flow.T("whether the queue %[1]s of the flow %[2]s has a message TTL is not known: %[3]s", "无法得知流程 %[2]s 的队列 %[1]s 是否有消息 TTL：%[3]s", flow.Visible(f.Queue.Name), f.Name, why))
	case work.Expires:
		p.outlives(t, f, work.MessageTTL, flow.T("a message TTL of %s in the queue %s", "队列 %[2]s 的消息 TTL（%[1]s）", flow.Span(work.MessageTTL), flow.Visible(work.Name)))
	}
	if len(f.Queue.Retry) == 0 {
		return
	}
	var sum time.Duration
	for _, name := range f.Queue.Retry {
		q, why := answers.of(f.Queue.Broker, name)
		switch {
		case !why.Empty():
			p.tell("retention", "", NotKnown, flow.T("how long the retry queue %[1]s of the flow %[2]s holds a message is not known: %[3]s", "无法得知流程 %[2]s 的重试队列 %[1]s 会保留消息多久：%[3]s", flow.Visible(name), f.Name, why))
		case !q.Expires:
			p.tell("retention", "", NotKnown, flow.T("the retry queue %[1]s of the flow %[2]s has no message TTL; each message may have its own", "流程 %[2]s 的重试队列 %[1]s 没有消息 TTL；每条消息可能各有 TTL", flow.Visible(name), f.Name))
		default:
			sum += q.MessageTTL
		}
	}
	if sum > 0 {
		p.outlives(t, f, sum, flow.T("retry delays of %s together", "合计 %s 的重试延迟", flow.Span(sum)))
	}
}

// outlives checks that records stay for longer than a message waits.
func (p *Plan) outlives(t *Task, f flow.Flow, waits time.Duration, what flow.Text) {
	if t.Retain > waits {
		p.tell("retention", "", Passes, flow.T("retain is %[1]s; the flow %[2]s has %[3]s", "retain 为 %[1]s；流程 %[2]s 有%[3]s", flow.Span(t.Retain), f.Name, what))
		return
	}
	p.tell("retention", "", Refuses, flow.T("retain is %[1]s, but the flow %[2]s has %[3]s: a message could then meet no record; set retain above that",
		"retain 为 %[1]s，但流程 %[2]s 有%[3]s：届时消息可能查不到记录；请将 retain 设为更大的值", flow.Span(t.Retain), f.Name, what))
}

// deadLetters checks a queue of dead letters: a replay of one needs its record.
// The override by name is for letters that are there, not for those that are
// older than the records.
func (p *Plan) deadLetters(t *Task, key queueKey, answers askedQueues) {
	name, allowed := flow.Visible(key.name), slices.Contains(t.AllowDeadLetters, key.name)
	q, why := answers.of(key.broker, key.name)
	if why.Empty() && !q.Counted {
		why = flow.T("RabbitMQ has not counted it yet; that takes some seconds after its declaration", "RabbitMQ 尚未统计该队列；队列声明后需要几秒钟")
	}
	switch {
	case !why.Empty() && allowed:
		p.tell("dead_letters_unread", "", Allowed, flow.T("whether the queue %[1]s of the broker %[2]s holds dead letters is not known: %[3]s (allow_dead_letters)",
			"无法得知 broker %[2]s 的队列 %[1]s 中是否有死信：%[3]s（allow_dead_letters）", name, key.broker, why))
		return
	case !why.Empty():
		p.tell("dead_letters_unread", "", Refuses, flow.T("whether the queue %[1]s of the broker %[2]s holds dead letters is not known: %[3]s; mend that, or write allow_dead_letters: [%[1]s]",
			"无法得知 broker %[2]s 的队列 %[1]s 中是否有死信：%[3]s；请先解决，或写 allow_dead_letters: [%[1]s]", name, key.broker, why))
		return
	case q.Messages <= 0:
		p.tell("dead_letters", "", Passes, flow.T("the dead-letter queue %s is empty", "死信队列 %s 为空", name))
		return
	case allowed:
		p.tell("dead_letters", "", Allowed, flow.T("the queue %[1]s holds %[2]d dead letters (allow_dead_letters)", "队列 %[1]s 中有 %[2]d 条死信（allow_dead_letters）", name, q.Messages))
	default:
		p.tell("dead_letters", "", Refuses, flow.T("the queue %[1]s holds %[2]d dead letters, and a replay of one needs its record; replay or remove them first, or write allow_dead_letters: [%[1]s]",
			"队列 %[1]s 中有 %[2]d 条死信，重放时需要对应的记录；请先重放或移除，或写 allow_dead_letters: [%[1]s]", name, q.Messages))
	}
	p.ageOf(t, q)
}

// ageOf compares the oldest dead letter with the retention.
func (p *Plan) ageOf(t *Task, q broker.QueueSetUp) {
	name := flow.Visible(q.Name)
	switch {
	case !q.HeadPublished.IsZero() && q.HeadPublished.Before(p.Cutoff):
		p.tell("retention", "", Refuses, flow.T("the oldest dead letter of %[1]s was published %[2]s ago, and retain is %[3]s: a replay of it could run twice; replay or remove it, or set retain above that",
			"%[1]s 中最旧的死信发布于 %[2]s 前，而 retain 为 %[3]s：重放它可能重复执行；请先重放或移除，或将 retain 设为更大的值", name, flow.Span(p.At.Sub(q.HeadPublished).Round(time.Second)), flow.Span(t.Retain)))
	case !q.HeadPublished.IsZero():
		p.tell("retention", "", Passes, flow.T("the oldest dead letter of %[1]s was published %[2]s ago", "%[1]s 中最旧的死信发布于 %[2]s 前", name, flow.Span(max(p.At.Sub(q.HeadPublished), 0).Round(time.Second))))
	case q.Expires && q.MessageTTL < t.Retain:
		p.tell("retention", "", Passes, flow.T("no dead letter stays in %[1]s for longer than %[2]s (message TTL)", "死信在 %[1]s 中最多保留 %[2]s（消息 TTL）", name, flow.Span(q.MessageTTL)))
	default:
		p.tell("retention", "", NotKnown, flow.T("how old the dead letters of %s are is not known: only classic queues tell, and only if the publisher sets a timestamp", "无法得知 %s 中死信的时长：只有经典队列提供，且发布者需设置 timestamp", name))
	}
}
