package scenarios

import (
	"time"

	"idemscope/internal/flow"
)

const plainLock = "idem_lock:{biz_type}:{biz_id}"

// flows are those of the shop. Each is the path of one biz_type, but for the case that is about types.
func flows() []flow.Flow {
	all := []flow.Flow{
		{Name: "payments", BizTypes: []string{"order_paid"}},
		{Name: "transfers", BizTypes: []string{"transfer"}, Queue: queueNamed("transfers")},
		{Name: "imports", BizTypes: []string{"stock_import"}, Queue: queueNamed("imports"), OnProcessing: flow.Retry},
		{Name: "refunds", BizTypes: []string{"refund_paid"}, Queue: queueNamed("refunds")},
		{Name: "notices", BizTypes: []string{"notice"}, Queue: queueNamed("notices"), OnProcessing: flow.Resume},
		{Name: "coupons", BizTypes: []string{"coupon"}, Queue: &flow.Queue{Broker: up, Name: "coupons"}},
		{Name: "peeked", BizTypes: []string{"peeked"}, Queue: &flow.Queue{Broker: up, Name: "peeked"}},
		{Name: "settlements", BizTypes: []string{"settlement_day"}, Rerun: flow.RerunNever},
		{Name: "reports", BizTypes: []string{"monthly_report"}, Lock: renewed(redisKey(plainLock, lockTTL))},
		{Name: "reservations", BizTypes: []string{"reservation"}, Lock: redisKey(plainLock, markerTTL)},
		{Name: "slow imports", BizTypes: []string{"slow_import"}, Lock: redisKey(plainLock, 10*time.Minute), Queue: queueNamed("transfers")},
		{Name: "exports", BizTypes: []string{"export"}, Lock: redisKey(plainLock, 10*time.Second)},
		{Name: "uniques", BizTypes: []string{"unique_job"}, Lock: redisKey(plainLock, time.Hour)},
		{Name: "unique retries", BizTypes: []string{"unique_retry"}, Lock: redisKey(plainLock, time.Hour), Queue: queueNamed("notices")},
		{Name: "subtypes", BizTypes: []string{"order", "order:refund"}},
		{Name: "jobs", BizTypes: []string{"job"}, Ledger: "jobs"},
		{Name: "busy jobs", BizTypes: []string{"busy_job"}, Ledger: "jobs", Queue: queueNamed("transfers")},
		{Name: "redis down", BizTypes: []string{"redisless"}, Lock: on(down, redisKey(plainLock, lockTTL)), Marker: on(down, redisKey("idempotent:{biz_type}:{biz_id}", markerTTL))},
		{Name: "moved", BizTypes: []string{"moved"}, Lock: on(moving, redisKey(plainLock, markerTTL))},
		{Name: "evicted", BizTypes: []string{"evicted"}, Lock: on(evicting, redisKey(plainLock, markerTTL))},
		{Name: "evicted briefly", BizTypes: []string{"evicted_briefly"}, Lock: on(evicting, redisKey(plainLock, lockTTL))},
		{Name: "told", BizTypes: []string{"told"}},
		{Name: "told notices", BizTypes: []string{"told_notice"}, Queue: queueNamed("notices")},
		{Name: "misnamed", BizTypes: []string{"misnamed"}, Queue: queueNamed("misnamed")},
		{Name: "ttl-less", BizTypes: []string{"ttl_less"}, Lock: redisKey(plainLock, 0)},
		{Name: "no dead letters named", BizTypes: []string{"unnamed_dead"}, Queue: &flow.Queue{Broker: up, Name: "idle", Retry: []string{"idle.retry"}}},
		{Name: "presence", BizTypes: []string{"presence"}, Ledger: "presence", Queue: queueNamed("transfers")},
		{Name: "outbox", BizTypes: []string{"outbox"}, Ledger: "outbox"},
		{Name: "broker down", BizTypes: []string{"brokerless"}, Queue: &flow.Queue{Broker: down, Name: "idle"}},
	}
	for _, book := range []string{
		"padded", "exact", "unicode", "old", "narrow", "keyless", "nullable", "monthly", "messages", "subscribers", "timeless", "shards", "halved",
		"replica", "berlin", "absent", "kept", "unkept",
	} {
		all = append(all, flow.Flow{Name: book, BizTypes: []string{book + "_order"}, Ledger: book})
	}
	all = append(all, tappedFlows()...)
	for i := range all {
		complete(&all[i])
	}
	return all
}

// complete fills in what most flows have: a lock, a marker, and queues in which nothing waits.
func complete(f *flow.Flow) {
	f.StaleAfter = staleAfter
	if f.Ledger == "" {
		f.Ledger = "orders"
	}
	if f.Lock == nil {
		f.Lock = redisKey(plainLock, lockTTL)
	}
	if f.Marker == nil {
		f.Marker = redisKey("idempotent:{biz_type}:{biz_id}", markerTTL)
	}
	if f.Queue == nil {
		f.Queue = queueNamed("idle")
	}
	if f.OnProcessing == "" {
		f.OnProcessing = flow.Refuse
	}
	if f.Rerun == "" {
		f.Rerun = flow.RerunManual
	}
}

func redisKey(template string, ttl time.Duration) *flow.RedisKey {
	parsed, err := flow.ParseTemplate(template)
	if err != nil {
		panic(err) // the templates are constants of this file
	}
	return &flow.RedisKey{Redis: up, Template: parsed, TTL: ttl}
}

func renewed(k *flow.RedisKey) *flow.RedisKey {
	k.Renewed = true
	return k
}

func on(redis string, k *flow.RedisKey) *flow.RedisKey {
	k.Redis = redis
	return k
}

// queueNamed is a work queue with its retry and dead-letter queue; bodies are JSON.
func queueNamed(name string) *flow.Queue {
	return &flow.Queue{
		Broker: up, Name: name, Retry: []string{name + ".retry"}, DeadLetter: name + ".dlq", IDField: "biz_id", TypeField: "biz_type",
	}
}
