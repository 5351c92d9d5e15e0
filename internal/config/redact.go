package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"idemscope/internal/flow"
)

// Redacted returns the effective configuration as YAML: with defaults, with
// variables replaced, and with secrets masked. File names are those that were
// opened. Apart from that it reads back as the same configuration.
func (c *Config) Redacted() ([]byte, error) {
	doc := &group{}
	doc.text("listen", c.Listen)
	doc.text("metrics_listen", c.MetricsListen)
	doc.text("web_config", c.WebConfig)
	doc.text("time_zone", c.TimeZone.String())
	mysql, redis, brokers, ledgers, flows := &group{}, &group{}, &group{}, &group{}, &group{}
	for _, m := range c.MySQL {
		mysql.part(m.Name, m.redacted())
	}
	for _, r := range c.Redis {
		redis.part(r.Name, r.redacted())
	}
	for _, b := range c.Brokers {
		brokers.part(b.Name, b.redacted())
	}
	for _, l := range c.Ledgers {
		ledgers.part(l.Name, l.redacted())
	}
	for _, f := range c.Flows {
		flows.part(f.Name, redactedFlow(f))
	}
	doc.part("mysql", mysql)
	doc.part("redis", redis)
	doc.part("brokers", brokers)
	doc.part("ledgers", ledgers)
	doc.part("flows", flows)
	if c.Counters != nil {
		counters := &group{}
		counters.text("redis", c.Counters.Redis)
		counters.text("prefix", strings.TrimPrefix(c.Counters.Prefix, c.keyPrefix(c.Counters.Redis)))
		counters.add("trail", c.Counters.Trail)
		doc.part("counters", counters)
	}
	doc.part("console", c.Console.redacted())
	doc.part("exporter", c.Exporter.redacted())
	doc.part("cleanup", c.Cleanup.redacted())
	out, err := yaml.MarshalWithOptions(doc.items, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write the effective configuration: %w", err)
	}
	return out, nil
}

func (m MySQL) redacted() *group {
	g := &group{}
	g.text("address", m.Address)
	g.text("socket", m.Socket)
	g.text("database", m.Database)
	g.text("user", m.User)
	g.text("password", m.Password.String())
	g.text("time_zone", m.TimeZone.String())
	g.add("replica", m.Replica)
	g.add("max_connections", m.MaxConnections)
	g.tls(m.TLS)
	g.part("act", m.Act.redacted())
	return g
}

func (r Redis) redacted() *group {
	g := &group{}
	g.list("addresses", r.Addresses)
	g.add("db", r.DB)
	g.text("mode", string(r.Mode))
	g.text("master_name", r.MasterName)
	g.text("user", r.User)
	g.text("password", r.Password.String())
	g.text("sentinel_user", r.SentinelUser)
	g.text("sentinel_password", r.SentinelPassword.String())
	g.text("key_prefix", r.KeyPrefix)
	g.tls(r.TLS)
	g.part("act", r.Act.redacted())
	return g
}

func (b Broker) redacted() *group {
	g := &group{}
	g.text("type", string(b.Type))
	g.text("management", b.Management)
	g.text("vhost", b.Vhost)
	g.text("user", b.User)
	g.text("password", b.Password.String())
	g.tls(b.TLS)
	g.part("tap", b.Tap.redacted())
	g.part("trace", b.Trace.redacted())
	g.part("act", b.redactedReplay())
	return g
}

func (l Ledger) redacted() *group {
	g := &group{}
	g.text("mysql", l.MySQL)
	g.text("table", l.Table)
	g.text("preset", l.Preset)
	g.text("biz_type", l.BizType)
	g.text("biz_id", l.BizID)
	g.text("archive", l.Archive)
	columns, status := &group{}, &group{}
	for _, role := range slices.Sorted(maps.Keys(l.Columns)) {
		columns.add(role, literal(l.Columns[role]))
	}
	for _, phase := range slices.Sorted(maps.Keys(l.Status)) {
		status.add(phase, literals(l.Status[phase]))
	}
	g.part("columns", columns)
	g.part("status", status)
	return g
}

