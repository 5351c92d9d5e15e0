package doctor

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

const (
	// Since this version a quorum queue has a limit of deliveries when none is set.
	limitSince   = 4
	defaultLimit = 20
)

var brokerRules = []rule[brokerFacts]{
	{Check{
		Code: "broker_rights_wide", Severity: Warning,
		Title:  flow.T("The monitoring user is an administrator", "监控用户拥有管理员权限"),
		Why:    flow.T("idemscope asks for totals only. Whoever gets hold of this password can purge queues and read messages.", "idemscope 只读取统计数字。任何拿到该密码的人都能清空队列、读取消息。"),
		Manual: "https://www.rabbitmq.com/docs/management#permissions",
	}, judgeBrokerRights},
}

func judgeBrokerRights(f brokerFacts) []outcome {
	return given(f.setUp, func(s broker.SetUp) []outcome {
		if !s.TagsWhy.Empty() {
			return unsure(s.TagsWhy)
		}
		wide := slices.ContainsFunc(s.Tags, func(t string) bool { return t == "administrator" || t == "policymaker" })
		return when(wide, flow.T("its tags are %s", "其标签为 %s", visible(s.Tags)),
			flow.T("Make a user with the tag monitoring and no permission on any queue, and configure it under brokers.%s.", "请创建带 monitoring 标签、对任何队列都没有权限的用户，并配置到 brokers.%s。", f.name),
			"rabbitmqctl add_user idemscope\nrabbitmqctl set_user_tags idemscope monitoring\nrabbitmqctl set_permissions -p VHOST idemscope '^$' '^$' '^$'")
	})
}

var queueRules = []rule[queueFacts]{
	{Check{
		Code: "queue_missing", Severity: Critical,
		Title:  flow.T("There is no such queue", "队列不存在"),
		Why:    flow.T("Messages wait, or die, in a queue with another name, where no look-up and no alert sees them.", "消息在其他名称的队列中等待或成为死信，查询和告警都看不到。"),
		Manual: "https://www.rabbitmq.com/docs/queues",
	}, judgeQueueMissing},
	{Check{
		Code: "queue_not_durable", Severity: Warning,
		Title:  flow.T("The queue does not last", "队列不持久"),
		Why:    flow.T("Its messages are gone when the broker restarts, or when its last consumer leaves.", "消息代理重启或最后一个消费者离开时，其中的消息会丢失。"),
		Manual: "https://www.rabbitmq.com/docs/queues#durability",
	}, found(judgeDurable)},
	{Check{
		Code: "no_dead_letter", Severity: Warning,
		Title:  flow.T("Rejected messages are dropped", "被拒绝的消息会被丢弃"),
		Why:    flow.T("A message that a consumer rejects without requeue is gone, and nobody can replay it.", "消费者拒绝且不重新入队的消息会消失，无法重放。"),
		Manual: "https://www.rabbitmq.com/docs/dlx",
	}, found(judgeNoDeadLetter)},
	{Check{
		Code: "delivery_limit_drops", Severity: Critical,
		Title:  flow.T("A message is dropped after some deliveries", "消息投递若干次后会被丢弃"),
		Why:    flow.T("A quorum queue gives a message up at its delivery limit. Without a dead-letter target it is gone, and its record stays failed for ever.", "仲裁队列的消息达到投递上限后会被放弃；没有死信目标时就此丢失，其记录永远停在失败状态。"),
		Manual: "https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling",
	}, found(judgeDeliveryLimit)},
	{Check{
		Code: "dead_letter_nowhere", Severity: Critical,
		Title:  flow.T("Dead letters lead nowhere", "死信无处可去"),
		Why:    flow.T("RabbitMQ drops a dead letter without a word when nothing takes it.", "没有队列接收时，RabbitMQ 会无声地丢弃死信。"),
		Manual: "https://www.rabbitmq.com/docs/dlx#routing",
	}, found(judgeDeadLetterTarget)},
	{Check{
		Code: "dead_letter_unnamed", Severity: Info,
		Title:  flow.T("Dead letters go where no flow looks", "死信去往流程未声明的队列"),
		Why:    flow.T("A key whose message was given up cannot be called dead-lettered, because its queue is not known.", "消息被放弃的键无法判定为死信，因为不知道其队列。"),
		Manual: "https://www.rabbitmq.com/docs/dlx",
	}, found(judgeUnnamed)},
	{Check{
		Code: "drops_oldest", Severity: Critical,
		Title:  flow.T("A full queue drops its oldest messages", "队列满时会丢弃最旧的消息"),
		Why:    flow.T("Under load, messages vanish that were never delivered: no layer shows that they existed.", "高负载时，从未投递过的消息会消失：任何一层都看不出它们存在过。"),
		Manual: "https://www.rabbitmq.com/docs/maxlength",
	}, found(judgeOverflow)},
	{Check{
		Code: "expiry_drops", Severity: Critical,
		Title:  flow.T("Messages expire in the queue and are dropped", "消息会在队列中过期并被丢弃"),
		Why:    flow.T("When consumers are slow or down, messages are gone before anybody has seen them.", "消费者变慢或停机时，消息还没被处理就已消失。"),
		Manual: "https://www.rabbitmq.com/docs/ttl",
	}, found(judgeExpiry)},
	{Check{
		Code: "classic_mirrored", Severity: Warning,
		Title:  flow.T("The queue is mirrored the classic way", "队列使用经典镜像"),
		Why:    flow.T("A mirror that was not in step loses messages in a failover and delivers others again; RabbitMQ 4.0 has removed mirroring.", "故障转移时，未同步的镜像会丢失部分消息、重复投递另一些；RabbitMQ 4.0 已移除镜像功能。"),
		Manual: "https://www.rabbitmq.com/docs/3.13/ha",
	}, found(judgeMirrored)},
	{Check{
		Code: "dead_letters_unattended", Severity: Warning,
		Title:  flow.T("Dead letters lie and nobody reads them", "死信堆积且无人处理"),
		Why:    flow.T("Each is work that was accepted and never done. The longer it lies, the likelier its record is cleaned up before the replay.", "每一条都是已接收却未完成的业务。放得越久，重放前记录就越可能已被清理。"),
		Manual: "https://www.rabbitmq.com/docs/dlx",
	}, found(judgeUnattended)},
	{Check{
		Code: "dead_letters_grow", Severity: Warning,
		Title:  flow.T("Dead letters are coming in", "死信正在增加"),
		Why:    flow.T("Consumers are giving messages up right now.", "消费者此刻正在放弃消息。"),
		Manual: "https://www.rabbitmq.com/docs/dlx",
	}, found(judgeGrowth)},
}

