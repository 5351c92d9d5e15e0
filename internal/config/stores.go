package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// mysql reads one server of the section mysql.
func (s *section) mysql(name string) MySQL {
	m := MySQL{
		Name:           name,
		Address:        s.text("address"),
		Socket:         s.text("socket"),
		Database:       s.required("database", "name the database that holds the tables"),
		User:           s.required("user", "name a MySQL user that may SELECT"),
		Password:       s.password(),
		TimeZone:       s.zone("time_zone"),
		Replica:        s.flag("replica"),
		MaxConnections: s.whole("max_connections", 4, 1, 50),
		TLS:            s.tls(),
		Act:            s.act("name a MySQL user that may do what actions and the janitor need; the user above stays for reading"),
	}
	address, socket := s.value("address"), s.value("socket")
	switch {
	case m.Address != "" && m.Socket != "":
		s.problemf(socket.at, socket.path, "address and socket exclude each other; keep one")
	case m.Socket != "" && m.TLS != nil:
		s.problemf(s.value("tls").at, s.pathOf("tls"), "a socket needs no TLS; remove tls, or use address")
	case m.Address != "":
		s.hostPort(address, m.Address, "127.0.0.1:3306")
	case m.Socket == "" && !s.reported(address.path) && !s.reported(socket.path):
		s.problemf(s.at, s.pathOf("address"), `is missing; write address: "host:3306" or socket: /path/to/mysqld.sock`)
	}
	return m
}

// redis reads one Redis of the section redis.
func (s *section) redis(name string) Redis {
	addresses := s.requiredList("addresses", `write ["127.0.0.1:6379"]`)
	rd := Redis{
		Name:             name,
		DB:               s.whole("db", 0, 0, 1<<20),
		Mode:             RedisMode(s.word("mode", string(RedisSingle), string(RedisSingle), string(RedisSentinel), string(RedisCluster))),
		MasterName:       s.text("master_name"),
		User:             s.text("user"),
		Password:         s.password(),
		SentinelUser:     s.text("sentinel_user"),
		SentinelPassword: Secret(s.text("sentinel_password")),
		KeyPrefix:        s.text("key_prefix"),
		TLS:              s.tls(),
		Act:              s.act("name a Redis user that may run EVAL, TYPE, PTTL, GET and DEL on locks and markers; the user above stays for reading"),
	}
	for _, address := range addresses {
		s.hostPort(address.value, address.text, "127.0.0.1:6379")
		rd.Addresses = append(rd.Addresses, address.text)
	}
	if !s.reported(s.pathOf("mode")) {
		s.redisMode(rd)
	}
	return rd
}

// redisMode checks what depends on the mode.
func (s *section) redisMode(rd Redis) {
	for key, given := range map[string]bool{
		"master_name":       rd.MasterName != "",
		"sentinel_user":     rd.SentinelUser != "",
		"sentinel_password": rd.SentinelPassword != "",
	} {
		if v := s.value(key); given && rd.Mode != RedisSentinel {
			s.problemf(v.at, v.path, "belongs to mode: sentinel, but the mode is %s; remove it or change the mode", rd.Mode)
		}
	}
	switch {
	case rd.Mode == RedisSingle && len(rd.Addresses) > 1:
		v := s.value("addresses")
		s.problemf(v.at, v.path, "mode: single takes one address; keep one, or set mode: sentinel or mode: cluster")
	case rd.Mode == RedisSentinel && rd.MasterName == "" && !s.reported(s.pathOf("master_name")):
		s.problemf(s.at, s.pathOf("master_name"), "is missing; mode: sentinel needs the name of the master as the sentinels know it")
	case rd.Mode == RedisCluster && rd.DB != 0:
		v := s.value("db")
		s.problemf(v.at, v.path, "a cluster has database 0 only; remove db")
	}
}

// broker reads one broker of the section brokers.
func (s *section) broker(name string) Broker {
	b := Broker{
		Name:       name,
		Type:       BrokerType(s.word("type", string(RabbitMQ), string(RabbitMQ))),
		Management: s.required("management", `write the URL of the management API, such as "http://127.0.0.1:15672"`),
		Vhost:      s.text("vhost"),
		User:       s.required("user", "name a RabbitMQ user with the tag monitoring"),
		Password:   s.password(),
		TLS:        s.tls(),
	}
	if b.Vhost == "" {
		b.Vhost = "/"
	}
	b.Tap, b.Trace, b.Replay = s.tap(&b), s.trace(&b), s.replay(&b)
	if b.Management == "" {
		return b
	}
	v := s.value("management")
	// Nothing of the URL is quoted in an error: it may hold a password.
	address, err := url.Parse(b.Management)
	switch {
	case err == nil && address.User != nil, strings.Contains(b.Management, "@"):
		s.problemf(v.at, v.path, "must not hold a user or password; use the keys user and password")
	case err != nil || address.Host == "" || address.Hostname() == "" || address.Scheme != "http" && address.Scheme != "https":
		s.problemf(v.at, v.path, `must be an http or https URL, such as "http://127.0.0.1:15672"`)
	case address.RawQuery != "" || address.Fragment != "":
		s.problemf(v.at, v.path, "must end before ? and #")
	case b.TLS != nil && address.Scheme != "https":
		s.problemf(s.value("tls").at, s.pathOf("tls"), "has no effect on an http URL; write https in management, or remove tls")
	}
	b.Management = strings.TrimRight(b.Management, "/")
	return b
}

// ledger reads one table of the section ledgers.
func (s *section) ledger(name string) Ledger {
	l := Ledger{
		Name:    name,
		MySQL:   s.ref("mysql", "mysql"),
		Table:   s.required("table", "name the table; shards are written as name_{00..63}"),
		Preset:  s.text("preset"),
		BizType: s.text("biz_type"),
		BizID:   s.text("biz_id"),
		Archive: s.text("archive"),
	}
	if v := s.value("archive"); l.Archive != "" && l.Archive == l.Table {
		s.problemf(v.at, v.path, "is the table of the ledger itself; name the table to which old rows are moved, or remove the key")
	}
	if l.BizID != "" {
		s.template("biz_id", l.BizID)
	}
	if columns := s.section("columns"); columns != nil {
		l.Columns = map[string]string{}
		for _, role := range columns.keys {
			l.Columns[role] = columns.text(role)
		}
	}
	if status := s.section("status"); status != nil {
		l.Status = map[string][]string{}
		for _, phase := range status.keys {
			v, ok := status.take(phase)
			if !ok {
				status.missing(v, `write the stored words, such as ["1"]; or remove the key`)
				continue
			}
			words := []string{}
			for _, word := range status.items(v, status.wordOf) {
				words = append(words, word.text)
			}
			l.Status[phase] = words
		}
	}
	return l
}

// hostPort checks that text is host:port. It is not quoted in the error: a
// whole DSN with a password may stand there by mistake.
func (s *section) hostPort(v value, text, example string) {
	if err := checkHostPort(text); err != nil {
		s.problemf(v.at, v.path, "%v; write host:port, such as %q", err, example)
	}
}

func checkHostPort(text string) error {
	host, port, err := net.SplitHostPort(text)
	switch {
	case err != nil && !strings.Contains(text, ":"):
		return errors.New("has no port")
	case err != nil || host == "" || strings.ContainsAny(host, "@/()"):
		return errors.New("is not the address of a server")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("has no port from 1 to 65535")
	}
	return nil
}
