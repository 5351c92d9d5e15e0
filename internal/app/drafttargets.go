package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"idemscope/internal/draft"
)

// targets are the stores to look at, with their passwords; nil where none is named.
type targets struct {
	mysql    *mysqlTarget
	redis    *redisTarget
	rabbitmq *rabbitTarget
}

type mysqlTarget struct {
	draft.MySQL
	password string
}

type redisTarget struct {
	draft.Redis
	password string
}

type rabbitTarget struct {
	draft.Broker
	password string
}

func (o InitOptions) targets() (t targets, err error) {
	if o.MySQL == "" && o.Redis == "" && o.RabbitMQ == "" {
		return t, errNothingNamed
	}
	if o.MySQL != "" {
		t.mysql = &mysqlTarget{}
		if err := t.mysql.parse(o.MySQL); err != nil {
			return t, err
		}
		if t.mysql.Password, t.mysql.password, err = o.MySQLPassword.read(); err != nil {
			return t, err
		}
	}
	if o.Redis != "" {
		t.redis = &redisTarget{}
		if err := t.redis.parse(o.Redis); err != nil {
			return t, err
		}
		if t.redis.Password, t.redis.password, err = o.RedisPassword.read(); err != nil {
			return t, err
		}
	}
	if o.RabbitMQ != "" {
		t.rabbitmq = &rabbitTarget{}
		if err := t.rabbitmq.parse(o.RabbitMQ, o.Vhost); err != nil {
			return t, err
		}
		if t.rabbitmq.Password, t.rabbitmq.password, err = o.RabbitMQPassword.read(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// variables lists the variables that the draft refers to.
func (t targets) variables() []string {
	var all []string
	if t.mysql != nil && t.mysql.Password.Variable != "" {
		all = append(all, t.mysql.Password.Variable)
	}
	if t.redis != nil && t.redis.Password.Variable != "" {
		all = append(all, t.redis.Password.Variable)
	}
	if t.rabbitmq != nil && t.rabbitmq.Password.Variable != "" {
		all = append(all, t.rabbitmq.Password.Variable)
	}
	return all
}

// read returns where the password is for the draft, and the password for us. An
// unset or empty variable means that there is none.
func (c Credential) read() (where draft.Password, password string, err error) {
	if c.File == "" {
		if c.Password == "" {
			return draft.Password{}, "", nil
		}
		return draft.Password{Variable: c.Variable}, c.Password.Reveal(), nil
	}
	path, err := filepath.Abs(c.File)
	if err != nil {
		return draft.Password{}, "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return draft.Password{}, "", fmt.Errorf("the password file cannot be read: %w", err)
	}
	content := string(text)
	if line, cut := strings.CutSuffix(content, "\n"); cut {
		content = strings.TrimSuffix(line, "\r")
	}
	if content == "" {
		return draft.Password{}, "", fmt.Errorf("the file %s holds no password", path)
	}
	return draft.Password{File: path}, content, nil
}

// Errors of addresses do not repeat them: a password may stand there by mistake.
var (
	errMySQLAddress  = errors.New("--mysql: it looks like user@host:port/database, or user@/path/to/mysqld.sock/database; the password comes from MYSQL_PASSWORD or --mysql-password-file")
	errRedisAddress  = errors.New("--redis: it looks like host:port, host:port/db or user@host:port; the password comes from REDIS_PASSWORD or --redis-password-file")
	errRabbitAddress = errors.New("--rabbitmq: it looks like http://user@host:15672; the password comes from RABBIT_PASSWORD or --rabbitmq-password-file")
)

func (t *mysqlTarget) parse(text string) error {
	user, rest, found := cutLast(text, "@")
	at := strings.LastIndex(rest, "/")
	if !found || user == "" || at < 1 || strings.Contains(user, ":") {
		return errMySQLAddress
	}
	t.User, t.Database = user, rest[at+1:]
	place := rest[:at]
	switch {
	case t.Database == "":
		return errMySQLAddress
	case strings.HasPrefix(place, "/"):
		t.Socket = place
		return nil
	}
	address, err := hostPort(place, "3306")
	if err != nil {
		return errMySQLAddress
	}
	t.Address = address
	return nil
}

func (t *redisTarget) parse(text string) error {
	user, rest, found := cutLast(text, "@")
	if !found {
		user, rest = "", text
	}
	place, number, numbered := strings.Cut(rest, "/")
	if numbered {
		db, err := strconv.Atoi(number)
		if err != nil || db < 0 {
			return errRedisAddress
		}
		t.DB = db
	}
	address, err := hostPort(place, "6379")
	if err != nil || strings.Contains(user, ":") {
		return errRedisAddress
	}
	t.User, t.Address = user, address
	return nil
}

func (t *rabbitTarget) parse(text, vhost string) error {
	address, err := url.Parse(text)
	if err != nil || address.User == nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" || address.RawQuery != "" || address.Fragment != "" {
		return errRabbitAddress
	}
	if _, given := address.User.Password(); given || address.User.Username() == "" {
		return errRabbitAddress
	}
	t.User, t.Vhost = address.User.Username(), vhost
	if t.Vhost == "" {
		t.Vhost = "/"
	}
	address.User = nil
	t.Management = strings.TrimRight(address.String(), "/")
	return nil
}

// cutLast cuts at the last separator: a user name may hold one, a host may not.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return "", text, false
	}
	return text[:at], text[at+len(separator):], true
}

// hostPort completes an address with the usual port.
func hostPort(text, port string) (string, error) {
	host, given, err := net.SplitHostPort(text)
	if err != nil {
		host, given = strings.Trim(text, "[]"), port
		if host == "" || strings.ContainsAny(host, " /@") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", err
		}
	}
	if n, err := strconv.ParseUint(given, 10, 16); err != nil || n == 0 || host == "" {
		return "", errors.New("no port from 1 to 65535")
	}
	return net.JoinHostPort(host, given), nil
}