// found judges a queue that exists.
func found(judge func(queueFacts, broker.QueueSetUp) []outcome) func(queueFacts) []outcome {
	return func(f queueFacts) []outcome {
		return given(f.is, func(q broker.QueueSetUp) []outcome {
			switch q.State {
			case flow.Found:
				return judge(f, q)
			case flow.Absent:
				return skip()
			}
			return unsure(q.Reason)
		})
	}
}

func judgeQueueMissing(f queueFacts) []outcome {
	return given(f.is, func(q broker.QueueSetUp) []outcome {
		if q.State == flow.Error {
			return unsure(q.Reason)
		}
		return when(q.State == flow.Absent, q.Reason,
			flow.T("Correct the queue's name or the broker's vhost in the configuration, or declare the queue.", "请修改配置中的队列名或 vhost，或声明该队列。"), "")
	})
}

func judgeDurable(f queueFacts, q broker.QueueSetUp) []outcome {
	seen := flow.T("durable is false", "durable 为 false")
	if q.Durable {
		seen = flow.T("auto_delete is true", "auto_delete 为 true")
	}
	return when(!q.Durable || q.AutoDelete, seen,
		flow.T("Declare it durable and without auto-delete, under a new name: these properties cannot change.", "请以新名称重新声明为持久、非自动删除的队列：这些属性无法修改。"), "")
}

// withDLX is the policy that gives a queue a target for what it gives up.
func withDLX(f queueFacts) string {
	return "rabbitmqctl set_policy -p VHOST dlx " + shellWord("^"+regexp.QuoteMeta(f.Name)+"$") +
		` '{"dead-letter-exchange":"","dead-letter-routing-key":"DEAD_LETTER_QUEUE"}' --apply-to queues`
}

var dlxFix = flow.T("Give the queue a dead-letter exchange and a queue behind it.", "为该队列配置死信交换机及其后的队列。")

func judgeNoDeadLetter(f queueFacts, q broker.QueueSetUp) []outcome {
	if f.Role != broker.RoleWork || q.Kind == "stream" || dropsAtLimit(f, q) {
		return skip()
	}
	return when(q.DeadLetter == nil, flow.T("neither the queue nor a policy names a dead-letter exchange", "队列和策略都没有配置死信交换机"), dlxFix, withDLX(f))
}

// limitOf is the delivery limit in force; ok is false when there is none.
func limitOf(f queueFacts, q broker.QueueSetUp) (limit int64, ok bool) {
	switch {
	case q.Kind != "quorum":
		return 0, false
	case q.DeliveryLimit >= 0:
		return q.DeliveryLimit, true
	}
	return defaultLimit, !q.Unlimited && major(f.version) >= limitSince
}

