package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed config.yaml.tmpl
var configText string

const (
	// actUser is the MySQL user with which idemscope deletes old records: the server lets everybody in.
	actUser = "janitor"
	// retain lets the cleanup find the oldest day of the history, and never a sample.
	retain = 9 * 24 * time.Hour
)

// ledgerText is one ledger of the configuration.
type ledgerText struct {
	Name, Table, Preset string
	// BizType, BizID and Columns are for tables that do not hold them as the preset says; mostly empty.
	BizType, BizID string
	Columns        string
}

func ledgers() []ledgerText {
	return []ledgerText{
		{Name: "orders", Table: "idempotent_record", Preset: "idempotent_record"},
		{Name: "points", Table: "message_deduplication", Preset: "message_deduplication"},
		{Name: "signs", Table: "user_sign_record", Preset: "composite", BizType: "sign", BizID: "{user_id}:{sign_date}",
			Columns: "{id: id, created: created_at}"},
		{Name: "settlements", Table: "settlement_record", Preset: "idempotent_record"},
		{Name: "coupons", Table: "coupon_record", Preset: "idempotent_record"},
	}
}

// deadLettersOf are the dead-letter queues of the flows of a ledger. The lab's samples
// lie in them on purpose, and must not keep its cleanup from running.
func deadLettersOf(all []route, ledger string) (queues []string) {
	for _, r := range all {
		if r.Ledger == ledger && r.Queue != nil && r.Queue.DeadLetter != "" && !slices.Contains(queues, r.Queue.DeadLetter) {
			queues = append(queues, r.Queue.DeadLetter)
		}
	}
	return queues
}

// amqp is the broker's host:port; empty without one.
func (l *Lab) amqp() string {
	if l.rabbitmq == nil {
		return ""
	}
	return l.rabbitmq.AMQP
}

// Config is the configuration with which idemscope reads this lab, as YAML. It holds the passwords of a monitoring user
// that can touch no message, of the users of tap, trace and replays, and nothing else that is secret.
func (l *Lab) Config() []byte {
	t := template.Must(template.New("config").Funcs(template.FuncMap{
		"quote": strconv.Quote,
		"list":  func(words []string) string { return "[" + strings.Join(words, ", ") + "]" },
		"span":  span,
	}).Parse(configText))
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{
		"Listen": l.listen, "MySQL": l.mariadb.Addr, "Redis": l.redisServer.Addr, "Database": database,
		"MySQLName": mysqlName, "RedisName": redisName, "BrokerName": brokerName, "Vhost": vhost,
		"Broker": l.rabbit != nil, "Management": l.monitor.management, "User": l.monitor.user, "Password": l.monitor.password,
		"Tapped": l.tapped(), "TapUser": tapUser, "TapPassword": l.tapPassword, "TraceUser": traceUser, "TracePassword": l.tracePassword,
		"ReplayUser": replayUser, "ReplayPassword": l.replayPassword,
		"AMQP":    l.amqp(),
		"ActUser": actUser, "Retain": retain, "DeadLetters": deadLettersOf(l.routes, "orders"),
		"Ledgers": ledgers(), "Flows": l.routes,
	}); err != nil {
		panic(fmt.Sprintf("configuration of the lab: %v", err)) // the template is a constant and its values are in memory
	}
	return out.Bytes()
}

// span words a duration as people write it: 24h, not 24h0m0s.
func span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
