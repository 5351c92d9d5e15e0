package config

import (
	"slices"
	"strings"
	"time"

	"idemscope/internal/flow"
)

// Config is one valid configuration. Named parts keep the order of the file.
type Config struct {
	// Listen is the host:port of console, API and /metrics.
	Listen string
	// MetricsListen is the host:port of a second listener without users, for
	// /metrics and health only; empty when there is none.
	MetricsListen string
	// WebConfig is the path of the exporter-toolkit file (TLS, users); empty when there is none.
	WebConfig string
	// WebTLS: the file sets a certificate, so that Listen speaks https.
	WebTLS bool
	// WebAuth: the file makes the listener ask everybody for a password or a certificate.
	WebAuth bool
	// WebUsers: it is a password.
	WebUsers bool
	// TimeZone is the zone in which times are displayed.
	TimeZone *time.Location
	MySQL    []MySQL
	Redis    []Redis
	Brokers  []Broker
	Ledgers  []Ledger
	Flows    []flow.Flow
	// Counters is nil when no consumer reports counters.
	Counters *Counters
	Console  Console
	Exporter Exporter
	Cleanup  Cleanup

	file   string
	places map[string]place
}

// MySQL is one MySQL or MariaDB server.
type MySQL struct {
	Name string
	// Address is host:port; Socket the path of a Unix socket. Exactly one is set.
	Address, Socket string
	Database        string
	User            string
	Password        Secret
	// TimeZone is the zone in which the application writes DATETIME columns.
	TimeZone *time.Location
	// Replica: the server is a replica, so absence proves less.
	Replica bool
	// MaxConnections is 1 to 50.
	MaxConnections int
	// TLS is nil for a plain connection.
	TLS *TLS
	// Act is the second user, with which tables are changed; without a name when there is none.
	Act Account
}

// RedisMode is how the servers of one Redis work together.
type RedisMode string

// The three ways to run Redis.
const (
	RedisSingle   RedisMode = "single"
	RedisSentinel RedisMode = "sentinel"
	RedisCluster  RedisMode = "cluster"
)

// Redis is one Redis: a server, a group behind Sentinel, or a cluster.
type Redis struct {
	Name string
	// Addresses are host:port: the server, the sentinels, or nodes of the cluster.
	Addresses []string
	// DB is the database number; 0 in a cluster.
	DB   int
	Mode RedisMode
	// MasterName is set in sentinel mode only.
	MasterName       string
	User             string
	Password         Secret
	SentinelUser     string
	SentinelPassword Secret
	// KeyPrefix stands before every key of this Redis. It may be empty.
	KeyPrefix string
	// TLS is nil for a plain connection.
	TLS *TLS
	// Act is the second user, with which locks and markers are deleted; without a
	// name when there is none.
	Act Account
}

// BrokerType is a kind of broker.
type BrokerType string

// RabbitMQ is read through its management API.
const RabbitMQ BrokerType = "rabbitmq"

// Broker is one broker.
type Broker struct {
	Name string
	Type BrokerType
	// Management is the http or https URL of the management API, without a trailing slash.
	Management string
	Vhost      string
	User       string
	Password   Secret
	// TLS is nil unless the file says more than "https".
	TLS *TLS
	// Tap and Trace have no AMQP unless they are configured.
	Tap   Tap
	Trace Trace
	// Replay is the AMQP URL with which dead letters are replayed; empty when there is none.
	Replay Secret
}

// Ledger is one idempotency table. What its fields mean together is judged by
// the ledger package.
type Ledger struct {
	Name string
	// MySQL names the server.
	MySQL  string
	Table  string
	Preset string
	// BizType is the constant biz_type of a table that holds one type only; empty otherwise.
	BizType string
	// BizID is the template of a composite biz_id; empty otherwise.
	BizID string
	// Archive is the table to which old rows are moved; empty when there is none.
	Archive string
	// Columns maps a role to a column; "" or "-" means that the table has none.
	Columns map[string]string
	// Status maps a phase to the stored words.
	Status map[string][]string
}

// Counters says where instrumented consumers count.
type Counters struct {
	// Redis names the Redis.
	Redis string
	// Prefix is all that stands before the contract's key names: the key_prefix
	// of the Redis, then counters.prefix. It may be empty.
	Prefix string
	// Trail: they report their steps there as well.
	Trail bool
}

// Console is the look-up page.
type Console struct {
	// Language is a language of the interface; empty means that the browser decides.
	Language flow.Language
	// LookupTimeout bounds the look-up in each store: 100ms to 30s.
	LookupTimeout time.Duration
	// Actions: an operator may change something, from the console or the command line.
	Actions bool
	// Grafana is the http or https URL of the Grafana that has the dashboards,
	// without a trailing slash; empty when there is none.
	Grafana string
	// Environment names what the stores belong to, such as production; it may be empty.
	Environment string
	// PathPrefix is the path below which browsers see the console, such as
	// /tools/idemscope; empty when that is the root.
	PathPrefix string
	// Auth says who may do what.
	Auth Auth
	// Mask hides parts of messages and results.
	Mask Mask
	// Audit is the path of the file that keeps every attempt.
	Audit string
}

// Exporter is the collection of metrics.
type Exporter struct {
	// Interval between two readings of the stores: 1s to 10m.
	Interval time.Duration
	// Lookback is how far back the first reading goes: 1m to 8760h.
	Lookback time.Duration
	// MaxBizTypes bounds the biz_type label: 1 to 10000.
	MaxBizTypes int
	// Findings is the search for keys with a problem.
	Findings Findings
	// Sweep is the walk through the keys of each Redis that holds locks or markers.
	Sweep Sweep
	// LockExpirations: the keyspace events of Redis are listened to.
	LockExpirations bool
}

// Sweep is the pace at which the keys of a Redis are walked.
type Sweep struct {
	// KeysPerSecond is 100 to 100000, or 0: no sweep.
	KeysPerSecond int
	// Pause between two passes: 1s to 24h.
	Pause time.Duration
}

// Findings is the search for keys with a problem.
type Findings struct {
	// PerSecond bounds the look-ups: 1 to 1000; 0 turns the search off.
	PerSecond int
}

// Catalog returns the flows, ready for use: in the order of the file, with the
// key prefix of their Redis, and with the biz_type of a ledger that holds only one.
func (c *Config) Catalog() []flow.Flow { return slices.Clone(c.Flows) }

// At returns where a key stands, as "file:line:column". path is dotted, such as
// "ledgers.orders.preset" or "flows.payments.biz_types[0]". For a key that was
// left out it is the place of the closest part around it.
func (c *Config) At(path string) string {
	for path != "" {
		if at, ok := c.places[path]; ok {
			return at.in(c.file)
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{line: 1, column: 1}.in(c.file)
}