func dropsAtLimit(f queueFacts, q broker.QueueSetUp) bool {
	_, limited := limitOf(f, q)
	return limited && q.DeadLetter == nil
}

func judgeDeliveryLimit(f queueFacts, q broker.QueueSetUp) []outcome {
	limit, limited := limitOf(f, q)
	if !limited {
		return skip()
	}
	seen := flow.T("a quorum queue with a delivery limit of %d and no dead-letter target", "仲裁队列，投递上限 %d，没有死信目标", limit)
	if q.DeliveryLimit < 0 {
		seen = flow.T("a quorum queue without a dead-letter target; RabbitMQ %s gives a message up after %d deliveries by default", "仲裁队列，没有死信目标；RabbitMQ %s 默认投递 %d 次后放弃消息", flow.Visible(f.version), limit)
	}
	return when(q.DeadLetter == nil, seen, dlxFix, withDLX(f))
}

// major is the first number of a version; 0 when it has none.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

func judgeDeadLetterTarget(f queueFacts, q broker.QueueSetUp) []outcome {
	switch {
	case q.DeadLetter == nil, q.DeadLetter.State == flow.Unknown:
		return skip()
	case q.DeadLetter.State == flow.Error:
		return unsure(q.DeadLetter.Reason)
	}
	return when(q.DeadLetter.State == flow.Absent, q.DeadLetter.Reason,
		flow.T("Declare the exchange and bind a queue to it, or correct its name.", "请声明该交换机并绑定队列，或修正其名称。"), "")
}

func judgeUnnamed(f queueFacts, q broker.QueueSetUp) []outcome {
	if f.Role != broker.RoleWork || q.DeadLetter == nil {
		return skip()
	}
	return when(f.unnamed, flow.T("the queue passes rejected and expired messages on, and the flow names neither retry nor dead_letter", "该队列会转发被拒绝和过期的消息，而流程没有配置 retry 或 dead_letter"),
		flow.T("Name the queues under retry and dead_letter of the flow.", "请在流程的 retry 和 dead_letter 中写明这些队列。"), "")
}

func judgeOverflow(f queueFacts, q broker.QueueSetUp) []outcome {
	if f.Role != broker.RoleWork || !q.Bounded {
		return skip()
	}
	drops := q.DeadLetter == nil && (q.Overflow == "" || q.Overflow == "drop-head")
	return when(drops, flow.T("its length is limited, overflow is drop-head, and there is no dead-letter target", "限制了长度，overflow 为 drop-head，且没有死信目标"),
		flow.T("Let it refuse new messages instead (overflow reject-publish, with publisher confirms), or give it a dead-letter target.", "改为拒绝新消息（overflow 设为 reject-publish，并启用发布确认），或配置死信目标。"), withDLX(f))
}

func judgeExpiry(f queueFacts, q broker.QueueSetUp) []outcome {
	if f.Role != broker.RoleWork || !q.Expires {
		return skip()
	}
	return when(q.DeadLetter == nil, flow.T("the queue has a message TTL and no dead-letter target", "队列设置了消息 TTL，且没有死信目标"),
		flow.T("Remove the TTL, or give the queue a dead-letter target.", "去掉 TTL，或配置死信目标。"), withDLX(f))
}

func judgeMirrored(_ queueFacts, q broker.QueueSetUp) []outcome {
	return when(q.Mirrored, flow.T("a policy sets ha-mode", "有策略设置了 ha-mode"),
		flow.T("Move to a quorum queue.", "请迁移到仲裁队列。"), "")
}

func judgeUnattended(f queueFacts, q broker.QueueSetUp) []outcome {
	if f.Role != broker.RoleDeadLetter || !q.Counted {
		return skip()
	}
	return when(q.Messages > 0 && q.Consumers == 0, flow.T("%d messages, no consumer", "%d 条消息，没有消费者", q.Messages),
		flow.T("Look up their keys, replay what is not completed, and drop the rest.", "请查询这些键，重放未完成的，丢弃其余的。"), "")
}

func judgeGrowth(f queueFacts, q broker.QueueSetUp) []outcome {
	if f.Role != broker.RoleDeadLetter || !q.Counted {
		return skip()
	}
	return when(q.Growth > 0, flow.T("%d messages, growing by %.1f a second", "%d 条消息，每秒增加 %.1f 条", q.Messages, q.Growth),
		flow.T("See the findings of its flows and the consumers' logs.", "请查看相应流程的问题列表和消费者日志。"), "")
}

// shellWord quotes a word for a POSIX shell. What cannot be seen is spelled out:
// such a command is to be read, not run.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(flow.Visible(s), "'", `'\''`) + "'"
}