func redactedFlow(f flow.Flow) *group {
	g := &group{}
	if f.Rest {
		g.list("biz_types", []string{rest})
	}
	g.list("biz_types", f.BizTypes)
	g.text("ledger", f.Ledger)
	g.redisKey("lock", f.Lock)
	g.redisKey("marker", f.Marker)
	if q := f.Queue; q != nil {
		queue := &group{}
		queue.text("broker", q.Broker)
		queue.text("name", q.Name)
		queue.list("retry", q.Retry)
		queue.text("dead_letter", q.DeadLetter)
		queue.id(q)
		queue.bodyField("type", q.TypeField)
		queue.duration("ack_timeout", q.AckTimeout)
		g.part("queue", queue)
	}
	g.duration("stale_after", f.StaleAfter)
	g.text("on_processing", string(f.OnProcessing))
	g.text("rerun", string(f.Rerun))
	g.text("key_rule", f.KeyRule)
	return g
}

func (c Console) redacted() *group {
	g := &group{}
	language := string(c.Language)
	if language == "" {
		language = "auto"
	}
	g.text("language", language)
	g.duration("lookup_timeout", c.LookupTimeout)
	g.add("actions", c.Actions)
	g.text("grafana", c.Grafana)
	g.text("environment", c.Environment)
	g.text("path_prefix", c.PathPrefix)
	g.part("auth", c.redactedAuth())
	g.part("mask", c.Mask.redacted())
	audit := &group{}
	audit.text("file", c.Audit)
	g.part("audit", audit)
	return g
}

func (e Exporter) redacted() *group {
	g := &group{}
	g.duration("interval", e.Interval)
	g.duration("lookback", e.Lookback)
	g.add("max_biz_types", e.MaxBizTypes)
	findings := &group{}
	findings.add("per_second", e.Findings.PerSecond)
	g.part("findings", findings)
	sweep := &group{}
	sweep.add("keys_per_second", e.Sweep.KeysPerSecond)
	sweep.duration("pause", e.Sweep.Pause)
	g.part("sweep", sweep)
	g.add("lock_expirations", e.LockExpirations)
	return g
}

// group is a mapping to write. Empty texts, lists and parts are left out.
type group struct{ items yaml.MapSlice }

func (g *group) add(key string, v any) { g.items = append(g.items, yaml.MapItem{Key: key, Value: v}) }

func (g *group) text(key, text string) {
	if text != "" {
		g.add(key, literal(text))
	}
}

func (g *group) list(key string, texts []string) {
	if len(texts) > 0 {
		g.add(key, literals(texts))
	}
}

func (g *group) duration(key string, d time.Duration) {
	if d != 0 {
		g.add(key, shortDuration(d))
	}
}

func (g *group) part(key string, part *group) {
	if len(part.items) > 0 {
		g.add(key, part.items)
	}
}

func (g *group) redisKey(key string, k *flow.RedisKey) {
	if k == nil {
		return
	}
	part := &group{}
	part.text("redis", k.Redis)
	part.text("key", k.Template.String())
	part.duration("ttl", k.TTL)
	if k.Renewed {
		part.add("renewed", true)
	}
	g.part(key, part)
}

func (g *group) id(q *flow.Queue) {
	part := &group{}
	part.text("json", q.IDField)
	part.text("property", q.IDProperty)
	g.part("id", part)
}

func (g *group) bodyField(key, field string) {
	part := &group{}
	part.text("json", field)
	g.part(key, part)
}

func (g *group) tls(t *TLS) {
	if t == nil {
		return
	}
	part := &group{}
	part.text("ca_file", t.CAFile)
	part.text("cert_file", t.CertFile)
	part.text("key_file", t.KeyFile)
	part.text("server_name", t.ServerName)
	part.add("insecure_skip_verify", t.InsecureSkipVerify)
	g.part("tls", part)
}

// plainShape is text that the YAML writer is trusted with: it quotes numbers and
// words such as true by itself, but spoils tabs, line ends and .inf.
var plainShape = regexp.MustCompile(`^[A-Za-z0-9/<][A-Za-z0-9_./:{}<>-]*$`)

// literal writes a text so that it reads back as it is. A single $ may begin a variable.
func literal(text string) any {
	text = strings.ReplaceAll(text, "$", "$$")
	if plainShape.MatchString(text) {
		return text
	}
	return quoted(text)
}

// quoted is a text that is written between double quotes, with escapes.
type quoted string

// MarshalYAML returns the text in its quotes.
func (q quoted) MarshalYAML() ([]byte, error) { return strconv.AppendQuote(nil, string(q)), nil }

func literals(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = literal(text)
	}
	return out
}
