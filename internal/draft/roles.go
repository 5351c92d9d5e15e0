package draft

import (
	"slices"
	"strings"

	"idemscope/internal/ledger"
)

// Roles of columns, as a configuration names them.
const (
	roleBizType   = "biz_type"
	roleBizID     = "biz_id"
	roleStatus    = "status"
	roleCreated   = "created"
	roleUpdated   = "updated"
	roleCompleted = "completed"
	roleResult    = "result"
	roleAttempts  = "attempts"
	roleWorker    = "worker"
)

// roleNames are the names of columns that houses give to a role, the commonest
// first, without underscores and in lower case.
var roleNames = map[string][]string{
	roleBizType: {"biztype", "businesstype", "messagetype", "msgtype", "eventtype", "bizcode", "bizscene", "scene", "optype", "operationtype", "topic", "consumergroup", "type"},
	roleBizID: {"bizid", "businessid", "bizkey", "businesskey", "bizno", "businessno", "messageid", "msgid", "idempotentkey", "idempotencykey", "idemkey",
		"idempotentid", "dedupkey", "deduplicationkey", "requestid", "requestno", "eventid", "uniquekey", "uniqueid"},
	roleStatus:    {"status", "state", "bizstatus", "processstatus", "consumestatus", "handlestatus", "executestatus"},
	roleCreated:   {"createtime", "createdat", "gmtcreate", "createdtime", "createat", "inserttime", "addtime", "ctime", "createdate", "handletime", "consumetime", "processedat", "processtime", "consumedat", "handledat", "created"},
	roleUpdated:   {"updatetime", "updatedat", "gmtmodified", "updatedtime", "updateat", "modifytime", "modifiedat", "modifiedtime", "lastupdatetime", "mtime", "utime", "updated"},
	roleCompleted: {"completedat", "completetime", "completedtime", "finishtime", "finishedat", "finishedtime", "endtime", "doneat", "sentat", "sendtime"},
	roleResult:    {"result", "resultdata", "response", "responsebody", "responsedata"},
	roleAttempts:  {"attempts", "attemptcount", "retrycount", "retrytimes", "retrynum", "trycount"},
	roleWorker:    {"worker", "workerid", "consumerid", "lockedby", "owner", "instanceid"},
}

// businessNumbers are columns that name a business row. They hold a biz_id, and
// so do a thousand tables that are no ledgers.
var businessNumbers = []string{"orderno", "orderid", "ordersn", "ordernumber", "outtradeno", "tradeno", "payno", "paymentno", "refundno", "transactionid", "transactionno", "serialno", "flowno", "sn"}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// named finds the column whose name stands first in the list, among those that fit.
func named(t ledger.TableFacts, names []string, fits func(ledger.ColumnFacts) bool) (ledger.ColumnFacts, bool) {
	for _, name := range names {
		for _, c := range t.Columns {
			if plain(c.Name) == name && fits(c) && writable(c.Name) {
				return c, true
			}
		}
	}
	return ledger.ColumnFacts{}, false
}

// writable reports whether a configuration can name the column.
func writable(name string) bool { return name != "" && !strings.ContainsAny(name, "\x00\n") }

func identifies(c ledger.ColumnFacts) bool { return c.Text() || c.Integer() && !c.AutoIncrement }
func tellsTime(c ledger.ColumnFacts) bool  { return c.Moment() || c.Integer() }
func tellsState(c ledger.ColumnFacts) bool { return c.Text() || c.Integer() || c.Kind == "bit" }
func anything(ledger.ColumnFacts) bool     { return true }

// fitsRole are the types of columns that can play a role.
var fitsRole = map[string]func(ledger.ColumnFacts) bool{
	roleBizType: identifies, roleBizID: identifies, roleStatus: tellsState,
	roleCreated: tellsTime, roleUpdated: tellsTime, roleCompleted: tellsTime,
	roleResult: anything, roleAttempts: ledger.ColumnFacts.Integer, roleWorker: ledger.ColumnFacts.Text,
}

// rolesOf finds the columns that play a role by their names and types.
func rolesOf(t ledger.TableFacts) map[string]ledger.ColumnFacts {
	roles := map[string]ledger.ColumnFacts{}
	for role, names := range roleNames {
		if c, ok := named(t, names, fitsRole[role]); ok {
			roles[role] = c
		}
	}
	return roles
}

// businessKeys lists the unique keys that can stop a duplicate: all but a
// primary key that the database counts up by itself.
func businessKeys(t ledger.TableFacts) []ledger.KeyFacts {
	var keys []ledger.KeyFacts
	for _, k := range t.Keys {
		if k.Unique && !surrogate(t, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func surrogate(t ledger.TableFacts, k ledger.KeyFacts) bool {
	return slices.ContainsFunc(k.Columns, func(name string) bool {
		c, _ := t.Column(name)
		return c.AutoIncrement
	})
}

// keyOver finds a key over exactly these columns, in any order.
func keyOver(keys []ledger.KeyFacts, columns ...string) (ledger.KeyFacts, bool) {
	for _, k := range keys {
		if len(k.Columns) == len(columns) && !slices.ContainsFunc(columns, func(c string) bool {
			return !slices.ContainsFunc(k.Columns, func(in string) bool { return strings.EqualFold(in, c) })
		}) {
			return k, true
		}
	}
	return ledger.KeyFacts{}, false
}
