package lab

import (
	"time"

	"idemscope/internal/flow"
)

// Names that the configuration gives to the lab's servers.
const (
	mysqlName  = "main"
	redisName  = "main"
	brokerName = "rabbit"
	database   = "shop"
)

// markerTTL is how long every marker of the lab lives.
const markerTTL = 24 * time.Hour

// retryDelay is how long a message that was given back waits for its next attempt.
const retryDelay = 2 * time.Second

// route is one flow as its consumers run it.
type route struct {
	flow.Flow
	// book is how the flow keeps its records.
	book book
	// workers is how many consumers read the queue while traffic runs; 0 leaves the messages where they are.
	workers int
	// patience is how long a consumer waits for a lock that is held before it gives the message back.
	patience time.Duration
}

// routes lists the flows of the lab. Without a broker they have no queue to look at.
func routes(broker bool) []route {
	all := []route{
		{
			Flow: flow.Flow{
				Name: "payments", BizTypes: []string{"order_paid", "refund"}, Ledger: "orders",
				Lock: redisKey("idem_lock:{biz_type}:{biz_id}", 15*time.Second), Marker: redisKey("idempotent:{biz_type}:{biz_id}", markerTTL),
				Queue: queueNamed("order.paid"), OnProcessing: flow.Refuse,
			},
			book: recordTable("idempotent_record"), workers: 4, patience: 40 * time.Millisecond,
		},
		{
			Flow: flow.Flow{
				Name: "points", BizTypes: []string{"points_grant", "points_revoke"}, Ledger: "points",
				Lock:  redisKey("consume_lock:{biz_type}:{biz_id}", 2*time.Second),
				Queue: queueNamed("points.changed"), OnProcessing: flow.Resume,
			},
			book: messageTable(), workers: 4,
		},
		{
			Flow: flow.Flow{
				Name: "signs", BizTypes: []string{"sign"}, Ledger: "signs",
				Lock: redisKey("sign_lock:{biz_id}", 10*time.Second), Marker: redisKey("idempotent:sign:{biz_id}", markerTTL),
				Queue: queueNamed("user.sign"), OnProcessing: flow.Retry,
			},
			book: signTable{}, workers: 2, patience: 200 * time.Millisecond,
		},
		{
			Flow: flow.Flow{
				Name: "settlement", BizTypes: []string{"settlement_day"}, Ledger: "settlements",
				Lock: redisKey("idem_lock:{biz_type}:{biz_id}", 30*time.Second), Marker: redisKey("idempotent:{biz_type}:{biz_id}", markerTTL),
				Queue: queueNamed("settlement.due"), OnProcessing: flow.Refuse, Rerun: flow.RerunNever,
			},
			book: recordTable("settlement_record"), workers: 1,
		},
		{
			Flow: flow.Flow{
				Name: "imports", BizTypes: []string{"stock_import"}, Ledger: "orders",
				Lock: redisKey("idem_lock:{biz_type}:{biz_id}", 15*time.Second), Marker: redisKey("idempotent:{biz_type}:{biz_id}", markerTTL),
				Queue: queueNamed("stock.import"), OnProcessing: flow.Retry,
			},
			book: recordTable("idempotent_record"),
		},
		{
			Flow: flow.Flow{
				Name: "reports", BizTypes: []string{"monthly_report"}, Ledger: "orders",
				Lock: renewed(redisKey("idem_lock:{biz_type}:{biz_id}", 15*time.Second)), OnProcessing: flow.Refuse,
			},
			book: recordTable("idempotent_record"),
		},
		{
			Flow: flow.Flow{
				Name: "legacy", BizTypes: []string{"coupon_grant"}, Ledger: "coupons",
				Lock: redisKey("coupon_lock:{biz_id}", 10*time.Second), OnProcessing: flow.Refuse,
			},
			book: recordTable("coupon_record"),
		},
	}
	for i := range all {
		all[i].StaleAfter = 5 * time.Minute
		if all[i].Rerun == "" {
			all[i].Rerun = flow.RerunManual
		}
		if !broker {
			all[i].Queue = nil
		}
	}
	return all
}

func redisKey(template string, ttl time.Duration) *flow.RedisKey {
	t, err := flow.ParseTemplate(template)
	if err != nil {
		panic(err) // the templates are constants of this file
	}
	return &flow.RedisKey{Redis: redisName, Template: t, TTL: ttl}
}

func renewed(k *flow.RedisKey) *flow.RedisKey {
	k.Renewed = true
	return k
}

// queueNamed is a work queue with one retry queue and a dead-letter queue; bodies are JSON.
func queueNamed(name string) *flow.Queue {
	return &flow.Queue{
		Broker: brokerName, Name: name, Retry: []string{name + ".retry"}, DeadLetter: name + ".dlq",
		IDField: "biz_id", TypeField: "biz_type",
	}
}

// routeOf finds the route of a flow by its name.
func routeOf(all []route, name string) route {
	for _, r := range all {
		if r.Name == name {
			return r
		}
	}
	panic("no flow " + name) // names come from this package only
}
