package console

import (
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/verdict"
)

// story is evidence with the verdict that it gives.
type story struct {
	name string
	canned
	bizType, bizID string
	code           verdict.Code
}

const orderNo = "20260314000123"

func order(name string, code verdict.Code, record func(flow.Key) ledger.Found, lock func(string) lockstore.Entry, queues func(flow.Queue) broker.Evidence) story {
	return story{name: name, canned: canned{record: record, lock: lock, queues: queues}, bizType: "order_paid", bizID: orderNo, code: code}
}

// stories cover every verdict and every kind of evidence that a page must show.
func stories() []story {
	owner := "worker-7:22190:9f1c6a52"
	completedRow := row("2", flow.Completed, 26*time.Minute)
	completedRow.RunTime, completedRow.RunTimeKnown = 2*time.Second, true
	slowRow := completedRow
	slowRow.RunTime = 145 * time.Second
	other := row("2", flow.Completed, 3*time.Hour)
	other.Exact, other.BizID = false, "20260314000123 "
	later := row("1", flow.Processing, -26*time.Hour)
	foreign := held("", 9*time.Second)
	foreign.Type, foreign.Foreign = "hash", true
	forEver := held(owner, 0)
	forEver.NoTTL = true
	sign := completedRow
	sign.BizType, sign.BizID = "sign", "7:2026-03-14"
	young := row("1", flow.Processing, 4*time.Second)

	return []story{
		order("stuck", verdict.Stuck, records(row("1", flow.Processing, 2*time.Hour+4*time.Minute)), redisKeys(none(), held("processing", 21*time.Hour)), queues(3, 1, 2)),
		order("stuck-redis", verdict.Stuck, records(), redisKeys(forEver, none()), queues(0, 0, 0)),
		order("running", verdict.Running, records(young), redisKeys(held(owner, 11400*time.Millisecond), none()), queues(12, 1, 0)),
		order("completed", verdict.Completed, records(completedRow), redisKeys(none(), held("1", 23*time.Hour+33*time.Minute)), queues(0, 0, 0)),
		order("completed-slow", verdict.Completed, records(slowRow), redisKeys(none(), held("1", 23*time.Hour+33*time.Minute)), queues(4, 2, 1)),
		order("ran-twice", verdict.RanTwice, records(completedRow, other, slowRow), redisKeys(none(), none()), queues(0, 0, 0)),
		order("ambiguous", verdict.KeyAmbiguous, records(other), redisKeys(none(), none()), queues(0, 0, 0)),
		order("clock-skew", verdict.ClockSkew, records(later), redisKeys(none(), none()), queues(0, 0, 0)),
		order("unreadable", verdict.Unreadable, records(row("9", flow.Unmapped, time.Minute)), redisKeys(none(), none()), queues(0, 0, 0)),
		order("twice", verdict.MayHaveRunTwice, records(row("1", flow.Processing, 2*time.Minute)), redisKeys(held(owner, 14*time.Second), none()), queues(1, 2, 0)),
		order("lost", verdict.LostSuspected, records(), redisKeys(none(), held("1", 20*time.Hour)), queues(0, 0, 0)),
		order("failed", verdict.FailedUnplaced, records(row("3", flow.Failed, 7*time.Minute)), redisKeys(none(), none()), queues(0, 0, 3)),
		order("acquiring", verdict.Acquiring, records(), redisKeys(held(owner, 14500*time.Millisecond), none()), queues(0, 1, 0)),
		order("waiting", verdict.MaybeWaiting, records(), redisKeys(none(), none()), queues(41870, 0, 0)),
		order("never", verdict.NeverSeen, records(), redisKeys(none(), none()), queues(0, 0, 0)),
		order("foreign", verdict.Unknown, records(), redisKeys(foreign, none()), queues(0, 0, 0)),
		order("mysql-down", verdict.Unknown, down(), redisKeys(held(owner, 9*time.Second), none()), queues(3, 1, 2)),
		order("all-down", verdict.Unknown, down(), redisDown(), brokerDown()),
		{name: "no-broker-no-marker", canned: canned{record: records()}.withLock(none()), bizType: "points_granted", bizID: "8213", code: verdict.NeverSeen},
		{name: "record-only", canned: canned{record: records(sign)}, bizType: "sign", bizID: "7:2026-03-14", code: verdict.Completed},
	}
}

func (c canned) withLock(e lockstore.Entry) canned {
	c.lock = redisKeys(e, e)
	return c
}

func down() func(flow.Key) ledger.Found {
	return func(flow.Key) ledger.Found {
		return ledger.Found{Observation: failed("mysql main, shop.idempotent_record", flow.T("the server refuses connections", "服务器拒绝连接"))}
	}
}

func redisDown() func(string) lockstore.Entry {
	return func(string) lockstore.Entry {
		return lockstore.Entry{Observation: failed("redis main (127.0.0.1:6379)", flow.T("no answer within %v", "%v 内没有应答", flow.Span(time.Second)))}
	}
}

func brokerDown() func(flow.Queue) broker.Evidence {
	return func(flow.Queue) broker.Evidence {
		return broker.Evidence{Observation: failed("broker rabbit (http://127.0.0.1:15672, vhost /)", flow.T("the user or its password is wrong", "用户名或密码错误"))}
	}
}
